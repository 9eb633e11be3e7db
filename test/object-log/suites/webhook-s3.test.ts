import { describe } from 'vitest';
import { storesOn } from './open-on-objects.ts';
import { onS3 } from './place.ts';

storesOn(onS3(), { seed: 201 });
describe('deduplication', () => import('../../webhook/deduplication.test.ts'));
describe('ingest', () => import('../../webhook/ingest.test.ts'));
describe('registry', () => import('../../webhook/registry.test.ts'));
describe('registry, crashes', () => import('../../webhook/registry-crash.test.ts'));
describe('rejections', () => import('../../webhook/rejections.test.ts'));
