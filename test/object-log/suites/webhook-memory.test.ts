import { storesOn } from './open-on-objects.ts';
import { inMemory } from './place.ts';

storesOn(inMemory(), { seed: 1 });
await import('../../webhook/deduplication.test.ts');
await import('../../webhook/ingest.test.ts');
await import('../../webhook/registry.test.ts');
await import('../../webhook/registry-crash.test.ts');
await import('../../webhook/rejections.test.ts');
