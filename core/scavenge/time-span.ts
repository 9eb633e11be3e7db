/** Texts of durations as the history has them: `[d.]hh:mm:ss[.fffffff]`; scavenge.md section 10.2. */

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
