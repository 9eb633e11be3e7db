import { decodeText } from '../../core/base/text.ts';
import { jsonString } from './json-text.ts';

/** Bytes that a writer has room for at first, and up to which it keeps what it has grown to. */
const FIRST_BYTES = 98_304;
const KEPT_BYTES_MAX = 2_097_152;
/** No longer texts and bytes are written here: the platform's encoder, and its copying, take longer to call. */
const SHORT_TEXT_LENGTH = 64;
const SHORT_BYTES = 16;

/** What becomes of a byte inside a string: 0 for itself, else the character behind a backslash, or FOREIGN. */
const ESCAPES = new Uint8Array(256);
const FOREIGN = 1;
ESCAPES.fill(FOREIGN, 0, 32);
ESCAPES.fill(FOREIGN, 128);
for (const [character, escape] of ['""', '\\\\', '\bb', '\ff', '\nn', '\rr', '\tt'])
  ESCAPES[character!.charCodeAt(0)] = escape!.charCodeAt(0);

const BILLION = 1_000_000_000;
const encoder = new TextEncoder();
const BASE64 = encoder.encode('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
/** `=` */
const PADDING = 61;

/**
 * Text of a reply, written as bytes one behind the other. An event has dozens of parts: as texts each would be made,
 * put together with the others and encoded, which takes several times as long as writing it where it goes.
 */
export class JsonBytes {
  /** Bytes written since the last `take`. */
  length = 0;
  #bytes = new Uint8Array(FIRST_BYTES);

  /** Bytes that are text already, from `from` on. */
  raw(part: Uint8Array, from = 0): void {
    const out = this.#withRoom(part.length - from);
    let at = this.length;
    if (part.length > SHORT_BYTES) {
      out.set(from === 0 ? part : part.subarray(from), at);
      this.length = at + part.length - from;
      return;
    }
    for (let i = from; i < part.length; i++) out[at++] = part[i]!;
    this.length = at;
  }

  text(text: string): void {
    const { length } = text;
    if (length <= SHORT_TEXT_LENGTH) {
      const out = this.#withRoom(length);
      const start = this.length;
      let i = 0;
      for (; i < length; i++) {
        const c = text.charCodeAt(i);
        if (c >= 128) break;
        out[start + i] = c;
      }
      if (i === length) {
        this.length = start + length;
        return;
      }
    }
    // Most texts take one byte a character; a character takes four at most, so that each round gets on.
    for (let rest = text; rest !== '';) {
      const out = this.#withRoom(rest.length + 4);
      const { read, written } = encoder.encodeInto(rest, out.subarray(this.length));
      this.length += written;
      rest = rest.slice(read);
    }
  }

  /** A string literal of UTF-8 text, the same as `jsonString` makes of it. */
  string(utf8: Uint8Array): void {
    const out = this.#withRoom(2 * utf8.length + 2);
    let at = this.length;
    out[at++] = 34;
    for (let i = 0; i < utf8.length; i++) {
      const c = utf8[i]!;
      if (c > 34 ? c !== 92 && c < 128 : c !== 34 && c > 31) {
        out[at++] = c;
        continue;
      }
      const escape = ESCAPES[c]!;
      if (escape === FOREIGN) return this.text(jsonString(decodeText(utf8)));
      else {
        out[at++] = 92;
        out[at++] = escape;
      }
    }
    out[at++] = 34;
    this.length = at;
  }

  /** An integer in decimal. */
  number(value: number): void {
    if (value < 0 || value > Number.MAX_SAFE_INTEGER) return this.text(String(value));
    if (value < BILLION) {
      let count = 1;
      for (let power = 10; power <= value; power *= 10) count++;
      return this.digits(value, count);
    }
    const high = Math.floor(value / BILLION);
    this.number(high);
    this.digits(value - high * BILLION, 9);
  }

  /** The last `count` digits of an integer below a billion. */
  digits(value: number, count: number): void {
    const out = this.#withRoom(count);
    let rest = value | 0;
    for (let at = this.length + count; --at >= this.length;) {
      const tenth = (rest / 10) | 0;
      out[at] = 48 + rest - tenth * 10;
      rest = tenth;
    }
    this.length += count;
  }

  /**
   * A stretch of bytes as Base64, without quotes. Padded where its length is no multiple of three: as part of a whole
   * only the last one may be such.
   */
  base64(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const out = this.#withRoom(Math.ceil((to - from) / 3) * 4);
    let at = this.length;
    for (let i = from; i < to; i += 3) {
      const group = (bytes[i]! << 16) | (i + 1 < to ? bytes[i + 1]! << 8 : 0) | (i + 2 < to ? bytes[i + 2]! : 0);
      out[at++] = BASE64[group >> 18]!;
      out[at++] = BASE64[(group >> 12) & 63]!;
      out[at++] = i + 1 < to ? BASE64[(group >> 6) & 63]! : PADDING;
      out[at++] = i + 2 < to ? BASE64[group & 63]! : PADDING;
    }
    this.length = at;
  }

  /** All that was written; what follows begins anew. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.slice(0, this.length);
    this.length = 0;
    if (this.#bytes.length > KEPT_BYTES_MAX) this.#bytes = new Uint8Array(FIRST_BYTES);
    return taken;
  }

  #withRoom(count: number): Uint8Array<ArrayBuffer> {
    const needed = this.length + count;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.length));
      this.#bytes = larger;
    }
    return this.#bytes;
  }
}

const shared = new JsonBytes();

/** The bytes that a function writes. It must write all of them at once, and not call this itself. */
export function written(write: (out: JsonBytes) => void): Uint8Array<ArrayBuffer> {
  shared.length = 0;
  write(shared);
  return shared.take();
}
