import { CronExpressionParser } from 'cron-parser';
import type { CronExpression } from 'cron-parser';
import type { Schedule } from '../core/ports/schedule.ts';

/** After this instant the library's calendar ends. */
const CALENDAR_END_MS = Date.UTC(9999, 11, 31);
const HOURS_A_DAY = 24;
/** No clock lies farther from UTC than this, and none was ever changed by more since 1970: Samoa skipped a day. */
const OFFSET_MS_MAX = 86_400_000;
/** The changes of a clock lie farther apart. */
const LOOK_MS = 14_400_000;

/**
 * Schedules: the library says which times of the calendar an expression names, and this file when a clock in a zone
 * shows them. A day matches when its day of month or its day of week does, if both are restricted. A time that a zone
 * skips comes as long after the skip began as it would have without one; one that it repeats comes once, the first
 * time, but for schedules of every hour, which go on in each.
 */
class CronSchedule implements Schedule {
  /** The last question: it is asked again and again until the time has come, and an answer takes a millisecond. */
  #asked = '';
  #answer: number | null = null;

  next(expression: string, afterMs: number, zone: string): number | null {
    const asked = `${expression}|${afterMs}|${zone}`;
    if (asked !== this.#asked) {
      this.#answer = nextOf(expression, afterMs, zone);
      this.#asked = asked;
    }
    return this.#answer;
  }
}

function nextOf(expression: string, afterMs: number, zone: string): number | null {
  if (!(afterMs < CALENDAR_END_MS)) return null;
  let next;
  try {
    next = new ZonedSchedule(CronExpressionParser.parse(expression, { tz: 'UTC' }), zone).next(Math.max(0, afterMs));
  } catch {
    // The 30th of February, or an expression that is none.
    return null;
  }
  return next < CALENDAR_END_MS ? next : null;
}

/** A time with one offset from UTC, [fromMs, toMs); `offsetBeforeMs` is that of the time before it. */
interface Period {
  readonly fromMs: number;
  readonly toMs: number;
  readonly offsetMs: number;
  readonly offsetBeforeMs: number;
}

/** "Wall" is what a clock in the zone shows, as if it were UTC. */
class ZonedSchedule {
  readonly #expression: CronExpression;
  readonly #format: Intl.DateTimeFormat;
  readonly #isEveryHour: boolean;

  constructor(expression: CronExpression, zone: string) {
    this.#expression = expression;
    this.#format = new Intl.DateTimeFormat('en', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    this.#isEveryHour = expression.fields.hour.values.length === HOURS_A_DAY;
  }

  /** Throws when there is none. */
  next(givenMs: number): number {
    let afterMs = givenMs;
    for (;;) {
      // Before this wall nothing comes, wherever the clock stands; from there the changes of the clock are looked for.
      const wallMs = this.#wallAfter(afterMs - 2 * OFFSET_MS_MAX);
      afterMs = Math.max(afterMs, wallMs - OFFSET_MS_MAX - 1);
      const untilMs = afterMs + 2 * OFFSET_MS_MAX;
      for (const period of this.#periods(afterMs - OFFSET_MS_MAX, untilMs)) {
        const comesMs = period.toMs > afterMs ? this.#nextIn(period, afterMs) : null;
        if (comesMs !== null) return comesMs;
      }
      afterMs = untilMs - 1;
    }
  }

  #nextIn({ fromMs, toMs, offsetMs, offsetBeforeMs }: Period, givenMs: number): number | null {
    const afterMs = Math.max(givenMs, fromMs - 1);
    // Up to the wall at which the clock was set back, the walls have been there once.
    const seenMs = this.#isEveryHour ? -Infinity : fromMs + offsetBeforeMs - 1;
    const comesMs = this.#wallAfter(Math.max(afterMs + offsetMs, seenMs)) - offsetMs;
    // Walls that were skipped come by the clock of before.
    const skippedMs =
      afterMs + offsetBeforeMs < fromMs + offsetMs ? this.#wallAfter(afterMs + offsetBeforeMs) : Infinity;
    const earliestMs = skippedMs < fromMs + offsetMs ? Math.min(comesMs, skippedMs - offsetBeforeMs) : comesMs;
    return earliestMs < toMs ? earliestMs : null;
  }

  /** The first wall strictly after this one that the expression names. */
  #wallAfter(wallMs: number): number {
    this.#expression.reset(new Date(wallMs));
    return this.#expression.next().getTime();
  }

  *#periods(fromMs: number, toMs: number): Generator<Period, void, undefined> {
    let begunMs = fromMs;
    let offsetMs = this.#offsetAt(fromMs);
    let offsetBeforeMs = offsetMs;
    for (let atMs = fromMs; atMs < toMs; atMs += LOOK_MS) {
      const nextMs = Math.min(atMs + LOOK_MS, toMs);
      const offsetNextMs = this.#offsetAt(nextMs);
      if (offsetNextMs === offsetMs) continue;
      const changeMs = this.#changeBetween(atMs, nextMs, offsetMs);
      yield { fromMs: begunMs, toMs: changeMs, offsetMs, offsetBeforeMs };
      begunMs = changeMs;
      offsetBeforeMs = offsetMs;
      offsetMs = offsetNextMs;
    }
    yield { fromMs: begunMs, toMs, offsetMs, offsetBeforeMs };
  }

  /** The first instant with another offset than at `beforeMs`. */
  #changeBetween(beforeMs: number, behindMs: number, offsetMs: number): number {
    let before = beforeMs;
    let behind = behindMs;
    while (behind - before > 1) {
      const middle = Math.floor((before + behind) / 2);
      if (this.#offsetAt(middle) === offsetMs) before = middle;
      else behind = middle;
    }
    return behind;
  }

  #offsetAt(ms: number): number {
    const shown: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
    for (const { type, value } of this.#format.formatToParts(ms)) shown[type] = value;
    const wallMs = Date.UTC(
      Number(shown.year),
      Number(shown.month) - 1,
      Number(shown.day),
      Number(shown.hour),
      Number(shown.minute),
      Number(shown.second),
    );
    return wallMs - Math.floor(ms / 1_000) * 1_000;
  }
}

export function createSchedule(): Schedule {
  return new CronSchedule();
}
