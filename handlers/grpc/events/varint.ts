import { TOMBSTONE } from '../../../core/log/format/records.ts';
import { ALL_ONES } from '../messages/wire.ts';

/**
 * Numbers as protocol buffers have them, written straight into bytes. `out` has room for what is written; the functions
 * return where they ended.
 */

const TWO_TO_28 = 0x1000_0000;
const ALL_ONES_BYTES = 10;
const TOMBSTONE_BYTES = 9;

/** Bytes of an unsigned number of 64 bits; ALL_ONES and TOMBSTONE as `wire.ts` has them. */
export function varintLength(value: number): number {
  if (value < 0x80) return value === ALL_ONES ? ALL_ONES_BYTES : 1;
  if (value === TOMBSTONE) return TOMBSTONE_BYTES;
  let length = 1;
  let rest = value;
  for (; rest >= TWO_TO_28; rest = Math.floor(rest / TWO_TO_28)) length += 4;
  for (; rest >= 0x80; rest >>>= 7) length++;
  return length;
}

export function putVarint(out: Uint8Array, from: number, value: number): number {
  let at = from;
  if (value < 0x80) {
    if (value === ALL_ONES) return putSpecial(out, at, ALL_ONES_BYTES, 1);
    out[at] = value;
    return at + 1;
  }
  if (value === TOMBSTONE) return putSpecial(out, at, TOMBSTONE_BYTES, 0x7f);
  let rest = value;
  while (rest >= TWO_TO_28) {
    const above = Math.floor(rest / TWO_TO_28);
    const low = rest - above * TWO_TO_28;
    out[at] = low | 0x80;
    out[at + 1] = (low >>> 7) | 0x80;
    out[at + 2] = (low >>> 14) | 0x80;
    out[at + 3] = (low >>> 21) | 0x80;
    at += 4;
    rest = above;
  }
  for (; rest >= 0x80; rest >>>= 7) out[at++] = rest | 0x80;
  out[at] = rest;
  return at + 1;
}

/** So many bytes of all ones, of which the last one has these. */
function putSpecial(out: Uint8Array, at: number, length: number, last: number): number {
  out.fill(0xff, at, at + length - 1);
  out[at + length - 1] = last;
  return at + length;
}

/** Bytes of a number of 64 bits given as two halves. */
export function halvesLength(high: number, low: number): number {
  let length = 1;
  let top = high >>> 0;
  let rest = low >>> 0;
  for (; top !== 0 || rest >= 0x80; top >>>= 7) {
    rest = ((rest >>> 7) | (top << 25)) >>> 0;
    length++;
  }
  return length;
}

export function putHalves(out: Uint8Array, from: number, high: number, low: number): number {
  let at = from;
  let top = high >>> 0;
  let rest = low >>> 0;
  for (; top !== 0 || rest >= 0x80; top >>>= 7) {
    out[at++] = rest | 0x80;
    rest = ((rest >>> 7) | (top << 25)) >>> 0;
  }
  out[at] = rest;
  return at + 1;
}
