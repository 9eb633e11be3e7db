import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { guidToText } from '../../core/base/guid.ts';
import { decodeMark, encodeMark } from '../../core/streams/format/marks.ts';
import { decodeMarks, encodeMarks } from '../../core/streams/format/marks-table.ts';
import { ALL_MARKS, namesIn } from '../../core/streams/format/mark-columns.ts';
import { Redactions } from '../../core/streams/redactions/redactions.ts';
import { nodeDigests } from '../../infra/node-digests.ts';

/** The marks in memory, beside a list of them. */

const idOf = (n: number): string =>
  guidToText(
    Uint8Array.from({ length: 16 }, (_, i) => (i === 3 ? n : 7)),
    0,
  );

/** Few positions, ids and names, so that they meet. */
const step = fc.record({
  kind: fc.constantFrom('add', 'add', 'ask', 'order'),
  position: fc.integer({ min: 0, max: 40 }),
  id: fc.integer({ min: 0, max: 2 }).map(idOf),
  keys: fc.subarray(['$a', '$b', '$c']),
  markedAt: fc.integer({ min: -1, max: 99 }),
});

interface Known {
  readonly position: number;
  readonly id: string;
  markedAt: number;
  readonly names: Map<string, number>;
}

const first = (one: number, two: number) => (one < 0 ? two : two < 0 ? one : Math.min(one, two));

function columnsOf(marks: Redactions, ...range: Parameters<Redactions['columns']>): string[] {
  const columns = marks.columns(...range);
  const names = namesIn(columns);
  expect([...columns.positions]).toEqual([...columns.positions].toSorted((a, b) => a - b));
  return [...columns.positions].map((position, i) => {
    const id = guidToText(columns.ids, i * 16);
    return `${position} ${columns.markedAt[i]} ${id} ${(names.get(i) ?? []).toSorted().join()}`;
  });
}

test('say of each event whether it has a mark, and count it once, in whatever order marks and questions come', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const marks = new Redactions();
      const model = new Map<string, Known>();
      for (const { kind, position, id, keys, markedAt } of steps) {
        const known = model.get(`${position} ${id}`);
        if (kind === 'add') {
          marks.add({ position, id, keys }, markedAt);
          const one = known ?? { position, id, markedAt: -1, names: new Map<string, number>() };
          one.markedAt = first(one.markedAt, markedAt);
          for (const name of keys) one.names.set(name, first(one.names.get(name) ?? -1, markedAt));
          model.set(`${position} ${id}`, one);
        } else if (kind === 'order') {
          marks.putInOrder();
        } else {
          expect(marks.isClear(position)).toBe(![...model.values()].some((one) => one.position === position));
          expect(marks.has(position, id)).toBe(known !== undefined);
        }
      }
      const all = [...model.values()];
      expect(marks.count).toBe(all.length);
      expect(marks.version).toBe(all.reduce((sum, { names }) => sum + 1 + names.size, 0));
      const isIn = (at: number) => at >= 0 && at < 50;
      const wanted = all
        .filter((one) => one.position >= 5 && one.position < 30 && isIn(one.markedAt))
        .map(({ position, markedAt, id, names }) => {
          const named = [...names].filter(([, at]) => isIn(at)).map(([name]) => name);
          return `${position} ${markedAt} ${id} ${named.toSorted().join()}`;
        });
      expect(columnsOf(marks, 5, 30, 50).toSorted()).toEqual(wanted.toSorted());
      const again = new Redactions();
      for (let times = 0; times < 2; times++) again.addAll(marks.columns(...ALL_MARKS));
      expect(columnsOf(again, ...ALL_MARKS).toSorted()).toEqual(columnsOf(marks, ...ALL_MARKS).toSorted());
    }),
    { seed: 43, numRuns: 250 },
  );
});

test('many are copied in turns, and what comes meanwhile leaves the copy whole', async () => {
  const marks = new Redactions();
  const add = (n: number) => marks.add({ position: ((n * 7_919) % 60_000) * 10, id: idOf(n % 250), keys: ['$a'] }, n);
  for (let n = 0; n < 20_000; n++) add(n);
  const before = marks.columns(...ALL_MARKS);
  let turns = 0;
  const copied = await marks.columnsInTurns(ALL_MARKS, {
    yield: async () => {
      turns++;
      for (let n = 0; n < 3_000; n++) add(40_000 * turns + n);
      marks.putInOrder();
    },
  });
  expect(turns).toBe(1);
  expect(copied.positions).toEqual(before.positions);
  expect(copied.ids).toEqual(before.ids);
  expect(copied.keys).toHaveLength(before.keys.length);
});

test('no mark is passed over, wherever and however many they lie', () => {
  const marks = new Redactions();
  const positionOf = (n: number) => (n % 2 === 0 ? n * 317 : 2 ** 40 + n * 4_294_967_296 + n);
  for (let n = 0; n < 5_000; n++) {
    marks.add({ position: positionOf(n), id: idOf(n % 250), keys: [] }, n);
    expect(marks.isClear(positionOf((n * 31) % (n + 1)))).toBe(false);
  }
  let clear = 0;
  for (let n = 0; n < 5_000; n++) if (marks.isClear(positionOf(n) + 1)) clear++;
  expect(clear).toBe(5_000);
});

test('marks that were known from elsewhere are those of the log once they are in it', () => {
  const marks = new Redactions();
  marks.add({ position: 700, id: idOf(1), keys: ['$a'] }, -1);
  expect(marks).toMatchObject({ count: 1, version: 2 });
  expect(marks.columns(...ALL_MARKS).positions).toHaveLength(0);
  marks.add({ position: 700, id: idOf(1), keys: ['$a'] }, 900);
  expect(marks).toMatchObject({ count: 1, version: 2 });
  expect(columnsOf(marks, ...ALL_MARKS)).toEqual([`700 900 ${idOf(1)} $a`]);
});

test('a table of version 1, which has names by position, hides them of whatever event is there', () => {
  const marks = new Redactions();
  marks.add({ position: 700, id: idOf(1), keys: [] }, 5);
  marks.add({ position: 700, id: idOf(2), keys: [] }, 6);
  const bytes = encodeMarks(marks.columns(...ALL_MARKS), nodeDigests);
  const json = Buffer.from('[[700,["$a","$b"]]]');
  const old = new Uint8Array(bytes.length - 2 + json.length);
  old.set(bytes.subarray(0, -6));
  old.set(json, bytes.length - 6);
  new DataView(old.buffer).setUint32(old.length - 4, nodeDigests.crc32(old.subarray(0, -4)), true);
  expect(columnsOf(Redactions.of(decodeMarks('t', old, nodeDigests)), ...ALL_MARKS)).toEqual([
    `700 5 ${idOf(1)} $a,$b`,
    `700 6 ${idOf(2)} $a,$b`,
  ]);
});

test('a table holds them all, and is not read where a byte of it has changed', () => {
  const marks = new Redactions();
  for (let n = 0; n < 200; n++)
    marks.add({ position: 9_000 - n * 31, id: idOf(n), keys: n % 50 === 0 ? ['$a', '$b'] : [] }, n);
  // Several marks of an event name more than one may.
  for (let n = 0; n < 12; n++) marks.add({ position: 9_000, id: idOf(0), keys: [`$${n}`] }, 300 + n);
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
