import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { NODE_FLAGS } from './child.ts';
import { FIGURES } from './figures.ts';
import { type Row, side } from './figure.ts';
import { digits } from './report.ts';

/**
 * Measures another checkout and this one in turns, each window set in processes of their own, so that what disturbs the
 * machine disturbs both. What is compared is what each of them calls its own side; limits are the same code in both.
 */

const USAGE = `Measures the figures of another checkout and of this one in turns.

  node test/bench/compare.ts --before DIR [NAME ...]

  --before DIR   the other checkout, with its dependencies installed; its bench must know --windows and --json
  --rounds N     turns (default 3)
  --windows N    windows of each in a turn (default 3)
  --folder DIR   where the data goes (default: the folder for temporary files)
  --write FILE   writes the table into a file as well
`;
/** What a row may lose before it counts as slower. */
const SPEED_MIN = 0.95;

type NamedRow = Row & { readonly figure: string };
interface Compared {
  readonly unit: string;
  readonly before: number[];
  readonly now: number[];
}

function measure(folder: string, figure: string, windows: number, data: string): NamedRow[] {
  const scratch = mkdtempSync(join(data, 'skua-compare-'));
  try {
    const json = join(scratch, 'rows.json');
    const run = spawnSync(
      process.execPath,
      [...NODE_FLAGS, 'test/bench/main.ts', figure, '--windows', String(windows), '--json', json, '--folder', scratch],
      { cwd: folder, stdio: ['ignore', 'ignore', 'ignore'] },
    );
    // 2 says that a checkout does not have this figure.
    if (run.status === 2) return [];
    // 1 says that a figure missed its goal, which is not asked here.
    if (run.status !== 0 && run.status !== 1)
      throw new Error(`${figure} in ${folder} ended with ${run.status ?? run.signal}.`);
    return JSON.parse(readFileSync(json, 'utf8')) as NamedRow[];
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** How fast this checkout is beside the other one: above 1 is faster, whichever way the unit counts. */
function speed(unit: string, before: number, now: number): number {
  return unit.endsWith('/s') ? now / before : before / now;
}

function line(title: string, { unit, before, now }: Compared): string {
  const was = side(before);
  const is = side(now);
  const ratio = speed(unit, was.median, is.median);
  const best = Math.max(...now.map((value, i) => speed(unit, before[i] ?? was.median, value)));
  const worst = Math.min(...now.map((value, i) => speed(unit, before[i] ?? was.median, value)));
  return `| ${title} | ${digits(was.median)} (${digits(was.min)} to ${digits(was.max)}) | ${digits(is.median)} (${digits(is.min)} to ${digits(is.max)}) | ${unit} | ${now.length} | **${digits(ratio)}** (${digits(worst)} to ${digits(best)}) | ${ratio >= SPEED_MIN ? '' : 'slower'} |`;
}

function main(): number {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      before: { type: 'string' },
      rounds: { type: 'string' },
      windows: { type: 'string' },
      folder: { type: 'string' },
      write: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  const rounds = Number(values.rounds ?? 3);
  const windows = Number(values.windows ?? 3);
  const unknown = positionals.filter((name) => !FIGURES.some((figure) => figure.name === name));
  if (values.help === true || values.before === undefined || unknown.length > 0 || !(rounds >= 1) || !(windows >= 1)) {
    (values.help === true ? process.stdout : process.stderr).write(USAGE);
    return values.help === true ? 0 : 2;
  }
  const before = resolve(values.before);
  const here = resolve(import.meta.dirname, '../..');
  const data = values.folder ?? tmpdir();
  const head = ['| Row | Before | Now | Unit | Windows | Speed beside before | |', '|---|---|---|---|---|---|---|'];
  process.stdout.write(`${head.join('\n')}\n`);
  const lines: string[] = [];
  for (const figure of positionals.length > 0 ? positionals : FIGURES.map(({ name }) => name)) {
    const rows = new Map<string, Compared>();
    for (let round = 0; round < rounds; round++) {
      // Who is first changes from round to round.
      for (const isBefore of round % 2 === 0 ? [true, false] : [false, true]) {
        for (const row of measure(isBefore ? before : here, figure, windows, data)) {
          if (!rows.has(row.title)) rows.set(row.title, { unit: row.unit, before: [], now: [] });
          rows.get(row.title)![isBefore ? 'before' : 'now'].push(...row.windows);
        }
      }
    }
    for (const [title, compared] of rows) {
      if (compared.before.length === 0 || compared.now.length === 0) continue;
      const text = line(title, compared);
      lines.push(text);
      process.stdout.write(`${text}\n`);
    }
    if (values.write !== undefined) writeFileSync(values.write, [...head, ...lines, ''].join('\n'));
  }
  return 0;
}

if (import.meta.main) process.exitCode = main();
