import { expect, it } from 'vitest';
import { ANY } from '../../core/streams/api.ts';
import { settledStore } from '../../infra/aws/functions/open-store.ts';
import { openTestStore } from '../support/test-store.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';

const event = (id: string) => ({
  id,
  type: 'noted',
  isJson: true,
  data: new Uint8Array(0),
  metadata: new Uint8Array(0),
});

it('waits for work in the background, also for what follows on it, whether it succeeds or fails', async () => {
  const open = await openTestStore({ storage: new MemoryStorage() });
  const { store, settled } = settledStore(open.store);
  const done: string[] = [];
  void (async () => {
    await store.streamInfo('notes');
    await store.append('notes', ANY, [event('00000000-0000-4000-8000-000000000001')]);
    done.push('written');
    await store.append('notes', 99, [event('00000000-0000-4000-8000-000000000002')]).catch(() => {
      done.push('refused');
    });
    await store.readEvent('notes', 'last');
    done.push('read');
  })();
  await settled();
  expect(done).toEqual(['written', 'refused', 'read']);
  expect((await open.store.readEvent('notes', 'last')).type).toBe('noted');
  await open.close();
});

it('does not wait for a subscription, which ends with its request', async () => {
  const open = await openTestStore({ storage: new MemoryStorage() });
  const { store, settled } = settledStore(open.store);
  const ending = new AbortController();
  const waiting = store.waitForStream('notes', ending.signal);
  await settled();
  ending.abort();
  expect(await waiting).toBe(false);
  await open.close();
});
