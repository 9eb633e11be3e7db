import { isSkuaError, SkuaError } from '../base/errors.ts';
import type { AutoScavenge, AutoScavengeStatus, ScheduledTimes } from './api.ts';
import { note } from './decision.ts';
import { perform } from './effects.ts';
import { Lead, NoteLog } from './lead.ts';
import type { AutoScavengeConfig, AutoScavengeParts } from './lead.ts';
import { parseSchedule } from './format/schedule-text.ts';
import { statusOf } from './state.ts';
import type { State } from './state.ts';

export type { AutoScavengeConfig, AutoScavengeParts } from './lead.ts';

/** Commands that may wait. */
const COMMANDS_MAX = 32;
/** Longest call to a node in milliseconds. */
const CALL_MS_MAX = 1_000;
/** With less time left than this no call is begun. */
const CALL_MS_MIN = 50;
/** How long a pause waits for a node scavenge to stop. */
const PAUSE_MS = 1_000;
/** How often a command that met another write is tried. */
const CONFLICTS_MAX = 3;
/** Decisions of one tick; a cycle goes on with the next. */
const STEPS_MAX = 64;

/** Schedules and drives the scavenges of all nodes, on the node that leads. */
export function createAutoScavenge(parts: AutoScavengeParts, config: AutoScavengeConfig): AutoScavenge {
  return new Driver(parts, config);
}

class Driver implements AutoScavenge {
  readonly #parts: AutoScavengeParts;
  readonly #config: AutoScavengeConfig;
  readonly #notes: NoteLog;
  readonly #serial = new Serial(COMMANDS_MAX);
  readonly #lead: Lead;
  #ticking: Promise<void> | null = null;

  constructor(parts: AutoScavengeParts, config: AutoScavengeConfig) {
    this.#parts = parts;
    this.#config = config;
    this.#notes = new NoteLog(parts.log, parts.clock);
    this.#lead = new Lead(parts, config, this.#notes);
  }

  enabled(): { readonly enabled: boolean; readonly reason: string | null } {
    const { isOff } = this.#config;
    const reason = typeof isOff === 'function' ? isOff() : isOff;
    return { enabled: reason === null, reason };
  }

  status(): Promise<AutoScavengeStatus> {
    return this.#command(async (state) =>
      statusOf(state, this.#lead.nowMs(), (schedule, afterMs) => this.#lead.next(schedule, afterMs)),
    );
  }

  times(given: string, count: number, zone = this.#config.zone): ScheduledTimes {
    const { schedule } = this.#parts;
    const { text, expression } = parseSchedule(given, schedule, this.#lead.nowMs(), zone);
    const timesMs: number[] = [];
    for (
      let next = schedule.next(expression, this.#lead.nowMs(), zone);
      next !== null && timesMs.length < count;
      next = schedule.next(expression, next, zone)
    )
      timesMs.push(next);
    return { schedule: text, zone, timesMs };
  }

  configure(schedule: string): Promise<void> {
    return this.#command(async (state) => {
      const { text } = parseSchedule(schedule, this.#parts.schedule, this.#lead.nowMs(), this.#config.zone);
      await this.#lead.take(state, { kind: 'configure', schedule: text });
    });
  }

  pause(): Promise<'paused' | 'pausing'> {
    return this.#command(async (state) => {
      const { clock } = this.#parts;
      const untilMs = clock.monotonicMs() + PAUSE_MS;
      const decision = await this.#lead.take(state, { kind: 'pause' });
      if (decision.answer === 'done') return 'paused';
      for (const effect of decision.effects) {
        const outcome = await perform(effect, this.#parts, Math.max(CALL_MS_MIN, untilMs - clock.monotonicMs()));
        if (outcome !== null)
          await this.#lead.take(decision.state, outcome).catch((error: unknown) => this.#failed(error));
      }
      return this.#lead.phase === 'PausedInCycle' ? 'paused' : 'pausing';
    });
  }

  resume(): Promise<void> {
    return this.#command(async (state) => {
      await this.#lead.take(state, { kind: 'resume' });
    });
  }

  /** Never rejects: what fails is logged, and tried again by the next tick. */
  tick(deadlineMs: number): Promise<void> {
    this.#ticking ??= this.#serial
      .run(() => this.#tick(deadlineMs))
      .finally(() => {
        this.#ticking = null;
      });
    return this.#ticking;
  }

  async #tick(deadlineMs: number): Promise<void> {
    try {
      this.#parts.orders?.endAbandoned();
      const { enabled, reason } = this.enabled();
      if (!enabled || !this.#lead.isLeader()) {
        this.#lead.forget(reason);
        return;
      }
      const state = await this.#lead.load();
      const looked = await this.#lead.take(state, { kind: 'members', view: this.#parts.nodes.view() });
      await this.#work(looked.state, deadlineMs);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Decides and acts until there is nothing more to do now, the time is over, or a command waits. */
  async #work(given: State, deadlineMs: number): Promise<void> {
    const { clock } = this.#parts;
    let state = given;
    for (let steps = 0; steps < STEPS_MAX && this.#serial.waiting === 0; steps++) {
      const decision = await this.#lead.take(state, { kind: 'clock' });
      state = decision.state;
      const [effect] = decision.effects;
      if (effect !== undefined) {
        const leftMs = deadlineMs - clock.monotonicMs();
        if (leftMs < CALL_MS_MIN) return;
        const outcome = await perform(effect, this.#parts, Math.min(CALL_MS_MAX, leftMs));
        if (outcome === null) return;
        const taken = await this.#lead.take(state, outcome);
        // A run that has just begun is asked about by the next tick.
        if (taken.events.length === 0 || outcome.kind === 'started') return;
        state = taken.state;
      } else if (decision.events.length === 0) return;
      if (clock.monotonicMs() >= deadlineMs) return;
    }
  }

  /**
   * One command after the other. Errors: `auto_scavenge_off`, `auto_scavenge_busy`, `not_leader`, and those of the
   * command.
   */
  async #command<T>(work: (state: State) => Promise<T>): Promise<T> {
    this.#checkOn();
    return this.#serial.runBounded(async () => {
      this.#checkOn();
      for (let tries = 1; ; tries++) {
        if (!this.#lead.isLeader()) {
          this.#lead.forget(null);
          throw this.#lead.notLeader();
        }
        try {
          return await work(await this.#lead.load());
        } catch (error) {
          // Another writer has written: what is stored by now is asked again.
          if (tries >= CONFLICTS_MAX || !isSkuaError(error, 'wrong_expected_version')) throw error;
        }
      }
    });
  }

  #checkOn(): void {
    const { reason } = this.enabled();
    if (reason !== null) throw new SkuaError('auto_scavenge_off', reason, { reason });
  }

  #failed(error: unknown): void {
    const isOfRole =
      isSkuaError(error, 'not_leader') ||
      isSkuaError(error, 'wrong_expected_version') ||
      isSkuaError(error, 'store_closed');
    this.#notes.write(
      note(isOfRole ? 'info' : 'warn', 'this slice of work ended early; the next one continues from the stored state', {
        error: String(error),
      }),
    );
  }
}

/** Runs one piece of work after the other. */
class Serial {
  readonly #max: number;
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** At most `max` bounded pieces wait. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Bounded pieces that wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#tail.then(work);
    this.#tail = turn.catch(() => {});
    return turn;
  }

  /** Errors: `auto_scavenge_busy`, and those of the work. */
  runBounded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= this.#max)
      return Promise.reject(
        new SkuaError('auto_scavenge_busy', 'AutoScavenge queue is full', {
          limit: this.#max,
          hint: 'Try again in a moment.',
        }),
      );
    this.#waiting++;
    return this.run(() => {
      this.#waiting--;
      return work();
    });
  }
}
