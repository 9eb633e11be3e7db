import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import * as os from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { JOBS as CORE_JOBS } from '../../core/jobs/jobs.ts';
import { loadJob } from '../../core/jobs/api.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { JobProgress, Jobs } from '../../core/ports/jobs.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { JOBS_QUEUED_MAX, WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { JOBS } from './jobs-for-tests.ts';
import { IS_LONG_RUN, RUNS_FIXED } from '../support/run-size.ts';

let folder: string;
let jobs: Jobs;
beforeEach(async () => {
  folder = await mkdtemp(join(os.tmpdir(), 'skua-jobs-'));
});
afterEach(async () => {
  await jobs.close();
  await rm(folder, { recursive: true, force: true });
});

const STATE = { pageSizeBytes: 4_096, cacheBytes: 65_536, hashUsersCacheEntries: 10 };
const workerJobs = (
  options: {
    threads?: number;
    scavengeThreads?: number;
    idleMs?: number;
    isOffline?: boolean;
    jobsUrl?: URL;
    collector?: { begin(): void; cancel(): void };
  } = {},
) =>
  new WorkerJobs({
    root: folder,
    indexRoot: join(folder, 'index'),
    jobsUrl: new URL('./jobs-for-tests.ts', import.meta.url),
    ...options,
  });
const inlineJobs = () =>
  new InlineJobs({
    jobs: JOBS,
    storage: new MemoryStorage(),
    digests: nodeDigests,
    ids: new SeededIds(),
    clock: systemClock,
  });
const cell = () => new Int32Array(new SharedArrayBuffer(4));

/** Runs `wait` and resolves when it has begun. */
async function startWaiting(
  signal?: AbortSignal,
  name = 'wait',
): Promise<{ ended: Promise<unknown>; shared: Int32Array }> {
  const shared = cell();
  const begun = Promise.withResolvers<void>();
  const ended = jobs.run(name, { cell: shared }, { onProgress: () => begun.resolve(), ...(signal ? { signal } : {}) });
  ended.catch(() => {});
  await begun.promise;
  return { ended, shared };
}

if (RUNS_FIXED)
  describe.each([
    ['worker', workerJobs],
    ['inline', inlineJobs],
  ])('Jobs: %s', (_name, make) => {
    beforeEach(() => {
      jobs = make();
    });

    test('a job gets storage, digests and ids, and its result comes back', async () => {
      expect(await jobs.run('copy', { path: 'db/x', bytes: new TextEncoder().encode('123456789') })).toEqual({
        size: 9,
        crc: 0xcbf43926,
        id: 16,
      });
    });

    test('a SkuaError keeps its code, message and data', async () => {
      const error = await jobs
        .run('refuse', { path: 'index/00000000-0000-4000-8000-000000000001' })
        .catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(SkuaError);
      expect(error).toMatchObject({
        code: 'index_corrupt',
        message: 'The table is damaged.',
        data: { path: 'index/00000000-0000-4000-8000-000000000001', offset: 17 },
      });
    });

    test('another error keeps its name, its message and where it was thrown', async () => {
      const error = (await jobs.run('break', null).catch((caught: unknown) => caught)) as Error;
      expect(error).toMatchObject({ name: 'TypeError', message: 'a defect' });
      expect(error.stack).toContain('jobs-for-tests');
    });

    test('an unknown job is refused', async () => {
      await expect(jobs.run('none', null)).rejects.toMatchObject({ code: 'io_error', data: { job: 'none' } });
    });

    test('the last progress arrives before the result', async () => {
      const seen: JobProgress[] = [];
      await jobs.run('count', { to: 10_000 }, { onProgress: (progress) => seen.push(progress) });
      expect(seen.at(-1)).toEqual({ done: 10_000, total: 10_000, unit: 'entries' });
    });

    test('an abort ends a running job at its next checkpoint, and the next job runs', async () => {
      const abort = new AbortController();
      const { ended } = await startWaiting(abort.signal);
      abort.abort();
      await expect(ended).rejects.toMatchObject({ code: 'aborted' });
      expect(await jobs.run('count', { to: 3 })).toBe(3);
    });

    test('an aborted signal lets no job begin', async () => {
      const shared = cell();
      await expect(jobs.run('wait', { cell: shared }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
        code: 'aborted',
      });
      expect(shared[0]).toBe(0);
    });

    test('a job sleeps as long as it asked', async () => {
      expect(await jobs.run('sleep', { ms: 120 })).toBeGreaterThanOrEqual(119);
    });

    test('a job is woken by its own signal', async () => {
      expect(await jobs.run('nap', null)).toBe('awake');
    });

    test('an abort ends a sleeping job at once', async () => {
      const abort = new AbortController();
      const ended = jobs.run('sleep', { ms: 86_400_000 }, { signal: abort.signal, onProgress: () => abort.abort() });
      await expect(ended).rejects.toMatchObject({ code: 'aborted' });
    });

    test('jobs share the scavenge state of their node', async () => {
      expect(await jobs.run('scavenge.weigh', { state: STATE, weight: 2 })).toEqual({ before: 0, after: 2 });
      expect(await jobs.run('scavenge.weigh', { state: STATE, weight: 3 })).toEqual({ before: 2, after: 5 });
    });

    test('shared memory is shared', async () => {
      const { ended, shared } = await startWaiting();
      Atomics.store(shared, 0, 2);
      expect(await ended).toBe('released');
    });

    test('close aborts what runs, waits for it, and takes nothing more', async () => {
      const { ended } = await startWaiting();
      await jobs.close();
      await expect(ended).rejects.toMatchObject({ code: 'aborted' });
      await expect(jobs.run('count', { to: 1 })).rejects.toMatchObject({ code: 'store_closed' });
    });
  });

describe('worker threads', () => {
  test('the files are those of the directory', async () => {
    jobs = workerJobs();
    await jobs.run('copy', { path: 'index/00000000-0000-4000-8000-000000000001', bytes: Uint8Array.of(1, 2, 3) });
    expect([...(await readFile(join(folder, 'index/00000000-0000-4000-8000-000000000001')))]).toEqual([1, 2, 3]);
  });

  test('progress is sparse', async () => {
    jobs = workerJobs();
    let count = 0;
    await jobs.run('count', { to: 20_000 }, { onProgress: () => count++ });
    expect(count).toBeLessThan(100);
  });

  test('at most so many run at once; the others wait their turn', async () => {
    const pool = (jobs = workerJobs({ threads: 2 }));
    const first = await startWaiting();
    const second = await startWaiting();
    const third = jobs.run('count', { to: 5 });
    expect(pool.workers).toBe(2);
    Atomics.store(first.shared, 0, 2);
    expect(await third).toBe(5);
    expect(pool.workers).toBe(2);
    Atomics.store(second.shared, 0, 2);
    expect(await second.ended).toBe('released');
  });

  test('other jobs never wait for those of a scavenge, nor these for others', async () => {
    const pool = (jobs = workerJobs({ scavengeThreads: 2 }));
    const scavenges = [await startWaiting(undefined, 'scavenge.wait'), await startWaiting(undefined, 'scavenge.wait')];
    const waiting = startWaiting(undefined, 'scavenge.wait');
    expect(await jobs.run('count', { to: 5 })).toBe(5);
    expect(pool.workers).toBe(3);
    const index = await startWaiting();
    Atomics.store(scavenges[0]!.shared, 0, 2);
    const third = await waiting;
    for (const { shared } of [index, third, scavenges[1]!]) Atomics.store(shared, 0, 2);
    expect(await Promise.all([index.ended, third.ended, ...scavenges.map(({ ended }) => ended)])).toEqual(
      Array.from({ length: 4 }, () => 'released'),
    );
  });

  if (IS_LONG_RUN)
    test('a table is written while others are merged and a chunk is checked, whose threads are not kept for long', async () => {
      const pool = (jobs = workerJobs());
      const upkeep = [
        await startWaiting(undefined, 'index.merge-tables'),
        await startWaiting(undefined, 'index.merge-tables'),
        await startWaiting(undefined, 'log.verify-chunk'),
      ];
      expect(await jobs.run('index.write-table', null)).toBe('written');
      expect(pool.workers).toBe(4);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      try {
        for (const { shared } of upkeep) Atomics.store(shared, 0, 2);
        expect(await Promise.all(upkeep.map(({ ended }) => ended))).toEqual(['released', 'released', 'released']);
        expect(pool.workers).toBe(4);
        vi.advanceTimersByTime(19_000);
        expect(pool.workers).toBe(4);
        vi.advanceTimersByTime(1_000);
        expect(pool.workers).toBe(1);
      } finally {
        vi.useRealTimers();
      }
    });

  test('one job writes the scavenge database at a time; the other waits for it, and reads what was there before', async () => {
    jobs = workerJobs();
    const state = new SqliteScavengeStates({ indexRoot: join(folder, 'index') }).open(STATE);
    state.begin();
    state.addWeight(0, 7);
    const begun = Promise.withResolvers<number>();
    const ended = jobs.run(
      'scavenge.weigh',
      { state: STATE, weight: 2 },
      { onProgress: ({ done }) => begun.resolve(done) },
    );
    expect(await begun.promise).toBe(0);
    state.commit({ point: { position: 1, eventNumber: 0, effectiveNowMs: 0, threshold: 0 }, stage: 'Done' });
    expect(await ended).toEqual({ before: 0, after: 9 });
    expect([state.weight(0, 0), state.checkpoint()?.stage]).toEqual([9, 'Cleaning']);
    state.close();
    expect(await readdir(join(folder, 'index/scavenging'))).toEqual(['scavenging.db']);
  });

  test('a job that waits can be aborted, and too many are refused', async () => {
    jobs = workerJobs();
    const { ended, shared } = await startWaiting();
    const abort = new AbortController();
    const waiting = Array.from({ length: JOBS_QUEUED_MAX }, (_, i) =>
      jobs.run('count', { to: i }, i === 0 ? { signal: abort.signal } : {}),
    );
    await expect(jobs.run('count', { to: 1 })).rejects.toMatchObject({
      code: 'too_busy',
      data: { limit: JOBS_QUEUED_MAX },
    });
    abort.abort();
    await expect(waiting[0]).rejects.toMatchObject({ code: 'aborted' });
    const last = jobs.run('count', { to: 1 });
    Atomics.store(shared, 0, 2);
    expect(await ended).toBe('released');
    expect(await Promise.all(waiting.slice(1))).toEqual(Array.from({ length: JOBS_QUEUED_MAX - 1 }, (_, i) => i + 1));
    expect(await last).toBe(1);
  });

  test('close refuses the jobs that wait', async () => {
    jobs = workerJobs();
    await startWaiting();
    const waiting = jobs.run('count', { to: 1 });
    const closed = jobs.close();
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
    await closed;
  });

  test('a worker that dies fails its job alone; the next one gets a new worker', async () => {
    jobs = workerJobs();
    const dying = jobs.run('die', null);
    const next = jobs.run('count', { to: 7 });
    await expect(dying).rejects.toMatchObject({ code: 'io_error', data: { job: 'die' } });
    expect(await next).toBe(7);
  });

  if (IS_LONG_RUN)
    test('a job that eats all memory ends its worker, not the process', async () => {
      jobs = workerJobs();
      await expect(jobs.run('eat', null)).rejects.toMatchObject({
        code: 'io_error',
        message: expect.stringContaining('memory'),
      });
      expect(await jobs.run('count', { to: 7 })).toBe(7);
    });

  test('arguments and errors that cannot be copied are no end of the worker', async () => {
    const pool = (jobs = workerJobs());
    await expect(jobs.run('count', { to: () => {} })).rejects.toMatchObject({ name: 'DataCloneError' });
    await expect(jobs.run('uncloneable', null)).rejects.toMatchObject({
      code: 'io_error',
      message: 'With a function.',
    });
    expect(await jobs.run('count', { to: 7 })).toBe(7);
    expect(pool.workers).toBe(1);
  });

  test('a worker that was called ahead takes the job, or goes again', async () => {
    const pool = workerJobs();
    jobs = pool;
    pool.prepare();
    pool.prepare();
    expect(pool.workers).toBe(1);
    expect(await pool.run('count', { to: 7 })).toBe(7);
    expect(pool.workers).toBe(1);
    pool.prepare('scavenge.any');
    pool.prepare();
    expect(pool.workers).toBe(2);
    await pool.close();
    pool.prepare();
    expect(pool.workers).toBe(0);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const brief = (jobs = workerJobs({ idleMs: 30_000 }));
    brief.prepare();
    vi.advanceTimersByTime(29_999);
    expect(brief.workers).toBe(1);
    vi.advanceTimersByTime(1);
    expect(brief.workers).toBe(0);
    // The next merge comes within seconds, while much is appended.
    brief.prepare('index.merge-tables');
    vi.advanceTimersByTime(19_999);
    expect(brief.workers).toBe(1);
    vi.advanceTimersByTime(1);
    expect(brief.workers).toBe(0);
    vi.useRealTimers();
  });

  test('a worker that was called ahead loads the code of the job that is expected', async () => {
    const module = join(folder, 'loading-jobs.mjs');
    await writeFile(
      module,
      `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(`${module}.loaded`)}, ''); export const JOBS = {};`,
    );
    const pool = (jobs = workerJobs({ jobsUrl: pathToFileURL(module) }));
    pool.prepare('scavenge.any');
    await vi.waitFor(() => expect(existsSync(`${module}.loaded`)).toBe(true), { timeout: 20_000 });
    expect(pool.workers).toBe(1);
  });

  test('an idle worker is ended', async () => {
    const pool = (jobs = workerJobs());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      await jobs.run('count', { to: 1 });
      expect(pool.workers).toBe(1);
      vi.advanceTimersByTime(30_000);
      expect(pool.workers).toBe(0);
    } finally {
      vi.useRealTimers();
    }
    expect(await jobs.run('count', { to: 2 })).toBe(2);
  });

  test('garbage is collected when an index has come to rest, and not behind the end', async () => {
    const seen: string[] = [];
    const collector = { begin: () => seen.push('begin'), cancel: () => seen.push('cancel') };
    const pool = (jobs = workerJobs({ collector }));
    pool.rest();
    await jobs.run('count', { to: 1 });
    expect(seen).toEqual(['begin']);
    await pool.close();
    expect(seen).toEqual(['begin', 'cancel']);
  });
});

test('every job is found by its name, and no other name', async () => {
  for (const [name, job] of Object.entries(CORE_JOBS)) expect(await loadJob(name)).toBe(job);
  for (const name of ['', 'none', 'index', 'index.none', 'constructor.name', '__proto__.index'])
    expect(await loadJob(name)).toBeUndefined();
});

test.skipIf(process.platform !== 'linux')(
  'threads of scavenges and backups give way to others, unless nothing is served beside them',
  async () => {
    // That of the process, whatever it was started with; at 19 already there is nothing left to give.
    const here = os.getPriority();
    expect(await niceness(workerJobs(), 'niceness')).toBe(here);
    for (const name of ['scavenge.niceness', 'backup.niceness']) {
      expect(await niceness(workerJobs(), name)).toBe(19);
      expect(await niceness(workerJobs({ isOffline: true }), name)).toBe(here);
    }
  },
);

async function niceness(own: WorkerJobs, name: string): Promise<unknown> {
  try {
    return await own.run(name, null);
  } finally {
    await own.close();
  }
}

test('inline jobs let other work run after a slice, by the clock', async () => {
  const clock = new ManualClock();
  let yields = 0;
  const counting = {
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms: number) => clock.sleep(ms),
    yield: async () => {
      yields++;
    },
  };
  jobs = new InlineJobs({
    storage: new MemoryStorage(),
    digests: nodeDigests,
    ids: new SeededIds(),
    clock: counting,
    jobs: {
      slices: async (_args: never, context) => {
        for (let i = 0; i < 20; i++) {
          await clock.advance(1);
          await context.checkpoint();
        }
      },
    },
  });
  await jobs.run('slices', null);
  expect(yields).toBe(5);
});
