export type { ScavengeOrders } from './orders/orders.ts';
export type { CyclesStore } from './auto-scavenge-streams.ts';

/** What auto-scavenge offers to handlers, timers and commands. */

export type AutoScavengeState = 'NotConfigured' | 'Waiting' | 'InProgress' | 'Pausing' | 'Paused';

export interface AutoScavengeStatus {
  readonly state: AutoScavengeState;
  /** As configured, white space normalised; null when never configured. */
  readonly schedule: string | null;
  /** Milliseconds to the next start; 0 while a cycle is under way; null without a schedule. */
  readonly untilNextCycleMs: number | null;
  /** The cycle under way; null for none. */
  readonly cycle: CycleProgress | null;
  readonly lastCycle: {
    readonly clusterScavengeId: string;
    readonly completedAtMs: number;
    readonly nodes: readonly NodeOutcome[];
  } | null;
}

interface CycleProgress {
  readonly clusterScavengeId: string;
  readonly startedAtMs: number;
  readonly nodes: readonly NodeOutcome[];
}

export interface NodeOutcome {
  /** `host:port`. */
  readonly node: string;
  readonly state: 'waiting' | 'running' | 'completed';
  /** Of the run on that node; null before it began. */
  readonly scavengeId: string | null;
  readonly result: 'Success' | 'Stopped' | 'Errored' | null;
}

/** When a schedule comes round next. */
export interface ScheduledTimes {
  /** White space normalised. */
  readonly schedule: string;
  readonly zone: string;
  /** Milliseconds since 1970, ascending; fewer than were asked for where it does not come round so often. */
  readonly timesMs: readonly number[];
}

/** Most times that one answer lists: each takes about a millisecond. */
export const TIMES_MAX = 20;

/**
 * Errors of the commands: `auto_scavenge_off` (data: reason), `not_leader` (data: leader `host:port` or null),
 * `invalid_schedule`, `auto_scavenge_pausing` (resume while pausing), `auto_scavenge_busy` (too many commands wait).
 */
export interface AutoScavenge {
  /** Whether it is on, and if not, why. */
  enabled(): { readonly enabled: boolean; readonly reason: string | null };
  status(): Promise<AutoScavengeStatus>;
  /**
   * When a schedule that need not be the configured one would start cycles, in its own zone or another; also while all
   * is off. Errors: `invalid_schedule`.
   */
  times(schedule: string, count: number, zone?: string): ScheduledTimes;
  configure(schedule: string): Promise<void>;
  /** Waits up to a second for a running node scavenge to stop. */
  pause(): Promise<'paused' | 'pausing'>;
  resume(): Promise<void>;
  /**
   * One bounded slice of work: reads what changed, decides, acts. Returns before `deadlineMs` of the monotonic clock.
   */
  tick(deadlineMs: number): Promise<void>;
}
