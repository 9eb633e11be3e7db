import type { Epoch, GossipEntry } from '../../ports/peers.ts';
import { bucketAnswers } from './election.ts';
import type { MemberRecord, MemberTable } from './member-table.ts';

/** Which leader a member hears. Times are monotonic, in milliseconds. */
export interface LeaderView {
  readonly kind:
    /** This member leads itself. */
    | 'self'
    /** The member that wrote the newest epoch says so, and a call to it was answered a short time ago. */
    | 'heard'
    /**
     * A leader is there that has not spoken since it became one, or whose epoch is not in the copy yet, or that is
     * being asked again after a connection broke.
     */
    | 'expected'
    /** No member, for certain. */
    | 'none';
  /** The leader that is heard or expected; null for this member itself and for one that is not known. */
  readonly record: MemberRecord | null;
  /** Its instance; null for none. */
  readonly instanceId: string | null;
  /** When that must be looked at again; Infinity for not by time. */
  readonly untilMs: number;
}

export interface LeaderViewContext {
  readonly selfId: string;
  /** This member could lead: its copy takes commits, it is not about to stop, and the bucket answers it. */
  readonly canLead: boolean;
  readonly epoch: Epoch | null;
  /** When the epoch came into the copy; -Infinity when it was there at the start. */
  readonly epochSinceMs: number;
  /** Until when this process last stood still, and could hear no member; -Infinity for never. */
  readonly awayUntilMs: number;
  /** The others have not been asked yet, all of them, since the start. */
  readonly isMeeting: boolean;
  readonly timeoutMs: number;
  readonly nowMs: number;
}

const NOBODY: LeaderView = { kind: 'none', record: null, instanceId: null, untilMs: Infinity };

export function claimsLead({ state, bucketSilentMs }: GossipEntry): boolean {
  return (state === 'Leader' || state === 'ResigningLeader') && bucketAnswers(bucketSilentMs);
}

/**
 * Whom this member hears, or is about to hear: what it tells others, whom it is fed by, and whether it would vote for
 * another.
 */
export function leaderViewOf(table: MemberTable, context: LeaderViewContext): LeaderView {
  const claims = claimant(table, context.epoch?.number ?? -1, context.nowMs - context.timeoutMs);
  if (claims !== null)
    return {
      kind: 'expected',
      record: claims,
      instanceId: claims.entry.instanceId,
      untilMs: claims.heardFromMs + context.timeoutMs,
    };
  return leaderByEpoch(table, context);
}

/**
 * The same by the epochs in its copy alone: so the member that was the leader is that until the next epoch is here, and
 * requests go to it.
 */
export function leaderByEpoch(table: MemberTable, context: LeaderViewContext): LeaderView {
  const { selfId, canLead, epoch, epochSinceMs, awayUntilMs, isMeeting, timeoutMs, nowMs } = context;
  const expected = (record: MemberRecord | null, untilMs: number): LeaderView => ({
    kind: 'expected',
    record,
    instanceId: epoch?.leaderInstanceId ?? null,
    untilMs,
  });
  if (epoch === null) return isMeeting ? expected(null, Infinity) : NOBODY;
  if (epoch.leaderInstanceId === selfId)
    return canLead ? { kind: 'self', record: null, instanceId: selfId, untilMs: Infinity } : NOBODY;
  const record = table.byInstance(epoch.leaderInstanceId);
  const quietMs =
    Math.max(record?.heardFromMs ?? -Infinity, epochSinceMs, record === null ? -Infinity : awayUntilMs) + timeoutMs;
  if (record === null) {
    if (isMeeting) return expected(null, Infinity);
    return nowMs < quietMs ? expected(null, quietMs) : NOBODY;
  }
  if (record.lost === 'yes' || nowMs >= quietMs)
    return isMeeting && record.lost !== 'yes' ? expected(record, Infinity) : NOBODY;
  if (record.lost === 'asking') return expected(record, quietMs);
  // What it said before it led says nothing about whether it leads.
  if ((record.entry.epoch?.number ?? -1) < epoch.number) return expected(record, quietMs);
  return claimsLead(record.entry)
    ? { kind: 'heard', record, instanceId: epoch.leaderInstanceId, untilMs: quietMs }
    : NOBODY;
}

/** A member that says itself that it leads under an epoch which this copy does not have yet. */
function claimant(table: MemberTable, above: number, sinceMs: number): MemberRecord | null {
  let best: MemberRecord | null = null;
  for (const record of table.records()) {
    const { entry, heardFromMs: saidMs, lost } = record;
    if (lost !== 'no' || saidMs <= sinceMs || !claimsLead(entry) || (entry.epoch?.number ?? -1) <= above) continue;
    if (best === null || entry.epoch!.number > best.entry.epoch!.number) best = record;
  }
  return best;
}
