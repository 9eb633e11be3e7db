import { isSkuaError } from '../errors.ts';
import type { DryRunReport, ScavengeProgress, ScavengeResult } from './api.ts';
import { dryRunReport } from './foresight.ts';
import { RunHistory } from './history.ts';
import type { HistoryWriter } from './history-writer.ts';
import type { LaunchOptions } from './options.ts';
import { RunProgress } from './progress.ts';
import { runScavenge } from './run.ts';
import { RunContext, type ScavengeDeps } from './run-context.ts';
import { queryOf, RunLog } from './run-log.ts';

/** A run or dry run that has not ended. */
export interface ActiveRun {
  readonly scavengeId: string;
  /** It only counts, and writes nothing. */
  readonly isDry: boolean;
  /** Resolves when the run and the writing of its history have ended; never rejects. */
  readonly ended: Promise<void>;
  /** `interrupted`: the node shuts down, and the run ends without its completion event. */
  stop(how: 'stopped' | 'interrupted'): void;
  progress(): ScavengeProgress;
}

/** Text of what ended a run, as the history, the log and `last` have it. */
function failureText(error: unknown): string {
  return `Error while scavenging DB: ${error instanceof Error ? error.message : String(error)}.`;
}

/**
 * Starts a run in the background. `onEnd` is told its result before its history is written out. The end does not get into the
 * history where `tellsEnd` is false, since something else decides whether it counts.
 */
export function launchRun(
  deps: ScavengeDeps, writer: HistoryWriter, scavengeId: string, options: LaunchOptions, onEnd: (result: ScavengeResult, error: string | null) => void, tellsEnd = true,
): ActiveRun {
  const ending = new AbortController();
  const lines = new RunLog(deps.ports.log, scavengeId);
  const progress = new RunProgress(scavengeId, deps.ports, (told) => lines.progress(told));
  const history = new RunHistory(writer, scavengeId);
  let isInterrupted = false;
  lines.requested(queryOf(options.asked, options.threads));
  const context = new RunContext({ deps, scavengeId, threads: options.threads, throttlePercent: options.throttlePercent, signal: ending.signal, progress, history, lines });
  const work = async (): Promise<void> => {
    let result: ScavengeResult = 'Success';
    let failure: unknown = null;
    try {
      await runScavenge(context, options);
    } catch (error) {
      const wasStopped = ending.signal.aborted && (isSkuaError(error, 'aborted') || isInterrupted);
      result = wasStopped ? (isInterrupted ? 'Interrupted' : 'Stopped') : 'Errored';
      if (!wasStopped) failure = error;
    }
    // What the run removed must not be remembered: a stream whose tombstone is gone can be written again.
    if (deps.config.unsafeIgnoreHardDelete) deps.data.store.forgetTombstones();
    const text = failure === null ? null : failureText(failure);
    if (result !== 'Interrupted' && tellsEnd) history.completed(result, text, progress.elapsedMs);
    lines.ended(result, progress.elapsedMs, history.spaceSaved, failure);
    progress.end();
    onEnd(result, text);
    await history.drained();
  };
  return {
    scavengeId,
    isDry: false,
    ended: work(),
    stop: (how) => {
      if (how === 'interrupted') isInterrupted = true;
      ending.abort();
    },
    progress: () => progress.current(),
  };
}

/** Starts a run that only counts. */
export function launchDryRun(deps: ScavengeDeps, scavengeId: string, options: LaunchOptions, onEnd: (outcome: { readonly report: DryRunReport } | { readonly error: unknown }) => void): ActiveRun {
  const ending = new AbortController();
  const lines = new RunLog(deps.ports.log, scavengeId);
  const progress = new RunProgress(scavengeId, deps.ports, (told) => lines.progress(told));
  const work = async (): Promise<void> => {
    try {
      onEnd({ report: await dryRunReport(deps, scavengeId, options, ending.signal, (told) => progress.ofPhase(told)) });
    } catch (error) {
      onEnd({ error });
    }
  };
  return { scavengeId, isDry: true, ended: work(), stop: () => ending.abort(), progress: () => progress.current() };
}
