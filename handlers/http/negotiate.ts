import { parse } from 'content-type';
import Negotiator from 'negotiator';
import { SkuaError } from '../../core/base/errors.ts';
import { xmlRemark } from './absent.ts';
import { queryOf } from './context.ts';
import type { Call } from './context.ts';

/** What a reply consists of. */
type Kind = 'json' | 'text' | 'atom' | 'competing' | 'event' | 'binary' | 'description' | 'lines' | 'live';

/** A representation we can send: its media type and the family of names the answer uses. */
export interface Representation {
  readonly kind: Kind;
  readonly mediaType: string;
  /** Value of `Content-Type`. */
  readonly contentType: string;
  /** `author.name` in feeds. */
  readonly author: string;
}

function representation(kind: Kind, mediaType: string, charset = true): Representation {
  return {
    kind,
    mediaType,
    contentType: charset ? `${mediaType}; charset=utf-8` : mediaType,
    author: mediaType.includes('.kurrent.') ? 'Kurrent' : 'EventStore',
  };
}

const ALL: readonly Representation[] = [
  representation('json', 'application/json'),
  representation('text', 'text/plain'),
  representation('atom', 'application/vnd.eventstore.atom+json'),
  representation('atom', 'application/vnd.kurrent.atom+json'),
  representation('competing', 'application/vnd.eventstore.competingatom+json'),
  representation('competing', 'application/vnd.kurrent.competingatom+json'),
  representation('event', 'application/vnd.eventstore.event+json'),
  representation('event', 'application/vnd.kurrent.event+json'),
  representation('binary', 'application/octet-stream', false),
  representation('description', 'application/vnd.eventstore.streamdesc+json'),
  representation('description', 'application/vnd.kurrent.streamdesc+json'),
  representation('lines', 'application/x-ndjson'),
  representation('live', 'text/event-stream'),
];
const BY_TYPE = new Map(ALL.map((r) => [r.mediaType, r]));
const JSON_REPRESENTATION = BY_TYPE.get('application/json')!;

/** The representations of feeds; the first is what `*\/*` gets. */
export const FEED_KINDS: readonly Kind[] = ['json', 'atom', 'description', 'lines'];
/** Of `/streams/{stream}` and `/streams/$all`, which can be followed as well. */
export const HEAD_KINDS: readonly Kind[] = ['json', 'atom', 'description', 'lines', 'live'];
/** Of messages of persistent subscriptions. */
export const COMPETING_KINDS: readonly Kind[] = ['json', 'competing'];
/** Of feeds that come as pages alone. */
export const PAGE_KINDS: readonly Kind[] = ['json', 'atom'];
/** Of single events. */
export const EVENT_KINDS: readonly Kind[] = ['json', 'atom', 'event', 'binary'];
/** Of the admin routes whose replies have a form in plain text. */
export const ADMIN_KINDS: readonly Kind[] = ['json', 'text'];
export const JSON_ONLY: readonly Kind[] = ['json'];

/** Values of the query parameter `format`; null: known, but nothing we can send. */
const FORMATS: ReadonlyMap<string, string | null> = new Map([
  ['json', 'application/json'],
  ['atomxj', 'application/vnd.eventstore.atom+json'],
  ['text', 'text/plain'],
  ['xml', null],
  ['atom', null],
  ['atomsvc', null],
  ['atomsvcxj', null],
]);
const XML_FORMATS: ReadonlySet<string> = new Set(['xml', 'atom', 'atomsvc']);

/**
 * Chooses what to send: `format` if given, else the `Accept` entry of the highest `q` that is among `kinds`.
 * Without `Accept`, and for `*\/*`, JSON. Throws `not_acceptable`; XML is not spoken here.
 */
export function negotiate(call: Call, kinds: readonly Kind[]): Representation {
  const format = queryOf(call, 'format');
  if (format !== undefined) {
    const mediaType = FORMATS.get(format.toLowerCase());
    if (mediaType === undefined)
      throw new SkuaError('bad_request', `'${format}' is not a known format. Use json or atomxj.`);
    const chosen = mediaType === null ? undefined : BY_TYPE.get(mediaType);
    if (chosen !== undefined && kinds.includes(chosen.kind)) return chosen;
    throw notAcceptable(kinds, XML_FORMATS.has(format.toLowerCase()) ? 'xml' : format);
  }
  const accept = call.request.headers.get('accept');
  if (!accept || accept === '*/*') return JSON_REPRESENTATION;
  const exact = BY_TYPE.get(accept);
  if (exact !== undefined && kinds.includes(exact.kind)) return exact;
  for (const range of ranges(accept)) {
    const chosen = firstOf(range, kinds);
    if (chosen !== undefined) return chosen;
  }
  throw notAcceptable(kinds, accept);
}

function notAcceptable(kinds: readonly Kind[], asked: string): SkuaError {
  const offered = ALL.filter((r) => kinds.includes(r.kind)).map((r) => r.mediaType);
  return new SkuaError(
    'not_acceptable',
    `${xmlRemark(asked)}This is available as ${offered.join(', ')}. Request one of them in Accept.`,
  );
}

/** The media ranges of an `Accept` value by falling `q`, of one `q` in their order; those with `q=0` are left out. */
function ranges(accept: string): string[] {
  return new Negotiator({ headers: { accept } }).mediaTypes().map((range) => range.toLowerCase());
}

function firstOf(range: string, kinds: readonly Kind[]): Representation | undefined {
  if (range === '*/*') return JSON_REPRESENTATION;
  if (range.endsWith('/*')) {
    const prefix = range.slice(0, -1);
    return ALL.find((r) => kinds.includes(r.kind) && r.mediaType.startsWith(prefix));
  }
  const exact = BY_TYPE.get(range);
  return exact !== undefined && kinds.includes(exact.kind) ? exact : undefined;
}

/** Characters of a `Content-Type` that an error repeats. */
const SHOWN_LENGTH_MAX = 100;

/** What a `Content-Type` says: the media type in lower case, and whether no other charset than UTF-8 is named. */
export function mediaTypeOf(contentType: string): { readonly type: string; readonly isUtf8: boolean } {
  const { type, parameters } = parse(contentType);
  const charset = parameters['charset']?.toLowerCase();
  return { type, isUtf8: charset === undefined || charset === 'utf-8' || charset === 'utf8' };
}

/** What a posted body holds. `unusable`: a media type that routes know but no body of which can be appended. */
export type PostedKind = 'batch' | 'json' | 'binary' | 'unusable';

const POSTED = new Map<string, PostedKind>([
  ['application/json', 'json'],
  ['application/octet-stream', 'binary'],
]);
for (const name of ['eventstore', 'kurrent']) {
  POSTED.set(`application/vnd.${name}.events+json`, 'batch');
  POSTED.set(`application/vnd.${name}.event+json`, 'unusable');
  POSTED.set(`application/vnd.${name}.atom+json`, 'unusable');
}

/**
 * The kind of a posted body by its `Content-Type`. Throws `unsupported_media_type`, also for a charset that is not
 * UTF-8.
 */
export function postedKind(contentType: string | null): PostedKind {
  const exact = contentType === null ? undefined : POSTED.get(contentType);
  if (exact !== undefined) return exact;
  const { type, isUtf8 } = mediaTypeOf(contentType ?? '');
  const kind = POSTED.get(type);
  if (kind === undefined || !isUtf8) {
    throw new SkuaError(
      'unsupported_media_type',
      `${xmlRemark(type)}Content-Type '${(contentType ?? '').slice(0, SHOWN_LENGTH_MAX)}' is not supported here. Post application/json or application/octet-stream (one event), or application/vnd.eventstore.events+json (an array of events), in UTF-8.`,
    );
  }
  return kind;
}
