import { describe, expect, it } from 'vitest';
import { ANY } from '../../../core/streams/api.ts';
import { Bucket, event } from '../setup.ts';

/** Microtasks within which a request to a store in memory, or a group, is over. */
const TURNS = 60;

/**
 * A commit of another writer becomes known while a group is put together; `turns` microtasks lie between the beginnings
 * of the two.
 */
async function meet(turns: number, isRefreshFirst: boolean): Promise<void> {
  const bucket = new Bucket();
  const [one, other] = [await bucket.open(), await bucket.open()];
  const positions = [
    (await one.store.append('s', ANY, [event()])).position,
    (await other.store.append('other', ANY, [event()])).position,
  ];
  let refreshed = isRefreshFirst ? one.refresh() : null;
  const appending = isRefreshFirst ? null : one.internals.append('s', 0, [event()]);
  for (let turn = 0; turn < turns; turn++) await Promise.resolve();
  refreshed ??= one.refresh();
  positions.push((await (appending ?? one.internals.append('s', 0, [event()]))).position);
  await refreshed;
  expect(
    (await one.store.readStream('s', { direction: 'forward', from: 0, count: 9 })).events.map(({ number }) => number),
  ).toEqual([0, 1]);
  const reader = await bucket.open();
  const { events } = await reader.store.readAll({ direction: 'forward', from: 'start', count: 9 });
  expect(events.map(({ position }) => position)).toEqual(positions);
  for (const instance of [one, other, reader]) await instance.close();
}

describe.each([
  ['before', true],
  ['behind', false],
])("another writer's commit that is asked for %s an append", (_, isRefreshFirst) => {
  it('makes it decide anew, whenever it comes', async () => {
    for (let turns = 0; turns < TURNS; turns++) await meet(turns, isRefreshFirst);
  });
});
