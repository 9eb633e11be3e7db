import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { collectGarbage } from '../../infra/garbage.ts';

test('what nothing refers to is collected, and no program finds the function that does it', async () => {
  const held = {};
  const refs = [new WeakRef({}), new WeakRef(held)];
  // What a reference was made of stays until the turn ends.
  await setImmediate();
  collectGarbage();
  expect(refs.map((ref) => ref.deref())).toEqual([undefined, held]);
  expect((globalThis as { readonly gc?: unknown }).gc).toBeUndefined();
});
