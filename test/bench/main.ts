import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FIGURES } from './figures.ts';
import { meetsTarget } from './figure.ts';
import type { Figure, Row, Settings } from './figure.ts';
import { isMemoryFileSystem, machineLine } from './machine.ts';
import { resultsPage, rowLine } from './report.ts';

const USAGE = `Measures the store beside hand-written limits.

  npm run bench                    all figures
  npm run bench -- NAME ...        some: ${FIGURES.map((figure) => figure.name).join(', ')}
  npm run bench -- --write         and writes test/bench/RESULTS.md (all figures only)

  --quick        a smoke run of seconds, whose numbers mean nothing
  --folder DIR   where the data goes (default: the folder for temporary files)
`;

/** Settings of a full or a smoke run. */
export function settingsFor(folder: string, quick: boolean, say: (line: string) => void): Settings {
  return quick
    ? { quick, folder, windows: 1, windowMs: 60, logEvents: 4_000, memoryStreams: 2_000, scavengeChunkBytes: 1_048_576, scavengeStreams: 2_000, say }
    : { quick, folder, windows: 5, windowMs: 1_500, logEvents: 1_000_000, memoryStreams: 1_000_000, scavengeChunkBytes: 268_435_456, scavengeStreams: 5_000_000, say };
}

/** Runs figures one after another, each with a folder that exists as long as the run. */
export async function runFigures(figures: readonly Figure[], settings: Settings): Promise<{ figure: Figure; rows: Row[] }[]> {
  const results: { figure: Figure; rows: Row[] }[] = [];
  for (const figure of figures) {
    settings.say(figure.name);
    const rows = await figure.run(settings);
    for (const row of rows) settings.say(rowLine(row));
    results.push({ figure, rows });
  }
  return results;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { quick: { type: 'boolean' }, write: { type: 'boolean' }, folder: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const unknown = positionals.filter((name) => !FIGURES.some((figure) => figure.name === name));
  if (unknown.length > 0 || (values.write === true && (positionals.length > 0 || values.quick === true))) {
    process.stderr.write(unknown.length > 0 ? `No figure is called ${unknown.join(', ')}.\n\n${USAGE}` : `--write needs a full run of all figures.\n\n${USAGE}`);
    return 2;
  }
  const figures = positionals.length === 0 ? FIGURES : FIGURES.filter((figure) => positionals.includes(figure.name));
  const folder = mkdtempSync(join(values.folder ?? tmpdir(), 'skua-bench-'));
  try {
    const machine = machineLine(folder);
    process.stdout.write(`${machine}\n`);
    if (isMemoryFileSystem(folder)) process.stderr.write('The data folder lies in memory, where a sync costs nothing: name one on a disk with --folder.\n');
    const settings = settingsFor(folder, values.quick === true, (line) => process.stdout.write(`${line}\n`));
    const results = await runFigures(figures, settings);
    if (values.write === true) writeFileSync(join(import.meta.dirname, 'RESULTS.md'), resultsPage(machine, settings.windows, results));
    return results.some(({ rows }) => rows.some((row) => meetsTarget(row) === false)) && values.quick !== true ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) process.exitCode = await main();
