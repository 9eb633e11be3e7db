import { putVarint } from '../events/varint.ts';
import { PREFIX_BYTES } from '../messages/wire.ts';

/**
 * The answer to an append that was written, put together by hand: each append has one, and the generated writer makes
 * an object of every number.
 */

/** Bytes that one answer takes at most, with its prefix. */
const ANSWER_BYTES_MAX = 48;
/**
 * Answers are written one behind the other into arrays of so many bytes: an array of its own would cost more than the
 * rest.
 */
const SLAB_BYTES = 8_192;

let slab = new Uint8Array(0);
let used = 0;

/** An AppendResp with its prefix. `revision` is negative for a stream without events. */
export function appendedFrame(revision: number, position: number): Uint8Array {
  if (used + ANSWER_BYTES_MAX > slab.length) {
    slab = new Uint8Array(SLAB_BYTES);
    used = 0;
  }
  const start = used;
  const body = start + PREFIX_BYTES;
  slab[body] = 10;
  used = putSuccess(slab, body + 1, revision, position);
  // What was there before is zero: not compressed, and the upper bytes of the length.
  slab[body - 1] = used - body;
  return slab.subarray(start, used);
}

/**
 * What an append has come to, as both kinds of answers have it, behind the byte of its length; returns where it ends.
 * It is shorter than 128 bytes.
 */
export function putSuccess(b: Uint8Array, from: number, revision: number, position: number): number {
  let at = from + 1;
  if (revision < 0) {
    b[at++] = 18;
    b[at++] = 0;
  } else {
    b[at++] = 8;
    at = putVarint(b, at, revision);
  }
  b[at++] = 26;
  const place = at++;
  if (position > 0) {
    b[at++] = 8;
    at = putVarint(b, at, position);
    b[at++] = 16;
    at = putVarint(b, at, position);
  }
  b[place] = at - place - 1;
  b[from] = at - from - 1;
  return at;
}
