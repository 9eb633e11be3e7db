import { background } from '../../base/background.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { sinceMs, stampOf } from '../../ports/stamp.ts';
import { nodeKey } from '../../ports/nodes.ts';
import { SYSTEM } from '../../base/principal.ts';
import type { ScavengeStore } from '../../scavenge/api.ts';
import type { AppendResult, EventStore, NewEvent, StoreWrite } from '../../streams/api.ts';
import { decodeText } from '../../base/text.ts';
import type { ClusterMember } from '../api.ts';
import { FOR_OTHERS } from '../ask-leader/ask-leader.ts';
import type { Answered, AskLeader } from '../ask-leader/ask-leader.ts';
import { errorOf, formatWrites, readOutcomes } from '../format/carried-writes.ts';
import type { CarriedWrite, WriteOutcome, Writer } from '../format/carried-writes.ts';
import type { HeldWrite, Patience } from '../patience/patience.ts';

export const WRITES_PATH = '/cluster/append';
export const WRITES_TYPE = 'application/octet-stream';
/**
 * The leader itself gives up before (a commit whose outcome is not known ends after 20 s): longer silence tells nothing
 * more.
 */
const ANSWER_MS = 30_000;
/** Writes that go to the leader together, and bytes of theirs; one alone may have more. */
const GROUP_WRITES_MAX = 1_024;
const GROUP_BYTES_MAX = 1_048_576;
/** Groups that are at the leader at a time. */
const GROUPS_MAX = 16;
/** What is counted of an event beside its data and metadata, in bytes. */
const EVENT_BYTES = 128;
/**
 * What a member writes for itself is begun again for so long, where it has waited for too long and is certainly not in
 * the log, in milliseconds.
 */
const OWN_MS = 30_000;

/**
 * The way of writes to another member, as its own requests go. Rejects with `member_unreachable`, `member_silent` and
 * `too_busy`.
 */
export interface WriteCarrier {
  send(
    leader: ClusterMember,
    request: {
      readonly method: string;
      readonly target: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Uint8Array;
    },
    timeoutMs: number,
    signal: AbortSignal | null,
  ): Promise<{ readonly status: number; readonly body: Uint8Array | null }>;
}

interface WritesElsewhereParts {
  readonly ask: AskLeader;
  readonly carrier: WriteCarrier;
  readonly patience: Patience;
  /** Resolves once what has arrived at this member by now was looked at: it goes to the leader together. */
  readonly breath: () => Promise<void>;
}

/** A write as it waits; when it had arrived is said by the clock of the member that it is sent to. */
export type Carried = Omit<CarriedWrite, 'atMs'>;

/** A write, how long it may wait, and how this member decides it where no other member does. */
export interface HeldCarried {
  readonly write: Carried;
  readonly held: HeldWrite;
  here(): Promise<unknown>;
}

interface Pending extends HeldCarried {
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * The writes of one caller that take their places in the log in the order in which they are made, whichever member
 * leads meanwhile.
 */
export interface Order {
  /** The last one that this member decides. */
  here: Promise<unknown> | null;
  waiting: Pending[];
  isPassing: boolean;
}

export function newOrder(): Order {
  return { here: null, waiting: [], isPassing: false };
}

/**
 * Writes that another member decides. Those of all callers that come while others are at the leader go there together;
 * those of one caller one group after the other.
 */
export class WritesElsewhere {
  readonly #parts: WritesElsewhereParts;
  readonly #groups: Groups;

  constructor(parts: WritesElsewhereParts) {
    this.#parts = parts;
    this.#groups = new Groups(parts);
  }

  /** Whether the next write of this caller goes by way of `write`; else this member decides it. */
  takes(order: Order | null): boolean {
    return order?.isPassing === true || this.#parts.ask.leader !== null;
  }

  /**
   * Resolves with what the store says of the write. Errors: those of the write, `commit_outcome_unknown`,
   * `write_expired`.
   */
  write<T>(order: Order, carried: HeldCarried): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      order.waiting.push({ ...carried, resolve: resolve as (result: unknown) => void, reject });
      if (order.isPassing) return;
      order.isPassing = true;
      // What is written in the same breath goes with it.
      background(Promise.resolve().then(() => this.#pass(order)));
    });
  }

  /**
   * What a member writes for itself: scavenge points, the history of its scavenges, its part of the audit. It goes to
   * whichever member leads, so that members do not fight the leader for the numbers of commits; where no member leads
   * the member commits by itself. Errors: as `EventStore.append`, and `commit_outcome_unknown` where no leader answers
   * and none follows.
   */
  async append(
    store: Pick<EventStore, 'append'>,
    stream: string,
    expectedVersion: number,
    events: readonly NewEvent[],
  ): Promise<AppendResult> {
    const { patience } = this.#parts;
    const begunAt = stampOf(patience.clock);
    for (;;) {
      if (!this.takes(null)) return store.append(stream, expectedVersion, events);
      try {
        return await this.write(newOrder(), {
          write: carriedOf(
            { kind: 'append', writes: [{ stream, expectedVersion, events }], checks: [], isRepeatable: true },
            OWN,
          ),
          held: patience.begin(STAYS),
          here: () => store.append(stream, expectedVersion, events),
        });
      } catch (error) {
        if (!isSkuaError(error, 'write_expired') || sinceMs(begunAt, patience.clock) > OWN_MS) throw error;
      }
    }
  }

  async #pass(order: Order): Promise<void> {
    while (order.waiting.length > 0) {
      if (order.here !== null) await order.here.catch(() => {});
      const group = nextOf(order);
      try {
        await this.#decide(group);
      } catch (error) {
        // Those that have been answered are past being told anything else.
        for (const { reject } of group) reject(error);
      }
    }
    order.isPassing = false;
  }

  /** Settles all of them, or throws what those that are not settled fail with. */
  async #decide(group: readonly Pending[]): Promise<void> {
    const { ask } = this.#parts;
    const isRepeatable = isRepeated(group[0]!);
    for (let left = group; left.length > 0;) {
      const outcomes = await ask.decided<readonly WriteOutcome[]>({
        isRepeatable,
        expire: (asked) => {
          left = left.filter(({ held, reject }) => {
            const refusal = held.refusal();
            if (refusal !== null) reject(asked === null ? refusal : asked(refusal));
            return refusal === null;
          });
          if (left.length === 0) throw new SkuaError('write_expired', 'The writes have waited too long.');
        },
        send: (leader, epoch, signal) => this.#groups.send({ leader, epoch, isRepeatable, signal, writes: left }),
      });
      if (outcomes === null) {
        await Promise.allSettled(left.map(({ here, resolve, reject }) => here().then(resolve, reject)));
        return;
      }
      left = left.filter(({ resolve, reject }, i) => {
        const outcome = outcomes[i]!;
        if (outcome === null) return true;
        if ('error' in outcome) reject(errorOf(outcome.error));
        else resolve(outcome.result);
        return false;
      });
    }
  }
}

/** The caller is in touch with this member. */
export const STAYS = (): boolean => false;
/** The member itself. */
export const OWN: Writer = { name: SYSTEM.name, roles: SYSTEM.roles, asks: 'nothing' };

/** A write for another member to decide. What it asks here does not go with it, but for what must be unchanged. */
export function carriedOf(
  { kind, isRepeatable, writes, checks, condition }: StoreWrite,
  by: Writer,
  unchanged: CarriedWrite['unchanged'] = [],
): Carried {
  return {
    kind,
    isRepeatable,
    ...(condition !== undefined && { condition }),
    by,
    unchanged,
    writes: writes.map(({ stream, expectedVersion, events }) => ({ stream, expectedVersion, events })),
    checks: checks.map(({ stream, expectedVersion, authorize }) => ({
      stream,
      expectedVersion,
      isAsked: authorize !== undefined,
    })),
  };
}

/** Events have ids, by which a repeat is known; a deletion has none. */
function isRepeated({ write: { kind, isRepeatable } }: HeldCarried): boolean {
  return isRepeatable && kind !== 'soft' && kind !== 'hard';
}

function bytesOf({ write: { writes } }: HeldCarried): number {
  let bytes = 0;
  for (const { events } of writes)
    for (const { data, metadata } of events) bytes += data.length + metadata.length + EVENT_BYTES;
  return bytes;
}

/** The next ones of a caller that may go together. */
function nextOf({ waiting }: Order): Pending[] {
  const isRepeatable = isRepeated(waiting[0]!);
  let bytes = 0;
  let count = 0;
  for (const each of waiting) {
    bytes += bytesOf(each);
    if (count > 0 && (bytes > GROUP_BYTES_MAX || count >= GROUP_WRITES_MAX || isRepeated(each) !== isRepeatable)) break;
    count++;
  }
  return waiting.splice(0, count);
}

/** Writes that stay together, and whom they go to. */
interface Unit {
  readonly leader: ClusterMember;
  readonly epoch: number;
  readonly isRepeatable: boolean;
  readonly signal: AbortSignal;
  readonly writes: readonly HeldCarried[];
}

interface WaitingUnit extends Unit {
  resolve(answer: Answered<readonly WriteOutcome[]> | null): void;
  reject(error: unknown): void;
}

/** The requests that carry writes to leaders. */
class Groups {
  readonly #parts: WritesElsewhereParts;
  readonly #waiting = new Set<WaitingUnit>();
  /** A signal stands for a leader in an epoch, and for what is repeatable or not. */
  readonly #underWay = new Map<AbortSignal, number>();
  readonly #heeded = new WeakSet<AbortSignal>();
  readonly #beginning = new Set<AbortSignal>();

  constructor(parts: WritesElsewhereParts) {
    this.#parts = parts;
  }

  /** Null where nothing of it was decided. */
  send(unit: Unit): Promise<Answered<readonly WriteOutcome[]> | null> {
    const { signal } = unit;
    return new Promise((resolve, reject) => {
      this.#waiting.add({ ...unit, resolve, reject });
      if (!this.#heeded.has(signal)) {
        this.#heeded.add(signal);
        signal.addEventListener('abort', () => this.#giveUp(signal));
      }
      if (signal.aborted) this.#giveUp(signal);
      else this.#beginSoon(signal);
    });
  }

  /** What waits to be sent has certainly not arrived. */
  #giveUp(signal: AbortSignal): void {
    for (const unit of this.#waiting) {
      if (unit.signal !== signal) continue;
      this.#waiting.delete(unit);
      const node = nodeKey(unit.leader.node);
      unit.reject(
        new SkuaError('member_unreachable', `The member ${node} has not received the writes.`, {
          node,
          reason: 'given-up',
        }),
      );
    }
  }

  #beginSoon(signal: AbortSignal): void {
    if (this.#beginning.has(signal) || (this.#underWay.get(signal) ?? 0) >= GROUPS_MAX) return;
    this.#beginning.add(signal);
    background(
      this.#parts.breath().then(() => {
        this.#beginning.delete(signal);
        this.#begin(signal);
      }),
    );
  }

  #begin(signal: AbortSignal): void {
    const group: WaitingUnit[] = [];
    let bytes = 0;
    let count = 0;
    for (const unit of this.#waiting) {
      if (unit.signal !== signal) continue;
      bytes += unit.writes.reduce((sum, write) => sum + bytesOf(write), 0);
      count += unit.writes.length;
      if (group.length > 0 && (bytes > GROUP_BYTES_MAX || count > GROUP_WRITES_MAX)) break;
      group.push(unit);
    }
    if (group.length === 0) return;
    for (const unit of group) this.#waiting.delete(unit);
    this.#underWay.set(signal, (this.#underWay.get(signal) ?? 0) + 1);
    background(
      this.#carry(group, signal)
        .catch((error: unknown) => {
          for (const { reject } of group) reject(error);
        })
        .then(() => {
          const left = this.#underWay.get(signal)! - 1;
          if (left === 0) this.#underWay.delete(signal);
          else this.#underWay.set(signal, left);
          this.#beginSoon(signal);
        }),
    );
    this.#beginSoon(signal);
  }

  async #carry(group: readonly WaitingUnit[], signal: AbortSignal): Promise<void> {
    const { leader, epoch } = group[0]!;
    const { aheadMs } = leader;
    const nowMs = this.#parts.patience.clock.nowMs();
    const writes = group
      .flatMap((unit) => unit.writes)
      .map(({ write, held }): CarriedWrite => ({
        ...write,
        atMs: aheadMs == null ? null : Math.floor(nowMs + aheadMs - held.ageMs),
      }));
    const { status, body } = await this.#parts.carrier.send(
      leader,
      {
        method: 'POST',
        target: WRITES_PATH,
        headers: { 'content-type': WRITES_TYPE },
        body: formatWrites(epoch, writes),
      },
      ANSWER_MS,
      signal,
    );
    if (status !== 200) {
      const error = refused(leader, status, body);
      for (const { resolve, reject } of group)
        if (error === null) resolve(null);
        else reject(error);
      return;
    }
    const { logEnd, outcomes } = understood(leader, body, writes.length);
    let at = 0;
    for (const unit of group) {
      const answer = outcomes.slice(at, (at += unit.writes.length));
      unit.resolve(answer.every((outcome) => outcome === null) ? null : { answer, logEnd });
    }
  }
}

function understood({ node }: ClusterMember, body: Uint8Array | null, count: number): ReturnType<typeof readOutcomes> {
  try {
    return readOutcomes(body ?? new Uint8Array(0), count);
  } catch (error) {
    throw new SkuaError(
      'member_silent',
      `The answer of the member ${nodeKey(node)} is invalid: ${(error as Error).message}.`,
      { node: nodeKey(node), reason: 'length' },
      error,
    );
  }
}

/** Characters of another member's explanation. */
const DETAIL_LENGTH_MAX = 500;

/** Why a member took no writes at all; null where another member may. */
function refused({ node }: ClusterMember, status: number, body: Uint8Array | null): SkuaError | null {
  let problem: { readonly code?: unknown; readonly detail?: unknown } = {};
  try {
    problem = JSON.parse(decodeText(body ?? new Uint8Array(0)));
  } catch {}
  const { code = null, detail = '' } = problem;
  if (FOR_OTHERS.has(code)) return null;
  const said = String(detail).slice(0, DETAIL_LENGTH_MAX);
  if (code === 'too_busy') return new SkuaError('too_busy', said);
  const data = { node: nodeKey(node), status, code };
  return status < 500
    ? new SkuaError('not_ready', `The leader refused the writes: ${status} ${said}`, data)
    : new SkuaError(
        'commit_outcome_unknown',
        `It is not known what the leader did: ${status} ${said}. Check, or send the same request again with the same event ids.`,
        data,
      );
}

/**
 * What the scavenger of a member's copy works with: its points and its history are written as `WritesElsewhere.append`
 * does, all else is its copy's. The chunk behind a point ends by the flag of the commit that carries it, whichever
 * member wrote that.
 */
export function scavengeStoreOf(copy: ScavengeStore, writes: Pick<EventStore, 'append'>): ScavengeStore {
  return {
    get redactions() {
      return copy.redactions;
    },
    append: (stream, expectedVersion, events, authorize) =>
      authorize === undefined
        ? writes.append(stream, expectedVersion, events)
        : copy.append(stream, expectedVersion, events, authorize),
    appendInternal: (stream, expectedVersion, events, options) =>
      events.length > 0 && options === undefined
        ? writes.append(stream, expectedVersion, events)
        : copy.appendInternal(stream, expectedVersion, events, options),
    completeChunk: (position) => copy.completeChunk(position),
    forgetTombstones: () => copy.forgetTombstones(),
    readStream: (stream, options) => copy.readStream(stream, options),
    streamInfo: (stream) => copy.streamInfo(stream),
  };
}
