/** The command line itself is wrong: exit code 2. The message says what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Suggestions further away than this are noise. */
const DISTANCE_MAX = 3;

/** ` Did you mean X?` for the nearest of the known names, or nothing when none is near. */
export function didYouMean(given: string, known: readonly string[], prefix = ''): string {
  let best: string | null = null;
  let bestDistance = Math.min(DISTANCE_MAX, Math.ceil(given.length / 2)) + 1;
  for (const name of known) {
    const distance = name.startsWith(given) && given.length > 1 ? 1 : editDistance(given, name);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best === null ? '' : ` Did you mean ${prefix}${best}?`;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) cost = Math.min(cost, beforeLast[j - 2]! + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[to.length]!;
}
