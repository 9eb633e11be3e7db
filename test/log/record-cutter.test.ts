import { expect, test } from 'vitest';
import { RecordCutter } from '../../core/log/format/record-cutter.ts';
import { FRAME_BYTES } from '../../core/log/format/records.ts';
import { putI32, putI64 } from '../../core/base/bytes.ts';
import { Random } from '../support/random.ts';

const START = 1_000;

/** Records of random lengths, one behind the other, as they lie in the log. */
function log(random: Random, count: number): { bytes: Uint8Array; positions: number[] } {
  const parts: Uint8Array[] = [];
  const positions: number[] = [];
  let position = START;
  for (let i = 0; i < count; i++) {
    const length = random.int(10, random.chance(0.1) ? 900 : 60);
    const record = random.bytes(length + FRAME_BYTES);
    putI32(record, 0, length);
    putI64(record, 6, position);
    putI32(record, 4 + length, length);
    parts.push(record);
    positions.push(position);
    position += record.length;
  }
  return { bytes: new Uint8Array(Buffer.concat(parts)), positions };
}

const failed = (at: number, what: string): Error => new Error(`${what} at ${at}`);

/** Positions of the records, and their bytes put together. */
function cut(
  bytes: Uint8Array,
  cutter: RecordCutter,
  pieceBytes: () => number,
): { positions: number[]; joined: Uint8Array } {
  const positions: number[] = [];
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const piece = bytes.slice(at, at + pieceBytes());
    at += piece.length;
    cutter.take(piece);
    while (cutter.next()) {
      const { frame } = cutter;
      positions.push(frame.position);
      parts.push(frame.bytes.slice(frame.at - 4, frame.at + frame.length + 4));
    }
    // The piece may be used again.
    piece.fill(255);
  }
  cutter.finish();
  return { positions, joined: Buffer.concat(parts) };
}

test('however the pieces lie, the same records come out', () => {
  const random = new Random(7);
  for (let round = 0; round < 200; round++) {
    const { bytes, positions } = log(random, random.int(1, 40));
    const largest = random.pick([1, 2, 3, 5, 40, 200, 5_000]);
    const cutter = new RecordCutter({
      position: random.chance(0.5) ? START : -1,
      bytes: bytes.length,
      between: [START, START + bytes.length],
      fail: failed,
    });
    const found = cut(bytes, cutter, () => random.int(1, largest));
    expect(found.positions).toEqual(positions);
    expect(Buffer.compare(found.joined, bytes)).toBe(0);
    expect(cutter.passedBytes).toBe(bytes.length);
  }
});

test('what is no record fails where it begins, as the caller says it', () => {
  const random = new Random(8);
  const { bytes, positions } = log(random, 3);
  const second = positions[1]! - START;
  const tried =
    (change: (copy: Uint8Array) => Uint8Array, stretch: { bytes?: number; between?: [number, number] } = {}) =>
    () => {
      const copy = change(bytes.slice());
      cut(copy, new RecordCutter({ position: START, fail: failed, ...stretch }), () => 7);
    };
  expect(tried((copy) => copy)).not.toThrow();
  for (const length of [0, -1, 2_000_000_000])
    expect(tried((copy) => (putI32(copy, second, length), copy))).toThrow(`a record length of ${length} at ${second}`);
  expect(tried((copy) => (putI64(copy, second + 6, 5), copy))).toThrow(`a record that names position 5 at ${second}`);
  expect(tried((copy) => ((copy[positions[2]! - START - 1]! ^= 1), copy))).toThrow(
    `a record whose two lengths differ at ${second}`,
  );
  expect(tried((copy) => copy.subarray(0, copy.length - 1))).toThrow('a record that reaches beyond the data');
  expect(tried((copy) => copy.subarray(0, second + 3))).toThrow(`a record that reaches beyond the data at ${second}`);
  expect(tried((copy) => copy, { bytes: bytes.length - 1 })).toThrow('a record length of');
  expect(tried((copy) => copy, { between: [START, START + second] })).toThrow(
    `a record that names position ${START + second} at ${second}`,
  );
});
