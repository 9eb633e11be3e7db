import { describe, expect, test } from 'vitest';
import { createSchedule } from '../../infra/cron-schedule.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Schedules and changes below are at whole ones. */
const STEP_MS = 5 * MINUTE_MS;
/** No zone changes twice in so short a time. */
const LOOK_MS = 5 * DAY_MS;
/** Samoa skipped a day in the first; Brazil changed at midnight, and North Korea its offset, in the second. */
const YEARS = [2011, 2018, 2024];

const schedule = createSchedule();

interface Change {
  readonly zone: string;
  readonly atMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

function offsets(zone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
  return (ms) => Date.parse(`${format.format(ms).replace(' ', 'T')}Z`) - ms;
}

/** One for all zones that change alike. */
function changes(): Change[] {
  const found = new Map<string, Change>();
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    const offsetAt = offsets(zone);
    for (const year of YEARS) {
      for (
        let lookMs = Date.UTC(year, 0, 1), fromMs = offsetAt(lookMs);
        lookMs < Date.UTC(year, 11, 31);
        lookMs += LOOK_MS
      ) {
        const toMs = offsetAt(lookMs + LOOK_MS);
        if (toMs === fromMs) continue;
        let steps = 0;
        for (let width = LOOK_MS / STEP_MS; width > 0; width = Math.floor(width / 2))
          while (offsetAt(lookMs + (steps + width) * STEP_MS) === fromMs) steps += width;
        const atMs = lookMs + (steps + 1) * STEP_MS;
        found.set(`${atMs} ${fromMs} ${toMs}`, { zone, atMs, fromMs, toMs });
        fromMs = toMs;
      }
    }
  }
  return [...found.values()];
}

type Matches = (wall: Date) => boolean;

const SCHEDULES: readonly (readonly [expression: string, isEveryHour: boolean, matches: Matches])[] = [
  ['30 2 * * *', false, (wall) => wall.getUTCMinutes() === 30 && wall.getUTCHours() === 2],
  [
    '10,50 0,1,2,3,23 * * *',
    false,
    (wall) => [10, 50].includes(wall.getUTCMinutes()) && [0, 1, 2, 3, 23].includes(wall.getUTCHours()),
  ],
  ['0 */6 * * *', false, (wall) => wall.getUTCMinutes() === 0 && wall.getUTCHours() % 6 === 0],
  ['0 0 30 * *', false, (wall) => wall.getUTCMinutes() === 0 && wall.getUTCHours() === 0 && wall.getUTCDate() === 30],
  ['45 1 * * 0', false, (wall) => wall.getUTCMinutes() === 45 && wall.getUTCHours() === 1 && wall.getUTCDay() === 0],
  ['*/15 * * * *', true, (wall) => wall.getUTCMinutes() % 15 === 0],
];

/** What the clock shows a day before and behind a change. */
function wallsAround({ zone, atMs }: Change): (readonly [ms: number, wallMs: number])[] {
  const offsetAt = offsets(zone);
  const walls: (readonly [number, number])[] = [];
  for (let ms = atMs - DAY_MS; ms < atMs + DAY_MS; ms += STEP_MS) walls.push([ms, ms + offsetAt(ms)]);
  return walls;
}

function dueIn(
  walls: readonly (readonly [ms: number, wallMs: number])[],
  { atMs, fromMs, toMs }: Change,
  isEveryHour: boolean,
  matches: Matches,
): number[] {
  const seen = new Set<number>();
  return walls.flatMap(([ms, wallMs]) => {
    const isShown = matches(new Date(wallMs)) && (isEveryHour || !seen.has(wallMs));
    seen.add(wallMs);
    const isSkipped = ms >= atMs && ms + fromMs < atMs + toMs && matches(new Date(ms + fromMs));
    return isShown || isSkipped ? [ms] : [];
  });
}

describe('changes of the clock', () => {
  test('in every zone each time comes once, wherever one begins to ask', () => {
    const all = changes();
    expect(all.length).toBeGreaterThan(40);
    const wrong: unknown[] = [];
    for (const change of all) {
      const walls = wallsAround(change);
      for (const [expression, isEveryHour, matches] of SCHEDULES) {
        const due = dueIn(walls, change, isEveryHour, matches);
        // A restart round the change finds what would have come next without it.
        for (
          let afterMs = change.atMs - 95 * MINUTE_MS;
          afterMs < change.atMs + 95 * MINUTE_MS;
          afterMs += 19 * MINUTE_MS
        ) {
          const next = due.find((ms) => ms > afterMs);
          const found = schedule.next(expression, afterMs, change.zone);
          if (next !== undefined && found !== next) wrong.push({ ...change, expression, afterMs, next, found });
        }
      }
    }
    expect(wrong.slice(0, 5)).toEqual([]);
  });

  test.each([
    ['30 2 * * *', Date.UTC(2024, 9, 27, 1, 10), 'Europe/Berlin', '2024-10-28T01:30:00.000Z'],
    ['*/30 * * * *', Date.UTC(2024, 9, 27, 1, 10), 'Europe/Berlin', '2024-10-27T01:30:00.000Z'],
    ['0 0 30 * *', Date.UTC(2011, 11, 30, 9), 'Pacific/Apia', '2011-12-30T10:00:00.000Z'],
    ['35 2 * * *', Date.UTC(2024, 9, 5, 15), 'Australia/Lord_Howe', '2024-10-05T15:35:00.000Z'],
    ['0 0 * * *', Date.UTC(2018, 10, 4), 'America/Sao_Paulo', '2018-11-04T03:00:00.000Z'],
    ['0 0 29 2 *', Date.UTC(2096, 2, 1), 'Europe/Berlin', '2104-02-28T23:00:00.000Z'],
  ])('%s in the hours of a change', (expression, afterMs, zone, next) => {
    expect(new Date(schedule.next(expression, afterMs, zone)!).toISOString()).toBe(next);
  });
});
