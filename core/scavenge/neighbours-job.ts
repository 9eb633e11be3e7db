import type { Chunk } from '../log/api.ts';
import type { JobContext } from '../ports/jobs.ts';
import type { MarkColumns } from '../streams/api.ts';
import { ChunkWriter, type EarlierEnd, openSource, scavengedFileBytes } from './chunk-writer.ts';
import { KeepRule } from './keep-rule.ts';
import { type RunSettings, Throttle } from './sources/run-settings.ts';
import { SurvivorCopy } from './survivor-copy.ts';
import { WholeCopy } from './whole-copy.ts';

/** The job that writes what survives of neighbouring chunks into one file. */
export const EXECUTE_NEIGHBOURS_JOB = 'scavenge.execute-neighbours';

/** A chunk file in force. */
interface NeighbourSource {
  readonly name: string;
  readonly startNumber: number;
  readonly endNumber: number;
  /** Bytes of records. */
  readonly dataBytes: number;
  /** Else the chunk was skipped, and all of its records stay. */
  readonly isExecuted: boolean;
}

export interface ExecuteNeighboursArgs {
  readonly settings: RunSettings;
  readonly chunkSize: number;
  /** In the order of the log, as many as are expected to fit. */
  readonly sources: readonly NeighbourSource[];
  /** Those of records in the sources that lie before the point. */
  readonly marks?: MarkColumns;
  /** `<uuid>.merge.scavenge.tmp` */
  readonly target: string;
  /** 16 on-disk bytes. */
  readonly chunkId: Uint8Array;
}

/** What became of one chunk. */
export interface NeighbourResult {
  readonly recordsKept: number;
  readonly recordsDiscarded: number;
  /** Of those that were kept: they lost their data. */
  readonly recordsEmptied: number;
  readonly bytesBefore: number;
  /** Size of the file that the chunk alone would have: that of the old one where it was skipped. */
  readonly bytesAfter: number;
  /** Bytes of the records that stay. */
  readonly dataBytes: number;
  readonly elapsedMs: number;
}

export interface ExecuteNeighboursResult {
  /** Of the first sources, as many as did fit. */
  readonly written: readonly NeighbourResult[];
  /** Size of the new file; null where nothing that fits was to be executed, so that there is none. */
  readonly bytesAfter: number | null;
  /** Of the whole run. */
  readonly restedMs: number;
}

/**
 * Writes the survivors of neighbours behind one another into one file, by the rule of merging: what does not fit a
 * chunk size begins the next file, which is not this job's. The file is complete and durable under its temporary name
 * when the job ends, and gone when it throws. Throws `log_corrupt` for a source that is not as it was written.
 */
export async function executeNeighbours(
  args: ExecuteNeighboursArgs,
  context: JobContext,
): Promise<ExecuteNeighboursResult> {
  const { settings } = args;
  const state = context.scavengeStates.open(settings.state);
  try {
    return await new NeighbourWriting(args, new KeepRule(state, settings, context.hasher, args.marks), context).run();
  } finally {
    state.close();
  }
}

class NeighbourWriting {
  readonly #args: ExecuteNeighboursArgs;
  readonly #keep: KeepRule;
  readonly #context: JobContext;
  readonly #throttle: Throttle;
  readonly #totalBytes: number;
  #doneBytes = 0;

  constructor(args: ExecuteNeighboursArgs, keep: KeepRule, context: JobContext) {
    this.#args = args;
    this.#keep = keep;
    this.#context = context;
    this.#throttle = new Throttle(args.settings.throttle, context);
    this.#totalBytes = args.sources.reduce((sum, { dataBytes }) => sum + dataBytes, 0);
  }

  async run(): Promise<ExecuteNeighboursResult> {
    const { sources, chunkSize, target, chunkId } = this.#args;
    const { storage, digests } = this.#context;
    const { startNumber } = sources[0]!;
    const writer = await ChunkWriter.create(storage, digests, {
      path: target,
      chunkSize,
      startNumber,
      endNumber: sources.at(-1)!.endNumber,
      chunkId,
    });
    try {
      const { written, end } = await this.#write(writer, startNumber * chunkSize);
      const hasSurvivors = written.some((_, i) => sources[i]!.isExecuted);
      if (!hasSurvivors) await writer.discard();
      return { written, bytesAfter: hasSurvivors ? await writer.finish(end) : null, restedMs: this.#throttle.restedMs };
    } catch (error) {
      await writer.discard();
      throw error;
    }
  }

  async #write(
    writer: ChunkWriter,
    start: number,
  ): Promise<{ readonly written: readonly NeighbourResult[]; readonly end: EarlierEnd | undefined }> {
    const { sources } = this.#args;
    const written: NeighbourResult[] = [];
    for (const source of sources) {
      const { mark } = writer;
      const result = await this.#add(source, writer, start);
      if (result === null) return { written, end: { endNumber: sources[written.length - 1]!.endNumber, mark } };
      written.push(result);
      await this.#throttle.rest();
    }
    return { written, end: undefined };
  }

  /** Null when it does not fit. The first one always does: nothing grows. */
  async #add(
    { name, dataBytes, isExecuted }: NeighbourSource,
    writer: ChunkWriter,
    start: number,
  ): Promise<NeighbourResult | null> {
    const { chunkSize } = this.#args;
    const { dataBytes: before, records } = writer.mark;
    const roomBytes = records === 0 ? Infinity : chunkSize;
    if (!isExecuted && before + dataBytes > roomBytes) return null;
    const startedMs = this.#context.monotonicMs();
    const source = await openSource(this.#context.storage, name, chunkSize);
    try {
      const copied = await this.#copy(source, isExecuted, { writer, start, roomBytes });
      if (copied === null) return null;
      const recordsKept = writer.records - records;
      const kept = writer.dataBytes - before;
      const bytesBefore = source.file.file.size;
      const bytesAfter = isExecuted ? scavengedFileBytes(kept, recordsKept) : bytesBefore;
      return {
        recordsKept,
        recordsDiscarded: copied.records - recordsKept,
        recordsEmptied: copied.emptied,
        bytesBefore,
        bytesAfter,
        dataBytes: kept,
        elapsedMs: this.#context.monotonicMs() - startedMs,
      };
    } finally {
      await source.file.retire();
    }
  }

  /** Records that the source had, and of those that stay the emptied ones; null when what stays does not fit. */
  async #copy(
    source: Chunk,
    isExecuted: boolean,
    { writer, start, roomBytes }: { writer: ChunkWriter; start: number; roomBytes: number },
  ): Promise<{ readonly records: number; readonly emptied: number } | null> {
    const onPassed = (bytes: number): void => {
      this.#doneBytes += bytes;
      this.#context.progress({ done: this.#doneBytes, total: this.#totalBytes, unit: 'bytes' });
    };
    if (!isExecuted) {
      const before = writer.records;
      await new WholeCopy(start, writer, this.#context, onPassed).take(source);
      return { records: writer.records - before, emptied: 0 };
    }
    const copy = new SurvivorCopy({ source, keep: this.#keep, writer, start, roomBytes, onPassed }, this.#context);
    return (await copy.copy()) ? copy : null;
  }
}
