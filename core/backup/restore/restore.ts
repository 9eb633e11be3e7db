import { isSkuaError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { existenceBytesOf } from '../../index/format/existence-files.ts';
import { putRestoreMarker, removeRestoreMarker } from '../../log/format/markers.ts';
import { PROOF_FOLDER } from '../../integrity/format/chain-layout.ts';
import type { Repository } from '../repository/api.ts';
import type { Manifest, ManifestFile } from '../format/snapshot-manifest.ts';
import type { BackupLanes } from '../repository/repository.ts';
import { renewNodeId } from '../../store/format/node-id.ts';
import { NO_MARKS } from '../../streams/format/mark-columns.ts';
import { chooseRestore } from './choose.ts';
import type { ChooseOptions, RestoreChoice, RestorePlan } from './choose.ts';
import { type FoundMarks, marksOfRepository, putFoundMarks } from './newer-marks.ts';
import { clearForRestore, dryStart, requireEmpty, requireRoom } from './restore-directory.ts';
import { filesAtOnce, restoreFile, writeCheckpoint } from './restore-files.ts';
import type { FileRestore, RestoreReport, RestoreWorld, Skipped } from './restore-files.ts';
import { restoreLog } from './restore-log.ts';
import type { RestoredLog } from './restore-log.ts';

export interface RestoreOptions extends RestoreWorld, ChooseOptions {
  readonly repository: Repository;
  readonly choice: RestoreChoice;
  /** Leaves `index/` out, so that it is built anew from the log. Default false. */
  readonly indexless?: boolean;
  /**
   * Read every chunk file back when it is written, and compare its MD5. That it was sound when it was backed up is
   * proved either way: by the backup that stored it, or on its way now. By default only where damage is allowed; drills
   * do it too.
   */
  readonly checkMd5?: boolean;
  /** Jobs that reach the target and the repository. */
  readonly lanes?: BackupLanes | undefined;
}

/**
 * Restores a backup into the directory of a stopped node, which is empty or cleared by `force`, and proves that it
 * opens. Every byte is verified on its way. The marker that no start passes stands from the first change to the last:
 * what a crash, an error or an abort leaves is completed by a repetition with `force`. A wish that can't be met changes
 * nothing.
 *
 * With `allowDamaged` the log ends before the first damage, and damaged files that can be made anew are left out; the
 * report says what is lost. Rejects as `chooseRestore` does, and with `directory_locked`, `directory_not_empty`,
 * `repository_damaged`, `log_corrupt` (damaged before it was backed up, where that is looked for), `disk_full`,
 * `backup_failed` (the result does not open as it should), `aborted`.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { repository, choice, target, force = false } = options;
  if (!force) await requireEmpty(target);
  const plan = await chooseRestore(repository, choice, options);
  const newer = await marksOfRepository(repository, plan.manifest, options.digests);
  if (!force) await requireRoom(target, bytesOf(plan, options.indexless === true));
  // What is refused up to here leaves no folder and no lock.
  const lock = await target.lock();
  try {
    if (!force) await requireEmpty(target);
    if (force) {
      await clearForRestore(target, repository.place);
      await requireRoom(target, bytesOf(plan, options.indexless === true));
    } else await putRestoreMarker(target, repository.place);
    const report = await restorePlan(options, plan, newer);
    await removeRestoreMarker(target);
    return report;
  } finally {
    await lock.release();
  }
}

async function restorePlan(options: RestoreOptions, plan: RestorePlan, newer: FoundMarks): Promise<RestoreReport> {
  const { repository, target, ids, digests, redactions = NO_MARKS, onProgress } = options;
  const bytesTotal = bytesOf(plan, options.indexless === true);
  let bytes = 0;
  const onBytes = (count: number): void => {
    bytes += count;
    onProgress?.({ phase: 'copying', bytesDone: Math.min(bytes, bytesTotal), bytesTotal });
  };
  const writing: FileRestore = { repository, world: options, lanes: options.lanes, onBytes };
  const { log, skipped, indexFiles } = await writeFiles(options, plan, writing);
  await putFoundMarks(target, [newer.marks, redactions], digests);
  const nodeId = await renewNodeId(target, ids);
  await writeCheckpoints(options, plan.manifest, log);
  const existenceFilterBytes = await existenceBytesOf(options.target);
  const redacted = await dryStart(
    existenceFilterBytes === null ? options : { ...options, start: { existenceFilterBytes, ...options.start } },
    log.position,
  );
  return {
    backupId: plan.manifest.id,
    position: log.position,
    earlierMs: plan.earlierMs,
    nodeId,
    files: log.files + indexFiles,
    bytes,
    redacted,
    warnings: [...plan.warnings, ...newer.warnings],
    skipped,
  };
}

interface WrittenFiles {
  readonly log: RestoredLog;
  readonly indexFiles: number;
  readonly skipped: readonly Skipped[];
}

/**
 * Log and index side by side. Where damage may be passed over, what there is of the log decides whether an index fits
 * it, so that the log comes first.
 */
async function writeFiles(
  { allowDamaged = false, indexless = false, checkMd5 = allowDamaged }: RestoreOptions,
  plan: RestorePlan,
  writing: FileRestore,
): Promise<WrittenFiles> {
  const setsAt = (position: number): ManifestFile[][] => [
    ...(indexless ? [] : indexSets(plan.manifest, position)),
    ...proofSets(plan.manifest),
  ];
  const options = { ...writing, plan, allowDamaged, checkMd5 };
  if (!allowDamaged) {
    const beside = setsAt(plan.position).flat();
    const log = await restoreLog({ ...options, beside });
    return { log, indexFiles: beside.length, skipped: log.skipped };
  }
  const log = await restoreLog(options);
  const skipped = [...log.skipped];
  let indexFiles = 0;
  for (const set of setsAt(log.position))
    indexFiles += (await restoreSet(writing, set, (one) => skipped.push(one))) ?? 0;
  return { log, indexFiles, skipped };
}

function bytesOf({ manifest, position }: RestorePlan, indexless: boolean): number {
  const log = manifest.chunks
    .filter(({ startNumber }) => startNumber * manifest.chunkSizeBytes < position)
    .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const behind = Math.max(0, position - ((manifest.chunks.at(-1)?.endNumber ?? -1) + 1) * manifest.chunkSizeBytes);
  const rest = [...(indexless ? [] : indexSets(manifest, position)), ...proofSets(manifest)].flat();
  return rest.reduce((sum, { sizeBytes }) => sum + sizeBytes, log + behind);
}

/**
 * Written last: without them the log has no end. `truncate.chk` asks the dry start to cut off whatever may stand behind
 * the end.
 */
async function writeCheckpoints(
  { target }: RestoreOptions,
  { checkpoints }: Manifest,
  { position, shippedEpoch }: RestoredLog,
): Promise<void> {
  const epoch = shippedEpoch?.position ?? (checkpoints.epoch < position ? checkpoints.epoch : -1);
  await writeCheckpoint(target, 'chaser.chk', position);
  await writeCheckpoint(target, 'epoch.chk', epoch);
  await writeCheckpoint(target, 'proposal.chk', Math.max(checkpoints.proposal, shippedEpoch?.number ?? -1));
  await writeCheckpoint(target, 'truncate.chk', position);
  await writeCheckpoint(target, 'writer.chk', position);
}

/** Sets of files that are restored whole or not at all; none for a log that ends before they were made. */
function indexSets(manifest: Manifest, position: number): ManifestFile[][] {
  const sets: ManifestFile[][] = [];
  // An index may not know more than the log: it would be discarded.
  if (manifest.index !== null && manifest.index.commitCheckpoint < position) sets.push([...manifest.index.files]);
  if (manifest.scavengeDb !== null && position >= manifest.checkpoints.writer) sets.push([manifest.scavengeDb]);
  return sets;
}

/** The chain of hashes over the log. What it says of a log that reaches further the dry start cuts off. */
function proofSets({ proofs = [] }: Manifest): ManifestFile[][] {
  return proofs.length === 0 ? [] : [[...proofs]];
}

/**
 * Writes one set where damage may be passed over: a damaged set is left out, since it is made anew from the log; null
 * then.
 */
async function restoreSet(
  options: FileRestore,
  files: readonly ManifestFile[],
  onSkipped: (skipped: Skipped) => void,
): Promise<number | null> {
  try {
    await inParallel(files.length, filesAtOnce(options), (i) => restoreFile(options, files[i]!));
    return files.length;
  } catch (error) {
    if (!isSkuaError(error, 'repository_damaged')) throw error;
    for (const { path } of files) await options.world.target.remove(path);
    const isProof = files[0]!.path.startsWith(`${PROOF_FOLDER}/`);
    onSkipped({
      key: error.data.key ?? null,
      path: files[0]!.path,
      reason: `${error.message} The ${files.length} files of this group are left out${isProof ? ', so a new hash chain must be started' : ' and rebuilt from the log'}.`,
      lost: null,
    });
    return null;
  }
}
