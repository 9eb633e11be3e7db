import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { listAll } from '../../core/ports/object-store.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { hashesOf } from '../backup/copy-kit.ts';
import { AutoClock } from '../shared-log/auto-clock.ts';
import { CHUNK_BYTES, compactionTick, runTick, worldOf } from '../shared-log/tick-kit.ts';
import { playHistory } from '../scavenge/random-run.ts';
import { simulate } from '../simulation/cluster/simulate.ts';
import { backUpNode } from './backup/backup-kit.ts';
import { openTestRepository } from './backup/test-repository.ts';
import { MemoryObjects } from './memory-objects.ts';
import { openTestStore } from './test-store.ts';
import { perform, planWorkload } from './workload.ts';

/**
 * Prints the hash of every file and object that a fixed workload leaves: appends, metadata, deletes and scavenges in a
 * directory and in a bucket, a backup of the directory, and the log and the history of members over a bucket. What is
 * printed before a change of the code and after it is equal where the change was to alter no byte.
 *
 *   node test/support/same-bytes.ts [--seeds N] > FILE
 */

const {
  values: { seeds },
} = parseArgs({ options: { seeds: { type: 'string', default: '10' } } });

function print(where: string, hashes: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(hashes).sort()) console.log(`${hashes[name]} ${where}/${name}`);
}

async function objectsOf(objects: ObjectStore): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {};
  for await (const { key } of listAll(objects, ''))
    hashes[key] = createHash('sha256')
      .update((await objects.get(key))!)
      .digest('hex');
  return hashes;
}

/** One request after another, with a tick behind each ten, and a scavenge at the end. */
async function inBucket(seed: number): Promise<ObjectStore> {
  const clock = new AutoClock();
  const objects = new MemoryObjects({ clock });
  let worlds = seed * 1_000;
  const world = () => worldOf(objects, clock, worlds++);
  const writer = await openObjectStore(world(), {
    chunkSizeBytes: CHUNK_BYTES,
    cacheBytes: 1_048_576,
    streams: { recentIds: 1_024 },
  });
  for (const [i, request] of planWorkload({ seed, rounds: 40 }).flat().entries()) {
    await perform(writer.store, request, () => 0);
    clock.advance(1_000);
    if (i % 10 === 9) await compactionTick(world());
  }
  await startScavenge(world());
  for (let ended = false; !ended;) {
    clock.advance(60_000);
    const { scavenge } = await runTick(world());
    ended = scavenge?.state === 'ended';
  }
  await writer.close();
  return objects;
}

for (let seed = 1; seed <= Number(seeds); seed++) {
  const storage = new MemoryStorage();
  const problems = await playHistory({ seed, place: { storage, states: new MemoryScavengeStates() } });
  const node = await openTestStore({ storage });
  const backups = new MemoryObjects();
  await backUpNode(node, await openTestRepository(backups));
  await node.close();
  print(`directory-${seed}`, await hashesOf(storage));
  print(`backup-${seed}`, await objectsOf(backups));

  print(`bucket-${seed}`, await objectsOf(await inBucket(seed)));

  const { hash, counts, history } = await simulate(seed);
  console.log(
    `${hash} members-${seed} ${JSON.stringify(counts)} ${createHash('sha256').update(history.join('\n')).digest('hex')}`,
  );
  for (const problem of problems) console.log(`problem of ${seed}: ${problem}`);
}
