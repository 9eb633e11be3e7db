import { EventStoreDBClient } from '@eventstore/db-client';
import { getInMemoryEventStore, IllegalStateError } from 'emmett-current';
import type { EventStore } from 'emmett-current';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { getSkuaEventStore } from '../../local/emmett/index.ts';
import { openLibrary } from './application/library.ts';
import { embedded, functions, nodeByGrpc, nodeByHttp } from './backends.ts';

/** The same application wherever its events lie; the first place is Emmett's own. */
describe.each<[string, () => Promise<{ readonly store: EventStore; close(): Promise<void> }>]>([
  ['the memory of Emmett itself', async () => ({ store: getInMemoryEventStore(), close: async () => {} })],
  ...[
    ['a directory of this process', () => embedded(false)] as const,
    ['a node by gRPC', () => nodeByGrpc((text) => EventStoreDBClient.connectionString(text))] as const,
    ['a node by HTTP', nodeByHttp] as const,
    ['functions', functions] as const,
  ].map(([name, open]): [string, () => Promise<{ readonly store: EventStore; close(): Promise<void> }>] => [
    name,
    async () => {
      const backend = await open();
      return { store: getSkuaEventStore(backend.source), close: () => backend.close() };
    },
  ]),
])('a library over %s', (_, open) => {
  let opened: Awaited<ReturnType<typeof open>>;
  let library: ReturnType<typeof openLibrary>;
  beforeAll(async () => {
    opened = await open();
    library = openLibrary(opened.store);
  });
  afterAll(() => opened?.close());

  test('lends a copy, and takes it back', async () => {
    await expect(library.lend('1', 'kim', '2026-05-01')).rejects.toThrow('There is no such copy.');
    await library.acquire('1', 'Emma');
    expect(await library.lend('1', 'kim', '2026-05-01')).toEqual({
      title: 'Emma',
      loan: { reader: 'kim', due: '2026-05-01' },
      waiting: [],
      loans: 1,
    });
    const refused = await library.lend('1', 'lou', '2026-05-02').catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(IllegalStateError);
    expect((refused as Error).message).toBe('kim has it until 2026-05-01.');
    await library.takeBack('1', '2026-05-03');
    expect(await library.look('1')).toEqual({ title: 'Emma', loan: null, waiting: [], loans: 1 });
    expect(await library.history('1')).toEqual(['CopyAcquired Emma', 'CopyLent kim', 'CopyReturned kim']);
  });

  test('has all in its line who come at once, each of them once', async () => {
    await library.acquire('2', 'Persuasion');
    await library.lend('2', 'kim', '2026-06-01');
    const readers = Array.from({ length: 6 }, (__, n) => `reader-${n}`);
    await Promise.all([...readers, ...readers].map((reader) => library.reserve('2', reader)));
    const { waiting } = await library.look('2');
    expect([...waiting].sort()).toEqual(readers);
    await library.takeBack('2', '2026-05-20');
    await expect(library.lend('2', waiting[1]!, '2026-07-01')).rejects.toThrow(`${waiting[0]} is next.`);
    expect(await library.lend('2', waiting[0]!, '2026-07-01')).toMatchObject({
      loan: { reader: waiting[0] },
      waiting: waiting.slice(1),
      loans: 2,
    });
  });

  test('knows no copy that it never had', async () => {
    expect(await library.look('3')).toEqual({ title: null, loan: null, waiting: [], loans: 0 });
    expect(await library.history('3')).toEqual([]);
  });
});
