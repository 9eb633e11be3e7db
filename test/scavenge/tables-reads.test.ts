import { describe, expect, test } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import type { StoredEvent } from '../../core/streams/api.ts';
import { readWholeAll, readWholeStream } from '../support/oracle.ts';
import { checkRow, nameOf } from './notation-check.ts';
import type { Row } from './notation-check.ts';
import { parseLabels } from './notation.ts';
import { World } from './notation-world.ts';
import { bySize } from '../support/run-size.ts';

/** Row 125 and those behind it: what readers see after a run. */

/** Labels of the records of `$all` before the scavenge point. */
async function allLabels(
  open: DirectoryStore,
  world: World,
  direction: 'forward' | 'backward',
  count: number,
): Promise<string[]> {
  const byPosition = new Map(world.log.records.map((record) => [record.position, record.label]));
  const events = await readWholeAll(open.store, direction, count);
  return events
    .map((event) => byPosition.get(event.preparePosition))
    .filter((label) => label !== undefined && label !== 'SP') as string[];
}

test('row 125: two events of a, then 2738 of b in the first chunk; M0(a){tb=MAX}, SP', async () => {
  let world: World | null = null;
  const inspect = async (open: DirectoryStore): Promise<void> => {
    const left = world!.log.records.filter((record) => record.label !== 'a0');
    const labels = left.map((record) => record.label).filter((label) => label !== 'SP');
    expect(await allLabels(open, world!, 'forward', 1_000)).toEqual(labels);
    expect(await allLabels(open, world!, 'backward', 1_000)).toEqual(labels.toReversed());
    for (const { position } of left) {
      const page = await open.store.readAll({
        direction: 'forward',
        from: { commit: position, prepare: position },
        count: 1,
      });
      expect(page.events[0]?.preparePosition).toBe(position);
    }
  };
  world = await World.create('a0, a1, b0..b2737 | M0(a){tb=MAX}, SP', { chunkSize: 1_048_576 });
  const run = await world.run({ inspect });
  expect(run.last.result).toBe('Success');
  expect((await world.recordsLeft())[0]).toHaveLength(2_739);
});

/** Rows with what a reader of stream a, and one of `$all`, must see. */
const ROWS: readonly (Row & { readonly stream: string; readonly all: string })[] = [
  { row: 126, log: 'M0(a){mc=4}, a0..a4 | SP', stream: 'a1..a4', all: 'M0, a1..a4' },
  { row: 127, log: 'M0(a){tb=1}, a0..a4 | SP', stream: 'a1..a4', all: 'M0, a1..a4' },
  {
    row: 128,
    log: 'M0(a){age=10 min}, a0@50m, a1@20m, a2@11m, a3@5m, a4@1m | SP',
    stream: 'a3, a4',
    all: 'M0, a3, a4',
  },
  {
    row: 129,
    log: 'M0(a){age=10 min, mc=4}, a0@50m, a1@20m, a2@11m, a3@5m, a4@1m | SP',
    stream: 'a3, a4',
    all: 'M0, a3, a4',
  },
  {
    row: 130,
    log: 'M0(a){age=60 min, mc=3}, a0@100m, a1@20m, a2@11m, a3@5m, a4@1m | SP',
    stream: 'a2, a3, a4',
    all: 'M0, a2, a3, a4',
  },
];

describe('16.12 reads after a run', () => {
  for (const row of ROWS) {
    test(nameOf(row), async () => {
      const left = parseLabels(row.stream);
      const { world } = await checkRow({
        ...row,
        left: `${row.all} | SP`,
        ...(row.log.includes('age') ? { idx: undefined, left: undefined } : {}),
      } as Row);
      const open = await world.open();
      const numbers = left.map((label) => Number(label.slice(1)));
      const read = async (direction: 'forward' | 'backward', count: number): Promise<number[]> =>
        ((await readWholeStream(open.store, 'a', direction, count)) as StoredEvent[]).map((event) => event.number);
      for (const count of [1, 2, 100]) {
        expect(await read('forward', count)).toEqual(numbers);
        expect(await read('backward', count)).toEqual(numbers.toReversed());
      }
      for (let number = 0; number < 5; number++) {
        const one = open.store.readEvent('a', number).then(
          (event) => event.number,
          (error: unknown) => isSkuaError(error) && error.code,
        );
        expect(await one).toBe(numbers.includes(number) ? number : 'event_not_found');
      }
      expect(await allLabels(open, world, 'forward', 2)).toEqual(parseLabels(row.all));
      expect(await allLabels(open, world, 'backward', 2)).toEqual(parseLabels(row.all).toReversed());
      await open.close();
    });
  }

  test.each(['all of them gone from the log', 'those in the index still in the log'])(
    'row 131: the index holds any subset of the expired events, %s',
    async (which) => {
      for (let subset = 0; subset < 256; subset += bySize(17, 3, 1)) {
        const held = Array.from({ length: 8 }, (_, i) => i)
          .filter((i) => (subset & (1 << i)) !== 0)
          .map((i) => `a${i}`);
        const gone = Array.from({ length: 8 }, (_, i) => `a${i}`).filter(
          (label) => which.startsWith('all') || !held.includes(label),
        );
        const world = await World.create('M0(a){age}, a0..a7@old, a8@fresh, a9@fresh | SP', {
          gone,
          tables: [['M0(a)', ...held, 'a8', 'a9', 'SP']],
        });
        const open = await world.open();
        for (let start = 0; start <= 9; start++)
          expect(await firstFound(open, start), `from ${start} with ${held.join()}`).toBe(Math.max(8, start));
        await open.close();
      }
    },
  );
});

/** Number of the first event that reads of one event each find, going on where each read says. */
async function firstFound(open: DirectoryStore, start: number): Promise<number | null> {
  let from = start;
  for (let reads = 0; reads < 20; reads++) {
    const page = await open.store.readStream('a', { direction: 'forward', from, count: 1 });
    if (page.events.length > 0) return page.events[0]!.number;
    if (page.isEnd) return null;
    from = page.nextEventNumber;
  }
  return null;
}
