const WIDTH = 120;
const HEIGHT = 28;

/**
 * A line without axes, which is no more than a hint: its figure stands beside it, so that it is hidden from screen
 * readers. Its points lie at even distances.
 */
export function Sparkline({ points }: { readonly points: readonly (number | null)[] }) {
  const known = points.filter((value) => value !== null);
  const most = Math.max(...known);
  const least = Math.min(...known, 0);
  const span = most - least || 1;
  let line = '';
  let area = '';
  let firstX: string | null = null;
  for (const [i, value] of points.entries()) {
    if (value === null) {
      if (firstX !== null) area += `V${HEIGHT}H${firstX}z`;
      firstX = null;
      continue;
    }
    const x = ((i / Math.max(1, points.length - 1)) * WIDTH).toFixed(1);
    const y = (HEIGHT - 2 - ((value - least) / span) * (HEIGHT - 4)).toFixed(1);
    const to = `${firstX === null ? 'M' : 'L'}${x} ${y}`;
    firstX ??= x;
    line += to;
    area += to;
  }
  if (firstX !== null) area += `V${HEIGHT}H${firstX}z`;
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
