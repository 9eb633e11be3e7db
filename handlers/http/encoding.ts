import type { App, BodyEncoder, Call, Coding, Reply, ReplyBody } from './context.ts';
import { compressedOnce } from './shared-body.ts';

/** Compressed replies, for what browsers and `fetch` send in `Accept-Encoding`. */

/** By what they are worth: the earlier ones make more of the same time. */
const CODINGS: readonly Coding[] = ['zstd', 'br', 'gzip', 'deflate'];

/** Of the web platform, where the server brings none of its own. It can't flush, so what goes on stays as it is. */
export const WEB_ENCODER: BodyEncoder = {
  codings: new Set(['gzip', 'deflate']),
  liveCodings: new Set(),
  encode: (body, coding) =>
    (body instanceof ReadableStream ? body : new Response(body).body!).pipeThrough(
      new CompressionStream(coding as 'gzip'),
    ) as ReadableStream<Uint8Array>,
};

/** Longest `Accept-Encoding` that is looked at, in characters, and most codings in it. */
const ACCEPT_LENGTH_MAX = 512;
const ACCEPT_CODINGS_MAX = 32;

/**
 * The reply, compressed where the caller takes that and it pays. A caller that names one coding alone, as the reference
 * has it, gets it whatever the size and for binary events too; one that names several gets text from
 * `compressionMinBytes` on.
 */
export function encoded(reply: Reply, call: Call, app: App): Reply | Promise<Reply> {
  const { body, headers } = reply;
  if (body === null || app.options.compressionMinBytes < 0) return reply;
  const accept = call.request.headers.get('accept-encoding');
  if (accept === null || headers['content-encoding'] !== undefined || headers['accept-ranges'] !== undefined)
    return reply;
  const type = headers['content-type'] ?? '';
  const isAlone = accept === 'gzip' || accept === 'deflate';
  if (
    !isAlone &&
    (type.startsWith('application/octet-stream') ||
      (!(body instanceof ReadableStream) && body.length < app.options.compressionMinBytes))
  )
    return reply;
  const isLive = type.startsWith('text/event-stream') || type.startsWith('application/x-ndjson');
  const encoder = app.server.encoder ?? WEB_ENCODER;
  const coding = codingFor(accept, isLive ? encoder.liveCodings : encoder.codings);
  const compressed = coding === null ? null : compressedOnce(body, coding, () => encoder.encode(body, coding, isLive));
  if (compressed === null) return reply;
  const made = (bytes: ReplyBody): Reply => ({ ...reply, headers: encodedHeaders(headers, coding!), body: bytes });
  return compressed instanceof Promise ? compressed.then(made) : made(compressed);
}

function encodedHeaders(headers: Reply['headers'], coding: Coding): Record<string, string> {
  const { 'content-length': _, etag, vary, ...others } = headers;
  return {
    ...others,
    'content-encoding': coding,
    vary:
      vary === undefined
        ? 'Accept-Encoding'
        : vary.toLowerCase().includes('accept-encoding')
          ? vary
          : `${vary}, Accept-Encoding`,
    // The bytes are others, so the tag is another (RFC 9110 section 8.8.3.3).
    ...(etag !== undefined && { etag: `${etag.slice(0, -1)}-${coding}"` }),
  };
}

/** A tag without the coding that `encoded` has put into it. */
export function withoutCoding(etag: string): string {
  const end = etag.endsWith('"') ? etag.length - 1 : etag.length;
  const at = etag.lastIndexOf('-', end);
  return at >= 0 && (CODINGS as readonly string[]).includes(etag.slice(at + 1, end))
    ? etag.slice(0, at) + etag.slice(end)
    : etag;
}

/**
 * The coding that the caller likes best, among equals the first of CODINGS; null for none, or where it likes the body
 * better as it is.
 */
export function codingFor(accept: string, offered: ReadonlySet<Coding>): Coding | null {
  if (offered.size === 0 || accept.length > ACCEPT_LENGTH_MAX) return null;
  const weights = new Map<string, number>();
  for (const part of accept.split(',', ACCEPT_CODINGS_MAX)) {
    const [name = '', ...parameters] = part.split(';');
    const weight =
      parameters
        .map((parameter) => parameter.trim().toLowerCase())
        .find((parameter) => parameter.startsWith('q='))
        ?.slice(2) ?? '1';
    const q = Number(weight);
    weights.set(name.trim().toLowerCase(), q >= 0 && q <= 1 ? q : 0);
  }
  let best: Coding | null = null;
  // Only where `identity` is named: a caller that does not name it takes it, but does not prefer it.
  let most = weights.get('identity') ?? 0;
  const others = weights.get('*') ?? 0;
  for (const coding of CODINGS) {
    const q = weights.get(coding) ?? (coding === 'gzip' ? weights.get('x-gzip') : undefined) ?? others;
    if (!offered.has(coding) || q === 0 || q < most || (q === most && best !== null)) continue;
    best = coding;
    most = q;
  }
  return best;
}
