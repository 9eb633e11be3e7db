import { describe } from 'vitest';
import { storesOn } from './open-on-objects.ts';
import { inMemory } from './place.ts';

/**
 * It deletes the stream behind the back of the store that the connectors have, and only a node's own store tells that
 * at once.
 */
const BESIDE = 'a connector whose stream was deleted for ever does not exist, and its id is taken';

/** It fills a commit, and chunks are smaller here. */
const FULL = 'are no more than a commit may have bytes';

storesOn(inMemory(), { seed: 1, only: (test) => !test.endsWith(BESIDE) && !test.endsWith(FULL) });
describe('deduplication', async () => {
  await import('../../webhook/ingest/deduplication.test.ts');
});
describe('ingest', async () => {
  await import('../../webhook/ingest/ingest.test.ts');
});
describe('registry', async () => {
  await import('../../webhook/connectors/registry.test.ts');
});
describe('registry, crashes', async () => {
  await import('../../webhook/connectors/registry-crash.test.ts');
});
describe('rejections', async () => {
  await import('../../webhook/ingest/rejections.test.ts');
});
