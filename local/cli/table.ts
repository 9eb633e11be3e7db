export interface Column {
  readonly title: string;
  readonly align: 'left' | 'right';
}

/** Lines of a table: the titles, then the rows, each column as wide as its widest cell. */
export function tableLines(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const cells = [columns.map((column) => column.title), ...rows];
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => (row[at] ?? '').length)));
  return cells.map((row) => columns.map(({ align }, at) => {
    const cell = row[at] ?? '';
    return align === 'right' ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!);
  }).join('  ').trimEnd());
}

/** `1,250`. */
export function countText(count: number): string {
  return count.toLocaleString('en');
}

/** `1 chunk`, `2 chunks`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
