import { describe, expect, test } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { scavengeStatus } from '../../core/shared-log/control/control.ts';
import type { MemoryObjects } from '../support/memory-objects.ts';
import { ANY } from '../../core/streams/api.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { bySize } from '../support/run-size.ts';
import { readWholeStream } from '../support/oracle.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { erasable, idleTick, marksIn, MINUTE_MS } from './erasure-kit.ts';
import { expectNamedFiles, OPTIONS } from './scavenge-kit.ts';
import { eventsOf, worldOf } from './tick-kit.ts';

/**
 * Ticks after which nothing is left, whatever happened before: the time that traces may remain, and an hour for what
 * came late.
 */
const STEP_MINUTES = 4;
const GONE_AFTER_MINUTES = 150;

/** Idle ticks until the time of traces is over twice; then nothing is left, and that is said. */
async function expectErased(objects: MemoryObjects, clock: AutoClock, seed: number): Promise<void> {
  for (let minute = 0; minute <= GONE_AFTER_MINUTES; minute += STEP_MINUTES) {
    await idleTick(objects, clock, seed + minute);
    await expectNamedFiles(objects);
    clock.advance(STEP_MINUTES * MINUTE_MS);
  }
  expect(await marksIn(objects)).toEqual([]);
  expect((await scavengeStatus(worldOf(objects, clock, seed)))?.traces?.goneMs).toEqual(expect.any(Number));
}

async function readAs(objects: MemoryObjects, clock: AutoClock, seed: number, stream: string): Promise<unknown> {
  const reader = await openObjectStore(worldOf(objects, clock, seed), OPTIONS);
  const events = await readWholeStream(reader.store, stream, 'forward', 50);
  await reader.close();
  return 'error' in events ? events.error : events.map(({ id }) => id);
}

describe('a tick is killed at any call', () => {
  /** Minutes after the end of the scavenge; -1 is the tick that does it. */
  test.each(bySize([-1, 61], [-1, 60, 61, 62], [-1, 0, 60, 61, 62, 63]))(
    '%i minutes after the end of a scavenge, what that removed goes all the same',
    async (minutes) => {
      const clock = new AutoClock();
      const { objects: base, writer } = await erasable(clock);
      await writer.close();
      for (let minute = -1; minute < minutes; minute++) {
        await idleTick(base, clock, 10 + minute);
        clock.advance(MINUTE_MS);
      }
      const startMs = clock.monotonicMs();
      const step = bySize(minutes < 0 ? 31 : 9, 5, 1);
      let isWhole = false;
      for (let n = 0; !isWhole; n += step) {
        clock.advance(startMs - clock.monotonicMs());
        const objects = base.fork();
        const faulty = new FaultyObjects(objects, { seed: n });
        faulty.crashAfter(n);
        isWhole = await idleTick(faulty, clock, 100 + n).then(
          () => true,
          () => false,
        );
        await expectNamedFiles(objects);
        await expectErased(objects, clock, 1_000 * (n + 1));
        expect(n).toBeLessThan(400);
      }
    },
  );
});

const EXPECTED = [
  'storage_unreachable',
  'storage_throttled',
  'outcome_unknown',
  'commit_outcome_unknown',
  'commit_contended',
  'io_error',
  'file_not_found',
] as const;
const FAULTS = { before: 0.01, after: 0.02, late: 0.05, throttle: 0.01 };

/** Several writers and ticks on a bad network; what hangs in it arrives when the scavenge is long over. */
test.each(bySize([3], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8]))(
  'nothing is left beside writers and ticks whose requests are lost or late (%i)',
  async (seed) => {
    const clock = new AutoClock();
    const random = new Random(seed);
    const { objects, writer } = await erasable(clock);
    await writer.close();
    const acknowledged: string[] = [];
    const networks: FaultyObjects[] = [];
    const network = (): FaultyObjects => {
      const faulty = new FaultyObjects(objects, { seed: 100 * seed + networks.length, clock, chances: FAULTS });
      networks.push(faulty);
      return faulty;
    };
    const unless = (error: unknown): void => {
      if (!networks.some(({ isCrashed }) => isCrashed) && !EXPECTED.some((code) => isSkuaError(error, code)))
        throw error;
    };

    const write = async (): Promise<void> => {
      const instance = await openObjectStore(worldOf(network(), clock, 1_000 * seed + networks.length), OPTIONS).catch(
        unless,
      );
      if (instance === undefined) return;
      const own = new SeededIds(1_000 * seed + networks.length);
      for (let i = random.int(1, 6); i > 0; i--) {
        const events = eventsOf(own, 1, 200);
        await instance.store.append('live', ANY, events).then(() => {
          acknowledged.push(events[0]!.id);
        }, unless);
      }
      await instance.close();
    };
    const tick = async (): Promise<void> => {
      const faulty = network();
      if (random.chance(0.3)) faulty.crashAfter(random.int(1, 60));
      await idleTick(faulty, clock, 5_000 * seed + networks.length).catch((error: unknown) => {
        if (!faulty.isCrashed) unless(error);
      });
    };

    for (let minute = 0; minute < 90; minute += 3) {
      await Promise.all([
        tick(),
        ...(random.chance(0.5) ? [tick()] : []),
        ...(random.chance(minute < 45 ? 0.7 : 0.1) ? [write(), write()] : []),
      ]);
      await expectNamedFiles(objects);
      expect(await readAs(objects, clock, 9_000 + minute, 'doomed')).toBe('stream-deleted');
      clock.advance(3 * MINUTE_MS);
    }
    // What the network has kept until now arrives.
    for (const faulty of networks) await faulty.settle();
    await expectErased(objects, clock, 77_000 * seed);
    const seen = new Set((await readAs(objects, clock, 9_999, 'live')) as string[]);
    for (const id of acknowledged) expect(seen).toContain(id);
    expect(acknowledged.length).toBeGreaterThan(5);
  },
);
