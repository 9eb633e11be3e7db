import { HIT } from '../../base/step.ts';
import type { ChunkTable } from '../../log/api.ts';
import { scanLog } from '../../log/chunk-table/chunk-table.ts';
import { COMMIT, RecordFrame, SYSTEM } from '../../log/format/records.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { AttributeIntake } from '../intake/intake.ts';
import { epochOf } from '../format/anchor.ts';
import { type AttributeIndex, sinksOf } from './attribute-index.ts';

/** Other work gets a turn this often. */
const SLICE_MS = 5;
/** Records between two looks at the clock: some tens of microseconds. */
const LOOK_RECORDS = 64;
/**
 * An index that is no further behind is brought up to the log's end record by record, without a wait where the cache
 * has them: so that it gets there while the log grows.
 */
const NEAR_BYTES = 1_048_576;
/** Between two lines in the log about how far a long building is. */
const REPORT_MS = 60_000;

interface CatchingUpParts {
  readonly table: ChunkTable;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

interface CatchingUpCalls {
  /** Something else comes first. */
  readonly isStale: () => boolean;
  /** All are live; called in the step in which they have got there. */
  readonly onLive: () => void;
}

/** Thrown by the visitor of a scan to end it. */
const STOP = new Error('enough was read');

/**
 * Brings indexes that are behind up to the log's end by reading the log, in short slices between which other work of
 * the process gets its turn.
 */
export class CatchingUp {
  readonly #parts: CatchingUpParts;
  readonly #frame = new RecordFrame();
  #sliceStartMs = 0;
  #sinceLook = 0;
  #reportedMs = 0;

  constructor(parts: CatchingUpParts) {
    this.#parts = parts;
  }

  /**
   * Ends when all are live, or when `isStale` or a stop says that something else comes first. Rejects with what reading
   * the log or writing tables rejects with.
   */
  async run(indexes: readonly AttributeIndex[], { isStale, onLive }: CatchingUpCalls): Promise<void> {
    const { table, clock, log, signal } = this.#parts;
    const isOver = (): boolean => signal.aborted || isStale();
    const intake = new AttributeIntake(sinksOf(indexes));
    const startMs = clock.monotonicMs();
    const from = this.#behindFrom(indexes);
    const isLong = table.end - from > NEAR_BYTES;
    if (isLong)
      log.info('Attribute indexes are being built from the log.', {
        indexes: indexes.map(({ name }) => name),
        from,
        logEnd: table.end,
      });
    this.#sliceStartMs = this.#reportedMs = startMs;
    for (const index of indexes) await index.ready();
    while (!isOver()) {
      const at = Math.min(...indexes.map(({ resumesAt }) => resumesAt));
      if (table.end - at > NEAR_BYTES) await this.#scan(at, indexes, intake, isOver);
      else if (await this.#follow(at, indexes, intake, { isStale: isOver, onLive })) break;
    }
    if (isLong && indexes.every(({ isLive }) => isLive))
      log.info('Attribute indexes are up to date with the log.', {
        indexes: indexes.map(({ name }) => name),
        logEnd: table.end,
        elapsedMs: Math.round(clock.monotonicMs() - startMs),
      });
  }

  #behindFrom(indexes: readonly AttributeIndex[]): number {
    return Math.min(...indexes.map(({ coveredTo }) => coveredTo));
  }

  /** Reads on from where all have what lies before, to what is the log's end then. */
  async #scan(
    from: number,
    indexes: readonly AttributeIndex[],
    intake: AttributeIntake,
    isOver: () => boolean,
  ): Promise<void> {
    const { table } = this.#parts;
    try {
      await scanLog(
        table,
        from,
        (frame) => {
          // Behind the end that readers see there may be records that are committed by none.
          if (frame.position >= table.end) throw STOP;
          const waiting = this.#take(frame, indexes, intake);
          if (waiting !== undefined || ++this.#sinceLook < LOOK_RECORDS) return waiting;
          return this.#look(isOver) ?? undefined;
        },
        async () => {
          for (const index of indexes) {
            await index.ready();
            await index.saveSome();
          }
          this.#report(indexes, from);
        },
        true,
      );
    } catch (error) {
      if (error !== STOP) throw error;
    }
  }

  /** Null while the slice goes on. */
  #look(isOver: () => boolean): Promise<void> | null {
    const { clock } = this.#parts;
    this.#sinceLook = 0;
    if (clock.monotonicMs() - this.#sliceStartMs < SLICE_MS) return null;
    return clock.yield().then(() => {
      if (isOver()) throw STOP;
      this.#sliceStartMs = clock.monotonicMs();
    });
  }

  #take(frame: RecordFrame, indexes: readonly AttributeIndex[], intake: AttributeIntake): void | Promise<void> {
    const { table } = this.#parts;
    const type = frame.bytes[frame.at];
    if (type === SYSTEM) for (const index of indexes) index.noteEpoch(epochOf(frame));
    const { next } = frame;
    const waiting = intake.visit(frame, table);
    if (type === COMMIT && waiting !== undefined) return waiting.then(() => cover(indexes, next));
    cover(indexes, next);
  }

  /** True when all are live; false to be called again. */
  async #follow(
    at: number,
    indexes: readonly AttributeIndex[],
    intake: AttributeIntake,
    { isStale, onLive }: CatchingUpCalls,
  ): Promise<boolean> {
    const { table } = this.#parts;
    const frame = this.#frame;
    let position = at;
    for (;;) {
      if (indexes.some((index) => index.isFull)) for (const index of indexes) await index.ready();
      // Nothing is awaited from here to where they are live.
      if (position >= table.end) break;
      const outcome = table.readForward(position, frame);
      if (typeof outcome === 'object') {
        await outcome;
        continue;
      }
      if (outcome !== HIT) break;
      position = frame.next;
      const waiting = this.#take(frame, indexes, intake);
      if (waiting !== undefined) await waiting;
      if (++this.#sinceLook < LOOK_RECORDS) continue;
      const look = this.#look(isStale);
      if (look === null) continue;
      try {
        await look;
      } catch (error) {
        if (error !== STOP) throw error;
        return false;
      }
    }
    cover(indexes, table.end);
    for (const index of indexes) index.goLive();
    onLive();
    return true;
  }

  #report(indexes: readonly AttributeIndex[], from: number): void {
    const { clock, log, table } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#reportedMs < REPORT_MS) return;
    this.#reportedMs = nowMs;
    const coveredTo = this.#behindFrom(indexes);
    log.info('Attribute indexes are being built.', {
      indexes: indexes.map(({ name }) => name),
      coveredTo,
      logEnd: table.end,
      percent: Math.floor(((coveredTo - from) / Math.max(1, table.end - from)) * 100),
    });
  }
}

function cover(indexes: readonly AttributeIndex[], position: number): void {
  for (const index of indexes) index.cover(position);
}
