import { expect, test } from 'vitest';
import { Feed } from '../../../core/cluster/membership/commit-feed.ts';
import type { MemberRecord } from '../../../core/cluster/membership/member-table.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import type { CommitsReply, Peers } from '../../../core/ports/peers.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Random } from '../../support/random.ts';
import { FakeCopy } from './fake-log.ts';

function recordOf(port: number): MemberRecord {
  return { entry: { node: { address: 'm', port }, instanceId: `i${port}` } } as MemberRecord;
}

/** A follower that is fed by whoever `answer` lets answer; null hangs until the call is ended. */
function follower(answer: (port: number) => CommitsReply | SkuaError | null) {
  const clock = new ManualClock();
  const asked: number[] = [];
  const lost: string[] = [];
  const state = { source: recordOf(1) as MemberRecord | null };
  const copy = new FakeCopy({ commits: [] }, clock, new Random(1), { isCut: false, latencyMs: () => 1, loss: () => 0 });
  const commits: Peers['commits'] = async (to, _, signal) => {
    asked.push(to.port);
    const reply = answer(to.port);
    if (reply === null) await clock.sleep(1e9, signal);
    if (reply === null || reply instanceof SkuaError)
      throw reply ?? new SkuaError('member_silent', 'No answer.', { node: 'a member', reason: 'time' });
    return reply;
  };
  const feed = new Feed({
    copy,
    peers: { commits } as Peers,
    clock,
    selfId: 'self',
    source: () => state.source,
    isLeading: () => false,
    onHeard: () => {},
    onLost: (instanceId) => {
      lost.push(instanceId);
    },
  });
  return { clock, asked, lost, state, copy, feed };
}

test('where another leads, nobody waits for the one before', async () => {
  const { clock, asked, state, feed } = follower(() => null);
  const ending = new AbortController();
  const over = feed.run(ending.signal);
  await clock.advance(100);
  state.source = recordOf(2);
  feed.wake();
  await clock.advance(100);
  expect(asked).toEqual([1, 2]);
  ending.abort();
  await over;
  expect(clock.sleeping).toBe(0);
});

test.each<[string, (port: number) => CommitsReply | SkuaError, number, number]>([
  ['empty answers without a wait', () => ({ kind: 'commits', bytes: new Uint8Array(0) }), 51, 0],
  ['commits that are gone', () => ({ kind: 'gone' }), 6, 5],
  ['commits that do not fit', () => ({ kind: 'commits', bytes: new TextEncoder().encode('{"from":9,"to":9}') }), 6, 5],
  ['bytes that are none', () => ({ kind: 'commits', bytes: Uint8Array.of(1) }), 6, 5],
  [
    'refused connections',
    () => new SkuaError('member_unreachable', 'No.', { node: 'a member', reason: 'refused' }),
    6,
    5,
  ],
])('%s are not asked for in a circle', async (_, answer, most, polls) => {
  const { clock, asked, copy, feed } = follower(answer);
  const ending = new AbortController();
  const over = feed.run(ending.signal);
  await clock.advance(1_000);
  expect(asked.length).toBeGreaterThan(1);
  expect(asked.length).toBeLessThanOrEqual(most);
  expect(copy.asked).toBeGreaterThanOrEqual(polls);
  ending.abort();
  await over;
});

test('a connection that is refused or breaks is told of, one that this side ended is not', async () => {
  const { clock, lost, feed } = follower((port) =>
    port === 1 ? null : new SkuaError('member_silent', 'It broke.', { node: 'a member', reason: 'broken' }),
  );
  const ending = new AbortController();
  const over = feed.run(ending.signal);
  await clock.advance(2_500);
  expect(lost).toEqual([]);
  ending.abort();
  await over;
  const other = follower(() => new SkuaError('member_silent', 'It broke.', { node: 'a member', reason: 'broken' }));
  const ended = new AbortController();
  const done = other.feed.run(ended.signal);
  await other.clock.advance(10);
  expect(other.lost).toEqual(['i1']);
  ended.abort();
  await done;
});
