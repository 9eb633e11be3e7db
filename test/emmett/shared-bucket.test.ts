import type {} from '@eventstore/db-client';
import { CommandHandler, isExpectedVersionConflictError } from 'emmett-current';
import type { Event } from 'emmett-current';
import { expect, test } from 'vitest';
import { openStore } from '../../local/embedded/index.ts';
import { getSkuaEventStore } from '../../local/emmett/index.ts';
import { functions } from './backends.ts';

type Counted = Event<'Counted', { readonly n: number }>;

test('a process and functions decide on the same streams of one bucket, and none of them loses anything', async () => {
  const backend = await functions();
  try {
    // The tick of the functions carries the store on, and none is needed here.
    await using store = await openStore({ bucket: backend.folder, upkeep: false });
    const stores = [getSkuaEventStore(store), getSkuaEventStore(backend.source)];
    const handle = CommandHandler<number, Counted>({
      evolve: (count) => count + 1,
      initialState: () => 0,
      retry: {
        onVersionConflict: {
          retries: 200,
          minTimeout: 1,
          maxTimeout: 20,
          shouldRetryError: isExpectedVersionConflictError,
        },
      },
    });
    await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        handle(stores[n % 2]!, 'counter', (count): Counted => ({ type: 'Counted', data: { n: count } })),
      ),
    );
    for (const each of stores) {
      // Each has seen the other's by its own next write at the latest.
      await handle(each, 'counter', (count): Counted => ({ type: 'Counted', data: { n: count } }));
      const { events } = await each.readStream<Counted>('counter');
      expect(events.map(({ data }) => data.n)).toEqual(events.map((_, index) => index));
      expect(events.length).toBeGreaterThanOrEqual(13);
    }
  } finally {
    await backend.close();
  }
});
