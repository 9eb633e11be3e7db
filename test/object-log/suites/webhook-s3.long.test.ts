import { describe } from 'vitest';
import { storesOn } from './open-on-objects.ts';
import { onS3 } from './place.ts';

/** Of each suite what reads and writes most, and two of the crashes; the rest runs on objects in memory. */
const HERE = [
  /^deduplication one delivery /, /^deduplication a restart (between note|behind the event: |later notes)/, /^ingest statuses and what was written '(accepted|written|the stream is deleted)/, /^ingest stopping writes/,
  /^registry events /, /^registry .*the same after a restart/, /^registry, crashes .*(without a crash|behind write (8|18)$)/, /^rejections /,
];
storesOn(onS3(), { seed: 201, only: (test) => HERE.some((name) => name.test(test.replaceAll(' > ', ' '))) });
describe('deduplication', async () => { await import('../../webhook/ingest/deduplication.test.ts'); });
describe('ingest', async () => { await import('../../webhook/ingest/ingest.test.ts'); });
describe('registry', async () => { await import('../../webhook/connectors/registry.test.ts'); });
describe('registry, crashes', async () => { await import('../../webhook/connectors/registry-crash.test.ts'); });
describe('rejections', async () => { await import('../../webhook/ingest/rejections.test.ts'); });
