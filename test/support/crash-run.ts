import type { DirectoryStore } from '../../core/store/store.ts';
import { findLosses } from './check-store.ts';
import { codeOf } from './crash.ts';
import { FaultyStorage } from './faulty-storage.ts';
import type { RestartMode } from './faulty-file.ts';
import type { CrashMoment } from './faulty-storage.ts';
import { ManualClock } from './manual-clock.ts';
import { Random } from './random.ts';
import { TEST_NOW_MS, openTestStore } from './test-store.ts';
import { perform, planWorkload } from './workload.ts';
import type { Request } from './workload.ts';

/** Small enough for the workload to complete chunks, flush the memtable and merge index tables. */
export const CHUNK_BYTES = 65_536;
const MEM_TABLE_ENTRIES = 40;
/** Large enough that a few dozen requests fill two chunks. */
const DATA_BYTES_MAX = 2_400;
/** Time between rounds, so that the checkpoints are flushed now and then. */
const ROUND_MS = 300;

export interface Run {
  readonly storage: FaultyStorage;
  readonly requests: readonly Request[];
  /** The store, when it could be opened; it may have stopped since. */
  readonly opened: DirectoryStore | null;
  /** Code of the error that opening ended with. */
  readonly openError: string | null;
  readonly nowMs: number;
}

export function openOn(
  storage: FaultyStorage,
  seed: number,
  clock = new ManualClock(TEST_NOW_MS, 'microtask'),
): Promise<DirectoryStore> {
  return openTestStore({ storage, clock, seed, chunkSizeBytes: CHUNK_BYTES, memTableEntriesMax: MEM_TABLE_ENTRIES });
}

export interface WorkOptions {
  readonly seed: number;
  readonly rounds: number;
  /** Closes the store at its end, which counts as part of the run. */
  readonly close?: boolean;
  /** Number of the first round, for a run that goes on where another one ended. */
  readonly firstRound?: number;
}

export interface RunOptions extends WorkOptions {
  /** Prepares the faults. */
  readonly faults: (storage: FaultyStorage) => void;
}

/** Opens a store on an empty faulty disk and lets clients work until they are done or the power fails. */
export async function runFaulty(options: RunOptions): Promise<Run> {
  const storage = new FaultyStorage({ seed: options.seed, reads: 'async' });
  options.faults(storage);
  return workOn(storage, options);
}

/** The same on a disk that has a past. */
export async function workOn(storage: FaultyStorage, options: WorkOptions): Promise<Run> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const requests: Request[] = [];
  let opened: DirectoryStore;
  try {
    opened = await openOn(storage, options.seed, clock);
  } catch (error) {
    const code = codeOf(error);
    if (code === null) throw error;
    return { storage, requests, opened: null, openError: code, nowMs: clock.nowMs() };
  }
  for (const round of planWorkload({ ...options, dataBytesMax: DATA_BYTES_MAX, togetherChance: 0.3 })) {
    if (storage.isCrashed) break;
    requests.push(...round);
    await Promise.all(round.map((request) => perform(opened.store, request, () => storage.ops.length)));
    await clock.advance(ROUND_MS);
  }
  if (options.close === true && !storage.isCrashed)
    await opened.close().catch((error: unknown) => {
      if (codeOf(error) === null) throw error;
    });
  return { storage, requests, opened, openError: null, nowMs: clock.nowMs() };
}

export type Outcome = readonly [RestartMode, number];
/** Ends of a process: power losses, and its end alone, under a system that could not write what it had not synced. */
export const OUTCOMES: readonly Outcome[] = [
  ['drop', 1],
  ['keep', 1],
  ['partial', 1],
  ['partial', 2],
  ['clean', 1],
];

/**
 * Opens what the end of a process left and says what is wrong with it; then writes to it, and stops and looks once
 * more.
 */
export async function checkAfterCrash(run: Run, outcome: Outcome): Promise<string[]> {
  const storage = run.storage.restart(outcome[0], outcome[1]);
  return (await checkOpened(storage, run, outcome[0] === 'clean')).map(
    (problem) => `after ${outcome.join(' ')}: ${problem}`,
  );
}

/** `losesPower`: once it was written to, instead of a stop. What was seen before is looked for in what is left then. */
export async function checkOpened(storage: FaultyStorage, run: Run, losesPower = false): Promise<string[]> {
  let opened: DirectoryStore;
  try {
    opened = await openOn(storage, 99);
  } catch (error) {
    return [`it can't be opened: ${(error as Error).message}`];
  }
  const wrong = losesPower ? [] : await findLosses(opened.store, run.requests, run.nowMs);
  const more: Request = {
    kind: 'append',
    stream: 'afterwards',
    target: 'afterwards',
    expectedVersion: -1,
    round: 1e9,
    acknowledged: null,
    refusedWith: null,
    events: [1, 2].map((i) => ({
      id: `0000000${i}-1111-4111-8111-111111111111`,
      type: 'after',
      isJson: false,
      data: new Uint8Array(3000).fill(i),
      metadata: new Uint8Array(0),
    })),
  };
  await perform(opened.store, more, () => 0);
  if (more.acknowledged === null) wrong.push(`an append afterwards was refused with ${more.refusedWith}`);
  wrong.push(...storage.violations, ...run.storage.violations);
  if (losesPower) {
    const after = await checkOpened(storage.restart('drop'), { ...run, requests: [...run.requests, more] });
    return [...wrong, ...after.map((problem) => `and after a power loss: ${problem}`)];
  }
  wrong.push(
    ...(await findLosses(opened.store, [...run.requests, more], run.nowMs)).map(
      (problem) => `after one more append: ${problem}`,
    ),
  );
  await opened.close();
  return wrong;
}

/**
 * One disk that loses its power again and again, each time at a random operation: of the work, or of the recovery from
 * the loss before. Returns what went wrong.
 */
export async function runChain(seed: number, losses: number): Promise<string[]> {
  const random = new Random(seed);
  let storage = new FaultyStorage({ seed, reads: random.pick(['sync', 'async']) });
  const requests: Request[] = [];
  let nowMs = TEST_NOW_MS;
  for (let loss = 0; loss < losses; loss++) {
    storage.crashAt(random.chance(0.3) ? random.int(1, 40) : random.int(1, 250), random.pick(MOMENTS));
    const run = await workOn(storage, {
      seed: seed * 1000 + loss,
      rounds: 30,
      firstRound: loss * 100,
      close: random.chance(0.5),
    });
    requests.push(...run.requests);
    nowMs = Math.max(nowMs, run.nowMs);
    const outcome = [
      random.pick(['drop', 'keep', 'partial', 'partial', 'clean'] as const),
      random.int(1, 1_000_000),
    ] as const;
    const judged = { ...run, requests, nowMs };
    const problems = await checkAfterCrash(judged, outcome);
    if (problems.length > 0) return problems.map((problem) => `seed ${seed}, loss ${loss}: ${problem}`);
    storage = run.storage.restart(outcome[0], outcome[1]);
  }
  return [];
}

/** Where each moment of a crash is tried in turn. */
export const MOMENTS: readonly CrashMoment[] = ['before', 'middle', 'after'];
