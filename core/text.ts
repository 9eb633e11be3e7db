import { equalBytes } from './bytes.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

export function decodeText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

export function encodeText(text: string): Uint8Array {
  return encoder.encode(text);
}

/** The text without the copies of one character at its end. An expression such as `/0+$/` would try again from each of them. */
export function withoutTrailing(text: string, character: string): string {
  const unit = character.charCodeAt(0);
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === unit) end--;
  return end === text.length ? text : text.slice(0, end);
}

/** Slots of the interning table; a power of two. */
const SLOTS = 4_096;
/** Longer texts are decoded each time. */
const INTERNED_BYTES_MAX = 256;
const slotBytes: (Uint8Array | null)[] = Array.from({ length: SLOTS }, () => null);
const slotText: string[] = Array.from({ length: SLOTS }, () => '');

/**
 * Decodes the UTF-8 text at `at`, giving back the same string for the same bytes where it can: stream names and event
 * types repeat, and a comparison is several times cheaper than a decoder call and leaves no garbage. It is a
 * direct-mapped cache of fixed size and holds no state that a caller can observe: what it answers depends on the bytes
 * alone. So it belongs to no store, and the readers of records need not hand it down to every record.
 */
export function internText(b: Uint8Array, at: number, length: number): string {
  if (length === 0) return '';
  if (length > INTERNED_BYTES_MAX) return decoder.decode(b.subarray(at, at + length));
  let hash = length;
  for (let i = at, end = at + length; i < end; i++) hash = (Math.imul(hash, 31) + b[i]!) | 0;
  const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
  const known = slotBytes[slot];
  if (known !== null && known !== undefined && known.length === length && equalBytes(known, 0, b, at, length)) return slotText[slot]!;
  const bytes = b.slice(at, at + length);
  const text = decoder.decode(bytes);
  slotBytes[slot] = bytes;
  slotText[slot] = text;
  return text;
}
