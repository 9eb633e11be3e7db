import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { numberText } from '../../lib/format.ts';
import { paintedTheme } from '../../lib/theme.ts';
import type { Cell } from './cells.ts';
import { sentenceOf } from './detail.tsx';
import { cellAt, keyTarget, layoutOf } from './chunk-layout.ts';
import type { Layout } from './chunk-layout.ts';
import type { Mode } from './modes.ts';
import { Painter } from './painter.ts';
import type { Look } from './painter.ts';

const CHANGE_MS = 900;
/** Of the window, for a map that does not scroll; at least this much. */
const HEIGHT_SHARE = 0.5;
const HEIGHT_MIN = 260;
/** Around the cells, for the marks of those at the edge; as in the style. */
const EDGE_PX = 6;

export interface MapProps {
  readonly cells: readonly Cell[];
  readonly mode: Mode;
  readonly off: ReadonlySet<number>;
  readonly behind: number | null;
  readonly zoom: number;
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
  /** The cell under the pointer; null for none. */
  readonly onPoint: (index: number | null) => void;
}

/**
 * All chunk files at once, painted: ten large, or ten thousand small. For the keyboard and for screen readers it is a
 * grid in which one cell is the active one; of the others there is only the picture, since ten thousand elements would
 * make every key slow.
 */
export function ChunkGrid({ cells, mode, off, behind, zoom, chosen, onChoose, onPoint }: MapProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0, dpr: 1 });
  const [pointed, setPointed] = useState<number | null>(null);
  const id = useId();
  const count = cells.length;
  const layout = useMemo(() => layoutOf({ count, ...size, zoom }), [count, size, zoom]);
  const seen = Math.min(size.height, layout.totalHeight);
  const change = useChange(cells, mode);
  const theme = paintedTheme.value;

  // Before anything is painted: no cell is laid out without a width.
  useLayoutEffect(() => {
    const element = scroller.current!;
    const measure = () => {
      const next = {
        width: element.clientWidth - 2 * EDGE_PX,
        height: Math.max(HEIGHT_MIN, Math.round(innerHeight * HEIGHT_SHARE)),
        dpr: devicePixelRatio,
      };
      setSize((last) =>
        last.width === next.width && last.height === next.height && last.dpr === next.dpr ? last : next,
      );
    };
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    addEventListener('resize', measure);
    measure();
    return () => {
      watch.disconnect();
      removeEventListener('resize', measure);
    };
  }, []);

  // After a zoom or a key the chosen cell stays in sight. In the next frame, when the map has its new height.
  const mustShow = useRef(false);
  const show = () => {
    mustShow.current = false;
    const element = scroller.current!;
    const top = Math.floor(chosen / layout.columns) * layout.height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + layout.height > element.scrollTop + seen) element.scrollTop = top + layout.height - seen;
  };
  useEffect(() => {
    mustShow.current = true;
    soon();
  }, [chosen, layout]);

  // All that changes the picture draws it in the next frame, once.
  const draw = useRef(() => {});
  const frame = useRef(0);
  draw.current = () => {
    frame.current = 0;
    // The view may be gone meanwhile.
    if (size.width === 0 || scroller.current === null) return;
    painter.current ??= new Painter(canvas.current!);
    if (mustShow.current) show();
    const isOver = change.step();
    painter.current.paint(
      { cells, layout, mode, off, behind, change: change.current },
      size.width,
      seen,
      scroller.current.scrollTop,
    );
    if (!isOver) soon();
  };
  const soon = () => {
    frame.current ||= requestAnimationFrame(() => draw.current());
  };
  useEffect(() => {
    painter.current?.forgetColours();
    soon();
  }, [theme, size.dpr]);
  useEffect(soon, [cells, layout, mode, off, behind, size]);
  useEffect(() => {
    painter.current ??= new Painter(canvas.current!);
    painter.current.forgetColours();
    return () => cancelAnimationFrame(frame.current);
  }, []);

  const indexAt = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return cellAt(layout, count, event.clientX - box.left, event.clientY - box.top + scroller.current!.scrollTop);
  };
  const point = (index: number | null) => {
    if (index === pointed) return;
    setPointed(index);
    onPoint(index);
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.altKey) return;
    const to = keyTarget(layout, count, chosen, {
      key: event.key,
      isCtrl: event.ctrlKey || event.metaKey,
      rowsInSight: Math.max(1, Math.floor(seen / layout.height) - 1),
    });
    if (to === undefined) return;
    event.preventDefault();
    point(null);
    onChoose(to);
  };
  const active = cells[chosen];
  return (
    <div
      class="map-scroller"
      ref={scroller}
      onScroll={soon}
      style={{ height: `${seen + 2 * EDGE_PX}px` }}
      role="grid"
      tabIndex={0}
      aria-label={`Chunk map: ${numberText(count)} files in the order of the log. Use the arrow keys to move between files.`}
      aria-rowcount={layout.rows}
      aria-colcount={layout.columns}
      aria-activedescendant={`${id}-cell`}
      aria-readonly="true"
      onKeyDown={pressed}
      onPointerMove={(event) => point(indexAt(event))}
      onPointerLeave={() => point(null)}
      onClick={(event) => {
        const index = indexAt(event);
        if (index !== null) onChoose(index);
      }}
    >
      <canvas
        ref={canvas}
        class="map-canvas"
        aria-hidden="true"
        style={{ width: `${size.width}px`, height: `${seen}px` }}
      />
      <div class="map-whole" style={{ height: `${layout.totalHeight}px`, marginTop: `${-seen}px` }}>
        {active !== undefined && (
          <div role="row" aria-rowindex={Math.floor(chosen / layout.columns) + 1}>
            <div
              id={`${id}-cell`}
              class="map-mark chosen"
              role="gridcell"
              aria-selected="true"
              aria-colindex={(chosen % layout.columns) + 1}
              aria-label={sentenceOf(active)}
              style={placeOf(layout, chosen)}
            />
          </div>
        )}
        {pointed !== null && pointed < count && (
          <div class="map-mark pointed" aria-hidden="true" style={placeOf(layout, pointed)} />
        )}
        {behind !== null && behind < count && (
          <div class="map-mark front" aria-hidden="true" style={placeOf(layout, behind)} />
        )}
      </div>
    </div>
  );
}

function placeOf({ columns, width, height, gap }: Layout, index: number) {
  return {
    borderRadius: `${Math.min(6, width / 5)}px`,
    width: `${width - gap}px`,
    height: `${height - gap}px`,
    transform: `translate(${(index % columns) * width}px, ${Math.floor(index / columns) * height}px)`,
  };
}

interface Changing {
  current: { readonly before: ReadonlyMap<number, Look>; readonly done: number } | null;
  /** Goes on with the change; true when nothing changes any more. */
  step(): boolean;
}

/** Remembers what cells looked like whose file has been written anew, so that the change can be seen. */
function useChange(cells: readonly Cell[], mode: Mode): Changing {
  const state = useRef<{ cells: readonly Cell[]; before: Map<number, Look>; startedMs: number } & Changing>(
    null as never,
  );
  state.current ??= {
    cells,
    before: new Map(),
    startedMs: 0,
    current: null,
    step() {
      if (this.before.size === 0) return true;
      const done = Math.min(1, (performance.now() - this.startedMs) / CHANGE_MS);
      this.current = done === 1 ? null : { before: this.before, done: 1 - (1 - done) ** 3 };
      if (done === 1) this.before = new Map();
      return done === 1;
    },
  };
  const held = state.current;
  if (held.cells !== cells) {
    const files = new Map(held.cells.map((cell) => [cell.chunk.start, cell]));
    const before = new Map<number, Look>();
    for (const cell of cells) {
      const then = files.get(cell.chunk.start);
      if (then !== undefined && then.chunk.file !== cell.chunk.file)
        before.set(cell.chunk.start, { fill: then.fill, bin: mode.binOf(then, held.cells) });
    }
    held.cells = cells;
    if (before.size > 0 && !matchMedia('(prefers-reduced-motion: reduce)').matches) {
      held.before = before;
      held.startedMs = performance.now();
    }
  }
  return held;
}
