import { describe, expect, test } from 'vitest';
import { DiskShare } from '../../infra/fs/disk-share.ts';
import { SyncTurns } from '../../infra/fs/sync-turns.ts';

/**
 * What a scavenge takes of the disk beside appends, over a disk that gives each of those that sync the same part of its
 * time.
 */

const MIB = 1_048_576;
const STEP_MS = 0.05;

interface Load {
  /**
   * Time of the disk that an append's sync takes, and from the beginning of one to the next where the disk lets them;
   * no appends: Infinity.
   */
  readonly appendMs: number;
  readonly everyMs: number;
  /** Of the disk, for each MiB that is written back. */
  readonly mibMs: number;
  readonly mib: number;
}

interface Outcome {
  /** Until all has been written back. */
  readonly runMs: number;
  readonly appendsMs: readonly number[];
}

async function simulate({ appendMs, everyMs, mibMs, mib }: Load): Promise<Outcome> {
  let now = 0;
  const turns = new SyncTurns(undefined, () => now);
  const share = new DiskShare(turns, () => now);
  const append = { leftMs: 0, beganMs: 0, dueMs: 0 };
  const behind = { leftMs: 0, done: () => {} };
  let restUntilMs = 0;
  let isWaiting = false;
  let [written, unwritten] = [0, 0];
  const appendsMs: number[] = [];
  while ((written < mib || isWaiting) && now < 1e6) {
    if (append.leftMs <= 0 && now >= append.dueMs && everyMs !== Infinity) {
      append.leftMs = appendMs;
      append.beganMs = now;
      append.dueMs = now + everyMs;
      turns.begin();
    }
    if (!isWaiting && now >= restUntilMs) {
      written++;
      unwritten += MIB;
      const due = written === mib ? 'beside' : share.isDue(unwritten);
      if (due !== 'no') {
        isWaiting = true;
        const costMs = (unwritten / MIB) * mibMs;
        unwritten = 0;
        void share
          .during(
            () =>
              new Promise((resolve) => {
                turns.beginBehind();
                behind.leftMs = costMs;
                behind.done = resolve;
              }),
          )
          .then((restMs) => {
            isWaiting = false;
            restUntilMs = now + (due === 'beside' ? restMs : 0);
          });
      }
    }
    const users = Number(append.leftMs > 0) + Number(behind.leftMs > 0);
    now += STEP_MS;
    if (append.leftMs > 0) {
      append.leftMs -= STEP_MS / users;
      if (append.leftMs <= 0) {
        turns.end();
        appendsMs.push(now - append.beganMs);
      }
    }
    if (behind.leftMs > 0) {
      behind.leftMs -= STEP_MS / users;
      if (behind.leftMs <= 0) {
        turns.endBehind();
        behind.done();
      }
    }
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  }
  return { runMs: now, appendsMs };
}

const p99 = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)]!;

/** Disks on which an append's sync takes so long, and a MiB so long. */
const DISKS = [
  ['quick', 0.5, 0.6],
  ['ordinary', 3, 4],
  ['slow', 12, 10],
  ['very slow', 40, 30],
] as const;

describe.each(DISKS)('on a disk that is %s', (_, appendMs, mibMs) => {
  const mib = 200;
  const idleMs = mib * mibMs;

  test('at half of the appends that the disk can take, a run takes at most 3 times its idle time, and appends at most twice theirs', async () => {
    const { runMs, appendsMs } = await simulate({ appendMs, everyMs: 2 * appendMs, mibMs, mib });
    expect(runMs / idleMs).toBeLessThan(3);
    // A step of the simulation is a good part of the quickest sync.
    expect(p99(appendsMs) / appendMs).toBeLessThan(2.1 + STEP_MS / appendMs);
  });

  test('beside appends that take all that the disk has, it has about a third of it', async () => {
    const { runMs, appendsMs } = await simulate({ appendMs, everyMs: 0, mibMs, mib });
    expect(runMs / idleMs).toBeGreaterThan(2.3);
    expect(runMs / idleMs).toBeLessThan(3.6);
    expect(p99(appendsMs) / appendMs).toBeLessThan(2.1 + STEP_MS / appendMs);
  });

  test('beside an append now and then it hardly rests', async () => {
    const { runMs } = await simulate({ appendMs, everyMs: 20 * appendMs, mibMs, mib });
    expect(runMs / idleMs).toBeLessThan(1.35);
  });

  test('alone it has all of it', async () => {
    const { runMs } = await simulate({ appendMs, everyMs: Infinity, mibMs, mib });
    expect(runMs / idleMs).toBeLessThan(1.1);
  });
});

describe('what is measured', () => {
  test('a sync counts as alone only when none in the background was under way', () => {
    let now = 0;
    const turns = new SyncTurns(undefined, () => now);
    const sync = (ms: number, meanwhile: () => void = () => {}): void => {
      turns.begin();
      now += ms;
      meanwhile();
      turns.end();
    };
    expect(turns.aloneMs).toBeNull();
    sync(4);
    expect(turns.aloneMs).toBe(4);
    turns.beginBehind();
    sync(400);
    turns.endBehind();
    sync(400, () => {
      turns.beginBehind();
      turns.endBehind();
    });
    expect(turns.aloneMs).toBe(4);
    sync(20);
    expect(turns.aloneMs).toBe(5);
    expect(turns.busyMs).toBe(824);
  });

  test('more is written back at once where that takes the disk no longer than an append does, and never less than is written', async () => {
    let now = 0;
    const turns = new SyncTurns(undefined, () => now);
    const share = new DiskShare(turns, () => now);
    const taken = (bytes: number): string => {
      turns.begin();
      turns.end();
      return share.isDue(bytes);
    };
    expect([taken(MIB - 1), taken(MIB)]).toEqual(['no', 'beside']);
    for (let i = 0; i < 5; i++)
      await share.during(async () => {
        now += 0.5;
      });
    expect([taken(4 * MIB - 1), taken(4 * MIB)]).toEqual(['no', 'beside']);
    for (let i = 0; i < 5; i++)
      await share.during(async () => {
        now += 50;
      });
    expect([taken(MIB - 1), taken(MIB)]).toEqual(['no', 'beside']);
    // Nobody else syncs any more.
    expect([share.isDue(15 * MIB), share.isDue(16 * MIB)]).toEqual(['no', 'alone']);
  });

  test('the disk rests as long as it was had for, times the share of time in which the loop syncs, and at most 100 ms', async () => {
    let now = 0;
    const turns = new SyncTurns(undefined, () => now);
    const share = new DiskShare(turns, () => now);
    turns.begin();
    expect(
      await share.during(async () => {
        now += 10;
        turns.end();
        turns.begin();
      }),
    ).toBeCloseTo(4, 6);
    turns.end();
    now += 10;
    expect(
      await share.during(async () => {
        now += 10;
      }),
    ).toBe(0);
    turns.begin();
    expect(
      await share.during(async () => {
        now += 5_000;
        turns.end();
      }),
    ).toBe(100);
  });
});
