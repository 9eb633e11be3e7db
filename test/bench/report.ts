import { meetsTarget } from './figure.ts';
import type { Row } from './figure.ts';

/** Three significant digits, thousands grouped. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value !== 0 && Math.abs(value) < 100) return String(Number(value.toPrecision(3)));
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ' ');
}

function verdict(row: Row): string {
  const met = meetsTarget(row);
  return met === null ? '' : met ? 'met' : 'missed';
}

function targetText(row: Row): string {
  return row.target === null
    ? ''
    : `${{ below: '<', 'at least': '≥', 'at most': '≤' }[row.target.kind]} ${row.target.value}`;
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

/** How RESULTS.md begins a line about a machine: the letter that its rows have. */
const MACHINE_LINE = /^- \*\*([A-Z])\*\*: (.*)$/;
const RULE = '|---|---|---|---|---|---|---|';

/**
 * RESULTS.md with these rows in the place of those that have the same name, and others behind all. Why a row falls
 * short stays, as long as it does. The letter is that of the machine's line, or the next one, in a line of its own.
 */
export function resultsPage(page: string, machine: string, rows: readonly Row[]): string {
  const lines = page.trimEnd().split('\n');
  const machines = lines.flatMap((line, at) => {
    const found = MACHINE_LINE.exec(line);
    return found === null ? [] : [{ at, letter: found[1]!, text: found[2]! }];
  });
  const known = machines.find(({ text }) => text === machine);
  const letter =
    known?.letter ?? String.fromCharCode(Math.max(64, ...machines.map((each) => each.letter.charCodeAt(0))) + 1);
  if (known === undefined)
    lines.splice((machines.at(-1)?.at ?? lines.indexOf(RULE) - 2) + 1, 0, `- **${letter}**: ${machine}`);
  for (const row of rows) {
    const at = lines.findIndex((line) => line.startsWith(`| ${row.title} |`));
    const why = at < 0 ? '' : lines[at]!.split(' | ').at(-1)!.replace(/ ?\|$/, '');
    const line = resultLine(row, letter, why);
    if (at < 0) lines.push(line);
    else lines[at] = line;
  }
  return `${lines.join('\n')}\n`;
}

function resultLine(row: Row, letter: string, why: string): string {
  const spread = row.ratioMin === row.ratioMax ? '' : ` (${digits(row.ratioMin)}-${digits(row.ratioMax)})`;
  const told = verdict(row);
  return `| ${[row.title, `${digits(row.ours.median)} ${row.unit}`, digits(row.limit.median), `${digits(row.ratio)}${spread}`, targetText(row), letter, told === 'missed' && why.startsWith(told) ? why : told].join(' | ')} |`;
}
