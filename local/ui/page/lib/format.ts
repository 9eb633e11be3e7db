/**
 * Numbers, sizes and times as the reader's locale writes them: the one place of the page that asks for a locale. What
 * is not known, or is no time, is a dash; nothing here throws.
 */

export const NOTHING = '–';
const MINUS = '−';
const LOCALE = usableLocale();
const whole = numbersAs({ maximumFractionDigits: 0 });
const short = numbersAs({ notation: 'compact', maximumSignificantDigits: 3 });
const three = numbersAs({ maximumSignificantDigits: 3 });
const percents = numbersAs({ style: 'percent', maximumFractionDigits: 1 });
/** The least share that is told. */
const PERCENT_MIN = 0.0001;
const smallPercents = numbersAs({ style: 'percent', maximumFractionDigits: 2 });

/**
 * The language of the browser; undefined for the default where `Intl` can't take it. Chromium without a locale, as in
 * containers, calls it `en-US@posix`: then the browser is told the part before the mark, since uPlot asks it as well.
 */
function usableLocale(): string | undefined {
  const told = navigator.language;
  const locale = [told, told?.split('@')[0]].find(isLocale);
  if (locale !== told) Object.defineProperty(navigator, 'language', { value: locale ?? 'en-US', configurable: true });
  return locale;
}

function isLocale(tag: string | undefined): tag is string {
  try {
    return tag !== undefined && Intl.getCanonicalLocales(tag).length === 1;
  } catch {
    return false;
  }
}

/** Writes numbers in one form. Many locales have a hyphen for a minus, after which lines break. */
function numbersAs(options: Intl.NumberFormatOptions): { format(value: number): string } {
  const { format } = new Intl.NumberFormat(LOCALE, options);
  return { format: (value) => format(value).replace('-', MINUS) };
}

/** Writes times in one form, in the time zone of the reader or a named one. */
function timesAs(options: Intl.DateTimeFormatOptions): (ms: number) => string {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat(LOCALE, options);
  } catch {
    // A time zone that this browser has not heard of.
    format = new Intl.DateTimeFormat(LOCALE, { ...options, timeZone: 'UTC', timeZoneName: 'short' });
  }
  return (ms) => (isTime(ms) ? format.format(ms) : NOTHING);
}

/** Farthest from 1970 that a date can be, in milliseconds. */
const TIME_MS_MAX = 8.64e15;

function isTime(ms: number): boolean {
  return Math.abs(ms) <= TIME_MS_MAX;
}

type Maybe = number | null | undefined;

function isKnown(value: Maybe): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/** Texts as people order them, numbers in them by their value. */
export const collator = new Intl.Collator(LOCALE, { numeric: true, sensitivity: 'base' });

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
  // Not before: 1,012 KiB as 0.988 MiB would look like less than 990 KiB beside it.
  while (Math.abs(left) >= 1_024 && unit < UNITS.length - 1) {
    left /= 1_024;
    unit++;
  }
  return `${(unit === 0 || Math.abs(left) >= 1_000 ? whole : three).format(left)}\u00a0${UNITS[unit]}`;
}

/** `45.7%`, `0.25%`; `<0.01%` for what would be nothing. */
export function percentText(share: Maybe): string {
  if (!isKnown(share)) return NOTHING;
  if (share > 0 && share < PERCENT_MIN / 2) return `<${smallPercents.format(PERCENT_MIN)}`;
  return (Math.abs(share) < 0.01 ? smallPercents : percents).format(share);
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** `340 µs`, `12 ms`, `3.4 s`, `5 min 3 s`, `2 h 4 min`, `3 d 4 h`. */
export function durationText(ms: Maybe): string {
  if (!isKnown(ms)) return NOTHING;
  if (ms === 0) return '0\u00a0s';
  if (ms < 0) return `${MINUS}${durationText(-ms)}`;
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

/** `5 min ago`, `in 3 d`: in the units of durations, the largest alone. */
export function relativeText(ms: number, nowMs: number): string {
  const away = ms - nowMs;
  const size = Math.abs(away);
  if (!isTime(size)) return NOTHING;
  if (size < 5 * SECOND_MS) return 'just now';
  return away < 0 ? `${roughText(size)}\u00a0ago` : `in\u00a0${roughText(size)}`;
}

/** A duration of some seconds or more in its largest unit alone: `2 h`. */
export function roughText(ms: number): string {
  const unit = [DAY_MS, HOUR_MS, MINUTE_MS].find((one) => ms >= one) ?? SECOND_MS;
  return durationText(Math.round(ms / unit) * unit);
}

/** `Nov 28, 2026, 9:15:04 AM`. */
export const absoluteText = timesAs({ dateStyle: 'medium', timeStyle: 'medium' });
const thisYear = timesAs({ month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', second: '2-digit' });
const anyYear = timesAs({ year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' });

/** `Nov 28, 9:15:04 AM`; of other years, which are long ago, `Nov 28, 2025, 9:15 AM`. */
export function nearText(ms: number, nowMs: number): string {
  return (isTime(ms) && new Date(ms).getFullYear() === new Date(nowMs).getFullYear() ? thisYear : anyYear)(ms);
}

/** `9:15:04 AM`. */
export const clockText = timesAs({ timeStyle: 'medium' });
/** `09:15:04.123 AM`. */
export const exactClockText = timesAs({
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
});
/** `9:15 AM`. */
export const minuteText = timesAs({ hour: 'numeric', minute: '2-digit' });
const utcMinuteText = timesAs({ hour: 'numeric', minute: '2-digit', timeZone: 'UTC' });
/** A time of day, such as `9:15 AM`. */
export function dayTimeText(hour: number, minute: number): string {
  return utcMinuteText(Date.UTC(2000, 0, 1, hour, minute));
}
/** `Sat 9:15 AM`. */
export const weekdayMinuteText = timesAs({ weekday: 'short', hour: 'numeric', minute: '2-digit' });
/** `Nov 28, 2026`. */
export const dayText = timesAs({ dateStyle: 'medium' });

/** The time zone of the reader. */
export function ownZone(): string {
  return new Intl.DateTimeFormat(LOCALE).resolvedOptions().timeZone;
}

/** Writes minutes of days, such as `Sat, Nov 28, 2026, 9:15 AM`, in a time zone; without one in the reader's. */
export function zonedMinutes(zone?: string): (ms: number) => string {
  return timesAs({
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    ...(zone !== undefined && { timeZone: zone }),
  });
}

/** `1 event`, `2 events`. */
export function countText(count: Maybe, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}

/** `the last event`, `the last 5 events`. */
export function lastText(count: number, one: string): string {
  return `the last ${count === 1 ? one : countText(count, one)}`;
}

/** A time as the store writes it, which may have seven digits of a second, in milliseconds; null for what is none. */
export function msOf(value: string | number | null | undefined): number | null {
  if (value == null) return null;
  const ms = typeof value === 'number' ? value : Date.parse(value);
  return isTime(ms) ? ms : null;
}
