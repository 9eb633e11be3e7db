import { afterAll, expect, test } from 'vitest';
import { checkModel } from './model-kit.ts';
import { inMemory, onS3 } from './place.ts';
import { TickingStore } from './ticking-store.ts';
import { bySize } from '../../support/run-size.ts';

const server = onS3();
afterAll(async () => {
  await server.close();
  expect(TickingStore.ticks).toBeGreaterThan(bySize(15, 60, 100));
});

test('streams in memory and the model agree, with ticks at random places', () => checkModel(inMemory(), { runs: bySize(8, 25, 100), seed: 301 }));
test('streams on a server and the model agree, with ticks at random places', () => checkModel(server, { runs: bySize(1, 3, 20), seed: 302 }));
