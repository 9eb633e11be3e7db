import { SkuaError } from '../base/errors.ts';
import type { Chunk } from '../log/api.ts';
import { HEADER_BYTES } from '../log/format/chunk-format.ts';
import { ChunkProof } from '../log/format/chunk-proof.ts';
import { FRAME_BYTES, parsePrepare, PREPARE, PrepareFields, type RecordFrame } from '../log/format/records.ts';
import { scanChunk } from '../log/chunk/chunk.ts';
import type { JobContext } from '../ports/jobs.ts';
import type { ChunkWriter } from './chunk-writer.ts';
import { type Fate, GOES, type KeepRule, LOSES_CONTENT, STAYS_AS_IT_IS } from './keep-rule.ts';

/** Records between two looks at whether the run is to stop. */
const CHECK_EVERY_RECORDS = 1_024;
/** What a chunk has shown of itself by this share of its bytes tells how much of it stays. */
const TELLING_SHARE = 1 / 8;
/** As much more than there is room for must be foreseen before a chunk is given up. */
const SURELY_TOO_MUCH = 1.05;

interface SurvivorCopyParts {
  readonly source: Chunk;
  readonly keep: KeepRule;
  readonly writer: ChunkWriter;
  /** Log position at which the new file begins. */
  readonly start: number;
  /** Most bytes of records in the new file; none may be left out for it, so `copy` then gives up. */
  readonly roomBytes: number;
  /** Is told the bytes of the source that were read since the last call. */
  readonly onPassed: (bytes: number) => void;
}

/** Ends the scan of a chunk whose survivors don't fit. */
const noRoom = new SkuaError('aborted', 'There is not enough space for the surviving records of the chunk.');

/** Copies what survives of one chunk behind what a new file has. */
export class SurvivorCopy {
  readonly #parts: SurvivorCopyParts;
  readonly #context: JobContext;
  readonly #proof: ChunkProof;
  readonly #fields = new PrepareFields();
  readonly #firstByte: number;
  #bytesDone = 0;
  /** Records of the source, those that go among them. */
  records = 0;
  /** Those that stay without their data. */
  emptied = 0;

  constructor(parts: SurvivorCopyParts, context: JobContext) {
    this.#parts = parts;
    this.#context = context;
    const { source, writer } = parts;
    this.#proof = new ChunkProof(context.digests, source.name, source.file.file.size);
    this.#firstByte = writer.dataBytes;
  }

  /**
   * False when there is no room for all of it: what was added of it then must not stay in the file. Throws
   * `log_corrupt` for a source that is not as it was written, whatever was added of it.
   */
  async copy(): Promise<boolean> {
    const { source } = this.#parts;
    const { file } = source.file;
    await this.#proof.addRange(file, HEADER_BYTES);
    try {
      await scanChunk(
        source,
        source.startPosition,
        (frame) => this.#visit(frame),
        (bytes, block) => this.#passed(bytes, block),
        true,
      );
    } catch (error) {
      if (error === noRoom) return false;
      throw error;
    }
    await this.#proof.addRange(file, file.size, () => this.#context.checkpoint());
    this.#proof.check();
    return true;
  }

  #visit(frame: RecordFrame): void | Promise<void> {
    let waiting: void | Promise<void> = undefined;
    const fate = this.#fateOf(frame);
    if (fate !== GOES) {
      const { keep, writer, start, roomBytes } = this.#parts;
      const size = frame.length + FRAME_BYTES;
      if (writer.dataBytes + size > roomBytes) throw noRoom;
      if (fate === LOSES_CONTENT) {
        this.emptied++;
        waiting = writer.addRecord(frame.position - start, keep.rest, 0, size);
      } else waiting = writer.addRecord(frame.position - start, frame.bytes, frame.at - FRAME_BYTES / 2, size);
    }
    this.records++;
    if (this.records % CHECK_EVERY_RECORDS !== 0) return waiting;
    return waiting === undefined ? this.#context.checkpoint() : waiting.then(() => this.#context.checkpoint());
  }

  /** Commits and system records always stay. */
  #fateOf(frame: RecordFrame): Fate {
    if (frame.type !== PREPARE) return STAYS_AS_IT_IS;
    parsePrepare(frame, this.#fields);
    return this.#parts.keep.fateOf(frame, this.#fields);
  }

  async #passed(bytes: number, block: Uint8Array): Promise<void> {
    const { source, writer, roomBytes, onPassed } = this.#parts;
    this.#proof.add(block);
    await writer.settle();
    this.#bytesDone += bytes;
    onPassed(bytes);
    await this.#context.checkpoint();
    const share = this.#bytesDone / source.physicalBytes;
    const foreseen = this.#firstByte + (writer.dataBytes - this.#firstByte) / share;
    if (share >= TELLING_SHARE && foreseen > roomBytes * SURELY_TOO_MUCH) throw noRoom;
  }
}
