import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Largest body in bytes that a function URL takes. */
export const EVENT_BODY_BYTES_MAX = 6 * 1_048_576;

/** Null for a body beyond the limit. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length <= EVENT_BODY_BYTES_MAX) pieces.push(piece);
  }
  return length > EVENT_BODY_BYTES_MAX ? null : Buffer.concat(pieces);
}

/** Text goes as it is, everything else as Base64; the platform decides by the content type too. */
const TEXT = /^(?:text\/|application\/(?:json|javascript|xml|x-www-form-urlencoded)(?:;|$))/i;

/** The event of a function URL (payload format 2.0) for a request. */
export function httpEventOf(request: IncomingMessage, body: Buffer, nowMs: number) {
  const url = request.url ?? '/';
  const [rawPath, rawQueryString] = url.includes('?') ? [url.slice(0, url.indexOf('?')), url.slice(url.indexOf('?') + 1)] : [url, ''];
  const [host, port] = (request.headers.host ?? 'localhost').split(':');
  const { cookie, ...given } = request.headers;
  // The platform ends TLS and says where the request went; here it went to this port.
  const headers: Record<string, string> = { 'x-forwarded-proto': 'http', 'x-forwarded-port': port ?? '80' };
  for (const [name, value] of Object.entries(given)) if (value !== undefined && !(name in headers)) headers[name] = Array.isArray(value) ? value.join(',') : value;
  const isText = TEXT.test(headers['content-type'] ?? '');
  return {
    version: '2.0', routeKey: '$default', rawPath, rawQueryString, headers,
    ...(cookie !== undefined && { cookies: cookie.split(/;\s*/) }),
    ...(rawQueryString !== '' && { queryStringParameters: Object.fromEntries(new URLSearchParams(rawQueryString)) }),
    requestContext: {
      accountId: 'anonymous', apiId: 'local', domainName: host ?? 'localhost', domainPrefix: 'local', requestId: randomUUID(), routeKey: '$default', stage: '$default',
      http: { method: request.method ?? 'GET', path: rawPath, protocol: 'HTTP/1.1', sourceIp: request.socket.remoteAddress ?? '127.0.0.1', userAgent: headers['user-agent'] ?? '' },
      time: new Date(nowMs).toISOString(), timeEpoch: nowMs,
    },
    ...(body.length > 0 && { body: body.toString(isText ? 'utf8' : 'base64') }),
    isBase64Encoded: body.length > 0 && !isText,
  };
}

/** The event with which a schedule calls the tick. */
export function scheduledEvent(nowMs: number) {
  return {
    version: '0', id: randomUUID(), 'detail-type': 'Scheduled Event', source: 'aws.events', account: '000000000000', time: new Date(nowMs).toISOString(), region: 'local',
    resources: ['arn:aws:events:local:000000000000:rule/skua-tick'], detail: {},
  };
}

interface HttpResult {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  readonly cookies?: readonly string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

/** Sends what a function gave back, by the platform's rules. */
export function sendResult(reply: ServerResponse, value: unknown): void {
  const { statusCode = 200, headers = {}, cookies, body = '', isBase64Encoded = false } = (value ?? {}) as HttpResult;
  const bytes = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8');
  for (const [name, header] of Object.entries(headers)) reply.setHeader(name, String(header));
  if (cookies !== undefined) reply.setHeader('set-cookie', cookies);
  if (statusCode !== 204 && statusCode !== 304) reply.setHeader('content-length', bytes.length);
  reply.writeHead(statusCode);
  reply.end(reply.req.method === 'HEAD' ? undefined : bytes);
}
