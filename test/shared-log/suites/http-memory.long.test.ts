import { describe } from 'vitest';
import { bySize } from '../../support/run-size.ts';
import { storesOn } from './open-on-objects.ts';
import { inMemory } from './place.ts';

/**
 * The walk through the operations on streams, and who may do what; the other operations and the document itself know
 * nothing of the store. A landing takes a third of it, by the length of names.
 */
storesOn(inMemory(), {
  seed: 51,
  tickChance: 0.03,
  only: (test) =>
    (test.startsWith('access') || / '\/streams\//.test(test)) && bySize(true, test.length % 3 === 0, true),
});
describe('access', async () => {
  await import('../../handlers/access.test.ts');
});
describe('walk', async () => {
  await import('../../handlers/openapi/document.test.ts');
});
