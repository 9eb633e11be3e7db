/**
 * A step that takes more of the width than this is seen as one. What the page asks for every two seconds takes more of
 * a minute each time, however late answers are: else steps and slanted lines would take turns.
 */
const WIDE_SHARE = 1 / 40;

export type Line = readonly (number | null)[];

/**
 * Lines whose points lie far apart, as steps: each value is that of the time since the one before it, and a slanted
 * line would claim values in between. Where nothing is known of the time before, nothing is drawn.
 */
export function withSteps(
  times: readonly number[],
  lines: readonly Line[],
  spanMs: number,
): { readonly times: readonly number[]; readonly lines: readonly Line[] } {
  const isAfterGap = times.map((time, i) => i > 0 && time - times[i - 1]! > spanMs * WIDE_SHARE);
  if (!isAfterGap.includes(true)) return { times, lines };
  // The first value has no time before it: it takes as much as the second one.
  const isWide = (i: number) => isAfterGap[Math.max(1, i)] === true;
  const expanded = <T>(values: readonly T[], between: (i: number) => T) =>
    values.flatMap((value, i) => (isWide(i) ? [between(i), value] : [value]));
  return {
    times: expanded(times, (i) => (i === 0 ? 2 * times[0]! - times[1]! : times[i - 1]! + 1)),
    lines: lines.map((line) => expanded(line, (i) => (i > 0 && line[i - 1] === null ? null : (line[i] ?? null)))),
  };
}
