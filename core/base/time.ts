import { withoutTrailing } from './text.ts';

/**
 * Text of timestamps: ISO-8601 in UTC with up to seven fraction digits, trailing zeros dropped, as the reference
 * writes them. `new Date(ms)` with an argument is a pure function; asking the system for the time is not.
 */
// oxlint-disable-next-line no-restricted-globals
const DateOf = Date;

/**
 * Events that are shown together were mostly written within the same second, whose text is kept. What it is depends on
 * its number alone.
 */
let lastSeconds = 0;
let lastText = '1970-01-01T00:00:00';

/** `2024-01-02T03:04:05` from whole seconds since 1970. */
export function secondsText(seconds: number): string {
  if (seconds !== lastSeconds) {
    lastText = new DateOf(seconds * 1000).toISOString().slice(0, 19);
    lastSeconds = seconds;
  }
  return lastText;
}

/** `2024-01-02T03:04:05.6789012Z` from milliseconds since 1970 and 100 ns units beyond the millisecond. */
export function timestampText(ms: number, ticks: number): string {
  const seconds = Math.floor(ms / 1000);
  const fraction = (ms - seconds * 1000) * 10_000 + ticks;
  const text = secondsText(seconds);
  if (fraction === 0) return text + 'Z';
  return text + '.' + withoutTrailing(String(fraction).padStart(7, '0'), '0') + 'Z';
}

/** Milliseconds since 1970 of an ISO-8601 text, NaN when it is none, or of a day that there is not. */
export function parseTimestamp(text: string): number {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)/.exec(text) ?? [];
  // The platform takes the 30th of February for the 2nd of March.
  if (day !== undefined && Number(day) > new DateOf(DateOf.UTC(Number(year), Number(month), 0)).getUTCDate())
    return Number.NaN;
  return DateOf.parse(text);
}

/** Texts of durations as the history has them: `[d.]hh:mm:ss[.fffffff]`. */

const TICKS_PER_SECOND = 10_000_000;
const TICKS_PER_MS = 10_000;
const SPAN = /^(?:(\d+)\.)?(\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?$/;

/** The text of a duration; the fraction is left out when it is zero, and else has seven digits. */
export function timeSpanText(ms: number): string {
  const ticks = Math.max(0, Math.round(ms * TICKS_PER_MS));
  const seconds = Math.floor(ticks / TICKS_PER_SECOND);
  const fraction = ticks - seconds * TICKS_PER_SECOND;
  const days = Math.floor(seconds / 86_400);
  const two = (value: number) => String(value).padStart(2, '0');
  const time = `${two(Math.floor(seconds / 3_600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return (days > 0 ? `${days}.` : '') + time + (fraction > 0 ? `.${String(fraction).padStart(7, '0')}` : '');
}

/** Milliseconds of such a text, null when it is none. */
export function parseTimeSpan(text: string): number | null {
  const match = SPAN.exec(text);
  if (match === null) return null;
  const [, days = '0', hours, minutes, seconds, fraction = '0'] = match;
  const whole = ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
  return whole * 1_000 + Number(fraction.padEnd(7, '0')) / TICKS_PER_MS;
}
