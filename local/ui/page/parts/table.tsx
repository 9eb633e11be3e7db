import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { collator } from '../lib/format.ts';
import { Icon } from './icon.tsx';

export interface Column<Row> {
  readonly name: string;
  readonly title: ComponentChildren;
  readonly render: (row: Row) => ComponentChildren;
  /** Given: it can be sorted by this. */
  readonly sortBy?: (row: Row) => string | number | null | undefined;
  readonly align?: 'end';
  /** Such as `8rem` or `40%`; the rest is shared out. Long tables need one for all columns but one. */
  readonly width?: string;
  /** Left out where there is little room. */
  readonly isMinor?: boolean;
  /** Names may be long: they give way to all that stands beside them, and are cut where they must be. */
  readonly isName?: boolean;
  /** May take several lines; only in tables that are not virtual. */
  readonly isLong?: boolean;
}

export interface Sort {
  readonly name: string;
  readonly isDown: boolean;
}

export interface TableProps<Row> {
  /** What the table lists, for people who can't see it. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** Enter, or a click on a row. */
  readonly onOpen?: (row: Row) => void;
  readonly isChosen?: (row: Row) => boolean;
  /** It came while the table was looked at: marked for a moment. */
  readonly isNew?: (row: Row) => boolean;
  readonly sort?: Sort;
  /** Shown in place of rows where there are none. */
  readonly empty?: ComponentChildren;
  /** The widths of the columns hold for short tables, too: what is too long for its column is cut. */
  readonly isFixed?: boolean;
  /** How high a long table is before it scrolls by itself, such as `60vh`. */
  readonly height?: string;
}

/** Tables with more rows scroll by themselves, and only those in sight are there. */
const VIRTUAL_ROWS = 150;
const ROW_PX = 36;
/** Rows beyond the edges, so that none is missed while scrolling. */
const SPARE_ROWS = 12;
const HEIGHT = 'calc(100dvh - 14rem)';

/** A list with columns. Arrows move from row to row, also over a hundred thousand of them. */
export function Table<Row>({
  label,
  columns,
  rows,
  keyOf,
  onOpen,
  isChosen,
  isNew,
  sort: first,
  empty,
  isFixed = false,
  height = HEIGHT,
}: TableProps<Row>) {
  const [sort, setSort] = useState<Sort | null>(first ?? null);
  const [at, setAt] = useState(0);
  const sorted = useMemo(
    () =>
      sortedBy(
        rows,
        columns.find(({ name }) => name === sort?.name),
        sort,
      ),
    [rows, sort],
  );
  const isVirtual = sorted.length > VIRTUAL_ROWS;
  const scroller = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const [sight, setSight] = useState({ from: 0, to: SPARE_ROWS * 5 });
  const isMoving = useRef(false);

  useEffect(() => {
    if (!isVirtual) return;
    const element = scroller.current!;
    let frame = 0;
    const look = () => {
      frame = 0;
      const from = Math.max(0, Math.floor(element.scrollTop / ROW_PX) - SPARE_ROWS);
      const to = Math.ceil((element.scrollTop + element.clientHeight) / ROW_PX) + SPARE_ROWS;
      // Only when a good part of the spare rows is used up.
      setSight((last) =>
        Math.abs(last.from - from) < SPARE_ROWS / 2 && Math.abs(last.to - to) < SPARE_ROWS / 2 ? last : { from, to },
      );
    };
    const later = () => (frame ||= requestAnimationFrame(look));
    const watch = new ResizeObserver(later);
    watch.observe(element);
    element.addEventListener('scroll', later, { passive: true });
    look();
    return () => {
      cancelAnimationFrame(frame);
      watch.disconnect();
      element.removeEventListener('scroll', later);
    };
  }, [isVirtual]);

  const from = isVirtual ? Math.min(sight.from, Math.max(0, sorted.length - 1)) : 0;
  const to = isVirtual ? Math.min(sight.to, sorted.length) : sorted.length;
  const current = Math.min(at, sorted.length - 1);

  // At once, not after the next picture: a key that comes in between would be taken for the move of the one before.
  useLayoutEffect(() => {
    if (!isMoving.current) return;
    isMoving.current = false;
    body.current?.querySelector<HTMLElement>(`[aria-rowindex="${current + 2}"]`)?.focus({ preventScroll: isVirtual });
  });

  const moveTo = (index: number) => {
    const next = Math.max(0, Math.min(index, sorted.length - 1));
    isMoving.current = true;
    setAt(next);
    const element = scroller.current;
    if (!isVirtual || element === null) return;
    const head = element.querySelector('thead')?.offsetHeight ?? 0;
    if (next * ROW_PX < element.scrollTop) element.scrollTop = next * ROW_PX;
    else if ((next + 1) * ROW_PX + head > element.scrollTop + element.clientHeight)
      element.scrollTop = (next + 1) * ROW_PX + head - element.clientHeight;
    if (next < from || next >= to) setSight({ from: Math.max(0, next - SPARE_ROWS * 3), to: next + SPARE_ROWS * 3 });
  };
  const pressed = (event: KeyboardEvent) => {
    // Within a row, buttons and links have keys of their own.
    if ((event.target as Element).getAttribute('aria-rowindex') === null) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 400) / ROW_PX) - 2);
    const next = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + page,
      PageUp: current - page,
      Home: 0,
      End: sorted.length - 1,
    }[event.key];
    if (next !== undefined) moveTo(next);
    else if ((event.key === 'Enter' || event.key === ' ') && onOpen !== undefined) onOpen(sorted[current]!);
    else return;
    event.preventDefault();
  };

  if (rows.length === 0 && empty !== undefined) return <>{empty}</>;
  return (
    <div
      class={`table-scroller${isVirtual ? ' virtual' : ''}${isFixed ? ' fixed' : ''}`}
      ref={scroller}
      {...(isVirtual && { style: { maxHeight: height } })}
    >
      <table
        style={{
          '--name-share': `${100 / columns.filter(({ isName, isMinor }) => isName === true && isMinor !== true).length}%`,
        }}
        class={`table${onOpen === undefined ? '' : ' opens'}`}
        aria-label={label}
        aria-rowcount={sorted.length + 1}
      >
        <colgroup>
          {columns.map((column) => (
            <col
              key={column.name}
              class={classOf(column)}
              style={column.width === undefined ? {} : { width: column.width }}
            />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <HeadCell key={column.name} column={column} sort={sort} onSort={setSort} />
            ))}
          </tr>
        </thead>
        <tbody ref={body} onKeyDown={pressed}>
          {from > 0 && (
            <tr class="spacer" aria-hidden="true">
              <td colSpan={columns.length} style={{ height: `${from * ROW_PX}px` }} />
            </tr>
          )}
          {sorted.slice(from, to).map((row, i) => {
            const index = from + i;
            return (
              <tr
                key={keyOf(row)}
                aria-rowindex={index + 2}
                tabIndex={index === current ? 0 : -1}
                class={`${isChosen?.(row) === true ? 'chosen' : ''}${isNew?.(row) === true ? ' new' : ''}`}
                onFocus={() => setAt(index)}
                onClick={(event) => {
                  if (
                    onOpen === undefined ||
                    (event.target as Element).closest('a, button, input, select, summary') !== null ||
                    getSelection()?.type === 'Range'
                  )
                    return;
                  onOpen(row);
                }}
              >
                {columns.map((column) => (
                  <td key={column.name} class={classOf(column)}>
                    {column.render(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          {to < sorted.length && (
            <tr class="spacer" aria-hidden="true">
              <td colSpan={columns.length} style={{ height: `${(sorted.length - to) * ROW_PX}px` }} />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

function classOf<Row>({ align, isMinor, isName, isLong }: Column<Row>): string {
  return [align === 'end' && 'end', isMinor === true && 'minor', isName === true && 'name', isLong === true && 'long']
    .filter((name) => name !== false)
    .join(' ');
}

function HeadCell<Row>({
  column,
  sort,
  onSort,
}: {
  readonly column: Column<Row>;
  readonly sort: Sort | null;
  readonly onSort: (sort: Sort) => void;
}) {
  if (column.sortBy === undefined)
    return (
      <th scope="col" class={classOf(column)}>
        {column.title}
      </th>
    );
  const isBy = sort?.name === column.name;
  return (
    <th scope="col" class={classOf(column)} aria-sort={isBy ? (sort.isDown ? 'descending' : 'ascending') : 'none'}>
      <button
        type="button"
        class={`sorter${isBy ? ' by' : ''}`}
        onClick={() => onSort({ name: column.name, isDown: isBy && !sort.isDown })}
      >
        {column.title}
        <Icon name={isBy && sort.isDown ? 'down' : 'up'} size={14} />
      </button>
    </th>
  );
}

function sortedBy<Row>(rows: readonly Row[], column: Column<Row> | undefined, sort: Sort | null): readonly Row[] {
  const by = column?.sortBy;
  if (by === undefined || sort === null) return rows;
  const keys = new Map(rows.map((row) => [row, by(row)]));
  return [...rows].sort((one, other) =>
    sort.isDown ? compare(keys.get(other), keys.get(one)) : compare(keys.get(one), keys.get(other)),
  );
}

function compare(one: string | number | null | undefined, other: string | number | null | undefined): number {
  if (one == null || other == null) return one == null ? (other == null ? 0 : -1) : 1;
  return typeof one === 'number' && typeof other === 'number'
    ? one - other
    : collator.compare(String(one), String(other));
}
