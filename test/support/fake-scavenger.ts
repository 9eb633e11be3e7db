import { SkuaError } from '../../core/base/errors.ts';
import type {
  DryRunReport,
  Explanation,
  LastScavenge,
  ResumedPoint,
  ScavengeOptions,
  Scavenger,
  ScavengeStarted,
  ScavengeProgress,
  ScavengeResult,
} from '../../core/scavenge/api.ts';

/** A scavenger whose runs do nothing and end when a test says so. */
export class FakeScavenger implements Scavenger {
  /** Options of every start, in order. */
  readonly started: { readonly options: ScavengeOptions; readonly isDry: boolean }[] = [];
  /** What `progress` says while a run is active. */
  progressNow: Omit<ScavengeProgress, 'scavengeId'> | null = null;
  /** Reports and explanations that are there, by id and stream. */
  readonly reports = new Map<string, DryRunReport | SkuaError | null>();
  readonly explanations = new Map<string, Explanation>();
  #current: string | null = null;
  #last: LastScavenge | null = null;
  #ended: PromiseWithResolvers<void> | null = null;
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  /** A digit that tells the ids of its runs from those of other nodes. */
  readonly #node: number;

  constructor(node = 0) {
    this.#node = node;
  }

  /** When false, `stop` waits until the test ends the run. */
  stopsAtOnce = true;

  /** What waits to go on. */
  waitingNow: ResumedPoint | null = null;

  async waiting(): Promise<ResumedPoint | null> {
    return this.#current === null ? this.waitingNow : null;
  }

  async start(options: ScavengeOptions = {}): Promise<ScavengeStarted> {
    const olderPoint = options.startAfresh === true ? null : this.waitingNow;
    const started = this.#start(options, false);
    if (olderPoint === null) return started;
    this.#last = { ...this.#last!, olderPoint };
    return { ...started, olderPoint };
  }

  async startDryRun(options: ScavengeOptions = {}): Promise<{ readonly scavengeId: string }> {
    const started = this.#start(options, true);
    this.reports.set(started.scavengeId, null);
    return started;
  }

  #start(options: ScavengeOptions, isDry: boolean): { scavengeId: string } {
    if (this.#current !== null) throw new SkuaError('scavenge_in_progress', 'One runs.', { scavengeId: this.#current });
    if (this.holds > 0 && !isDry) throw new SkuaError('backup_running', 'A backup runs.');
    this.started.push({ options, isDry });
    const scavengeId = `0000000${this.#node}-0000-4000-8000-00000000000${this.started.length}`;
    this.#current = scavengeId;
    this.#ended = Promise.withResolvers();
    for (const { count, resolve } of this.#waiting) if (this.started.length >= count) resolve();
    if (!isDry) this.#last = { scavengeId, result: 'InProgress', error: null };
    return { scavengeId };
  }

  /** Resolves when so many runs have begun, dry ones too. */
  begun(count = 1): Promise<void> {
    return new Promise((resolve) => {
      if (this.started.length >= count) resolve();
      else this.#waiting.push({ count, resolve });
    });
  }

  /** Ends the active run. */
  end(result: ScavengeResult, error: string | null = null): void {
    if (this.#last?.scavengeId === this.#current) this.#last = { ...this.#last, result, error };
    this.#current = null;
    this.#ended!.resolve();
  }

  async stop(scavengeId: string): Promise<string> {
    const current = this.#current;
    if (current === null || (scavengeId !== 'current' && scavengeId !== current))
      throw new SkuaError('scavenge_not_found', 'No such run.');
    if (this.stopsAtOnce) this.end('Stopped');
    await this.#ended!.promise;
    return current;
  }

  /** Holds that were not released. */
  holds = 0;
  hold(): () => void {
    if (this.#current !== null) throw new SkuaError('scavenge_in_progress', 'One runs.', { scavengeId: this.#current });
    this.holds++;
    let isHeld = true;
    return () => {
      if (isHeld) this.holds--;
      isHeld = false;
    };
  }

  current(): string | null {
    return this.#current;
  }
  last(): LastScavenge | null {
    return this.#last;
  }
  lastOptions(): ScavengeOptions {
    return this.started.findLast(({ isDry }) => !isDry)?.options ?? {};
  }

  progress(): ScavengeProgress | null {
    return this.#current === null || this.progressNow === null
      ? null
      : { scavengeId: this.#current, ...this.progressNow };
  }

  async dryRun(scavengeId: string): Promise<DryRunReport | null> {
    const report = this.reports.get(scavengeId);
    if (report === undefined) throw new SkuaError('scavenge_not_found', 'No such dry run.');
    if (report instanceof SkuaError) throw report;
    return report;
  }

  async explain(stream: string): Promise<Explanation> {
    const explanation = this.explanations.get(stream);
    if (explanation === undefined)
      throw new SkuaError('stream_not_found', `Stream '${stream}' does not exist.`, { stream });
    return explanation;
  }

  async idle(): Promise<void> {
    await this.#ended?.promise;
  }
  async close(): Promise<void> {
    if (this.#current !== null) this.end('Interrupted');
  }
}
