import { expect, it } from 'vitest';
import { SETTING_STREAM, SETTING_TYPE } from '../../core/attributes/format/setting.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { encodeText } from '../../core/base/text.ts';
import { ANY, type AllPosition, type EventQuery } from '../../core/streams/api.ts';
import { isAskedFor } from '../support/model-rules.ts';
import { Random } from '../support/random.ts';
import { openTestStore } from '../support/test-store.ts';
import { event } from '../streams/setup.ts';

it('by the indexes of a directory a query shows what a look at everything shows, and looks at little', async () => {
  const random = new Random(7);
  const opened = await openTestStore({ storage: new MemoryStorage(), chunkSizeBytes: 1_048_576 });
  const { store } = opened;
  const setting = '{"names":true,"correlations":true,"tags":true}';
  await store.append(SETTING_STREAM, ANY, [event(setting, { type: SETTING_TYPE, isJson: true })]);
  for (let i = 0; i < 60; i++)
    await store.append(
      `${random.pick(['a', 'b', 'c', 'rare'].slice(0, i % 20 === 0 ? 4 : 3))}-${random.int(1, 9)}`,
      ANY,
      Array.from({ length: 100 }, () =>
        event('x'.repeat(random.int(0, 200)), {
          type: random.pick(['t', 'u']),
          metadata: encodeText(
            JSON.stringify({ $correlationId: `k${random.int(1, 500)}`, $tags: [`g${random.int(1, 300)}`] }),
          ),
        }),
      ),
    );
  await opened.attributes!.idle();
  const all = (await readAll()).events;
  for (const query of [
    { category: 'rare' },
    { category: 'a', types: ['t', 'u'], tags: ['g7'] },
    { correlation: 'k9' },
    { tags: ['g1'], types: ['u'] },
    { types: ['none'] },
  ] as EventQuery[]) {
    for (const direction of ['forward', 'backward'] as const) {
      const { events, pages } = await readAll(direction, query);
      const wanted = all.filter((each) => isAskedFor(query, each));
      expect(events.map(({ id }) => id)).toEqual(
        (direction === 'forward' ? wanted : wanted.toReversed()).map(({ id }) => id),
      );
      expect(pages).toBe(1);
    }
  }
  await opened.close();

  async function readAll(direction: 'forward' | 'backward' = 'forward', query?: EventQuery) {
    const events = [];
    let from: AllPosition | 'start' | 'end' = direction === 'forward' ? 'start' : 'end';
    for (let pages = 1; ; pages++) {
      const page = await store.readAll({
        direction,
        from,
        count: 4_096,
        ...(query && { filter: { on: 'type', query }, scan: { recordsMax: 2_000, bytesMax: 1_000_000 } }),
      });
      events.push(...page.events);
      if (page.isEnd) return { events, pages };
      from = page.next;
    }
  }
});
