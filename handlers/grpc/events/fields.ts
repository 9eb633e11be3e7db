import { encodeText } from '../../../core/base/text.ts';
import { putVarint, varintLength } from './varint.ts';

/** Fields that are kept made, of each kind, and characters of the longest text of one. */
const FIELDS_MAX = 1_024;
const KEPT_LENGTH_MAX = 256;

/**
 * Fields that hold nothing but a text, as bytes: names of streams and types of events repeat, and encoding one takes
 * longer than copying it. What is kept depends on the texts alone, so it belongs to no call.
 */
class Fields {
  readonly #make: (text: Uint8Array) => Uint8Array;
  readonly #made = new Map<string, Uint8Array>();
  #lastText: string | null = null;
  #last: Uint8Array = new Uint8Array(0);

  constructor(make: (text: Uint8Array) => Uint8Array) {
    this.#make = make;
  }

  of(text: string): Uint8Array {
    if (text === this.#lastText) return this.#last;
    let field = this.#made.get(text);
    if (field === undefined) {
      field = this.#make(encodeText(text));
      if (text.length > KEPT_LENGTH_MAX) return field;
      if (this.#made.size >= FIELDS_MAX) this.#made.clear();
      this.#made.set(text, field);
    }
    this.#lastText = text;
    this.#last = field;
    return field;
  }
}

/** A field of this number with these bytes. */
function field(number: number, bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(1 + varintLength(bytes.length) + bytes.length);
  out[0] = (number << 3) | 2;
  out.set(bytes, putVarint(out, 1, bytes.length));
  return out;
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Of `RecordedEvent`. */
const STREAM_IDENTIFIER = 2;
const METADATA = 6;

function entry(key: string, value: Uint8Array): Uint8Array {
  return field(METADATA, joined(field(1, encodeText(key)), field(2, value)));
}

/** `stream_identifier` by the name. */
export const streamFields = new Fields((name) => field(STREAM_IDENTIFIER, field(3, name)));
/** The entry of `metadata` that has the type. */
export const typeFields = new Fields((type) => entry('type', type));

export const JSON_FIELD = entry('content-type', encodeText('application/json'));
export const BINARY_FIELD = entry('content-type', encodeText('application/octet-stream'));

/** The entry of `metadata` with the time, as far as the digits. */
const CREATED = entry('created', new Uint8Array(17));
const CREATED_HEAD = CREATED.subarray(0, CREATED.length - 17);
/** From 2001 to 2286 the time in milliseconds has 13 digits, and 4 more are those of the 100 ns. */
const MS_MIN = 1_000_000_000_000;
const MS_END = 10_000_000_000_000;
const TEN_TO_7 = 10_000_000;

/** Bytes of the entry of `metadata` that has the time of an event. */
export function createdLength(ms: number, ticks: number): number {
  return ms >= MS_MIN && ms < MS_END ? CREATED.length : entry('created', encodeText(ticksText(ms, ticks))).length;
}

/** Writes it: the count of 100 ns since 1970, which is no number that we could calculate with. */
export function putCreated(out: Uint8Array, at: number, ms: number, ticks: number): number {
  if (ms < MS_MIN || ms >= MS_END) {
    const made = entry('created', encodeText(ticksText(ms, ticks)));
    out.set(made, at);
    return at + made.length;
  }
  for (let i = 0; i < CREATED_HEAD.length; i++) out[at + i] = CREATED_HEAD[i]!;
  const digits = at + CREATED_HEAD.length;
  const high = Math.floor(ms / TEN_TO_7);
  putDigits(out, digits, 6, high);
  putDigits(out, digits + 6, 7, ms - high * TEN_TO_7);
  putDigits(out, digits + 13, 4, ticks);
  return digits + 17;
}

function putDigits(out: Uint8Array, at: number, count: number, value: number): void {
  let rest = value | 0;
  for (let i = at + count - 1; i >= at; i--) {
    const above = (rest / 10) | 0;
    out[i] = 48 + rest - above * 10;
    rest = above;
  }
}

/** The same for any time: `ms` may be negative, `ticks` (0 to 9999) never is. */
function ticksText(ms: number, ticks: number): string {
  if (ms > 0) return `${ms}${String(ticks).padStart(4, '0')}`;
  if (ms === 0) return String(ticks);
  const rest = ticks === 0 ? 0 : 10_000 - ticks;
  const whole = ticks === 0 ? -ms : -ms - 1;
  return `-${whole === 0 ? String(rest) : `${whole}${String(rest).padStart(4, '0')}`}`;
}
