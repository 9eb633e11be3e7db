import type { AutoScavenge, AutoScavengeStatus, ScheduledTimes } from '../../core/auto-scavenge/api.ts';
import { SkuaError } from '../../core/base/errors.ts';

export const CYCLE_ID = '7d1f0c9e-5b2a-4a63-8c1d-90b1b7c3a001';

/** The five states as they are shown, with what belongs to each. */
export const STATUSES = {
  NotConfigured: { state: 'NotConfigured', schedule: null, untilNextCycleMs: null, cycle: null, lastCycle: null },
  Waiting: {
    state: 'Waiting',
    schedule: '30 2 * * 0',
    untilNextCycleMs: ((2 * 24 + 3) * 60 + 45) * 60_000 + 10_025,
    cycle: null,
    lastCycle: {
      clusterScavengeId: '7d1f0c9e-5b2a-4a63-8c1d-90b1b7c3a000',
      completedAtMs: Date.UTC(2031, 2, 31, 2, 40, 1, 500),
      nodes: [
        {
          node: '10.0.0.1:2113',
          state: 'completed',
          scavengeId: '00000000-0000-4000-8000-000000000003',
          result: 'Success',
        },
        { node: '10.0.0.2:2113', state: 'completed', scavengeId: null, result: 'Errored' },
      ],
    },
  },
  InProgress: {
    state: 'InProgress',
    schedule: '30 2 * * 0',
    untilNextCycleMs: 0,
    lastCycle: null,
    cycle: {
      clusterScavengeId: CYCLE_ID,
      startedAtMs: Date.UTC(2031, 3, 2, 9, 15),
      nodes: [
        {
          node: '10.0.0.2:2113',
          state: 'completed',
          scavengeId: '00000000-0000-4000-8000-000000000002',
          result: 'Success',
        },
        { node: '10.0.0.1:2113', state: 'running', scavengeId: '00000000-0000-4000-8000-000000000001', result: null },
        { node: '[::1]:2113', state: 'waiting', scavengeId: null, result: null },
      ],
    },
  },
  Pausing: {
    state: 'Pausing',
    schedule: '30 2 * * 0',
    untilNextCycleMs: 0,
    cycle: { clusterScavengeId: CYCLE_ID, startedAtMs: 0, nodes: [] },
    lastCycle: null,
  },
  Paused: { state: 'Paused', schedule: '30 2 * * 0', untilNextCycleMs: 3_300_000, cycle: null, lastCycle: null },
} as const satisfies Readonly<Record<AutoScavengeStatus['state'], AutoScavengeStatus>>;

/** An auto-scavenge that remembers what it was told and answers what a test gave it. */
export class FakeAutoScavenge implements AutoScavenge {
  /** Why it is off; null while it is on. */
  off: string | null = null;
  statusNow: AutoScavengeStatus = STATUSES.NotConfigured;
  pausesAtOnce = true;
  /** When set, every command rejects with it. */
  error: SkuaError | Error | null = null;
  /** When set, a tick ends with it. */
  onTick: (deadlineMs: number) => Promise<void> = async () => {};
  readonly calls: string[] = [];

  enabled(): { readonly enabled: boolean; readonly reason: string | null } {
    return { enabled: this.off === null, reason: this.off };
  }

  async status(): Promise<AutoScavengeStatus> {
    this.#called('status');
    return this.statusNow;
  }

  times(schedule: string, count: number, zone = 'UTC'): ScheduledTimes {
    this.#called(`times ${schedule} ${count} ${zone}`);
    return { schedule, zone, timesMs: Array.from({ length: count }, (_, i) => Date.UTC(2031, 3, 6 + 7 * i, 2, 30)) };
  }

  async configure(schedule: string): Promise<void> {
    this.#called(`configure ${schedule}`);
    this.statusNow = { ...STATUSES.Waiting, schedule, lastCycle: null };
  }

  async pause(): Promise<'paused' | 'pausing'> {
    this.#called('pause');
    this.statusNow = this.pausesAtOnce ? STATUSES.Paused : STATUSES.Pausing;
    return this.pausesAtOnce ? 'paused' : 'pausing';
  }

  async resume(): Promise<void> {
    this.#called('resume');
    this.statusNow = STATUSES.InProgress;
  }

  tick(deadlineMs: number): Promise<void> {
    this.calls.push('tick');
    return this.onTick(deadlineMs);
  }

  #called(name: string): void {
    this.calls.push(name);
    if (this.error !== null) throw this.error;
  }
}
