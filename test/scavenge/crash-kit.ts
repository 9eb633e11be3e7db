import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import type {
  ScavengeCheckpoint,
  ScavengeState,
  ScavengeStateOptions,
  ScavengeStates,
} from '../../core/ports/scavenge-state.ts';
import type { LastScavenge, ScavengeConfig } from '../../core/scavenge/api.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { codeOf } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import type { RestartMode } from '../support/faulty-file.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { newEvent } from '../support/workload.ts';
import { checkClosed, readEverything, type Reads, streamsOf } from './random-check.ts';
import { HASHERS } from './hashers.ts';
import { readRawLog } from './raw-log.ts';

/** A directory that has something of everything to scavenge, and runs over it that a power loss cuts off. */

const CHUNK_BYTES = 65_536;
const MEM_TABLE_ENTRIES = 45;
const DAY_MS = 86_400_000;
/** Long after the oldest event has expired. */
const RUN_MS = TEST_NOW_MS + 30 * DAY_MS;
const ATTEMPTS_MAX = 3;

export interface Prepared {
  readonly scavenge: Partial<ScavengeConfig>;
  readonly storage: FaultyStorage;
  readonly states: MemoryScavengeStates;
  /** Of the log before any run. */
  readonly end: number;
  readonly reads: Reads;
  /** What an uninterrupted run leaves of the log before `end`. */
  readonly expected: ReadonlyMap<number, string>;
  /**
   * Storage operations and commits of the scavenge database of the uninterrupted run, its opening and closing included.
   */
  readonly operations: number;
  readonly commits: number;
}

/** Counts commits, and lets the power fail behind one of them. */
class CountingStates implements ScavengeStates {
  readonly #inner: ScavengeStates;
  readonly #storage: FaultyStorage;
  readonly #crashAt: number;
  commits = 0;

  constructor(inner: ScavengeStates, storage: FaultyStorage, crashAt: number) {
    this.#inner = inner;
    this.#storage = storage;
    this.#crashAt = crashAt;
  }

  open(options: ScavengeStateOptions): ScavengeState {
    const state = this.#inner.open(options);
    const commit = state.commit.bind(state);
    state.commit = (checkpoint) => {
      commit(checkpoint);
      if (++this.commits === this.#crashAt) this.#storage.crash();
    };
    return state;
  }

  storedCheckpoint(options: ScavengeStateOptions): ScavengeCheckpoint | null {
    return this.#inner.storedCheckpoint(options);
  }
  openTemporary(options: ScavengeStateOptions): ScavengeState {
    return this.#inner.openTemporary(options);
  }
  isOnDisk(): boolean {
    return this.#inner.isOnDisk();
  }
  check(depth: 'quick' | 'thorough'): readonly string[] | null {
    return this.#inner.check(depth);
  }
  remove(): void {
    this.#inner.remove();
  }
}

interface Session {
  readonly storage: FaultyStorage;
  readonly states: ScavengeStates;
  readonly seed: number;
  readonly nowMs?: number;
  readonly scavenge?: Partial<ScavengeConfig>;
}

function open({ storage, states, seed, nowMs = RUN_MS, scavenge: config = {} }: Session): Promise<DirectoryStore> {
  const clock = new ManualClock(nowMs, 'microtask');
  const ids = new SeededIds(seed);
  const jobs = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates: states });
  return openTestStore({
    storage,
    clock,
    ids,
    jobs,
    scavengeStates: states,
    chunkSizeBytes: CHUNK_BYTES,
    memTableEntriesMax: MEM_TABLE_ENTRIES,
    verifyChunks: false,
    scavenge: config,
  });
}

/** Writes the directory, and scavenges a copy of it. */
export async function prepare(seed: number, config: Partial<ScavengeConfig> = {}): Promise<Prepared> {
  const storage = new FaultyStorage({ seed, reads: 'async' });
  const states = new MemoryScavengeStates();
  await write(storage, states, seed);
  const reading = await open({ storage, states, seed: seed + 1 });
  const log = await readRawLog(storage);
  const reads = await readEverything(reading.store, streamsOf(log));
  await reading.close();
  const end = log.at(-1)!.position + 1;
  const { storage: dry, states: dryStates } = copy({ storage, states });
  const counting = new CountingStates(dryStates, dry, 0);
  const last = await scavenge({ storage: dry, states: counting, seed: 900, scavenge: config });
  if (last?.result !== 'Success') throw new Error(`The uninterrupted run ended ${JSON.stringify(last)}.`);
  const left = await readRawLog(dry);
  if (!left.some(({ prepare }) => prepare?.isEmptied === true))
    throw new Error('The run emptied no last event of a deleted stream.');
  const expected = new Map(
    left.filter(({ position }) => position < end).map(({ position, bytes }) => [position, bytes]),
  );
  if (expected.size > log.length * 0.8 || expected.size < 20)
    throw new Error(`The run left ${expected.size} of ${log.length} records, which tests nothing.`);
  return {
    scavenge: config,
    storage,
    states,
    end,
    reads,
    expected,
    operations: dry.operations,
    commits: counting.commits,
  };
}

/** Two parts, with a scavenge between them. */
async function write(storage: FaultyStorage, states: ScavengeStates, seed: number): Promise<void> {
  const random = new Random(seed);
  await writePart({ storage, states, seed, nowMs: TEST_NOW_MS }, random, 0);
  const last = await scavenge({ storage, states, seed: seed + 100, nowMs: TEST_NOW_MS + DAY_MS });
  if (last?.result !== 'Success') throw new Error(`The first run ended ${JSON.stringify(last)}.`);
  await writePart({ storage, states, seed: seed + 200, nowMs: TEST_NOW_MS + 2 * DAY_MS }, random, 1);
}

async function writePart(session: Session, random: Random, part: number): Promise<void> {
  const opened = await open(session);
  const { store } = opened;
  const append = (stream: string, count: number): Promise<unknown> =>
    store.append(
      stream,
      ANY,
      Array.from({ length: count }, () => newEvent(random, 'happened', null, 2_000)),
    );
  const metadata = (stream: string, json: string): Promise<unknown> =>
    store.append(`$$${stream}`, ANY, [newEvent(random, '$metadata', json)]);
  await metadata('counted', `{"$maxCount":${9 - part}}`);
  if (part === 0) await metadata('aged', '{"$maxAge":864000}');
  for (let round = 0; round < 4; round++) {
    await append('counted', 5);
    await append('kept', 2);
    await append('aged', 4);
    await append('cut', 4);
    await append(`gone-${part}`, 3);
  }
  await metadata('counted', `{"$maxCount":${4 - part}}`);
  await metadata('cut', '{"$tb":6}');
  await metadata(`gone-${part}`, '{"$maxCount":100}');
  await store.deleteStream(`gone-${part}`, ANY, 'hard');
  if (part === 1) await store.deleteStream('cut', ANY, 'soft');
  await opened.close();
}

/** The same directory once more. */
export function copy({ storage, states }: Pick<Prepared, 'storage' | 'states'>): {
  storage: FaultyStorage;
  states: MemoryScavengeStates;
} {
  return { storage: storage.restart('keep'), states: states.restart(0) };
}

/** One run from the opening of the store to its closing. Null when the store could not be opened. */
async function scavenge(
  session: Session,
  inspect?: (store: DirectoryStore) => Promise<void>,
  startAfresh = false,
): Promise<LastScavenge | null> {
  let store: DirectoryStore;
  try {
    store = await open(session);
  } catch (error) {
    if (!session.storage.isCrashed) throw error;
    return null;
  }
  await inspect?.(store);
  await store.scavenger.start({ threads: 2, startAfresh }).catch(expectCrash);
  await store.scavenger.idle();
  const last = store.scavenger.last();
  await store.close().catch(expectCrash);
  return last;

  function expectCrash(error: unknown): void {
    if (!session.storage.isCrashed || codeOf(error) === null) throw error;
  }
}

export interface Crash {
  /** The power fails at this storage operation, or behind this commit of the scavenge database. */
  readonly operation?: number;
  readonly commit?: number;
  readonly mode: RestartMode;
  /** Newest commits that were not on the disk. */
  readonly commitsLost: number;
  readonly seed: number;
  /** The run before it was cut off at this storage operation, and the one in which the power fails abandons it. */
  readonly abandons?: number;
  /** How the runs behind the power loss scavenge, if otherwise than the one that it cut off. */
  readonly goesOnWith?: Partial<ScavengeConfig>;
}

/** Lets the power fail in a run, starts again, and says what is wrong with what that leaves. */
export async function crashAndGoOn(prepared: Prepared, crash: Crash): Promise<string[]> {
  const { storage, states } = crash.abandons === undefined ? copy(prepared) : await cutOff(prepared, crash.abandons);
  if (crash.operation !== undefined) storage.crashAt(crash.operation);
  const counting = new CountingStates(states, storage, crash.commit ?? 0);
  await scavenge(
    { storage, states: counting, seed: 900, scavenge: prepared.scavenge },
    undefined,
    crash.abandons !== undefined,
  );
  const commitsLost = Math.min(crash.commitsLost, counting.commits);
  const after: Session = {
    storage: storage.restart(crash.mode, crash.seed),
    states: states.restart(commitsLost),
    seed: 2_000 + crash.seed,
    scavenge: crash.goesOnWith ?? prepared.scavenge,
  };
  const wrong: string[] = [];
  let last: LastScavenge | null = null;
  for (let attempt = 0; last?.result !== 'Success'; attempt++) {
    if (attempt >= ATTEMPTS_MAX) return [...wrong, `the run afterwards ended ${JSON.stringify(last)}`];
    last = await scavenge({ ...after, seed: after.seed + attempt * 7_777 }, async ({ store }) => {
      wrong.push(
        ...compareReads(
          prepared.reads,
          await readEverything(store, prepared.reads.streams.keys()),
          'when it was opened',
        ),
      );
    });
  }
  wrong.push(...(await checkLeft(prepared, after.storage)));
  wrong.push(...(await checkClosed(after.storage, HASHERS.plain)), ...after.storage.violations, ...storage.violations);
  wrong.push(
    ...(await checkLeft(prepared, after.storage.restart('drop'))).map(
      (problem) => `${problem}, after one more power loss`,
    ),
  );
  return wrong.map((problem) => `${JSON.stringify(crash)}: ${problem}`);
}

/** A directory in which a run did not end. */
export async function cutOff(prepared: Prepared, operation: number): Promise<Pick<Prepared, 'storage' | 'states'>> {
  const { storage, states } = copy(prepared);
  storage.crashAt(operation);
  await scavenge({ storage, states, seed: 800, scavenge: prepared.scavenge });
  return { storage: storage.restart('drop'), states: states.restart(0) };
}

function compareReads(before: Reads, after: Reads, when: string): string[] {
  const wrong: string[] = [];
  // Runs write to their history and to the stream of scavenge points.
  for (const [stream, text] of before.streams)
    if (!/^(\$\$)?\$scavenge/.test(stream) && after.streams.get(stream) !== text)
      wrong.push(`${when}, ${stream} read ${after.streams.get(stream)}, and before ${text}`);
  return wrong;
}

/** The log is as an uninterrupted run leaves it, and there is no file that nobody needs. */
async function checkLeft(prepared: Prepared, storage: FaultyStorage): Promise<string[]> {
  const wrong: string[] = [];
  const left = new Map(
    (await readRawLog(storage))
      .filter(({ position }) => position < prepared.end)
      .map(({ position, bytes }) => [position, bytes]),
  );
  for (const [position, bytes] of prepared.expected)
    if (left.get(position) !== bytes)
      wrong.push(`the record at ${position} is ${left.has(position) ? 'another' : 'gone'}`);
  for (const position of left.keys())
    if (!prepared.expected.has(position)) wrong.push(`the record at ${position} is still there`);
  const chunks = new Set<string>();
  for (const name of await storage.list('')) {
    if (name.endsWith('.tmp')) wrong.push(`${name} was left`);
    if (!name.startsWith('chunk-')) continue;
    if (chunks.has(name.slice(6, 12))) wrong.push(`${name} is one of several versions`);
    chunks.add(name.slice(6, 12));
  }
  return wrong;
}

/**
 * Every storage operation and every commit, in every mode, with every number of lost commits: what is wrong after the
 * first that goes wrong.
 */
export async function allCrashes(
  seed: number,
): Promise<{ readonly problems: readonly string[]; readonly counts: { readonly powerLosses: number } }> {
  // Neighbours are merged while they are executed, or after that.
  const prepared = await prepare(seed, { mergesWhileExecuting: seed % 3 !== 0 });
  let powerLosses = 0;
  for (const crash of crashesOf(prepared)) {
    powerLosses++;
    const wrong = await crashAndGoOn(prepared, crash);
    if (wrong.length > 0)
      return { problems: wrong.map((problem) => `seed ${seed}: ${problem}`), counts: { powerLosses } };
    // Nothing in it waits for anything but promises, and what they have let go is collected only between turns of the
    // process.
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
  return { problems: [], counts: { powerLosses } };
}

function* crashesOf({ operations, commits }: Prepared): Generator<Crash> {
  for (const mode of ['drop', 'keep', 'partial', 'clean'] as const) {
    for (let operation = 1; operation <= operations; operation++)
      for (const commitsLost of [0, 1, 2, 4, 8, 16]) yield { operation, mode, commitsLost, seed: operation };
    for (let commit = 1; commit <= commits; commit++)
      for (let commitsLost = 0; commitsLost <= commit; commitsLost++) yield { commit, mode, commitsLost, seed: commit };
  }
}
