import { systemClock } from '../../infra/clock.ts';
import { coloursFor } from '../cli/colour.ts';
import { CommandError } from '../cli/failure.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { bytesText, elapsedText, Progress } from '../progress.ts';
import type { DryRunDocument, Document, LastDocument, ProgressDocument, ScavengeClient } from './client.ts';
import type { CompletionReader } from './completion.ts';

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

/** How a run ended. */
export interface Ending {
  readonly scavengeId: string;
  readonly result: string;
  readonly error: string | null;
  /** Null where nobody knows, as the run's history could not be written. */
  readonly bytesReclaimed: number | null;
  readonly seconds: number | null;
}

/** What shows a run's progress: a bar on a terminal, lines elsewhere, objects for programs. */
export class ProgressView {
  readonly #progress: Progress;
  readonly #options: FollowOptions;
  #lastText = '';

  constructor(options: FollowOptions) {
    this.#options = options;
    const { io } = options;
    this.#progress = new Progress({ output: io.stderr, env: io.env, clock: systemClock, onLine: (message) => line(io.stderr, message) });
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

export function progressState({ phase, bytesDone, bytesTotal, chunksDone, chunksTotal, bytesReclaimed }: ProgressDocument) {
  const chunks = chunksTotal > 0 ? `chunk ${Math.min(chunksDone + 1, chunksTotal)} of ${chunksTotal}, ` : '';
  return { label: phase.toLowerCase(), bytesDone, bytesTotal, detail: `${chunks}${bytesText(bytesReclaimed)} reclaimed` };
}

/** Waits for the end of a run. */
export async function followRun(client: ScavengeClient, completion: CompletionReader, scavengeId: string, options: FollowOptions): Promise<Ending> {
  const view = new ProgressView(options);
  try {
    for (;;) {
      const progress = await client.progress();
      if (progress?.value.scavengeId === scavengeId) view.show(progress.value);
      else {
        const last = await client.last();
        // Between the two questions the run may have begun or ended.
        if (last.value.scavengeId !== scavengeId || last.value.scavengeResult !== 'InProgress') return await endingOf(last.value, scavengeId, completion);
      }
      await pause(options.signal);
    }
  } finally {
    view.clear();
  }
}

/** Waits for the report of a dry run. */
export async function followDryRun(client: ScavengeClient, scavengeId: string, options: FollowOptions): Promise<Document<DryRunDocument>> {
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
    throw new CommandError('scavenge_superseded', `The node knows nothing of scavenge ${scavengeId} any more: it was restarted, another one has run since, or it was a dry run that was stopped. Its history is in the stream $scavenges-${scavengeId}.`, EXIT.failed);
  }
  const { bytesReclaimed, seconds } = await completion(scavengeId);
  return { scavengeId, result: last.scavengeResult, error: last.error ?? null, bytesReclaimed, seconds };
}

/** Shows how a run ended, and gives the exit code. */
export function showEnding(ending: Ending, json: boolean, io: Io): ExitCode {
  const { green, yellow, red } = coloursFor(io.stdout, io.env);
  const { scavengeId, result, error, bytesReclaimed, seconds } = ending;
  const isDone = result === 'Success';
  if (json) {
    line(io.stdout, JSON.stringify({ kind: 'result', ...ending }));
    return isDone ? EXIT.ok : EXIT.failed;
  }
  const time = seconds === null ? '' : ` after ${elapsedText(seconds)}`;
  const space = bytesReclaimed === null ? '' : ` ${bytesText(bytesReclaimed)} reclaimed.`;
  if (isDone) line(io.stdout, `${green('Done')}${time}: scavenge ${scavengeId}.${space}`);
  else if (result === 'Errored') line(io.stdout, `${red('Failed')}${time}: scavenge ${scavengeId}.${space}${error === null ? '' : ` ${error}`} The next start goes on where it failed.`);
  else line(io.stdout, `${yellow(result)}${time}: scavenge ${scavengeId}.${space} The next start goes on where it stopped.`);
  return isDone ? EXIT.ok : EXIT.failed;
}
