import { DEFAULT_PASSWORD } from '../../core/security/security.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { coloursFor, counted, EXIT, line, shellWord } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { KEPT_EVENTS, leaveOne, runDemo, StreamClient } from '../demo/play-demo.ts';
import type { DemoReport, LeftReport, StreamReport } from '../demo/play-demo.ts';
import { CONNECTOR_ID, DemoConnector } from '../demo/connector.ts';
import { loadStreams } from '../demo/demo-payloads.ts';
import { runScavengeDemo } from '../demo/demo-scavenge.ts';
import { ScavengeClient } from '../scavenge/scavenge-client.ts';
import type { ScavengeReport } from '../demo/demo-scavenge.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import { NodeClient } from '../cli/node-client.ts';
import { commandName } from '../cli/started-by.ts';
import { bytesText, elapsedText, Progress } from '../cli/progress.ts';
import type { demoOptions } from './options-command.ts';

/** Plays the demo against a node and shows what came of it. */
export async function runDemoCommand({ options }: Input<typeof demoOptions>, io: Io): Promise<ExitCode> {
  const node = NodeClient.of(options, { SKUA_USER: 'admin', SKUA_PASSWORD: DEFAULT_PASSWORD, ...io.env });
  const streams = await loadStreams();
  const bytesTotal = streams.reduce(
    (total, { deliveries }) => total + deliveries.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0),
    0,
  );
  const progress = new Progress({
    io,
    onLine: (text) => {
      if (!options.json) line(io.stderr, text);
    },
  });
  let bytesDone = 0;
  progress.update({ label: POSTING, bytesDone, bytesTotal });
  const client = new StreamClient(node);
  const report = await runDemo({ client, connector: new DemoConnector(node, (ms) => systemClock.sleep(ms)) }, streams, {
    nowMs: () => systemClock.monotonicMs(),
    onPosted: (stream, bytes) => {
      bytesDone += bytes;
      progress.update({ label: POSTING, detail: stream, bytesDone, bytesTotal });
    },
  }).finally(() => progress.clear());
  if (!options.json) show(report, io);
  const interrupt = listenForInterrupt('The demo was interrupted; a scavenge it started keeps running.', io);
  const scavenge = await runScavengeDemo(node, report.streams, {
    io,
    signal: interrupt.signal,
    directory: options.db,
  }).finally(() => interrupt.release());
  const left = await leaveOne(client, report.streams);
  if (options.json) line(io.stdout, JSON.stringify({ node: node.base, ...report, scavenge, left }, null, 2));
  else {
    showScavenge(scavenge, options.db, io);
    if (await isStillThere(node, left.stream)) showLeft(left, options, io);
  }
  const isErased = scavenge.erasure === null || scavenge.erasure.after.length === 0;
  return report.isSame && isErased && (scavenge.result ?? 'Success') === 'Success' ? EXIT.ok : EXIT.failed;
}

/** Whether the next scavenge has something to remove: what an earlier run left is gone once somebody has scavenged. */
async function isStillThere(node: NodeClient, stream: string): Promise<boolean> {
  const { removed, redacted } = (await new ScavengeClient(node).explain(stream)).value;
  return removed.length > 0 || redacted !== undefined;
}

const POSTING = 'posting webhooks';
const COLUMNS = ['before', 'sent', 'written', 'after'] as const;

function show(report: DemoReport, io: Io): void {
  const { bold, green, red, dim } = coloursFor(io.stdout, io.env);
  const width = Math.max(...report.streams.map(({ stream }) => stream.length)) + 2;
  const row = (name: string, cells: readonly (string | number)[]) =>
    name.padEnd(width) + cells.map((cell) => String(cell).padStart(9)).join('');
  line(io.stdout, bold(row('stream', [...COLUMNS])));
  for (const each of report.streams) {
    const remark = remarkOf(each);
    line(
      io.stdout,
      row(
        each.stream,
        COLUMNS.map((column) => each[column]),
      ) + (remark === '' ? '' : `  ${each.isSame ? dim(remark) : red(remark)}`),
    );
  }
  const sum = (of: (stream: StreamReport) => number) => report.streams.reduce((total, stream) => total + of(stream), 0);
  line(
    io.stdout,
    bold(
      row(
        'all',
        COLUMNS.map((column) => sum((stream) => stream[column])),
      ),
    ),
  );
  line(io.stdout);
  const taken = sum((stream) => stream.sent);
  const refused = sum((stream) => stream.refused);
  line(
    io.stdout,
    `Posted ${counted(taken, 'webhook')} to /webhook/${CONNECTOR_ID} in ${report.sendSeconds.toFixed(2)} s: ${taken - refused} accepted, ${refused} refused. Read the events back in ${report.readSeconds.toFixed(2)} s.`,
  );
  line(
    io.stdout,
    report.isSigned
      ? `Each was signed as GitHub does; one with a wrong signature got ${report.forgedStatus}.`
      : dim(
          'None was signed: the node stores no secrets without a data-protection token. Set SERVER_CONNECTORS__DATA_PROTECTION__TOKEN to give it one.',
        ),
  );
  line(
    io.stdout,
    report.isSame
      ? green('The events read match what was sent.')
      : red('The events read differ from what was sent; the streams are marked above.'),
  );
}

const FATES = {
  soft: 'deleted (soft)',
  hard: 'deleted (hard)',
  limited: `limited to its newest ${KEPT_EVENTS}`,
} as const;

function remarkOf({ isSame, refused, fate, wasBefore, written }: StreamReport): string {
  if (refused > 0) return `${refused} refused`;
  if (!isSame) return 'content differs';
  if (fate !== null) return wasBefore ? `${FATES[fate]} before, nothing sent` : `then ${FATES[fate]}`;
  return written === 0 ? 'a repeat, nothing new' : '';
}

function showScavenge(
  { removable, result, bytesBefore, bytesAfter, seconds, isElsewhere, erasure }: ScavengeReport,
  directory: string,
  io: Io,
): void {
  const { bold, green, red, dim } = coloursFor(io.stdout, io.env);
  line(io.stdout);
  if (result === null) {
    line(
      io.stdout,
      removable === 0
        ? `The chunk files hold ${bytesText(bytesBefore)} and nothing to remove: no scavenge is needed.`
        : `The chunk files hold ${bytesText(bytesBefore)}, of which ${counted(removable, 'record')} can be removed. This run deleted nothing, so it does not scavenge.`,
    );
    if (isElsewhere)
      line(
        io.stdout,
        dim(
          `The files of that node are not in ${directory}, so they were not searched; --db DIR names its data directory.`,
        ),
      );
    return;
  }
  line(
    io.stdout,
    `Deleted and expired events are still on disk: ${counted(removable, 'record')} to remove. Scavenging${seconds === null ? '' : ` took ${elapsedText(seconds)}`}: ${result === 'Success' ? green('done') : red(result)}.`,
  );
  line(io.stdout, `Chunk files: ${bold(bytesText(bytesBefore))} before, ${bold(bytesText(bytesAfter))} after.`);
  if (erasure === null) {
    line(
      io.stdout,
      dim(
        isElsewhere
          ? `The files of that node are not in ${directory}, so the erasure is not proved; --db DIR names its data directory.`
          : 'No stream was deleted for ever in this run, so no erasure is proved.',
      ),
    );
    return;
  }
  const { stream, before, after } = erasure;
  line(
    io.stdout,
    `The events of ${stream} were in ${before.join(', ')}; now ${after.length === 0 ? green('no file holds a trace of them') : red(`they are in ${after.join(', ')}`)}.`,
  );
}

/** What the next scavenge has to do, and how to see it. */
function showLeft(
  { stream, events, wasBefore }: LeftReport,
  { node, ca }: Input<typeof demoOptions>['options'],
  io: Io,
): void {
  const { dim } = coloursFor(io.stdout, io.env);
  const at = (node === null ? '' : ` --node ${shellWord(node)}`) + (ca === null ? '' : ` --ca ${shellWord(ca)}`);
  const commands = [
    [`explain ${stream}`, 'what would go of it, and why'],
    ['scavenge start --dry-run', 'what would go of all streams; changes nothing'],
    ['scavenge start --wait', 'let it go'],
  ].map(([words, does]) => [`${commandName(io.env)} ${words}${at}`, does!] as const);
  const width = Math.max(...commands.map(([command]) => command.length));
  line(
    io.stdout,
    [
      '',
      `${wasBefore ? `An earlier run has deleted ${stream}` : `After that scavenge the demo deleted ${stream}, with ${counted(events, 'event')}`}. Its data is still on disk, for the next scavenge. Try:`,
      '',
      ...((io.env['SKUA_USER'] ?? '') === '' ? [`export SKUA_USER=admin SKUA_PASSWORD=${DEFAULT_PASSWORD}`] : []),
      ...commands.map(([command, does]) => `${command.padEnd(width)}  ${dim(`# ${does}`)}`),
    ].join('\n'),
  );
}
