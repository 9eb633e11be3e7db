import { SkuaError } from '../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import { leaderOf, leads, nodeKey } from '../ports/nodes.ts';
import type { Nodes } from '../ports/nodes.ts';
import type { Schedule } from '../ports/schedule.ts';
import { NO_STREAM } from '../streams/api.ts';
import type { Authorize } from '../streams/api.ts';
import { stateOf } from './apply.ts';
import { note } from './decision.ts';
import type { Decision, Input, Note, World } from './decision.ts';
import { decide } from './machine.ts';
import type { ScavengeOrders } from './orders/orders.ts';
import { parseScheduleText } from './format/schedule-text.ts';
import { NOTHING_SEEN, shownAs } from './state.ts';
import type { State } from './state.ts';
import { AutoScavengeStreams, CYCLES_STREAM, isSameStamp } from './auto-scavenge-streams.ts';
import type { CyclesStore, Stamp } from './auto-scavenge-streams.ts';

/** What auto-scavenge works with. */
export interface AutoScavengeParts {
  readonly store: CyclesStore;
  readonly nodes: Nodes;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  /** Of this node. Runs that no leader asks for are ended by the tick, whether or not this node leads. */
  readonly orders?: ScavengeOrders;
  /**
   * In a cluster: what lets a decision take its place in the log only while this node leads by it. Asked for before the
   * state is read, so that nothing is stored that was decided under a lead which is over. Rejects with `not_leader`.
   */
  readonly authority?: () => Promise<Authorize>;
}

export interface AutoScavengeConfig {
  /** Why it is off; null when it is on. A function where that can change, as when a licence expires. */
  readonly isOff: string | null | (() => string | null);
  /** Time zone of the schedule, an IANA name. */
  readonly zone: string;
  /** A node that is unreachable for longer is lost: its part of the cycle ends as `Errored`. */
  readonly nodeLostAfterMs: number;
}

/** The state while this node leads: loaded from the streams, and never ahead of them. */
export class Lead {
  readonly #parts: AutoScavengeParts;
  readonly #config: AutoScavengeConfig;
  readonly #streams: AutoScavengeStreams;
  readonly #notes: NoteLog;
  /** Null while this node does not lead. */
  #state: State | null = null;
  /** What the state stands on; null when it must be loaded anew. */
  #stamp: Stamp | null = null;
  /** Since when this node leads, as far as is known here; see `NodesView.leadsSinceMs`. */
  #leadsSinceMs: number | null = null;
  #authorize: Authorize | undefined;

  constructor(parts: AutoScavengeParts, config: AutoScavengeConfig, notes: NoteLog) {
    this.#parts = parts;
    this.#config = config;
    this.#notes = notes;
    this.#streams = new AutoScavengeStreams(parts.store, parts.ids);
  }

  get phase(): State['phase'] | null {
    return this.#state?.phase ?? null;
  }

  isLeader(): boolean {
    return leads(this.#parts.nodes.view());
  }

  notLeader(): SkuaError {
    const leader = leaderOf(this.#parts.nodes.view());
    return new SkuaError('not_leader', 'Node is not the leader', { leader: leader === null ? null : nodeKey(leader) });
  }

  /** The state as stored by now. What was seen since this node took the lead is kept. */
  async load(): Promise<State> {
    this.#authorize = await this.#parts.authority?.();
    const { leadsSinceMs } = this.#parts.nodes.view();
    const known = this.#leadsSinceMs === leadsSinceMs ? this.#state : null;
    const stamp = await this.#streams.stamp();
    if (known !== null && this.#stamp !== null && isSameStamp(stamp, this.#stamp)) return known;
    const seen = known?.seen ?? NOTHING_SEEN;
    let state = stateOf(await this.#streams.load(), leadsSinceMs, seen);
    // Of a node that others have designated nothing is known yet.
    if (known?.cycle?.designated?.attempt !== state.cycle?.designated?.attempt)
      state = { ...state, seen: { ...seen, silentSinceMs: null } };
    this.#state = state;
    this.#stamp = { ...stamp, cycles: state.version };
    this.#leadsSinceMs = leadsSinceMs;
    this.#notes.write(
      note('info', 'the state was loaded', {
        state: shownAs(state.phase),
        schedule: state.schedule,
        clusterScavengeId: state.cycle?.id ?? null,
      }),
    );
    this.#show(state);
    return state;
  }

  /** This node does not lead, or is off: what is stored may change without it. */
  forget(why: string | null): void {
    if (this.#state !== null)
      this.#notes.write(note('info', 'this node no longer drives the scavenges', { why: why ?? 'another node leads' }));
    this.#state = null;
    this.#stamp = null;
    this.#leadsSinceMs = null;
  }

  /**
   * Decides, stores what was decided, and only then lets it hold. Errors: as `EventStore.append`; the state is loaded
   * anew then.
   */
  async take(state: State, input: Input): Promise<Decision> {
    const decision = decide(state, input, this.#world());
    for (const fact of decision.events) {
      const stamp = this.#stamp;
      // What is there now is not known.
      if (stamp === null)
        throw new SkuaError('wrong_expected_version', 'The stored state must be read again first.', {
          stream: CYCLES_STREAM,
          expected: state.version,
          actual: NO_STREAM,
        });
      // The lead may have been lost during a call.
      if (!this.isLeader()) throw this.notLeader();
      this.#stamp = null;
      this.#stamp = await this.#streams.append(fact, stamp, this.#authorize);
    }
    this.#state = decision.state;
    for (const note of decision.notes) this.#notes.write(note);
    if (decision.events.length > 0) this.#show(decision.state);
    return decision;
  }

  nowMs(): number {
    return Math.floor(this.#parts.clock.nowMs());
  }

  #world(): World {
    const { clock, ids } = this.#parts;
    return {
      nowMs: this.nowMs(),
      monotonicMs: clock.monotonicMs(),
      get freshId() {
        return guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
      },
      nodeLostAfterMs: this.#config.nodeLostAfterMs,
      next: (schedule, afterMs) => this.next(schedule, afterMs),
    };
  }

  next(schedule: string, afterMs: number): number | null {
    let expression;
    try {
      ({ expression } = parseScheduleText(schedule));
    } catch {
      // Another program has stored something that we don't understand: it never comes round.
      return null;
    }
    return this.#parts.schedule.next(expression, afterMs, this.#config.zone);
  }

  /** Only the newest status counts, so the value is the time. */
  #show(state: State): void {
    this.#parts.meter.gauge('eventstore_statuses', Math.floor(this.nowMs() / 1_000), {
      name: 'AutoScavenge',
      status: shownAs(state.phase),
    });
  }
}

/** The same line is written again after this time. */
const AGAIN_MS = 600_000;

/** One line for each decision; one that is made again and again, such as to wait, is logged once in a while. */
export class NoteLog {
  readonly #log: Log;
  readonly #clock: Clock;
  #lastLine = '';
  #lastMs = 0;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  write({ level, text, fields }: Note): void {
    const line = `${text} ${JSON.stringify(fields)}`;
    const nowMs = this.#clock.monotonicMs();
    if (line === this.#lastLine && nowMs - this.#lastMs < AGAIN_MS) return;
    this.#lastLine = line;
    this.#lastMs = nowMs;
    this.#log[level](text, { ...fields });
  }
}
