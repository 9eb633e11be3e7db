import { SkuaError } from '../../../core/errors.ts';
import type { ObjectWorld } from '../../../core/object-log/api.ts';
import { scavengeStatus, startScavenge, STOP_WAIT_MS, stopScavenge } from '../../../core/object-log/tick-control.ts';
import type { Foresight } from '../../../core/object-log/foresight.ts';
import type { ScavengeStatus } from '../../../core/object-log/tick-control.ts';
import type { Explanation, LastScavenge, ScavengeOptions, ScavengeProgress, ScavengeResult, Scavenger } from '../../../core/scavenge/api.ts';
import type { Deadline } from './deadline.ts';

/** Milliseconds for the answer behind a wait. */
const ANSWER_RESERVE_MS = 2_000;
const TIMER_MS_MAX = 2_147_483_647;

/**
 * Scavenges that ticks carry on: starting and stopping leave notes for the next one, and what is told is what the last one has
 * stored. `refresh` reads that, and is to be called before the others are asked.
 */
export class TickedScavenger implements Scavenger {
  readonly #world: ObjectWorld;
  readonly #deadline: Pick<Deadline, 'leftMs'>;
  readonly #foresight: Pick<Foresight, 'explain'> | null;
  #status: ScavengeStatus | null = null;

  /** Without `foresight` nothing can be explained. */
  constructor(world: ObjectWorld, deadline: Pick<Deadline, 'leftMs'>, foresight: Pick<Foresight, 'explain'> | null = null) {
    this.#world = world;
    this.#deadline = deadline;
    this.#foresight = foresight;
  }

  async refresh(): Promise<void> {
    this.#status = await scavengeStatus(this.#world);
  }

  async start(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> {
    const started = await startScavenge(this.#world, options);
    await this.refresh();
    return started;
  }

  async stop(scavengeId: string): Promise<string> {
    const stopped = await stopScavenge(this.#world, scavengeId, Math.min(STOP_WAIT_MS, this.#deadline.leftMs(ANSWER_RESERVE_MS)));
    await this.refresh();
    return stopped;
  }

  current(): string | null {
    return this.#running?.scavengeId ?? null;
  }

  last(): LastScavenge | null {
    const status = this.#status;
    if (status === null) return null;
    return { scavengeId: status.scavengeId, result: status.state === 'ended' ? (status.result ?? 'Errored') as ScavengeResult : 'InProgress', error: status.error };
  }

  /** As it was when the last tick that had a part in it ended. */
  progress(): ScavengeProgress | null {
    const running = this.#running;
    if (running === null) return null;
    const elapsedSeconds = Math.max(0, Math.floor((this.#world.clock.nowMs() - running.startedMs) / 1_000));
    return {
      phase: 'Starting', chunksDone: 0, chunksTotal: 0, bytesDone: 0, bytesTotal: 0, bytesReclaimed: 0, ...running.progress, scavengeId: running.scavengeId, startedAtMs: running.startedMs, elapsedSeconds, remainingSeconds: null,
    };
  }

  async startDryRun(): Promise<never> { throw notHere('A dry run'); }
  async dryRun(): Promise<never> { throw notHere('A dry run'); }

  /** In the time that the function has. */
  async explain(stream: string): Promise<Explanation> {
    if (this.#foresight === null) throw notHere('An explanation');
    const signal = AbortSignal.timeout(Math.min(TIMER_MS_MAX, this.#deadline.leftMs(ANSWER_RESERVE_MS)));
    try {
      return await this.#foresight.explain(stream, signal);
    } catch (error) {
      throw signal.aborted ? tooLong(stream, error) : error;
    }
  }

  /** Nothing has to wait: a backup reads what a manifest names, which belongs together whatever ticks do meanwhile. */
  hold(): () => void {
    return () => {};
  }

  async idle(): Promise<void> {}
  async close(): Promise<void> {}

  get #running(): ScavengeStatus | null {
    return this.#status === null || this.#status.state === 'ended' ? null : this.#status;
  }
}

function tooLong(stream: string, cause: unknown): SkuaError {
  return new SkuaError('aborted', `Explaining ${JSON.stringify(stream)} takes longer than a function has: run a node on the same bucket, with npm start -- --storage s3://bucket/prefix, and ask it.`, { stream }, cause);
}

function notHere(what: string): SkuaError {
  return new SkuaError('bad_request', `${what} takes a node: run one on the same bucket, with npm start -- --storage s3://bucket/prefix, and ask it.`);
}
