import { describe, expect, test } from 'vitest';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { ANY } from '../../core/streams/api.ts';
import { checkClosed } from '../scavenge/random-check.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { Mirror } from './mirror.ts';
import { expectNamedFiles, expectScavenged, scavengeable } from './scavenge-kit.ts';
import { beginLog, compactionTick, eventsOf, exportDirectory, runTick, type TickOptions, worldOf } from './tick-kit.ts';

describe('a tick that takes over the tail is killed at any call', () => {
  test('the next one does what was left, and nothing is lost or twice', async () => {
    const clock = new AutoClock();
    const base = new MemoryObjects({ clock });
    await beginLog(worldOf(base, clock, 1));
    const mirror = await Mirror.open(base);
    const ids = new SeededIds(3);
    for (let i = 0; i < 30; i++) await mirror.store.append(`s-${i % 3}`, ANY, eventsOf(ids, 2, 900));
    await compactionTick(worldOf(base, clock, 2));
    for (let i = 0; i < 30; i++) await mirror.store.append(`s-${i % 3}`, ANY, eventsOf(ids, 2, 900));
    const expected = await readRawLog(mirror.storage);
    let isWhole = false;
    for (let n = 0; !isWhole; n++) {
      // One outcome a call in turns, or each.
      for (let outcome = 0; outcome < 3; outcome++) {
        const objects = base.fork();
        const faulty = new FaultyObjects(objects, { seed: 10 * n + outcome });
        faulty.crashAfter(n);
        isWhole = await compactionTick(worldOf(faulty, clock, 100 + n)).then(
          () => true,
          () => false,
        );
        await expectNamedFiles(objects);
        expect(await readRawLog(await exportDirectory(objects))).toEqual(expected);
        await compactionTick(worldOf(objects, clock, 1_000 + n));
        await expectNamedFiles(objects);
        const directory = await exportDirectory(objects);
        expect(await readRawLog(directory)).toEqual(expected);
        expect(await checkClosed(directory, streamHasher)).toEqual([]);
      }
      expect(n).toBeLessThan(60);
    }
    await mirror.close();
  });
});

describe('a tick that scavenges is killed at any call', () => {
  const whole: TickOptions = {};
  const slices: TickOptions = { settings: { ownBytesMax: 1 } };

  test.each([
    ['that does all of it', whole, 0],
    ['in the middle of a run', slices, 3],
  ] as const)('%s', async (_, given, ticksBefore) => {
    const clock = new AutoClock();
    const { base, scavengeId, universe } = await scavengeable(clock, ticksBefore > 0);
    for (let i = 0; i < ticksBefore; i++) await runTick(worldOf(base, clock, 5 + i), given);
    const random = new Random(ticksBefore + 1);
    let isWhole = false;
    let rounds = 0;
    for (let n = 0; !isWhole; n += random.int(2, 5)) {
      const objects = base.fork();
      const faulty = new FaultyObjects(objects, { seed: n });
      faulty.crashAfter(n);
      isWhole = await runTick(worldOf(faulty, clock, 100 + n), given).then(
        () => true,
        () => false,
      );
      await expectNamedFiles(objects);
      await expectScavenged(objects, clock, scavengeId, universe, 1_000 + 10 * n);
      expect(++rounds).toBeLessThan(80);
    }
  });
});
