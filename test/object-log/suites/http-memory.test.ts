import { storesOn } from './open-on-objects.ts';
import { inMemory } from './place.ts';

storesOn(inMemory(), { seed: 51, tickChance: 0.05 });
await import('../../handlers/access.test.ts');
await import('../../handlers/openapi.test.ts');
