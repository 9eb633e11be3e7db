import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { Bucket } from '../shared-log/setup.ts';
import { openTestStore } from '../support/test-store.ts';
import { event } from './setup.ts';

/** Turns of other work that a reader takes at most until it sees the end of the log move. */
const TURNS_MAX = 20_000;

/** Calls `look` in the very turn in which the end of the log has moved, before whoever writes goes on. */
async function whenShown<T>(store: EventStore, look: () => T): Promise<T> {
  const before = store.end;
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    if (store.end > before) return look();
    // Microtasks only, but for a turn of the process now and then, in which the write goes on.
    if (turn % 100 === 99)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    else await Promise.resolve();
  }
  throw new Error('The end of the log did not move.');
}

interface Opened {
  readonly store: EventStore;
  close(): Promise<void>;
}

const PLACES: readonly (readonly [string, () => Promise<Opened>])[] = [
  ['a node', () => openTestStore({ storage: new MemoryStorage(), writeEpoch: false })],
  [
    'object storage',
    async () => {
      const instance = await new Bucket().open();
      return { store: instance.internals, close: () => instance.close() };
    },
  ],
];

describe.each(PLACES)('What a reader of the log sees on %s', (_name, open) => {
  it('is known to index and states by then: numbers, links, access lists', async () => {
    const opened = await open();
    const { store } = opened;
    await store.append('s', -1, [event('first')]);
    const seen = whenShown(store, () => ({
      info: store.streamInfoNow!('s'),
      metadata: store.streamInfoNow!('t')?.metadata,
      page: store.readAll({ direction: 'backward', from: 'end', count: 1, resolveLinks: true }).catch(String),
      event: store.readEvent('s', 1).catch(String),
    }));
    await Promise.all([
      store.append('s', 0, [event('second')]),
      store.append('$$t', -1, [event('{"$maxCount":7}', { type: '$metadata', isJson: true })]),
      store.append('links', -1, [event('1@s', { type: '$>' })]),
    ]);
    const { info, metadata, page, event: second } = await seen;
    expect(info).toMatchObject({ lastEventNumber: 1 });
    expect(metadata).toEqual({ maxCount: 7 });
    expect(await page).toMatchObject({ events: [{ stream: 's', number: 1, linkTargetMissing: false }] });
    expect(await second).toMatchObject({ data: encodeText('second') });
    await opened.close();
  });

  it('of a stream that was deleted is that it is deleted', async () => {
    const opened = await open();
    const { store } = opened;
    await store.append('s', -1, [event('first')]);
    const info = whenShown(store, () => store.streamInfoNow!('s'));
    await store.deleteStream('s', 0, 'hard');
    expect(await info).toMatchObject({ isTombstoned: true });
    await opened.close();
  });
});
