import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { type ConditionsOutcome, playConditions } from '../streams/conditions-run.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { writeSetting } from './attributes-kit.ts';
import { JumpingClock, SMALL } from './setup.ts';
import { compactionTick, worldOf } from './tick-kit.ts';

/** Conditions by three writers of one log in a bucket, with ticks between. */
export async function simulateObjectConditions(seed: number): Promise<ConditionsOutcome> {
  const random = new Random(seed);
  const clock = new JumpingClock();
  const objects = new MemoryObjects({ clock });
  const streams = random.chance(0.6) ? { recentIds: 4, idLookbackEvents: 2 } : { recentIds: 1_024 };
  const options = { ...SMALL, streams };
  const writers = await Promise.all(
    [0, 1, 2].map((i) => openObjectStore(worldOf(objects, clock, seed * 10 + i), options)),
  );
  await writeSetting(writers[0]!.store, new SeededIds(seed), { names: true, correlations: false, tags: true });
  // A tick builds the index of tags, and instances follow its manifest.
  await compactionTick(worldOf(objects, clock, seed * 100 + 99));
  clock.stand(600_000);
  for (const writer of writers) await writer.refresh();
  const outcome = await playConditions(random, {
    rounds: 8,
    requestsMax: 9,
    store: () => random.pick(writers).store,
    newest: async () => {
      const writer = random.pick(writers);
      await writer.refresh();
      return writer.store;
    },
    between: async (round) => {
      if (random.chance(0.3)) await compactionTick(worldOf(objects, clock, seed * 100 + round));
    },
  });
  for (const writer of writers) await writer.close();
  return outcome;
}
