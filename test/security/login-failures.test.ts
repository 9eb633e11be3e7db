import { describe, expect, test } from 'vitest';
import { FAILURES_MAX } from '../../core/ports/shared-failures.ts';
import { FAMILIAR_MS, FAMILIAR_USERS_MAX, Failures, PLACES_PER_USER_MAX } from '../../core/security/login-failures.ts';
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

describe('where a user has logged in', () => {
  const isFamiliar = (failures: Failures, name: string, address: string | null) =>
    failures.callerOf(name, address).isFamiliar;

  test('is familiar for this user and a week', async () => {
    const clock = new ManualClock();
    const failures = new Failures(clock);
    failures.succeeded('kim', '10.0.0.1');
    expect([
      isFamiliar(failures, 'kim', '10.0.0.1'),
      isFamiliar(failures, 'kim', '10.0.0.2'),
      isFamiliar(failures, 'ada', '10.0.0.1'),
    ]).toEqual([true, false, false]);
    await clock.advance(FAMILIAR_MS - 1);
    expect(isFamiliar(failures, 'kim', '10.0.0.1')).toBe(true);
    await clock.advance(1);
    expect(isFamiliar(failures, 'kim', '10.0.0.1')).toBe(false);
  });

  test('is a whole network in IPv6', () => {
    const failures = new Failures(new ManualClock());
    failures.succeeded('kim', '2001:db8::1');
    expect([isFamiliar(failures, 'kim', '2001:db8::2'), isFamiliar(failures, 'kim', '2001:db8:0:1::1')]).toEqual([
      true,
      false,
    ]);
  });

  test('is forgotten for sixteen later ones of the same user, and for a thousand users', () => {
    const failures = new Failures(new ManualClock());
    failures.succeeded('ada', '10.0.0.1');
    for (let i = 0; i <= PLACES_PER_USER_MAX; i++) failures.succeeded('kim', `10.0.0.${i}`);
    expect([
      isFamiliar(failures, 'kim', '10.0.0.0'),
      isFamiliar(failures, 'kim', '10.0.0.1'),
      isFamiliar(failures, 'ada', '10.0.0.1'),
    ]).toEqual([false, true, true]);
    for (let i = 2; i <= FAMILIAR_USERS_MAX; i++) failures.succeeded(`user ${i}`, '10.0.0.1');
    expect([isFamiliar(failures, 'ada', '10.0.0.1'), isFamiliar(failures, 'kim', '10.0.0.1')]).toEqual([false, true]);
  });
});
