import { systemClock } from '../../infra/clock.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Input } from '../cli/command.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { isAddress } from '../cli/options.ts';
import { UsageError } from '../cli/usage-error.ts';
import { NodeClient } from '../demo/client.ts';
import { loadStreams } from '../demo/payloads.ts';
import { runDemo } from '../demo/run.ts';
import type { DemoReport, StreamReport } from '../demo/run.ts';
import type { demoOptions } from './demo.ts';
import { DEFAULT_NODE } from './demo.ts';

/** Plays the demo against a node and shows what came of it. */
export async function runDemoCommand({ options }: Input<typeof demoOptions>, io: Io): Promise<ExitCode> {
  const node = options.node ?? fromEnvironment(io);
  const client = new NodeClient(node, io.env['SKUA_USER'], io.env['SKUA_PASSWORD']);
  const streams = await loadStreams();
  const isTerminal = io.stderr.isTTY === true;
  const report = await runDemo(client, streams, {
    nowMs: () => systemClock.monotonicMs(),
    onStream: (stream, done, total) => { if (isTerminal) io.stderr.write(`\r\u001B[2K[${done + 1}/${total}] ${stream}`); },
  }).finally(() => { if (isTerminal) io.stderr.write('\r\u001B[2K'); });
  if (options.json) line(io.stdout, JSON.stringify({ node: new URL(node).origin, ...report }, null, 2));
  else show(report, io);
  return report.isSame ? EXIT.ok : EXIT.failed;
}

function fromEnvironment(io: Io): string {
  const node = io.env['SKUA_NODE'] || DEFAULT_NODE;
  if (!isAddress(node)) throw new UsageError(`SKUA_NODE must be an address such as ${DEFAULT_NODE}, not '${node}'.`);
  return node;
}

const COLUMNS = ['before', 'sent', 'written', 'after'] as const;

function show(report: DemoReport, io: Io): void {
  const { bold, green, red, dim } = coloursFor(io.stdout, io.env);
  const width = Math.max(...report.streams.map(({ stream }) => stream.length)) + 2;
  const row = (name: string, cells: readonly (string | number)[]) => name.padEnd(width) + cells.map((cell) => String(cell).padStart(9)).join('');
  line(io.stdout, bold(row('stream', [...COLUMNS])));
  for (const each of report.streams) {
    const remark = remarkOf(each);
    line(io.stdout, row(each.stream, COLUMNS.map((column) => each[column])) + (remark === '' ? '' : `  ${each.isSame ? dim(remark) : red(remark)}`));
  }
  const sum = (of: (stream: StreamReport) => number) => report.streams.reduce((total, stream) => total + of(stream), 0);
  line(io.stdout, bold(row('all', COLUMNS.map((column) => sum((stream) => stream[column])))));
  line(io.stdout);
  const taken = sum((stream) => stream.sent);
  line(io.stdout, `Sent ${taken} events in ${report.sendSeconds.toFixed(2)} s, read them back in ${report.readSeconds.toFixed(2)} s.`);
  line(io.stdout, report.isSame ? green('What came back is what was sent.') : red('What came back differs from what was sent; the streams are marked above.'));
}

function remarkOf({ isSame, deleted, wasDeleted, before, written }: StreamReport): string {
  if (!isSame) return 'content differs';
  const how = deleted === 'hard' ? 'deleted for ever' : 'deleted (soft)';
  if (wasDeleted) return `${how} before, nothing sent`;
  if (deleted !== null) return `then ${how}`;
  return before === written ? 'a repeat, nothing new' : '';
}
