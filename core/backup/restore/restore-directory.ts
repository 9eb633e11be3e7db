import { ATTRIBUTE_FOLDERS } from '../../attributes/format/attribute-folders.ts';
import { SkuaError } from '../../base/errors.ts';
import { putRestoreMarker, RESTORE_MARKER } from '../../log/format/markers.ts';
import { isOwnName, listedNames } from '../../ports/own-names.ts';
import type { Storage } from '../../ports/storage.ts';
import { PROOF_FOLDER } from '../../integrity/format/chain-layout.ts';
import { openStore } from '../../store/store.ts';
import { MARKS_FILE, writeMarksTable } from '../../streams/format/marks-table.ts';
import { endRestoreWhenAborted, type RestoreWorld } from './restore-files.ts';

/** Folders with files of Skua, in the order in which they are cleared. The log goes last. */
export const DATA_FOLDERS = [
  ...ATTRIBUTE_FOLDERS,
  'index/scavenging',
  'index/stream-existence',
  'index',
  PROOF_FOLDER,
  '',
];
const CHUNK = /^chunk-/;

/** Files of ours; about those of others the lock decides. */
async function filesOf(storage: Storage): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of DATA_FOLDERS)
    for (const name of await storage.list(folder)) paths.push(folder === '' ? name : `${folder}/${name}`);
  return paths.filter(isOwnName);
}

/** Throws `directory_not_empty` (data: files, isUnfinished). */
export async function requireEmpty(storage: Storage): Promise<void> {
  const files = await filesOf(storage);
  if (files.length === 0) return;
  const isUnfinished = files.includes(RESTORE_MARKER);
  const what = isUnfinished ? 'holds an unfinished restore' : `is not empty: it holds ${listedNames(files)}`;
  throw new SkuaError(
    'directory_not_empty',
    `The directory to restore to ${what}. Name an empty one, or give --force to remove the data in it first.`,
    { files: files.length, isUnfinished },
  );
}

/**
 * Throws `disk_full` (data: bytes, free). Asked before anything is made, or where a directory is cleared first, when
 * that is done.
 */
export async function requireRoom(storage: Storage, bytes: number): Promise<void> {
  const free = await storage.freeBytes();
  if (free < bytes)
    throw new SkuaError(
      'disk_full',
      `The restore needs ${bytes} bytes, and ${free} are free. Free space, then repeat it, with --force if it was given.`,
      { bytes, free },
    );
}

/**
 * Removes what Skua keeps in a directory, and nothing else; the marker of a restore stands from before the first
 * removal, so that no start takes what a crash leaves for a whole. The caller holds the lock.
 */
export async function clearForRestore(storage: Storage, from: string): Promise<void> {
  await putRestoreMarker(storage, from);
  for (const folder of DATA_FOLDERS) {
    const names = (await storage.list(folder)).filter(
      (name) => isOwnName(folder === '' ? name : `${folder}/${name}`) && (folder !== '' || name !== RESTORE_MARKER),
    );
    // The end of the log goes first, so that what is left is never a log with gaps.
    const ordered =
      folder === ''
        ? [...names.filter((name) => !CHUNK.test(name)), ...names.filter((name) => CHUNK.test(name)).reverse()]
        : names;
    for (const name of ordered) await storage.remove(folder === '' ? name : `${folder}/${name}`);
  }
}

/**
 * Opens what was restored as a node does, without writing to its log: that does what `truncate.chk` asks, builds the
 * index or brings it up to the log, and proves that the directory can be opened; `verifyIndex` for tables whose
 * checksums were not compared. Of the marks of redaction beside the log it leaves those for events that are there, and
 * have none; resolves with how many these are. The caller holds the lock. Throws `backup_failed` when the log ends
 * somewhere else than at `position`, and what opening a store throws.
 */
export async function dryStart(world: RestoreWorld, position: number, verifyIndex = false): Promise<number> {
  const {
    ids,
    digests,
    clock,
    start: { jobs, log, meter, scavengeStates, cacheBytes, ...index },
    onProgress,
    signal,
  } = world;
  endRestoreWhenAborted(signal);
  const open = await openStore({
    world: { storage: underLock(world.target), ids, digests, clock, jobs, log, meter },
    // What comes from a repository was verified on its way.
    log: { isRestoring: true, writeEpoch: false, verifyChunks: false, truncationBytesMax: -1 },
    index: { ...index, verify: verifyIndex },
    scavenge: { config: { repairHistory: false }, ...(scavengeStates !== undefined && { states: scavengeStates }) },
    ...(cacheBytes !== undefined && { cacheBytes }),
    onProgress: ({ bytesDone, bytesTotal }) => {
      onProgress?.({ phase: 'opening', bytesDone, bytesTotal });
      endRestoreWhenAborted(signal);
    },
  });
  const end = open.status().checkpoints.writer;
  const { restoredMarks } = open;
  await open.close();
  if (end !== position)
    throw new SkuaError(
      'backup_failed',
      `The restored log ends at ${end} instead of ${position}: the backup is incomplete. Restore from another backup, and run \`skua backup verify\` on this one.`,
      { expected: position, actual: end },
    );
  const redacted = restoredMarks.positions.length;
  if (redacted > 0) await writeMarksTable(world.target, MARKS_FILE, restoredMarks, digests);
  else await world.target.remove(MARKS_FILE);
  return redacted;
}

/** The same storage for work under a lock that the caller holds. */
function underLock(storage: Storage): Storage {
  return {
    list: (folder) => storage.list(folder),
    size: (path) => storage.size(path),
    modifiedMs: (path) => storage.modifiedMs(path),
    open: (path, access) => storage.open(path, access),
    create: (path) => storage.create(path),
    rename: (from, to) => storage.rename(from, to),
    remove: (path) => storage.remove(path),
    freeBytes: () => storage.freeBytes(),
    lock: async () => ({ release: async () => {} }),
  };
}
