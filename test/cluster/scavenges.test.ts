import { describe, expect, test } from 'vitest';
import { scavengeStoreOf } from '../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import type { MemberStore } from '../../core/cluster/replica/replica.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { ANY } from '../../core/streams/api.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { decodeText } from '../../core/base/text.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { Cluster, event } from './replica/kit.ts';

describe('scavenges of members', () => {
  /** A leads. What B writes for itself goes there; the bucket counts what B creates. */
  async function cluster() {
    const kit = new Cluster();
    const a = await kit.open();
    let creates = 0;
    const counting = (objects: ObjectStore): ObjectStore =>
      new Proxy(objects, {
        get(target, name) {
          const value = Reflect.get(target, name) as unknown;
          if (name === 'create') creates++;
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    let b: MemberStore | null = null;
    const writes: Pick<EventStore, 'append'> = {
      append: (stream, expectedVersion, events) =>
        a.store.append(stream, expectedVersion, events).finally(() => b!.log.refresh()),
    };
    b = await kit.open(new MemoryStorage(), {
      through: counting,
      scavengeStore: (store) => scavengeStoreOf(store, writes),
    });
    await a.store.append('$$s', ANY, [event('$metadata', '{"$maxCount":1}')]);
    for (let i = 0; i < 30; i++)
      await a.store.append('s', ANY, [event('t', JSON.stringify({ text: 'x'.repeat(3_000), i }))]);
    await b.log.refresh();
    creates = 0;
    return { kit, a, b, creates: () => creates };
  }

  const points = async (member: MemberStore) =>
    (await member.store.readStream('$scavengePoints', { direction: 'forward', from: 0, count: 10 })).events.length;

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
    const { events } = await a.store.readStream(`$scavenges-${scavengeId}`, {
      direction: 'forward',
      from: 0,
      count: 1,
    });
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
    expect(
      (await b.store.readStream('s', { direction: 'backward', from: 'end', count: 10 })).events.map(
        ({ number }) => number,
      ),
    ).toEqual([29]);
    await a.close();
    await b.close();
  });
});
