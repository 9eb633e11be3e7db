import { type ChunkHeader, decodeHeader, HEADER_BYTES, ongoingFileBytes } from '../log/chunk-format.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { fileClosed, fileReadOnly } from '../ports/storage.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';
import type { ObjectOngoing, ObjectSegment } from './manifest.ts';
import { BaseFile, BaseHandle, type BasePart } from './storage-base.ts';

export interface FillingParts {
  readonly objects: ObjectStore;
  readonly scratch: Storage;
}

/** The chunk that is being filled: a header, segments in the object store, and what was taken over since, in the scratch storage. */
export class Filling {
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
    const placed = segments.map(({ key, from, to }): BasePart => ({ from: HEADER_BYTES + from - this.start, length: to - from, source: { key, offset: 0 } }));
    this.#base = new BaseFile(parts.objects, [{ from: 0, length: HEADER_BYTES, source: bytes }, ...placed]);
    this.#parts = parts;
    this.#freshPath = `filling/${name}.tail`;
    this.#sizeBytes = ongoingFileBytes(chunkSize);
  }

  static of(ongoing: ObjectOngoing, chunkSize: number, parts: FillingParts): Filling {
    return new Filling(ongoing, chunkSize, parts);
  }

  get dataBytes(): number { return this.freshFrom - this.start + this.#freshBytes; }
  get freshBytes(): number { return this.#freshBytes; }
  /** Position after the last byte. */
  get end(): number { return this.start + this.dataBytes; }

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
    const [first, rest] = await Promise.all([this.#base.read(position, split - position), this.#filling.readFresh(0, end - split)]);
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

export function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
