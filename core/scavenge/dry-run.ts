import type { Chunk } from '../log/api.ts';
import { align4096, FOOTER_BYTES, HEADER_BYTES } from '../log/format/chunk-format.ts';
import { FRAME_BYTES, parsePrepare, PREPARE, PrepareFields, type RecordFrame } from '../log/format/records.ts';
import { scanChunk } from '../log/chunk/chunk.ts';
import type { JobContext } from '../ports/jobs.ts';
import { Accumulation } from './accumulation.ts';
import type { DryRunChunk, DryRunReport } from './api.ts';
import { Calculation } from './calculation.ts';
import { scavengedFileBytes } from './chunk-writer.ts';
import { type Fate, GOES, KeepRule, LOSES_CONTENT, STAYS_AS_IT_IS } from './keep-rule.ts';
import type { MarkColumns } from '../streams/api.ts';
import { type RunFiles, type RunSettings, Throttle } from './sources/run-settings.ts';
import { type CollectingParts, RunSources } from './sources/run-sources.ts';

/** A scavenge that only counts: it learns into a state of its own, and writes nothing to the directory. */
export const DRY_RUN_JOB = 'scavenge.dry-run';

export interface DryRunArgs {
  readonly files: RunFiles;
  /** The point may be the end of the log. */
  readonly settings: RunSettings;
  readonly scavengeId: string;
  /** Those of the log before the point. */
  readonly marks?: MarkColumns;
}

/** Records after which it is asked whether to stop or to rest. */
const PAUSE_RECORDS = 1_024;

export async function dryRun(args: DryRunArgs, context: JobContext): Promise<DryRunReport> {
  const { settings, files } = args;
  const state = context.scavengeStates.openTemporary(settings.state);
  try {
    const sources = await RunSources.open(files, settings.point.position, context);
    try {
      return await new DryRun(
        { state, sources, settings, throttle: new Throttle(settings.throttle, context), chunkSize: files.chunkSize },
        context,
        args.marks,
      ).run(args.scavengeId);
    } finally {
      await sources.close();
    }
  } finally {
    state.close();
  }
}

class DryRun {
  readonly #parts: CollectingParts;
  readonly #context: JobContext;
  readonly #keep: KeepRule;
  readonly #fields = new PrepareFields();
  readonly #bytesTotal: number;
  #sincePause = 0;

  constructor(parts: CollectingParts, context: JobContext, marks?: MarkColumns) {
    this.#parts = parts;
    this.#context = context;
    this.#keep = new KeepRule(parts.state, parts.settings, context.hasher, marks);
    this.#bytesTotal = parts.settings.point.position;
  }

  async run(scavengeId: string): Promise<DryRunReport> {
    const { settings } = this.#parts;
    // The log is read twice: to learn, and to count. What lies between is short and has no bytes.
    await new Accumulation(
      { ...this.#parts, fromChunk: 0 },
      { ...this.#context, progress: ({ done }) => this.#report(done) },
    ).run();
    await new Calculation(this.#parts, { ...this.#context, progress: () => {} }).run(null);
    const chunks = await this.#chunks();
    const executed = chunks.filter((chunk) => chunk.wouldExecute);
    const sum = (
      of: readonly DryRunChunk[],
      key: 'records' | 'discardable' | 'redactable' | 'bytes' | 'bytesReclaimable',
    ) => of.reduce((total, chunk) => total + chunk[key], 0);
    return {
      scavengeId,
      threshold: settings.point.threshold,
      point: settings.point,
      chunks,
      totals: {
        chunks: chunks.length,
        records: sum(chunks, 'records'),
        bytes: sum(chunks, 'bytes'),
        discardable: sum(executed, 'discardable'),
        redactable: sum(executed, 'redactable'),
        bytesReclaimable: sum(executed, 'bytesReclaimable'),
        chunksExecuted: executed.length,
      },
    };
  }

  async #chunks(): Promise<DryRunChunk[]> {
    const { sources, settings } = this.#parts;
    const counted: DryRunChunk[] = [];
    for (let place = 0; place < sources.chunks.files.length; place++) {
      const chunk = await sources.chunks.open(place);
      try {
        // A chunk that begins at the point is not visited.
        if (chunk.startPosition >= settings.point.position) break;
        counted.push(await this.#count(chunk));
        this.#report(this.#bytesTotal + Math.min(chunk.endPosition, this.#bytesTotal));
      } finally {
        await sources.chunks.release(chunk);
      }
    }
    return counted;
  }

  async #count(chunk: Chunk): Promise<DryRunChunk> {
    const { state, settings } = this.#parts;
    let records = 0;
    let kept = 0;
    let keptBytes = 0;
    let redactable = 0;
    let position = chunk.startPosition;
    await scanChunk(
      chunk,
      chunk.startPosition,
      (frame) => {
        records++;
        position = frame.position;
        const fate = this.#fateOf(frame);
        if (fate === LOSES_CONTENT) redactable++;
        if (fate !== GOES) {
          kept++;
          keptBytes += frame.length + FRAME_BYTES;
        }
        return ++this.#sincePause < PAUSE_RECORDS ? undefined : this.#pause();
      },
      () => this.#report(this.#bytesTotal + position),
    );
    await this.#pause();
    const { startNumber: start, endNumber: end } = chunk;
    const weight = state.weight(start, end);
    // A chunk that is still being written has its full length; the run would complete it first.
    const bytes = chunk.isCompleted
      ? chunk.file.file.size
      : align4096(HEADER_BYTES + chunk.physicalBytes + FOOTER_BYTES);
    const bytesAfter = scavengedFileBytes(keptBytes, kept);
    const { threshold } = settings.point;
    const wouldExecute = settings.unsafeIgnoreHardDelete || threshold < 0 || (weight > 0 && weight >= threshold);
    return {
      file: chunk.name,
      start,
      end,
      weight,
      records,
      discardable: records - kept,
      redactable,
      bytes,
      bytesReclaimable: bytes - bytesAfter,
      wouldExecute,
    };
  }

  /** As chunk execution decides. */
  #fateOf(frame: RecordFrame): Fate {
    if (frame.type !== PREPARE) return STAYS_AS_IT_IS;
    parsePrepare(frame, this.#fields);
    return this.#keep.fateOf(frame, this.#fields);
  }

  async #pause(): Promise<void> {
    this.#sincePause = 0;
    await this.#context.checkpoint();
    await this.#parts.throttle.rest();
  }

  #report(done: number): void {
    const total = this.#bytesTotal * 2;
    this.#context.progress({ done: Math.min(done, total), total, unit: 'bytes' });
  }
}
