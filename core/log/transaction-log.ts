import { HIT, untilHit } from '../base/step.ts';
import { brokenInvariant, isSkuaError, SkuaError } from '../base/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { CommitLog } from '../ports/commit-log.ts';
import type { Log } from '../ports/log.ts';
import { BLOCK_SUMS_INTERVAL_MS } from './block-sums/block-sums.ts';
import { BLOCK_SUMS_FILE, EPOCH_BYTES_MAX, type KnownEpoch, writeBlockSums } from './format/block-sums-file.ts';
import { closeCheckpoints, type Checkpoints } from './format/checkpoint.ts';
import { CHUNK_COUNT_MAX, HEADER_BYTES } from './format/chunk-format.ts';
import type { ChunkTable } from './chunk-table/chunk-table.ts';
import { isFinal } from '../ports/durability.ts';
import { isGroupAt, RecordFrame } from './format/records.ts';
import {
  discardPrepared,
  OngoingChunk,
  type OngoingOptions,
  prepareChunk,
  type PreparedChunk,
} from './chunk/ongoing-chunk.ts';
import { background } from '../base/background.ts';

/** How often the checkpoints follow the log durably. */
const CHECKPOINT_INTERVAL_MS = 1_000;
const NO_BYTES = new Uint8Array(0);

export interface TransactionLogParts {
  readonly table: ChunkTable;
  readonly checkpoints: Checkpoints;
  readonly ongoing: OngoingChunk;
  readonly ongoingOptions: OngoingOptions;
  readonly clock: Clock;
  readonly log: Log;
  /** Position up to which the file of block checksums vouches, at the start. */
  readonly checksummedTo: number;
}

/**
 * The log of one data directory: its chunks, its end and its checkpoints. Durability comes from one sync of the
 * ongoing chunk a group (design decision 5); `writer.chk` and `chaser.chk` follow and are never ahead of it.
 */
export class TransactionLog implements CommitLog {
  readonly table: ChunkTable;
  readonly checkpoints: Checkpoints;
  readonly #parts: TransactionLogParts;
  /** Behind what is durable. Readers see the log up to `table.end`, which `publish` moves here. */
  #end: number;
  readonly #stopping = new AbortController();
  readonly #checkpointing: Promise<void>;
  /** Null between the completion of a chunk and the creation of the next, which a full disk may delay. */
  #ongoing: OngoingChunk | null;
  /** The file of the next chunk, where the end of this one is near. */
  #next: Promise<PreparedChunk> | null = null;
  #sequence = 1;
  /** Position up to which the file of block checksums vouches for the chunk being written. */
  #checksummedTo: number;
  #isSumsFailureTold = false;
  #epoch: KnownEpoch = { position: -1, bytes: NO_BYTES };
  #stopped: SkuaError | null = null;
  #onStop: (error: SkuaError) => void = () => {};

  constructor(parts: TransactionLogParts) {
    this.#parts = parts;
    this.table = parts.table;
    this.checkpoints = parts.checkpoints;
    this.#ongoing = parts.ongoing;
    this.#end = parts.table.end;
    this.#checksummedTo = parts.checksummedTo;
    this.#checkpointing = this.#followWithCheckpoints();
  }

  get chunkSize(): number {
    return this.table.chunkSize;
  }
  get end(): number {
    return this.#end;
  }
  get capacity(): number {
    return this.table.chunkSize;
  }
  /**
   * Position up to which the chunk being written, too, has checksums on disk. Behind completed chunks where there are
   * none yet.
   */
  get checksummedTo(): number {
    return Math.max(this.#checksummedTo, this.#ongoing?.chunk.startPosition ?? this.#end);
  }
  get remaining(): number {
    return this.#ongoing?.remaining ?? this.capacity;
  }

  /** Called once when the writer stops for good. */
  onStop(listener: (error: SkuaError) => void): void {
    this.#onStop = listener;
    if (this.#stopped) listener(this.#stopped);
  }

  async append(group: Uint8Array): Promise<void> {
    if (this.#stopped) throw this.#stopped;
    const start = this.#end;
    const end = start + group.length;
    try {
      if (!isGroupAt(group, start))
        throw brokenInvariant(`A group was appended at ${start} of the log that was not made for that place`, {
          position: start,
        });
      this.#ongoing ??= await this.#createNext();
      await this.#ongoing.append(group);
      if (this.#ongoing.end !== end)
        throw brokenInvariant(
          `A group was appended up to ${end} of the log, and its chunk ends at ${this.#ongoing.end}`,
          { position: start, end },
        );
    } catch (error) {
      throw this.#judged(error);
    }
    this.#end = end;
    this.#followWithWriter();
  }

  publish(): void {
    this.table.end = this.#end;
  }

  /** Neither waited for nor allowed to fail: a checkpoint that stays behind is what the commit slots are for. */
  #followWithWriter(): void {
    try {
      const written = this.checkpoints.writer.write(this.#end);
      if (written !== undefined) written.catch(() => {});
    } catch {
      // The next write or flush of the checkpoint tries again.
    }
  }

  async completeChunk(): Promise<void> {
    if (this.#stopped) throw this.#stopped;
    const ongoing = this.#ongoing;
    if (ongoing === null) return;
    // Appends wait for this: what does not depend on the end of the old chunk is done beside it.
    background(this.#prepareNext());
    try {
      // Completion cuts the commit slots off, so writer.chk must say durably where the data end.
      await this.checkpoints.writer.flush(this.end);
      await ongoing.complete();
      this.#sequence = ongoing.sequence;
      this.#ongoing = null;
      this.#end = ongoing.chunk.endPosition;
      this.publish();
    } catch (error) {
      // The file of the next chunk may be what left no room.
      await this.#discardNext();
      throw this.#judged(error);
    }
    try {
      this.#ongoing = await this.#createNext();
    } catch (error) {
      // The next append tries again and reports what still stands in the way.
      if (isFinal(error)) throw this.#judged(error);
    }
  }

  /**
   * Does work that completes the chunk. The file of the next one is made ready before, so that appends wait less
   * meanwhile.
   */
  async withNextChunk<T>(work: () => Promise<T>): Promise<T> {
    await this.#prepareNext();
    try {
      return await work();
    } finally {
      await this.#discardNext();
    }
  }

  /** Makes the file of the next chunk ready. Whether that succeeds shows when it is needed. */
  async #prepareNext(): Promise<void> {
    if (this.#ongoing === null || this.#stopped || this.#stopping.signal.aborted) return;
    const number = this.#ongoing.chunk.endNumber + 1;
    if (number >= CHUNK_COUNT_MAX) return;
    this.#next ??= prepareChunk(this.#parts.ongoingOptions, number);
    await this.#next.catch(() => {});
  }

  /** The prepared file, or null when there is none. An error after which nothing may be written is thrown. */
  async #takeNext(): Promise<PreparedChunk | null> {
    const next = this.#next;
    this.#next = null;
    return (
      next?.catch((error: unknown) => {
        if (isFinal(error)) throw error;
        return null;
      }) ?? null
    );
  }

  async #discardNext(): Promise<void> {
    const prepared = await this.#takeNext().catch(() => null);
    if (prepared !== null) await discardPrepared(this.#parts.ongoingOptions, prepared);
  }

  async #createNext(): Promise<OngoingChunk> {
    const number = Math.floor(this.end / this.chunkSize);
    if (number >= CHUNK_COUNT_MAX)
      throw new SkuaError('disk_full', `The log has reached its ${CHUNK_COUNT_MAX} chunks and can't grow further.`, {
        limit: CHUNK_COUNT_MAX,
      });
    // writer.chk must point behind the completed chunk before the file of the next one appears.
    await this.checkpoints.writer.flush(this.end);
    const options = this.#parts.ongoingOptions;
    const next = await OngoingChunk.begin(
      options,
      (await this.#takeNext()) ?? (await prepareChunk(options, number)),
      this.#sequence,
    );
    this.table.put(next.chunk);
    return next;
  }

  /** Turns an error after which durability can't be promised into the end of the writer. */
  #judged(error: unknown): unknown {
    const isBroken = isSkuaError(error, 'writer_stopped');
    if (!isFinal(error) && !isBroken) return error;
    if (this.#stopped === null) {
      this.#stopped = isBroken
        ? error
        : new SkuaError(
            'writer_stopped',
            'The log could not be made durable, so nothing more is written. Reads still work. Check the disk, then restart the node: it recovers every acknowledged write.',
            {},
            error,
          );
      this.#parts.log.error('the writer has stopped', { reason: (error as Error).message });
      this.#onStop(this.#stopped);
    }
    return this.#stopped;
  }

  async #followWithCheckpoints(): Promise<void> {
    const { signal } = this.#stopping;
    let sinceSumsMs = 0;
    while (!signal.aborted) {
      await this.#parts.clock.sleep(CHECKPOINT_INTERVAL_MS, signal);
      if (signal.aborted) return;
      // A checkpoint that can't be written now is written later, or found from the commit slots after a crash.
      await this.flushCheckpoints().catch((error: unknown) => this.#judged(error));
      sinceSumsMs += CHECKPOINT_INTERVAL_MS;
      if (sinceSumsMs < BLOCK_SUMS_INTERVAL_MS) continue;
      sinceSumsMs = 0;
      await this.#saveBlockSums();
    }
  }

  /** Never rejects: the file only vouches for less than it could. */
  async #saveBlockSums(): Promise<void> {
    const ongoing = this.#ongoing;
    if (this.#stopped || ongoing === null) return;
    const { storage, digests } = this.#parts.ongoingOptions;
    try {
      const epoch = await this.#epochIn(ongoing);
      const checksummed = ongoing.checksummed(epoch);
      const position = ongoing.chunk.startPosition + checksummed.end - HEADER_BYTES;
      if (checksummed.end <= HEADER_BYTES || position === this.#checksummedTo) return;
      // Behind writer.chk another program overwrites what it finds, and rightly so.
      await this.flushCheckpoints().catch((error: unknown) => {
        throw this.#judged(error);
      });
      await writeBlockSums(storage, checksummed, digests);
      this.#checksummedTo = position;
      this.#isSumsFailureTold = false;
    } catch (error) {
      if (!this.#isSumsFailureTold)
        this.#parts.log.warn('the checksums of the chunk being written could not be written; will retry', {
          file: BLOCK_SUMS_FILE,
          reason: (error as Error).message,
        });
      this.#isSumsFailureTold = true;
    }
  }

  /** The newest epoch record, where it lies in this chunk. */
  async #epochIn({ chunk }: OngoingChunk): Promise<KnownEpoch> {
    const position = this.checkpoints.epoch.value;
    if (position < chunk.startPosition) return { position, bytes: NO_BYTES };
    if (position === this.#epoch.position) return this.#epoch;
    const frame = new RecordFrame();
    const isThere = (await untilHit(() => chunk.readAt(position, frame))) === HIT;
    return (this.#epoch = {
      position,
      bytes: isThere ? frame.bytes.slice(frame.at, frame.at + Math.min(frame.length, EPOCH_BYTES_MAX)) : NO_BYTES,
    });
  }

  /**
   * Makes writer.chk durable at the writer's end and then chaser.chk at the one that readers see, in that order, so
   * that chaser is never ahead.
   */
  async flushCheckpoints(): Promise<void> {
    if (this.#stopped) return;
    const shown = this.table.end;
    await this.checkpoints.writer.flush(Math.max(this.#end, this.checkpoints.writer.value));
    await this.checkpoints.chaser.flush(shown);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#checkpointing;
    await this.#discardNext();
    if (this.#ongoing) await this.#ongoing.settle();
    try {
      if (!this.#stopped) await this.flushCheckpoints();
      await this.#saveBlockSums();
    } finally {
      await this.table.close();
      await closeCheckpoints(this.checkpoints);
    }
  }
}
