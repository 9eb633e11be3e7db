import { meetsTarget } from './figure.ts';
import type { Figure, Row } from './figure.ts';

/** Three significant digits, thousands grouped. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value !== 0 && Math.abs(value) < 100) return String(Number(value.toPrecision(3)));
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ' ');
}

function verdict(row: Row): string {
  const met = meetsTarget(row);
  return met === null ? '' : met ? 'met' : 'missed';
}

function targetText(row: Row): string {
  return row.target === null ? '' : `${{ below: '<', 'at least': '≥', 'at most': '≤' }[row.target.kind]} ${row.target.value}`;
}

/** One row for the terminal. */
export function rowLine(row: Row): string {
  const target = row.target === null ? '' : `, reach ${targetText(row)}: ${verdict(row)}`;
  const lines = [
    `  ${row.title}: ratio ${digits(row.ratio)} (${digits(row.ratioMin)} to ${digits(row.ratioMax)})${target}`,
    `      limit ${digits(row.limit.median)} ${row.unit} (${digits(row.limit.min)} to ${digits(row.limit.max)}), ours ${digits(row.ours.median)} (${digits(row.ours.min)} to ${digits(row.ours.max)})`,
    ...row.notes.map((note) => `      ${note}`),
  ];
  return lines.join('\n');
}

/** RESULTS.md: figures, machine, and how they were measured. */
export function resultsPage(machine: string, windows: number, results: readonly { figure: Figure; rows: readonly Row[] }[]): string {
  const table = results.flatMap(({ rows }) => rows.map((row) =>
    `| ${row.title} | ${digits(row.limit.median)} | ${digits(row.ours.median)} | ${row.unit} | **${digits(row.ratio)}** (${digits(row.ratioMin)} to ${digits(row.ratioMax)}) | ${targetText(row)} | ${verdict(row)} |`));
  const sections = results.map(({ figure, rows }) => {
    const notes = rows.flatMap((row) => [
      `- ${row.title}: limit ${digits(row.limit.min)} to ${digits(row.limit.max)}, ours ${digits(row.ours.min)} to ${digits(row.ours.max)} ${row.unit}.`,
      ...row.notes.map((note) => `- ${row.title}: ${note}.`),
    ]);
    return [`### ${figure.name}`, '', figure.how, '', ...notes].join('\n');
  });
  return [
    '# Speed and memory', '',
    'Written by `npm run bench -- --write`; `npm run bench -- NAME` measures one figure and prints it.', '',
    `Machine: ${machine}.`, '',
    `Each figure is measured beside its limit, a hand-written loop that does the least that must be done, in the same run: after a warm-up, ${windows} windows of each, in turns. Numbers are medians; the ratio is ours divided by the limit, with the smallest and largest of the pairs of windows in brackets.`, '',
    '| Figure | Limit | Ours | Unit | Ratio | Reach | |',
    '|---|---|---|---|---|---|---|',
    ...table, '',
    '## How each is measured', '',
    sections.join('\n\n'), '',
  ].join('\n');
}
