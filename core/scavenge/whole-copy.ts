import type { Chunk } from '../log/api.ts';
import { HEADER_BYTES, mapActual, mapLogical } from '../log/format/chunk-format.ts';
import { ChunkProof } from '../log/format/chunk-proof.ts';
import { FRAME_BYTES } from '../log/format/records.ts';
import { scanChunk } from '../log/chunk/chunk.ts';
import type { JobContext } from '../ports/jobs.ts';
import type { ChunkWriter } from './chunk-writer.ts';

/** Bytes copied at once. */
const COPY_BYTES = 1_048_576;
/** Records of an unscavenged chunk between two looks at whether the run is to stop. */
const CHECK_EVERY_RECORDS = 1_024;

/** Copies all records of neighbours, one neighbour after the other, behind what a new file has. */
export class WholeCopy {
  readonly #start: number;
  readonly #writer: ChunkWriter;
  readonly #context: JobContext;
  readonly #onPassed: (bytes: number) => void;
  readonly #buffers = [new Uint8Array(COPY_BYTES), new Uint8Array(COPY_BYTES)] as const;

  /**
   * `start` is the log position at which the new file begins. `onPassed` is called with the bytes that were read since
   * the last call.
   */
  constructor(start: number, writer: ChunkWriter, context: JobContext, onPassed: (bytes: number) => void) {
    this.#start = start;
    this.#writer = writer;
    this.#context = context;
    this.#onPassed = onPassed;
  }

  /** Throws `log_corrupt` for a source that is not as it was written, whatever was added of it. */
  async take(source: Chunk): Promise<void> {
    const { file } = source.file;
    const proof = new ChunkProof(this.#context.digests, source.name, file.size);
    await proof.addRange(file, HEADER_BYTES);
    await (source.isScavenged ? this.#scavenged(source, proof) : this.#unscavenged(source, proof));
    await proof.addRange(file, file.size, () => this.#context.checkpoint());
    proof.check();
  }

  /** A scavenged chunk knows where its records lie: its data are copied as they are, and its map is moved. */
  async #scavenged(source: Chunk, proof: ChunkProof): Promise<void> {
    const base = this.#writer.dataBytes;
    const end = HEADER_BYTES + source.physicalBytes;
    // While one is written the next block comes into the other.
    const [one, other] = this.#buffers;
    let isOther = false;
    const read = (at: number) => {
      isOther = !isOther;
      return readExactly(source, at, Math.min(COPY_BYTES, end - at), isOther ? other : one);
    };
    let ahead = source.physicalBytes > 0 ? read(HEADER_BYTES) : null;
    for (let at = HEADER_BYTES; ahead !== null;) {
      const block: Uint8Array = await ahead;
      at += block.length;
      ahead = at < end ? read(at) : null;
      const waiting = this.#writer.addData(block);
      proof.add(block);
      if (waiting !== undefined) await waiting;
      await this.#passed(block.length);
    }
    await this.#moveMap(source, base, proof);
    if (source.mapCount > 0) this.#writer.logicalBytes = source.startPosition - this.#start + source.logicalBytes;
  }

  async #moveMap(source: Chunk, base: number, proof: ChunkProof): Promise<void> {
    const { mapEntryBytes, mapCount } = source;
    const shift = source.startPosition - this.#start;
    const pieceEntries = Math.floor(COPY_BYTES / mapEntryBytes);
    let lastActual = -1;
    let lastLogical = -1;
    for (let from = 0; from < mapCount; from += pieceEntries) {
      const count = Math.min(pieceEntries, mapCount - from);
      const at = HEADER_BYTES + source.physicalBytes + from * mapEntryBytes;
      const bytes = await readExactly(source, at, count * mapEntryBytes);
      proof.add(bytes);
      for (let i = 0; i < count; i++) {
        const actual = mapActual(bytes, i * mapEntryBytes);
        const logical = mapLogical(bytes, i * mapEntryBytes, mapEntryBytes);
        if (actual <= lastActual || logical <= lastLogical || actual + FRAME_BYTES > source.physicalBytes)
          throw source.corrupt(
            at + i * mapEntryBytes - HEADER_BYTES,
            'an entry of the position map that is out of order',
          );
        this.#writer.addEntry(base + actual, shift + logical);
        lastActual = actual;
        lastLogical = logical;
      }
      await this.#context.checkpoint();
    }
  }

  /** The records of a chunk that was never scavenged are found by reading them. */
  async #unscavenged(source: Chunk, proof: ChunkProof): Promise<void> {
    let records = 0;
    await scanChunk(
      source,
      source.startPosition,
      (frame) => {
        const waiting = this.#writer.addRecord(
          frame.position - this.#start,
          frame.bytes,
          frame.at - FRAME_BYTES / 2,
          frame.length + FRAME_BYTES,
        );
        if (++records % CHECK_EVERY_RECORDS !== 0) return waiting;
        return waiting === undefined ? this.#context.checkpoint() : waiting.then(() => this.#context.checkpoint());
      },
      (bytes, block) => {
        proof.add(block);
        return this.#passed(bytes);
      },
      true,
    );
  }

  async #passed(bytes: number): Promise<void> {
    await this.#writer.settle();
    this.#onPassed(bytes);
    await this.#context.checkpoint();
  }
}

/** Reads a range that the file must have. */
function readExactly(source: Chunk, at: number, length: number, into?: Uint8Array): Promise<Uint8Array> {
  const reading = (async () => {
    const bytes = await source.file.file.read(at, length, into);
    if (bytes.length !== length)
      throw source.corrupt(at + bytes.length - HEADER_BYTES, 'the end of the file before the end of its data');
    return bytes;
  })();
  // What was read ahead is not waited for after an error.
  reading.catch(() => {});
  return reading;
}
