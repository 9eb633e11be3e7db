import { expect, test } from 'vitest';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { lastEpoch } from '../../../local/node/control.ts';
import { openTestStore } from '../../support/test-store.ts';

test('the last epoch is the one that this start began', async () => {
  const storage = new MemoryStorage();
  const first = await openTestStore({ storage });
  const before = await lastEpoch(first.store);
  expect(before).toMatchObject({
    position: first.status().checkpoints.epoch,
    number: 0,
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  await first.close();
  const second = await openTestStore({ storage });
  const after = await lastEpoch(second.store);
  expect(after).toMatchObject({ position: second.status().checkpoints.epoch, number: 1 });
  expect(after.id).not.toBe(before.id);
  await second.close();
});

test('a log without epochs has none', async () => {
  const open = await openTestStore({ storage: new MemoryStorage(), writeEpoch: false });
  expect(await lastEpoch(open.store)).toEqual({ position: -1, number: -1, id: '00000000-0000-0000-0000-000000000000' });
  await open.close();
});
