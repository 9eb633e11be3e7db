import { nonZeroRuns, putI64 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { EXISTENCE_DATA_PATH, PAGE_BYTES } from '../../index/format/existence-files.ts';
import { ChunkProof } from '../../log/format/chunk-proof.ts';
import { createFile } from '../../ports/durability.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { JobContext } from '../../ports/jobs.ts';
import type { ScavengeStates } from '../../ports/scavenge-state.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import type { MarkColumns } from '../../streams/api.ts';
import type { StoreIndexOptions, StoreWorld } from '../../store/store.ts';
import { type Watch, writeContent } from '../../ports/write-content.ts';
import type { Repository } from '../repository/api.ts';
import type { BlobRef, ManifestFile } from '../format/snapshot-manifest.ts';
import { isLocal, lanesFor, openForJob, type BackupLanes, type RepositorySpec } from '../repository/repository.ts';

/**
 * What the dry start opens the store with, besides what every restore needs. `jobs` work on the directory to restore
 * to.
 */
interface DryStart extends Pick<StoreWorld, 'jobs' | 'log' | 'meter'>, Omit<StoreIndexOptions, 'verify'> {
  readonly scavengeStates?: ScavengeStates;
  readonly cacheBytes?: number;
}

/** What restoring needs of the world, whatever is restored. */
export interface RestoreWorld {
  /** Over the directory to restore to. */
  readonly target: Storage;
  /** Removes first what Skua keeps in a directory that is not empty. Default false: `directory_not_empty`. */
  readonly force?: boolean;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly clock: Clock;
  readonly start: DryStart;
  /** Marks of redaction to apply where their events are restored, besides those that the restore finds by itself. */
  readonly redactions?: MarkColumns;
  /**
   * Files that are written at the same time. Default 2 from a directory by one thread, else 4; RESTORE_PARALLEL_MAX at
   * most.
   */
  readonly parallel?: number;
  readonly onProgress?: (progress: RestoreProgress) => void;
  readonly signal?: AbortSignal;
}

export interface RestoreProgress {
  readonly phase: 'copying' | 'opening';
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/**
 * From one disk to another, more than two files at a time on one thread only push each other out of the processor's
 * cache.
 */
const PARALLEL_DEFAULT = 4;
const PARALLEL_LOCAL_DEFAULT = 2;
/** As many jobs may wait without one being refused, and so many pieces are in memory. */
const RESTORE_PARALLEL_MAX = 32;

/** `isLocal`: from one disk of this machine to another. `hasThreads`: by threads of their own. */
export function parallelOf({ parallel }: RestoreWorld, isLocal: boolean, hasThreads: boolean): number {
  return Math.max(
    1,
    Math.min(parallel ?? (isLocal && !hasThreads ? PARALLEL_LOCAL_DEFAULT : PARALLEL_DEFAULT), RESTORE_PARALLEL_MAX),
  );
}

/** Ends a restore, which leaves its marker. Throws `aborted`. */
export function endRestoreWhenAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true)
    throw new SkuaError(
      'aborted',
      "The restore was interrupted. Repeat it with --force: until then the directory can't be opened.",
    );
}

/** What a restore did. */
export interface RestoreReport {
  /** Null for a copy of files, which has none. */
  readonly backupId: string | null;
  /** Where the restored log ends. */
  readonly position: number;
  /**
   * Time of the last write, where that is an earlier moment than the one that was asked for (milliseconds since 1970);
   * null else.
   */
  readonly earlierMs: number | null;
  /** The new id of the directory, so that its backups never mix with those of the node that was backed up. */
  readonly nodeId: string;
  readonly files: number;
  readonly bytes: number;
  /** Events that read as empty, since they were redacted where the restored log does not reach. */
  readonly redacted: number;
  readonly warnings: readonly string[];
  /** What was damaged and left out: empty unless damage was allowed. */
  readonly skipped: readonly Skipped[];
}

export interface Skipped {
  /** Of the damaged object; null where it is a file that was damaged before it was backed up. */
  readonly key: string | null;
  /** The file of the data directory that it would have become. */
  readonly path: string;
  readonly reason: string;
  /** What of the log is lost by it, in positions; null where the loss is made good, as that of an index is. */
  readonly lost: { readonly from: number; readonly to: number; readonly chunks: number } | null;
}

/**
 * Creates a file of exactly `sizeBytes` from content that comes in pieces, and makes it durable with one sync. A file
 * that could not be written whole stays, for the marker of the restore keeps everybody from using it. `check` is asked
 * before the sync.
 */
export async function writeFile(
  storage: Storage,
  path: string,
  content: AsyncIterable<Uint8Array>,
  sizeBytes: number,
  { watch, check, isSealed }: { watch?: Watch; check?: () => void; isSealed?: boolean } = {},
): Promise<void> {
  const file = await storage.create(path);
  try {
    const end =
      path === EXISTENCE_DATA_PATH
        ? await writeUsedPages(file, content, watch)
        : await writeContent(file, 0, content, watch);
    if (end !== sizeBytes)
      throw new SkuaError(
        'repository_damaged',
        `The backup has only ${end} of the ${sizeBytes} bytes of ${path}. Restore from another backup.`,
        { path, key: path },
      );
    check?.();
    if (file.size !== sizeBytes) await file.truncate(sizeBytes);
    await file.sync();
    if (isSealed === true) await file.seal();
  } finally {
    await file.close();
  }
}

/**
 * Writes what is not zeros of a new existence filter, and returns where the content ends. Most of a small store's is.
 */
async function writeUsedPages(file: StorageFile, content: AsyncIterable<Uint8Array>, watch?: Watch): Promise<number> {
  let end = 0;
  for await (const bytes of content) {
    watch?.(bytes);
    for (const [from, to] of nonZeroRuns(bytes, PAGE_BYTES)) await file.writeAt(end + from, bytes.subarray(from, to));
    end += bytes.length;
  }
  return end;
}

/** A chunk file that is as it was backed up, and was damaged already then. */
export function damagedBefore(path: string): SkuaError {
  return new SkuaError(
    'log_corrupt',
    `${path} does not match the MD5 in its footer: the file was damaged before it was backed up. Restore from an earlier backup, or accept the loss with --allow-damaged where possible; run \`skua verify\` on the source directory to see whether it is damaged there.`,
    { file: path },
  );
}

export async function writeCheckpoint(storage: Storage, path: string, value: number): Promise<void> {
  const bytes = new Uint8Array(8);
  putI64(bytes, 0, value);
  await createFile(storage, path, bytes);
}

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

/**
 * Writes one file of a backup, verified and durable (a chunk that was never proved against its MD5 too), on a thread
 * of its own where there are lanes and the file is worth it.
 */
export async function restoreFile(
  { repository, world, lanes, onBytes }: FileRestore,
  file: ManifestFile,
  { isSealed = false, isUnproven = false }: { readonly isSealed?: boolean; readonly isUnproven?: boolean } = {},
): Promise<void> {
  const { target, signal } = world;
  const { blob, sizeBytes, path } = file;
  endRestoreWhenAborted(signal);
  const lane = lanesFor(lanes, sizeBytes);
  if (lane === null) {
    const proof = isUnproven ? new ChunkProof(world.digests, path, sizeBytes) : null;
    const watch = (bytes: Uint8Array): void => {
      endRestoreWhenAborted(signal);
      proof?.add(bytes);
      onBytes(bytes.length);
    };
    return writeFile(target, path, repository.readWholeBlob(file, signal), sizeBytes, {
      watch,
      isSealed,
      check: () => proof?.check(damagedBefore),
    });
  }
  await restoreInLane(lane, { world, onBytes }, { path, ref: { blob, sizeBytes }, at: null, isSealed, isUnproven });
}

/** Writes a blob by a job, and waits until it is durable. */
export async function restoreInLane(
  { jobs, repository }: BackupLanes,
  { world: { signal, clock }, onBytes }: Pick<FileRestore, 'world' | 'onBytes'>,
  what: Pick<RestoreFileArgs, 'path' | 'ref' | 'at' | 'isSealed' | 'isUnproven'>,
): Promise<void> {
  let counted = 0;
  const onDone = (done: number): void => {
    onBytes(done - counted);
    counted = done;
  };
  const args: RestoreFileArgs = { repository, ...what, nowMs: clock.nowMs() };
  await jobs.run(RESTORE_FILE_JOB, args, { ...(signal && { signal }), onProgress: ({ done }) => onDone(done) });
  onDone(what.ref.sizeBytes);
}

/** Name of the job that restores one file in a lane. It rejects as doing the same on the spot does. */
export const RESTORE_FILE_JOB = 'backup.restore-file';

export interface RestoreFileArgs {
  readonly repository: RepositorySpec;
  readonly path: string;
  readonly ref: BlobRef;
  /** Where the content begins in a file that is there already; null for a file that is made. */
  readonly at: number | null;
  readonly isSealed: boolean;
  /** It is a chunk that was never proved: one that does not fit its MD5 is refused. */
  readonly isUnproven?: boolean;
  readonly nowMs: number;
}

export async function restoreFileJob(
  { repository: spec, path, ref, at, isSealed, isUnproven = false, nowMs }: RestoreFileArgs,
  context: JobContext,
): Promise<void> {
  const { repository } = await openForJob(spec, false, nowMs, context);
  const proof = isUnproven ? new ChunkProof(context.digests, path, ref.sizeBytes) : null;
  let done = 0;
  async function* content(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of repository.readWholeBlob(ref)) {
      await context.checkpoint();
      proof?.add(piece);
      done += piece.length;
      context.progress({ done, total: ref.sizeBytes, unit: 'bytes' });
      yield piece;
    }
  }
  try {
    if (at === null)
      await writeFile(context.storage, path, content(), ref.sizeBytes, {
        isSealed,
        check: () => proof?.check(damagedBefore),
      });
    else await writePart(context.storage, path, at, content());
  } finally {
    await repository.close();
  }
}

async function writePart(
  storage: Storage,
  path: string,
  at: number,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const file = await storage.open(path, 'write');
  try {
    await writeContent(file, at, content);
    await file.sync();
  } finally {
    await file.close();
  }
}
