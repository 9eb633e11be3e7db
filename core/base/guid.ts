import { decodeText } from './text.ts';

/**
 * GUIDs are stored with their first three groups byte-reversed and written as lower-case text
 * `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
 */
/** Character codes of the two hex digits of each byte. */
const HIGH = Uint8Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0').charCodeAt(0));
const LOW = Uint8Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0').charCodeAt(1));

/**
 * The text of the 16 on-disk bytes at `at`. Every event that is read has one, and one call with all characters takes a
 * third of the time of putting strings together, and leaves a flat string.
 */
export function guidToText(b: Uint8Array, at: number): string {
  const b0 = b[at]!,
    b1 = b[at + 1]!,
    b2 = b[at + 2]!,
    b3 = b[at + 3]!,
    b4 = b[at + 4]!,
    b5 = b[at + 5]!,
    b6 = b[at + 6]!,
    b7 = b[at + 7]!;
  const b8 = b[at + 8]!,
    b9 = b[at + 9]!,
    b10 = b[at + 10]!,
    b11 = b[at + 11]!,
    b12 = b[at + 12]!,
    b13 = b[at + 13]!,
    b14 = b[at + 14]!,
    b15 = b[at + 15]!;
  return String.fromCharCode(
    HIGH[b3]!,
    LOW[b3]!,
    HIGH[b2]!,
    LOW[b2]!,
    HIGH[b1]!,
    LOW[b1]!,
    HIGH[b0]!,
    LOW[b0]!,
    45,
    HIGH[b5]!,
    LOW[b5]!,
    HIGH[b4]!,
    LOW[b4]!,
    45,
    HIGH[b7]!,
    LOW[b7]!,
    HIGH[b6]!,
    LOW[b6]!,
    45,
    HIGH[b8]!,
    LOW[b8]!,
    HIGH[b9]!,
    LOW[b9]!,
    45,
    HIGH[b10]!,
    LOW[b10]!,
    HIGH[b11]!,
    LOW[b11]!,
    HIGH[b12]!,
    LOW[b12]!,
    HIGH[b13]!,
    LOW[b13]!,
    HIGH[b14]!,
    LOW[b14]!,
    HIGH[b15]!,
    LOW[b15]!,
  );
}

/** Both of them as one little-endian number. */
const DIGITS = Uint16Array.from({ length: 256 }, (_, i) => HIGH[i]! | (LOW[i]! << 8));
const TEXT_LENGTH = 36;
/** Ids that are made texts of together: each of the texts keeps the others. */
const TEXTS = 16;
const HYPHEN = 45;

/**
 * Gives things their ids, many of them at once: the call that makes one long text, of which each gets its part, takes
 * no longer than one for a single id. Until `settle` has been called, or TEXTS have come, a thing has none.
 */
export class GuidTexts {
  readonly #bytes = new Uint8Array(TEXTS * TEXT_LENGTH);
  readonly #view = new DataView(this.#bytes.buffer);
  readonly #waiting: ({ id: string } | null)[] = Array.from({ length: TEXTS }, () => null);
  #count = 0;

  /** The 16 on-disk bytes at `at` are the id of `owner`. */
  add(b: Uint8Array, at: number, owner: { id: string }): void {
    const out = this.#bytes;
    const view = this.#view;
    const to = this.#count * TEXT_LENGTH;
    view.setUint16(to, DIGITS[b[at + 3]!]!, true);
    view.setUint16(to + 2, DIGITS[b[at + 2]!]!, true);
    view.setUint16(to + 4, DIGITS[b[at + 1]!]!, true);
    view.setUint16(to + 6, DIGITS[b[at]!]!, true);
    out[to + 8] = HYPHEN;
    view.setUint16(to + 9, DIGITS[b[at + 5]!]!, true);
    view.setUint16(to + 11, DIGITS[b[at + 4]!]!, true);
    out[to + 13] = HYPHEN;
    view.setUint16(to + 14, DIGITS[b[at + 7]!]!, true);
    view.setUint16(to + 16, DIGITS[b[at + 6]!]!, true);
    out[to + 18] = HYPHEN;
    view.setUint16(to + 19, DIGITS[b[at + 8]!]!, true);
    view.setUint16(to + 21, DIGITS[b[at + 9]!]!, true);
    out[to + 23] = HYPHEN;
    for (let i = 10; i < 16; i++) view.setUint16(to + 4 + 2 * i, DIGITS[b[at + i]!]!, true);
    this.#waiting[this.#count++] = owner;
    if (this.#count === TEXTS) this.settle();
  }

  settle(): void {
    const count = this.#count;
    if (count === 0) return;
    const text = decodeText(this.#bytes.subarray(0, count * TEXT_LENGTH));
    for (let i = 0; i < count; i++) {
      this.#waiting[i]!.id = text.substring(i * TEXT_LENGTH, (i + 1) * TEXT_LENGTH);
      this.#waiting[i] = null;
    }
    this.#count = 0;
  }
}

/** Value of each hex digit by character code, 255 for anything else. */
const NIBBLE = new Uint8Array(128).fill(255);
for (let i = 0; i < 16; i++) {
  NIBBLE['0123456789abcdef'.charCodeAt(i)] = i;
  NIBBLE['0123456789ABCDEF'.charCodeAt(i)] = i;
}
/** Where in the text the two digits of on-disk byte i stand. */
const TEXT_AT = [6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34];

/** Writes the on-disk bytes of a GUID's text at `at`. False, with nothing useful written, when the text is no GUID. */
export function guidFromText(text: string, out: Uint8Array, at: number): boolean {
  if (
    text.length !== 36 ||
    text.charCodeAt(8) !== 45 ||
    text.charCodeAt(13) !== 45 ||
    text.charCodeAt(18) !== 45 ||
    text.charCodeAt(23) !== 45
  )
    return false;
  let bad = 0;
  for (let i = 0; i < 16; i++) {
    const t = TEXT_AT[i]!;
    const high = NIBBLE[text.charCodeAt(t)] ?? 255;
    const low = NIBBLE[text.charCodeAt(t + 1)] ?? 255;
    bad |= high | low;
    out[at + i] = (high << 4) | low;
  }
  return bad < 16;
}

/** True for the GUID of sixteen zero bytes, which no record may carry. */
export function guidIsEmpty(b: Uint8Array, at: number): boolean {
  for (let i = 0; i < 16; i++) if (b[at + i] !== 0) return false;
  return true;
}

/** The on-disk bytes of a UUID given in textual (big-endian) order. */
export function guidFromUuidBytes(uuid: Uint8Array): Uint8Array {
  const out = new Uint8Array(16);
  for (let i = 0; i < 16; i++) out[i] = uuid[ORDER[i]!]!;
  return out;
}
const ORDER = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
