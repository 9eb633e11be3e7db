import { afterAll, expect, test } from 'vitest';
import { checkModel } from './model-kit.ts';
import { inMemory, onS3 } from './place.ts';
import { TickingStore } from './ticking-store.ts';

const server = onS3();
afterAll(async () => {
  await server.close();
  expect(TickingStore.ticks).toBeGreaterThan(100);
});

test('streams in memory and the model agree, with ticks at random places', () => checkModel(inMemory(), { runs: 40, seed: 301 }));
test('streams on a server and the model agree, with ticks at random places', () => checkModel(server, { runs: 7, seed: 302 }));
