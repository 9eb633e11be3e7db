import type { DatabaseSync } from 'node:sqlite';
import type { StreamHasher } from '../../core/base/stream-hash.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { misused, wholeTime } from '../../core/ports/scavenge-state.ts';
import type {
  ActiveOriginal,
  ChunkTimeRange,
  MetastreamData,
  OriginalStreamData,
  ScavengeCheckpoint,
  ScavengeState,
  StreamHandle,
  StreamStatus,
} from '../../core/ports/scavenge-state.ts';
import { checkpointText, parseCheckpoint } from './checkpoint-json.ts';
import { guarded, stateError } from './sqlite-errors.ts';
import { prepareStatements, type Statements } from './scavenge-tables.ts';
import { StreamRegistry } from './stream-registry.ts';

/** 2^63-1, which TOMBSTONE stands for. */
const MAX = 9_223_372_036_854_775_807n;
/** Halves of the smallest signed hash. */
const FIRST_HASH = { hi: 0x8000_0000, lo: 0 };
/** Milliseconds between 0001-01-01 and 1970-01-01. */
const YEAR_1_MS = 62_135_596_800_000;

interface OriginalRow {
  readonly isTombstoned: number;
  readonly status: StreamStatus;
  readonly maxAge: number | null;
  readonly maxCount: number | null;
  readonly truncateBefore: number | null;
  readonly discardPoint: number;
  readonly maybeDiscardPoint: number;
}
interface MetastreamRow {
  readonly isTombstoned: number;
  readonly discardPoint: number | null;
}

/** One connection to a scavenge database. */
export class SqliteScavengeState implements ScavengeState {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;
  readonly #streams: StreamRegistry;
  #isOpen = false;

  constructor(db: DatabaseSync, hasher: StreamHasher, hashUsersCacheEntries: number) {
    this.#db = db;
    this.#sql = prepareStatements(db);
    this.#streams = new StreamRegistry(this.#sql, hasher, hashUsersCacheEntries);
  }

  begin(): void {
    if (this.#isOpen) throw misused('A transaction was begun while one was open');
    guarded(() => this.#sql.begin.run());
    this.#isOpen = true;
  }

  commit(checkpoint: ScavengeCheckpoint): void {
    if (!this.#isOpen) throw misused('A commit came without a transaction');
    guarded(() => {
      this.#sql.setCheckpoint.run(checkpointText(checkpoint));
      this.#sql.commit.run();
    });
    this.#isOpen = false;
  }

  rollback(): void {
    if (!this.#isOpen) throw misused('A rollback came without a transaction');
    this.#isOpen = false;
    guarded(() => {
      // Some errors, as of a full disk, have ended the transaction already.
      if (this.#db.isTransaction) this.#sql.rollback.run();
      this.#streams.reload();
    });
  }

  checkpoint(): ScavengeCheckpoint | null {
    const row = guarded(() => this.#sql.checkpoint.get()) as { value: string } | undefined;
    return row === undefined ? null : parseCheckpoint(row.value);
  }

  register(name: string, hi: number, lo: number): boolean {
    try {
      return this.#streams.register(name, hi, lo);
    } catch (error) {
      throw stateError(error);
    }
  }

  isCollision(name: string): boolean {
    return this.#streams.isCollision(name);
  }
  isSharedHash(hi: number, lo: number): boolean {
    return this.#streams.isSharedHash(hi, lo);
  }
  collisions(): readonly string[] {
    return guarded(() => this.#streams.collisions());
  }

  original(name: string, hi: number, lo: number): OriginalStreamData | undefined {
    if (!this.isCollision(name)) return this.originalByHash(hi, lo);
    return originalOf(guarded(() => this.#sql.originalByName.get(name)));
  }

  originalByHash(hi: number, lo: number): OriginalStreamData | undefined {
    try {
      return originalOf(this.#sql.original.get(hi, lo));
    } catch (error) {
      throw stateError(error);
    }
  }

  setOriginal(name: string, hi: number, lo: number, data: OriginalStreamData): void {
    const { isTombstoned, maxAge, maxCount, truncateBefore, discardPoint, maybeDiscardPoint, status } = data;
    const row = [
      Number(isTombstoned),
      stored(maxAge),
      stored(maxCount),
      stored(truncateBefore),
      stored(discardPoint),
      stored(maybeDiscardPoint),
      status,
    ] as const;
    guarded(() =>
      this.isCollision(name)
        ? this.#sql.setOriginalByName.run(name, ...row)
        : this.#sql.setOriginal.run(hi, lo, ...row),
    );
  }

  metastream(name: string, hi: number, lo: number): MetastreamData | undefined {
    if (!this.isCollision(name)) return this.metastreamByHash(hi, lo);
    return metastreamOf(guarded(() => this.#sql.metastreamByName.get(name)));
  }

  metastreamByHash(hi: number, lo: number): MetastreamData | undefined {
    try {
      return metastreamOf(this.#sql.metastream.get(hi, lo));
    } catch (error) {
      throw stateError(error);
    }
  }

  setMetastream(name: string, hi: number, lo: number, data: MetastreamData): void {
    const isTombstoned = Number(data.isTombstoned);
    const discardPoint = data.discardPoint === 0 ? null : stored(data.discardPoint);
    guarded(() =>
      this.isCollision(name)
        ? this.#sql.setMetastreamByName.run(name, isTombstoned, discardPoint)
        : this.#sql.setMetastream.run(hi, lo, isTombstoned, discardPoint),
    );
  }

  activeOriginals(after: StreamHandle | null, limit: number): readonly ActiveOriginal[] {
    const found: ActiveOriginal[] = [];
    return guarded(() => {
      if (after?.kind !== 'hash') {
        for (const row of this.#sql.activeBehindName.iterate(after?.name ?? '', limit)) {
          found.push({ handle: { kind: 'id', name: row.name as string }, data: originalOf(row)! });
        }
      }
      if (found.length === limit) return found;
      const from = after?.kind === 'hash' ? after : null;
      const { hi, lo } = from ?? FIRST_HASH;
      for (const row of this.#sql.activeFrom.iterate(hi, lo, from === null ? 0 : 1, limit - found.length)) {
        found.push({
          handle: { kind: 'hash', hi: (row.hi as number) >>> 0, lo: row.lo as number },
          data: originalOf(row)!,
        });
      }
      return found;
    });
  }

  forgetDiscardPoints(): void {
    guarded(() => {
      this.#sql.forgetDiscardPoints.run();
      this.#sql.forgetNamedDiscardPoints.run();
    });
  }

  setCalculated(handle: StreamHandle, status: StreamStatus, discardPoint: number, maybeDiscardPoint: number): void {
    const dp = stored(discardPoint);
    const mdp = stored(maybeDiscardPoint);
    guarded(() =>
      handle.kind === 'id'
        ? this.#sql.setCalculatedByName.run(status, dp, mdp, handle.name)
        : this.#sql.setCalculated.run(status, dp, mdp, handle.hi, handle.lo),
    );
  }

  setChunkTimeRange(chunk: number, minMs: number, maxMs: number, minTicks = 0, maxTicks = 0): void {
    const min = wholeTime(minMs, minTicks);
    const max = wholeTime(maxMs, maxTicks);
    guarded(() => this.#sql.widenTimeRange.run(chunk, min.ms + YEAR_1_MS, min.ticks, max.ms + YEAR_1_MS, max.ticks));
  }

  chunkTimeRange(chunk: number): ChunkTimeRange | undefined {
    const row = guarded(() => this.#sql.timeRange.get(chunk)) as unknown as ChunkTimeRange | undefined;
    if (row === undefined) return undefined;
    return {
      minMs: row.minMs - YEAR_1_MS,
      minTicks: row.minTicks,
      maxMs: row.maxMs - YEAR_1_MS,
      maxTicks: row.maxTicks,
    };
  }

  addWeight(chunk: number, weight: number): void {
    guarded(() => this.#sql.addWeight.run(chunk, weight));
  }
  weight(first: number, last: number): number {
    return (guarded(() => this.#sql.weight.get(first, last)) as { sum: number }).sum;
  }
  resetWeights(first: number, last: number): void {
    guarded(() => this.#sql.resetWeights.run(first, last));
  }
  allWeightsZero(): boolean {
    return guarded(() => this.#sql.anyWeight.get()) === undefined;
  }

  deleteMetastreams(): void {
    guarded(() => {
      this.#sql.deleteMetastreams.run();
      this.#sql.deleteNamedMetastreams.run();
    });
  }

  deleteOriginals(statuses: readonly StreamStatus[]): void {
    guarded(() => {
      for (const status of statuses) {
        this.#sql.deleteOriginals.run(status);
        this.#sql.deleteNamedOriginals.run(status);
      }
    });
  }

  /** Closing rolls an open transaction back; the last connection leaves nothing but the database itself. */
  close(): void {
    if (this.#db.isOpen) guarded(() => this.#db.close());
  }
}

function stored(value: number | null): number | bigint | null {
  return value === TOMBSTONE ? MAX : value;
}

function originalOf(row: unknown): OriginalStreamData | undefined {
  if (row === undefined) return undefined;
  const { isTombstoned, maxAge, maxCount, truncateBefore, discardPoint, maybeDiscardPoint, status } =
    row as OriginalRow;
  return {
    isTombstoned: isTombstoned !== 0,
    maxAge,
    maxCount,
    truncateBefore,
    discardPoint,
    maybeDiscardPoint,
    status,
  };
}

function metastreamOf(row: unknown): MetastreamData | undefined {
  if (row === undefined) return undefined;
  const { isTombstoned, discardPoint } = row as MetastreamRow;
  return { isTombstoned: isTombstoned !== 0, discardPoint: discardPoint ?? 0 };
}
