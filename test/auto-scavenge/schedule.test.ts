import { describe, expect, test } from 'vitest';
import { parseSchedule, parseScheduleText } from '../../core/auto-scavenge/format/schedule-text.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { createSchedule } from '../../infra/cron-schedule.ts';

const schedule = createSchedule();
const MONDAY = Date.UTC(2024, 0, 1);

describe('the text of a schedule', () => {
  test.each([
    ['30 2 * * 0', '30 2 * * 0', '30 2 * * 0'],
    ['  30\t2  *  * 0 ', '30 2 * * 0', '30 2 * * 0'],
    ['0 6 * * sat', '0 6 * * sat', '0 6 * * 6'],
    ['0 6 * * SATURDAY', '0 6 * * SATURDAY', '0 6 * * 6'],
    ['0 0 1 jan,Jul *', '0 0 1 jan,Jul *', '0 0 1 1,7 *'],
    ['0 0 * * fri-sun', '0 0 * * fri-sun', '0 0 * * 5-7'],
    ['0 0 * * 7', '0 0 * * 7', '0 0 * * 7'],
    ['*/15 9-17/2 * * mon-fri', '*/15 9-17/2 * * mon-fri', '*/15 9-17/2 * * 1-5'],
    ['5/20 * * * *', '5/20 * * * *', '5-59/20 * * * *'],
    ['0 0 * * 1/2', '0 0 * * 1/2', '0 0 * * 1-6/2'],
    ['0,15,30,45 0-3 1-7 * *', '0,15,30,45 0-3 1-7 * *', '0,15,30,45 0-3 1-7 * *'],
  ])('%s', (given, text, expression) => {
    expect(parseScheduleText(given)).toEqual({ text, expression });
  });

  test.each([
    '',
    ' ',
    '* * * *',
    '* * * * * *',
    '@daily',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * 32 * *',
    '* * * 0 *',
    '* * * 13 *',
    '* * * * 8',
    '-1 * * * *',
    '? * * * *',
    '* * L * *',
    '* * * * 5L',
    '* * * * 1#2',
    'H * * * *',
    '* * W * *',
    '*/0 * * * *',
    '5-2 * * * *',
    '1,,2 * * * *',
    ', * * * *',
    '*-5 * * * *',
    '1-* * * * *',
    '1/2/3 * * * *',
    '1-2-3 * * * *',
    '1.5 * * * *',
    '0x1 * * * *',
    '* * * ja *',
    '* * * mon *',
    '* * * * jan',
    'mon * * * *',
    '001 * * * *',
    `${'1,'.repeat(300)}1 * * * *`,
  ])('refused: %s', (given) => {
    let error: unknown;
    try {
      parseScheduleText(given);
    } catch (caught) {
      error = caught;
    }
    expect(isSkuaError(error, 'invalid_schedule') && error.message).toBe('Invalid CRON expression');
    expect(isSkuaError(error) && error.data['hint']).toMatch(/\.$/);
  });

  test.each(['0 0 30 2 *', '0 0 31 4,6,9,11 *', '0 0 31 feb *'])('never comes: %s', (given) => {
    expect(() => parseSchedule(given, schedule, MONDAY, 'UTC')).toThrow('Invalid CRON expression');
  });
});

describe('the next start', () => {
  const next = (text: string, after: number, zone = 'UTC') => {
    const at = schedule.next(parseScheduleText(text).expression, after, zone);
    return at === null ? null : new Date(at).toISOString();
  };

  test.each([
    ['0 * * * *', MONDAY, '2024-01-01T01:00:00.000Z'],
    ['0 * * * *', MONDAY - 1, '2024-01-01T00:00:00.000Z'],
    ['0 * * * *', MONDAY + 1, '2024-01-01T01:00:00.000Z'],
    ['0 0 29 2 *', MONDAY, '2024-02-29T00:00:00.000Z'],
    ['0 0 29 2 *', Date.UTC(2096, 2, 1), '2104-02-29T00:00:00.000Z'],
    ['0 0 13 * fri', MONDAY, '2024-01-05T00:00:00.000Z'],
    ['0 0 * * 7', MONDAY, '2024-01-07T00:00:00.000Z'],
    ['0 0 * * fri-sun', Date.UTC(2024, 0, 6), '2024-01-07T00:00:00.000Z'],
    ['0 0 * * 1/2', Date.UTC(2024, 0, 5), '2024-01-08T00:00:00.000Z'],
    ['30 2 * * 0', -5, '1970-01-04T02:30:00.000Z'],
  ])('%s after %s', (text, after, expected) => {
    expect(next(text, after)).toBe(expected);
  });

  test('in a zone, with its changes of the clock', () => {
    expect(next('0 6 * * *', MONDAY, 'America/New_York')).toBe('2024-01-01T11:00:00.000Z');
    // 02:00 to 03:00 does not exist on the 31st of March; it comes twice on the 27th of October and counts once.
    expect(next('30 2 * * *', Date.UTC(2024, 2, 30, 12), 'Europe/Berlin')).toBe('2024-03-31T01:30:00.000Z');
    expect(next('30 2 * * *', Date.UTC(2024, 9, 26, 12), 'Europe/Berlin')).toBe('2024-10-27T00:30:00.000Z');
    expect(next('30 2 * * *', Date.UTC(2024, 9, 27, 0, 30), 'Europe/Berlin')).toBe('2024-10-28T01:30:00.000Z');
  });

  test('there is none after the end of the calendar, in no zone, and for what is no expression', () => {
    expect(next('0 0 1 1 *', 8.64e15)).toBe(null);
    expect(next('0 * * * *', Number.NaN)).toBe(null);
    expect(next('0 * * * *', MONDAY, 'Nowhere/Land')).toBe(null);
    expect(schedule.next('nonsense', MONDAY, 'UTC')).toBe(null);
  });
});
