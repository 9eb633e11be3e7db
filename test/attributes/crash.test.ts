import { describe, expect, it } from 'vitest';
import type { DirectoryStore } from '../../core/store/store.ts';
import { isCrash } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { bySize } from '../support/run-size.ts';
import { appendSome, differences, openIndexed, set } from './world.ts';

/** Every how many operations one is tried. */
const EVERY = bySize(11, 1);
const OPTIONS = { attributes: { memTableEntriesMax: 24, tablesPerLevelMax: 2 } };

async function work(storage: FaultyStorage): Promise<DirectoryStore> {
  const random = new Random(3);
  const open = await openIndexed({ storage, ...OPTIONS });
  await appendSome(open.store, random, 12);
  await set(open.store, { correlations: true, tags: true });
  await appendSome(open.store, random, 12);
  await open.attributes!.idle();
  await set(open.store, { names: false, tags: true });
  await open.attributes!.idle();
  await set(open.store, {});
  await appendSome(open.store, random, 8);
  await open.attributes!.idle();
  return open;
}

describe('attribute indexes whose disk loses power', () => {
  it('have what the log has after a crash at any call', async () => {
    const dry = new FaultyStorage();
    await (await work(dry)).close();
    const { operations } = dry;
    for (let n = 1 + ((operations - 1) % EVERY); n <= operations; n += EVERY) {
      const storage = new FaultyStorage({ seed: n });
      storage.crashAt(n);
      let open: DirectoryStore | null = null;
      try {
        open = await work(storage);
        await open.close();
      } catch (error) {
        if (!isCrash(error) && !storage.isCrashed) throw error;
        await open?.close().catch(() => {});
      }
      for (const mode of ['drop', 'partial', 'clean'] as const) {
        const after = storage.restart(mode, n);
        const again = await openIndexed({ storage: after, ...OPTIONS, seed: 50 });
        expect(await differences(again)).toEqual([]);
        const states = again.attributes!.status().map(({ name, state }) => [name, state]);
        const { setting } = again.attributes!;
        expect(states).toEqual(
          (['names', 'correlations', 'tags'] as const).map((name) => [name, setting[name] ? 'live' : 'off']),
        );
        for (const name of ['names', 'correlations', 'tags'] as const)
          if (!setting[name]) expect(await after.list(`attributes/${name}`)).toEqual([]);
        await again.close();
        expect(after.violations).toEqual([]);
      }
    }
  });
});
