import type { MemTableColumns } from '../../index/api.ts';
import type { ScavengePoint, ScavengeStateOptions } from '../../ports/scavenge-state.ts';
import { type Retention, type RetentionLimits, StoredRetention } from '../../streams/format/retention.ts';

/**
 * What the jobs of a run are given; structured-cloneable. All files named are complete and immutable, so that a worker
 * opens them for itself.
 */
export interface RunFiles {
  /** Bytes of a logical chunk. */
  readonly chunkSize: number;
  /** The chunk files in force, in order of the log, at least up to the scavenge point. */
  readonly chunks: readonly ChunkFile[];
  /** Paths of the index tables, newest first. */
  readonly tables: readonly string[];
  /** Entries that are in no table yet. Empty for a run, before which the memtable was written; a dry run has them. */
  readonly memTables: readonly MemTableColumns[];
}

export interface ChunkFile {
  readonly name: string;
  /** Bytes of data of a chunk that is still being written; null for a complete one. */
  readonly ongoingBytes: number | null;
}

/** Settings of a run that its jobs need. */
export interface RunSettings {
  readonly point: ScavengePoint;
  readonly unsafeIgnoreHardDelete: boolean;
  readonly keepsDeletedData: boolean;
  readonly state: ScavengeStateOptions;
  readonly throttle: ThrottleStart;
}

/** Sets the rules of one stream, by its metadata and the time of the run's point. */
export function setRetention(
  retention: Retention,
  limits: RetentionLimits,
  isTombstoned: boolean,
  lastNumber: number,
  { point }: RunSettings,
): void {
  retention.setForScavenge(limits, isTombstoned, lastNumber, point.effectiveNowMs, point.effectiveNowTicks ?? 0);
}

/** The rules by which records and index entries go in the run. */
export function storedRetention({ point, unsafeIgnoreHardDelete, keepsDeletedData }: RunSettings): StoredRetention {
  return new StoredRetention(
    point.effectiveNowMs,
    point.effectiveNowTicks ?? 0,
    unsafeIgnoreHardDelete,
    keepsDeletedData,
  );
}

/** Where the throttle stands when a job begins. */
interface ThrottleStart {
  /** 1 to 100. */
  readonly percent: number;
  /** Since the run was created, pauses included. */
  readonly elapsedMs: number;
  /** Of it, spent in pauses. */
  readonly restedMs: number;
}

/** Shorter pauses are saved up. */
const PAUSE_MS_MIN = 1_000;

/** What a throttle needs of the world; a `JobContext` has both. */
interface ThrottleWorld {
  monotonicMs(): number;
  /** Rejects with `aborted` when the run is to stop. */
  sleep(ms: number): Promise<void>;
}

/** Keeps the share of active time over the whole run at `percent`. */
export class Throttle {
  readonly #world: ThrottleWorld;
  readonly #restShare: number;
  readonly #createdMs: number;
  restedMs: number;

  constructor(start: ThrottleStart, world: ThrottleWorld) {
    this.#world = world;
    this.#restShare = 1 - start.percent / 100;
    this.#createdMs = world.monotonicMs() - start.elapsedMs;
    this.restedMs = start.restedMs;
  }

  /** Where another throttle of the same run would begin now. */
  start(percent: number): ThrottleStart {
    return { percent, elapsedMs: this.#world.monotonicMs() - this.#createdMs, restedMs: this.restedMs };
  }

  /** Pauses when a second or more is due. Returns at once otherwise, without a promise. */
  rest(): Promise<void> | undefined {
    if (this.#restShare <= 0) return undefined;
    const elapsedMs = this.#world.monotonicMs() - this.#createdMs;
    const dueMs = (this.#restShare * elapsedMs - this.restedMs) / (1 - this.#restShare);
    if (dueMs < PAUSE_MS_MIN) return undefined;
    this.restedMs += dueMs;
    return this.#world.sleep(dueMs);
  }
}
