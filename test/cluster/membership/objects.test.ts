import { describe, expect, test } from 'vitest';
import {
  nodeObjectKey,
  type NodeNote,
  NODES_PREFIX,
  Registry,
} from '../../../core/cluster/membership/member-registry.ts';
import { type Log, silentLog } from '../../../core/ports/log.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { isKey } from '../../../core/ports/object-store.ts';
import { encodeText } from '../../../core/base/text.ts';
import { CountingObjects } from '../../support/counting-objects.ts';
import { cluster, Net, otherThan, type Process } from './kit.ts';

/** Short times, since simulated ones cost real ones. */
const LOOK_MS = 6_000;
const REMOVAL_MS = 30_000;
const SOON = { lookMs: LOOK_MS, deadMemberRemovalMs: REMOVAL_MS };

function note(port: number, changes: Partial<NodeNote> = {}): NodeNote {
  return {
    node: { address: 'm', port },
    instanceId: `00000000-0000-4000-8000-${String(port).padStart(12, '0')}`,
    priority: 0,
    isReadOnlyReplica: false,
    version: '1',
    writtenMs: 5,
    isStopped: false,
    ...changes,
  };
}

async function keys(objects: MemoryObjects, prefix: string): Promise<string[]> {
  return (await objects.list(prefix)).objects.map(({ key }) => key);
}

describe('node objects', () => {
  test.each([
    ['node1.example.test', 2113, 'nodes/node1.example.test_3a2113'],
    ['::1', 2113, 'nodes/_5b_3a_3a1_5d_3a2113'],
    ['a_b', 1, 'nodes/a_5fb_3a1'],
    ['10.0.0.1', 1, 'nodes/10.0.0.1_3a1'],
  ])('%s port %d has a key', (address, port, key) => {
    expect(nodeObjectKey({ address, port })).toBe(key);
    expect(isKey(key)).toBe(true);
  });

  test('no two addresses share one, and one that is too long is refused', () => {
    expect(nodeObjectKey({ address: 'a_3a', port: 1 })).not.toBe(nodeObjectKey({ address: 'a:', port: 1 }));
    expect(() => nodeObjectKey({ address: 'a'.repeat(253), port: 1 })).toThrow(
      expect.objectContaining({ code: 'bad_option' }),
    );
  });

  test('what was written is read and listed; what is unsound is passed over', async () => {
    const objects = new MemoryObjects();
    const warned: string[] = [];
    const log: Log = {
      ...silentLog,
      warn: (_, fields) => {
        warned.push(String(fields?.['key']));
      },
    };
    const registry = new Registry(objects, log);
    await registry.write(note(1));
    await registry.write(note(2, { isStopped: true }));
    for (const [name, text] of [
      ['.DS_Store', ''],
      ['Thumbs.db', ''],
      ['m_3a1.bak', JSON.stringify(note(1))],
      ['x_3a1', 'no JSON'],
      ['y_3a1', '{}'],
      ['z_3a1', 'null'],
      ['other_3a1', JSON.stringify(note(3))],
      ['long_3a1', JSON.stringify({ ...note(4), more: 'x'.repeat(5_000) })],
    ] as const)
      await objects.put(NODES_PREFIX + name, encodeText(text));
    expect(await registry.list()).toEqual([note(1), note(2, { isStopped: true })]);
    expect(await registry.read({ address: 'm', port: 1 })).toEqual(note(1));
    expect(await registry.read({ address: 'm', port: 9 })).toBeNull();
    expect(warned.sort()).toEqual(['nodes/long_3a1', 'nodes/other_3a1', 'nodes/x_3a1', 'nodes/y_3a1', 'nodes/z_3a1']);
    await registry.remove({ address: 'm', port: 1 });
    expect(await registry.list()).toEqual([note(2, { isStopped: true })]);
  });

  test('a list reads only what is new or changed', async () => {
    const objects = new CountingObjects(new MemoryObjects());
    const registry = new Registry(objects, silentLog);
    for (const port of [1, 2, 3]) await registry.write(note(port));
    await registry.list();
    const { gets } = objects.counts();
    await registry.list();
    expect(objects.counts().gets).toBe(gets);
    await registry.write(note(2, { priority: 4 }));
    expect((await registry.list())[1]!.priority).toBe(4);
    expect(objects.counts().gets).toBe(gets + 1);
  });

  test('a member that nobody hears of for long is removed by the leader, and forgotten by all', async () => {
    const net = new Net();
    const processes = await cluster(net, 3, SOON);
    const leader = net.leaderOf()!;
    const [gone, stays] = otherThan(processes, leader) as [Process, Process];
    net.kill(gone);
    await net.clock.advance(REMOVAL_MS - 2_000);
    expect(await keys(net.objects, NODES_PREFIX)).toHaveLength(3);
    expect(stays.membership.members()).toHaveLength(3);
    await net.clock.advance(3 * LOOK_MS);
    expect(await keys(net.objects, NODES_PREFIX)).toHaveLength(2);
    await net.clock.advance(2 * LOOK_MS);
    for (const { membership } of [leader, stays]) expect(membership.members()).toHaveLength(2);
  });

  test('an object that was taken away is written again, and one tells what has changed', async () => {
    const net = new Net();
    const [first] = (await cluster(net, 3, SOON)) as [Process];
    await net.objects.remove([nodeObjectKey(first.node)]);
    await first.membership.setPriority(3);
    await net.clock.advance(1_000);
    const registry = new Registry(net.objects, silentLog);
    expect(await registry.read(first.node)).toMatchObject({
      instanceId: first.instanceId,
      priority: 3,
      isStopped: false,
    });
    void first.membership.close();
    await net.clock.advance(3_000);
    expect(await registry.read(first.node)).toMatchObject({ instanceId: first.instanceId, isStopped: true });
  });
});
