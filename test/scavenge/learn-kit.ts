import { MemTable, type MemTableColumns } from '../../core/index/mem-table/mem-table.ts';
import { WRITE_TABLE_JOB, type WriteTableArgs } from '../../core/index/jobs/jobs.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Job, JobContext, JobOptions } from '../../core/ports/jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import type { ScavengePoint, ScavengeStates, StreamHandle } from '../../core/ports/scavenge-state.ts';
import { accumulate, ACCUMULATE_JOB, type AccumulateResult } from '../../core/scavenge/accumulation.ts';
import type { DryRunReport, Explanation, ResumedPoint } from '../../core/scavenge/api.ts';
import { calculate, CALCULATE_JOB, type CalculateResult } from '../../core/scavenge/calculation.ts';
import { dryRun, DRY_RUN_JOB } from '../../core/scavenge/dry-run.ts';
import { explain, EXPLAIN_JOB } from '../../core/scavenge/explain.ts';
import type { RunFiles, RunSettings } from '../../core/scavenge/sources/run-settings.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { E_MS } from './notation.ts';
import { pointOf, type LogRecord } from './notation-log.ts';
import { STATE_OPTIONS, World, type WorldOptions } from './notation-world.ts';

export interface LearnerOptions extends WorldOptions {
  /** Label of the scavenge point; default: the end of the log. */
  readonly point?: string;
  readonly unsafe?: boolean;
  /** Default true: the tables are the reference's. */
  readonly keepsDeletedData?: boolean;
  readonly threshold?: number;
  /** In how many tables the index lies; 0: in a memtable. */
  readonly tablesCount?: number;
  /** Called at every checkpoint of a job. */
  readonly onCheckpoint?: (job: string, count: number) => void;
}

/** The jobs that learn and foresee, run by themselves on a log in notation. */
export class Learner {
  readonly world: World;
  readonly files: RunFiles;
  readonly settings: RunSettings;
  readonly jobs: InlineJobs;
  /** To which the next run is taken to go. */
  olderPoint: ResumedPoint | null = null;

  private constructor(world: World, files: RunFiles, settings: RunSettings, options: LearnerOptions) {
    this.world = world;
    this.files = files;
    this.settings = settings;
    const scavengeStates: ScavengeStates = {
      open: () => world.state(),
      openTemporary: (given) => new MemoryScavengeStates().openTemporary(given),
      storedCheckpoint: () => world.state().checkpoint(),
      isOnDisk: () => false,
      check: () => null,
      remove: () => {},
    };
    const watched =
      (name: string, job: Job): Job =>
      (args: never, context: JobContext) => {
        let count = 0;
        return job(args, {
          ...context,
          checkpoint: () => {
            options.onCheckpoint?.(name, ++count);
            return context.checkpoint();
          },
        });
      };
    const jobs = {
      ...JOBS,
      [ACCUMULATE_JOB]: accumulate,
      [CALCULATE_JOB]: calculate,
      [DRY_RUN_JOB]: dryRun,
      [EXPLAIN_JOB]: explain,
    } as Record<string, Job>;
    this.jobs = new InlineJobs({
      jobs: Object.fromEntries(Object.entries(jobs).map(([name, job]) => [name, watched(name, job)])),
      storage: world.storage,
      digests: nodeDigests,
      ids: new SeededIds(5),
      clock: world.clock,
      hasher: world.hasher,
      scavengeStates,
    });
  }

  static async create(text: string, options: LearnerOptions = {}): Promise<Learner> {
    return await Learner.of(await World.create(text, options), options);
  }

  /** On a log that has been written already. */
  static async of(world: World, options: LearnerOptions): Promise<Learner> {
    const chunks = (await world.files()).map(({ name }) => ({ name, ongoingBytes: null }));
    const end: ScavengePoint = { position: world.log.end, eventNumber: 0, effectiveNowMs: E_MS, threshold: 0 };
    const point = {
      ...(options.point === undefined ? end : pointOf(world.log, options.point)),
      ...(options.threshold !== undefined && { threshold: options.threshold }),
    };
    const settings: RunSettings = {
      point,
      unsafeIgnoreHardDelete: options.unsafe ?? false,
      keepsDeletedData: options.keepsDeletedData ?? true,
      state: STATE_OPTIONS,
      throttle: { percent: 100, elapsedMs: 0, restedMs: 0 },
    };
    const index = await writeIndex(world, options.tablesCount ?? 1);
    return new Learner(world, { chunkSize: world.log.chunkSize, chunks, ...index }, settings, options);
  }

  accumulate(fromChunk = 0, options: JobOptions = {}): Promise<AccumulateResult> {
    return this.jobs.run(
      ACCUMULATE_JOB,
      { files: this.files, settings: this.settings, fromChunk },
      options,
    ) as Promise<AccumulateResult>;
  }

  calculate(options: JobOptions = {}, after: StreamHandle | null = null): Promise<CalculateResult> {
    return this.jobs.run(
      CALCULATE_JOB,
      { files: this.files, settings: this.settings, after },
      options,
    ) as Promise<CalculateResult>;
  }

  dryRun(options: JobOptions = {}): Promise<DryRunReport> {
    return this.jobs.run(
      DRY_RUN_JOB,
      { files: this.files, settings: this.settings, scavengeId: 'dry' },
      options,
    ) as Promise<DryRunReport>;
  }

  explain(stream: string): Promise<Explanation> {
    return this.jobs.run(EXPLAIN_JOB, {
      files: this.files,
      settings: this.settings,
      stream,
      olderPoint: this.olderPoint,
    }) as Promise<Explanation>;
  }
}

/** Accumulates and calculates. */
export async function learn(text: string, options: LearnerOptions = {}): Promise<Learner> {
  const learner = await Learner.create(text, options);
  await learner.accumulate();
  await learner.calculate();
  return learner;
}

async function writeIndex(world: World, count: number): Promise<{ tables: string[]; memTables: MemTableColumns[] }> {
  const records = world.log.records.filter((record) => record.indexNumber >= 0);
  if (count === 0) return { tables: [], memTables: [columnsOf(world, records)] };
  const ids = new SeededIds(6);
  const jobs = new InlineJobs({ jobs: JOBS, storage: world.storage, digests: nodeDigests, ids, clock: world.clock });
  const tables: string[] = [];
  for (let i = 0; i < count; i++) {
    const path = `index/00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
    await world.storage.remove(path);
    const args: WriteTableArgs = {
      path,
      bloomPath: null,
      cacheDepth: 16,
      columns: columnsOf(
        world,
        records.filter((_, k) => Math.floor((k * count) / records.length) === i),
      ),
    };
    await jobs.run(WRITE_TABLE_JOB, args);
    tables.unshift(path);
  }
  return { tables, memTables: [] };
}

function columnsOf(world: World, records: readonly LogRecord[]): MemTableColumns {
  const table = new MemTable(1_000);
  for (const record of records) {
    const { hi, lo } = world.hash(record.stream);
    table.add(hi, lo, record.indexNumber, record.position);
  }
  return table.columns();
}
