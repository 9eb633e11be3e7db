import { HIT, isMiss, type Miss, type Outcome, untilHit } from '../base/step.ts';
import {
  PrepareFields,
  RecordFrame,
  recordTimestampAt,
  timestampMsAt,
  timestampTicksAt,
  TOMBSTONE,
} from '../log/format/records.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import { POINTS_STREAM } from './format/names.ts';
import { FloorSearch, type Lookup, StreamKey } from './lookup/lookup.ts';

/**
 * Up to this far behind the last record of the log, the clock is taken to have been set right: records get that
 * record's time until it has caught up.
 */
const CLOCK_STEP_MAX_MS = 300_000;
/**
 * A line about a clock that steps back further comes at most this often: writers of one log whose clocks differ step
 * back in turns.
 */
const WARNINGS_EVERY_MS = 60_000;

/** A time as records have it: milliseconds since 1970 and 100 ns ticks beyond, 0 to 9999. */
export interface RecordTimestamp {
  readonly ms: number;
  readonly ticks: number;
}

interface RecordTimeParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * Which time new records get: that of the clock, but never one before the last record of the log where the clock has
 * stepped back a little, since a time that falls makes `$maxAge` hide events that are alive. A larger step is believed:
 * one wrong clock, once it is set right, must not stamp everything that is written after it.
 */
export class RecordTime {
  readonly #lookup: Lookup;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #meter: Meter;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  #isKnown = false;
  /** Time of the last record of the log; of an empty log none. */
  #lastMs = -Infinity;
  #lastTicks = 0;
  /** Time of the newest scavenge point; null while it is not known, and of none -Infinity. */
  #pointMs: number | null = null;
  /** The step to this side of the last record has been counted. */
  #isTold = false;
  #warnedAtMs = -Infinity;

  constructor(lookup: Lookup, { clock, log, meter }: RecordTimeParts) {
    this.#lookup = lookup;
    this.#clock = clock;
    this.#log = log;
    this.#meter = meter;
  }

  /** The time of the log's last record is known, so that `next` can be asked. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The time of the last record of the log, from whichever writer. */
  note(ms: number, ticks: number): void {
    this.#isKnown = true;
    this.#lastMs = ms;
    this.#lastTicks = ticks;
    this.#isTold = false;
  }

  /** The time of the newest scavenge point, from whichever writer. */
  notePoint(ms: number): void {
    this.#pointMs = ms;
  }

  /** The log has gone on by records that this process has not seen. */
  forget(): void {
    this.#isKnown = false;
    this.#pointMs = null;
  }

  /** All is known that `latestMs` goes by. */
  get isLatestKnown(): boolean {
    return this.#isKnown && this.#pointMs !== null;
  }

  /**
   * The latest of the clock, the time of the last record, and that of the newest scavenge point: by which it is decided
   * what has expired, so that nothing counts that a scavenge may have removed.
   */
  get latestMs(): number {
    return Math.max(this.#clock.nowMs(), this.#lastMs, this.#pointMs ?? -Infinity);
  }

  /** Resolves when all is known that `latestMs` goes by. Rejects with what reading the log does. */
  async readyForLatest(): Promise<void> {
    while (!this.isLatestKnown) {
      await this.ready();
      if (this.#pointMs === null) await this.#loadPoint();
    }
  }

  async #loadPoint(): Promise<void> {
    const lookup = this.#lookup;
    const search = new FloorSearch(new StreamKey(POINTS_STREAM, lookup.index.hasher), TOMBSTONE - 1);
    await untilHit(() => {
      const outcome = search.step(lookup);
      // Another writer's point may have come meanwhile. The frame is valid only until another step is taken.
      if (!isMiss(outcome))
        this.#pointMs ??= outcome === HIT ? timestampMsAt(lookup.frame.bytes, lookup.fields.timestampAt) : -Infinity;
      return outcome;
    });
  }

  /** Time of the next record. */
  next(): RecordTimestamp {
    const now = this.#clock.nowMs();
    const ms = Math.floor(now);
    const ticks = Math.floor((now - ms) * 10_000);
    const isBehind = this.#isKnown && (ms < this.#lastMs || (ms === this.#lastMs && ticks < this.#lastTicks));
    if (!isBehind) return { ms, ticks };
    if (this.#lastMs - now <= CLOCK_STEP_MAX_MS) return { ms: this.#lastMs, ticks: this.#lastTicks };
    this.#tell(now);
    return { ms, ticks };
  }

  #tell(now: number): void {
    if (this.#isTold) return;
    this.#isTold = true;
    this.#meter.count('eventstore_clock_steps_back_total');
    const monotonicMs = this.#clock.monotonicMs();
    if (monotonicMs - this.#warnedAtMs < WARNINGS_EVERY_MS) return;
    this.#warnedAtMs = monotonicMs;
    const behindMs = Math.floor(this.#lastMs - now);
    this.#log.warn(
      `The clock is more than ${CLOCK_STEP_MAX_MS / 1_000} s behind the last record of the log, so new records get earlier times than older ones, and $maxAge keeps events longer or hides them sooner than it should: check the clocks of all writers to this log.`,
      { behindMs, clockMs: Math.floor(now), lastRecordMs: this.#lastMs },
    );
  }

  /**
   * Null when the time of the last record is known; else a promise to await before a group is begun. It rejects with
   * what reading the log does.
   */
  ready(): Promise<void> | null {
    if (this.#isKnown) return null;
    try {
      const outcome = this.#step();
      return isMiss(outcome) ? this.#read(outcome) : null;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #read(first: Miss): Promise<void> {
    await first;
    // Records of another writer may have given the time meanwhile.
    while (!this.#isKnown) {
      const outcome = this.#step();
      if (!isMiss(outcome)) return;
      await outcome;
    }
  }

  #step(): Outcome {
    const { reader } = this.#lookup;
    const frame = this.#frame;
    const outcome = reader.readBackward(reader.end, frame);
    if (isMiss(outcome)) return outcome;
    if (outcome === HIT) {
      const at = recordTimestampAt(frame, this.#fields);
      this.note(timestampMsAt(frame.bytes, at), timestampTicksAt(frame.bytes, at));
    } else this.note(-Infinity, 0);
    return outcome;
  }
}
