import { describe, expect, it } from 'vitest';
import { chooseRestore } from '../../core/backup/restore/choose.ts';
import type { RestorePlan } from '../../core/backup/restore/choose.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { parseTimestamp, timestampText } from '../../core/base/time.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY } from '../../core/streams/api.ts';
import { setMetadata } from '../scavenge/control-kit.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { backUp, restoreOptions, timeOf } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { Random } from '../support/random.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { newEvent } from '../support/workload.ts';

const HOUR_MS = 3_600_000;
const YEAR_MS = 8_760 * HOUR_MS;
const CHUNK_BYTES = 65_536;

/** A backed-up log of one event at each of these hours, the clock set to them in their order. */
async function backedUp(hours: readonly number[], bytes = 100) {
  const storage = new MemoryStorage();
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const random = new Random(7);
  const open = await openTestStore({ storage, clock, chunkSizeBytes: CHUNK_BYTES });
  for (const hour of hours) {
    clock.setNow(TEST_NOW_MS + hour * HOUR_MS);
    await open.store.append('s', ANY, [newEvent(random, 'happened', null, bytes)]);
  }
  await open.close();
  const repository = await openTestRepository(new MemoryObjects());
  const manifest = await backUp(storage, repository, 1);
  const choose = (timeMs: number, orBefore = false): Promise<RestorePlan> =>
    chooseRestore(repository, { kind: 'time', timeMs, orBefore });
  return { storage, repository, manifest, choose, end: manifest.checkpoints.writer };
}

describe('a restore to a time later than all that was backed up', () => {
  it('is refused with the last moment that can be had, and changes nothing', async () => {
    const { repository, choose, end } = await backedUp([0, 1, 2]);
    const lastMs = TEST_NOW_MS + 2 * HOUR_MS;
    const target = new MemoryStorage();
    await expect(
      restoreBackup(restoreOptions(repository, target, { choice: { kind: 'time', timeMs: lastMs + 1 } })),
    ).rejects.toMatchObject({
      code: 'not_restorable',
      message: expect.stringContaining(timestampText(lastMs, 0)),
      data: { belowMs: lastMs, aboveMs: null },
    });
    expect(await target.list('')).toEqual([]);
    expect(await choose(lastMs)).toMatchObject({ position: end, earlierMs: null, warnings: [] });
    expect(await choose(lastMs + YEAR_MS, true)).toMatchObject({ position: end, earlierMs: lastMs, warnings: [] });
  });

  it('can be had up to when the backup was made, though nothing was written meanwhile', async () => {
    const { manifest, choose, end } = await backedUp([-2, -1]);
    expect(await choose(manifest.createdMs)).toMatchObject({ position: end, earlierMs: null });
    await expect(choose(manifest.createdMs + 1)).rejects.toMatchObject({ data: { belowMs: manifest.createdMs } });
  });
});

describe('a restore to a time before all that is left', () => {
  it('is refused with the first moment that is taken, which lies behind a first chunk that was scavenged', async () => {
    const storage = new MemoryStorage();
    const clock = new ManualClock(TEST_NOW_MS, 'microtask');
    const random = new Random(7);
    const open = await openTestStore({ storage, clock, chunkSizeBytes: CHUNK_BYTES });
    await setMetadata(open, 's', { $maxCount: 2 });
    for (let hour = 1; hour <= 12; hour++) {
      clock.setNow(TEST_NOW_MS + hour * HOUR_MS);
      await open.store.append('s', ANY, [newEvent(random, 'happened', null, 15_000)]);
    }
    await open.scavenger.start({ threshold: -1 });
    await open.scavenger.idle();
    await open.close();
    const repository = await openTestRepository(new MemoryObjects());
    await backUp(storage, repository, 1);
    const choose = (timeMs: number) => chooseRestore(repository, { kind: 'time', timeMs });
    const refused = await choose(TEST_NOW_MS - YEAR_MS).then(null, (error: unknown) => error);
    if (!isSkuaError(refused, 'not_restorable')) throw refused;
    const { data } = refused;
    expect(data).toMatchObject({ belowMs: null, earliestMs: data.aboveMs });
    // What is left of the first chunk begins earlier, with the metadata.
    expect(data.aboveMs).toBeGreaterThan(TEST_NOW_MS);
    expect(await choose(data.aboveMs!)).toMatchObject({ position: expect.any(Number) as number });
    await expect(choose(data.aboveMs! - 1)).rejects.toMatchObject({ code: 'not_restorable' });
  });
});

describe('a clock that was ahead while some was written', () => {
  it.each([100, 30_000])('leaves out nothing of a time without a word, in events of %d bytes', async (bytes) => {
    const { storage, repository, choose } = await backedUp([0, 1, 8_000, 8_001, 2, 3, 4], bytes);
    const plan = await choose(TEST_NOW_MS + 3 * HOUR_MS);
    const records = await readRawLog(storage);
    const ahead = records.find(
      (record) => timeOf(Buffer.from(record.bytes, 'latin1')) > TEST_NOW_MS + 7_000 * HOUR_MS,
    )!;
    expect(plan.position).toBeLessThanOrEqual(ahead.position);
    const last = records.findLast(
      (record) => timeOf(Buffer.from(record.bytes, 'latin1')) <= TEST_NOW_MS + 3 * HOUR_MS,
    )!;
    expect(plan.warnings).toEqual([
      expect.stringMatching(
        new RegExp(
          `^The clock was set back: behind position ${plan.position} stand records of ${timestampText(TEST_NOW_MS + 8_000 * HOUR_MS, 0)}, `,
        ),
      ),
    ]);
    const position = Number(/--to-position (\d+)/.exec(plan.warnings[0]!)![1]);
    expect(position).toBe(last.position + last.bytes.length + 8);
    // The command that is named gives what is missing.
    const target = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, target, { choice: { kind: 'position', position } }));
    expect((await readRawLog(target)).some((record) => record.position === last.position)).toBe(true);
  });

  it('says nothing where all of that time stands before', async () => {
    const { choose } = await backedUp([0, 1, 8_000, 8_001, 2, 3, 4]);
    expect((await choose(TEST_NOW_MS + HOUR_MS)).warnings).toEqual([]);
  });
});

it.each(['2026-02-30T00:00:00Z', '2025-02-29', '2026-04-31T12:00:00+02:00', '2026-13-01', '2026-00-10', '2026-01-00'])(
  '%s is no time',
  (text) => {
    expect(parseTimestamp(text)).toBe(Number.NaN);
  },
);

it.each([
  ['2024-02-29', Date.UTC(2024, 1, 29)],
  ['2026-04-30T12:00:00+02:00', Date.UTC(2026, 3, 30, 10)],
])('%s is one', (text, ms) => {
  expect(parseTimestamp(text)).toBe(ms);
});
