import type { Manifest } from '../../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../../core/backup/repository/api.ts';
import type { ShippableLog } from '../../../core/store/shippable-log/shippable-log.ts';
import { encodeHeader, HEADER_BYTES } from '../../../core/log/format/chunk-format.ts';
import {
  encodePrepare,
  FLAG_DATA,
  FLAG_TRANSACTION_BEGIN,
  FLAG_TRANSACTION_END,
  FLAG_COMMITTED,
  prepareFrameBytes,
} from '../../../core/log/format/records.ts';
import { guidFromUuidBytes, guidToText } from '../../../core/base/guid.ts';
import { SeededIds } from '../seeded-ids.ts';

export const NODE_ID = '5f0c6a3e-3c51-4f6a-9d0b-6f1f2f9a7c11';
const text = new TextEncoder();

/** A log of whole writes in memory, and backups of it that hold its last chunk only. */
export class FakeLog implements ShippableLog {
  readonly chunkSizeBytes: number;
  readonly #ids: SeededIds;
  /** Data of every chunk. */
  readonly #chunks: Uint8Array[] = [new Uint8Array(0)];
  /** Versions of completed chunk files; -1 in the one being written. */
  readonly versions: number[] = [];
  readonly reads: number[] = [];

  constructor(chunkSizeBytes = 65_536, seed = 5) {
    this.chunkSizeBytes = chunkSizeBytes;
    this.#ids = new SeededIds(seed);
  }

  get #last(): number {
    return this.#chunks.length - 1;
  }
  get end(): number {
    return this.#last * this.chunkSizeBytes + this.#chunks[this.#last]!.length;
  }
  chunkNames(): string[] {
    return this.versions.map((version, i) => `chunk-${String(i).padStart(6, '0')}.${String(version).padStart(6, '0')}`);
  }
  dataEnd(number: number): number {
    return number * this.chunkSizeBytes + (this.#chunks[number]?.length ?? 0);
  }
  isRewritten(number: number): boolean {
    return (this.versions[number] ?? 0) > 0;
  }

  async read(from: number, to: number): Promise<Uint8Array> {
    const number = Math.floor(from / this.chunkSizeBytes);
    const start = number * this.chunkSizeBytes;
    if (to > this.dataEnd(number)) throw new Error(`${from} to ${to} is not in chunk ${number}`);
    this.reads.push(to - from);
    return this.#chunks[number]!.slice(from - start, to - start);
  }

  /** One write of so many events, in a chunk of its own where it does not fit. */
  write(events: number, dataBytes: number): void {
    const size = prepareFrameBytes(6, 4, dataBytes, 0);
    if (this.#chunks[this.#last]!.length + events * size > this.chunkSizeBytes) this.completeChunk();
    const start = this.end;
    const out = new Uint8Array(events * size);
    for (let i = 0, at = 0; i < events; i++) {
      const flags =
        FLAG_DATA |
        FLAG_COMMITTED |
        (i === 0 ? FLAG_TRANSACTION_BEGIN : 0) |
        (i === events - 1 ? FLAG_TRANSACTION_END : 0);
      at = encodePrepare(out, at, {
        position: start + at,
        flags,
        transactionPosition: start,
        transactionOffset: i,
        expectedVersion: i,
        stream: text.encode('stream'),
        eventType: text.encode('made'),
        eventId: this.#ids.uuidBytes(),
        correlationId: this.#ids.uuidBytes(),
        timestampMs: 1_700_000_000_000 + start,
        timestampTicks: 0,
        data: new Uint8Array(dataBytes).fill(i),
        metadata: new Uint8Array(0),
      });
    }
    this.#chunks[this.#last] = new Uint8Array(Buffer.concat([this.#chunks[this.#last]!, out]));
  }

  completeChunk(): void {
    this.versions[this.#last] = 0;
    this.#chunks.push(new Uint8Array(0));
  }

  /** Forgets the log behind a position of the last chunk. */
  cut(position: number): void {
    this.#chunks[this.#last] = this.#chunks[this.#last]!.slice(0, position - this.#last * this.chunkSizeBytes);
  }

  async backUp(repository: Repository, createdMs: number): Promise<Manifest> {
    const number = this.#last;
    const start = number * this.chunkSizeBytes;
    const data = this.#chunks[number]!;
    const header = encodeHeader({
      version: 3,
      chunkSize: this.chunkSizeBytes,
      startNumber: number,
      endNumber: number,
      isScavenged: false,
      chunkId: new Uint8Array(16).fill(number),
    });
    const blob = async (bytes: Uint8Array) => {
      const { blob: id, sizeBytes } = await repository.writeBlob(bytes.length, async function* content() {
        yield bytes;
      });
      return { blob: id, sizeBytes };
    };
    const chunks = await Promise.all(
      this.chunkNames().map(async (path, i) => ({
        ...(await blob(text.encode(`${path} ${HEADER_BYTES}`))),
        path,
        startNumber: i,
        endNumber: i,
        isScavenged: this.versions[i]! > 0,
        md5: '0'.repeat(32),
        fromMs: null,
        toMs: null,
      })),
    );
    const manifest: Manifest = {
      format: 1,
      id: guidToText(guidFromUuidBytes(this.#ids.uuidBytes()), 0),
      nodeId: NODE_ID,
      createdMs,
      cause: 'shipping',
      chunkSizeBytes: this.chunkSizeBytes,
      checkpoints: { writer: this.end, chaser: this.end, epoch: -1, proposal: -1 },
      chunks,
      tail: {
        number,
        path: `chunk-${String(number).padStart(6, '0')}.000000`,
        header: Buffer.from(header).toString('hex'),
        segments: data.length === 0 ? [] : [{ ...(await blob(data)), from: start, to: this.end }],
      },
      index: null,
      scavengeDb: null,
    };
    await repository.putManifest(manifest);
    return manifest;
  }
}
