import type { NodeAddress } from '../../core/ports/nodes.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { FRESH_DEFAULT_MS, REMOVE_AFTER_DEFAULT_MS } from '../../core/shared-log/api.ts';
import type { ObjectWorld } from '../../core/shared-log/api.ts';
import type { DryRuns } from '../../core/shared-log/dry-runs/dry-runs.ts';
import type { ScavengeStatus } from '../../core/shared-log/control/control.ts';
import { scavengeStatus, startScavenge, STOP_WAIT_MS, stopScavenge } from '../../core/shared-log/control/control.ts';
import { agesOf, tracesMs } from '../../core/shared-log/sweep/sweep.ts';
import type {
  DryRunReport,
  Explanation,
  LastScavenge,
  ResumedPoint,
  ScavengeControl,
  ScavengeOptions,
  ScavengeProgress,
  ScavengeResult,
  ScavengeStarted,
  ScavengeView,
} from '../../core/scavenge/api.ts';

/** As nodes and functions open their stores. */
const TRACES_SECONDS = tracesMs(agesOf(FRESH_DEFAULT_MS, REMOVE_AFTER_DEFAULT_MS)) / 1_000;
/** Milliseconds for the answer behind a wait. */
const ANSWER_RESERVE_MS = 2_000;
const TIMER_MS_MAX = 2_147_483_647;

/**
 * All functions of a store are one member, which leads: a call that configures the schedule decides in its name, and
 * ticks act for it.
 */
export const SELF: NodeAddress = { address: 'functions', port: 1 };

/** What is left of the present call, in milliseconds, less what is kept back. */
interface TimeLeft {
  leftMs(reserveMs?: number): number;
}

/**
 * Scavenges that ticks carry on: starting and stopping leave notes for the next one, and what is told is what the last
 * one has stored. `refresh` reads that, and is to be called before the others are asked.
 */
export class TickedScavenger implements ScavengeControl, ScavengeView {
  readonly #world: ObjectWorld;
  readonly #deadline: TimeLeft;
  readonly #dryRuns: Pick<DryRuns, 'explain'> | null;
  #status: ScavengeStatus | null = null;

  /** Without `dryRuns` nothing can be explained. */
  constructor(world: ObjectWorld, deadline: TimeLeft, dryRuns: Pick<DryRuns, 'explain'> | null = null) {
    this.#world = world;
    this.#deadline = deadline;
    this.#dryRuns = dryRuns;
  }

  async refresh(): Promise<void> {
    this.#status = await scavengeStatus(this.#world);
  }

  async start(options?: ScavengeOptions): Promise<ScavengeStarted> {
    const waiting = options?.startAfresh === true ? null : await this.waiting();
    const started = await startScavenge(this.#world, options);
    await this.refresh();
    return { ...started, ...(waiting !== null && { olderPoint: waiting }) };
  }

  async waiting(): Promise<ResumedPoint | null> {
    return this.#status?.waiting ?? null;
  }

  async stop(scavengeId: string): Promise<string> {
    const stopped = await stopScavenge(
      this.#world,
      scavengeId,
      Math.min(STOP_WAIT_MS, this.#deadline.leftMs(ANSWER_RESERVE_MS)),
    );
    await this.refresh();
    return stopped;
  }

  current(): string | null {
    return this.#running?.scavengeId ?? null;
  }

  last(): LastScavenge | null {
    const status = this.#status;
    if (status === null) return null;
    const { scavengeId, state, result, error, olderPoint, traces } = status;
    return {
      scavengeId,
      result: state === 'ended' ? ((result ?? 'Errored') as ScavengeResult) : 'InProgress',
      error,
      ...(olderPoint !== undefined && { olderPoint }),
      ...(traces !== null && { traces }),
    };
  }

  /** As it was when the last tick that had a part in it ended. */
  progress(): ScavengeProgress | null {
    const running = this.#running;
    if (running === null) return null;
    const elapsedSeconds = Math.max(0, Math.floor((this.#world.clock.nowMs() - running.startedMs) / 1_000));
    return {
      phase: 'Starting',
      chunksDone: 0,
      chunksTotal: 0,
      bytesDone: 0,
      bytesTotal: 0,
      bytesReclaimed: 0,
      ...running.progress,
      scavengeId: running.scavengeId,
      startedAtMs: running.startedMs,
      elapsedSeconds,
      remainingSeconds: null,
      ...(running.olderPoint !== undefined && { olderPoint: running.olderPoint }),
      tracesRemainSeconds: TRACES_SECONDS,
    };
  }

  async startDryRun(_options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> {
    throw notHere('A dry run');
  }
  async dryRun(_scavengeId: string): Promise<DryRunReport | null> {
    throw notHere('A dry run');
  }

  /** In the time that the function has. */
  async explain(stream: string): Promise<Explanation> {
    if (this.#dryRuns === null) throw notHere('An explanation');
    const signal = AbortSignal.timeout(Math.min(TIMER_MS_MAX, this.#deadline.leftMs(ANSWER_RESERVE_MS)));
    try {
      return await this.#dryRuns.explain(stream, signal);
    } catch (error) {
      throw signal.aborted ? tooLong(stream, error) : error;
    }
  }

  get #running(): ScavengeStatus | null {
    return this.#status === null || this.#status.state === 'ended' ? null : this.#status;
  }
}

function tooLong(stream: string, cause: unknown): SkuaError {
  return new SkuaError(
    'aborted',
    `Explaining ${JSON.stringify(stream)} takes longer than a function may run: run a node on the same bucket, with \`skua start --storage s3://bucket/prefix\`, and ask it.`,
    { stream },
    cause,
  );
}

function notHere(what: string): SkuaError {
  return new SkuaError(
    'bad_request',
    `${what} needs a node: run one on the same bucket, with \`skua start --storage s3://bucket/prefix\`, and ask it.`,
  );
}

/**
 * Scavenges that ticks of this process carry on: what is asked of them is done at once, not when the timer comes. Dry
 * runs are this process's own; like on any node they stand in the place of a run while they last.
 */
export class KickingScavenger extends TickedScavenger {
  readonly #dryRuns: DryRuns;
  readonly #kick: () => void;

  constructor(world: ObjectWorld, dryRuns: DryRuns, kick: () => void) {
    super(world, { leftMs: () => Number.POSITIVE_INFINITY });
    this.#dryRuns = dryRuns;
    this.#kick = kick;
  }

  override async start(options?: ScavengeOptions): Promise<ScavengeStarted> {
    const started = await super.start(options);
    this.#kick();
    return started;
  }

  override async stop(scavengeId: string): Promise<string> {
    const dry = this.#dryRuns.current();
    if (dry !== null && (scavengeId === dry || (scavengeId === 'current' && super.current() === null))) {
      await this.#dryRuns.stop();
      return dry;
    }
    const stopping = super.stop(scavengeId);
    this.#kick();
    return stopping;
  }

  override current(): string | null {
    return super.current() ?? this.#dryRuns.current();
  }
  override progress(): ScavengeProgress | null {
    return super.progress() ?? this.#dryRuns.progress();
  }
  override async startDryRun(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> {
    return this.#dryRuns.startDryRun(options);
  }
  override async dryRun(scavengeId: string): Promise<DryRunReport | null> {
    return this.#dryRuns.dryRun(scavengeId);
  }
  override explain(stream: string): Promise<Explanation> {
    return this.#dryRuns.explain(stream);
  }
}
