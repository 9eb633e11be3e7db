import { Hash64, streamHasher } from '../../base/stream-hash.ts';

/**
 * Keys of attributes, as hashes: that of the text as of a stream's name, with a constant of what it is the text of
 * laid over it, so that the text can be hashed where it lies in a record. Two keys may share a hash.
 */

/** What a key is the text of: category, type (`eventType`), correlation, tag. */
export type KeyKind = 'ce' | 'et' | 'bc' | 'tag';

const OVERLAYS: { readonly [Kind in KeyKind]: number } = {
  ce: 0,
  et: 0x9e3779b1,
  bc: 0x85ebca6b,
  tag: 0xc2b2ae35,
};

function lay(kind: KeyKind, out: Hash64): void {
  out.hi = (out.hi ^ OVERLAYS[kind]) >>> 0;
}

export function hashKey(kind: KeyKind, text: string, out: Hash64): void {
  streamHasher.hash(text, out);
  lay(kind, out);
}

/** The same of text in UTF-8. */
export function hashKeyUtf8(kind: KeyKind, bytes: Uint8Array, at: number, length: number, out: Hash64): void {
  streamHasher.hashUtf8(bytes, at, length, out);
  lay(kind, out);
}

/** Code of `-`, behind which a name goes on after its category. */
const DASH = 0x2d;
const DOLLAR = 0x24;

/** Bytes of the category with which the name of a stream begins; 0 where it has none. */
export function categoryLength(bytes: Uint8Array, at: number, length: number): number {
  if (length === 0 || bytes[at] === DOLLAR) return 0;
  // A category is short: a view of the name costs more than to look at its bytes.
  let dash = 0;
  while (dash < length && bytes[at + dash] !== DASH) dash++;
  return dash;
}

/** The category of a stream; null where it has none. */
export function categoryOf(stream: string): string | null {
  if (stream === '' || stream.startsWith('$')) return null;
  const dash = stream.indexOf('-');
  return dash < 0 ? stream : dash === 0 ? null : stream.slice(0, dash);
}

/** Bytes of a correlation or of one tag, in UTF-8. */
export const ATTRIBUTE_BYTES_MAX = 256;
/** Tags of one event. */
export const TAGS_MAX = 64;
