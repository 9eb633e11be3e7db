import { encodeFooter, encodeHeader } from '../../core/log/format/chunk-format.ts';
import { encodePrepare, prepareFrameBytes } from '../../core/log/format/records.ts';
import { putI32, putI64 } from '../../core/base/bytes.ts';
import { TABLE_JOBS } from '../../core/index/jobs/jobs.ts';
import type { TableExecuted, TableExecution } from '../../core/index/tables/table-store.ts';
import type { TableReport } from '../../core/index/tables/table-scavenge.ts';
import { Hash64, streamHasher, type StreamHasher } from '../../core/base/stream-hash.ts';
import type { StreamIndex } from '../../core/index/index.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Job, JobOptions } from '../../core/ports/jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type {
  MetastreamData,
  OriginalStreamData,
  ScavengePoint,
  ScavengeState,
  ScavengeStateOptions,
} from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { clean, CLEAN_JOB } from '../../core/scavenge/cleaning.ts';
import { executeTable, EXECUTE_TABLE_JOB, type ExecuteTableArgs } from '../../core/scavenge/index-execution.ts';
import type { RunFiles, RunSettings } from '../../core/scavenge/sources/run-settings.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type IndexOptions, openIndex } from '../index/world.ts';

/** Index entries, the scavenge database and the jobs of the last two stages, without a log but for single chunks. */

export const STATE_OPTIONS: ScavengeStateOptions = {
  pageSizeBytes: 16_384,
  cacheBytes: 1_048_576,
  hashUsersCacheEntries: 100,
};
export const POINT: ScavengePoint = {
  position: 10_000,
  eventNumber: 0,
  effectiveNowMs: Date.UTC(2022, 0, 5),
  threshold: 0,
};
export const CHUNK_BYTES = 65_536;
const NOTHING = new Uint8Array(0);
const text = new TextEncoder();

export interface Entry {
  readonly stream: string;
  readonly number: number;
  readonly position: number;
}

export interface RunResult {
  readonly reports: readonly TableReport[];
  readonly error: unknown;
}

export class IndexWorld {
  readonly storage: Storage;
  readonly states: MemoryScavengeStates;
  readonly hasher: StreamHasher;
  readonly clock = new ManualClock(Date.UTC(2022, 0, 6), 'microtask');
  readonly #ids: SeededIds;
  chunks: string[] = [];
  settings: RunSettings = {
    point: POINT,
    unsafeIgnoreHardDelete: false,
    keepsDeletedData: false,
    state: STATE_OPTIONS,
    throttle: { percent: 100, elapsedMs: 0, restedMs: 0 },
  };

  constructor(
    storage: Storage = new MemoryStorage(),
    hasher: StreamHasher = streamHasher,
    states = new MemoryScavengeStates(),
    seed = 3,
  ) {
    this.storage = storage;
    this.hasher = hasher;
    this.states = states;
    this.#ids = new SeededIds(seed);
  }

  jobs(more: Readonly<Record<string, Job>> = {}): InlineJobs {
    const jobs = { ...TABLE_JOBS, [EXECUTE_TABLE_JOB]: executeTable, [CLEAN_JOB]: clean, ...more } as Record<
      string,
      Job
    >;
    return new InlineJobs({
      jobs,
      storage: this.storage,
      digests: nodeDigests,
      ids: this.#ids,
      clock: this.clock,
      hasher: this.hasher,
      scavengeStates: this.states,
    });
  }

  open(options: IndexOptions = {}): Promise<StreamIndex> {
    return openIndex(this.storage, {
      clock: this.clock,
      ids: this.#ids,
      hasher: this.hasher,
      jobs: this.jobs(),
      tablesPerLevelMax: 100,
      ...options,
    });
  }

  hashOf(name: string): Hash64 {
    const hash = new Hash64();
    this.hasher.hash(name, hash);
    return hash;
  }

  add(index: StreamIndex, entries: readonly Entry[]): void {
    for (const { stream, number, position } of entries) {
      const { hi, lo } = this.hashOf(stream);
      index.add(hi, lo, number, position);
      index.endBulk(position, position);
    }
  }

  /** Writes each group of entries as one table. */
  async tables(index: StreamIndex, groups: readonly (readonly Entry[])[]): Promise<void> {
    for (const group of groups) {
      this.add(index, group);
      await index.flush();
    }
  }

  /** Changes the scavenge database as earlier stages do. */
  change(work: (state: ScavengeState) => void): void {
    const state = this.states.open(STATE_OPTIONS);
    state.begin();
    work(state);
    state.commit({ point: this.settings.point, stage: 'ExecutingIndex' });
    state.close();
  }

  register(...names: readonly string[]): void {
    this.change((state) => {
      for (const name of names) state.register(name, this.hashOf(name).hi, this.hashOf(name).lo);
    });
  }

  original(name: string, data: Partial<OriginalStreamData>): void {
    const { hi, lo } = this.hashOf(name);
    this.change((state) => {
      state.register(name, hi, lo);
      state.setOriginal(name, hi, lo, {
        isTombstoned: false,
        maxAge: null,
        maxCount: null,
        truncateBefore: null,
        discardPoint: 0,
        maybeDiscardPoint: 0,
        status: 1,
        ...data,
      });
    });
  }

  metastream(name: string, data: Partial<MetastreamData>): void {
    const { hi, lo } = this.hashOf(name);
    this.change((state) => {
      state.register(name, hi, lo);
      state.setMetastream(name, hi, lo, { isTombstoned: false, discardPoint: 0, ...data });
    });
  }

  get files(): RunFiles {
    return {
      chunkSize: CHUNK_BYTES,
      chunks: this.chunks.map((name) => ({ name, ongoingBytes: null })),
      tables: [],
      memTables: [],
    };
  }

  args(execution: TableExecution): ExecuteTableArgs {
    return { ...execution, files: this.files, settings: this.settings };
  }

  /** Runs the stage over the tables of an index. Never rejects. */
  async run(index: StreamIndex, jobOptions: JobOptions = {}, jobs = this.jobs()): Promise<RunResult> {
    const reports: TableReport[] = [];
    let error: unknown = null;
    try {
      await index.scavengeTables({
        jobOptions,
        execute: async (execution) =>
          (await jobs.run(EXECUTE_TABLE_JOB, this.args(execution), jobOptions)) as TableExecuted,
        onTable: (report) => {
          reports.push(report);
        },
      });
    } catch (caught) {
      error = caught;
    }
    return { reports, error };
  }

  /**
   * Writes a chunk that holds exactly these records, and counts it among the files of the run: a scavenged one, with a
   * position map, unless it is said otherwise.
   */
  async chunk(
    number: number,
    entries: readonly Entry[],
    { endNumber = number, isScavenged = true }: { endNumber?: number; isScavenged?: boolean } = {},
  ): Promise<void> {
    const records: Uint8Array[] = [];
    const map = new Uint8Array(entries.length * 12);
    let at = 0;
    for (const [i, entry] of entries.toSorted((a, b) => a.position - b.position).entries()) {
      const stream = text.encode(entry.stream);
      const type = text.encode('t');
      const record = new Uint8Array(prepareFrameBytes(stream.length, type.length, 0, 0));
      const id = this.#ids.uuidBytes();
      encodePrepare(record, 0, {
        position: entry.position,
        flags: 0x27,
        transactionPosition: entry.position,
        transactionOffset: 0,
        expectedVersion: entry.number - 1,
        stream,
        eventId: id,
        correlationId: id,
        timestampMs: POINT.effectiveNowMs - 1_000,
        timestampTicks: 0,
        eventType: type,
        data: NOTHING,
        metadata: NOTHING,
      });
      putI32(map, i * 12, at);
      putI64(map, i * 12 + 4, entry.position - number * CHUNK_BYTES);
      records.push(record);
      at += record.length;
    }
    const header = encodeHeader({
      version: 3,
      chunkSize: CHUNK_BYTES,
      startNumber: number,
      endNumber,
      isScavenged,
      chunkId: this.#ids.uuidBytes(),
    });
    const mapped = isScavenged ? [map] : [];
    const footer = encodeFooter(at, CHUNK_BYTES * (endNumber - number + 1), isScavenged ? map.length : 0);
    const content = Buffer.concat([header, ...records, ...mapped, footer]);
    const name = `chunk-${String(number).padStart(6, '0')}.000001`;
    const file = await this.storage.create(name);
    await file.writeAt(0, new Uint8Array(content));
    await file.sync();
    await file.close();
    this.chunks.push(name);
  }

  /** What is left: `stream#number@position` for the given streams, ascending. */
  async left(index: StreamIndex, streams: readonly string[]): Promise<string[]> {
    const names = new Map(
      streams.map((name) => {
        const { hi, lo } = this.hashOf(name);
        return [`${hi}/${lo}`, name];
      }),
    );
    const out: string[] = [];
    for (const { file } of index.tables()) {
      for await (const batch of index.readTable(file)) {
        for (let i = 0; i < batch.count; i++)
          out.push(`${names.get(`${batch.hi[i]}/${batch.lo[i]}`) ?? '?'}#${batch.versions[i]}@${batch.positions[i]}`);
      }
    }
    return out.sort((a, b) => Number(a.split('@')[1]) - Number(b.split('@')[1]));
  }
}

/** Gives the first letters `x` and `y`, and `$$x` and `$$y`, the same hash. */
export const pairHasher: StreamHasher = {
  hash(name: string, out: Hash64): void {
    streamHasher.hash(name.replace(/y/g, 'x'), out);
  },
  hashUtf8(bytes: Uint8Array, at: number, length: number, out: Hash64): void {
    this.hash(new TextDecoder().decode(bytes.subarray(at, at + length)), out);
  },
};
