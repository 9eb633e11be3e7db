import { beforeEach, describe, expect, test } from 'vitest';
import { MemberTable } from '../../../core/cluster/membership/member-table.ts';
import { type LeaderViewContext, leaderViewOf, leaderByEpoch } from '../../../core/cluster/membership/leader-view.ts';
import { silentLog } from '../../../core/ports/log.ts';
import type { Epoch, GossipEntry } from '../../../core/ports/peers.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const SELF = id(1);
const LEADER = id(2);
const TIMEOUT_MS = 1_000;

function id(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

function epochOf(leaderInstanceId: string, number = 3): Epoch {
  return { number, position: 0, id: id(900), leaderInstanceId };
}

function entry(port: number, changes: Partial<GossipEntry> = {}): GossipEntry {
  return {
    node: { address: 'm', port },
    instanceId: id(port),
    sentMs: 100,
    state: 'Leader',
    priority: 0,
    isReadOnlyReplica: false,
    version: '1',
    applied: 5,
    lastCommitPosition: 5,
    writerCheckpoint: 5,
    chaserCheckpoint: 5,
    epoch: epochOf(LEADER),
    hears: LEADER,
    bucketSilentMs: 0,
    scavengeId: null,
    ...changes,
  };
}

let clock: ManualClock;
let table: MemberTable;

function context(changes: Partial<LeaderViewContext> = {}): LeaderViewContext {
  return {
    selfId: SELF,
    canLead: true,
    epoch: epochOf(LEADER),
    epochSinceMs: -Infinity,
    awayUntilMs: -Infinity,
    isMeeting: false,
    timeoutMs: TIMEOUT_MS,
    nowMs: clock.monotonicMs(),
    ...changes,
  };
}

beforeEach(() => {
  clock = new ManualClock(100);
  table = new MemberTable({
    self: { address: 'm', port: 1 },
    clock,
    log: silentLog,
    aliveMs: 7_000,
    allowedDifferenceMs: 60_000,
  });
});

describe('which leader is heard', () => {
  test.each<[string, Partial<GossipEntry> | null, 'no' | 'asking' | 'yes', number, Partial<LeaderViewContext>, string]>(
    [
      ['one that said so', {}, 'no', 0, {}, 'heard'],
      ['one that resigns', { state: 'ResigningLeader' }, 'no', 0, {}, 'heard'],
      ['one that said so almost a second ago', {}, 'no', 999, {}, 'heard'],
      ['not one that was silent for a second', {}, 'no', 1_000, {}, 'none'],
      ['not one to which a connection was refused', {}, 'yes', 0, {}, 'none'],
      ['one that is asked again is expected', {}, 'asking', 0, {}, 'expected'],
      ['but not for longer than silence', {}, 'asking', 1_000, {}, 'none'],
      ['not one whose bucket is silent', { bucketSilentMs: 5_000 }, 'no', 0, {}, 'none'],
      ['not one that catches up', { state: 'CatchingUp' }, 'no', 0, {}, 'none'],
      ['not one that stops', { state: 'ShuttingDown' }, 'no', 0, {}, 'none'],
      [
        'one that spoke before it led is expected',
        { state: 'Follower', epoch: epochOf(id(9), 2) },
        'no',
        0,
        {},
        'expected',
      ],
      ['one that is not known', null, 'no', 0, {}, 'none'],
      ['one that is not known, of a new epoch', null, 'no', 500, { epochSinceMs: 0 }, 'expected'],
      ['one that is not known, of an epoch a second old', null, 'no', 1_000, { epochSinceMs: 0 }, 'none'],
      ['nobody while the others are being asked', null, 'no', 5_000, { isMeeting: true }, 'expected'],
      ['a silent one when this process stood still', {}, 'no', 5_000, { awayUntilMs: 4_500 }, 'heard'],
      ['this member itself', null, 'no', 0, { epoch: epochOf(SELF) }, 'self'],
      ['not this member when it can not lead', null, 'no', 0, { epoch: epochOf(SELF), canLead: false }, 'none'],
      ['nobody where nobody ever led', null, 'no', 0, { epoch: null }, 'none'],
    ],
  )('%s', async (_, changes, lost, afterMs, more, expected) => {
    if (changes !== null) {
      table.merge(entry(2, changes), 'answer');
      table.byInstance(LEADER)!.lost = lost;
    }
    await clock.advance(afterMs);
    expect(leaderViewOf(table, context(more)).kind).toBe(expected);
  });

  test('one that says that it leads under a newer epoch is expected, and who led before leads until that is here', () => {
    table.merge(entry(2), 'answer');
    table.merge(entry(3, { epoch: epochOf(id(3), 4), hears: id(3) }), 'call');
    expect(leaderViewOf(table, context())).toMatchObject({ kind: 'expected', instanceId: id(3) });
    expect(leaderByEpoch(table, context())).toMatchObject({ kind: 'heard', instanceId: LEADER });
    // What others say of it does not count.
    expect(leaderViewOf(table, context({ epoch: epochOf(id(3), 4) }))).toMatchObject({
      kind: 'heard',
      instanceId: id(3),
    });
  });

  test('that is not believed when others say so', () => {
    table.merge(entry(3, { epoch: epochOf(id(3), 4) }), 'relay');
    expect(leaderViewOf(table, context()).kind).toBe('none');
  });
});
