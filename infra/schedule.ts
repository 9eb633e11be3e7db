import { CronExpressionParser } from 'cron-parser';
import type { Schedule } from '../core/ports/schedule.ts';

/** After this instant the library's calendar ends. */
const CALENDAR_END_MS = Date.UTC(9999, 11, 31);

/**
 * Schedules by cron-parser: a day matches when its day of month or its day of week does, if both are restricted; an hour that
 * a zone skips counts as the one that follows, and one that it repeats comes once.
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
    next = CronExpressionParser.parse(expression, { currentDate: new Date(Math.max(0, afterMs)), tz: zone }).next().getTime();
  } catch {
    // The 30th of February, or an expression that is none.
    return null;
  }
  return next < CALENDAR_END_MS ? next : null;
}

export function createSchedule(): Schedule {
  return new CronSchedule();
}
