/**
 * Text of timestamps: ISO-8601 in UTC with up to seven fraction digits, trailing zeros dropped, as the reference
 * writes them. `new Date(ms)` with an argument is a pure function; asking the system for the time is not.
 */
// oxlint-disable-next-line no-restricted-globals
const DateOf = Date;

/** `2024-01-02T03:04:05.6789012Z` from milliseconds since 1970 and 100 ns units beyond the millisecond. */
export function timestampText(ms: number, ticks: number): string {
  const seconds = Math.floor(ms / 1000);
  const fraction = (ms - seconds * 1000) * 10_000 + ticks;
  const text = new DateOf(seconds * 1000).toISOString().slice(0, 19);
  if (fraction === 0) return text + 'Z';
  return text + '.' + String(fraction).padStart(7, '0').replace(/0+$/, '') + 'Z';
}

/** Milliseconds since 1970 of an ISO-8601 text, NaN when it is none. */
export function parseTimestamp(text: string): number {
  return DateOf.parse(text);
}
