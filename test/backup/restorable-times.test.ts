import { describe, expect, it } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import { chooseRestore } from '../../core/backup/restore/choose.ts';
import { type RestorableTime, restorableTimes } from '../../core/backup/restore/restorable-times.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { CHUNK_BYTES, playHistory } from '../support/backup/restore-history.ts';
import { timeOf } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';

const MINUTE_MS = 60_000;
const YEAR_MS = 525_600 * MINUTE_MS;

async function refusalOf(repository: Repository, timeMs: number, orBefore = false) {
  try {
    await chooseRestore(repository, { kind: 'time', timeMs, orBefore });
    return null;
  } catch (error) {
    if (!isSkuaError(error, 'not_restorable')) throw error;
    return error.data;
  }
}

/** The moments that a refusal names are taken: the one before it by a restore at or before it. */
async function isTaken(repository: Repository, timeMs: number): Promise<boolean> {
  const refusal = await refusalOf(repository, timeMs);
  if (refusal === null) return true;
  const { belowMs, aboveMs } = refusal;
  if (belowMs != null) expect([timeMs, await refusalOf(repository, belowMs, true)]).toEqual([timeMs, null]);
  if (aboveMs != null) expect([timeMs, aboveMs, await refusalOf(repository, aboveMs)]).toEqual([timeMs, aboveMs, null]);
  return false;
}

describe('the times that can be restored', () => {
  it.each([
    { seed: 31, isSteady: true },
    { seed: 33, isSteady: true },
    { seed: 36, isSteady: true },
    { seed: 34, isSteady: false },
    { seed: 35, isSteady: false },
  ])('are those that a restore takes, and no more, seed $seed', async ({ seed, isSteady }) => {
    const { repository, pasts, universe } = await playHistory({
      seed,
      parts: 4,
      isTimed: isSteady,
      ...(!isSteady && { stepMs: (random) => random.int(-4, 5) * MINUTE_MS }),
    });
    const ranges = await restorableTimes(repository, await repository.backups());
    const holds = (timeMs: number) => ranges.some(({ fromMs, toMs }) => fromMs <= timeMs && timeMs <= toMs);
    const times = [...universe.values()].map(({ bytes }) => timeOf(Buffer.from(bytes, 'latin1')));
    const asked = new Set([
      ...times.flatMap((time) => [time - 1, time, time + 1, time + MINUTE_MS / 2]),
      ...ranges.flatMap(({ fromMs, toMs }) => [fromMs - 1, fromMs, toMs, toMs + 1]),
      ...pasts.flatMap(({ manifest }) => [manifest.createdMs, manifest.createdMs + 1]),
      TEST_NOW_MS - YEAR_MS,
      TEST_NOW_MS + YEAR_MS,
    ]);
    let taken = 0;
    let refused = 0;
    let missed = 0;
    for (const timeMs of asked) {
      const isOne = await isTaken(repository, timeMs);
      if (holds(timeMs)) expect([timeMs, isOne]).toEqual([timeMs, true]);
      else if (isOne) missed++;
      if (isOne) taken++;
      else refused++;
    }
    expect(Math.min(taken, refused)).toBeGreaterThan(0);
    // With a clock that went back some that could be had are left out.
    expect(missed).toBeLessThanOrEqual(isSteady ? 0 : taken / 4);
  });

  it('are found bit by bit where reading them takes long, and never too many', async () => {
    const { repository } = await playHistory({ seed: 33, parts: 4, isTimed: true });
    const backups = await repository.backups();
    const whole = await restorableTimes(repository, backups);
    const inWhole = ({ fromMs, toMs }: RestorableTime) =>
      whole.some((range) => range.fromMs <= fromMs && toMs <= range.toMs);
    const lasting = (ranges: readonly RestorableTime[]) =>
      ranges.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
    const none = await restorableTimes(repository, backups, new Map(), 0);
    expect([none.every(inWhole), lasting(none) < lasting(whole)]).toEqual([true, true]);
    const lastTimes = new Map<string, number>();
    let found = none;
    for (let calls = 0; lasting(found) < lasting(whole); calls++) {
      expect(calls).toBeLessThan(backups.length);
      found = await restorableTimes(repository, backups, lastTimes, CHUNK_BYTES);
      expect(found.every(inWhole)).toBe(true);
    }
    expect(found).toEqual(whole);
  });

  it('are none of a repository without backups', async () => {
    expect(await restorableTimes(await openTestRepository(new MemoryObjects()), [])).toEqual([]);
  });

  it('have gaps where a scavenge has taken away what no backup from before it has', async () => {
    const gaps = await Promise.all(
      [31, 33, 36].map(async (seed) => {
        const { repository } = await playHistory({ seed, parts: 4, isTimed: true });
        return (await restorableTimes(repository, await repository.backups())).length - 1;
      }),
    );
    expect(Math.max(...gaps)).toBeGreaterThan(0);
  });
});
