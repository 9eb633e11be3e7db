import { describe, expect, test } from 'vitest';
import {
  Carry,
  COMMIT_HEADER_BYTES,
  decodeCommitObject,
  encodeCommit,
} from '../../core/shared-log/format/commit-object.ts';
import type { Commit } from '../../core/shared-log/format/commit-object.ts';
import {
  commitKey,
  commitNumberOf,
  manifestKey,
  manifestNumberOf,
  newFileKey,
} from '../../core/shared-log/format/object-keys.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';

const random = new Random(7);

function commit(number: number, bytes = 100): Commit {
  const start = number * 1_000_000_000_000;
  return {
    number,
    writer: random.bytes(16),
    nonce: random.bytes(16),
    start,
    end: start + bytes,
    endsChunk: number % 2 === 0,
    hasMarks: false,
    records: random.bytes(bytes),
  };
}

const alone = (one: Commit) => encodeCommit(one, [], nodeDigests);
const decode = (number: number, bytes: Uint8Array) => decodeCommitObject(commitKey(number), number, bytes, nodeDigests);

describe('the bytes of a commit object', () => {
  test('give back the commit and those it carries', () => {
    const [third, second, first] = [commit(3), commit(2, 0), commit(1)];
    const bytes = encodeCommit(third!, [alone(second!), alone(first!)], nodeDigests);
    expect(decode(3, bytes)).toEqual({ commit: third, carried: [second, first] });
  });

  test('have their fields where the layout says', () => {
    const bytes = encodeCommit(
      {
        number: 0x0102,
        writer: new Uint8Array(16).fill(0xaa),
        nonce: new Uint8Array(16).fill(0xbb),
        start: 0x0304,
        end: 0x0306,
        endsChunk: true,
        hasMarks: false,
        records: Uint8Array.of(1, 2),
      },
      [],
      nodeDigests,
    );
    expect(Buffer.from(bytes).toString('hex')).toBe(
      '536b75614c6f6743' +
        '0100' +
        '0100' +
        '00000000' +
        '0201000000000000' +
        'aa'.repeat(16) +
        'bb'.repeat(16) +
        '0403000000000000' +
        '0603000000000000' +
        Buffer.from(Uint32Array.of(nodeDigests.crc32(Uint8Array.of(1, 2))).buffer).toString('hex') +
        Buffer.from(Uint32Array.of(nodeDigests.crc32(bytes.subarray(0, 76))).buffer).toString('hex') +
        '0102',
    );
  });

  test('no changed byte and no cut goes unnoticed', () => {
    const bytes = encodeCommit(commit(3, 40), [alone(commit(2, 30))], nodeDigests);
    for (let at = 0; at < bytes.length; at++) {
      const changed = bytes.slice();
      changed[at]! ^= 1 << (at % 8);
      expect(() => decode(3, changed), `byte ${at}`).toThrow(
        expect.objectContaining({
          code: 'log_corrupt',
          data: expect.objectContaining({ key: commitKey(3) }) as unknown,
        }),
      );
    }
    for (let length = 0; length < bytes.length; length++)
      expect(() => decode(3, bytes.subarray(0, length))).toThrow(expect.objectContaining({ code: 'log_corrupt' }));
    const longer = new Uint8Array(bytes.length + 1);
    longer.set(bytes);
    expect(() => decode(3, longer)).toThrow(/1 extra bytes/);
  });

  test('say which commit they are, and carry none but those directly before it', () => {
    expect(() => decode(4, alone(commit(3)))).toThrow(/names commit 3 where 4 must be/);
    expect(() => decode(3, encodeCommit(commit(3), [alone(commit(1))], nodeDigests))).toThrow(
      expect.objectContaining({ code: 'log_corrupt', data: { key: commitKey(3), offset: COMMIT_HEADER_BYTES + 100 } }),
    );
    expect(() =>
      decode(3, encodeCommit(commit(3), [encodeCommit(commit(2), [alone(commit(1))], nodeDigests)], nodeDigests)),
    ).toThrow(/carries a commit that carries others/);
  });
});

describe('what a commit carries', () => {
  test('goes back to the last multiple of 128, newest first', () => {
    const carry = new Carry();
    for (let number = 1; number <= 300; number++) {
      carry.add(number, Uint8Array.of(number % 256));
      const firsts = carry.before(number + 1).map(([first]) => first);
      const from = Math.max(1, Math.floor(number / 128) * 128);
      expect(firsts).toEqual(Array.from({ length: number + 1 - from }, (_, i) => (number - i) % 256));
    }
  });

  test('fits into 64 KiB, and has no gap', () => {
    const carry = new Carry();
    for (let number = 1; number <= 10; number++) carry.add(number, new Uint8Array(20_000));
    expect(carry.before(11)).toHaveLength(3);
    carry.add(11, new Uint8Array(70_000));
    expect(carry.before(12)).toEqual([]);
    carry.add(12, new Uint8Array(10));
    carry.add(14, new Uint8Array(20));
    expect(carry.before(15).map(({ length }) => length)).toEqual([20]);
    expect(carry.before(14)).toEqual([]);
  });
});

describe('keys', () => {
  test('of commits ascend, those of manifests descend, and both give their numbers back', () => {
    const numbers = [1, 9, 10, 99, 1_000, 123_456_789, 999_999_999_998];
    expect(numbers.map(commitKey).sort()).toEqual(numbers.map(commitKey));
    expect(numbers.map(manifestKey).sort()).toEqual(numbers.map(manifestKey).toReversed());
    expect(numbers.map((number) => commitNumberOf(commitKey(number)))).toEqual(numbers);
    expect(numbers.map((number) => manifestNumberOf(manifestKey(number)))).toEqual(numbers);
    expect(commitKey(7)).toBe('log/00000000000000000007');
    expect(manifestKey(1)).toBe('manifest/999999999999998');
  });

  test('of something else are none', () => {
    for (const key of [
      'log/7',
      'log/0000000000000000000x',
      'log/00000000000000000007/a',
      'logs/0000000000000000007',
      'log/99999999999999999999',
    ])
      expect(commitNumberOf(key), key).toBeNull();
    expect(manifestNumberOf('log/00000000000000000007')).toBeNull();
    expect(newFileKey(new SeededIds(1))).toMatch(/^files\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });
});
