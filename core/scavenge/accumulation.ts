import { u32 } from '../base/bytes.ts';
import { SkuaError } from '../base/errors.ts';
import type { Chunk } from '../log/api.ts';
import {
  COMMIT,
  FLAG_STREAM_DELETE,
  parsePrepare,
  PREPARE,
  PrepareFields,
  type RecordFrame,
  SYSTEM,
} from '../log/format/records.ts';
import { scanChunk } from '../log/chunk/chunk.ts';
import type { JobContext } from '../ports/jobs.ts';
import { MetadataCollector, StreamFacts } from './metadata-collector.ts';
import { NewMarks } from './new-marks.ts';
import { ChunkWeights, TimeRange } from './logical-chunks.ts';
import { type RunContext, withFiles } from './run-context.ts';
import type { RunFiles, RunSettings } from './sources/run-settings.ts';
import { type CollectingParts, withCollectingParts } from './sources/run-sources.ts';

/** Learning from the log what streams' metadata, tombstones and shared hashes are. */
export const ACCUMULATE_JOB = 'scavenge.accumulate';

interface AccumulateArgs {
  readonly files: RunFiles;
  readonly settings: RunSettings;
  /** The first logical chunk to read. */
  readonly fromChunk: number;
}

export interface AccumulateResult {
  /** Of the whole run. */
  readonly restedMs: number;
  /** Logical chunks. */
  readonly chunks: number;
  /** Prepares, and among them those of metadata and the tombstones. */
  readonly records: number;
  readonly metadata: number;
  readonly tombstones: number;
  /** Logical chunk and number of its prepares, of each. */
  readonly recordCounts: readonly (readonly [chunk: number, records: number])[];
}

/** Records after which it is asked whether to stop or to rest. */
const PAUSE_RECORDS = 1_024;
const DOLLAR = 36;

/** Runs the phase from this logical chunk on, and returns what it counted. */
export async function runAccumulation(run: RunContext, fromChunk: number): Promise<AccumulationCounts> {
  let from = fromChunk;
  const result = await withFiles(
    run.deps.data,
    false,
    (files) => {
      const args: AccumulateArgs = { files, settings: run.settings(), fromChunk: from };
      return run
        .job<AccumulateResult>(ACCUMULATE_JOB, args, (progress) => run.progress.ofPhase(progress))
        .catch(async (error: unknown) => {
          // Where the files have to be listed anew, the chunks that are done are not read again.
          from = await run.withState((state) => (state.checkpoint()?.doneChunk ?? -1) + 1);
          throw error;
        });
    },
    (file) => run.lines.filesVanished(ACCUMULATE_JOB, file),
  );
  run.throttle.restedMs = result.restedMs;
  for (const [chunk, records] of result.recordCounts) run.recordCounts.set(chunk, records);
  return { chunks: result.chunks, records: result.records, metadata: result.metadata, tombstones: result.tombstones };
}

/** The job. */
export function accumulate(args: AccumulateArgs, context: JobContext): Promise<AccumulateResult> {
  // The chunks that are executed next are compared with their MD5.
  context.digests.prepare?.(args.files.chunkSize);
  return withCollectingParts(args, context, async (parts) => {
    const counts = await new Accumulation({ ...parts, fromChunk: args.fromChunk }, context).run();
    return { ...counts, restedMs: parts.throttle.restedMs };
  });
}

interface AccumulationParts extends CollectingParts {
  readonly fromChunk: number;
}

type AccumulationCounts = Omit<AccumulateResult, 'restedMs' | 'recordCounts'>;

/** Ends the scan of a chunk when what lies behind the scavenge point begins. */
const reachedPoint = new SkuaError('aborted', 'The scavenge point is reached.');

export class Accumulation {
  readonly #parts: AccumulationParts;
  readonly #context: JobContext;
  readonly #facts: StreamFacts;
  readonly #collector: MetadataCollector;
  readonly #weights = new ChunkWeights();
  readonly #fields = new PrepareFields();
  readonly #times = new TimeRange();
  readonly #pointPosition: number;
  /** The logical chunk whose transaction is open, and its end. */
  #logical = -1;
  #logicalEnd = 0;
  #isOpen = false;
  /** Of the last record. */
  #position = 0;
  readonly #marks: NewMarks;
  #sincePause = 0;
  #chunks = 0;
  #records = 0;
  readonly #recordCounts: (readonly [number, number])[] = [];
  /** Of them, those before the logical chunk. */
  #recordsBefore = 0;
  #bytesTotal = 0;

  constructor(parts: AccumulationParts, context: JobContext) {
    this.#parts = parts;
    this.#context = context;
    const { state, sources, chunkSize } = parts;
    this.#facts = new StreamFacts(context.hasher, parts.fromChunk === 0);
    this.#collector = new MetadataCollector({
      state,
      index: sources.index,
      weights: this.#weights,
      chunkSize,
      pause: () => this.#pause(),
    });
    this.#marks = new NewMarks(sources.chunks, this.#weights, chunkSize);
    this.#pointPosition = parts.settings.point.position;
  }

  async run(): Promise<Omit<AccumulateResult, 'restedMs'>> {
    const { sources, chunkSize, fromChunk } = this.#parts;
    const { chunks } = sources;
    const from = fromChunk * chunkSize;
    const last = chunks.placeOf(this.#pointPosition);
    const first = Math.max(0, chunks.placeOf(from));
    this.#bytesTotal = this.#pointPosition - from;
    try {
      for (let place = first; place <= last; place++) {
        const chunk = await chunks.open(place);
        try {
          if (chunk.endPosition > from) await this.#chunk(chunk, from);
        } finally {
          await chunks.release(chunk);
        }
      }
    } catch (error) {
      if (this.#isOpen) this.#parts.state.rollback();
      throw error;
    }
    const { metadata, tombstones } = this.#facts;
    return { chunks: this.#chunks, records: this.#records, metadata, tombstones, recordCounts: this.#recordCounts };
  }

  /** Reads a file, whose logical chunks each have a transaction of their own. */
  async #chunk(chunk: Chunk, from: number): Promise<void> {
    const { chunkSize } = this.#parts;
    if (chunk.isScavenged) this.#facts.noteScavengedChunk();
    const first = Math.max(chunk.startNumber, Math.floor(from / chunkSize));
    const last = Math.min(chunk.endNumber, Math.floor(this.#pointPosition / chunkSize));
    this.#begin(first);
    await this.#pause();
    try {
      await scanChunk(
        chunk,
        first * chunkSize,
        (frame) => this.#visit(frame),
        () => this.#report(this.#position),
        true,
      );
    } catch (error) {
      if (error !== reachedPoint) throw error;
    }
    while (this.#logical < last) await this.#next();
    await this.#finish();
    this.#report(chunk.endPosition);
  }

  #visit(frame: RecordFrame): void | Promise<void> {
    const { position } = frame;
    if (position > this.#pointPosition) throw reachedPoint;
    this.#position = position;
    if (position >= this.#logicalEnd) return this.#cross(frame);
    this.#take(frame);
    if (this.#facts.isFull) return this.#collector.collect(this.#facts);
    if (this.#marks.isFull) return this.#marks.weigh(() => this.#pause());
    return ++this.#sincePause < PAUSE_RECORDS ? undefined : this.#pause();
  }

  /** A record of a further logical chunk of a merged file. */
  async #cross(frame: RecordFrame): Promise<void> {
    while (frame.position >= this.#logicalEnd) await this.#next();
    this.#take(frame);
  }

  #take(frame: RecordFrame): void {
    const b = frame.bytes;
    const type = b[frame.at];
    if (type !== PREPARE) {
      if (type === COMMIT || type === SYSTEM) return;
      throw new SkuaError(
        'scavenge_failed',
        `Found a record of the unknown type ${type} at position ${frame.position}`,
        { position: frame.position },
      );
    }
    this.#records++;
    const f = this.#fields;
    parsePrepare(frame, f);
    this.#times.widen(u32(b, f.timestampAt + 4), u32(b, f.timestampAt));
    const { streamAt, streamLength } = f;
    if ((f.flags & FLAG_STREAM_DELETE) !== 0) this.#facts.tombstone(frame, f);
    else if (b[streamAt] === DOLLAR && b[streamAt + 1] === DOLLAR && streamLength >= 2)
      this.#facts.metadataRecord(frame, f);
    else {
      this.#facts.ordinary(b, streamAt, streamLength);
      if (b[streamAt] === DOLLAR) this.#marks.take(frame, f);
    }
  }

  #begin(logical: number): void {
    this.#logical = logical;
    this.#logicalEnd = (logical + 1) * this.#parts.chunkSize;
    this.#times.clear();
    this.#parts.state.begin();
    this.#isOpen = true;
  }

  async #next(): Promise<void> {
    await this.#finish();
    this.#begin(this.#logical + 1);
  }

  async #finish(): Promise<void> {
    const { state, settings } = this.#parts;
    await this.#collector.collect(this.#facts);
    await this.#marks.weigh(() => this.#pause());
    this.#times.moveTo(state, this.#logical);
    this.#weights.moveTo(state);
    state.commit({ point: settings.point, stage: 'Accumulating', doneChunk: this.#logical });
    this.#isOpen = false;
    this.#chunks++;
    this.#recordCounts.push([this.#logical, this.#records - this.#recordsBefore]);
    this.#recordsBefore = this.#records;
  }

  async #pause(): Promise<void> {
    this.#sincePause = 0;
    await this.#context.checkpoint();
    await this.#parts.throttle.rest();
  }

  /** Bytes of the log: what earlier runs have removed counts as read. */
  #report(position: number): void {
    const total = this.#bytesTotal;
    this.#context.progress({
      done: Math.min(total, Math.max(0, total + position - this.#pointPosition)),
      total,
      unit: 'bytes',
    });
  }
}
