import { isSkuaError, SkuaError } from '../base/errors.ts';
import type { JobProgress } from '../ports/jobs.ts';
import {
  type ScavengeCheckpoint,
  type ScavengePoint,
  type ScavengeState,
  stateOptionsOf,
} from '../ports/scavenge-state.ts';
import type { ResumedPoint, ScavengeDeps } from './api.ts';
import type { SwitchParts } from './chunk-switch.ts';
import type { RunHistory } from './history/history.ts';
import type { RunLog } from './run-log.ts';
import type { RunProgress } from './run-progress.ts';
import { type ChunkFile, type RunFiles, type RunSettings, Throttle } from './sources/run-settings.ts';

/** How often a job begins again because files were replaced while it opened them. */
const FILE_TRIES_MAX = 10;

interface RunParts {
  readonly deps: ScavengeDeps;
  readonly scavengeId: string;
  readonly threads: number;
  readonly throttlePercent: number;
  readonly signal: AbortSignal;
  readonly progress: RunProgress;
  readonly history: RunHistory;
  readonly lines: RunLog;
  /** Told the older point to which the run goes, null for a new one. */
  readonly onDecided: (olderPoint: ResumedPoint | null) => void;
}

function abortedError(): SkuaError {
  return new SkuaError('aborted', 'The scavenge was stopped.');
}

/** The files in force. `withMemory` also lists what is not in complete files yet. */
function filesOf({ table, index }: Pick<ScavengeDeps['data'], 'table' | 'index'>, withMemory: boolean): RunFiles {
  const chunks: ChunkFile[] = [];
  for (const chunk of table.all()) {
    if (chunk.isCompleted || withMemory)
      chunks.push({ name: chunk.name, ongoingBytes: chunk.isCompleted ? null : chunk.physicalBytes });
  }
  const levels: string[][] = [];
  for (const { file, level } of index.tables()) (levels[level] ??= []).unshift(file);
  return { chunkSize: table.chunkSize, chunks, tables: levels.flat(), memTables: withMemory ? index.memTables() : [] };
}

/** Lists the files and begins the work with them, again when one of them was replaced before it could be opened. */
export async function withFiles<T>(
  data: Pick<ScavengeDeps['data'], 'table' | 'index'>,
  withMemory: boolean,
  attempt: (files: RunFiles) => Promise<T>,
  onAgain?: (file: string | undefined) => void,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(filesOf(data, withMemory));
    } catch (error) {
      if (!isSkuaError(error, 'file_not_found') || tries === FILE_TRIES_MAX) throw error;
      onAgain?.(error.data.path);
    }
  }
}

/** Commits a checkpoint and what `change` does, all or nothing. */
export function commit(state: ScavengeState, checkpoint: ScavengeCheckpoint, change?: () => void): void {
  state.begin();
  try {
    change?.();
    state.commit(checkpoint);
  } catch (error) {
    try {
      state.rollback();
    } catch {
      // What failed first says more.
    }
    throw error;
  }
}

/** What the phases of a run share. */
export class RunContext {
  readonly deps: ScavengeDeps;
  readonly threads: number;
  readonly signal: AbortSignal;
  readonly progress: RunProgress;
  readonly history: RunHistory;
  readonly lines: RunLog;
  readonly throttle: Throttle;
  readonly #throttlePercent: number;
  #point: ScavengePoint | null = null;
  readonly #onDecided: (olderPoint: ResumedPoint | null) => void;
  /** Prepares in the logical chunks that were accumulated in this run. */
  readonly recordCounts = new Map<number, number>();
  /** A run that was to begin afresh has done so: what goes on with it must not do it once more. */
  isAfresh = false;

  constructor(parts: RunParts) {
    const { deps, signal, lines } = parts;
    this.deps = deps;
    this.threads = parts.threads;
    this.signal = signal;
    this.progress = parts.progress;
    this.history = parts.history;
    this.lines = lines;
    this.#throttlePercent = parts.throttlePercent;
    this.#onDecided = parts.onDecided;
    this.throttle = new Throttle(
      { percent: parts.throttlePercent, elapsedMs: 0, restedMs: 0 },
      {
        monotonicMs: () => deps.ports.clock.monotonicMs(),
        sleep: async (ms) => {
          lines.pauseBegins(ms);
          await deps.ports.clock.sleep(ms, signal);
          this.check();
          lines.pauseEnded(ms);
        },
      },
    );
  }

  /** The scavenge point; known once the run has begun. */
  get point(): ScavengePoint {
    if (this.#point === null)
      throw new SkuaError('scavenge_failed', 'The scavenge point was asked for before it was known: this is a defect');
    return this.#point;
  }
  set point(point: ScavengePoint) {
    this.#point = point;
  }

  decided(olderPoint: ResumedPoint | null): void {
    this.progress.olderPoint = olderPoint;
    this.#onDecided(olderPoint);
  }

  /** Throws `aborted` when the run is to end. */
  check(): void {
    if (this.signal.aborted) throw abortedError();
  }

  /** As `promise`, which goes on alone when the run is to end: then `aborted` is thrown. */
  async orAborted<T>(promise: Promise<T>): Promise<T> {
    // When the run has ended already, no other code meets the failure of `promise`.
    promise.catch(() => {});
    this.check();
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(abortedError());
    this.signal.addEventListener('abort', onAbort);
    try {
      return await Promise.race([promise, aborted.promise]);
    } finally {
      this.signal.removeEventListener('abort', onAbort);
    }
  }

  /** What the next job is given; `jobs` share the cache. */
  settings(jobs = 1): RunSettings {
    return {
      point: this.point,
      unsafeIgnoreHardDelete: this.deps.config.unsafeIgnoreHardDelete,
      keepsDeletedData: this.deps.config.keepsDeletedData,
      state: stateOptionsOf(this.deps.config, jobs),
      throttle: this.throttle.start(this.#throttlePercent),
    };
  }

  /** Runs a job that is ended with the run. */
  job<T>(name: string, args: unknown, onProgress: (progress: JobProgress) => void, signal = this.signal): Promise<T> {
    return this.deps.ports.jobs.run(name, args, { signal, onProgress }) as Promise<T>;
  }

  /** What a chunk is put in force with. */
  switchParts(): SwitchParts {
    const {
      data: { table, cache, proofs = null },
      ports: { storage },
    } = this.deps;
    return {
      storage,
      cache,
      table,
      proofs,
      signal: this.signal,
      onLeftover: (file, error) => this.lines.leftover(file, error),
    };
  }

  /** Opens the state for light work on this thread. */
  async withState<T>(work: (state: ScavengeState) => T | Promise<T>): Promise<T> {
    const state = this.deps.ports.states.open(stateOptionsOf(this.deps.config, this.threads + 1));
    try {
      return await work(state);
    } finally {
      state.close();
    }
  }
}
