import { SkuaError } from '../base/errors.ts';
import type {
  DryRunReport,
  Explanation,
  LastScavenge,
  ResumedPoint,
  ScavengeDeps,
  ScavengeOptions,
  ScavengeProgress,
  Scavenger,
  ScavengeResult,
  ScavengeStarted,
} from './api.ts';
import { waitingPoint } from './points/points.ts';
import { HistoryWriter } from './history/history.ts';
import { repairHistory } from './history/history-repair.ts';
import {
  type ActiveRun,
  checkedOptions,
  explainStream,
  launchDryRun,
  type LaunchOptions,
  launchRun,
  THREADS_MAX,
} from './launch/launch.ts';
import { background } from '../base/background.ts';
import { newId } from '../ports/ids.ts';
export type { ErasureCheck, ErasureChecks } from './erasure-checks/erasure-checks.ts';

/** Dry runs whose reports are kept. */
const DRY_RUNS_MAX = 8;
/** Streams explained at once. */
const EXPLAINS_MAX = 2;

/** How a dry run ended; null while it has not. */
type DryRunOutcome = { readonly report: DryRunReport } | { readonly error: unknown } | null;

/**
 * Creates the scavenger of a node. Its first work, in the background, is to complete the history of runs that a stop
 * cut off.
 */
export function createScavenger(deps: ScavengeDeps): Scavenger {
  return new NodeScavenger(deps);
}

class NodeScavenger implements Scavenger {
  readonly #deps: ScavengeDeps;
  readonly #writer: HistoryWriter;
  readonly #closing = new AbortController();
  readonly #repair: Promise<void>;
  /** Runs that were started while the history is repaired, and are not to be taken for some that were cut off. */
  readonly #own = new Set<string>();
  #isRepaired: boolean;
  readonly #dryRuns = new Map<string, DryRunOutcome>();
  #active: ActiveRun | null = null;
  readonly #explaining = new Set<Promise<unknown>>();
  #last: LastScavenge | null = null;
  #lastOptions: ScavengeOptions = {};
  /** Found out once, as only runs change it; null for not yet. */
  #waiting: Promise<ResumedPoint | null> | null = null;
  /** Backups that read the files of now. */
  #holds = 0;

  constructor(deps: ScavengeDeps) {
    this.#deps = deps;
    const {
      data: { store },
      ports: { ids, log },
      config,
    } = deps;
    this.#writer = new HistoryWriter({
      store,
      ids,
      log,
      nodeEndpoint: config.nodeEndpoint,
      historyMaxAgeDays: config.historyMaxAgeDays,
    });
    this.#repair = config.repairHistory
      ? repairHistory(this.#writer, this.#own, this.#closing.signal).finally(() => {
          this.#isRepaired = true;
        })
      : Promise.resolve();
    this.#isRepaired = !config.repairHistory;
  }

  async start(options: ScavengeOptions = {}): Promise<ScavengeStarted> {
    const checked = this.#checked(options);
    if (this.#holds > 0)
      throw new SkuaError(
        'backup_running',
        'A backup or a proof of erasure is reading the files of this node: wait until it has finished, then start the scavenge.',
      );
    const scavengeId = newId(this.#deps.ports.ids);
    if (!this.#isRepaired) this.#own.add(scavengeId);
    this.#last = { scavengeId, result: 'InProgress', error: null };
    this.#lastOptions = options;
    const run = launchRun(this.#deps, this.#writer, scavengeId, checked, (result, error) =>
      this.#ended(run, options, result, error),
    );
    this.#activate(run);
    const olderPoint = (await run.decided) ?? undefined;
    if (olderPoint === undefined) return { scavengeId };
    if (this.#last.scavengeId === scavengeId) this.#last = { ...this.#last, olderPoint };
    return { scavengeId, olderPoint };
  }

  #ended(run: ActiveRun, options: ScavengeOptions, result: ScavengeResult, error: string | null): void {
    const { olderPoint } = this.#last ?? {};
    this.#last = { scavengeId: run.scavengeId, result, error, ...(olderPoint !== undefined && { olderPoint }) };
    // A start that goes on with this run must not abandon the run.
    if (run.isAfresh()) this.#lastOptions = { ...options, startAfresh: false };
  }

  async waiting(): Promise<ResumedPoint | null> {
    if (this.#closing.signal.aborted || (this.#active !== null && !this.#active.isDry)) return null;
    return (this.#waiting ??= waitingPoint(this.#deps));
  }

  async startDryRun(options: ScavengeOptions = {}): Promise<{ readonly scavengeId: string }> {
    const checked = this.#checked(options);
    const scavengeId = newId(this.#deps.ports.ids);
    for (const old of this.#dryRuns.keys()) if (this.#dryRuns.size >= DRY_RUNS_MAX) this.#dryRuns.delete(old);
    this.#dryRuns.set(scavengeId, null);
    this.#activate(launchDryRun(this.#deps, scavengeId, checked, (outcome) => this.#dryRuns.set(scavengeId, outcome)));
    return { scavengeId };
  }

  #activate(run: ActiveRun): void {
    this.#active = run;
    background(
      run.ended.then(() => {
        if (!run.isDry) this.#waiting = null;
        if (this.#active === run) this.#active = null;
      }),
    );
  }

  hold(): () => void {
    if (this.#active !== null && !this.#active.isDry) throw inProgress(this.#active);
    this.#holds++;
    let isHeld = true;
    return () => {
      if (isHeld) this.#holds--;
      isHeld = false;
    };
  }

  /** Throws unless a run with these options may start now. */
  #checked(options: ScavengeOptions): LaunchOptions {
    const checked = checkedOptions(options);
    if (this.#closing.signal.aborted)
      throw new SkuaError('store_closed', 'The store is closed: no scavenge can start.');
    if (this.#active !== null) throw inProgress(this.#active);
    const { threads = 1 } = options;
    if (threads > THREADS_MAX)
      this.#deps.ports.log.warn(`SCAVENGING: ${threads} threads were asked for; ${THREADS_MAX} are used.`, { threads });
    return checked;
  }

  async stop(scavengeId: string): Promise<string> {
    const active = this.#active;
    if (active === null || (scavengeId !== 'current' && scavengeId !== active.scavengeId)) throw notFound(scavengeId);
    active.stop('stopped');
    await active.ended;
    return active.scavengeId;
  }

  current(): string | null {
    return this.#active?.scavengeId ?? null;
  }
  last(): LastScavenge | null {
    return this.#last;
  }
  lastOptions(): ScavengeOptions {
    return this.#lastOptions;
  }
  progress(): ScavengeProgress | null {
    return this.#active?.progress() ?? null;
  }

  async dryRun(scavengeId: string): Promise<DryRunReport | null> {
    const outcome = this.#dryRuns.get(scavengeId);
    if (outcome === undefined) throw notFound(scavengeId);
    if (outcome === null) return null;
    if ('error' in outcome) throw outcome.error;
    return outcome.report;
  }

  async explain(stream: string): Promise<Explanation> {
    if (this.#explaining.size >= EXPLAINS_MAX)
      throw new SkuaError('too_busy', `${EXPLAINS_MAX} streams are already being explained: try again later.`, {
        limit: EXPLAINS_MAX,
      });
    const explaining = this.waiting().then((waiting) =>
      explainStream(this.#deps, stream, this.#closing.signal, waiting),
    );
    this.#explaining.add(explaining);
    try {
      return await explaining;
    } finally {
      this.#explaining.delete(explaining);
    }
  }

  async idle(): Promise<void> {
    await this.#repair;
    while (this.#active !== null) await this.#active.ended;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#active?.stop('interrupted');
    await this.idle();
    await Promise.allSettled(this.#explaining);
  }
}

function inProgress({ scavengeId }: ActiveRun): SkuaError {
  return new SkuaError(
    'scavenge_in_progress',
    `The scavenge ${scavengeId} is running: wait until it has finished, or stop it.`,
    { scavengeId },
  );
}

function notFound(scavengeId: string): SkuaError {
  return new SkuaError('scavenge_not_found', 'Scavenge Id does not exist', { scavengeId });
}
