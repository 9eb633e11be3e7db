/** Spans of time in the greatest unit that fits without a rest. */

export const UNITS = [
  { name: 'days', one: 'day', seconds: 86_400 },
  { name: 'hours', one: 'hour', seconds: 3_600 },
  { name: 'minutes', one: 'minute', seconds: 60 },
  { name: 'seconds', one: 'second', seconds: 1 },
] as const;
export type Unit = (typeof UNITS)[number];

export function unitOf(seconds: number): Unit {
  return UNITS.find((unit) => seconds % unit.seconds === 0) ?? UNITS[3];
}
