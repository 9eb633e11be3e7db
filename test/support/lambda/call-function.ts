import type { httpHandler } from '../../../infra/aws/functions/http-function.ts';
import { httpEvent } from './events.ts';

/** A `fetch` that calls the handler of a function, with the events that the platform makes of requests to `url`. */
export function fetchBy(handler: ReturnType<typeof httpHandler>, url: string) {
  let calls = 0;
  return async (address: string | URL | Request, { method = 'GET', headers, body }: RequestInit = {}) => {
    const text = String(address);
    const { search } = new URL(text);
    const bytes = body instanceof Uint8Array;
    const event = httpEvent(method, text.slice(url.length, search === '' ? undefined : -search.length), {
      query: search.slice(1),
      headers: Object.fromEntries(new Headers(headers)),
      ...(body !== undefined &&
        body !== null && { body: bytes ? Buffer.from(body).toString('base64') : String(body), isBase64Encoded: bytes }),
    });
    const result = await handler(event, { awsRequestId: `call-${++calls}`, getRemainingTimeInMillis: () => 29_000 });
    const reply = result.body ?? '';
    return new Response(
      result.statusCode === 204 ? null : result.isBase64Encoded === true ? Buffer.from(reply, 'base64') : reply,
      { status: result.statusCode ?? 200, headers: result.headers as Record<string, string> },
    );
  };
}
