import { putI32 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { guidFromText, guidFromUuidBytes } from '../../base/guid.ts';
import { Hash64, type StreamHasher } from '../../base/stream-hash.ts';
import { encodeText } from '../../base/text.ts';

/** Shorter names occur anywhere by chance, and are only looked for where a record names its stream. */
const FREE_NAME_BYTES_MIN = 4;
/** A hash that SQLite could store in fewer bytes (one in 30 000) is found by its fixed form only. */
const HASH_BYTES_MIN = 8;
/** Events looked for at once. */
const EVENTS_MAX = 1_000;

/** Bytes to look for, and what finding them means. */
export type Needle =
  /** An event's id. */
  | { readonly kind: 'id'; readonly bytes: Uint8Array; readonly id: string; readonly form: 'binary' | 'text' }
  /**
   * The stream's name, `skip` bytes behind the start of the match. `isFree`: it may be found outside of a record's
   * stream field, too.
   */
  | { readonly kind: 'name'; readonly bytes: Uint8Array; readonly skip: number; readonly isFree: boolean }
  /** The hash of the stream or of its metastream, as index tables hold it, or as the scavenge database does. */
  | { readonly kind: 'table-hash' | 'database-hash'; readonly bytes: Uint8Array; readonly ofMetastream: boolean };

/** Throws `bad_option` for a text that is no id, or too many of them. */
export function idNeedles(ids: readonly string[]): Needle[] {
  if (ids.length > EVENTS_MAX)
    throw new SkuaError('bad_option', `${ids.length} events are too many for one search: name at most ${EVENTS_MAX}.`, {
      limit: EVENTS_MAX,
    });
  const needles: Needle[] = [];
  for (const given of new Set(ids.map((id) => id.toLowerCase()))) {
    const stored = new Uint8Array(16);
    if (!guidFromText(given, stored, 0))
      throw new SkuaError(
        'bad_option',
        `"${given}" is not an event id: give it as xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.`,
        { value: given },
      );
    // Turning the groups round is its own inverse: from the stored order it leads to that of the text.
    const textual = guidFromUuidBytes(stored);
    needles.push({ kind: 'id', bytes: stored, id: given, form: 'binary' });
    if (textual.some((byte, i) => byte !== stored[i]))
      needles.push({ kind: 'id', bytes: textual, id: given, form: 'binary' });
    needles.push({ kind: 'id', bytes: encodeText(given), id: given, form: 'text' });
    const upper = given.toUpperCase();
    if (upper !== given) needles.push({ kind: 'id', bytes: encodeText(upper), id: given, form: 'text' });
    needles.push({ kind: 'id', bytes: encodeText(given.replaceAll('-', '')), id: given, form: 'text' });
  }
  return needles;
}

export function streamNeedles(name: string, hasher: StreamHasher): Needle[] {
  const bytes = encodeText(name);
  const needles: Needle[] =
    bytes.length >= FREE_NAME_BYTES_MIN
      ? [{ kind: 'name', bytes, skip: 0, isFree: true }]
      : [prefixedName(bytes, ''), prefixedName(bytes, '$$')];
  const hash = new Hash64();
  for (const ofMetastream of [false, true]) {
    hasher.hash(ofMetastream ? `$$${name}` : name, hash);
    needles.push({ kind: 'table-hash', bytes: tableBytes(hash), ofMetastream });
    needles.push({ kind: 'database-hash', bytes: integerBytes(hash), ofMetastream });
    const rowid = rowidBytes(hash);
    if (rowid.length >= HASH_BYTES_MIN) needles.push({ kind: 'database-hash', bytes: rowid, ofMetastream });
  }
  return needles;
}

function prefixedName(name: Uint8Array, sigil: string): Needle {
  const before = encodeText(sigil);
  const length = textLength(before.length + name.length);
  return {
    kind: 'name',
    bytes: Uint8Array.from([...length, ...before, ...name]),
    skip: length.length + before.length,
    isFree: false,
  };
}

/** The length that stands before a text in a record. */
export function textLength(length: number): Uint8Array {
  const out: number[] = [];
  for (let rest = length; ; rest >>>= 7) {
    if (rest < 128) {
      out.push(rest);
      return Uint8Array.from(out);
    }
    out.push((rest & 127) | 128);
  }
}

/** As index entries hold it: 64 bits, little-endian. */
function tableBytes({ hi, lo }: Hash64): Uint8Array {
  const out = new Uint8Array(8);
  putI32(out, 0, lo | 0);
  putI32(out, 4, hi | 0);
  return out;
}

/** As an SQLite column holds it: 64 bits, big-endian. */
function integerBytes(hash: Hash64): Uint8Array {
  return tableBytes(hash).toReversed();
}

/**
 * As an SQLite rowid: seven bits a byte from the top, a ninth byte of eight bits; shorter for a hash below 2^56, which
 * one in 256 is.
 */
function rowidBytes({ hi, lo }: Hash64): Uint8Array {
  let value = (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0);
  const out: number[] = [];
  if (value >> 56n !== 0n) {
    out.push(Number(value & 255n));
    value >>= 8n;
    for (let i = 0; i < 8; i++, value >>= 7n) out.push(Number(value & 127n) | 128);
  } else {
    do {
      out.push(Number(value & 127n) | (out.length === 0 ? 0 : 128));
      value >>= 7n;
    } while (value > 0n);
  }
  return Uint8Array.from(out.reverse());
}

/** The serial type that announces a text of this length in an SQLite row. */
export function sqliteTextType(length: number): Uint8Array {
  let value = 13 + 2 * length;
  const out: number[] = [value & 127];
  for (value >>>= 7; value > 0; value >>>= 7) out.push((value & 127) | 128);
  return Uint8Array.from(out.reverse());
}

/** Longest jump, which a byte holds. */
const JUMP_MAX = 255;
const PAIRS = 65_536;

/**
 * Finds all occurrences of several byte patterns in one pass (Wu and Manber's algorithm): the last two bytes of a
 * window as long as the shortest pattern say how far the next possible match is away, so that most bytes are never
 * looked at. Patterns have two bytes at least.
 */
export class PatternSearch {
  readonly #patterns: readonly Uint8Array[];
  readonly #window: number;
  readonly #jumps = new Uint8Array(PAIRS);
  /** For a pair that may end a window: one more than the first pattern, and for each pattern the next one. */
  readonly #first = new Int32Array(PAIRS);
  readonly #next: Int32Array;

  constructor(patterns: readonly Uint8Array[]) {
    this.#patterns = patterns;
    this.#window = Math.min(JUMP_MAX + 1, ...patterns.map((pattern) => pattern.length));
    this.#next = new Int32Array(patterns.length);
    this.#jumps.fill(Math.max(1, this.#window - 1));
    patterns.forEach((pattern, index) => this.#enter(pattern, index));
  }

  #enter(pattern: Uint8Array, index: number): void {
    const last = this.#window - 1;
    for (let end = 1; end <= last; end++) {
      const pair = pattern[end - 1]! | (pattern[end]! << 8);
      this.#jumps[pair] = Math.min(this.#jumps[pair]!, last - end);
    }
    const pair = pattern[last - 1]! | (pattern[last]! << 8);
    this.#next[index] = this.#first[pair]!;
    this.#first[pair] = index + 1;
  }

  /** Calls `found` for every pattern that lies whole in `bytes` and starts before `end`, by ascending offset. */
  each(bytes: Uint8Array, end: number, found: (pattern: number, offset: number) => void): void {
    if (this.#patterns.length === 0) return;
    const jumps = this.#jumps;
    const last = this.#window - 1;
    const stop = Math.min(bytes.length, end + last);
    for (let at = last; at < stop;) {
      const pair = bytes[at - 1]! | (bytes[at]! << 8);
      const jump = jumps[pair]!;
      if (jump > 0) {
        at += jump;
        continue;
      }
      for (let index = this.#first[pair]!; index > 0; index = this.#next[index - 1]!) {
        if (startsAt(bytes, at - last, this.#patterns[index - 1]!)) found(index - 1, at - last);
      }
      at++;
    }
  }
}

function startsAt(bytes: Uint8Array, offset: number, pattern: Uint8Array): boolean {
  if (offset + pattern.length > bytes.length) return false;
  for (let i = 0; i < pattern.length; i++) if (bytes[offset + i] !== pattern[i]) return false;
  return true;
}
