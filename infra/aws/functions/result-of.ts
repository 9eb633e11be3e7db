import type { APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { commonHeaders } from '../../../handlers/http/reply.ts';

/**
 * Replies of the handlers as results of a function. A result is one JSON document of at most 6 MB, so a reply is
 * collected first; one that does not end (server-sent events) is cut where it has caught up.
 */

/** Largest body of a reply in bytes; Base64 makes it a third longer, and the head needs room too. */
export const REPLY_BODY_BYTES_MAX = 4_400_000;
/** The same of text as JSON writes it. */
export const REPLY_TEXT_BYTES_MAX = 5_900_000;

const NO_BODY = Buffer.alloc(0);
const CAUGHT_UP = Buffer.from('event: caught-up');
/** Clients of server-sent events ask again after so many milliseconds. */
const RETRY = Buffer.from('retry: 2000\n\n');

export async function resultOf(response: Response, method = 'GET'): Promise<APIGatewayProxyStructuredResultV2> {
  const body = await bodyOf(response, method);
  if (body === null) return tooLong();
  const { headers, cookies } = headersOf(response);
  const result = { statusCode: response.status, headers, ...(cookies.length > 0 && { cookies }) };
  const text = isText(headers['content-type']) ? textOf(body) : null;
  // What JSON escapes counts too, since the document as a whole has the limit. Much escaped, Base64 is shorter.
  if (text !== null && Buffer.byteLength(JSON.stringify(text)) <= REPLY_TEXT_BYTES_MAX)
    return { ...result, body: text, isBase64Encoded: false };
  return body.length > REPLY_BODY_BYTES_MAX
    ? tooLong()
    : { ...result, body: body.toString('base64'), isBase64Encoded: true };
}

/** Null where it does not fit. */
async function bodyOf({ body, headers }: Response, method: string): Promise<Buffer | null> {
  if (body === null) return NO_BODY;
  if (method !== 'HEAD')
    return headers.get('content-type')?.startsWith('text/event-stream') === true ? untilCaughtUp(body) : whole(body);
  await body.cancel();
  return NO_BODY;
}

/** A reply that does not fit is no failure of the store: the caller can ask for less. */
function tooLong(): APIGatewayProxyStructuredResultV2 {
  const limit = REPLY_BODY_BYTES_MAX;
  return problem(
    413,
    'reply_too_large',
    'Content Too Large',
    `The reply is longer than a function can give (${limit} bytes). Ask for fewer events at once.`,
  );
}

/** A problem document where no handler can make one. */
export function problem(
  statusCode: number,
  code: string,
  title: string,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): APIGatewayProxyStructuredResultV2 {
  return {
    statusCode,
    headers: { ...commonHeaders(''), ...headers, 'content-type': 'application/problem+json; charset=utf-8' },
    body: JSON.stringify({ code, title, detail }),
    isBase64Encoded: false,
  };
}

function headersOf(response: Response): { headers: Record<string, string>; cookies: string[] } {
  const headers: Record<string, string> = {};
  // The platform counts the body itself, and has its own connections.
  for (const [name, value] of response.headers)
    if (name !== 'set-cookie' && name !== 'content-length' && name !== 'connection') headers[name] = value;
  return { headers, cookies: response.headers.getSetCookie() };
}

/** Null where it does not fit. */
async function whole(body: ReadableStream<Uint8Array>): Promise<Buffer | null> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > REPLY_TEXT_BYTES_MAX) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces, length);
}

const EVENT_END = Buffer.from('\n\n');

/**
 * Every event that is there now; null where not even the first one fits. A client that reconnects says behind which
 * event it goes on. An event ends with a piece that ends with an empty line, so that a cut never goes through one.
 */
async function untilCaughtUp(body: ReadableStream<Uint8Array>): Promise<Buffer | null> {
  const pieces: Uint8Array[] = [RETRY];
  let length = RETRY.length;
  let complete = 1;
  for await (const piece of body) {
    if (length + piece.length > REPLY_BODY_BYTES_MAX) {
      if (complete === 1) return null;
      break;
    }
    pieces.push(piece);
    length += piece.length;
    if (EVENT_END.equals(piece.subarray(-EVENT_END.length))) complete = pieces.length;
    if (CAUGHT_UP.equals(piece.subarray(0, CAUGHT_UP.length))) break;
  }
  return Buffer.concat(pieces.slice(0, complete));
}

const TEXT = /^(?:text\/|application\/(?:[\w.+-]*\+)?(?:json|xml|x-ndjson)\b|application\/atom)/i;

function isText(contentType: string | undefined): boolean {
  return contentType === undefined || TEXT.test(contentType);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Null for what is no UTF-8. */
function textOf(body: Uint8Array): string | null {
  try {
    return utf8.decode(body);
  } catch {
    return null;
  }
}
