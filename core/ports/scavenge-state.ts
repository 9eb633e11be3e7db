import { SkuaError } from '../base/errors.ts';

/**
 * The scavenge database of one node. It is opened for the time of a run only, by the jobs of the run, and keeps what
 * earlier runs have learnt. All calls are synchronous; positions and event numbers are safe integers, TOMBSTONE stands
 * for 2^63-1, ages are seconds, timestamps are whole milliseconds since 1970 and a remainder of 0 to 9999 ticks of 100
 * ns, two numbers as in core/log/format/records.ts: one number of milliseconds with a fraction can't hold ticks apart.
 * (A fraction that is given all the same is taken as ticks, rounded.)
 *
 * What a stream's data are stored under: the 64-bit hash of its name, or the name itself when the hash is known to be
 * shared. Callers always give the name and its hash; the state decides.
 */
export interface ScavengeState {
  /** Begins the one transaction; an error when one is open. */
  begin(): void;
  /** Stores the checkpoint and everything since `begin`, all or nothing. */
  commit(checkpoint: ScavengeCheckpoint): void;
  /** Forgets everything since `begin`. */
  rollback(): void;

  /** Null when there is none, or it can't be read. */
  checkpoint(): ScavengeCheckpoint | null;

  /**
   * Registers a name for collision detection. Must come before any data of that name is read or stored. True when
   * a new collision was found by it.
   */
  register(name: string, hi: number, lo: number): boolean;
  /** True when the name's hash is known to be shared. */
  isCollision(name: string): boolean;
  /** True when some stream with this hash shares it. */
  isSharedHash(hi: number, lo: number): boolean;
  collisions(): readonly string[];

  /** Data of an original stream, or undefined. */
  original(name: string, hi: number, lo: number): OriginalStreamData | undefined;
  /** By hash only, for index entries whose hash is not shared. */
  originalByHash(hi: number, lo: number): OriginalStreamData | undefined;
  setOriginal(name: string, hi: number, lo: number, data: OriginalStreamData): void;
  metastream(name: string, hi: number, lo: number): MetastreamData | undefined;
  metastreamByHash(hi: number, lo: number): MetastreamData | undefined;
  setMetastream(name: string, hi: number, lo: number, data: MetastreamData): void;

  /**
   * Up to `limit` active original streams behind `after` (null: from the first): those stored by name first,
   * ascending, then those by hash, ascending by the hash as a signed number.
   */
  activeOriginals(after: StreamHandle | null, limit: number): readonly ActiveOriginal[];
  /**
   * Forgets the discard points of all original streams that are not tombstoned, and has them calculated anew: metadata
   * that were written since may keep what they let go.
   */
  forgetDiscardPoints(): void;
  /** Stores the outcome of a calculation under the handle it was read with. */
  setCalculated(handle: StreamHandle, status: StreamStatus, discardPoint: number, maybeDiscardPoint: number): void;

  /** Widens the range of prepare timestamps of a logical chunk. */
  setChunkTimeRange(chunk: number, minMs: number, maxMs: number, minTicks?: number, maxTicks?: number): void;
  chunkTimeRange(chunk: number): ChunkTimeRange | undefined;

  addWeight(chunk: number, weight: number): void;
  /** Sum over the logical chunks [first, last]. */
  weight(first: number, last: number): number;
  resetWeights(first: number, last: number): void;
  /** True when every stored weight is 0. */
  allWeightsZero(): boolean;

  deleteMetastreams(): void;
  /** Deletes original streams with one of these statuses. */
  deleteOriginals(statuses: readonly StreamStatus[]): void;

  close(): void;
}

/**
 * 1: calculated in each run. 2: tombstoned. 3: nothing more to do for it. 0 is what a row has before it was given one.
 */
export type StreamStatus = 0 | 1 | 2 | 3;
export const STATUS_ACTIVE = 1;
export const STATUS_ARCHIVED = 2;
export const STATUS_SPENT = 3;

export type StreamHandle =
  | { readonly kind: 'hash'; readonly hi: number; readonly lo: number }
  | { readonly kind: 'id'; readonly name: string };

export interface OriginalStreamData {
  readonly isTombstoned: boolean;
  /** Seconds. */
  readonly maxAge: number | null;
  readonly maxCount: number | null;
  readonly truncateBefore: number | null;
  /** First event number to keep. */
  readonly discardPoint: number;
  readonly maybeDiscardPoint: number;
  readonly status: StreamStatus;
}

export interface MetastreamData {
  readonly isTombstoned: boolean;
  readonly discardPoint: number;
}

export interface ActiveOriginal {
  readonly handle: StreamHandle;
  readonly data: OriginalStreamData;
}

/** Whole milliseconds and the ticks beyond them: compare the milliseconds first, then the ticks. */
export interface ChunkTimeRange {
  readonly minMs: number;
  readonly minTicks: number;
  readonly maxMs: number;
  readonly maxTicks: number;
}

export interface ScavengePoint {
  /** Log position of the point's record: the run covers what lies below. */
  readonly position: number;
  readonly eventNumber: number;
  /** Whole milliseconds since 1970. */
  readonly effectiveNowMs: number;
  /** 100 ns ticks beyond `effectiveNowMs`, 0 to 9999; absent for 0. */
  readonly effectiveNowTicks?: number;
  readonly threshold: number;
  /**
   * Of a checkpoint's point: the database has learnt of every stream that is soft-deleted, and runs ever since have
   * emptied their last events. Absent where the reference, an older version, or a run that keeps these data has written
   * the checkpoint: rows of such streams may be gone then, though their events still have their data.
   */
  readonly emptiesDeleted?: true;
}

export type ScavengeStage =
  | 'Accumulating'
  | 'Calculating'
  | 'ExecutingChunks'
  | 'MergingChunks'
  | 'ExecutingIndex'
  | 'Cleaning'
  | 'Done';

export interface ScavengeCheckpoint {
  readonly point: ScavengePoint;
  readonly stage: ScavengeStage;
  /** Accumulating and ExecutingChunks: last logical chunk done; undefined for none. */
  readonly doneChunk?: number;
  /** Calculating: last stream done; undefined for none. */
  readonly doneStream?: StreamHandle;
}

export interface ScavengeStateOptions {
  /** 512 to 65 536, a power of two. */
  readonly pageSizeBytes: number;
  /** Cache of one connection in bytes. */
  readonly cacheBytes: number;
  /** Hash users remembered in memory. */
  readonly hashUsersCacheEntries: number;
}

/** Opens the scavenge database of the node, or one that vanishes when it is closed. */
export interface ScavengeStates {
  /**
   * Opens `index/scavenging/scavenging.db`, creating it when it is absent. Several may be open at once in several
   * threads, of which one writes at a time. Throws `scavenge_state_invalid` when the file is damaged, of another schema
   * or of another page size; its message adds that the file may be deleted.
   */
  open(options: ScavengeStateOptions): ScavengeState;
  /**
   * The checkpoint in the database, without creating one where there is none. Null when there is no checkpoint, or it
   * can't be read; throws as `open` does.
   */
  storedCheckpoint(options: ScavengeStateOptions): ScavengeCheckpoint | null;
  /** An empty state that never touches the data directory and is gone when it is closed: for a dry run. */
  openTemporary(options: ScavengeStateOptions): ScavengeState;
  /** Whether there is a database on a disk, whose bytes may change there. */
  isOnDisk(): boolean;
  /**
   * Looks for damage with the checks that the database itself has: what is wrong in words, at most a few, empty for
   * none. Null where there is none on a disk. `thorough` compares indexes with their tables, too, takes several times
   * as long, and changes nothing; `quick` takes about as long as reading the file. The database is not open meanwhile.
   * The bytes of a value that changed within their bounds are found by no such check.
   */
  check(depth: 'quick' | 'thorough'): readonly string[] | null;
  /**
   * Removes the database, which is a cache: the next `open` makes a new one, and the next run learns everything anew.
   * The database is not open meanwhile.
   */
  remove(): void;
}

/** What every implementation of the scavenge state does alike. */

/** Splits milliseconds that came with a fraction, and carries ticks beyond a millisecond. */
export function wholeTime(ms: number, ticks: number): { readonly ms: number; readonly ticks: number } {
  const whole = Math.floor(ms);
  const all = Math.round((ms - whole) * 10_000) + ticks;
  return { ms: whole + Math.floor(all / 10_000), ticks: all % 10_000 };
}

/**
 * Order of texts by code points, which is that of their UTF-8 bytes. JavaScript's own order puts surrogates too low.
 */
export function compareCodePoints(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const bothHigh = x >= 0xd800 && y >= 0xd800;
    // From here on surrogates stand for code points above all single units.
    return bothHigh && isSurrogate(x) !== isSurrogate(y) ? (isSurrogate(x) ? 1 : -1) : x - y;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

/** A defect of the caller. */
export function misused(what: string): SkuaError {
  return new SkuaError('scavenge_failed', `${what} in the scavenge database: this is a defect.`);
}

/** For one of so many connections, which share the cache. */
export function stateOptionsOf(config: ScavengeStateOptions, connections: number): ScavengeStateOptions {
  return {
    pageSizeBytes: config.pageSizeBytes,
    cacheBytes: Math.floor(config.cacheBytes / connections),
    hashUsersCacheEntries: config.hashUsersCacheEntries,
  };
}
