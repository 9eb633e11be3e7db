import { BLOCK_BYTES, type BlockCache, type CachedFile } from '../../cache/cache.ts';
import { SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { Digest, Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import { BlockSums } from '../block-sums/block-sums.ts';
import { type KnownEpoch, type ChecksummedBlocks } from '../format/block-sums-file.ts';
import { Chunk } from './chunk.ts';
import {
  type ChunkHeader,
  chunkFileName,
  completeChunkFile,
  encodeHeader,
  HEADER_BYTES,
  ongoingFileBytes,
} from '../format/chunk-format.ts';
import { encodeSlot, SLOT_BYTES, slotOffset } from '../format/commit-slot.ts';
import { crcWithBlock } from '../block-sums/crc32-combine.ts';
import { isFinal, syncFile, trySeal } from '../../ports/durability.ts';

/**
 * The file is zero-filled this far ahead of the writer, so that a sync finds its blocks allocated, unless the options
 * say otherwise.
 */
const ZERO_AHEAD_BYTES = 4_194_304;
const ZEROS = new Uint8Array(1_048_576);
/** Read size when the MD5 of an inherited chunk is caught up: a fraction of a millisecond on the request loop. */
const HASH_READ_BYTES = 131_072;

export interface OngoingOptions {
  readonly storage: Storage;
  readonly cache: BlockCache;
  readonly digests: Digests;
  readonly ids: Ids;
  readonly chunkSize: number;
  /** Bytes that are zero-filled ahead of the writer. Default 4 MiB. */
  readonly zeroAheadBytes?: number | undefined;
}

function zeroAhead({ zeroAheadBytes = ZERO_AHEAD_BYTES, chunkSize }: OngoingOptions): number {
  return Math.min(zeroAheadBytes, chunkSize);
}

/** The whole, durable file of a chunk that does not exist yet, under a temporary name. */
export interface PreparedChunk {
  readonly header: ChunkHeader;
  readonly temporary: string;
}

/** What a chunk is resumed with. */
export interface ResumedChunk {
  readonly header: ChunkHeader;
  /** Of the next commit slot. */
  readonly sequence: number;
  readonly sums: BlockSums;
}

/**
 * Makes the file of chunk `number`; no reader sees that file before `OngoingChunk.begin`, and the next start removes
 * it.
 */
export async function prepareChunk(options: OngoingOptions, number: number): Promise<PreparedChunk> {
  const { storage, chunkSize } = options;
  const header: ChunkHeader = {
    version: 3,
    chunkSize,
    startNumber: number,
    endNumber: number,
    isScavenged: false,
    chunkId: guidFromUuidBytes(options.ids.uuidBytes()),
  };
  const temporary = `${chunkFileName(number, 0)}.${guidToText(options.ids.uuidBytes(), 0)}.tmp`;
  const prepared = { header, temporary };
  const file = await storage.create(temporary);
  try {
    await file.truncate(ongoingFileBytes(chunkSize));
    await file.writeAt(0, encodeHeader(header));
    await writeZeros(file, HEADER_BYTES, HEADER_BYTES + zeroAhead(options));
    // The slots get their blocks now, so that no full disk can hinder one of them later.
    await writeZeros(file, slotOffset(chunkSize, 0), slotOffset(chunkSize, 1) + SLOT_BYTES);
    await file.sync();
    await file.close();
  } catch (error) {
    await file.close().catch(() => {});
    await discardPrepared(options, prepared);
    throw error;
  }
  return prepared;
}

/** Removes the file of a chunk that is not needed after all. What can't be removed now goes at the next start. */
export async function discardPrepared(options: OngoingOptions, prepared: PreparedChunk): Promise<void> {
  await options.storage.remove(prepared.temporary).catch(() => {});
}

/**
 * The chunk that is being written. It owns the file behind the committed data: the zero-filled part, the commit slots
 * and the growing last block. One append at a time.
 */
export class OngoingChunk {
  readonly chunk: Chunk;
  readonly #options: OngoingOptions;
  readonly #header: ChunkHeader;
  readonly #file: StorageFile;
  readonly #cached: CachedFile;
  readonly #slot = new Uint8Array(SLOT_BYTES);
  #sequence: number;
  /** File offset up to which blocks have been written, with data or zeros. */
  #zeroedTo: number;
  #zeroing: Promise<void> | null = null;
  #tail: Uint8Array;
  /** The block of the file that `#tail` is. */
  #tailBlock: number;
  readonly #sums: BlockSums;
  /** Of the blocks that the group being written fills from their beginning on. */
  readonly #groupSums: number[] = [];
  #md5: Digest;
  #hashedTo = 0;
  /** Another thread takes the digest, or has failed to. */
  #isLeft = false;
  #catchUp: Promise<void> | null = null;
  #closed = false;

  private constructor(
    options: OngoingOptions,
    chunk: Chunk,
    { header, sequence, tail, sums }: ResumedChunk & { readonly tail: Uint8Array },
  ) {
    this.#header = header;
    this.#options = options;
    this.chunk = chunk;
    this.#cached = chunk.file;
    this.#file = chunk.file.file;
    this.#sequence = sequence;
    this.#tail = tail;
    this.#tailBlock = Math.floor((HEADER_BYTES + chunk.physicalBytes) / BLOCK_BYTES);
    this.#sums = sums;
    this.#md5 = options.digests.md5();
    this.#zeroedTo = HEADER_BYTES + chunk.physicalBytes;
    this.#showTail();
  }

  /** Creates chunk `number` as a file that is either absent or whole. */
  static async create(options: OngoingOptions, number: number, sequence: number): Promise<OngoingChunk> {
    return OngoingChunk.begin(options, await prepareChunk(options, number), sequence);
  }

  /** Gives a prepared file its name. */
  static async begin(options: OngoingOptions, prepared: PreparedChunk, sequence: number): Promise<OngoingChunk> {
    const { storage } = options;
    const { header, temporary } = prepared;
    const name = chunkFileName(header.startNumber, 0);
    try {
      await storage.rename(temporary, name);
    } catch (error) {
      await discardPrepared(options, prepared);
      throw error;
    }
    const opened = await storage.open(name, 'write');
    const chunk = new Chunk(name, options.cache.attach(opened), header, null, 0);
    const tail = new Uint8Array(BLOCK_BYTES);
    tail.set(encodeHeader(header), 0);
    const ongoing = new OngoingChunk(options, chunk, { header, sequence, tail, sums: new BlockSums() });
    ongoing.#zeroedTo = HEADER_BYTES + zeroAhead(options);
    ongoing.#hash(tail.slice(0, HEADER_BYTES), 0);
    return ongoing;
  }

  /**
   * Goes on with a chunk whose data ends at `chunk.physicalBytes`. The file has its full length. `sums`: of its whole
   * blocks.
   */
  static async resume(
    options: OngoingOptions,
    chunk: Chunk,
    { header, sequence, sums }: ResumedChunk,
  ): Promise<OngoingChunk> {
    const end = HEADER_BYTES + chunk.physicalBytes;
    const tailStart = Math.floor(end / BLOCK_BYTES) * BLOCK_BYTES;
    const tail = new Uint8Array(BLOCK_BYTES);
    tail.set(await chunk.file.file.read(tailStart, end - tailStart), 0);
    return new OngoingChunk(options, chunk, { header, sequence, tail, sums });
  }

  get sequence(): number {
    return this.#sequence;
  }
  /** Bytes of data that still fit. */
  get remaining(): number {
    return this.#options.chunkSize - this.chunk.physicalBytes;
  }
  get end(): number {
    return this.chunk.startPosition + this.chunk.physicalBytes;
  }

  /**
   * Writes a group and its slot and syncs once. Rejects with the storage's error: `sync_failed` means that the writer
   * must stop; after any other error nothing counts and the same place is written again.
   */
  async append(group: Uint8Array): Promise<void> {
    const raw = HEADER_BYTES + this.chunk.physicalBytes;
    const rawEnd = raw + group.length;
    if (group.length > this.remaining)
      throw new SkuaError('io_error', 'A group was appended that does not fit its chunk: this is a defect.');
    if (this.#zeroing !== null && rawEnd > this.#zeroedTo) await this.#zeroing;
    const file = this.#file;
    const written = file.writeAt(raw, group);
    if (written !== undefined) await written;
    if (rawEnd > this.#zeroedTo) this.#zeroedTo = rawEnd;
    const marked = this.#writeSlot(group, this.#sum(group, raw));
    if (marked !== undefined) await marked;
    const synced = syncFile(file);
    // Digest and tail are kept up while the disk works. If the sync fails the writer stops, and no reader reads beyond
    // what is durable.
    this.#hash(group, raw);
    this.#extendTail(group, raw);
    await synced;
    this.#sequence++;
    this.chunk.setDataBytes(this.chunk.physicalBytes + group.length);
    this.#zeroAhead();
    // A catch-up that ended while this group was being written left it to the next one.
    if (this.#hashedTo < rawEnd && this.#catchUp === null) this.#catchUpDigest().catch(() => {});
  }

  /** CRC-32 of the group. Those of the whole blocks in it are kept for when it is written. */
  #sum(group: Uint8Array, raw: number): number {
    const { digests } = this.#options;
    this.#groupSums.length = 0;
    let at = Math.min(group.length, bytesToBlock(raw));
    if (group.length - at < BLOCK_BYTES) return digests.crc32(group);
    let sum = digests.crc32(group.subarray(0, at));
    for (; group.length - at >= BLOCK_BYTES; at += BLOCK_BYTES) {
      const block = digests.crc32(group.subarray(at, at + BLOCK_BYTES));
      this.#groupSums.push(block);
      sum = crcWithBlock(sum, block);
    }
    return digests.crc32(group.subarray(at), sum);
  }

  #writeSlot(group: Uint8Array, checksum: number): void | Promise<void> {
    const start = this.end;
    const at = slotOffset(this.#options.chunkSize, this.#sequence);
    encodeSlot(
      this.#slot,
      { sequence: this.#sequence, start, end: start + group.length, checksum },
      this.#options.digests,
    );
    try {
      return this.#file.writeAt(at, this.#slot)?.catch((error: unknown) => this.#slotFailed(at, error));
    } catch (error) {
      return this.#slotFailed(at, error);
    }
  }

  async #slotFailed(at: number, error: unknown): Promise<never> {
    // A failed write may have left the slot whole, and the group, which is refused in the answers to its clients, must
    // not be found by a recovery.
    if (!isFinal(error)) await this.#orStop(async () => this.#file.writeAt(at, ZEROS.subarray(0, SLOT_BYTES)));
    throw error;
  }

  /** Takes back what was begun, durably. Where that fails it is not known what a recovery will find: `sync_failed`. */
  async #orStop(undo: () => Promise<unknown>): Promise<void> {
    try {
      await undo();
    } catch (error) {
      throw new SkuaError(
        'sync_failed',
        `An unfinished write to ${this.chunk.name} could not be rolled back.`,
        { file: this.chunk.name },
        error,
      );
    }
    await syncFile(this.#file);
  }

  /**
   * Copies a group into the block that readers see, up to where the chunk's data end, and starts another one where that
   * is full.
   */
  #extendTail(group: Uint8Array, raw: number): void {
    const offset = raw % BLOCK_BYTES;
    if (offset + group.length < BLOCK_BYTES) {
      this.#tail.set(group, offset);
      return;
    }
    const head = bytesToBlock(raw);
    if (head > 0) {
      this.#tail.set(group.subarray(0, head), offset);
      this.#sums.add(this.#options.digests.crc32(this.#tail));
    }
    // Full blocks are left to the system's cache: writing must not push out of ours what readers use.
    for (const sum of this.#groupSums) this.#sums.add(sum);
    const rest = head + this.#groupSums.length * BLOCK_BYTES;
    this.#tailBlock = (raw + rest) / BLOCK_BYTES;
    this.#tail = new Uint8Array(BLOCK_BYTES);
    this.#tail.set(group.subarray(rest));
    this.#showTail();
  }

  #showTail(): void {
    this.#cached.setTail(this.#tailBlock, this.#tail);
  }

  /**
   * The checksums of all that is durable now. While a group is being written that fills the last block, that block is
   * left out.
   */
  checksummed(epoch: KnownEpoch): ChecksummedBlocks {
    const { startNumber: chunkNumber, chunkId } = this.#header;
    const end = HEADER_BYTES + this.chunk.physicalBytes;
    const blocks = Math.floor(end / BLOCK_BYTES);
    const rest = end - blocks * BLOCK_BYTES;
    const last =
      rest === 0 || this.#tailBlock !== blocks ? null : this.#options.digests.crc32(this.#tail.subarray(0, rest));
    return {
      chunkNumber,
      chunkId,
      end: last === null ? blocks * BLOCK_BYTES : end,
      sequence: this.#sequence - 1,
      epoch,
      sums: this.#sums.upTo(blocks, last),
    };
  }

  #zeroAhead(): void {
    const limit = HEADER_BYTES + this.#options.chunkSize;
    const ahead = zeroAhead(this.#options);
    const written = HEADER_BYTES + this.chunk.physicalBytes;
    if (this.#zeroing !== null || this.#zeroedTo >= limit || this.#zeroedTo - written > ahead / 2) return;
    this.#leaveDigest();
    const to = Math.min(this.#zeroedTo + ahead, limit);
    this.#zeroing = writeZeros(this.#file, this.#zeroedTo, to).then(
      () => {
        this.#zeroedTo = Math.max(this.#zeroedTo, to);
        this.#zeroing = null;
      },
      // Zeros only save time: a full disk shows itself to the append that needs the space.
      () => {
        this.#zeroing = null;
      },
    );
  }

  #hash(bytes: Uint8Array, raw: number): void {
    if (this.#hashedTo !== raw) return;
    try {
      this.#md5.update(bytes);
      this.#hashedTo = raw + bytes.length;
    } catch {
      this.#digestAnew(this.#options.digests.md5());
    }
  }

  /**
   * Leaves the digest to another thread, as soon as there is one, for which it is begun anew: it takes up to a quarter
   * of the time of an append. Chunks that grow by little call none.
   */
  #leaveDigest(): void {
    const digest = this.#isLeft ? null : (this.#options.digests.md5Behind?.() ?? null);
    if (digest === null) return;
    this.#isLeft = true;
    this.#digestAnew(digest);
  }

  #digestAnew(digest: Digest): void {
    this.#md5 = digest;
    this.#hashedTo = 0;
  }

  /**
   * Brings the digest of an inherited chunk up to the writer, in small pieces beside the appends. The first of them
   * begins it: before, a start may have to read the whole log for the index.
   */
  #catchUpDigest(): Promise<void> {
    this.#catchUp ??= this.#hashExisting().finally(() => {
      this.#catchUp = null;
    });
    return this.#catchUp;
  }

  async #hashExisting(): Promise<void> {
    const buffer = new Uint8Array(HASH_READ_BYTES);
    while (!this.#closed && this.#hashedTo < HEADER_BYTES + this.chunk.physicalBytes) {
      const from = this.#hashedTo;
      const end = HEADER_BYTES + this.chunk.physicalBytes;
      const to = Math.min(from + HASH_READ_BYTES, end);
      // The last piece is read on the spot: while another thread read it the next group would be written, and so on for
      // ever.
      const isThere = to === end && this.#file.readNow?.(from, to - from, buffer, 0) === to - from;
      const bytes = isThere ? buffer.subarray(0, to - from) : await this.#file.read(from, to - from, buffer);
      if (bytes.length === to - from) this.#hash(bytes, from);
      else
        throw new SkuaError(
          'io_error',
          `Chunk file ${this.chunk.name} gave ${bytes.length} of ${to - from} bytes at offset ${from}.`,
          { file: this.chunk.name, offset: from },
        );
    }
  }

  /**
   * Completes the file. The writer checkpoint must be durable at `end` before, because the slots are cut off. After an
   * error other than `sync_failed` the file is an ongoing one again.
   */
  async complete(): Promise<void> {
    if (this.#zeroing !== null) await this.#zeroing;
    await this.#catchUpDigest();
    const { physicalBytes } = this.chunk;
    try {
      await completeChunkFile(
        this.#file,
        this.#md5,
        { physicalBytes, logicalBytes: physicalBytes, mapBytes: 0 },
        syncFile,
      );
    } catch (error) {
      if (!isFinal(error)) await this.#undoCompletion();
      throw error;
    }
    await trySeal(this.#file);
    this.#cached.setTail(-1, new Uint8Array(0));
    this.chunk.isCompleted = true;
    this.chunk.logicalBytes = this.chunk.physicalBytes;
  }

  async #undoCompletion(): Promise<void> {
    const dataEnd = HEADER_BYTES + this.chunk.physicalBytes;
    await this.#orStop(async () => {
      await this.#file.truncate(dataEnd);
      await this.#file.truncate(ongoingFileBytes(this.#options.chunkSize));
    });
    this.#zeroedTo = dataEnd;
    this.#digestAnew(this.#options.digests.md5());
  }

  /** Waits for background work. The file stays open for readers. */
  async settle(): Promise<void> {
    this.#closed = true;
    if (this.#zeroing !== null) await this.#zeroing;
    if (this.#catchUp !== null) await this.#catchUp.catch(() => {});
  }
}

/** Bytes from a place in a file to the end of the block that it is in; none at the beginning of one. */
function bytesToBlock(raw: number): number {
  const offset = raw % BLOCK_BYTES;
  return offset === 0 ? 0 : BLOCK_BYTES - offset;
}

async function writeZeros(file: StorageFile, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += ZEROS.length)
    await file.writeAt(at, ZEROS.subarray(0, Math.min(ZEROS.length, to - at)));
}
