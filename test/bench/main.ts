import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FIGURES } from './figures.ts';
import { meetsTarget } from './figure.ts';
import type { Figure, Row, Settings } from './figure.ts';
import { isMemoryFileSystem, machineLine } from './machine.ts';
import { resultsPage, rowLine } from './report.ts';

const RESULTS = join(import.meta.dirname, 'RESULTS.md');

const USAGE = `Measures the store beside hand-written limits. (\`node test/bench/compare.ts\` measures two checkouts beside one another.)

  npm run bench                    all figures
  npm run bench -- NAME ...        some: ${FIGURES.map((figure) => figure.name).join(', ')}
  npm run bench -- --write         and puts the rows in the place of those of test/bench/RESULTS.md (not with --quick or --smoke)

  --only TEXT    of a figure that has many cases, those whose names contain this
  --windows N    measured windows of each side (default 5)
  --json FILE    and writes the rows, each with all its windows, into a file
  --quick        3 short windows and a quarter of the data, which tells what has become several times slower: under five minutes on an idle machine.
                 Unless they are named, it leaves out what takes minutes itself, by its size or by all that it starts: ${FIGURES.filter(
                   ({ isLong }) => isLong,
                 )
                   .map((figure) => figure.name)
                   .join(', ')}
  --smoke        a run of seconds, whose numbers mean nothing
  --folder DIR   where the data goes (default: the folder for temporary files)
`;

/** Windows of each side, unless more or fewer are asked for. */
const WINDOWS = 5;
const WINDOWS_MAX = 1_000;
const WINDOW_MS = 1_500;

/** Windows, their length, and part of the data of a quick run. */
const WINDOWS_QUICK = 3;
const WINDOW_MS_QUICK = 250;
const SHARE_QUICK = 0.25;

export type RunKind = 'full' | 'quick' | 'smoke';

/** Settings of a run; `windows` null for as many as are usual. */
export function settingsFor(
  folder: string,
  kind: RunKind,
  say: (line: string) => void,
  windows: number | null = null,
  only = '',
): Settings {
  if (kind === 'smoke') {
    return {
      isSmoke: true,
      dataShare: 1,
      folder,
      windows: 1,
      windowMs: 60,
      logEvents: 4_000,
      memoryStreams: 2_000,
      scavengeChunkBytes: 1_048_576,
      scavengeStreams: 2_000,
      scaleEvents: 4_000,
      growthEvents: [1_000, 2_000, 4_000],
      only,
      say,
    };
  }
  const share = kind === 'quick' ? SHARE_QUICK : 1;
  return {
    isSmoke: false,
    dataShare: share,
    folder,
    windows: windows ?? (kind === 'quick' ? WINDOWS_QUICK : WINDOWS),
    windowMs: kind === 'quick' ? WINDOW_MS_QUICK : WINDOW_MS,
    logEvents: 1_000_000 * share,
    memoryStreams: 1_000_000 * share,
    scavengeChunkBytes: 268_435_456 * share,
    scavengeStreams: 5_000_000 * share,
    scaleEvents: 20_000_000,
    growthEvents: [1_000_000, 10_000_000, 50_000_000],
    only,
    say,
  };
}

/** Runs figures one after another, each with a folder that exists as long as the run. */
export async function runFigures(
  figures: readonly Figure[],
  settings: Settings,
): Promise<{ figure: Figure; rows: Row[] }[]> {
  const results: { figure: Figure; rows: Row[] }[] = [];
  for (const figure of figures) {
    settings.say(`${figure.name}: ${figure.how}`);
    const beganAt = performance.now();
    const rows = await figure.run(settings);
    for (const row of rows) settings.say(rowLine(row));
    settings.say(`  (${((performance.now() - beganAt) / 1_000).toFixed(1)} s)`);
    results.push({ figure, rows });
  }
  return results;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean' },
      smoke: { type: 'boolean' },
      write: { type: 'boolean' },
      only: { type: 'string' },
      windows: { type: 'string' },
      json: { type: 'string' },
      folder: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const kind: RunKind = values.smoke === true ? 'smoke' : values.quick === true ? 'quick' : 'full';
  const unknown = positionals.filter((name) => !FIGURES.some((figure) => figure.name === name));
  if (unknown.length > 0 || (values.write === true && kind !== 'full')) {
    process.stderr.write(
      unknown.length > 0
        ? `No figure is called ${unknown.join(', ')}.\n\n${USAGE}`
        : `--write needs all of the data: leave out --quick and --smoke.\n\n${USAGE}`,
    );
    return 2;
  }
  const windows = values.windows === undefined ? null : Number(values.windows);
  if (windows !== null && (!Number.isInteger(windows) || windows < 1 || windows > WINDOWS_MAX)) {
    process.stderr.write(`--windows ${values.windows}: give a whole number from 1 to ${WINDOWS_MAX}.\n\n${USAGE}`);
    return 2;
  }
  const figures =
    positionals.length === 0
      ? FIGURES.filter(({ isLong }) => kind !== 'quick' || isLong !== true)
      : FIGURES.filter((figure) => positionals.includes(figure.name));
  const folder = mkdtempSync(join(values.folder ?? tmpdir(), 'skua-bench-'));
  try {
    const machine = machineLine(folder);
    process.stdout.write(`${machine}\n`);
    if (isMemoryFileSystem(folder))
      process.stderr.write(
        'The data folder lies in memory, where a sync costs nothing: name one on a disk with --folder.\n',
      );
    const settings = settingsFor(folder, kind, (line) => process.stdout.write(`${line}\n`), windows, values.only);
    const results = await runFigures(figures, settings);
    if (values.write === true)
      writeFileSync(
        RESULTS,
        resultsPage(
          readFileSync(RESULTS, 'utf8'),
          machine,
          results.flatMap(({ rows }) => rows),
        ),
      );
    if (values.json !== undefined)
      writeFileSync(
        values.json,
        JSON.stringify(results.flatMap(({ figure, rows }) => rows.map((row) => ({ figure: figure.name, ...row })))),
      );
    return results.some(({ rows }) => rows.some((row) => meetsTarget(row) === false)) && kind !== 'smoke' ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) process.exitCode = await main();
