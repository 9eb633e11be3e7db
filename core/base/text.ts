import { wordsOf } from './bytes.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

export function decodeText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

export function encodeText(text: string): Uint8Array {
  return encoder.encode(text);
}

/**
 * The text without the copies of one character at its end. An expression such as `/0+$/` would try again from each of
 * them.
 */
export function withoutTrailing(text: string, character: string): string {
  const unit = character.charCodeAt(0);
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === unit) end--;
  return end === text.length ? text : text.slice(0, end);
}

/** Slots of a table of known texts; a power of two. */
const SLOTS = 4_096;
/** Longer texts are known to no table. */
export const KNOWN_BYTES_MAX = 256;
const WORDS_MAX = KNOWN_BYTES_MAX / 4;

/**
 * Recognises texts that it was asked for before, by slots: a direct-mapped cache of fixed size. It is asked about each
 * name in the log, and therefore looks at four bytes at a time; the last four may overlap those before, and three or
 * fewer are put into one number.
 */
export class KnownTexts {
  readonly slots = SLOTS;
  readonly #words = new Int32Array(SLOTS * WORDS_MAX);
  readonly #lengths = new Uint16Array(SLOTS);
  /** Of the text asked for last. */
  slot = 0;

  /**
   * Whether the text of 1 to KNOWN_BYTES_MAX bytes at `at` is that of its slot. If not, it is from now on, and the
   * caller puts there what it knows of the text.
   */
  has(b: Uint8Array, at: number, length: number): boolean {
    const view = wordsOf(b);
    const last = at + length - 4;
    const lastWord =
      length < 4 ? b[at]! | (b[at + (length >> 1)]! << 8) | (b[at + length - 1]! << 16) : view.getInt32(last, true);
    let hash = Math.imul(lastWord ^ length, 0x9e3779b1);
    for (let i = at; i < last; i += 4) hash = Math.imul((hash ^ (hash >>> 15)) + view.getInt32(i, true), 0x85ebca6b);
    const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
    this.slot = slot;
    const words = this.#words;
    let word = slot * WORDS_MAX;
    if (this.#lengths[slot] === length && words[word] === lastWord) {
      let i = at;
      while (i < last && view.getInt32(i, true) === words[++word]) i += 4;
      if (i >= last) return true;
      word = slot * WORDS_MAX;
    }
    this.#lengths[slot] = length;
    words[word] = lastWord;
    for (let i = at; i < last; i += 4) words[++word] = view.getInt32(i, true);
    return false;
  }
}

const interned = new KnownTexts();
const internedText: string[] = Array.from({ length: interned.slots }, () => '');

/**
 * Decodes the UTF-8 text at `at`, giving back the same string for the same bytes where it can: stream names and event
 * types repeat, and a comparison is several times cheaper than a decoder call and leaves no garbage. It holds no state
 * that a caller can observe: what it answers depends on the bytes alone. So it belongs to no store, and the readers of
 * records need not hand it down to every record.
 */
export function internText(b: Uint8Array, at: number, length: number): string {
  if (length === 0) return '';
  if (length > KNOWN_BYTES_MAX) return decoder.decode(b.subarray(at, at + length));
  return interned.has(b, at, length)
    ? internedText[interned.slot]!
    : (internedText[interned.slot] = decoder.decode(b.subarray(at, at + length)));
}
