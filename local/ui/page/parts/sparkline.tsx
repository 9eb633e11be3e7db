const WIDTH = 120;
const HEIGHT = 28;
/** More points than this can't be told apart. */
const POINTS_MAX = 120;
/** Fewer than this are drawn as steps: slanted lines between them would be mountains. */
const POINTS_FEW = 30;

/**
 * A line without axes, which is no more than a hint: its figure stands beside it, so that it is hidden from screen
 * readers.
 */
export function Sparkline({ points }: { readonly points: readonly (number | null)[] }) {
  const some = thinned(withoutCuts(points));
  const isStepped = some.length < POINTS_FEW;
  const known = some.filter((value) => value !== null);
  const most = Math.max(...known);
  const least = Math.min(...known, 0);
  const span = most - least || 1;
  let line = '';
  let isOpen = false;
  let firstX = 0;
  let area = '';
  for (const [i, value] of some.entries()) {
    const x = isStepped ? (i / some.length) * WIDTH : (i / Math.max(1, some.length - 1)) * WIDTH;
    if (value === null) {
      if (isOpen) area += `V${HEIGHT}H${firstX}z`;
      isOpen = false;
      continue;
    }
    const y = HEIGHT - 2 - ((value - least) / span) * (HEIGHT - 4);
    const [to, height] = [x.toFixed(1), y.toFixed(1)];
    const end = isStepped ? `H${(((i + 1) / some.length) * WIDTH).toFixed(1)}` : '';
    const step = `${!isOpen ? `M${to} ${height}` : isStepped ? `V${height}` : `L${to} ${height}`}${end}`;
    if (!isOpen) firstX = Number(x.toFixed(1));
    line += step;
    area += step;
    isOpen = true;
  }
  if (isOpen) area += `V${HEIGHT}H${firstX}z`;
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      {known.length > 1 && (
        <>
          <path class="area" d={area} />
          <path class="line" d={line} />
        </>
      )}
    </svg>
  );
}

/** Where one value alone is missing, a line of this size does not show it. */
function withoutCuts(points: readonly (number | null)[]): readonly (number | null)[] {
  return points.filter((value, i) => value !== null || points[i - 1] === null || points[i + 1] === null);
}

/** The most of each run of neighbours, so that no peak is lost. */
function thinned(points: readonly (number | null)[]): readonly (number | null)[] {
  if (points.length <= POINTS_MAX) return points;
  return Array.from({ length: POINTS_MAX }, (_, i) => {
    const run = points
      .slice(Math.floor((i * points.length) / POINTS_MAX), Math.floor(((i + 1) * points.length) / POINTS_MAX))
      .filter((value) => value !== null);
    return run.length === 0 ? null : Math.max(...run);
  });
}
