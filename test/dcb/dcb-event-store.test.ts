import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Query, streamAllEventsToArray, Tags } from '@dcb-es/event-store';
import { expect, test } from 'vitest';
import { connect } from '../../local/client/index.ts';
import { getDcbEventStore } from '../../local/dcb/index.ts';
import { startTestNode } from '../../local/testing/index.ts';
import { openIndexed } from './backends.ts';
import { describeDcbStore, openTheirs } from './contract.ts';

describeDcbStore('the library itself', openTheirs);
describeDcbStore('a store in memory', async () => {
  const skua = await openIndexed({ memory: true });
  return { store: getDcbEventStore(skua), close: () => skua.close() };
});
describeDcbStore('a store in a directory', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skua-dcb-'));
  const skua = await openIndexed({ directory: join(folder, 'data') });
  return {
    store: getDcbEventStore(skua),
    close: async () => {
      await skua.close();
      await rm(folder, { recursive: true });
    },
  };
});
describeDcbStore('a node that is called', async () => {
  const node = await startTestNode();
  await openIndexed({ memory: true }, async () => node.store);
  const client = connect({ url: node.url });
  return {
    store: getDcbEventStore(client),
    close: async () => {
      await client.close();
      await node.stop();
    },
  };
});

test('commands whose conditions are alike count as one query, and 32 different items are the most', async () => {
  const skua = await openIndexed({ memory: true });
  const store = getDcbEventStore(skua);
  const commands = (count: number, asked: number) =>
    Array.from({ length: count }, (_, n) => ({
      events: { type: 'counted', tags: Tags.createEmpty(), data: n, metadata: {} },
      condition: { failIfEventsMatch: Query.fromItems([{ types: ['asked'], tags: Tags.from([`n:${n % asked}`]) }]) },
    }));
  await store.append(commands(100, 32));
  expect(await streamAllEventsToArray(store.read(Query.all()))).toHaveLength(100);
  await expect(store.append(commands(100, 33))).rejects.toMatchObject({ code: 'bad_option' });
  await skua.close();
});

test('events lie in the streams that the program says, and tags of others may hold anything', async () => {
  const skua = await openIndexed({ memory: true });
  const store = getDcbEventStore(skua, { streamOf: ({ tags }) => `by-${tags.values[0]}` });
  await store.append({ events: { type: 'joined', tags: Tags.from(['a']), data: 1, metadata: undefined } });
  await skua.append('by-a', { type: 'other', data: 2, metadata: { $tags: ['a', 'two words'], more: 3 } });
  await skua.append('$hidden', { type: 'other', data: 3 });
  const events = await streamAllEventsToArray(store.read(Query.all()));
  expect(events.map(({ event: { tags, ...rest } }) => ({ ...rest, tags: tags.values }))).toEqual([
    { type: 'joined', tags: ['a'], data: 1, metadata: {} },
    { type: 'other', tags: ['a'], data: 2, metadata: { more: 3 } },
  ]);
  await expect(
    store.append({ events: { type: 'joined', tags: Tags.from(['a']), data: 1, metadata: 'text' } }),
  ).rejects.toMatchObject({ code: 'invalid_event' });
  await skua.close();
});
