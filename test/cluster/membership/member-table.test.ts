import { beforeEach, describe, expect, test } from 'vitest';
import { MEMBERS_MAX } from '../../../core/cluster/membership/api.ts';
import { checkGossip } from '../../../core/cluster/format/peer-messages.ts';
import { MemberTable } from '../../../core/cluster/membership/member-table.ts';
import { isSkuaError } from '../../../core/base/errors.ts';
import { type Log, silentLog } from '../../../core/ports/log.ts';
import type { GossipEntry } from '../../../core/ports/peers.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const ALIVE_MS = 7_000;

function id(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

function entry(port: number, instance: number, sentMs: number, changes: Partial<GossipEntry> = {}): GossipEntry {
  return {
    node: { address: 'm', port },
    instanceId: id(instance),
    sentMs,
    state: 'Follower',
    priority: 0,
    isReadOnlyReplica: false,
    version: '1',
    applied: 5,
    lastCommitPosition: 500,
    writerCheckpoint: 500,
    chaserCheckpoint: 500,
    epoch: { number: 1, position: 0, id: id(900), leaderInstanceId: id(901) },
    hears: null,
    bucketSilentMs: 0,
    scavengeId: null,
    ...changes,
  };
}

let clock: ManualClock;
let warned: string[];
let table: MemberTable;

beforeEach(() => {
  clock = new ManualClock(1_000_000);
  warned = [];
  const log: Log = {
    ...silentLog,
    warn: (message) => {
      warned.push(message);
    },
  };
  table = new MemberTable({
    self: { address: 'm', port: 1 },
    clock,
    log,
    aliveMs: ALIVE_MS,
    allowedDifferenceMs: 60_000,
  });
});

describe('the table of members', () => {
  test('of one instance the later word counts, and that of others when it does not speak itself', async () => {
    expect(table.merge(entry(2, 2, 100, { applied: 7 }), 'call')).toBe('news');
    expect(table.merge(entry(2, 2, 90, { applied: 6 }), 'relay')).toBe('known');
    expect(table.get({ address: 'm', port: 2 })!.entry.applied).toBe(7);
    expect(table.merge(entry(2, 2, 110, { applied: 8 }), 'relay')).toBe('known');
    await clock.advance(ALIVE_MS / 2 + 1);
    expect(table.merge(entry(2, 2, 110, { applied: 8 }), 'relay')).toBe('news');
    expect(table.merge(entry(2, 2, 105, { applied: 7 }), 'relay')).toBe('known');
    expect(table.get({ address: 'm', port: 2 })!.entry.applied).toBe(8);
  });

  test('nobody can silence a member by passing on words of its future', () => {
    table.merge(entry(2, 2, 9e15, { state: 'Shutdown' }), 'relay');
    expect(table.merge(entry(2, 2, 100), 'call')).toBe('news');
    table.merge(entry(2, 2, 9e15, { state: 'Shutdown' }), 'relay');
    expect(table.get({ address: 'm', port: 2 })!.entry.state).toBe('Follower');
    expect(table.merge(entry(2, 2, 101), 'call')).toBe('news');
    expect(table.get({ address: 'm', port: 2 })!.entry.state).toBe('Follower');
  });

  test('a member is dead when nothing new is heard, and what is old is no news', async () => {
    table.merge(entry(2, 2, 100), 'relay');
    const record = table.get({ address: 'm', port: 2 })!;
    await clock.advance(ALIVE_MS);
    expect(table.isAlive(record)).toBe(true);
    table.merge(entry(2, 2, 100), 'relay');
    await clock.advance(1);
    expect(table.isAlive(record)).toBe(false);
    table.merge(entry(2, 2, 101), 'relay');
    expect(table.isAlive(record)).toBe(true);
    table.merge(entry(2, 2, 102, { state: 'Shutdown' }), 'relay');
    expect(table.isAlive(record)).toBe(false);
  });

  test('another instance under an address is a conflict while the one before is alive, unless it answered there', async () => {
    table.merge(entry(2, 2, 100), 'call');
    expect(table.merge(entry(2, 3, 200), 'call')).toBe('conflict');
    expect(table.merge(entry(2, 3, 200), 'relay')).toBe('conflict');
    expect(table.byInstance(id(2))).not.toBeNull();
    expect(table.merge(entry(2, 3, 200), 'answer')).toBe('news');
    expect(table.byInstance(id(2))).toBeNull();
    // Who has not heard of the change passes the old one on.
    expect(table.merge(entry(2, 2, 300), 'relay')).toBe('known');
    await clock.advance(ALIVE_MS + 1);
    expect(table.merge(entry(2, 4, 50), 'call')).toBe('news');
    expect(table.byInstance(id(4))).not.toBeNull();
  });

  test('an entry of this address is passed over', () => {
    expect(table.merge(entry(1, 9, 100), 'relay')).toBe('own');
    expect(table.records()).toEqual([]);
  });

  test('what stands in an object makes nobody alive', () => {
    table.merge(entry(2, 2, 100), 'object');
    expect(table.isAlive(table.get({ address: 'm', port: 2 })!)).toBe(false);
    expect(table.merge(entry(2, 2, 101), 'relay')).toBe('news');
    expect(table.isAlive(table.get({ address: 'm', port: 2 })!)).toBe(true);
  });

  test('it is bounded: a dead member makes room, live ones do not', async () => {
    for (let port = 2; port <= MEMBERS_MAX; port++) expect(table.merge(entry(port, port, 100), 'relay')).toBe('news');
    expect(table.merge(entry(500, 500, 100), 'relay')).toBe('full');
    expect(table.merge(entry(501, 501, 100), 'relay')).toBe('full');
    expect(warned).toHaveLength(1);
    await clock.advance(ALIVE_MS + 1);
    expect(table.merge(entry(500, 500, 100), 'relay')).toBe('news');
    expect(table.records()).toHaveLength(MEMBERS_MAX - 1);
  });

  test('clocks that differ are told of once, and again after they agreed', () => {
    table.merge(entry(2, 2, 1_000_000 + 60_001), 'call');
    table.merge(entry(2, 2, 1_000_000 + 60_002), 'call');
    expect(warned).toHaveLength(1);
    table.merge(entry(2, 2, 1_000_000 + 60_003), 'relay');
    expect(warned).toHaveLength(1);
  });

  test('members of which nobody has heard are found, known from their objects or not', async () => {
    table.merge(entry(2, 2, 100), 'relay');
    table.merge(entry(3, 3, 100), 'object');
    await clock.advance(1_000);
    table.merge(entry(2, 2, 101), 'relay');
    expect(table.unseenFor(1_000).map((record) => record.entry.node.port)).toEqual([3]);
  });
});

describe('what comes from another member', () => {
  const sound = () =>
    structuredClone({
      logId: id(1),
      sender: { address: 'm', port: 2 },
      entries: [entry(2, 2, 100, { hears: id(4), scavengeId: id(5) }), entry(3, 3, 90, { epoch: null })],
    });

  test('is taken as it is when it is sound, without what does not belong there', () => {
    const gossip = { ...sound(), more: 1 };
    Object.assign(gossip.entries[0]!, { password: 'x' });
    expect(checkGossip(gossip)).toEqual(sound());
  });

  test.each(['King', 'constructor'])('a state of a newer version is unknown here: %s', (state) => {
    const gossip = sound();
    Object.assign(gossip.entries[0]!, { state });
    expect(checkGossip(gossip).entries[0]!.state).toBe('Unknown');
  });

  test.each<[string, (gossip: Record<string, any>) => unknown]>([
    ['no object', () => null],
    ['a list', () => []],
    ['a text', () => 'x'],
    [
      'another kind of id',
      (g) => {
        g['logId'] = 'x';
      },
    ],
    [
      'no entries',
      (g) => {
        g['entries'] = [];
      },
    ],
    [
      'too many entries',
      (g) => {
        g['entries'] = Array.from({ length: MEMBERS_MAX + 1 }, () => g['entries'][0]);
      },
    ],
    [
      'a sender that does not speak first',
      (g) => {
        g['sender'] = { address: 'm', port: 3 };
      },
    ],
    [
      'a port of no port',
      (g) => {
        g['sender'].port = 65_536;
      },
    ],
    [
      'an address with a line break',
      (g) => {
        g['sender'].address = 'a\nb';
      },
    ],
    [
      'a long address',
      (g) => {
        g['sender'].address = 'a'.repeat(254);
      },
    ],
    [
      'a state that is no text',
      (g) => {
        g['entries'][0].state = 1;
      },
    ],
    [
      'a long state',
      (g) => {
        g['entries'][0].state = 'K'.repeat(65);
      },
    ],
    [
      'a time that is none',
      (g) => {
        g['entries'][0].sentMs = Number.NaN;
      },
    ],
    [
      'a negative time',
      (g) => {
        g['entries'][0].bucketSilentMs = -1;
      },
    ],
    [
      'a fraction of a commit',
      (g) => {
        g['entries'][0].applied = 1.5;
      },
    ],
    [
      'an epoch of text',
      (g) => {
        g['entries'][0].epoch = 'x';
      },
    ],
    [
      'an epoch beyond numbers',
      (g) => {
        g['entries'][0].epoch.number = 2 ** 53;
      },
    ],
    [
      'an id in capitals',
      (g) => {
        g['entries'][0].instanceId = 'ABCDEFAB-0000-4000-8000-000000000000';
      },
    ],
    [
      'a long version',
      (g) => {
        g['entries'][0].version = 'v'.repeat(65);
      },
    ],
    [
      'a priority beyond bounds',
      (g) => {
        g['entries'][0].priority = 2 ** 31;
      },
    ],
    [
      'a replica of text',
      (g) => {
        g['entries'][0].isReadOnlyReplica = 'no';
      },
    ],
  ])('is refused with %s', (_, change) => {
    const gossip: unknown = sound();
    const changed = change(gossip as Record<string, any>);
    let error: unknown = null;
    try {
      checkGossip(changed === undefined ? gossip : changed);
    } catch (thrown) {
      error = thrown;
    }
    expect(isSkuaError(error, 'bad_request')).toBe(true);
  });
});
