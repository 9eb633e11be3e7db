import { expect, test } from 'vitest';
import { Disposables } from '../../infra/disposables.ts';

/** A stack on which each of `names` was opened, and what was closed of it; `failing` can't be closed. */
function stackOf(names: readonly string[], failing: readonly string[] = []) {
  const stack = new Disposables();
  const closed: string[] = [];
  const close = async (name: string) => {
    closed.push(`${name}...`);
    await Promise.resolve();
    if (failing.includes(name)) throw new Error(name);
    closed.push(name);
  };
  for (const name of names) stack.use({ [Symbol.asyncDispose]: () => close(name) });
  return { stack, closed };
}

test('what was opened last is closed first, and each waits for the one before', async () => {
  const { stack, closed } = stackOf(['a', 'b']);
  stack.defer(() => {
    closed.push('c');
  });
  await stack.close();
  expect([closed, stack.size]).toEqual([['c', 'b...', 'b', 'a...', 'a'], 0]);
});

test('one that can not be closed keeps no other from it, and the first error is told', async () => {
  const { stack, closed } = stackOf(['a', 'b', 'c', 'd'], ['b', 'c']);
  await expect(stack.close()).rejects.toThrow(/^c$/);
  expect(closed).toEqual(['d...', 'd', 'c...', 'b...', 'a...', 'a']);
  await stack.close();
  expect(closed).toHaveLength(6);
});

test('what throws undefined has failed, too', async () => {
  const stack = new Disposables();
  stack.defer(() => Promise.reject(undefined as unknown as Error));
  await expect(stack.close()).rejects.toBeUndefined();
});

test('what is kept stays open, and more can be opened upon it', async () => {
  const { stack, closed } = stackOf(['a', 'b', 'c']);
  await stack.close(1);
  expect([closed, stack.size]).toEqual([['c...', 'c', 'b...', 'b'], 1]);
  stack.defer(() => {
    closed.push('d');
  });
  await stack.close();
  expect(closed.slice(4)).toEqual(['d', 'a...', 'a']);
});
