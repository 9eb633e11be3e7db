import { describe, expect, test } from 'vitest';
import type { ClusterMember, MemberLog, Membership } from '../../core/cluster/api.ts';
import { formatMemberAppend, isCarried, MEMBER_APPEND_BYTES_MAX, readAppendResult, readMemberAppend } from '../../core/cluster/member-append.ts';
import { MemberWrites, scavengeStoreOf } from '../../core/cluster/member-writes.ts';
import type { MemberStore } from '../../core/cluster/copy/member-store.ts';
import { type ErrorCode, SkuaError } from '../../core/errors.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { ANY, type AppendResult, type NewEvent } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/text.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Cluster, event } from './copy/kit.ts';

/** What a member writes for itself goes to the leader (ARCHITECTURE.md, "The cluster", rules 6 and 13). */

const DONE: AppendResult = { firstEventNumber: 4, lastEventNumber: 4, position: 99, isRepeat: false };

/** A member that does not lead, in a cluster that does as the test says. */
function world() {
  const clock = new ManualClock();
  const trace: string[] = [];
  const state = { leader: 'A' as string | null, epoch: 3, answers: [] as (AppendResult | ErrorCode | (() => Promise<AppendResult>))[], ids: [] as string[], broken: true };
  const membership = {
    self: { instanceId: 'B' }, get isLeader() { return state.leader === 'B'; }, leader: () => (state.leader === null ? null : { instanceId: state.leader } as ClusterMember),
    lost: (id: string) => { trace.push(`lost ${id}`); },
    newerEpoch: async (than: number, signal: AbortSignal) => {
      while (state.epoch <= than && !signal.aborted) await clock.sleep(100, signal);
      return state.epoch > than;
    },
  } as unknown as Membership;
  const log = {
    get epoch() { return { number: state.epoch }; }, refresh: async () => { trace.push('refresh'); },
    waitForEnd: async (position: number) => { trace.push(`wait ${position}`); return true; },
  } as unknown as MemberLog;
  const store = { append: async () => { trace.push('local'); return DONE; } };
  const appends = {
    append: async (leader: ClusterMember, { events }: { readonly events: readonly NewEvent[] }) => {
      trace.push(`at ${leader.instanceId}`);
      state.ids.push(events[0]!.id);
      const answer = state.answers.shift() ?? DONE;
      if (typeof answer === 'function') return answer();
      if (typeof answer === 'string') throw new SkuaError(answer, 'No.', { reason: state.broken ? 'broken' : 'time' });
      return answer;
    },
  };
  const writes = new MemberWrites({ store, membership, log, appends, clock });
  return { clock, trace, state, write: () => writes.append('s', ANY, [event('t')]), writes };
}

describe('where a write goes', () => {
  test('to the leader, and it is answered when this member has it', async () => {
    const { write, trace } = world();
    expect(await write()).toEqual(DONE);
    expect(trace).toEqual(['at A', 'wait 100']);
  });

  test.each([['B'], [null]])('to its own copy where %s leads', async (leader) => {
    const { write, trace, state } = world();
    state.leader = leader;
    await write();
    expect(trace).toEqual(['local']);
  });

  test('to its own copy what can\'t be sent', async () => {
    const { writes, trace } = world();
    await writes.append('s', ANY, [{ ...event('t'), data: Uint8Array.of(0xff, 0xfe) }]);
    await writes.append('s', ANY, [{ ...event('t'), data: new Uint8Array(MEMBER_APPEND_BYTES_MAX + 1) }]);
    expect(trace).toEqual(['local', 'local']);
  });

  test('a leader that can\'t be reached is lost; whoever leads then gets it', async () => {
    const { write, trace, state, clock } = world();
    state.answers = ['member_unreachable'];
    const written = write();
    await clock.advance(100);
    state.leader = 'C';
    await clock.advance(200);
    await written;
    expect(trace).toEqual(['at A', 'lost A', 'at C', 'wait 100']);
  });

  test.each(['not_leader', 'not_ready', 'store_closed'] as const)('%s: it is asked again, and the member commits by itself in the end', async (code) => {
    const { write, trace, state, clock } = world();
    state.answers = Array.from({ length: 1_000 }, () => code);
    const written = write();
    await clock.advance(31_000);
    await written;
    expect(trace.at(-1)).toBe('local');
    expect(trace.filter((line) => line === 'at A').length).toBeLessThan(200);
  });

  test('no answer: the same events again, once a newer epoch is there', async () => {
    const { write, trace, state, clock } = world();
    state.answers = ['member_silent'];
    const written = write();
    await clock.advance(2_000);
    expect(trace).toEqual(['at A', 'lost A']);
    state.leader = 'C';
    state.epoch = 4;
    await clock.advance(1_000);
    await written;
    expect(trace).toEqual(['at A', 'lost A', 'at C', 'wait 100']);
    expect(new Set(state.ids).size).toBe(1);
  });

  test('no answer and no newer epoch: the outcome is not known', async () => {
    const { write, state, clock, trace } = world();
    state.answers = ['member_silent'];
    state.broken = false;
    const written = write().catch((error: SkuaError) => error.code);
    await clock.advance(31_000);
    expect(await written).toBe('commit_outcome_unknown');
    expect(trace).toEqual(['at A']);
  });

  test('who loses to another writer sees at once what that one wrote', async () => {
    const { write, trace, state } = world();
    state.answers = ['wrong_expected_version'];
    await expect(write()).rejects.toMatchObject({ code: 'wrong_expected_version' });
    expect(trace).toEqual(['at A', 'refresh']);
  });

  test('an answer does not wait for ever until this member has what was written', async () => {
    const { clock, state } = world();
    const never = new MemberWrites({
      store: { append: async () => DONE }, appends: { append: async () => DONE }, clock, membership: { isLeader: false, self: { instanceId: 'B' }, leader: () => ({ instanceId: 'A' }), lost: () => {}, newerEpoch: async () => false } as unknown as Membership,
      log: { epoch: null, refresh: async () => {}, waitForEnd: (_: number, signal: AbortSignal) => new Promise((resolve) => { signal.addEventListener('abort', () => resolve(false)); }) },
    });
    expect(state.leader).toBe('A');
    const written = never.append('s', ANY, [event('t')]);
    await clock.advance(5_000);
    expect(await written).toEqual(DONE);
  });
});

describe('a member that stood still', () => {
  test('does not write anew what may be forgotten where it was written first', async () => {
    const { clock, state, trace, write } = world();
    state.answers = ['member_silent'];
    const written = write();
    await clock.settle();
    // Its machine was suspended.
    clock.setNow(clock.nowMs() + 30_001);
    state.epoch++;
    const refused = expect(written).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    await clock.advance(200);
    await refused;
    expect(trace.filter((what) => what.startsWith('at') || what === 'local')).toEqual(['at A']);
  });
});

describe('what is sent', () => {
  test('texts arrive byte for byte', () => {
    const events = [{ ...event('$scavengeStarted', '{\n  "a": 1,  "b": "\u{1f600}\\u0000"}'), metadata: encodeText('\ufeffx') }, { ...event('$>', '3@$scavenges-x'), isJson: false }];
    expect(readMemberAppend(JSON.parse(formatMemberAppend({ stream: '$scavenges', expectedVersion: ANY, events, atMs: 7 })))).toEqual({ stream: '$scavenges', expectedVersion: ANY, events, atMs: 7 });
  });

  test.each<[string, unknown]>([
    ['null', null], ['an array', []], ['an empty object', {}], ['a broken version', { stream: 's', expectedVersion: 0.5, events: [{}] }], ['no events', { stream: 's', expectedVersion: -2, events: [] }],
    ['no event', { stream: 's', expectedVersion: -2, events: [null] }], ['an event with a number for its id', { stream: 's', expectedVersion: -2, events: [{ id: 1 }] }],
    ['too many events', { stream: 's', expectedVersion: -2, events: Array.from({ length: 5_000 }, () => ({})) }],
  ])('%s is refused', (_, value) => {
    expect(() => readMemberAppend(value)).toThrow(SkuaError);
    expect(() => readAppendResult(value)).toThrow(SkuaError);
  });

  test('nothing at all can\'t be sent', () => expect(isCarried([])).toBe(false));
});

describe('scavenges of members', () => {
  /** A leads. What B writes for itself goes there; the bucket counts what B creates. */
  async function cluster() {
    const kit = new Cluster();
    const a = await kit.open();
    let creates = 0;
    const counting = (objects: ObjectStore): ObjectStore => new Proxy(objects, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        if (name === 'create') creates++;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    let b: MemberStore | null = null;
    const writesOf = (store: Pick<MemberStore['store'], 'append'>) => new MemberWrites({
      store, clock: kit.clock, membership: { isLeader: false, self: { instanceId: 'B' }, leader: () => ({ instanceId: 'A' }), lost: () => {}, newerEpoch: async () => false } as unknown as Membership,
      log: { epoch: null, refresh: () => b!.log.refresh(), waitForEnd: async (position, signal) => { await b!.log.refresh(); return b!.log.waitForEnd(position, signal); } },
      appends: { append: (_, { stream, expectedVersion, events }) => a.store.append(stream, expectedVersion, events) },
    });
    b = await kit.open(new MemoryStorage(), { through: counting, scavengeStore: (store) => scavengeStoreOf(store, writesOf(store)) });
    await a.store.append('$$s', ANY, [event('$metadata', '{"$maxCount":1}')]);
    for (let i = 0; i < 30; i++) await a.store.append('s', ANY, [event('t', JSON.stringify({ text: 'x'.repeat(3_000), i }))]);
    await b.log.refresh();
    creates = 0;
    return { kit, a, b, creates: () => creates };
  }

  const points = async (member: MemberStore) => (await member.store.readStream('$scavengePoints', { direction: 'forward', from: 0, count: 10 })).events.length;

  test('the point of one serves the other, and the follower creates no commit', async () => {
    const { a, b, creates } = await cluster();
    const { scavengeId } = await b.scavenger.start();
    await b.scavenger.idle();
    expect(b.scavenger.last()).toMatchObject({ scavengeId, result: 'Success' });
    expect(creates()).toBe(0);
    await a.log.refresh();
    await a.scavenger.start({ syncOnly: true });
    await a.scavenger.idle();
    expect(a.scavenger.last()).toMatchObject({ result: 'Success' });
    expect([await points(a), await points(b)]).toEqual([1, 1]);
    expect(a.store.end).toBeGreaterThan(b.store.end);
    await b.log.refresh();
    expect(a.store.end).toBe(b.store.end);
    // Its history is in everybody's log, byte for byte as on a single node.
    const { events } = await a.store.readStream(`$scavenges-${scavengeId}`, { direction: 'forward', from: 0, count: 1 });
    expect(decodeText(events[0]!.data)).toContain(`{\n  "scavengeId": "${scavengeId}"`);
    await a.close();
    await b.close();
  });

  test('two that write a point at once: one point, which both use', async () => {
    const { a, b } = await cluster();
    await Promise.all([a.scavenger.start(), b.scavenger.start()]);
    await Promise.all([a.scavenger.idle(), b.scavenger.idle()]);
    expect([a.scavenger.last()?.result, b.scavenger.last()?.result]).toEqual(['Success', 'Success']);
    await a.log.refresh();
    await b.log.refresh();
    expect([await points(a), await points(b)]).toEqual([1, 1]);
    expect((await b.store.readStream('s', { direction: 'backward', from: 'end', count: 10 })).events.map(({ number }) => number)).toEqual([29]);
    await a.close();
    await b.close();
  });
});
