import { BlockCache } from '../../core/cache/cache.ts';
import { equalBytes } from '../../core/base/bytes.ts';
import { saveIndexMap, loadIndexMap, newGuid } from '../../core/index/format/index-map.ts';
import { MemTable } from '../../core/index/mem-table/mem-table.ts';
import { Hash64, streamHasher, type StreamHasher } from '../../core/base/stream-hash.ts';
import { WRITE_TABLE_JOB, type WriteTableArgs } from '../../core/index/jobs/jobs.ts';
import { TableSource } from '../../core/index/format/table-scan.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { parseChunkFileNames, takeInventory } from '../../core/log/format/chunk-format.ts';
import { readHeader } from '../../core/log/format/chunk-files.ts';
import { openCompleted, scanChunk } from '../../core/log/chunk/chunk.ts';
import { FRAME_BYTES } from '../../core/log/format/records.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Job, JobContext } from '../../core/ports/jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type {
  ScavengeCheckpoint,
  ScavengeState,
  ScavengeStateOptions,
  ScavengeStates,
} from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { LastScavenge, ScavengeOptions } from '../../core/scavenge/api.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import type { StoredEvent } from '../../core/streams/api.ts';
import { decodeText } from '../../core/base/text.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { readWholeStream } from '../support/oracle.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, type TestStoreOptions } from '../support/test-store.ts';
import { E_MS } from './notation.ts';
import { buildLog, installLog, recordOf, type LogRecord, type NotationLog } from './notation-log.ts';

export const STATE_OPTIONS: ScavengeStateOptions = {
  pageSizeBytes: 16_384,
  cacheBytes: 1_048_576,
  hashUsersCacheEntries: 1_000,
};

export interface WorldOptions {
  readonly chunkSize?: number;
  /** Names that share the hash of another: collide['y'] = 'x'. */
  readonly collide?: Readonly<Record<string, string>>;
  /** Records that an earlier scavenge took from chunks that have others left. */
  readonly gone?: readonly string[];
  /**
   * Index tables to write, one a level, the first one the newest: labels of their entries. Default: the index is built
   * from the log.
   */
  readonly tables?: readonly (readonly string[])[];
  /**
   * Label of the last record that those tables reach to; what is behind it is read from the log. Default: the last
   * record.
   */
  readonly tablesTo?: string;
  /** The scavenge state that an earlier run left. */
  readonly state?: (state: ScavengeState, world: World) => void;
}

/** What a test watches, and where it steps in. */
export interface Hooks {
  /** Before a job is begun. An error that it throws is the job's. */
  job?(name: string, args: unknown, world: World): void | Promise<void>;
  /** Whenever a job asks whether it may go on; `count` from 1 in each job. */
  checkpoint?(name: string, args: unknown, count: number, world: World): void;
  /** After a transaction of the state was committed. */
  committed?(checkpoint: ScavengeCheckpoint, world: World): void;
}

export interface RunOptions extends ScavengeOptions {
  readonly unsafe?: boolean;
  readonly merging?: boolean;
  readonly hooks?: Hooks;
  readonly store?: Partial<TestStoreOptions>;
  /** Reads while the store is still open; the clock stands at E. */
  readonly inspect?: (store: DirectoryStore) => Promise<void>;
}

export interface Run {
  readonly scavengeId: string;
  readonly last: LastScavenge;
  /** Jobs of the scavenge in the order in which they were begun. */
  readonly jobs: readonly { readonly name: string; readonly args: unknown }[];
  readonly committed: readonly ScavengeCheckpoint[];
  /** The run's history stream: type and data of each event. */
  readonly history: readonly HistoryEvent[];
}

export interface HistoryEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A data directory that was written in notation, and runs of a scavenge on it. */
export class World {
  readonly storage: Storage = new MemoryStorage();
  readonly clock = new ManualClock(E_MS, 'microtask');
  readonly hasher: StreamHasher;
  readonly log: NotationLog;
  readonly #states = new MemoryScavengeStates();
  readonly #ids = new SeededIds(18);
  /** While a run is under way. */
  opened: DirectoryStore | null = null;
  /** Runs scavenges somewhere else than on a node, those excepted in which a test steps in. */
  static elsewhere:
    | ((
        world: World,
        options: Omit<RunOptions, 'hooks' | 'store' | 'inspect'>,
      ) => Promise<Omit<Run, 'jobs' | 'committed'>>)
    | null = null;

  private constructor(text: string, options: WorldOptions) {
    this.log = buildLog(text, options.chunkSize ?? 65_536);
    this.hasher = hasherWith(options.collide ?? {});
  }

  static async create(text: string, options: WorldOptions = {}): Promise<World> {
    const world = new World(text, options);
    await installLog(world.storage, world.log, options.gone);
    if (options.tables !== undefined) await world.#writeTables(options.tables, options.tablesTo);
    if (options.state !== undefined) {
      const state = world.state();
      options.state(state, world);
      state.close();
    }
    return world;
  }

  get states(): ScavengeStates {
    return this.#states;
  }
  state(): ScavengeState {
    return this.#states.open(STATE_OPTIONS);
  }

  hash(stream: string): Hash64 {
    const hash = new Hash64();
    this.hasher.hash(stream, hash);
    return hash;
  }

  async #writeTables(tables: readonly (readonly string[])[], tablesTo: string | undefined): Promise<void> {
    const jobs = new InlineJobs({
      jobs: JOBS,
      storage: this.storage,
      digests: nodeDigests,
      ids: this.#ids,
      clock: this.clock,
    });
    const levels: string[][] = [];
    for (const labels of tables) {
      const table = new MemTable(1_000);
      for (const record of this.log.records.filter((one) => labels.includes(one.label))) {
        const { hi, lo } = this.hash(record.stream);
        table.add(hi, lo, record.indexNumber, record.position);
      }
      const name = newGuid(this.#ids);
      const args: WriteTableArgs = {
        path: `index/${name}`,
        bloomPath: `index/${name}.bloomfilter`,
        cacheDepth: 16,
        columns: table.columns(),
      };
      await jobs.run(WRITE_TABLE_JOB, args);
      levels.push([name]);
    }
    const last = (tablesTo === undefined ? this.log.records.at(-1)! : recordOf(this.log, tablesTo)).position;
    await saveIndexMap(
      { commitCheckpoint: last, prepareCheckpoint: last, levels },
      this.storage,
      nodeDigests,
      this.#ids,
    );
  }

  /** Runs a scavenge to its end on a store that is opened for it. */
  async run(options: RunOptions = {}): Promise<Run> {
    if (
      World.elsewhere !== null &&
      options.hooks === undefined &&
      options.store === undefined &&
      options.inspect === undefined
    )
      return { jobs: [], committed: [], ...(await World.elsewhere(this, options)) };
    const { unsafe = false, merging = false, hooks = {}, store: more = {}, inspect, ...request } = options;
    const jobs: { name: string; args: unknown }[] = [];
    const committed: ScavengeCheckpoint[] = [];
    const scavengeStates = this.#watched((checkpoint) => {
      committed.push(checkpoint);
      hooks.committed?.(checkpoint, this);
    });
    const open = await this.open({
      ...more,
      scavengeStates,
      jobs: new InlineJobs({
        jobs: this.#hooked(hooks, jobs),
        storage: this.storage,
        digests: nodeDigests,
        ids: this.#ids,
        clock: this.clock,
        hasher: this.hasher,
        scavengeStates,
      }),
      scavenge: {
        disableMerging: !merging,
        mergesAlways: true,
        unsafeIgnoreHardDelete: unsafe,
        keepsDeletedData: true,
        repairHistory: false,
        ...more.scavenge,
      },
    });
    try {
      this.opened = open;
      const { scavengeId } = await open.scavenger.start({ syncOnly: true, ...request });
      await this.settle(open.scavenger.idle());
      this.clock.setNow(E_MS);
      const history = await this.settle(readHistory(open, `$scavenges-${scavengeId}`));
      if (inspect !== undefined) await this.settle(inspect(open));
      return { scavengeId, last: open.scavenger.last()!, jobs, committed, history };
    } finally {
      this.opened = null;
      await open.close();
    }
  }

  /** Opens the store without starting anything. */
  open(options: Partial<TestStoreOptions> = {}): Promise<DirectoryStore> {
    const scavengeStates = options.scavengeStates ?? this.#states;
    const jobs = new InlineJobs({
      jobs: JOBS,
      storage: this.storage,
      digests: nodeDigests,
      ids: this.#ids,
      clock: this.clock,
      hasher: this.hasher,
      scavengeStates,
    });
    return openTestStore({
      storage: this.storage,
      clock: this.clock,
      ids: this.#ids,
      hasher: this.hasher,
      jobs,
      scavengeStates,
      writeEpoch: false,
      verifyChunks: false,
      scavenge: { repairHistory: false },
      ...options,
    });
  }

  /** Waits for a promise; when nothing else can happen any more, time goes on. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    settled.catch(() => {});
    for (let turns = 0; !isSettled; turns++) {
      if (turns % 64 === 63) await this.clock.advance(250);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    return settled;
  }

  #hooked(hooks: Hooks, begun: { name: string; args: unknown }[]): Record<string, Job> {
    return Object.fromEntries(
      Object.entries(JOBS).map(([name, job]) => [
        name,
        async (args: never, context: JobContext) => {
          if (name.startsWith('scavenge.')) begun.push({ name, args });
          await hooks.job?.(name, args, this);
          let count = 0;
          const checkpoint = (): Promise<void> => {
            hooks.checkpoint?.(name, args, ++count, this);
            return context.checkpoint();
          };
          return job(args, { ...context, checkpoint });
        },
      ]),
    );
  }

  /** Asks the run that is active to stop. */
  stop(): void {
    this.opened!.scavenger.stop('current').catch(() => {});
  }

  /** Where the last run has come. */
  checkpoint(): ScavengeCheckpoint | null {
    const state = this.state();
    const checkpoint = state.checkpoint();
    state.close();
    return checkpoint;
  }

  #watched(committed: (checkpoint: ScavengeCheckpoint) => void): ScavengeStates {
    const states = this.#states;
    return {
      open: (options) => watchedState(states.open(options), committed),
      openTemporary: (options) => states.openTemporary(options),
      storedCheckpoint: (options) => states.storedCheckpoint(options),
      isOnDisk: () => states.isOnDisk(),
      check: () => states.check(),
      remove: () => states.remove(),
    };
  }

  /** Labels of the records that are left, by logical chunk. Fails when a record's bytes have changed. */
  async recordsLeft(): Promise<string[][]> {
    const labels: string[][] = this.log.chunks.map(() => []);
    const byPosition = new Map(this.log.records.map((record) => [record.position, record]));
    for (const file of await this.files()) {
      const chunk = await openCompleted(this.storage, new BlockCache(0), file.name);
      await scanChunk(chunk, 0, (frame) => {
        if (frame.position >= this.log.end) return;
        const record = byPosition.get(frame.position);
        if (record === undefined || !equalBytes(frame.bytes, frame.at - 4, record.bytes, 0, frame.length + FRAME_BYTES))
          throw new Error(`${file.name} holds another record at ${frame.position}.`);
        labels[record.chunk]!.push(record.label);
      });
      await chunk.file.file.close();
    }
    return labels;
  }

  /** The chunk files in force that hold chunks of the log. */
  async files(): Promise<{ name: string; start: number; end: number; version: number; isScavenged: boolean }[]> {
    const names = parseChunkFileNames(await this.storage.list(''));
    const inventory = await takeInventory(
      names,
      -1,
      async (file) => (await readHeader(this.storage, file.name)).endNumber,
    );
    if (inventory.missing.length > 0) throw new Error(`Chunks are missing: ${inventory.missing.join()}.`);
    const files = inventory.latest.filter(({ file }) => file.number < this.log.chunks.length);
    return Promise.all(
      files.map(async ({ file, endNumber }) => {
        const header = await readHeader(this.storage, file.name);
        return {
          name: file.name,
          start: file.number,
          end: endNumber,
          version: file.version,
          isScavenged: header.isScavenged,
        };
      }),
    );
  }

  /** Records of the log that the index tables have, in the order of the log. Fails for an entry that fits no record. */
  async indexLeft(): Promise<LogRecord[]> {
    const byPosition = new Map(this.log.records.map((record) => [record.position, record]));
    const left: LogRecord[] = [];
    for (const entry of await readIndexEntries(this.storage)) {
      if (entry.position >= this.log.end) continue;
      const record = byPosition.get(entry.position);
      const hash = record && this.hash(record.stream);
      if (
        record === undefined ||
        record.indexNumber !== entry.version ||
        hash!.hi !== entry.hi ||
        hash!.lo !== entry.lo
      )
        throw new Error(`The index has number ${entry.version} at ${entry.position}, which no record has.`);
      left.push(record);
    }
    return left.sort((a, b) => a.position - b.position);
  }
}

/** All entries of the tables, in the order of levels, tables and files. */
export async function readIndexEntries(
  storage: Storage,
): Promise<{ table: string; hi: number; lo: number; version: number; position: number }[]> {
  const map = await loadIndexMap(storage, nodeDigests);
  const entries: { table: string; hi: number; lo: number; version: number; position: number }[] = [];
  for (const table of map?.levels.flat() ?? []) {
    const source = await TableSource.open(storage, `index/${table}`);
    while (await source.fill())
      while (source.next()) {
        const { hi, lo, version, position } = source.entry;
        entries.push({ table, hi, lo, version, position });
      }
    await source.close();
  }
  return entries;
}

async function readHistory(open: DirectoryStore, stream: string): Promise<HistoryEvent[]> {
  const events = await readWholeStream(open.store, stream, 'forward', 1_000);
  return (events as StoredEvent[]).map((event) => ({
    type: event.type,
    data: JSON.parse(decodeText(event.data)) as Record<string, unknown>,
  }));
}

function watchedState(state: ScavengeState, committed: (checkpoint: ScavengeCheckpoint) => void): ScavengeState {
  return new Proxy(state, {
    get(target, key): unknown {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, target, args);
        if (key === 'commit') committed(args[0] as ScavengeCheckpoint);
        return result;
      };
    },
  });
}

function hasherWith(collide: Readonly<Record<string, string>>): StreamHasher {
  if (Object.keys(collide).length === 0) return streamHasher;
  return {
    hash: (name, out) => streamHasher.hash(collide[name] ?? name, out),
    hashUtf8: (bytes, at, length, out) => {
      const name = decodeText(bytes.subarray(at, at + length));
      streamHasher.hash(collide[name] ?? name, out);
    },
  };
}
