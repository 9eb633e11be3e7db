import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import type { ScavengeOptions } from '../../core/scavenge/api.ts';
import type { Storage } from '../../core/ports/storage.ts';
import {
  contentOf as unpacked,
  fixturePath,
  installFiles,
  installFolder,
  unpackHistory,
  unpackSet,
} from '../support/fixtures.ts';
import type { TarFile } from '../support/tar.ts';
import { findFormatErrors } from '../support/check-directory.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestStore } from '../support/test-store.ts';
import type { TestStoreOptions } from '../support/test-store.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { compareEntries, compareRecords, extendToPoint, pointAfter, tablesReach } from './recorded.ts';
import type { RecordedPoint } from './recorded.ts';
import { IS_LONG_RUN, bySize } from '../support/run-size.ts';

/**
 * Scavenges of the reference, repeated: the same directory, point and time must leave the same records, at the same
 * positions and byte for byte, and the same index entries. So deleted streams keep the data of their last events here.
 */

interface Repeat {
  readonly before: string;
  readonly after: string;
  readonly options?: ScavengeOptions;
  /** The scavenge point is there already. */
  readonly isInterrupted?: boolean;
  /** The result depends on what the scavenges before have learnt. */
  readonly needsState?: boolean;
}

const REPEATS: readonly Repeat[] = [
  { before: 'orders-1-before', after: 'orders-2-scavenged' },
  { before: 'orders-3-grown', after: 'orders-4-threshold-40', options: { threads: 2 } },
  { before: 'orders-4-threshold-40', after: 'orders-5-scavenged', needsState: true },
  { before: 'random-a-1-before', after: 'random-a-2-scavenged' },
  { before: 'random-b-1-before', after: 'random-b-2-scavenged', options: { threads: 2 } },
  { before: 'mid-1-before', after: 'mid-3-completed' },
  { before: 'mid-2-interrupted', after: 'mid-3-completed', isInterrupted: true },
  { before: 'transactions-2-deleted', after: 'transactions-3-scavenged' },
];

/** With threads, a state to go on with, an interrupted run, and explicit transactions. */
const ON_FILES: readonly string[] = bySize(
  ['mid-2-interrupted'],
  ['orders-3-grown', 'orders-4-threshold-40', 'mid-2-interrupted', 'transactions-2-deleted'],
);

async function inMemory(files: readonly TarFile[]): Promise<Storage> {
  const storage = new MemoryStorage();
  await installFiles(storage, files);
  return storage;
}

/** Runs the scavenge to the point that is in the log. */
async function scavenge(
  storage: Storage,
  point: RecordedPoint,
  options: ScavengeOptions,
  store: Partial<TestStoreOptions> = {},
): Promise<void> {
  const clock = new ManualClock(point.effectiveNowMs, 'microtask');
  const open = await openTestStore({
    storage,
    clock,
    writeEpoch: false,
    verifyChunks: false,
    ...store,
    scavenge: { keepsDeletedData: true, ...store.scavenge },
  });
  try {
    await open.scavenger.start({ ...options, syncOnly: true });
    await open.scavenger.idle();
    expect(open.scavenger.last()).toMatchObject({ result: 'Success', error: null });
  } finally {
    await open.close();
  }
}

/** Brings `ours` to where the reference began, scavenges it, and compares it with what the reference left. */
async function repeat(
  ours: Storage,
  theirs: Storage,
  how: Pick<Repeat, 'options' | 'isInterrupted'>,
  store: Partial<TestStoreOptions> = {},
): Promise<void> {
  const reach = await tablesReach(ours);
  const point = how.isInterrupted === true ? await pointAfter(ours, 0) : await extendToPoint(ours, theirs);
  await scavenge(ours, point, how.options ?? {}, store);
  expect(await compareRecords(ours, theirs, point.position), 'records').toEqual([]);
  expect(await compareEntries(ours, theirs, reach), 'index entries').toEqual([]);
  expect(await findFormatErrors(ours)).toEqual([]);
}

describe.each([
  ['always, as the reference does', true],
  ['where it is worth it', false],
])('recorded scavenges, in memory and without any state, merging %s', (_, mergesAlways) => {
  for (const { before, after, ...how } of REPEATS.filter(
    ({ needsState }, i) => needsState !== true && i % bySize(2, 1) === 0,
  )) {
    test(`${before} becomes ${after}`, async () => {
      await repeat(await inMemory(unpackSet(before)), await inMemory(unpackSet(after)), how, {
        scavenge: { mergesAlways },
      });
    });
  }
});

if (IS_LONG_RUN)
  describe('recorded scavenges one after the other, with a state in memory', () => {
    test('orders-1 to orders-5', async () => {
      const scavengeStates = new MemoryScavengeStates();
      for (const { before, after, ...how } of REPEATS.filter(({ before: name }) => name.startsWith('orders-'))) {
        await repeat(await inMemory(unpackSet(before)), await inMemory(unpackSet(after)), how, { scavengeStates });
      }
    });

    // The scavenge with the threshold spared a superseded metadata record and took its index entry, so that only the
    // weight in the state still tells of it.
    test('orders-4 without the state of the scavenges before keeps one record more', async () => {
      const ours = await inMemory(unpackSet('orders-4-threshold-40'));
      const theirs = await inMemory(unpackSet('orders-5-scavenged'));
      const point = await extendToPoint(ours, theirs);
      await scavenge(ours, point, {});
      expect(await compareRecords(ours, theirs, point.position)).toEqual([
        '4043 records, recorded 4042',
        expect.stringMatching(/^5187731 is still there: .*\$\$\$scavenges-.*\$metadata/),
      ]);
    });
  });

describe('recorded scavenges, on files with worker threads and the recorded scavenge database', () => {
  const folders: string[] = [];
  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  for (const { before, after, ...how } of REPEATS.filter(({ before: name }) => ON_FILES.includes(name))) {
    test(`${before} becomes ${after}`, async () => {
      const root = mkdtempSync(join(tmpdir(), 'skua-recorded-'));
      folders.push(root);
      installFolder(root, unpackSet(before));
      const indexRoot = join(root, 'index');
      const begun: string[] = [];
      const jobs = noting(new WorkerJobs({ root, indexRoot, threads: 1, scavengeThreads: 2, isOffline: true }), begun);
      try {
        await repeat(new FilesystemStorage({ root, indexRoot }), await inMemory(unpackSet(after)), how, {
          jobs,
          scavengeStates: new SqliteScavengeStates({ indexRoot }),
        });
      } finally {
        await jobs.close();
      }
      expect(readdirSync(join(indexRoot, 'scavenging'))).toEqual(['scavenging.db']);
      expect(readdirSync(root).filter((name) => name.endsWith('.tmp'))).toEqual([]);
      // What the reference had learnt and done when it was interrupted is not done again.
      expect(begun.includes('scavenge.accumulate')).toBe(how.isInterrupted !== true);
    });
  }
});

function noting(jobs: Jobs, begun: string[]): Jobs {
  return {
    run: (name, args, options) => {
      begun.push(name);
      return jobs.run(name, args, options);
    },
    close: () => jobs.close(),
  };
}

describe('recorded histories', () => {
  const shared = process.env['SKUA_FIXTURES'];
  const folder =
    shared !== undefined && existsSync(join(shared, 'histories'))
      ? join(shared, 'histories')
      : fixturePath('histories');
  const all = readdirSync(folder)
    .filter((name) => name.endsWith('.tar.gz'))
    .sort();
  for (const archive of bySize(all.slice(0, 1), all)) {
    test(`history ${basename(archive, '.tar.gz')}`, async () => {
      const folders = unpackHistory(join(folder, archive));
      const queries = parametersOf(folders);
      const scavengeStates = new MemoryScavengeStates();
      const run = async (
        before: string,
        after: string,
        query: string,
        store: Partial<TestStoreOptions>,
      ): Promise<void> =>
        repeat(
          await inMemory(folders.get(before)!),
          await inMemory(folders.get(after)!),
          { options: optionsOf(query) },
          store,
        );
      await run('1-before', '2-scavenged', queries.first, { scavengeStates });
      await run('3-before', '4-scavenged', queries.second, { scavengeStates });
      // A node that has lost its state learns all of it again; and one that merges always removes the same.
      await run('3-before', '4-scavenged', queries.second, { scavenge: { mergesAlways: true } });
    });
  }
});

interface Queries {
  readonly first: string;
  readonly second: string;
}

function parametersOf(folders: ReadonlyMap<string, readonly TarFile[]>): Queries {
  for (const files of folders.values()) {
    const file = files.find((one) => one.path === 'parameters.json');
    if (file !== undefined) return JSON.parse(Buffer.from(unpacked(file)).toString('utf8')) as Queries;
  }
  return { first: '', second: '' };
}

function optionsOf(query: string): ScavengeOptions {
  const threads = new URLSearchParams(query).get('threads');
  return threads === null ? {} : { threads: Number(threads) };
}
