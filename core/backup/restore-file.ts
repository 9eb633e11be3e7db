import { ChunkProof } from '../log/chunk-proof.ts';
import { RESTORE_FILE_JOB } from './file-jobs.ts';
import type { RestoreFileArgs } from './file-jobs.ts';
import { lanesFor } from './lanes.ts';
import type { BackupLanes } from './lanes.ts';
import type { ManifestFile } from './manifest.ts';
import type { Repository } from './repository-api.ts';
import { isLocal } from './repository.ts';
import { damagedBefore, writeFile } from './restore-files.ts';
import { endWhenAborted, parallelOf, type RestoreWorld } from './restore-world.ts';

export interface FileRestore {
  readonly repository: Repository;
  readonly world: RestoreWorld;
  readonly lanes?: BackupLanes | undefined;
  readonly onBytes: (count: number) => void;
}

/** Files that are written at a time. */
export function filesAtOnce({ world, repository, lanes }: FileRestore): number {
  return parallelOf(world, isLocal(repository.place), lanes !== undefined);
}

/** Writes one file of a backup, verified and durable (a chunk that nobody has proved against its MD5 too), on a thread of its own where there are lanes and the file is worth it. */
export async function restoreFile({ repository, world, lanes, onBytes }: FileRestore, file: ManifestFile, { isSealed = false, isUnproven = false }: { readonly isSealed?: boolean; readonly isUnproven?: boolean } = {}): Promise<void> {
  const { target, signal } = world;
  const { blob, sizeBytes, path } = file;
  endWhenAborted(signal);
  const lane = lanesFor(lanes, sizeBytes);
  if (lane === null) {
    const proof = isUnproven ? new ChunkProof(world.digests, path, sizeBytes) : null;
    const watch = (bytes: Uint8Array): void => {
      endWhenAborted(signal);
      proof?.add(bytes);
      onBytes(bytes.length);
    };
    return writeFile(target, path, repository.readWholeBlob(file, signal), sizeBytes, { watch, isSealed, check: () => proof?.check(damagedBefore) });
  }
  await restoreInLane(lane, { world, onBytes }, { path, ref: { blob, sizeBytes }, at: null, isSealed, isUnproven });
}

/** Writes a blob by a job, and waits until it is durable. */
export async function restoreInLane({ jobs, repository }: BackupLanes, { world: { signal, clock }, onBytes }: Pick<FileRestore, 'world' | 'onBytes'>, what: Pick<RestoreFileArgs, 'path' | 'ref' | 'at' | 'isSealed' | 'isUnproven'>): Promise<void> {
  let counted = 0;
  const onDone = (done: number): void => {
    onBytes(done - counted);
    counted = done;
  };
  const args: RestoreFileArgs = { repository, ...what, nowMs: clock.nowMs() };
  await jobs.run(RESTORE_FILE_JOB, args, { ...(signal && { signal }), onProgress: ({ done }) => onDone(done) });
  onDone(what.ref.sizeBytes);
}
