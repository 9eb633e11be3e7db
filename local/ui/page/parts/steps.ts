import { CUT_MS, isCutAt } from '../lib/history.ts';

/**
 * A step that takes more of the width than this is seen as one. What the page asks for every two seconds takes more of
 * a minute each time, however late answers are: else steps and slanted lines would take turns.
 */
const WIDE_SHARE = 1 / 40;

export type Line = readonly (number | null)[];

/**
 * Lines of which some points lie far apart, as steps: each value is that of the time since the one before it, and a
 * slanted line would claim values in between. Points that lie near each other are steps beside those, too, so that a
 * line is of one kind. Behind a cut nothing is drawn up to the next value.
 */
export function withSteps(
  times: readonly number[],
  lines: readonly Line[],
  spanMs: number,
): { readonly times: readonly number[]; readonly lines: readonly Line[] } {
  if (!times.some((time, i) => i > 0 && time - times[i - 1]! > spanMs * WIDE_SHARE)) return { times, lines };
  // The first time has none before it: it takes as much as the second one.
  const isWide = (i: number) => times[Math.max(1, i)]! - times[Math.max(1, i) - 1]! > CUT_MS;
  const expanded = <T>(values: readonly T[], between: (i: number) => T) =>
    values.flatMap((value, i) => (isWide(i) ? [between(i), value] : [value]));
  return {
    times: expanded(times, (i) => (i === 0 ? 2 * times[0]! - times[1]! : times[i - 1]! + CUT_MS)),
    lines: lines.map((line) => expanded(line, (i) => (isCutAt(times, i - 1) ? null : (line[i] ?? null)))),
  };
}
