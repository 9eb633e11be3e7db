import { SkuaError } from '../../../core/base/errors.ts';
import type { LastScavenge, ScavengeResult, Scavenger } from '../../../core/scavenge/api.ts';
import type { Random } from '../../support/random.ts';
import type { Timeline } from './timeline.ts';

/** One run on one node, for the judge. */
export interface Run {
  readonly id: string;
  readonly node: string;
  readonly startedAt: number;
  endedAt: number | null;
  result: ScavengeResult | null;
}

export interface Pace {
  /** Runs take up to one of these times; stops up to `stopMs` milliseconds; a share of the runs fails. */
  runMs: readonly number[];
  stopMs: number;
  failing: number;
}

type Used = Pick<Scavenger, 'start' | 'stop' | 'current' | 'last'>;

/**
 * A node's scavenger as far as orders reach: runs that take their time, end, fail, and are slow to stop. Dies with its
 * process.
 */
export class SimScavenger implements Used {
  readonly #name: string;
  readonly #timeline: Timeline;
  readonly #random: Random;
  readonly #pace: Pace;
  readonly #onEnd: (run: Run) => void;
  readonly #newId: () => string;
  #active: {
    readonly run: Run;
    readonly ended: PromiseWithResolvers<void>;
    isStopping: boolean;
    cancel: () => void;
  } | null = null;
  #last: LastScavenge | null = null;
  isDead = false;
  readonly runs: Run[];

  constructor(
    name: string,
    parts: {
      timeline: Timeline;
      random: Random;
      pace: Pace;
      runs: Run[];
      newId: () => string;
      onEnd: (run: Run) => void;
    },
  ) {
    this.#name = name;
    this.#timeline = parts.timeline;
    this.#random = parts.random;
    this.#pace = parts.pace;
    this.#onEnd = parts.onEnd;
    this.#newId = parts.newId;
    this.runs = parts.runs;
  }

  async start(): Promise<{ readonly scavengeId: string }> {
    if (this.isDead) throw new SkuaError('store_closed', 'The process is gone.');
    if (this.#active !== null)
      throw new SkuaError('scavenge_in_progress', 'One runs.', { scavengeId: this.#active.run.id });
    const run: Run = {
      id: this.#newId(),
      node: this.#name,
      startedAt: this.#timeline.now,
      endedAt: null,
      result: null,
    };
    this.runs.push(run);
    this.#last = { scavengeId: run.id, result: 'InProgress', error: null };
    const result = this.#random.chance(this.#pace.failing) ? 'Errored' : 'Success';
    const cancel = this.#timeline.in(this.#random.int(100, this.#random.pick(this.#pace.runMs)), () =>
      this.#end(result),
    );
    this.#active = { run, ended: Promise.withResolvers(), isStopping: false, cancel };
    return { scavengeId: run.id };
  }

  #end(result: ScavengeResult): void {
    const active = this.#active;
    if (active === null) return;
    active.cancel();
    this.#active = null;
    active.run.endedAt = this.#timeline.now;
    active.run.result = result;
    this.#last = { scavengeId: active.run.id, result, error: null };
    active.ended.resolve();
    if (!this.isDead) this.#onEnd(active.run);
  }

  async stop(scavengeId: string): Promise<string> {
    const active = this.#active;
    if (active === null || (scavengeId !== 'current' && scavengeId !== active.run.id))
      throw new SkuaError('scavenge_not_found', 'No such run.');
    if (!active.isStopping) {
      active.isStopping = true;
      this.#timeline.in(this.#random.chance(0.5) ? 5 : this.#random.int(0, this.#pace.stopMs), () => {
        if (this.#active === active) this.#end('Stopped');
      });
    }
    await active.ended.promise;
    return active.run.id;
  }

  /** A run that goes on comes to its end in this time. */
  finishIn(ms: number): void {
    if (this.#active !== null) this.#timeline.in(ms, () => this.#end('Success'));
  }

  /** The process has died. */
  kill(): void {
    this.isDead = true;
    this.#end('Interrupted');
  }

  current(): string | null {
    return this.#active?.run.id ?? null;
  }
  last(): LastScavenge | null {
    return this.#last;
  }
}
