/** How the cells of a map are laid out. Pixels are those of CSS. */
export interface Layout {
  readonly columns: number;
  readonly rows: number;
  /** From one cell to the next, in either direction. */
  readonly width: number;
  readonly height: number;
  readonly gap: number;
  /** Of the whole map. */
  readonly totalHeight: number;
}

/** Cells are never larger than this, however few there are, */
const WIDTH_MAX = 168;
/** and never smaller, however many: a map of more than that scrolls. */
const WIDTH_MIN = 6;
/** From here on a cell has room for words, and is wider than high. */
export const LABELLED_WIDTH = 60;
const LABELLED_RATIO = 0.82;

/**
 * The largest cells of which all fit into a place; `zoom` makes them larger than that, so that the map scrolls. On
 * screens with `dpr` device pixels to one, distances are whole device pixels, so that edges are crisp.
 */
export function layoutOf({
  count,
  width,
  height,
  zoom = 1,
  dpr = 1,
}: {
  readonly count: number;
  readonly width: number;
  readonly height: number;
  readonly zoom?: number;
  readonly dpr?: number;
}): Layout {
  const widest = Math.max(1, Math.ceil(width / WIDTH_MAX));
  const narrowest = Math.max(widest, Math.floor(width / WIDTH_MIN));
  let columns = widest;
  while (columns < narrowest && Math.ceil(count / columns) * heightOf(width / columns) > height) columns++;
  if (zoom > 1) columns = Math.max(widest, Math.floor(columns / zoom));
  const snap = (size: number) => Math.max(1 / dpr, Math.floor(size * dpr) / dpr);
  // Behind the last one there is no gap.
  const cell = snap((width + gapOf(width / columns)) / columns);
  const cellHeight = snap(heightOf(cell));
  const rows = Math.ceil(count / columns);
  return { columns, rows, width: cell, height: cellHeight, gap: gapOf(cell), totalHeight: rows * cellHeight };
}

function heightOf(width: number): number {
  return width >= LABELLED_WIDTH ? width * LABELLED_RATIO : width;
}

function gapOf(width: number): number {
  if (width >= LABELLED_WIDTH) return 8;
  if (width >= 24) return 4;
  return width >= 12 ? 2 : 1;
}

/** The index of the cell at a point of the map; null beside and between rows' ends. */
export function cellAt({ columns, width, height }: Layout, count: number, x: number, y: number): number | null {
  const column = Math.floor(x / width);
  const row = Math.floor(y / height);
  const index = row * columns + column;
  return column < 0 || column >= columns || row < 0 || index >= count ? null : index;
}

/**
 * Where the arrows and their like lead to from a cell; undefined for other keys. As in any grid: Home and End stay in
 * their row, with Ctrl they go to the first and the last of all.
 */
export function keyTarget(
  { columns }: Layout,
  count: number,
  at: number,
  { key, isCtrl, rowsInSight }: { readonly key: string; readonly isCtrl: boolean; readonly rowsInSight: number },
): number | undefined {
  const rowStart = at - (at % columns);
  const to = {
    ArrowRight: at + 1,
    ArrowLeft: at - 1,
    ArrowDown: at + columns,
    ArrowUp: at - columns,
    PageDown: at + columns * rowsInSight,
    PageUp: at - columns * rowsInSight,
    Home: isCtrl ? 0 : rowStart,
    End: isCtrl ? count - 1 : rowStart + columns - 1,
  }[key];
  if (to === undefined) return undefined;
  // Beyond the first row and the last one it stays in its column.
  if ((key === 'ArrowUp' && to < 0) || (key === 'ArrowDown' && to >= count)) return at;
  return Math.max(0, Math.min(to, count - 1));
}
