import { i64 } from '../../base/bytes.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { existenceBytesOf } from '../../index/format/existence-files.ts';
import {
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  ongoingFileBytes,
  parseChunkFileNames,
} from '../../log/format/chunk-format.ts';
import type { ChunkFileName } from '../../log/format/chunk-format.ts';
import { ChunkProof } from '../../log/format/chunk-proof.ts';
import {
  COPY_MARKER,
  putRestoreMarker,
  refuseUnfinishedRestore,
  removeRestoreMarker,
} from '../../log/format/markers.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import { isProofName, PROOF_FOLDER } from '../../integrity/format/chain-layout.ts';
import { writeContent } from '../../ports/write-content.ts';
import { DATABASE_PATH, isIndexPath } from '../format/manifest-shape.ts';
import { renewNodeId } from '../../store/format/node-id.ts';
import { MARKS_FILE, readMarksTable } from '../../streams/format/marks-table.ts';
import { NO_MARKS } from '../../streams/format/mark-columns.ts';
import { putFoundMarks } from '../restore/newer-marks.ts';
import { clearForRestore, DATA_FOLDERS, dryStart, requireEmpty, requireRoom } from '../restore/restore-directory.ts';
import {
  damagedBefore,
  endRestoreWhenAborted,
  parallelOf,
  writeCheckpoint,
  writeFile,
} from '../restore/restore-files.ts';
import type { RestoreReport, RestoreWorld } from '../restore/restore-files.ts';

export interface CopyRestoreOptions extends RestoreWorld {
  /** Over the directory with the copied files, which no process uses meanwhile. */
  readonly source: Storage;
  /** The directory, for messages. */
  readonly place: string;
  /** Leaves `index/` out, so that it is built anew from the log. Default false. */
  readonly indexless?: boolean;
}

const READ_BYTES = 1_048_576;
const CHECKPOINTS = ['writer.chk', 'chaser.chk', 'epoch.chk', 'proposal.chk'] as const;

const UNKNOWN_REDACTIONS =
  'A file copy knows no redactions that are newer than itself: if there were any, restore it again with --redactions, or those events can be read.';

/**
 * Restores a copy of files: all of them, then `chaser.chk` as `truncate.chk`, by which the dry start cuts off what was
 * copied in part. Marker, clearing and errors are those of `restoreBackup`; and `file_not_found` where there is no
 * copy, `backup_failed` for one that was not finished, `log_corrupt` for a chunk file that does not fit its MD5. A wish
 * that can't be met changes nothing.
 */
export async function restoreCopy(options: CopyRestoreOptions): Promise<RestoreReport> {
  const { source, place, target, force = false } = options;
  if (!force) await requireEmpty(target);
  const release = await lockSource(source);
  try {
    const copy = await planCopy(source, place, options.indexless === true);
    if (!force) await requireRoom(target, copy.bytesTotal);
    // What is refused up to here leaves no folder and no lock.
    const lock = await target.lock();
    try {
      if (!force) await requireEmpty(target);
      if (force) {
        await clearForRestore(target, place);
        await requireRoom(target, copy.bytesTotal);
      } else await putRestoreMarker(target, place);
      const report = await new CopyRestore(options, copy).run();
      await removeRestoreMarker(target);
      return report;
    } finally {
      await lock.release();
    }
  } finally {
    await release();
  }
}

/**
 * A directory that a node uses is no copy. One that can't be written to, such as a read-only disk, can't be used by a
 * node either.
 */
async function lockSource(source: Storage): Promise<() => Promise<void>> {
  try {
    const lock = await source.lock();
    return () => lock.release();
  } catch (error) {
    if (isSkuaError(error, 'directory_locked')) throw error;
    return async () => {};
  }
}

interface CopyPlan {
  readonly checkpoints: Readonly<Record<(typeof CHECKPOINTS)[number], number>>;
  readonly chunkSize: number;
  readonly chunks: readonly ChunkFileName[];
  /** Paths under `index/`, and those of the chain of hashes. */
  readonly index: readonly string[];
  readonly bytesTotal: number;
  readonly warnings: readonly string[];
}

async function planCopy(source: Storage, location: string, indexless: boolean): Promise<CopyPlan> {
  if ((await source.size(COPY_MARKER)) !== null)
    throw new SkuaError(
      'backup_failed',
      `The copy in ${location} is unfinished: repeat \`skua backup copy\` into it, or restore another one.`,
      { place: location },
    );
  await refuseUnfinishedRestore(source);
  const chunks = parseChunkFileNames(await source.list(''));
  const checkpoints = {
    'writer.chk': await valueOf(source, 'writer.chk', location),
    'chaser.chk': await valueOf(source, 'chaser.chk', location),
    'epoch.chk': await valueOf(source, 'epoch.chk', null),
    'proposal.chk': await valueOf(source, 'proposal.chk', null),
  };
  if (chunks.length === 0)
    throw new SkuaError(
      'file_not_found',
      `There are no chunk files in ${location}: it is not a copy of a data directory.`,
      { place: location },
    );
  const { chunkSize } = decodeHeader(chunks[0]!.name, await firstBytes(source, chunks[0]!.name, HEADER_BYTES));
  const writer = checkpoints['writer.chk'];
  const inside = chunks.filter(({ number }) => number * chunkSize < writer);
  const beyond = chunks.filter(({ number }) => number * chunkSize > writer);
  const warnings =
    beyond.length === 0
      ? []
      : [
          `${beyond.length} chunk files beyond the copied writer.chk (position ${writer}) were left out, ${beyond[0]!.name} first: they were copied after it.`,
        ];
  const index: string[] = [];
  for (const name of await source.list(PROOF_FOLDER)) if (isProofName(name)) index.push(`${PROOF_FOLDER}/${name}`);
  for (const folder of indexless ? [] : DATA_FOLDERS.filter((name) => name !== '' && name !== PROOF_FOLDER))
    for (const name of await source.list(folder)) if (isOfIndex(`${folder}/${name}`)) index.push(`${folder}/${name}`);
  let bytesTotal = 0;
  for (const path of [...index, ...inside.map(({ name }) => name)]) bytesTotal += (await source.size(path)) ?? 0;
  return { checkpoints, chunkSize, chunks: inside, index, bytesTotal, warnings };
}

/** Of the scavenge database also what was written and not yet taken into it. */
function isOfIndex(path: string): boolean {
  return isIndexPath(path) || path === DATABASE_PATH || path === `${DATABASE_PATH}-wal`;
}

/** The value of a checkpoint file. Where it is missing: -1, or `file_not_found` naming the place. */
async function valueOf(source: Storage, name: string, location: string | null): Promise<number> {
  const size = await source.size(name);
  if (size === 8) return i64(await firstBytes(source, name, 8), 0);
  if (size === null) {
    if (location === null) return -1;
    throw new SkuaError('file_not_found', `There is no ${name} in ${location}: it is not a copy of a data directory.`, {
      path: name,
      place: location,
    });
  }
  throw new SkuaError(
    'checkpoint_corrupt',
    `${name} has ${size} bytes instead of 8: the copy is damaged. Restore another one.`,
    { file: name, offset: 0 },
  );
}

async function firstBytes(source: Storage, path: string, length: number): Promise<Uint8Array> {
  const file = await source.open(path, 'read');
  try {
    return (await file.read(0, length)).slice();
  } finally {
    await file.close();
  }
}

class CopyRestore {
  readonly #options: CopyRestoreOptions;
  readonly #copy: CopyPlan;
  #bytes = 0;

  constructor(options: CopyRestoreOptions, copy: CopyPlan) {
    this.#options = options;
    this.#copy = copy;
  }

  async run(): Promise<RestoreReport> {
    const { source, target, ids, digests, redactions } = this.#options;
    const parallel = parallelOf(this.#options, true, false);
    const { checkpoints, chunks, index, warnings } = this.#copy;
    await inParallel(chunks.length, parallel, (i) =>
      this.#reading(chunks[i]!.name, (file) => this.#chunk(chunks[i]!, file)),
    );
    await inParallel(index.length, parallel, (i) =>
      this.#reading(index[i]!, (file) => writeFile(target, index[i]!, this.#contentOf(file, file.size), file.size)),
    );
    const own = await readMarksTable(source, MARKS_FILE, digests);
    await putFoundMarks(target, [own ?? NO_MARKS, redactions ?? NO_MARKS], digests);
    const nodeId = await renewNodeId(target, ids);
    const position = Math.min(checkpoints['chaser.chk'], checkpoints['writer.chk']);
    for (const name of CHECKPOINTS.filter((one) => one !== 'writer.chk'))
      await writeCheckpoint(target, name, checkpoints[name]);
    await writeCheckpoint(target, 'truncate.chk', checkpoints['chaser.chk']);
    await writeCheckpoint(target, 'writer.chk', checkpoints['writer.chk']);
    const existenceFilterBytes = await existenceBytesOf(this.#options.target);
    const redacted = await dryStart(
      existenceFilterBytes === null
        ? this.#options
        : { ...this.#options, start: { existenceFilterBytes, ...this.#options.start } },
      position,
      true,
    );
    return {
      backupId: null,
      earlierMs: null,
      position,
      nodeId,
      files: chunks.length + index.length + CHECKPOINTS.length + 1,
      bytes: this.#bytes,
      redacted,
      warnings: redactions === undefined ? [...warnings, UNKNOWN_REDACTIONS] : warnings,
      skipped: [],
    };
  }

  async #reading(path: string, work: (file: StorageFile) => Promise<void>): Promise<void> {
    const file = await this.#options.source.open(path, 'read');
    try {
      await work(file);
    } finally {
      await file.close();
    }
  }

  async #chunk({ name, number }: ChunkFileName, file: StorageFile): Promise<void> {
    const { digests, target } = this.#options;
    const { checkpoints, chunkSize } = this.#copy;
    const local = checkpoints['writer.chk'] - number * chunkSize;
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    // In the chunk with the log's end only what lies before it was copied for certain.
    if (local < chunkSize && !header.isScavenged) return this.#lastChunk(name, file, local);
    decodeFooter(name, await file.read(Math.max(0, file.size - FOOTER_BYTES), FOOTER_BYTES), file.size);
    const proof = new ChunkProof(digests, name, file.size);
    await writeFile(target, name, this.#contentOf(file, file.size), file.size, {
      watch: (bytes) => proof.add(bytes),
      check: () => proof.check(damagedBefore),
      isSealed: true,
    });
  }

  async #lastChunk(name: string, file: StorageFile, local: number): Promise<void> {
    const { target } = this.#options;
    const created = await target.create(name);
    try {
      const end = await writeContent(created, 0, this.#contentOf(file, HEADER_BYTES + local));
      if (end !== HEADER_BYTES + local)
        throw new SkuaError(
          'log_corrupt',
          `${name} has ${end} bytes, and writer.chk names a later position: the copy is incomplete. Restore another one.`,
          { file: name, offset: end },
        );
      await created.truncate(ongoingFileBytes(this.#copy.chunkSize));
      await created.sync();
    } finally {
      await created.close();
    }
  }

  async *#contentOf(file: StorageFile, to: number): AsyncGenerator<Uint8Array, void, undefined> {
    const { signal, onProgress } = this.#options;
    const block = new Uint8Array(Math.min(READ_BYTES, to));
    for (let at = 0; at < to; at += READ_BYTES) {
      endRestoreWhenAborted(signal);
      const bytes = await file.read(at, Math.min(READ_BYTES, to - at), block);
      yield bytes;
      this.#bytes += bytes.length;
      onProgress?.({ phase: 'copying', bytesDone: this.#bytes, bytesTotal: this.#copy.bytesTotal });
    }
  }
}
