import type { BlockCache } from '../../cache/cache.ts';
import { SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes } from '../../base/guid.ts';
import {
  chunkFileName,
  type ChunkFooter,
  type ChunkHeader,
  completeChunkFile,
  decodeFooter,
  decodeHeader,
  encodeHeader,
  HEADER_BYTES,
  MD5_BYTES,
  ongoingFileBytes,
} from '../../log/format/chunk-format.ts';
import { ChunkTable } from '../../log/chunk-table/chunk-table.ts';
import { Chunk } from '../../log/chunk/chunk.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { fileClosed, fileReadOnly, type Storage, type StorageFile } from '../../ports/storage.ts';
import type { ObjectChunk, ObjectManifest, ObjectOngoing, ObjectSegment } from '../format/manifest.ts';
import { BaseFile, BaseHandle, type BasePart } from './storage-base.ts';
import type { ObjectStorage } from './tick-storage.ts';

/** Bytes copied at once when a chunk is completed. */
const COPY_BYTES = 1_048_576;

/** One commit of the tail, as compaction sees it. */
interface TailCommit {
  readonly number: number;
  /** Positions of its first record and behind its last. */
  readonly start: number;
  readonly end: number;
  /** The next commit starts at the next chunk. */
  readonly endsChunk: boolean;
  readonly records: Uint8Array;
}

interface TickLogParts {
  readonly storage: ObjectStorage;
  readonly scratch: Storage;
  readonly objects: ObjectStore;
  readonly digests: Digests;
  readonly ids: Ids;
  readonly cache: BlockCache;
}

/**
 * The log as a tick sees it: the completed chunks of the manifest, the one that is being filled, and the commits of the
 * tail, which it takes over one by one. A chunk that is full becomes a file with the bytes that it would have on a
 * disk. What comes of it is in the scratch storage until it is published.
 */
export class TickLog {
  readonly table: ChunkTable;
  readonly #parts: TickLogParts;
  /** The first commit that is not taken over. */
  boundary: number;
  #logEnd: number;
  #endsChunk: boolean;
  /** Null while the chunk at the log's end has no data. */
  #filling: Filling | null = null;
  /** Bytes taken over, and chunks completed. */
  bytesTaken = 0;
  chunksCompleted = 0;

  private constructor(manifest: ObjectManifest, parts: TickLogParts) {
    this.#parts = parts;
    this.table = new ChunkTable(manifest.chunkSizeBytes);
    this.boundary = manifest.boundary;
    this.#logEnd = manifest.logEnd;
    this.#endsChunk = manifest.endsChunk;
    this.table.end = manifest.logEnd;
  }

  /** Opens what the manifest names. Costs no request. */
  static of(manifest: ObjectManifest, parts: TickLogParts): TickLog {
    const log = new TickLog(manifest, parts);
    for (const named of manifest.chunks) log.table.put(chunkOf(named, manifest.chunkSizeBytes, parts));
    if (manifest.ongoing !== null) {
      log.#filling = Filling.of(manifest.ongoing, manifest.chunkSizeBytes, parts);
      log.#show();
    }
    return log;
  }

  get logEnd(): number {
    return this.#logEnd;
  }
  get endsChunk(): boolean {
    return this.#endsChunk;
  }
  get filling(): Filling | null {
    return this.#filling;
  }

  /**
   * Takes the next commit over. Throws `log_corrupt` when it does not follow what is there. `show` has to be called
   * before it is read.
   */
  async take(commit: TailCommit): Promise<void> {
    const { chunkSize } = this.table;
    const { number, start, end, records } = commit;
    if (number !== this.boundary || end - start !== records.length) throw this.#misplaced(commit);
    if (records.length > 0) {
      const chunk = Math.floor(start / chunkSize);
      // Behind the last record while it fits and the chunk was not ended, else at the start of the next chunk.
      const isNext =
        start === Math.ceil(this.#logEnd / chunkSize) * chunkSize || (start === this.#logEnd && !this.#endsChunk);
      if (!isNext || end > (chunk + 1) * chunkSize) throw this.#misplaced(commit);
      if (this.#filling !== null && chunk !== this.#filling.number) await this.#complete();
      this.#filling ??= this.#begin(chunk);
      await this.#filling.append(records);
      this.#logEnd = end;
      this.#endsChunk = false;
      this.bytesTaken += records.length;
    }
    if (commit.endsChunk && !this.#endsChunk) {
      if (this.#filling !== null) await this.#complete();
      this.#endsChunk = this.#logEnd > 0;
    }
    this.boundary = number + 1;
  }

  #misplaced({ number, start, end }: TailCommit): SkuaError {
    return new SkuaError(
      'log_corrupt',
      `Commit ${number} holds the positions ${start} to ${end} and does not follow the log, which ends at ${this.#logEnd} with commit ${this.boundary - 1}. Restore the log from a backup.`,
      { number, start, end, logEnd: this.#logEnd },
    );
  }

  /** Lets readers of the table see all that was taken over. */
  show(): void {
    this.#show();
    this.table.end = this.#logEnd;
  }

  #show(): void {
    const filling = this.#filling;
    if (filling === null) return;
    const { cache } = this.#parts;
    // Blocks of the cache never change, so what has grown is a file of its own to it.
    this.table.chunkAt(filling.number * this.table.chunkSize)?.file.detach();
    this.table.put(new Chunk(filling.name, cache.attach(filling.open()), filling.header, null, filling.dataBytes));
  }

  #begin(number: number): Filling {
    const header: ChunkHeader = {
      version: 3,
      chunkSize: this.table.chunkSize,
      startNumber: number,
      endNumber: number,
      isScavenged: false,
      chunkId: guidFromUuidBytes(this.#parts.ids.uuidBytes()),
    };
    return Filling.of(
      { name: chunkFileName(number, 0), number, header: toHex(encodeHeader(header)), segments: [] },
      this.table.chunkSize,
      this.#parts,
    );
  }

  /** Writes the file of the chunk that is being filled: header, data, padding, footer with MD5. */
  async #complete(): Promise<void> {
    const filling = this.#filling!;
    const { storage, digests, cache } = this.#parts;
    const source = filling.open();
    const md5 = digests.md5();
    const file = await storage.create(filling.name);
    const dataEnd = HEADER_BYTES + filling.dataBytes;
    let footer: ChunkFooter;
    try {
      for (let at = 0; at < dataEnd; at += COPY_BYTES) {
        const bytes = await source.read(at, Math.min(COPY_BYTES, dataEnd - at));
        md5.update(bytes);
        await file.writeAt(at, bytes);
      }
      const sizes = { physicalBytes: filling.dataBytes, logicalBytes: filling.dataBytes, mapBytes: 0 };
      footer = decodeFooter(filling.name, await completeChunkFile(file, md5, sizes), file.size);
      await file.seal();
    } finally {
      await file.close();
      await source.close();
    }
    this.table.chunkAt(filling.number * this.table.chunkSize)?.file.detach();
    this.table.put(
      new Chunk(filling.name, cache.attach(await storage.open(filling.name, 'read')), filling.header, footer, 0),
    );
    this.#filling = null;
    this.chunksCompleted++;
    await filling.close();
  }

  /** Closes all files. */
  async close(): Promise<void> {
    await this.table.close();
    await this.#filling?.close();
  }
}

/** A completed chunk, put together from what the manifest says, so that opening it costs no request. */
function chunkOf(named: ObjectChunk, chunkSize: number, { storage, cache }: TickLogParts): Chunk {
  const { name, startNumber, endNumber, isScavenged, physicalBytes, logicalBytes, mapBytes, mapEntryBytes } = named;
  const header: ChunkHeader = {
    version: 3,
    chunkSize,
    startNumber,
    endNumber,
    isScavenged,
    chunkId: new Uint8Array(16),
  };
  const footer = {
    isCompleted: true,
    mapEntryBytes,
    physicalBytes,
    logicalBytes,
    mapBytes,
    md5: new Uint8Array(MD5_BYTES),
  };
  return new Chunk(name, cache.attach(new BaseHandle(name, storage.base(name)!)), header, footer, 0);
}

interface FillingParts {
  readonly objects: ObjectStore;
  readonly scratch: Storage;
}

/**
 * The chunk that is being filled: a header, segments in the object store, and what was taken over since, in the scratch
 * storage.
 */
class Filling {
  readonly name: string;
  readonly number: number;
  readonly header: ChunkHeader;
  /** The header's bytes as the manifest has them. */
  readonly headerHex: string;
  readonly segments: readonly ObjectSegment[];
  /** Position of the chunk's first byte, and of the first that is in no segment. */
  readonly start: number;
  readonly freshFrom: number;
  readonly #base: BaseFile;
  readonly #parts: FillingParts;
  readonly #freshPath: string;
  readonly #sizeBytes: number;
  #fresh: StorageFile | null = null;
  #freshBytes = 0;

  private constructor({ name, number, header, segments }: ObjectOngoing, chunkSize: number, parts: FillingParts) {
    this.name = name;
    this.number = number;
    this.headerHex = header;
    this.segments = segments;
    this.start = number * chunkSize;
    this.freshFrom = segments.at(-1)?.to ?? this.start;
    const bytes = fromHex(header);
    this.header = decodeHeader(name, bytes);
    const placed = segments.map(({ key, from, to }): BasePart => ({
      from: HEADER_BYTES + from - this.start,
      length: to - from,
      source: { key, offset: 0 },
    }));
    this.#base = new BaseFile(parts.objects, [{ from: 0, length: HEADER_BYTES, source: bytes }, ...placed]);
    this.#parts = parts;
    this.#freshPath = `filling/${name}.tail`;
    this.#sizeBytes = ongoingFileBytes(chunkSize);
  }

  static of(ongoing: ObjectOngoing, chunkSize: number, parts: FillingParts): Filling {
    return new Filling(ongoing, chunkSize, parts);
  }

  get dataBytes(): number {
    return this.freshFrom - this.start + this.#freshBytes;
  }
  get freshBytes(): number {
    return this.#freshBytes;
  }
  /** Position after the last byte. */
  get end(): number {
    return this.start + this.dataBytes;
  }

  async append(records: Uint8Array): Promise<void> {
    this.#fresh ??= await this.#parts.scratch.create(this.#freshPath);
    await this.#fresh.writeAt(this.#freshBytes, records);
    this.#freshBytes += records.length;
  }

  /** The file of the chunk as it is now, up to the end of its data. */
  open(): StorageFile {
    return new FillingHandle(this, new BaseHandle(this.name, this.#base), this.#sizeBytes);
  }

  /** @internal Bytes of the fresh part, from an offset in it. */
  readFresh(at: number, length: number): Uint8Array | Promise<Uint8Array> {
    return this.#fresh === null ? new Uint8Array(0) : this.#fresh.read(at, Math.min(length, this.#freshBytes - at));
  }

  /** Gives back the scratch space. */
  async close(): Promise<void> {
    const fresh = this.#fresh;
    this.#fresh = null;
    if (fresh === null) return;
    await fresh.close();
    await this.#parts.scratch.remove(this.#freshPath);
  }
}

class FillingHandle implements StorageFile {
  readonly path: string;
  /** That of the whole file: what lies behind the data is not there yet. */
  readonly size: number;
  readonly #filling: Filling;
  readonly #base: BaseHandle;
  #isOpen = true;

  constructor(filling: Filling, base: BaseHandle, size: number) {
    this.path = filling.name;
    this.size = size;
    this.#filling = filling;
    this.#base = base;
  }

  async read(position: number, length: number): Promise<Uint8Array> {
    if (!this.#isOpen) throw fileClosed(this.path);
    const split = this.#base.size;
    const end = Math.min(position + length, HEADER_BYTES + this.#filling.dataBytes);
    if (end <= split) return this.#base.read(position, Math.max(0, end - position));
    if (position >= split) return (await this.#filling.readFresh(position - split, end - position)).slice();
    const [first, rest] = await Promise.all([
      this.#base.read(position, split - position),
      this.#filling.readFresh(0, end - split),
    ]);
    const out = new Uint8Array(end - position);
    out.set(first);
    out.set(rest, first.length);
    return out;
  }

  writeAt(): void {
    throw fileReadOnly(this.path);
  }

  async truncate(): Promise<void> {
    throw fileReadOnly(this.path);
  }

  async sync(): Promise<void> {}
  async seal(): Promise<void> {}

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#base.close();
  }
}

function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
