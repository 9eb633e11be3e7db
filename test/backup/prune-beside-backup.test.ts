import { describe, expect, it } from 'vitest';
import { createBackup } from '../../core/backup/create/create.ts';
import { pruneRepository } from '../../core/backup/prune/prune.ts';
import { StorageSource } from '../../core/store/source/source.ts';
import type { Snapshot } from '../../core/store/source/source.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { backUpSource, danglingIn } from '../support/backup/backup-kit.ts';
import { Steps } from '../support/backup/stepped-objects.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { append, openSmall } from './hold-kit.ts';

const DAY_MS = 86_400_000;
type Choose = Parameters<Steps['run']>[1];

/**
 * For how long what the backup needs has been without use when the two meet: long enough, or no time at all and it goes
 * as what was erased does.
 */
type Unused = 'for two days' | 'just now, erased';
const UNUSED: readonly Unused[] = ['for two days', 'just now, erased'];

interface Contested {
  readonly objects: MemoryObjects;
  readonly storage: MemoryStorage;
  readonly snapshot: Snapshot;
  readonly isErased: boolean;
}

/**
 * A repository in which everything that a backup of the node needs is there, is without use and may be
 * removed: the one moment in which a prune and a backup want the opposite of the same objects.
 */
async function contested(unused: Unused): Promise<Contested> {
  const storage = new MemoryStorage();
  const node = await openSmall(storage, { memTableEntriesMax: 10_000 });
  await append(node, 'a', 20);
  const hold = await node.hold();
  const { snapshot } = hold;
  await hold.release();
  await node.close();
  const objects = new MemoryObjects();
  const repository = await openTestRepository(objects);
  const { manifest } = await backUpSource(new StorageSource(storage, snapshot), repository);
  await repository.removeManifest(manifest.id);
  const isErased = unused === 'just now, erased';
  if (isErased) return { objects, storage, snapshot, isErased };
  const seen: Record<string, number> = {};
  for await (const { id } of repository.blobs()) seen[id] = TEST_NOW_MS - 2 * DAY_MS;
  await repository.writeObject('unreferenced', { seen });
  return { objects, storage, snapshot, isErased };
}

async function race(
  { objects, storage, snapshot, isErased }: Contested,
  choose: Choose,
  onTurn: (steps: Steps, turns: ReadonlyMap<string, number>) => void = () => {},
): Promise<{ turns: Map<string, number>; ends: Record<string, string> }> {
  const fork = objects.fork();
  const steps = new Steps(TEST_NOW_MS);
  const ends: Record<string, string> = {};
  const noted = (name: string, work: Promise<unknown>) =>
    work.then(
      () => {
        ends[name] = 'done';
      },
      (error: { code?: string }) => {
        ends[name] = error.code ?? String(error);
      },
    );
  const backup = async () => {
    const repository = await openTestRepository(steps.objects('backup', fork));
    return await createBackup({
      source: new StorageSource(storage, snapshot),
      repository,
      cause: 'manual',
      clock: steps.clock('backup'),
      ids: new SeededIds(1),
      digests: nodeDigests,
      parallel: 1,
    });
  };
  const prune = async () => {
    const repository = await openTestRepository(steps.objects('prune', fork));
    return await pruneRepository({
      digests: nodeDigests,
      repository,
      keep: null,
      isErased,
      clock: steps.clock('prune'),
      ids: new SeededIds(2),
    });
  };
  let turns = new Map<string, number>();
  await steps.run({ backup: noted('backup', backup()), prune: noted('prune', prune()) }, (ready, taken) => {
    turns = new Map(taken);
    onTurn(steps, taken);
    return choose(ready, taken);
  });
  expect(await danglingIn(fork)).toEqual([]);
  expect(ends['prune']).toBe('done');
  return { turns, ends };
}

/** One goes first, for so many turns; the other then for so many; and so on in turns. The last goes to its end. */
function inTurns(first: 'backup' | 'prune', spans: readonly number[]): Choose {
  const order: string[] = [];
  spans.forEach((span, i) =>
    order.push(...Array.from({ length: span }, () => ((i % 2 === 0) === (first === 'backup') ? 'backup' : 'prune'))),
  );
  const last = (spans.length % 2 === 0) === (first === 'backup') ? 'backup' : 'prune';
  let at = 0;
  return (ready) => {
    const wanted = order[at] ?? last;
    at++;
    return ready.includes(wanted) ? wanted : ready[0]!;
  };
}

describe.each(UNUSED)('a prune beside a backup that needs what was without use %s', (unused) => {
  it('never takes what the backup counts on, whoever is interrupted where, and for how long', async () => {
    const start = await contested(unused);
    const { turns } = await race(start, inTurns('backup', []));
    const backupTurns = turns.get('backup')!;
    const pruneTurns = turns.get('prune')!;
    expect(backupTurns).toBeGreaterThan(10);
    expect(pruneTurns).toBeGreaterThan(8);
    let beside = 0;
    for (let i = 0; i <= backupTurns; i++) {
      for (let j = 0; j <= pruneTurns; j++) {
        const { ends } = await race(start, inTurns('backup', [i, j]));
        // A backup that may not go on waits, and gives up when the prune does not move for ten minutes.
        if (ends['backup'] !== 'done') {
          expect(ends['backup']).toBe('repository_busy');
          beside++;
        }
        await race(start, inTurns('prune', [j, i]));
      }
    }
    expect(beside).toBeGreaterThan(0);
  });

  it('takes nothing when it stood still for hours while a backup came and went', async () => {
    const start = await contested(unused);
    const { turns } = await race(start, inTurns('prune', []));
    let passed = 0;
    for (let j = 0; j <= turns.get('prune')!; j++) {
      let isPassed = false;
      const { ends } = await race(start, inTurns('prune', [j, 10_000]), (steps, taken) => {
        // A removal that was sent and hangs in the network for hours is all that can't be called back.
        if (isPassed || (taken.get('prune') ?? 0) < j || steps.next('prune') === 'remove') return;
        isPassed = true;
        steps.pass(2 * 3_600_000);
      });
      if (isPassed) expect(ends['backup']).toBe('done');
      passed += Number(isPassed);
    }
    expect(passed).toBeGreaterThan(5);
  });

  it('never does in any random order', async () => {
    const start = await contested(unused);
    for (const seed of seedsFrom(1, bySize(start.isErased ? 30 : 50, 300, 3_000))) {
      const random = new Random(seed);
      const bias = random.int(10, 90) / 100;
      const { ends } = await race(start, (ready) =>
        ready.length > 1 ? (random.chance(bias) ? 'backup' : 'prune') : ready[0]!,
      );
      expect(ends).toEqual({ backup: 'done', prune: 'done' });
    }
  });

  it('withdraws a backup that stood still for longer than it counts, where a prune came meanwhile', async () => {
    const start = await contested(unused);
    const { turns } = await race(start, inTurns('backup', []));
    const outcomes: Record<string, number> = {};
    for (let i = 0; i <= turns.get('backup')!; i++) {
      let isPassed = false;
      const { ends } = await race(start, inTurns('backup', [i, 10_000]), (steps, taken) => {
        if (isPassed || (taken.get('backup') ?? 0) < i) return;
        isPassed = true;
        steps.pass(30 * 3_600_000);
      });
      outcomes[ends['backup']!] = (outcomes[ends['backup']!] ?? 0) + 1;
    }
    expect(Object.keys(outcomes).toSorted()).toEqual(['backup_failed', 'done']);
  });
});
