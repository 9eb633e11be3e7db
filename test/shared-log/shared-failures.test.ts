import { describe, expect, test } from 'vitest';
import { FAILURE_REQUESTS_A_MINUTE, ObjectFailures } from '../../core/shared-log/shared-failures/shared-failures.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { FAILURES_MAX } from '../../core/ports/shared-failures.ts';
import { createSecurity } from '../../core/security/security.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ModelStore } from '../support/model-store.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { CONFIG, FakeKeys, KeptLog } from '../security/kit.ts';

function open() {
  const clock = new ManualClock();
  const objects = new MemoryObjects({ clock });
  const log = new KeptLog();
  /** Another process on the same bucket. */
  const instance = () => {
    const counting = new CountingObjects(objects);
    return { counting, failures: new ObjectFailures({ objects: counting, clock, digests: nodeDigests, log }) };
  };
  return { clock, objects, log, instance };
}

describe('failures of one pair', () => {
  test('are counted once for all processes, at one request each where nobody else counts', async () => {
    const { instance } = open();
    const { failures, counting } = instance();
    const outcomes: boolean[] = [];
    for (let i = 0; i < FAILURES_MAX; i++) outcomes.push(await failures.add('kim', '192.0.2.1'));
    expect(outcomes).toEqual([...Array.from({ length: FAILURES_MAX - 1 }, () => false), true]);
    expect(counting.counts()).toMatchObject({ puts: FAILURES_MAX, lists: 0, gets: 0 });
    // A process that has just begun learns of it with its own first failure.
    const other = instance();
    expect(await other.failures.add('kim', '192.0.2.1')).toBe(true);
    expect(other.counting.counts()).toMatchObject({ puts: 1, lists: 1 });
    expect(await other.failures.add('kim', '192.0.2.2')).toBe(false);
    expect(await other.failures.add('olga', '192.0.2.1')).toBe(false);
  });

  test('allow as many guesses as one process does, and one more for each', async () => {
    const { instance } = open();
    const locked = new Set<number>();
    const processes = Array.from({ length: 20 }, instance);
    let guesses = 0;
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        processes.map(async ({ failures }, i) => {
          if (locked.has(i)) return;
          guesses++;
          if (await failures.add('kim', '192.0.2.1')) locked.add(i);
        }),
      );
    }
    expect(locked.size).toBe(20);
    expect(guesses).toBeLessThanOrEqual(FAILURES_MAX + 20);
  });

  test('count for a minute', async () => {
    const { clock, instance } = open();
    const { failures } = instance();
    for (let i = 0; i < FAILURES_MAX; i++) await failures.add('kim', '192.0.2.1');
    await clock.advance(60_000);
    expect(await failures.add('kim', '192.0.2.1')).toBe(false);
  });

  test('tell neither names nor addresses', async () => {
    const { objects, instance } = open();
    await instance().failures.add('kim', '192.0.2.1');
    const keys = (await objects.list('')).objects.map(({ key, sizeBytes }) => [key, sizeBytes]);
    expect(keys).toEqual([[expect.stringMatching(/^failures\/\d+\/[0-9a-f]{32}\/0$/), 0]]);
  });
});

test('a process asks for no more than its share, and then locks whoever fails', async () => {
  const { clock, instance } = open();
  const { failures, counting } = instance();
  for (let i = 0; i < 500; i++) await failures.add(`user ${i}`, '192.0.2.1');
  expect(counting.counts().puts).toBe(FAILURE_REQUESTS_A_MINUTE);
  expect(await failures.add('kim', '192.0.2.1')).toBe(true);
  await clock.advance(60_000);
  expect(await failures.add('kim', '192.0.2.1')).toBe(false);
});

test('a store that fails is told in the log, and locks nobody', async () => {
  const { clock, log } = open();
  const objects = new MemoryObjects();
  objects.create = () => Promise.reject(new Error('no'));
  expect(await new ObjectFailures({ objects, clock, digests: nodeDigests, log }).add('kim', '192.0.2.1')).toBe(false);
  expect(log.at('warn')).toEqual(['a failed login could not be counted across processes']);
});

test('the logins of two processes are locked together, and a right password asks for nothing', async () => {
  const { clock, log, instance } = open();
  const ids = new SeededIds();
  const store = new ModelStore(clock, ids);
  const processes = await Promise.all(
    [0, 1].map(async () => {
      const { failures, counting } = instance();
      const security = createSecurity(
        { store, keys: new FakeKeys(), clock, ids, log, meter: silentMeter, sharedFailures: failures },
        CONFIG,
      );
      await security.start();
      return { security, counting };
    }),
  );
  const login = async (process: number, password: string, address = '192.0.2.1') =>
    Promise.resolve()
      .then(() => processes[process]!.security.authenticator.login('admin', password, address))
      .then(
        () => 'in',
        (error: { code: string }) => error.code,
      );
  for (const process of [0, 1]) expect(await login(process, 'changeit')).toBe('in');
  expect(processes.map(({ counting }) => counting.counts().puts)).toEqual([0, 0]);
  await clock.advance(61_000);
  const outcomes: string[] = [];
  for (let i = 0; i < 2 * FAILURES_MAX; i++) outcomes.push(await login(i % 2, `guess ${i}`, '192.0.2.9'));
  // Ten in all, and one by which the other process learns of it: with a count each it would be twenty.
  expect(outcomes.filter((code) => code === 'not_authenticated').length).toBeLessThanOrEqual(FAILURES_MAX + 1);
  expect(outcomes.slice(-2)).toEqual(['too_many_failures', 'too_many_failures']);
  // Where the user is at home a right password is let in all the same.
  expect(await login(0, 'changeit')).toBe('in');
  // Changing a password takes the present one, and so is another way to guess it.
  await clock.advance(61_000);
  const change = (process: number) =>
    processes[process]!.security.users.changePassword('admin', 'wrong', 'new', '192.0.2.9').then(
      () => 'changed',
      (error: { code: string }) => error.code,
    );
  const changes: string[] = [];
  for (let i = 0; i < 2 * FAILURES_MAX; i++) changes.push(await change(i % 2));
  expect(changes.filter((code) => code === 'wrong_password').length).toBeLessThanOrEqual(FAILURES_MAX + 1);
});
