import { expect, test } from 'vitest';
import { Failures, FAILURES_MAX } from '../../core/security/failures.ts';
import { ManualClock } from '../support/manual-clock.ts';

function fail(failures: Failures, name: string, address: string | null): void {
  failures.begin(name, address);
  failures.end(name, address, true);
}

test('what succeeded leaves nothing behind', () => {
  const failures = new Failures(new ManualClock());
  failures.begin('a', null);
  failures.end('a', null, false);
  expect(failures.size).toBe(0);
});

test('remembers at most ten thousand, and forgets the oldest', () => {
  const failures = new Failures(new ManualClock());
  for (let i = 0; i < FAILURES_MAX; i++) fail(failures, 'first', null);
  for (let i = 0; i < 9_999; i++) fail(failures, 'x', `address ${i}`);
  expect(failures.size).toBe(10_000);
  expect(() => failures.check('first', null)).toThrow();
  fail(failures, 'x', 'one more');
  expect(failures.size).toBe(10_000);
  expect(() => failures.check('first', null)).not.toThrow();
});

test('forgets by itself what is over', async () => {
  const clock = new ManualClock();
  const failures = new Failures(clock);
  for (let i = 0; i < 100; i++) fail(failures, `user ${i}`, null);
  await clock.advance(60_000);
  fail(failures, 'later', null);
  expect(failures.size).toBe(1);
});

test('a name and an address are not mixed up', () => {
  const failures = new Failures(new ManualClock());
  for (let i = 0; i < FAILURES_MAX; i++) fail(failures, 'b', 'a');
  expect(() => failures.check('b', 'a')).toThrow();
  expect(() => failures.check('a', 'b')).not.toThrow();
  expect(() => failures.check('b', null)).not.toThrow();
});
