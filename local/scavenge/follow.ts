import type { DryRunChunk, DryRunReport } from '../../core/scavenge/api.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { coloursFor, counted, countText, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import { bytesText, elapsedText, Progress } from '../cli/progress.ts';
import type { Phases } from '../cli/progress.ts';
import { UNTIL_CLEAN_RUNS_MAX } from './scavenge-options.ts';
import { momentOf } from './resumed-point.ts';
import type {
  DryRunDocument,
  LastDocument,
  ResumedPointDocument,
  ProgressDocument,
  TracesMembers,
} from '../../handlers/documents/scavenging.ts';
import type { CompletionReader, Document, ScavengeClient } from './scavenge-client.ts';

/** How often a node is asked how far it is. */
const POLL_MS = 200;

export interface FollowOptions {
  readonly io: Io;
  readonly json: boolean;
  /** Show how far it is while it runs. */
  readonly isShown: boolean;
  /** Ends the following; its reason is thrown. */
  readonly signal: AbortSignal;
}

/** How a run ended; its traces as the node answers them. */
export interface Ending extends TracesMembers {
  readonly scavengeId: string;
  readonly result: string;
  readonly error: string | null;
  /** Null where it is unknown, as the run's history could not be written. */
  readonly bytesReclaimed: number | null;
  readonly seconds: number | null;
  /** Absent where it went up to its start. */
  readonly olderPoint?: ResumedPointDocument;
}

/** Whether the run has done all that there was to do when it was started. */
export function isClean({ result, olderPoint }: Ending): boolean {
  return result === 'Success' && olderPoint === undefined;
}

/** Another client writes scavenge points, or stops runs, faster than they are reached. */
export function tooManyRuns(): CommandError {
  return new CommandError(
    'scavenge_not_clean',
    `${UNTIL_CLEAN_RUNS_MAX} runs have finished, and none reached its own start: something else starts scavenges here, too. Start at a new point with --fresh.`,
    EXIT.failed,
  );
}

/** What shows a run's progress: a bar on a terminal, lines elsewhere, objects for programs. */
export class ProgressView {
  readonly #progress: Progress;
  readonly #options: FollowOptions;
  #lastText = '';

  constructor(options: FollowOptions) {
    this.#options = options;
    const { io } = options;
    this.#progress = new Progress({
      io,
      onLine: (message) => line(io.stderr, message),
    });
  }

  show(document: ProgressDocument): void {
    const { isShown, json, io } = this.#options;
    if (!isShown) return;
    if (json) {
      const { elapsedSeconds: _, remainingSeconds: __, ...figures } = document;
      const text = JSON.stringify(figures);
      if (text !== this.#lastText) line(io.stdout, JSON.stringify({ kind: 'progress', ...document }));
      this.#lastText = text;
      return;
    }
    this.#progress.update(progressState(document));
  }

  clear(): void {
    this.#progress.clear();
  }
}

/** As they take their time in a run of a node that has something to remove. */
const PHASES: Phases = {
  starting: 1,
  accumulation: 25,
  calculation: 10,
  'chunk execution': 45,
  'chunk merging': 4,
  'index execution': 14,
  cleaning: 1,
};

export function progressState({
  phase,
  bytesDone,
  bytesTotal,
  chunksDone,
  chunksTotal,
  bytesReclaimed,
  olderPoint,
  phaseShare,
}: ProgressDocument) {
  const chunks = chunksTotal > 0 ? `chunk ${Math.min(chunksDone + 1, chunksTotal)} of ${chunksTotal}, ` : '';
  const upTo = olderPoint === undefined ? '' : `, up to ${momentOf(olderPoint)}`;
  // A dry run counts, and has no phases.
  if (phase === 'Starting' && bytesTotal > 0) return { label: 'counting', bytesDone, bytesTotal };
  return {
    label: phase.toLowerCase(),
    phases: PHASES,
    bytesDone,
    bytesTotal,
    detail: `${chunks}${bytesText(bytesReclaimed)} reclaimed${upTo}`,
    ...(phaseShare !== undefined && { share: phaseShare }),
  };
}

/** Waits for the end of a run. */
export async function followRun(
  client: ScavengeClient,
  completion: CompletionReader,
  scavengeId: string,
  options: FollowOptions,
): Promise<Ending> {
  const view = new ProgressView(options);
  try {
    for (;;) {
      const progress = await client.progress();
      if (progress?.value.scavengeId === scavengeId) view.show(progress.value);
      else {
        const last = await client.last();
        // Between the two questions the run may have begun or ended.
        if (last.value.scavengeId !== scavengeId || last.value.scavengeResult !== 'InProgress')
          return await endingOf(last.value, scavengeId, completion);
      }
      await pause(options.signal);
    }
  } finally {
    view.clear();
  }
}

/** Waits for the report of a dry run. */
export async function followDryRun(
  client: ScavengeClient,
  scavengeId: string,
  options: FollowOptions,
): Promise<Document<DryRunDocument>> {
  const view = new ProgressView(options);
  try {
    for (;;) {
      const report = await client.dryRun(scavengeId);
      if (report !== null) return report;
      const progress = await client.progress();
      if (progress?.value.scavengeId === scavengeId) view.show(progress.value);
      await pause(options.signal);
    }
  } finally {
    view.clear();
  }
}

async function pause(signal: AbortSignal): Promise<void> {
  await systemClock.sleep(POLL_MS, signal);
  signal.throwIfAborted();
}

async function endingOf(last: LastDocument, scavengeId: string, completion: CompletionReader): Promise<Ending> {
  if (last.scavengeId !== scavengeId) {
    throw new CommandError(
      'scavenge_superseded',
      `The node no longer knows scavenge ${scavengeId}: it was restarted, another one has run since, or it was a dry run that was stopped. Its history is in the stream $scavenges-${scavengeId}.`,
      EXIT.failed,
    );
  }
  const { bytesReclaimed, seconds } = await completion(scavengeId);
  const { olderPoint } = last;
  return {
    scavengeId,
    result: last.scavengeResult,
    error: last.error ?? null,
    bytesReclaimed,
    seconds,
    ...(olderPoint !== undefined && { olderPoint }),
    ...tracesOf(last),
  };
}

export function tracesOf({ tracesUntil, tracesGone }: LastDocument): TracesMembers {
  return { ...(tracesUntil !== undefined && { tracesUntil }), ...(tracesGone !== undefined && { tracesGone }) };
}

/** Shows how a run ended, and gives the exit code. */
export function showEnding(ending: Ending, json: boolean, io: Io): ExitCode {
  const { green, yellow, red } = coloursFor(io.stdout, io.env);
  const { scavengeId, result, error, bytesReclaimed, seconds, olderPoint } = ending;
  const isDone = result === 'Success';
  if (json) {
    line(io.stdout, JSON.stringify({ kind: 'result', ...ending }));
    return isDone ? EXIT.ok : EXIT.failed;
  }
  const time = seconds === null ? '' : ` after ${elapsedText(seconds)}`;
  const space = bytesReclaimed === null ? '' : ` ${bytesText(bytesReclaimed)} of files reclaimed.`;
  if (isDone && olderPoint !== undefined) {
    line(
      io.stdout,
      `${green(`Done up to ${momentOf(olderPoint)}`)}${time}: scavenge ${scavengeId}.${space} It ${olderPoint.why === 'unfinished' ? 'resumed the scavenge of that time' : 'used the scavenge point of that time'}: ${yellow('what was deleted or has expired since needs another run')}.`,
    );
  } else if (isDone) line(io.stdout, `${green('Done')}${time}: scavenge ${scavengeId}.${space}`);
  else if (result === 'Errored')
    line(
      io.stdout,
      `${red('Failed')}${time}: scavenge ${scavengeId}.${space}${error === null ? '' : ` ${error}`} The next start resumes where it failed.`,
    );
  else
    line(
      io.stdout,
      `${yellow(result)}${time}: scavenge ${scavengeId}.${space} The next start resumes where it stopped.`,
    );
  if (ending.tracesUntil !== undefined)
    line(
      io.stdout,
      `Traces of what it removed remain in objects waiting to be removed, until ${ending.tracesUntil} at the latest if ticks run.`,
    );
  if (ending.tracesGone !== undefined)
    line(io.stdout, `Since ${ending.tracesGone} no object holds a trace of what it removed.`);
  return isDone ? EXIT.ok : EXIT.failed;
}

/** Chunk files end with a whole one, so that what a run writes itself decides whether a small one gets shorter. */
const BLOCK_BYTES = 4_096;

/** Rows of a table beyond which only a count is shown; `--json` has all. */
const ROWS_MAX = 100;

const COLUMNS: readonly Column[] = [
  { title: 'file', align: 'left' },
  { title: 'chunks', align: 'left' },
  { title: 'weight', align: 'right' },
  { title: 'records', align: 'right' },
  { title: 'removable', align: 'right' },
  { title: 'size', align: 'right' },
  { title: 'reclaimable', align: 'right' },
  { title: 'rewritten', align: 'left' },
];

/**
 * What a scavenge would do, chunk by chunk. Chunks that it would not touch and that hold nothing to remove are left
 * out.
 */
export function showDryRun(
  { threshold, chunks, totals }: Pick<DryRunReport, 'threshold' | 'chunks' | 'totals'>,
  io: Io,
): void {
  const { bold, dim, green } = coloursFor(io.stdout, io.env);
  const touched = chunks.filter(
    (chunk) => chunk.wouldExecute || chunk.weight > 0 || chunk.discardable > 0 || chunk.redactable > 0,
  );
  if (touched.length > 0) {
    const lines = tableLines(COLUMNS, [...touched.slice(0, ROWS_MAX).map(rowOf), totalRow(totals)]);
    for (const [at, text] of lines.entries()) line(io.stdout, at === 0 || at === lines.length - 1 ? bold(text) : text);
    if (touched.length > ROWS_MAX)
      line(
        io.stdout,
        dim(`${counted(touched.length - ROWS_MAX, 'more chunk')} with something to remove; --json shows all.`),
      );
  }
  const untouched = chunks.length - touched.length;
  if (untouched > 0) line(io.stdout, dim(`${counted(untouched, 'chunk file')} with nothing to remove.`));
  if (touched.length > 0) line(io.stdout);
  const verdict =
    totals.chunksExecuted === 0
      ? 'A scavenge would not rewrite any chunk'
      : `A scavenge would rewrite ${counted(totals.chunksExecuted, 'chunk file')} of ${countText(totals.chunks)} and give back about ${green(bytesText(totals.bytesReclaimable))} of ${bytesText(totals.bytes)} of chunk files${totals.discardable > 0 && totals.bytesReclaimable <= totals.chunksExecuted * BLOCK_BYTES ? ', which have whole blocks of 4 KiB: of each it may be one more or less' : ''}`;
  if (totals.redactable > 0)
    line(
      io.stdout,
      `${counted(totals.redactable, 'last event')} of deleted streams would lose ${totals.redactable === 1 ? 'its' : 'their'} data but stay.`,
    );
  line(
    io.stdout,
    `${verdict}${threshold > 0 ? ` (threshold ${countText(threshold)}: removable events in lighter chunks stay on disk)` : ''}. Nothing was changed.`,
  );
}

function rowOf({
  file,
  start,
  end,
  weight,
  records,
  discardable,
  bytes,
  bytesReclaimable,
  wouldExecute,
}: DryRunChunk): string[] {
  return [
    file,
    start === end ? String(start) : `${start}-${end}`,
    countText(weight),
    countText(records),
    countText(discardable),
    bytesText(bytes),
    bytesText(bytesReclaimable),
    wouldExecute ? 'yes' : 'no',
  ];
}

function totalRow({
  records,
  discardable,
  bytes,
  bytesReclaimable,
  chunksExecuted,
  chunks,
}: DryRunReport['totals']): string[] {
  return [
    'all',
    '',
    '',
    countText(records),
    countText(discardable),
    bytesText(bytes),
    bytesText(bytesReclaimable),
    `${countText(chunksExecuted)} of ${countText(chunks)}`,
  ];
}
