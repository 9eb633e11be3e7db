import { afterAll, expect, test } from 'vitest';
import { checkModel } from './model-kit.ts';
import { inMemory, onS3 } from './place.ts';
import { TickingStore } from './ticking-store.ts';
import { inLongRun } from '../../support/long-run.ts';

const server = onS3();
afterAll(async () => {
  await server.close();
  expect(TickingStore.ticks).toBeGreaterThan(inLongRun(100, 15));
});

test('streams in memory and the model agree, with ticks at random places', () => checkModel(inMemory(), { runs: inLongRun(40, 8), seed: 301 }));
test('streams on a server and the model agree, with ticks at random places', () => checkModel(server, { runs: inLongRun(7, 1), seed: 302 }));
