import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { guidToText } from '../../core/base/guid.ts';
import { decodeMark, encodeMark } from '../../core/streams/format/marks.ts';
import { decodeMarks, encodeMarks } from '../../core/streams/format/marks-table.ts';
import { ALL_MARKS, Redactions } from '../../core/streams/redactions/redactions.ts';
import { nodeDigests } from '../../infra/node-digests.ts';

/** The marks in memory, beside a list of them. */

const idOf = (n: number): string =>
  guidToText(
    Uint8Array.from({ length: 16 }, (_, i) => (i === 3 ? n : 7)),
    0,
  );

/** Few positions and ids, so that they meet. */
const place = fc.record({ position: fc.integer({ min: 0, max: 40 }), id: fc.integer({ min: 0, max: 2 }).map(idOf) });
const step = fc.oneof(
  fc.record({ kind: fc.constant('add'), at: place, markedAt: fc.integer({ min: -1, max: 99 }) }),
  fc.record({ kind: fc.constant('ask'), at: place, markedAt: fc.constant(0) }),
);

test('say of each event whether it has a mark, in whatever order marks and questions come', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const marks = new Redactions();
      const list: { position: number; id: string; markedAt: number }[] = [];
      for (const { kind, at, markedAt } of steps) {
        if (kind === 'add') {
          marks.add({ ...at, keys: [] }, markedAt);
          list.push({ ...at, markedAt });
        } else {
          expect(marks.isClear(at.position)).toBe(!list.some(({ position }) => position === at.position));
          expect(marks.has(at.position, at.id)).toBe(
            list.some(({ position, id }) => position === at.position && id === at.id),
          );
        }
      }
      expect(marks.count).toBe(list.length);
      const { positions, markedAt, ids } = marks.columns(5, 30, 50);
      const given = [...positions].map((position, i) => `${position} ${markedAt[i]} ${guidToText(ids, i * 16)}`);
      const wanted = list
        .filter((one) => one.position >= 5 && one.position < 30 && one.markedAt >= 0 && one.markedAt < 50)
        .map((one) => `${one.position} ${one.markedAt} ${one.id}`);
      expect(given.toSorted()).toEqual(wanted.toSorted());
    }),
    { seed: 43, numRuns: 400 },
  );
});

test('a table holds them all, and is not read where a byte of it has changed', () => {
  const marks = new Redactions();
  for (let n = 0; n < 200; n++)
    marks.add({ position: 9_000 - n * 31, id: idOf(n), keys: n % 50 === 0 ? ['$a', '$b'] : [] }, n);
  const columns = marks.columns(...ALL_MARKS);
  const bytes = encodeMarks(columns, nodeDigests);
  expect(decodeMarks('t', bytes, nodeDigests)).toEqual(columns);
  for (let at = 0; at < bytes.length; at += 7) {
    const changed = bytes.slice();
    changed[at]! ^= 4;
    expect(() => decodeMarks('t', changed, nodeDigests)).toThrow(/redactions t/);
  }
  for (const length of [0, 10, 19, bytes.length - 1])
    expect(() => decodeMarks('t', bytes.slice(0, length), nodeDigests)).toThrow(/redactions t/);
});

test('what is no mark has no effect', () => {
  const mark = { stream: 's', number: 3, id: idOf(1), position: 77, by: 'ann', reason: 'card', keys: ['$x'] };
  expect(decodeMark(encodeMark(mark))).toEqual(mark);
  expect(decodeMark(encodeMark({ ...mark, keys: [] }))).toEqual({ ...mark, keys: [] });
  for (const wrong of [
    { number: -1 },
    { id: 'none' },
    { position: 1.5 },
    { reason: 'x'.repeat(1_001) },
    { keys: ['x'] },
    { keys: Array.from({ length: 9 }, () => '$x') },
  ])
    expect(decodeMark(encodeMark({ ...mark, ...wrong }))).toBe(null);
  for (const text of ['', 'null', '3', '{}', '{"stream":"s"']) expect(decodeMark(Buffer.from(text))).toBe(null);
});
