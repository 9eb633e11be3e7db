import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { JobProgress } from '../../ports/jobs.ts';
import { type ScavengePoint, stateOptionsOf } from '../../ports/scavenge-state.ts';
import { checkReadableName, notFoundError } from '../../streams/format/names.ts';
import type {
  DryRunReport,
  Explanation,
  ResumedPoint,
  ScavengeDeps,
  ScavengeOptions,
  ScavengeProgress,
  ScavengeResult,
} from '../api.ts';
import { readLatestPoint, waitingPoint } from '../points/points.ts';
import { DRY_RUN_JOB, type DryRunArgs } from '../dry-run.ts';
import { EXPLAIN_JOB, type ExplainArgs } from '../explain.ts';
import { type HistoryWriter, RunHistory } from '../history/history.ts';
import { runScavenge } from './scavenge-run.ts';
import { RunContext, withFiles } from '../run-context.ts';
import { queryOf, RunLog } from '../run-log.ts';
import { RunProgress } from '../run-progress.ts';
import type { RunSettings } from '../sources/run-settings.ts';

/** Chunks at a time, whatever was asked for. */
export const THREADS_MAX = 4;
const I32_MIN = -2_147_483_648;
const I32_MAX = 2_147_483_647;

/** Options of a run that have been checked and completed. */
export interface LaunchOptions {
  readonly threads: number;
  readonly threshold: number;
  readonly throttlePercent: number;
  readonly syncOnly: boolean;
  readonly startAfresh: boolean;
  readonly freshSinceMs?: number;
  /** As they came in. */
  readonly asked: ScavengeOptions;
}

/** Throws `bad_option`. */
export function checkedOptions(options: ScavengeOptions): LaunchOptions {
  const { threads = 1, threshold = 0, throttlePercent = 100, syncOnly = false, startAfresh = false } = options;
  checkNumber('threads', threads, 1, I32_MAX);
  checkNumber('threshold', threshold, I32_MIN, I32_MAX);
  checkNumber('throttlePercent', throttlePercent, 1, 100);
  if (throttlePercent < 100 && threads > 1)
    throw new SkuaError('bad_option', 'throttlePercent must be 100 for a multi-threaded scavenge.', {
      option: 'throttlePercent',
      value: throttlePercent,
    });
  if (startAfresh && syncOnly)
    throw new SkuaError(
      'bad_option',
      'startAfresh writes a scavenge point and syncOnly uses an existing one: leave one of them out.',
      { option: 'startAfresh', value: true },
    );
  return { threads: Math.min(threads, THREADS_MAX), threshold, throttlePercent, syncOnly, startAfresh, asked: options };
}

function checkNumber(option: string, value: number, min: number, max: number): void {
  if (!Number.isInteger(value) || value < min || value > max)
    throw new SkuaError('bad_option', `${option} is ${value}; it must be a whole number from ${min} to ${max}.`, {
      option,
      value,
    });
}

/** A run or dry run that has not ended. */
export interface ActiveRun {
  readonly scavengeId: string;
  /** It only counts, and writes nothing. */
  readonly isDry: boolean;
  /** Resolves when the run and the writing of its history have ended; never rejects. */
  readonly ended: Promise<void>;
  /**
   * Resolves with the older point to which the run goes, null for a new one, as soon as that is known, and undefined
   * where it ended before. Never rejects.
   */
  readonly decided: Promise<ResumedPoint | null | undefined>;
  /** It was to start afresh, and has done so. */
  isAfresh(): boolean;
  /** `interrupted`: the node shuts down, and the run ends without its completion event. */
  stop(how: 'stopped' | 'interrupted'): void;
  progress(): ScavengeProgress;
}

/**
 * Starts a run in the background. `onEnd` is called with its result once its history is written out. The end does not
 * get into the history where `tellsEnd` is false, since something else decides whether it counts.
 */
export function launchRun(
  deps: ScavengeDeps,
  writer: HistoryWriter,
  scavengeId: string,
  options: LaunchOptions,
  onEnd: (result: ScavengeResult, error: string | null) => void,
  tellsEnd = true,
): ActiveRun {
  const ending = new AbortController();
  const lines = new RunLog(deps.ports.log, scavengeId);
  const progress = new RunProgress(scavengeId, deps.ports, (told) => lines.progress(told));
  const history = new RunHistory(writer, scavengeId);
  let isInterrupted = false;
  const decided = Promise.withResolvers<ResumedPoint | null | undefined>();
  lines.requested(queryOf(options.asked, options.threads));
  const context = new RunContext({
    deps,
    scavengeId,
    threads: options.threads,
    throttlePercent: options.throttlePercent,
    signal: ending.signal,
    progress,
    history,
    lines,
    onDecided: decided.resolve,
  });
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
    decided.resolve(undefined);
    await history.drained();
    // Not before: a caller that reads that the run has ended may begin the next run, or a backup, at once.
    onEnd(result, text);
  };
  return {
    scavengeId,
    isDry: false,
    ended: work(),
    decided: decided.promise,
    isAfresh: () => context.isAfresh,
    stop: (how) => {
      if (how === 'interrupted') isInterrupted = true;
      ending.abort();
    },
    progress: () => progress.current(),
  };
}

/** Text of what ended a run, as the history, the log and `last` have it. */
function failureText(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `Error while scavenging DB: ${reason}${reason.endsWith('.') ? '' : '.'}`;
}

/** How far a dry run has come, which is logged now and then. */
export function dryRunProgress(
  scavengeId: string,
  ports: Pick<ScavengeDeps['ports'], 'clock' | 'log' | 'meter'>,
): RunProgress {
  const lines = new RunLog(ports.log, scavengeId);
  return new RunProgress(scavengeId, ports, (told) => lines.progress(told));
}

/** Starts a run that only counts. */
export function launchDryRun(
  deps: ScavengeDeps,
  scavengeId: string,
  options: LaunchOptions,
  onEnd: (outcome: { readonly report: DryRunReport } | { readonly error: unknown }) => void,
): ActiveRun {
  const ending = new AbortController();
  const progress = dryRunProgress(scavengeId, deps.ports);
  const work = async (): Promise<void> => {
    try {
      onEnd({ report: await dryRunReport(deps, scavengeId, options, ending.signal, (told) => progress.ofPhase(told)) });
    } catch (error) {
      onEnd({ error });
    }
  };
  return {
    scavengeId,
    isDry: true,
    ended: work(),
    decided: Promise.resolve(undefined),
    isAfresh: () => false,
    stop: () => ending.abort(),
    progress: () => progress.current(),
  };
}

/**
 * Counts what a scavenge that began now would remove. `waiting` is looked up unless it is given. Rejects with `aborted`
 * when the signal ends it.
 */
export async function dryRunReport(
  deps: ScavengeDeps,
  scavengeId: string,
  options: { readonly threshold: number; readonly throttlePercent: number },
  signal: AbortSignal,
  onProgress: (progress: JobProgress) => void,
  waiting?: ResumedPoint | null,
): Promise<DryRunReport> {
  const olderPoint = waiting === undefined ? await waitingPoint(deps) : waiting;
  const settings = settingsNow(deps, await pointNow(deps, options.threshold), options.throttlePercent);
  const report = await withFiles(deps.data, true, async (files) => {
    const { position } = settings.point;
    const args: DryRunArgs = {
      files,
      settings,
      scavengeId,
      marks: await deps.data.store.redactions.columnsInTurns([0, position, position], deps.ports.clock),
    };
    return deps.ports.jobs.run(DRY_RUN_JOB, args, { signal, onProgress }) as Promise<DryRunReport>;
  });
  return olderPoint === null ? report : { ...report, waiting: olderPoint };
}

/**
 * Says for one stream which events would go, by which rule, and which stay. `waiting` is looked up unless it is given.
 */
export async function explainStream(
  deps: ScavengeDeps,
  stream: string,
  signal: AbortSignal,
  waiting?: ResumedPoint | null,
): Promise<Explanation> {
  const refusal = checkReadableName(stream);
  if (refusal !== null) throw refusal;
  if (signal.aborted) throw new SkuaError('store_closed', "The store is closed: streams can't be explained.");
  const { lastEventNumber, metadataVersion } = await deps.data.store.streamInfo(stream);
  if (lastEventNumber < 0 && metadataVersion < 0) throw notFoundError(stream);
  const olderPoint = waiting === undefined ? await waitingPoint(deps) : waiting;
  const settings = settingsNow(deps, await pointNow(deps, 0), 100);
  return withFiles(deps.data, true, async (files) => {
    const { position } = settings.point;
    const marks = await deps.data.store.redactions.columnsInTurns([0, position, position], deps.ports.clock);
    const args: ExplainArgs = { files, settings, stream, olderPoint, marks };
    return deps.ports.jobs.run(EXPLAIN_JOB, args, { signal }) as Promise<Explanation>;
  });
}

/** The scavenge point that would be written now. */
async function pointNow(
  { data: { store, table }, ports: { clock } }: ScavengeDeps,
  threshold: number,
): Promise<ScavengePoint> {
  const latest = await readLatestPoint(store);
  return {
    position: table.end,
    eventNumber: (latest?.eventNumber ?? -1) + 1,
    effectiveNowMs: Math.floor(clock.nowMs()),
    threshold,
  };
}

function settingsNow({ config }: ScavengeDeps, point: ScavengePoint, percent: number): RunSettings {
  return {
    point,
    unsafeIgnoreHardDelete: config.unsafeIgnoreHardDelete,
    keepsDeletedData: config.keepsDeletedData,
    state: stateOptionsOf(config, 1),
    throttle: { percent, elapsedMs: 0, restedMs: 0 },
  };
}
