/** Numbers, sizes and times as the reader's locale writes them. What is not known is a dash. */

const NOTHING = '–';
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 3 });
const three = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const percents = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const minute = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

type Maybe = number | null | undefined;

function isKnown(value: Maybe): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/** Texts as people order them, numbers in them by their value. */
export const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });

/** `12,345`. */
export function numberText(value: Maybe): string {
  return isKnown(value) ? whole.format(value) : NOTHING;
}

/** `12.3K`, for places without room. */
export function shortText(value: Maybe): string {
  if (!isKnown(value)) return NOTHING;
  return Math.abs(value) < 1_000 ? three.format(value) : short.format(value);
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `1.5 GiB`. */
export function bytesText(value: Maybe): string {
  if (!isKnown(value)) return NOTHING;
  let left = value;
  let unit = 0;
  while (Math.abs(left) >= 1_000 && unit < UNITS.length - 1) {
    left /= 1_024;
    unit++;
  }
  return `${unit === 0 ? whole.format(left) : three.format(left)}\u00a0${UNITS[unit]}`;
}

export function percentText(share: Maybe): string {
  return isKnown(share) ? percents.format(share) : NOTHING;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** `340 µs`, `12 ms`, `3.4 s`, `5 min 3 s`, `2 h 4 min`, `3 d 4 h`. */
export function durationText(ms: Maybe): string {
  if (!isKnown(ms)) return NOTHING;
  if (ms === 0) return '0\u00a0s';
  if (ms < 0) return `-${durationText(-ms)}`;
  if (ms < 1) return `${three.format(ms * 1_000)}\u00a0µs`;
  if (ms < SECOND_MS) return `${three.format(ms)}\u00a0ms`;
  if (ms < MINUTE_MS) return `${three.format(ms / SECOND_MS)}\u00a0s`;
  if (ms < HOUR_MS) return pair(ms, MINUTE_MS, 'min', SECOND_MS, 's');
  if (ms < DAY_MS) return pair(ms, HOUR_MS, 'h', MINUTE_MS, 'min');
  return pair(ms, DAY_MS, 'd', HOUR_MS, 'h');
}

function pair(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const count = Math.floor(ms / large);
  const rest = Math.floor((ms - count * large) / small);
  return `${whole.format(count)}\u00a0${largeName}${rest === 0 ? '' : ` ${rest}\u00a0${smallName}`}`;
}

/** `5 minutes ago`, `in 3 days`. */
export function relativeText(ms: number, nowMs: number): string {
  const away = ms - nowMs;
  const size = Math.abs(away);
  if (size < 5 * SECOND_MS) return 'just now';
  if (size < MINUTE_MS) return relative.format(Math.round(away / SECOND_MS), 'second');
  if (size < HOUR_MS) return relative.format(Math.round(away / MINUTE_MS), 'minute');
  if (size < DAY_MS) return relative.format(Math.round(away / HOUR_MS), 'hour');
  return relative.format(Math.round(away / DAY_MS), 'day');
}

export function absoluteText(ms: number): string {
  return absolute.format(ms);
}

export function clockText(ms: number): string {
  return clock.format(ms);
}

/** `09:15`. */
export function minuteText(ms: number): string {
  return minute.format(ms);
}

export function dayText(ms: number): string {
  return day.format(ms);
}

/** `1 event`, `2 events`. */
export function countText(count: Maybe, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}

/** A time as the store writes it, which may have seven digits of a second, in milliseconds; null for what is none. */
export function msOf(value: string | number | null | undefined): number | null {
  if (value == null) return null;
  const ms = typeof value === 'number' ? value : Date.parse(value);
  return Number.isNaN(ms) ? null : ms;
}
