import type { App } from './context.ts';
import type { Representation } from './negotiate.ts';

/**
 * Second half of an `ETag`, one number a media type (http-api.md 2.7). Clients echo it; the first two are the ones the
 * reference was seen to send, so that replies can be compared byte for byte.
 */
const OPAQUE: ReadonlyMap<string, number> = new Map([
  ['application/vnd.eventstore.atom+json', 1_747_451_192],
  ['application/json', -166_502_420],
  ['application/vnd.kurrent.atom+json', 1_747_451_193],
  ['application/vnd.eventstore.event+json', 1_747_451_194],
  ['application/vnd.kurrent.event+json', 1_747_451_195],
  ['application/octet-stream', -166_502_421],
]);
const FEED_OPAQUE = 1_747_451_192;

/** Without quotes. */
export function etagOf(version: number, representation: Representation): string {
  return `${version};${OPAQUE.get(representation.mediaType) ?? 0}`;
}

/** What a feed says of itself in `eTag`, whatever was negotiated. */
export function feedEtag(version: number): string {
  return `${version};${FEED_OPAQUE}`;
}

/** Quotes are optional; lists, `*` and weak tags never match. */
export function matchesEtag(request: Request, etag: string): boolean {
  const value = request.headers.get('if-none-match');
  return value !== null && (value === etag || value === `"${etag}"`);
}

/** How a reply may be cached. */
export interface Caching {
  readonly cacheControl: string;
  /** Without quotes; null where none is sent. */
  readonly etag: string | null;
}

const ASK_AGAIN = 'max-age=0, no-cache, must-revalidate';
const FOR_EVER = 'max-age=31536000, private';

/** What can't change any more: pages away from the head, events by number. */
export function unchanging(app: App): Caching {
  return { cacheControl: app.options.disableHttpCaching ? ASK_AGAIN : FOR_EVER, etag: null };
}

/** What can change. `seconds` is the stream's `$cacheControl`. */
export function changing(app: App, etag: string | null, seconds?: number): Caching {
  return { cacheControl: seconds === undefined || app.options.disableHttpCaching ? ASK_AGAIN : `max-age=${seconds}, private`, etag };
}
