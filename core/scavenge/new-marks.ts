import { equalBytes } from '../base/bytes.ts';
import { isSkuaError } from '../base/errors.ts';
import { guidFromText } from '../base/guid.ts';
import { encodeText } from '../base/text.ts';
import { isRedactable, redacted } from '../log/format/redaction.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame } from '../log/format/records.ts';
import { decodeMark, type Mark, MARKS_STREAM } from '../streams/format/marks.ts';
import { shownData } from '../streams/format/retention.ts';
import { type ChunkWeights, WEIGHT_DISCARD } from './logical-chunks.ts';
import type { RunChunks } from './sources/run-chunks.ts';

/** Marks that wait at most: their events lie anywhere before them, and each is looked at. */
const MARKS_WAITING_MAX = 16_384;
/** Marks after which it is asked whether to stop or to rest. */
const PAUSE_MARKS = 256;
const MARKS_STREAM_BYTES = encodeText(MARKS_STREAM);

/**
 * The marks of redaction that accumulation meets. Each adds weight to the chunk of its event, as long as that has its
 * content: a run without its database, which meets all of them again, then finds nothing to do.
 */
export class NewMarks {
  readonly #chunks: RunChunks;
  readonly #weights: ChunkWeights;
  readonly #chunkSize: number;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  readonly #id = new Uint8Array(16);
  #marks: Mark[] = [];

  constructor(chunks: RunChunks, weights: ChunkWeights, chunkSize: number) {
    this.#chunks = chunks;
    this.#weights = weights;
    this.#chunkSize = chunkSize;
  }

  get isFull(): boolean {
    return this.#marks.length >= MARKS_WAITING_MAX;
  }

  /** The prepare in `frame`, whose fields have been parsed, may be a mark. */
  take(frame: RecordFrame, fields: PrepareFields): void {
    const { streamAt, streamLength, isCommitted } = fields;
    if (!isCommitted || streamLength !== MARKS_STREAM_BYTES.length) return;
    if (!equalBytes(frame.bytes, streamAt, MARKS_STREAM_BYTES, 0, streamLength)) return;
    const mark = decodeMark(shownData(frame, fields));
    if (mark !== null) this.#marks.push(mark);
  }

  /** Within the transaction of the logical chunk in which they were met. */
  async weigh(pause: () => Promise<void>): Promise<void> {
    const marks = this.#marks;
    this.#marks = [];
    for (const [i, mark] of marks.entries()) {
      if (await this.#hasContent(mark)) this.#weights.add(Math.floor(mark.position / this.#chunkSize), WEIGHT_DISCARD);
      if (i % PAUSE_MARKS === 0) await pause();
    }
  }

  async #hasContent({ position, id, keys }: Mark): Promise<boolean> {
    const frame = this.#frame;
    const fields = this.#fields;
    try {
      if (!(await this.#chunks.record(position, frame)) || frame.type !== PREPARE) return false;
      parsePrepare(frame, fields);
    } catch (error) {
      // A mark may name a place at which no record begins, and must not keep scavenges from their end. Where the record
      // is damaged instead, the chunk's rewriting finds out, and nothing has to be rewritten twice: a position map
      // tells where records begin.
      if (isSkuaError(error, 'log_corrupt')) return true;
      throw error;
    }
    guidFromText(id, this.#id, 0);
    return (
      equalBytes(frame.bytes, fields.eventIdAt, this.#id, 0, 16) &&
      isRedactable(frame, fields) &&
      redacted(frame, fields, keys) !== null
    );
  }
}
