import { expect, test } from 'vitest';
import { GroupCommitDelay } from '../../core/streams/group-commit-delay.ts';
import type { EventStoreOptions } from '../../core/streams/store-context.ts';
import { ANY } from '../../core/streams/api.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { event, HookedObjects, SMALL, worldOf } from '../shared-log/setup.ts';

const COMMIT_MS = 10;

/** A clock, and what gathers by it. `commit` is one that took so long, of so many requests, while others waited. */
function setup() {
  const clock = new ManualClock();
  const delay = new GroupCommitDelay(clock);
  const commit = async (requests: number, waiting: number, ms = COMMIT_MS) => {
    const startMs = clock.monotonicMs();
    await clock.advance(ms);
    delay.answered(requests, waiting, startMs);
  };
  /** Milliseconds for which a group is waited for when nobody comes; 0 where it begins at once. */
  const vainMs = async (waiting: number) => {
    const wait = delay.begin(waiting);
    if (wait === null) return 0;
    const startMs = clock.monotonicMs();
    let endMs = -1;
    const ended = wait.then(() => {
      endMs = clock.monotonicMs();
    });
    await clock.advance(1_000);
    await ended;
    return endMs - startMs;
  };
  return { clock, delay, commit, vainMs };
}

test('whoever has just been answered is waited for, until all are there', async () => {
  const { delay, commit } = setup();
  await commit(32, 32);
  const wait = delay.begin(32);
  expect(wait).not.toBeNull();
  let isOver = false;
  void wait!.then(() => {
    isOver = true;
  });
  delay.arrived(63);
  await Promise.resolve();
  expect(isOver).toBe(false);
  delay.arrived(64);
  await wait;
  await commit(64, 0);
  expect(delay.begin(64)).toBeNull();
});

test.each([
  ['a commit took long', 500, 20],
  ['a commit took as long', 10, 10],
  ['a commit took no time that a timer can measure', 0.5, 0],
])('no longer than his commit, and than 20 ms: %s', async (_name, tookMs, waitedMs) => {
  const { commit, vainMs } = setup();
  await commit(1, 1, tookMs);
  expect(await vainMs(1)).toBe(waitedMs);
});

test('who writes alone, or comes later than a commit takes, waits for nobody', async () => {
  const { clock, delay, commit } = setup();
  expect(delay.begin(1)).toBeNull();
  await commit(1, 0);
  expect(delay.begin(1)).toBeNull();
  await commit(2, 0);
  await clock.advance(COMMIT_MS + 1);
  expect(delay.begin(1)).toBeNull();
});

test('behind waits in vain more and more groups are not waited for, until somebody comes back', async () => {
  const { delay, commit, vainMs } = setup();
  const waits: number[] = [];
  for (let i = 0; i < 200; i++) {
    await commit(2, 1);
    if ((await vainMs(1)) > 0) waits.push(i);
  }
  expect(waits).toEqual([0, 2, 5, 10, 19, 36, 69, 134, 199]);
  for (let wait: Promise<void> | null = null; wait === null;) {
    await commit(2, 1);
    wait = delay.begin(1);
    delay.arrived(3);
    await wait;
  }
  await commit(2, 1);
  expect(await vainMs(1)).toBe(COMMIT_MS);
});

test('a group that is waited for can be called off', async () => {
  const { delay, commit } = setup();
  await commit(5, 0);
  const wait = delay.begin(1);
  delay.end();
  await expect(wait).resolves.toBeUndefined();
});

/** A log on object storage of which each commit takes a while. */
async function slowLog(streams: Partial<EventStoreOptions> = {}) {
  const clock = new ManualClock();
  const hooks = new HookedObjects(new MemoryObjects());
  const instance = await openObjectStore(worldOf(hooks, { clock }), { ...SMALL, streams });
  const log = { clock, instance, commits: 0 };
  hooks.onCreate = async (_key, create) => {
    log.commits++;
    await clock.sleep(COMMIT_MS);
    return create();
  };
  return log;
}

test('writers that wait for their answers share each commit of a log on object storage', async () => {
  const log = await slowLog();
  const { clock, instance } = log;
  const WRITERS = 8;
  const ROUNDS = 10;
  const write = async (i: number) => {
    // Half of them come while the others are being committed.
    if (i % 2 === 1) await clock.sleep(COMMIT_MS / 2);
    for (let round = 0; round < ROUNDS; round++) {
      await instance.store.append(`s${i}`, ANY, [event()]);
      // Their answers are on their way for a while.
      await clock.sleep(1);
    }
  };
  const writing = Promise.all(Array.from({ length: WRITERS }, (_, i) => write(i)));
  await clock.advance(ROUNDS * 4 * COMMIT_MS);
  await writing;
  expect(log.commits).toBeLessThanOrEqual(ROUNDS + 3);
  await instance.close();
});

test('a log that is closed waits for nobody who may come back', async () => {
  const { clock, instance } = await slowLog();
  const both = Promise.all([instance.store.append('a', ANY, [event()]), instance.store.append('b', ANY, [event()])]);
  await clock.advance(COMMIT_MS);
  await both;
  const one = instance.store.append('a', ANY, [event()]);
  one.catch(() => {});
  await clock.settle();
  await instance.close();
  await expect(one).rejects.toMatchObject({ code: 'store_closed' });
});

test.each([
  ['requests', { groupRequestsMax: 2 }, ['a', 'b', 'c', 'd', 'e', 'f']],
  ['bytes', { groupBytesMax: 1 }, ['a', 'b', 'c']],
])('those that fill a group wait for nobody: %s', async (_what, options, streams) => {
  const log = await slowLog(options);
  const all = Promise.all(streams.map((stream) => log.instance.store.append(stream, ANY, [event()])));
  await log.clock.advance(2 * COMMIT_MS + 1);
  expect(log.commits).toBe(3);
  await log.clock.advance(COMMIT_MS);
  await all;
  await log.instance.close();
});
