import { expect } from 'vitest';
import type { Repository } from '../../core/backup/repository/api.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { TickBackups } from '../../core/shared-log/backups/backups.ts';
import type { TemporaryStorage } from '../../core/shared-log/overlay/overlay.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { restoreOptions, verifyErrors } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import type { AutoClock } from './auto-clock.ts';
import { OPTIONS } from './scavenge-kit.ts';
import { exportDirectory, worldOf } from './tick-kit.ts';

export const HOUR_MS = 3_600_000;

export async function memoryScratch(): Promise<TemporaryStorage> {
  return { storage: new MemoryStorage(), states: new MemoryScavengeStates(), remove: async () => {} };
}

/** What makes the backups of a process; `seed` tells processes apart. */
export function backupsOf(objects: ObjectStore, repository: ObjectStore, clock: AutoClock, seed: number): TickBackups {
  return new TickBackups({
    world: worldOf(objects, clock, seed),
    options: OPTIONS,
    newTemporaryStorage: memoryScratch,
    everyMs: HOUR_MS,
    keep: null,
    throttleBytesPerSecond: 0,
    parallel: 1,
    repository: () => openRepositoryOf(repository, clock, seed),
  });
}

export function openRepositoryOf(objects: ObjectStore, clock: AutoClock, seed: number): Promise<Repository> {
  return openTestRepository(shared(objects), {}, { clock, ids: worldOf(objects, clock, 50_000 + seed).ids });
}

/** Closing a repository closes its store, which others here still use. */
function shared(objects: ObjectStore): ObjectStore {
  return new Proxy(objects, {
    get: (target, name) => {
      if (name === 'close') return async () => {};
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** Restores the newest backup, finds nothing wrong with it, and gives the directory. */
export async function restored(repository: ObjectStore, clock: AutoClock): Promise<MemoryStorage> {
  const target = new MemoryStorage();
  await restoreBackup(restoreOptions(await openRepositoryOf(repository, clock, 9_000), target));
  expect(await verifyErrors(target)).toEqual([]);
  return target;
}

/** The records of a restored directory up to the end of the backup, which are those of the store at that moment. */
export async function expectRestored(
  repository: ObjectStore,
  clock: AutoClock,
  directory: MemoryStorage,
): Promise<void> {
  const given = await readRawLog(directory);
  const back = await readRawLog(await restored(repository, clock));
  // A start writes an epoch behind the end.
  expect(back.slice(0, given.length)).toEqual(given);
}

export { exportDirectory, MemoryObjects };
