import { expect, it } from 'vitest';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { newClock, worldOf } from '../../shared-log/tick-kit.ts';
import { harness } from '../harness.ts';

it('the checkpoint of a log on object storage that has no records is none', async () => {
  const clock = newClock();
  const instance = await openObjectStore(worldOf(new MemoryObjects({ clock }), clock, 1));
  const reply = await harness({ store: instance.store }).get('/checkpoint', 'application/json');
  expect([reply.status, reply.json()]).toEqual([200, { checkpoint: null, end: 0 }]);
  await instance.close();
});
