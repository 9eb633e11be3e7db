import { SkuaError } from '../../../core/errors.ts';
import type { ObjectWorld } from '../../../core/object-log/api.ts';
import { scavengeStatus, startScavenge, STOP_WAIT_MS, stopScavenge } from '../../../core/object-log/tick-control.ts';
import type { ScavengeStatus } from '../../../core/object-log/tick-control.ts';
import type { LastScavenge, ScavengeOptions, ScavengeProgress, ScavengeResult, Scavenger } from '../../../core/scavenge/api.ts';
import type { Deadline } from './deadline.ts';

/** Milliseconds for the answer behind a wait. */
const ANSWER_RESERVE_MS = 2_000;

/**
 * Scavenges that ticks carry on: starting and stopping leave notes for the next one, and what is told is what the last one has
 * stored. `refresh` reads that, and is to be called before the others are asked.
 */
export class TickedScavenger implements Scavenger {
  readonly #world: ObjectWorld;
  readonly #deadline: Pick<Deadline, 'leftMs'>;
  #status: ScavengeStatus | null = null;

  constructor(world: ObjectWorld, deadline: Pick<Deadline, 'leftMs'>) {
    this.#world = world;
    this.#deadline = deadline;
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
  async explain(): Promise<never> { throw notHere('An explanation'); }

  hold(): () => void {
    const running = this.#running;
    if (running !== null) throw new SkuaError('scavenge_in_progress', `The scavenge ${running.scavengeId} is running: wait for its end, or stop it.`, { scavengeId: running.scavengeId });
    return () => {};
  }

  async idle(): Promise<void> {}
  async close(): Promise<void> {}

  get #running(): ScavengeStatus | null {
    return this.#status === null || this.#status.state === 'ended' ? null : this.#status;
  }
}

function notHere(what: string): SkuaError {
  return new SkuaError('bad_request', `${what} takes a node: run one on the same bucket, with npm start -- --storage s3://bucket/prefix, and ask it.`);
}
