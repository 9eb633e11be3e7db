import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import { SkuaError } from '../../../core/base/errors.ts';
import { hasDotSegment } from '../../../handlers/http/url.ts';

/**
 * Events of function URLs and of HTTP APIs (payload format 2.0) as requests of the web platform. The body is kept
 * beside the request, as the bytes that were sent: signatures are made over those.
 */

/** Largest body in bytes. The platform takes 6 MB of event, in which a binary body is a third longer. */
export const REQUEST_BODY_BYTES_MAX = 6_000_000;

/** What of an event is used here; both kinds have it. */
export type HttpEvent = Pick<APIGatewayProxyEventV2, 'rawPath' | 'rawQueryString' | 'headers' | 'isBase64Encoded'> & {
  readonly cookies?: string[] | undefined;
  readonly body?: string | undefined;
  readonly requestContext: {
    readonly domainName?: string;
    readonly requestId?: string;
    readonly http: { readonly method: string; readonly sourceIp?: string };
  };
};

const NO_BODY = new Uint8Array(0);

interface Origin {
  readonly body: Uint8Array;
  readonly address: string | null;
}

const origins = new WeakMap<Request, Origin>();

/** Errors: `bad_request` for what no request can be made of, `body_too_large`. */
export function requestOf(event: HttpEvent): Request {
  const { http, domainName } = event.requestContext;
  const headers = headersOf(event);
  const body = bodyOf(event);
  // Not the host header: a caller of an HTTP API can't choose this name, and links begin with it.
  const origin = `https://${domainName ?? headers.get('host') ?? 'localhost'}`;
  // The platform's `URL` would resolve these segments, and a proxy in front may have judged the path as it was sent.
  if (hasDotSegment(event.rawPath))
    throw new SkuaError('bad_request', 'The path has a segment . or ..: resolve these before sending.');
  const query =
    event.rawQueryString === '' || event.rawQueryString === undefined
      ? ''
      : `?${escaped(event.rawQueryString, QUERY_UNSAFE)}`;
  let request: Request;
  try {
    request = new Request(`${origin}${escaped(event.rawPath, PATH_UNSAFE)}${query}`, { method: http.method, headers });
  } catch (error) {
    throw new SkuaError(
      'bad_request',
      `This call is not a valid request: ${error instanceof Error ? error.message : String(error)}.`,
      {},
      error,
    );
  }
  origins.set(request, { body, address: http.sourceIp ?? null });
  return request;
}

/** For the context of the handlers. Errors: `body_too_large`. */
export async function readBody(request: Request, bytesMax: number): Promise<Uint8Array> {
  const body = origins.get(request)?.body ?? NO_BODY;
  if (body.length > bytesMax) throw tooLarge(bytesMax);
  return body;
}

/** Where the request comes from, for the context of the handlers. */
export function addressOf(request: Request): string | null {
  return origins.get(request)?.address ?? null;
}

function bodyOf({ body, isBase64Encoded }: HttpEvent): Uint8Array {
  if (body === undefined || body === '') return NO_BODY;
  const bytes = new Uint8Array(Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8'));
  if (bytes.length > REQUEST_BODY_BYTES_MAX) throw tooLarge(REQUEST_BODY_BYTES_MAX);
  return bytes;
}

function tooLarge(limit: number): SkuaError {
  return new SkuaError('body_too_large', `The request body exceeds ${limit} bytes. Send fewer events at once.`, {
    limit,
  });
}

/** The platform has decoded values as UTF-8; handlers expect a character a byte, as Node.js gives them. */
function headersOf({ headers, cookies }: HttpEvent): Headers {
  const made = new Headers();
  for (const [name, value] of Object.entries(headers ?? {})) if (value !== undefined) set(made, name, value);
  if (cookies !== undefined && cookies.length > 0 && !made.has('cookie')) set(made, 'cookie', cookies.join('; '));
  return made;
}

function set(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, ASCII.test(value) ? value : Buffer.from(value, 'utf8').toString('latin1'));
  } catch {
    throw new SkuaError('bad_header', `The header ${JSON.stringify(name.slice(0, 100))} can't be part of a request.`);
  }
}

// oxlint-disable-next-line no-control-regex -- The range of ASCII is meant.
const ASCII = /^[\x00-\x7f]*$/;

/**
 * Function URLs leave the path as it was sent, HTTP APIs decode it. Only what can't stand in an encoded path is
 * escaped, so that both come out right; what an HTTP API has lost (which `/`, `?` or `%` was escaped) can't be found
 * again.
 */
const PATH_UNSAFE = /%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9_\-.~!$&'()*+,;=:@/%]/gu;
const QUERY_UNSAFE = /[\s"<>#]|[^\x21-\x7e]/gu;

function escaped(part: string, unsafe: RegExp): string {
  return part.toWellFormed().replace(unsafe, (character) => encodeURIComponent(character));
}
