import { openStore, type OpenStoreOptions, type Store } from '../../local/embedded/index.ts';

/** Times that are asked for whether the index is there. */
const ASKED_MAX = 100_000;

/** A store whose index of tags is on, and has caught up; nothing that readers see is in it. */
export async function openIndexed(options: OpenStoreOptions, open: typeof openStore = openStore): Promise<Store> {
  const store = await open(options);
  const data = { names: true, correlations: false, tags: true };
  await store.append('$attribute-indexes', { type: '$attribute-indexes-set', data });
  const condition = { failIfEventsMatch: { items: [{ types: ['asked'], tags: ['never'] }] } };
  for (let asked = 0; asked < ASKED_MAX; asked++) {
    try {
      await store.append({ type: 'asked', stream: 'asked' }, { condition });
      await store.delete('asked', { hard: true });
      return store;
    } catch (error) {
      if ((error as { readonly code?: string }).code !== 'index_building') throw error;
    }
  }
  throw new Error('The index of tags is not there.');
}
