import { corsHeaders } from './cors.ts';
import type { Call } from './context.ts';
import type { Caching } from './etag.ts';

/** What a reply can be made of. */
type Body = string | Uint8Array<ArrayBuffer> | ReadableStream;

const PLAIN = 'text/plain; charset=utf-8';

/** 201 for an append. Headers are one plain object, which server adapters pass on without parsing. */
export function created(call: Call, location: string): Response {
  const cors = corsHeaders(call.methods);
  return new Response(null, { status: 201, statusText: 'Created', headers: { ...cors, 'content-type': PLAIN, 'content-length': '0', location } });
}

/** A reply without a body. */
export function empty(call: Call, status: number, reason: string): Response {
  const headers: Record<string, string> = { ...corsHeaders(call.methods), 'content-type': PLAIN };
  if (status !== 204) headers['content-length'] = '0';
  return new Response(null, { status, statusText: reason, headers });
}

/** 307 to `location`, with a line of text. */
export function redirect(call: Call, location: string, text: string, cacheControl?: string): Response {
  const headers: Record<string, string> = { ...corsHeaders(call.methods), 'content-type': PLAIN, location };
  if (cacheControl !== undefined) headers['cache-control'] = cacheControl;
  return new Response(text, { status: 307, statusText: 'Temporary Redirect', headers });
}

/** What a client may compress (http-api.md 1.3): only exactly these values. */
const ENCODINGS: ReadonlySet<string> = new Set(['gzip', 'deflate']);

/** 200 with a representation. */
export function document(call: Call, body: Body, contentType: string, caching: Caching, reason = 'OK'): Response {
  const headers: Record<string, string> = { ...corsHeaders(call.methods), 'content-type': contentType, 'cache-control': caching.cacheControl, vary: 'Accept' };
  if (caching.etag !== null) headers['etag'] = `"${caching.etag}"`;
  const encoding = call.request.headers.get('accept-encoding');
  if (encoding === null || !ENCODINGS.has(encoding)) return new Response(body, { status: 200, statusText: reason, headers });
  headers['content-encoding'] = encoding;
  headers['vary'] = 'Accept, Accept-Encoding';
  const plain = body instanceof ReadableStream ? body : new Response(body).body!;
  return new Response(plain.pipeThrough(new CompressionStream(encoding as 'gzip')), { status: 200, statusText: reason, headers });
}
