import { expect, test } from 'vitest';
import { MemoryObjects } from './memory-objects.ts';
import { codeOf as codeOfError } from './crash.ts';
import { FaultyObjects } from './faulty-objects.ts';
import type { FaultyObjectsOptions } from './faulty-objects.ts';

const text = (value: string) => new TextEncoder().encode(value);
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => codeOfError(error) ?? String(error),
  );
const start = (options: FaultyObjectsOptions = {}) => {
  const memory = new MemoryObjects();
  return { memory, faulty: new FaultyObjects(memory, options) };
};

test('each fault does what its name says, to the call it was planned for', async () => {
  const { memory, faulty } = start();
  faulty.faultAt(2, 'before');
  expect(await codeOf(faulty.put('a', text('1')))).toBe('done');
  expect(await codeOf(faulty.put('b', text('1')))).toBe('storage_unreachable');
  faulty.faultAt(1, 'after');
  expect(await codeOf(faulty.put('c', text('1')))).toBe('storage_unreachable');
  faulty.faultAt(1, 'throttle');
  expect(await codeOf(faulty.list(''))).toBe('storage_throttled');
  expect((await memory.list('')).objects.map(({ key }) => key)).toEqual(['a', 'c']);
  expect(faulty.calls.map(({ op, fault }) => `${op} ${fault}`)).toEqual([
    'put undefined',
    'put before',
    'put after',
    'list throttle',
  ]);
});

test('a create is undecided whatever fault it meets', async () => {
  const { memory, faulty } = start();
  for (const fault of ['before', 'after', 'late', 'throttle'] as const) {
    faulty.faultAt(1, fault);
    expect(await codeOf(faulty.create(`k-${fault}`, text('x')))).toBe('outcome_unknown');
  }
  await faulty.settle();
  expect((await memory.list('')).objects.map(({ key }) => key)).toEqual(['k-after', 'k-late']);
});

test('a late write arrives after calls that came behind it', async () => {
  const { memory, faulty } = start({ seed: 3 });
  faulty.faultAt(1, 'late');
  await codeOf(faulty.create('k', text('late')));
  expect(await memory.get('k')).toBeNull();
  for (let n = 0; n < 6; n++) await faulty.head('other');
  expect(await memory.get('k')).toEqual(text('late'));
});

test('after a crash nothing is answered, and another client finds what had its effect', async () => {
  const outcomes = new Set<boolean>();
  for (let seed = 1; seed <= 20; seed++) {
    const { memory, faulty } = start({ seed });
    faulty.crashAfter(1);
    await faulty.put('a', text('1'));
    expect(await codeOf(faulty.put('b', text('1')))).toBe('storage_crashed');
    expect(await codeOf(faulty.get('a'))).toBe('storage_crashed');
    outcomes.add((await memory.head('b')) !== null);
    const again = await faulty.restart();
    expect(await again.get('a')).toEqual(text('1'));
  }
  expect(outcomes).toEqual(new Set([true, false]));
});

test('a removal that fails may be half done', async () => {
  const left = new Set<number>();
  for (let seed = 1; seed <= 20; seed++) {
    const { memory, faulty } = start({ seed });
    for (const key of ['a', 'b', 'c']) await memory.put(key, text(key));
    faulty.faultAt(1, 'before');
    await codeOf(faulty.remove(['a', 'b', 'c']));
    left.add(memory.size);
  }
  expect(left.size).toBeGreaterThan(2);
});

test('the same seed gives the same faults', async () => {
  const run = async (seed: number) => {
    const { faulty } = start({ seed, chances: { before: 0.2, after: 0.2, late: 0.1, throttle: 0.1 } });
    for (let n = 0; n < 50; n++)
      await codeOf(n % 2 === 0 ? faulty.create(`k${n}`, text('x')) : faulty.get(`k${n - 1}`));
    return faulty.calls.map(({ fault }) => fault ?? '-').join(' ');
  };
  expect(await run(5)).toBe(await run(5));
  expect(await run(5)).not.toBe(await run(6));
  expect(await run(5)).toMatch(/before.*late/);
});
