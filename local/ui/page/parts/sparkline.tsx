const WIDTH = 120;
const HEIGHT = 28;
/** More points than this can't be told apart. */
const POINTS_MAX = 120;

/**
 * A line without axes, which is no more than a hint: its figure stands beside it, so that it is hidden from screen
 * readers.
 */
export function Sparkline({ points }: { readonly points: readonly (number | null)[] }) {
  const some = thinned(points);
  const known = some.filter((value) => value !== null);
  const most = Math.max(...known);
  const least = Math.min(...known, 0);
  const span = most - least || 1;
  let line = '';
  let isOpen = false;
  let firstX = 0;
  let area = '';
  for (const [i, value] of some.entries()) {
    const x = some.length < 2 ? 0 : (i / (some.length - 1)) * WIDTH;
    if (value === null) {
      if (isOpen) area += `V${HEIGHT}H${firstX}z`;
      isOpen = false;
      continue;
    }
    const y = HEIGHT - 2 - ((value - least) / span) * (HEIGHT - 4);
    const step = `${isOpen ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
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
