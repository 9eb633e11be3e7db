import { expect, test } from 'vitest';
import { E_MS, metadataJson, parseExpected, parseLog } from './notation.ts';
import { pointOf, recordOf } from './notation-log.ts';
import { World } from './notation-world.ts';
import { findFormatErrors } from '../support/check-directory.ts';
import { readWholeAll, readWholeStream } from '../support/oracle.ts';
import type { StoredEvent } from '../../core/streams/api.ts';

test('the notation is read into records', () => {
  const [first, second, third] = parseLog(
    "M2(a){mc=1, tb=MAX, age}, a0..a2@old, 2×tp#1, tb#3($$b) | !a3@cutoff-1s, a3' | SP{th=5}, SP",
  );
  expect(first!.records.map((record) => record.label)).toEqual([
    'M2(a)',
    'a0',
    'a1',
    'a2',
    'tp#1',
    'tp#1',
    'tb#3($$b)',
  ]);
  expect(metadataJson(first!.records[0]!.settings)).toBe('{"$maxCount":1,"$tb":9223372036854775807,"$maxAge":172800}');
  expect(first!.records[0]).toMatchObject({ kind: 'metadata', stream: '$$a', number: 2, timeMs: E_MS + 3_600_000 });
  expect(first!.records[3]).toMatchObject({ kind: 'event', stream: 'a', number: 2, timeMs: E_MS - 259_200_000 });
  expect(first!.records[6]).toMatchObject({ kind: 'begin', stream: '$$b', begins: true, transaction: 3 });
  expect(second).toMatchObject({
    isEmptied: true,
    records: [{ timeMs: E_MS - 172_801_000 }, { label: "a3'", number: 3 }],
  });
  expect(third!.records.map(({ number, settings }) => [number, settings])).toEqual([
    [0, { th: '5' }],
    [1, {}],
  ]);
  expect(() => parseLog('a0, what')).toThrow('"what" is no record');
});

test('expectations name what stays as it was', () => {
  const log = [['a0', 'M0(a)'], ['SP']];
  expect(parseExpected('=', log)).toEqual(log);
  expect(parseExpected('∅ | =', log)).toEqual([[], ['SP']]);
  expect(parseExpected('M0 | ∅', log)).toEqual([['M0(a)'], []]);
});

test('a log in notation is a data directory', async () => {
  const world = await World.create(
    'a0, tb#1, tp#1, b0, tp#1 | te#1, c#1, a3, M0(a){mc=2} | T32(c), c2147483648, T(b)#2, c#2, SP{th=3}',
  );
  const open = await world.open();
  const read = async (stream: string): Promise<unknown> => {
    const events = await readWholeStream(open.store, stream, 'forward', 100);
    return Array.isArray(events) ? events.map((event: StoredEvent) => event.number) : events;
  };
  expect(await read('a')).toEqual([2, 3]);
  expect(await read('b')).toEqual({ error: 'stream-deleted' });
  expect((await readWholeAll(open.store, 'forward', 100)).map((event) => event.stream)).toEqual([
    'a',
    'b',
    'a',
    'a',
    'a',
    '$$a',
    'c',
    'c',
    'b',
    '$scavengePoints',
  ]);
  await open.close();
  expect(await findFormatErrors(world.storage)).toEqual([]);
  expect(await world.recordsLeft()).toEqual(world.log.labels);
  expect((await world.indexLeft()).map((record) => record.label)).toEqual([
    'a0',
    'tp#1',
    'b0',
    'tp#1',
    'a3',
    'M0(a)',
    'T32(c)',
    'c2147483648',
    'T(b)#2',
    'SP',
  ]);
  expect(pointOf(world.log, 'SP')).toEqual({
    position: recordOf(world.log, 'SP').position,
    eventNumber: 0,
    effectiveNowMs: E_MS,
    threshold: 3,
  });
});

test('emptied chunks keep their index entries', async () => {
  const world = await World.create('!a0, a1 | a2, a3, a4 | SP', {
    tables: [['a0', 'a1', 'a2', 'a3', 'a4', 'SP']],
    gone: ['a3'],
  });
  await (await world.open()).close();
  expect(await world.recordsLeft()).toEqual([[], ['a2', 'a4'], ['SP']]);
  expect((await world.indexLeft()).map((record) => record.label)).toEqual(['a0', 'a1', 'a2', 'a3', 'a4', 'SP']);
  expect((await world.files()).map(({ version, isScavenged }) => [version, isScavenged])).toEqual([
    [1, true],
    [1, true],
    [0, false],
  ]);
});
