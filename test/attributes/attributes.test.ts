import { describe, expect, it } from 'vitest';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { Random } from '../support/random.ts';
import { appendSome, differences, openIndexed, set } from './world.ts';

const SMALL = { attributes: { memTableEntriesMax: 40 } };

describe('attribute indexes of a directory', () => {
  it('have what the log has: while it grows, after restarts, with tables merged', async () => {
    const storage = new MemoryStorage();
    const random = new Random(1);
    for (let start = 0; start < 4; start++) {
      const open = await openIndexed({ storage, seed: 1 + start, ...SMALL });
      if (start === 1) await set(open.store, { correlations: true, tags: true });
      await appendSome(open.store, random, 60);
      expect(open.status().attributes[0]).toMatchObject({ state: 'live', coveredTo: open.status().checkpoints.writer });
      await open.attributes!.idle();
      expect(open.status().attributes.map(({ state }) => state)).toEqual(
        start === 0 ? ['live', 'off', 'off'] : ['live', 'live', 'live'],
      );
      expect(await differences(open)).toEqual([]);
      await open.close();
    }
  });

  it('give views of links that are the same after a restart, and with an index as without one', async () => {
    const storage = new MemoryStorage();
    const views = async (open: Awaited<ReturnType<typeof openIndexed>>) => {
      const pages = ['$ce-a', '$et-t', '$bc-x'].map((view) =>
        open.store
          .readStream(view, { direction: 'forward', from: 0, count: 4_096, resolveLinks: false })
          .then(({ events }) => events.map(({ number, id, data }) => [number, id, decodeText(data)])),
      );
      return Promise.all(pages);
    };
    const event = (n: number) => ({
      id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
      type: 't',
      isJson: true,
      data: encodeText('{}'),
      metadata: encodeText('{"$correlationId":"x"}'),
    });
    const first = await openIndexed({ storage, seed: 1, ...SMALL });
    for (let i = 0; i < 60; i++) await first.store.append(`${i % 2 === 0 ? 'a' : 'b'}-${i % 7}`, -2, [event(i)]);
    const found = await views(first);
    expect(found.map(({ length }) => length)).toEqual([30, 60, 60]);
    await first.close();
    const second = await openIndexed({ storage, seed: 2, ...SMALL });
    expect(await views(second)).toEqual(found);
    await set(second.store, { names: false, correlations: true });
    await second.attributes!.idle();
    expect(await views(second)).toEqual(found);
    await second.close();
  });
});
