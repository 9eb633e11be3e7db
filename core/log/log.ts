import { refuseAttached, refuseUnfinishedRestore } from './format/markers.ts';
import type { BlockCache } from '../cache/cache.ts';
import { SkuaError } from '../base/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';
import { isExpectedName, isLeftoverName, listedNames } from '../ports/own-names.ts';
import type { Storage } from '../ports/storage.ts';
import { BlockSums, checkBlocks, settleBlocks } from './block-sums/block-sums.ts';
import { closeCheckpoints, openCheckpoints, type Checkpoints } from './format/checkpoint.ts';
import { Chunk, openCompleted } from './chunk/chunk.ts';
import {
  CHUNK_SIZE_DEFAULT_BYTES,
  CHUNK_SIZE_MAX_BYTES,
  CHUNK_SIZE_MIN_BYTES,
  chunkNumberAt,
  HEADER_BYTES,
  parseChunkFileNames,
  takeInventory,
  type ChunkFileName,
  type ChunkInventory,
} from './format/chunk-format.ts';
import { ChunkTable } from './chunk-table/chunk-table.ts';
import { isFinal } from '../ports/durability.ts';
import { OngoingChunk, type OngoingOptions } from './chunk/ongoing-chunk.ts';
import { checkRecordEndsAt, findLogEnd, makeWritable, settleCompletion, settleLogEnd } from './log-end/log-end.ts';
import { checkHeaderRange, hasFooter, isEmptyChunk, readHeader } from './format/chunk-files.ts';
import { TransactionLog } from './transaction-log.ts';
import { truncateIfAsked, TRUNCATION_BYTES_MAX } from './log-end/truncation.ts';

export interface OpenLogOptions {
  readonly storage: Storage;
  readonly cache: BlockCache;
  readonly digests: Digests;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
  /** For a new directory only. */
  readonly chunkSizeBytes?: number;
  readonly truncationBytesMax?: number;
  /** Bytes that are zero-filled ahead of the writer. Default 4 MiB. */
  readonly zeroAheadBytes?: number;
  /** The caller is the restore that the directory's marker speaks of. */
  readonly isRestoring?: boolean;
  /**
   * The directory may be a replica of a cluster's log: the program that opens it is that cluster's member, or appends
   * nothing. Default false: `copy_attached`.
   */
  readonly isReplica?: boolean;
  /**
   * Compare the chunk being written with the checksums of its blocks. Default true. Without that they count as they
   * are.
   */
  readonly verifyOngoing?: boolean;
}

/**
 * Opens the log of a data directory and brings it into a state from which it can be appended to. The caller holds the
 * directory's lock. Throws `log_corrupt`, `chunk_missing`, `chunk_unexpected`, `checkpoint_corrupt`, `log_unsupported`
 * or `truncation_too_large`, each naming the file, and `backup_failed` where a restore was begun and has not ended,
 * `copy_attached` for the replica of a cluster's member.
 *
 * In this order: the log is cut back where `truncate.chk` asks for it (`truncateIfAsked`). What remains is taken in
 * (`Opening`): the chunk with the end is named by writer.chk, those before it must be complete, and in it the end is
 * found (`findLogEnd`) and made durable (`settleLogEnd`). Then the checkpoints follow, and what crashes have left is
 * removed.
 *
 * Nothing that a file shows is taken for durable before it has been written again: the process before may have ended
 * because a sync failed, and the system may still show what it could not write.
 */
export async function openLog(options: OpenLogOptions): Promise<TransactionLog> {
  const { storage } = options;
  if (options.isRestoring !== true) await refuseUnfinishedRestore(storage);
  if (options.isReplica !== true) await refuseAttached(storage);
  const hasChunks = parseChunkFileNames(await storage.list('')).length > 0;
  const checkpoints = await openCheckpoints(storage, hasChunks);
  try {
    await truncateIfAsked(options, checkpoints, options.truncationBytesMax ?? TRUNCATION_BYTES_MAX);
    const files = parseChunkFileNames(await storage.list(''));
    return await new Opening(options, checkpoints, await chunkSizeOf(options, files), files).run();
  } catch (error) {
    await closeCheckpoints(checkpoints).catch(() => {});
    throw error;
  }
}

async function chunkSizeOf(options: OpenLogOptions, files: readonly ChunkFileName[]): Promise<number> {
  if (files.length > 0) return (await readHeader(options.storage, files[0]!.name)).chunkSize;
  const size = options.chunkSizeBytes ?? CHUNK_SIZE_DEFAULT_BYTES;
  if (!Number.isInteger(size) || size % 4096 !== 0 || size < CHUNK_SIZE_MIN_BYTES || size > CHUNK_SIZE_MAX_BYTES) {
    throw new SkuaError(
      'bad_option',
      `A chunk size of ${size} bytes is not supported: give a multiple of 4096 from ${CHUNK_SIZE_MIN_BYTES} to ${CHUNK_SIZE_MAX_BYTES}.`,
      { value: size },
    );
  }
  return size;
}

/** The steps of taking in the files of a log, with what they share. */
class Opening {
  readonly #options: OpenLogOptions;
  readonly #checkpoints: Checkpoints;
  readonly #chunkSize: number;
  #files: readonly ChunkFileName[];
  readonly #table: ChunkTable;
  readonly #ongoingOptions: OngoingOptions;
  /**
   * Where the end of the log is looked for from: what writer.chk names, or, without that file, what stands in for it.
   */
  #writer: number;
  /** Up to where the chunk being written has checksums on disk; below its start where there are none. */
  #checksummedTo = -1;

  constructor(options: OpenLogOptions, checkpoints: Checkpoints, chunkSize: number, files: readonly ChunkFileName[]) {
    this.#options = options;
    this.#checkpoints = checkpoints;
    this.#chunkSize = chunkSize;
    this.#files = files;
    this.#table = new ChunkTable(chunkSize);
    this.#ongoingOptions = {
      storage: options.storage,
      cache: options.cache,
      digests: options.digests,
      ids: options.ids,
      chunkSize,
      zeroAheadBytes: options.zeroAheadBytes,
    };
    this.#writer = checkpoints.writer.value;
  }

  async run(): Promise<TransactionLog> {
    try {
      return await this.#run();
    } catch (error) {
      await this.#table.close().catch(() => {});
      throw error;
    }
  }

  async #run(): Promise<TransactionLog> {
    const { storage, log } = this.#options;
    const recorded = this.#checkpoints.writer.value;
    const checkpointMissing = this.#checkpoints.writer.wasMissing && this.#files.length > 0;
    if (checkpointMissing) await this.#guessWriter();
    const lastNumber = chunkNumberAt(
      this.#writer,
      this.#chunkSize,
      'writer.chk',
      'Delete it to have the end of the log found from the chunk files.',
    );
    await this.#dropOrphan(lastNumber);
    const inventory = await takeInventory(
      this.#files,
      lastNumber - 1,
      async (file) => (await readHeader(storage, file.name)).endNumber,
    );
    await this.#openCompletedChunks(inventory, lastNumber);
    const ongoing = await this.#openOngoing(inventory, lastNumber, checkpointMissing);
    const end = ongoing?.end ?? this.#writer;
    if (end !== recorded)
      log.warn('writer checkpoint moved to the end of the durable log', { from: recorded, to: end });
    await this.#settleCheckpoints(end);
    await this.#removeLeftovers(inventory);
    this.#table.end = end;
    const opened = ongoing ?? (await OngoingChunk.create(this.#ongoingOptions, Math.floor(end / this.#chunkSize), 1));
    this.#table.put(opened.chunk);
    return new TransactionLog({
      table: this.#table,
      checkpoints: this.#checkpoints,
      ongoing: opened,
      ongoingOptions: this.#ongoingOptions,
      clock: this.#options.clock,
      log,
      checksummedTo: this.#checksummedTo,
    });
  }

  /**
   * All are written, whether they change or not. Of one that only seems to hold its value, a power loss would bring
   * back the one before: a truncation that was done, a writer.chk before a chunk that has been named since.
   */
  async #settleCheckpoints(end: number): Promise<void> {
    const { writer, chaser, epoch, proposal, truncate } = this.#checkpoints;
    await writer.flush(end);
    await chaser.flush(Math.min(chaser.value, end));
    await epoch.flush(epoch.value >= end ? -1 : epoch.value);
    await proposal.flush(proposal.value);
    await truncate.flush(-1);
  }

  /** Without writer.chk the last chunk is searched for its end, or taken as complete when its footer says so. */
  async #guessWriter(): Promise<void> {
    const last = this.#files[this.#files.length - 1]!;
    this.#options.log.warn('writer.chk is missing: the end of the log is found from the chunk files', {
      lastChunk: last.name,
    });
    const header = await readHeader(this.#options.storage, last.name);
    const complete = await hasFooter(this.#options.storage, last.name);
    const start = header.startNumber * this.#chunkSize;
    const end = (header.endNumber + 1) * this.#chunkSize;
    const chaser = this.#checkpoints.chaser.value;
    // What chaser.chk has passed was in the log.
    this.#writer = complete ? end : chaser > start && chaser <= end ? chaser : start;
  }

  /**
   * Files beyond the log's end make the directory suspect. One empty chunk is what a crash between completing a chunk
   * and moving writer.chk leaves behind; it is removed.
   */
  async #dropOrphan(lastNumber: number): Promise<void> {
    const beyond = this.#files.filter((file) => file.number > lastNumber);
    if (beyond.length === 0) return;
    const only = beyond[0]!;
    if (
      beyond.length > 1 ||
      only.number !== lastNumber + 1 ||
      only.version !== 0 ||
      !(await isEmptyChunk(this.#options.storage, only.name))
    ) {
      throw new SkuaError(
        'chunk_unexpected',
        `${only.name} is beyond the end of the log: writer.chk names position ${this.#writer}, in chunk ${lastNumber}. Either writer.chk is too old (delete it, and the end is found from the chunk files) or the file does not belong here.`,
        { file: only.name, writer: this.#writer },
      );
    }
    this.#options.log.warn('empty chunk beyond the end of the log removed', { file: only.name });
    await this.#options.storage.remove(only.name);
    this.#files = this.#files.filter((file) => file !== only);
  }

  async #openCompletedChunks(inventory: ChunkInventory, lastNumber: number): Promise<void> {
    const { storage, cache } = this.#options;
    if (inventory.missing.length > 0) {
      const number = inventory.missing[0]!;
      throw new SkuaError(
        'chunk_missing',
        `The file of chunk ${number} is missing (${inventory.missing.length} in all), though the log reaches to position ${this.#writer}. Restore it from a backup.`,
        { chunk: number, count: inventory.missing.length },
      );
    }
    const boundary =
      this.#writer === lastNumber * this.#chunkSize &&
      !inventory.latest.some((latest) => latest.file.number === lastNumber);
    for (const { file, endNumber } of inventory.latest) {
      if (file.number >= lastNumber) continue;
      if (boundary && endNumber + 1 === lastNumber) {
        if (!(await hasFooter(storage, file.name))) {
          await this.#completeFullChunk(file);
          continue;
        }
        await settleCompletion(storage, file.name);
      }
      this.#table.put(
        await openCompleted(storage, cache, file.name, { number: file.number, endNumber, chunkSize: this.#chunkSize }),
      );
    }
  }

  /** The log ends exactly at a boundary and the chunk before it was never completed. */
  async #completeFullChunk(file: ChunkFileName): Promise<void> {
    const { storage, cache } = this.#options;
    const header = await readHeader(storage, file.name);
    checkHeaderRange(file.name, header, { number: file.number, endNumber: file.number, chunkSize: this.#chunkSize });
    const opened = await storage.open(file.name, 'write');
    const chunk = new Chunk(file.name, cache.attach(opened), { ...header, version: 3 }, null, this.#chunkSize);
    this.#table.put(chunk);
    await checkRecordEndsAt(opened, header, this.#chunkSize);
    await makeWritable(opened, header, this.#chunkSize);
    const ongoing = await OngoingChunk.resume(this.#ongoingOptions, chunk, {
      header,
      sequence: 1,
      sums: new BlockSums(),
    });
    await ongoing.complete();
  }

  async #openOngoing(
    inventory: ChunkInventory,
    lastNumber: number,
    checkpointMissing: boolean,
  ): Promise<OngoingChunk | null> {
    const { storage, cache, digests } = this.#options;
    const latest = inventory.latest.find((candidate) => candidate.file.number === lastNumber);
    const local = this.#writer - lastNumber * this.#chunkSize;
    if (!latest) {
      if (local === 0) return null;
      throw new SkuaError(
        'chunk_missing',
        `The file of chunk ${lastNumber} is missing, though writer.chk names position ${this.#writer} in it. Restore it from a backup.`,
        { chunk: lastNumber },
      );
    }
    const name = latest.file.name;
    const header = await readHeader(storage, name);
    checkHeaderRange(name, header, { number: lastNumber, endNumber: latest.endNumber, chunkSize: this.#chunkSize });
    if (header.isScavenged) return this.#passScavenged(name, local);
    const file = await storage.open(name, 'write');
    const chunk = new Chunk(name, cache.attach(file), { ...header, version: 3 }, null, 0);
    this.#table.put(chunk);
    const found = await findLogEnd(file, header, local, digests, checkpointMissing);
    const blocks = await checkBlocks(storage, file, { header, ...found }, digests, this.#options.verifyOngoing);
    await settleBlocks(storage, this.#options.log, name, blocks);
    // What recovery accepts must be durable before writer.chk names it, and writer.chk before the slots may go.
    await settleLogEnd(file, header, local, found.localEnd);
    await this.#checkpoints.writer.flush(header.startNumber * this.#chunkSize + found.localEnd);
    await makeWritable(file, header, found.localEnd);
    chunk.setDataBytes(found.localEnd);
    const ongoing = await OngoingChunk.resume(this.#ongoingOptions, chunk, {
      header,
      sequence: found.nextSequence,
      sums: blocks.sums,
    });
    this.#checksummedTo = chunk.startPosition + blocks.checksummedTo - HEADER_BYTES;
    return ongoing;
  }

  /** The log's end lies in a scavenged chunk: it is complete, and the log goes on behind it. */
  async #passScavenged(name: string, local: number): Promise<null> {
    const chunk = await openCompleted(this.#options.storage, this.#options.cache, name);
    if (chunk.logicalBytes !== local && local !== 0)
      throw new SkuaError(
        'log_corrupt',
        `${name} is scavenged and ends at ${chunk.logicalBytes} of its chunk, but writer.chk names ${local}.`,
        { file: name, offset: 5 },
      );
    this.#table.put(chunk);
    this.#writer = chunk.endPosition;
    return null;
  }

  async #removeLeftovers(inventory: ChunkInventory): Promise<void> {
    const { storage, log } = this.#options;
    const found = await storage.list('');
    const names = [...inventory.old.map((file) => file.name), ...found.filter(isLeftoverName)];
    const strangers = found.filter((name) => !isExpectedName(name));
    if (strangers.length > 0) log.info('unknown files are left untouched', { files: listedNames(strangers) });
    for (const name of names) {
      try {
        await storage.remove(name);
        log.info('leftover file removed', { file: name });
      } catch (error) {
        // The file does no harm, and the next start tries again.
        if (isFinal(error)) throw error;
        log.warn('leftover file could not be removed', { file: name, reason: (error as Error).message });
      }
    }
  }
}
