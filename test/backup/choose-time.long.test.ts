import { describe, expect, it } from 'vitest';
import { chooseRestore } from '../../core/backup/restore/choose.ts';
import type { RestoreChoice } from '../../core/backup/restore/choose.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import type { RawRecord } from '../scavenge/raw-log.ts';
import {
  CHUNK_BYTES,
  endOf,
  endsWrite,
  type History,
  type Past,
  playHistory,
} from '../support/backup/restore-history.ts';
import { timeOf } from '../support/backup/restore-kit.ts';
import { Random } from '../support/random.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';

const MINUTE_MS = 60_000;

function msOf({ bytes }: RawRecord): number {
  return timeOf(Buffer.from(bytes, 'latin1'));
}

/**
 * Where a backup's log has to be cut for a time, by a plain reading of the rules; 'all', or null where a scavenge has
 * taken the place.
 */
function cutIn({ manifest, records }: Past, timeMs: number): number | 'all' | null {
  const later = records.find((record) => msOf(record) > timeMs);
  if (later === undefined) return 'all';
  const chunk = manifest.chunks.find(
    ({ startNumber, endNumber }) => startNumber <= later.chunk && later.chunk <= endNumber,
  );
  const start = (chunk?.startNumber ?? later.chunk) * CHUNK_BYTES;
  if (chunk?.isScavenged === true)
    return Math.min(
      ...records.filter((record) => record.position >= start && record.chunk <= chunk.endNumber).map(msOf),
    ) > timeMs
      ? start
      : null;
  return Math.max(
    start,
    ...records
      .filter((record) => record.position >= start && endOf(record) <= later.position && endsWrite(record))
      .map(endOf),
  );
}

function expected({ pasts }: History, timeMs: number): { past: Past; position: number } | null {
  for (const past of [...pasts].reverse()) {
    const cut = cutIn(past, timeMs);
    if (cut === 'all') {
      // Later than all that was backed up nothing is known.
      if (past === pasts.at(-1))
        return timeMs > Math.max(past.manifest.createdMs, ...past.records.map(msOf))
          ? null
          : { past, position: past.manifest.checkpoints.writer };
    } else if (cut === 0) {
      // Where the beginning was scavenged, a backup from before may know more of it.
      if (past.manifest.chunks[0]?.isScavenged !== true) return null;
    } else if (cut !== null) return { past, position: cut };
  }
  return null;
}

async function check(history: History, timeMs: number): Promise<boolean> {
  const wanted = expected(history, timeMs);
  try {
    const plan = await chooseRestore(history.repository, { kind: 'time', timeMs });
    expect({ id: plan.manifest.id, position: plan.position }).toEqual({
      id: wanted?.past.manifest.id,
      position: wanted?.position,
    });
    return true;
  } catch (error) {
    if (!isSkuaError(error, 'not_restorable')) throw error;
    expect(wanted, error.message).toBe(null);
    return false;
  }
}

/**
 * How far back the log has to be cut where a moment can't be had, over all backups; 0 where there is nothing before it.
 */
function expectedBefore({ pasts }: History, timeMs: number): number {
  return Math.max(
    ...pasts.map(({ manifest, records }) => {
      const later = records.find((record) => msOf(record) > timeMs);
      if (later === undefined) return manifest.checkpoints.writer;
      return (
        manifest.chunks.find(({ startNumber, endNumber }) => startNumber <= later.chunk && later.chunk <= endNumber)!
          .startNumber * CHUNK_BYTES
      );
    }),
  );
}

describe('the place for a time', () => {
  it.each([31, 33, 34, 35])(
    'where it can not be had the nearest ones are named, and the one before can be taken, seed %d',
    async (seed) => {
      const history = await playHistory({
        seed,
        parts: 4,
        ...(seed > 33 && { stepMs: (random) => random.int(-1, 4) * MINUTE_MS }),
      });
      const { repository } = history;
      const times = [...new Set([...history.universe.values()].map(msOf))].toSorted((a, b) => a - b);
      const choose = (timeMs: number, orBefore = false) =>
        chooseRestore(repository, { kind: 'time', timeMs, orBefore }).catch((error: unknown) => {
          if (!isSkuaError(error, 'not_restorable')) throw error;
          return error;
        });
      let refused = 0;
      for (const [i, timeMs] of times.entries()) {
        const exact = await choose(timeMs);
        const taken = await choose(timeMs, true);
        if (!(exact instanceof Error)) {
          expect(taken).toEqual(exact);
          expect(exact.earlierMs).toBe(null);
          continue;
        }
        refused++;
        const { belowMs, aboveMs } = exact.data as { belowMs: number | null; aboveMs: number | null };
        expect(exact.message).not.toContain('position');
        if (aboveMs !== null) {
          expect(await choose(aboveMs)).not.toBeInstanceOf(Error);
          for (const between of times.slice(i).filter((time) => time < aboveMs))
            expect(await choose(between)).toBeInstanceOf(Error);
          expect(exact.message).toContain(new Date(aboveMs).toISOString().slice(0, 19));
        }
        if (taken instanceof Error) {
          expect({ belowMs, position: expectedBefore(history, timeMs) }).toEqual({ belowMs: null, position: 0 });
          continue;
        }
        const past = history.pasts.find(({ manifest }) => manifest.id === taken.manifest.id)!;
        const kept = past.records.filter((record) => record.position < taken.position).map(msOf);
        expect({ position: taken.position, earlierMs: taken.earlierMs }).toEqual({
          position: expectedBefore(history, timeMs),
          earlierMs: belowMs,
        });
        expect(Math.max(...kept)).toBeLessThanOrEqual(timeMs);
        expect(exact.message).toContain(new Date(belowMs!).toISOString().slice(0, 19));
        // With a clock that never went back the last write is the latest.
        if (seed <= 33) expect(belowMs).toBe(Math.max(...kept));
      }
      expect(refused).toBeGreaterThan(0);
    },
  );

  it.each([11, 12, 13, 14])('is behind the last write before the first later record, seed %d', async (seed) => {
    const history = await playHistory({ seed, parts: 4 });
    const random = new Random(seed);
    const times = [...history.universe.values()].map(msOf);
    let found = 0;
    for (let i = 0; i < 40; i++) if (await check(history, random.pick(times) + random.pick([-1, 0, 0, 1]))) found++;
    expect(found).toBeGreaterThan(5);
  });

  it.each([21, 22, 23])('is found in the order of the log where the clock went backwards, seed %d', async (seed) => {
    const history = await playHistory({ seed, parts: 4, stepMs: (random) => random.int(-4, 5) * MINUTE_MS });
    const random = new Random(seed);
    const times = [...history.universe.values()].map(msOf);
    expect(times.some((time, i) => i > 0 && time < times[i - 1]!)).toBe(true);
    for (let i = 0; i < 40; i++) await check(history, random.pick(times) + random.pick([-1, 0, 0, 1]));
  });

  it('after everything is the end, up to when it was backed up; before the first record there is none, and the earliest time is named', async () => {
    const history = await playHistory({ seed: 5, parts: 2 });
    const { manifest } = history.pasts.at(-1)!;
    const lastMs = Math.max(...history.pasts.at(-1)!.records.map(msOf));
    const end = { manifest: { id: manifest.id }, position: manifest.checkpoints.writer, warnings: [] };
    expect(await chooseRestore(history.repository, { kind: 'time', timeMs: lastMs })).toMatchObject({
      ...end,
      earlierMs: null,
    });
    const later: RestoreChoice = { kind: 'time', timeMs: TEST_NOW_MS + 365 * 86_400_000 };
    await expect(chooseRestore(history.repository, later)).rejects.toMatchObject({
      code: 'not_restorable',
      data: { belowMs: lastMs, aboveMs: null },
    });
    expect(await chooseRestore(history.repository, { ...later, orBefore: true })).toMatchObject({
      ...end,
      earlierMs: lastMs,
    });
    const error = await chooseRestore(history.repository, { kind: 'time', timeMs: TEST_NOW_MS - 1 }).then(
      () => null,
      (reason: unknown) => reason,
    );
    if (!isSkuaError(error, 'not_restorable')) throw error;
    const earliestMs = Number(error.data['earliestMs']);
    expect(error.message).toContain('2026-11-22');
    expect((await chooseRestore(history.repository, { kind: 'time', timeMs: earliestMs })).position).toBeGreaterThan(0);
    await expect(chooseRestore(history.repository, { kind: 'time', timeMs: earliestMs - 1 })).rejects.toMatchObject({
      code: 'not_restorable',
      data: { earliestMs },
    });
  });

  it('reads the one chunk that holds it, and no other completed one', async () => {
    const history = await playHistory({ seed: 11, parts: 1, writes: 150 });
    const { manifest } = history.pasts.at(-1)!;
    const read = new Set<string>();
    const { repository } = history;
    const watched = Object.assign(Object.create(repository) as typeof repository, {
      readBlob: (ref: { blob: string }, range?: { from: number; length: number }) => {
        read.add(ref.blob);
        return repository.readBlob(ref as never, range);
      },
    });
    for (const name of ['manifest', 'backups', 'shipped'] as const)
      Object.assign(watched, { [name]: (repository[name] as (...args: unknown[]) => unknown).bind(repository) });
    const chunk = manifest.chunks.find(({ startNumber }) => startNumber === 1)!;
    expect(manifest.chunks.length).toBeGreaterThan(2);
    await chooseRestore(watched, { kind: 'time', timeMs: chunk.toMs! - 1 });
    // Whether the clock was set back is known of the completed ones.
    expect(manifest.chunks.filter(({ blob }) => read.has(blob))).toEqual([chunk]);
  });
});
