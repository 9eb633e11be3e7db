import { SkuaError } from '../base/errors.ts';
import { EntryList } from '../index/format/entries.ts';
import { FLAG_STREAM_DELETE, parsePrepare, PREPARE, PrepareFields, RecordFrame } from '../log/format/records.ts';
import type { JobContext } from '../ports/jobs.ts';
import { type ActiveOriginal, STATUS_ACTIVE, STATUS_SPENT, type StreamHandle } from '../ports/scavenge-state.ts';
import { Hash64 } from '../base/stream-hash.ts';
import {
  type Decision,
  DISCARD,
  DiscardPoints,
  isSoftDeleted,
  MAYBE,
  Retention,
  statusOf,
  STAYS,
  TOMBSTONE_I32,
  YOUNG,
} from '../streams/format/retention.ts';
import { encodeText } from '../base/text.ts';
import { DeletedStreams } from './deleted-streams.ts';
import { ChunkRanges, ChunkWeights, WEIGHT_DISCARD, WEIGHT_MAYBE } from './logical-chunks.ts';
import { type RunContext, withFiles } from './run-context.ts';
import type { IndexKey } from './sources/run-index.ts';
import { type RunFiles, type RunSettings, setRetention } from './sources/run-settings.ts';
import { type CollectingParts, withCollectingParts } from './sources/run-sources.ts';

/** Discard points and weights of all active streams. */
export const CALCULATE_JOB = 'scavenge.calculate';

interface CalculateArgs {
  readonly files: RunFiles;
  readonly settings: RunSettings;
  /** The last stream that is done, or null. */
  readonly after: StreamHandle | null;
}

export interface CalculateResult {
  /** Of the whole run. */
  readonly restedMs: number;
  readonly streams: number;
}

/** Streams in one transaction. */
const BATCH_STREAMS = 32_768;
/** Event numbers asked for at a time. */
const SLICE_NUMBERS = 8_192;
/** Index entries, and streams, after which it is asked whether to stop or to rest. */
const PAUSE_ENTRIES = 1_024;

/** Runs the phase from behind this stream on, and returns how many streams it calculated. */
export async function runCalculation(
  run: RunContext,
  after: StreamHandle | null,
): Promise<{ readonly streams: number }> {
  let from = after;
  const result = await withFiles(
    run.deps.data,
    false,
    (files) => {
      const args: CalculateArgs = { files, settings: run.settings(), after: from };
      return run
        .job<CalculateResult>(CALCULATE_JOB, args, (progress) => run.progress.ofPhase(progress))
        .catch(async (error: unknown) => {
          from = await run.withState((state) => state.checkpoint()?.doneStream ?? null);
          throw error;
        });
    },
    (file) => run.lines.filesVanished(CALCULATE_JOB, file),
  );
  run.throttle.restedMs = result.restedMs;
  return { streams: result.streams };
}

/** The job. */
export function calculate(args: CalculateArgs, context: JobContext): Promise<CalculateResult> {
  return withCollectingParts(args, context, async (parts) => {
    const streams = await new Calculation(parts, context).run(args.after);
    return { restedMs: parts.throttle.restedMs, streams };
  });
}

export class Calculation {
  readonly #parts: CollectingParts;
  readonly #context: JobContext;
  readonly #weights = new ChunkWeights();
  readonly #ranges: ChunkRanges;
  readonly #deleted: DeletedStreams;
  readonly #retention = new Retention();
  readonly #entries = new EntryList();
  readonly #hash = new Hash64();
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  #sincePause = 0;
  /** Position of the event with which the stream's last slice ended. */
  #lastPosition = -1;

  constructor(parts: CollectingParts, context: JobContext) {
    this.#parts = parts;
    this.#context = context;
    this.#ranges = new ChunkRanges(parts.state, Math.floor(parts.settings.point.position / parts.chunkSize));
    this.#deleted = new DeletedStreams(parts.sources, parts.state, context.hasher);
  }

  /** Calculates all streams behind `after`, and returns how many they are. */
  async run(after: StreamHandle | null): Promise<number> {
    const { state } = this.#parts;
    let streams = 0;
    let last = after;
    for (;;) {
      await this.#pause();
      const batch = state.activeOriginals(last, BATCH_STREAMS);
      if (batch.length === 0) break;
      last = await this.#batch(batch);
      streams += batch.length;
      this.#report(streams, last);
    }
    await this.#parts.throttle.rest();
    return streams;
  }

  /** Calculates some streams in one transaction, and returns the last one. */
  async #batch(batch: readonly ActiveOriginal[]): Promise<StreamHandle> {
    const { state, settings } = this.#parts;
    const last = batch.at(-1)!.handle;
    state.begin();
    try {
      for (const stream of batch) {
        await this.#stream(stream);
        if (++this.#sincePause >= PAUSE_ENTRIES) await this.#pause();
      }
      this.#weights.moveTo(state);
      state.commit({ point: settings.point, stage: 'Calculating', doneStream: last });
    } catch (error) {
      state.rollback();
      throw error;
    }
    return last;
  }

  async #stream({ handle, data }: ActiveOriginal): Promise<void> {
    const { state, sources, settings } = this.#parts;
    const key = this.#keyOf(handle);
    const lastNumber = await sources.index.lastNumber(key);
    setRetention(this.#retention, data, data.isTombstoned, lastNumber, settings);
    const points = new DiscardPoints();
    let from = 0;
    while (from <= lastNumber && !points.isDone) {
      from = await sources.index.slice(key, from, lastNumber, SLICE_NUMBERS, this.#entries);
      await this.#slice(points);
    }
    // The last event is always kept, so some entry has ended the search.
    if (!points.isFirst && !points.isDone)
      throw new SkuaError(
        'scavenge_failed',
        'All events of a stream would be discarded: the index does not match the log, so rebuild it',
      );
    let status = statusOf(data, lastNumber);
    let discardPoint = Math.max(points.discard, data.discardPoint);
    if (points.isDone && !settings.keepsDeletedData && isSoftDeleted(data)) {
      const last = await this.#deleted.last(this.#lastPosition, lastNumber);
      // Chunk execution takes the event at the discard point of a stream that is spent. One that was written since is
      // looked at again.
      if (last === 'written-since') status = STATUS_ACTIVE;
      else if (last !== 'other') {
        status = STATUS_SPENT;
        discardPoint = Math.max(discardPoint, lastNumber);
        if (last === 'full') this.#weights.add(Math.floor(this.#lastPosition / this.#parts.chunkSize), WEIGHT_DISCARD);
      }
    }
    const maybeDiscardPoint = Math.max(points.maybe, data.maybeDiscardPoint);
    if (status !== data.status || discardPoint !== data.discardPoint || maybeDiscardPoint !== data.maybeDiscardPoint) {
      state.setCalculated(handle, status, discardPoint, maybeDiscardPoint);
    }
  }

  /** Takes the entries up to the first one with which all that follow stay. */
  async #slice(points: DiscardPoints): Promise<void> {
    const { length } = this.#entries;
    for (let i = 0; i < length && !points.isDone; i++) {
      const number = this.#entries.versions[i]!;
      const position = this.#entries.positions[i]!;
      const chunk = Math.floor(position / this.#parts.chunkSize);
      let decision: Decision;
      if (number === TOMBSTONE_I32 && this.#retention.isTombstoned && (await this.#isTombstone(position)))
        decision = STAYS;
      else decision = this.#decide(number, chunk);
      points.take(number, decision);
      this.#lastPosition = position;
      if (decision === DISCARD) this.#weights.add(chunk, WEIGHT_DISCARD);
      else if (decision === MAYBE) this.#weights.add(chunk, WEIGHT_MAYBE);
      if (++this.#sincePause >= PAUSE_ENTRIES) await this.#pause();
    }
  }

  /**
   * Behind an event that is alive only a clock that was set back leaves expired ones: else the rest of the stream is
   * not looked at.
   */
  #decide(number: number, chunk: number): Decision {
    const retention = this.#retention;
    const decision = retention.decide(number, retention.hasAge ? this.#ranges.of(chunk) : undefined);
    return decision === YOUNG && !this.#ranges.mayHoldExpired(chunk, retention) ? STAYS : decision;
  }

  #keyOf(handle: StreamHandle): IndexKey {
    if (handle.kind === 'hash') return { hi: handle.hi, lo: handle.lo, name: null };
    this.#context.hasher.hash(handle.name, this.#hash);
    return { hi: this.#hash.hi, lo: this.#hash.lo, name: encodeText(handle.name) };
  }

  async #isTombstone(position: number): Promise<boolean> {
    if (!(await this.#parts.sources.chunks.record(position, this.#frame)) || this.#frame.type !== PREPARE) return false;
    parsePrepare(this.#frame, this.#fields);
    return (this.#fields.flags & FLAG_STREAM_DELETE) !== 0;
  }

  async #pause(): Promise<void> {
    this.#sincePause = 0;
    await this.#context.checkpoint();
    await this.#parts.throttle.rest();
  }

  /** Streams come in order of their hashes, which lie evenly, so the last hash tells how many there will be. */
  #report(done: number, last: StreamHandle): void {
    const share = last.kind === 'id' ? 0 : ((last.hi ^ 0x8000_0000) >>> 0) / 4_294_967_296;
    this.#context.progress({
      done,
      total: share > 0 ? Math.max(done, Math.round(done / share)) : done,
      unit: 'entries',
    });
  }
}
