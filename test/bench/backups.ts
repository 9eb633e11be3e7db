import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { createBackup } from '../../core/backup/create/create.ts';
import type { CreatedBackup } from '../../core/backup/create/create.ts';
import type { BackupLanes } from '../../core/backup/repository/repository.ts';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import { openRepository } from '../../core/backup/repository/repository.ts';
import type { CompressionMode, Repository } from '../../core/backup/repository/api.ts';
import { snapshotOfDirectory } from '../../core/store/snapshot/snapshot.ts';
import type { BackupSource } from '../../core/store/source/source.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { diskBytes } from '../../local/commands/run-scavenge-offline.ts';

/** What the figures of backups share. */
const world = { clock: systemClock, ids: systemIds, digests: nodeDigests };

export function sourceOf(folder: string): Promise<BackupSource> {
  return snapshotOfDirectory({
    ...world,
    storage: new FilesystemStorage({ root: folder, mustExist: true }),
    log: silentLog,
  });
}

export async function openBenchRepository(
  place: ObjectLocation,
  compression: CompressionMode = 'auto',
): Promise<Repository> {
  return openRepository(
    await openObjects(place),
    { key: null, create: true, compression },
    { ...world, keys: nodeKeys, compression: nodeCompression },
  );
}

export function backUp(
  repository: Repository,
  source: BackupSource,
  known: Manifest | null = null,
  lanes?: BackupLanes,
): Promise<CreatedBackup> {
  return createBackup({ ...world, repository, source, cause: 'manual', known, ...(lanes && { lanes }) });
}

export async function secondsOf(work: () => Promise<unknown> | unknown): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
}

/** The limit of copying a directory: `cp -r` and a sync of the file system it went to. */
export function copyAndSync(from: string, to: string): void {
  for (const [command, ...args] of [
    ['cp', '-r', from, to],
    ['sync', '-f', to],
  ] as const) {
    const { status, stderr } = spawnSync(command, args);
    if (status !== 0) throw new Error(`${command} failed: ${String(stderr)}`);
  }
}

export function megabytesIn(folder: string): Promise<number> {
  return diskBytes(folder).then((bytes) => bytes / 1e6);
}

/** As `removeAndSync`, but folders stay: threads that opened one know it again, and refuse another at its place. */
export function emptyAndSync(folders: readonly string[]): void {
  for (const folder of folders) {
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  }
  spawnSync('sync', []);
}

/** Removes a tree and waits until the disk has taken that in, so that it does not disturb what is measured next. */
export function removeAndSync(path: string): void {
  rmSync(path, { recursive: true, force: true });
  spawnSync('sync', []);
}
