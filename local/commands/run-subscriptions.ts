import type { Input } from '../cli/command.ts';
import { UsageError } from '../../infra/runtime/failure.ts';
import { coloursFor, counted, countText, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import { NodeClient } from '../cli/node-client.ts';
import { shown } from '../../infra/runtime/config/sources.ts';
import { SubscriptionsClient } from '../persistent/group-client.ts';
import type { SubscriptionDetails, SubscriptionSummary } from '../persistent/group-client.ts';
import type {
  subscriptionsListOptions,
  subscriptionsOptions,
  subscriptionsReplayOptions,
  subscriptionsResetOptions,
} from './options-command.ts';

type Given = Input<typeof subscriptionsOptions>;

function connect(options: Given['options'], io: Io): SubscriptionsClient {
  return new SubscriptionsClient(NodeClient.of(options, io.env));
}

export async function runSubscriptionsList(
  { options }: Input<typeof subscriptionsListOptions>,
  io: Io,
): Promise<ExitCode> {
  const subscriptions = await connect(options, io).list(options.stream);
  if (options.json) line(io.stdout, JSON.stringify({ subscriptions }, null, 2));
  else showList(subscriptions, io);
  return EXIT.ok;
}

const LIST: readonly Column[] = [
  ...['stream', 'group', 'status'].map((title): Column => ({ title, align: 'left' })),
  ...['consumers', 'in flight', 'parked', 'checkpoint', 'last event'].map((title): Column => ({
    title,
    align: 'right',
  })),
];

function showList(subscriptions: readonly SubscriptionSummary[], io: Io): void {
  if (subscriptions.length === 0) {
    line(io.stdout, 'There are no persistent subscriptions.');
    return;
  }
  const { yellow } = coloursFor(io.stdout, io.env);
  const rows = subscriptions.map((each) => [
    shown(each.eventStreamId),
    shown(each.groupName),
    each.status,
    countText(each.connectionCount),
    countText(each.totalInFlightMessages),
    each.parkedMessageCount === undefined ? '' : countText(each.parkedMessageCount),
    each.lastCheckpointedEventPosition ?? '',
    each.lastKnownEventPosition ?? '',
  ]);
  const [titles, ...lines] = tableLines(LIST, rows);
  line(io.stdout, titles);
  for (const [at, text] of lines.entries())
    line(io.stdout, (subscriptions[at]!.parkedMessageCount ?? 0) > 0 ? yellow(text) : text);
  const parked = subscriptions.filter(({ parkedMessageCount = 0 }) => parkedMessageCount > 0);
  if (parked.length > 0)
    line(
      io.stdout,
      `${counted(parked.length, 'group')} with parked messages: \`skua subscriptions replay-parked STREAM GROUP\` replays them.`,
    );
}

export async function runSubscriptionsInfo(
  { options, positionals: [stream, group] }: Given,
  io: Io,
): Promise<ExitCode> {
  const details = await connect(options, io).info(stream!, group!);
  if (options.json) line(io.stdout, JSON.stringify(details, null, 2));
  else showDetails(details, io);
  return EXIT.ok;
}

const CONSUMERS: readonly Column[] = [
  ...['user', 'connection', 'from'].map((title): Column => ({ title, align: 'left' })),
  ...['in flight', 'free', 'sent', 'a second'].map((title): Column => ({ title, align: 'right' })),
];

function showDetails(details: SubscriptionDetails, io: Io): void {
  const { bold } = coloursFor(io.stdout, io.env);
  const out = (text: string) => line(io.stdout, text);
  out(`${bold(`${shown(details.eventStreamId)}::${shown(details.groupName)}`)}  ${details.status}`);
  out(
    `Checkpoint ${details.lastCheckpointedEventPosition ?? 'none yet'}, last known event ${details.lastKnownEventPosition ?? 'none yet'}, sent ${countText(details.totalItemsProcessed)}, parked ${countText(details.parkedMessageCount ?? 0)}`,
  );
  out(
    `In flight ${countText(details.totalInFlightMessages)}, to be sent: ${countText(details.readBufferCount)} from the history, ${countText(details.liveBufferCount)} live, ${countText(details.retryBufferCount)} again`,
  );
  out(
    `Settings: ${Object.entries(details.config)
      .map(([name, value]) => `${name} ${String(value)}`)
      .join(', ')}`,
  );
  if (details.connections.length === 0) {
    out('No consumers connected.');
    return;
  }
  const rows = details.connections.map((each) => [
    shown(each.username),
    shown(each.connectionName),
    shown(each.from),
    countText(each.inFlightMessages),
    countText(each.availableSlots),
    countText(each.totalItemsProcessed),
    countText(Math.round(each.averageItemsPerSecond)),
  ]);
  for (const text of tableLines(CONSUMERS, rows)) out(`  ${text}`);
}

export async function runSubscriptionsReplay(
  { options, positionals: [stream, group] }: Input<typeof subscriptionsReplayOptions>,
  io: Io,
): Promise<ExitCode> {
  const client = connect(options, io);
  const { parkedMessageCount: parkedBefore = 0 } = await client.info(stream!, group!);
  await client.replayParked(stream!, group!, options['stop-at']);
  if (options.json) line(io.stdout, JSON.stringify({ stream, group, parkedBefore }));
  else
    line(
      io.stdout,
      parkedBefore === 0
        ? `${name(stream!, group!)} has no parked messages.`
        : `${name(stream!, group!)} replays ${options['stop-at'] === null ? counted(parkedBefore, 'parked message') : `parked messages up to number ${options['stop-at']}`}.`,
    );
  return EXIT.ok;
}

export async function runSubscriptionsReset(
  { options, positionals: [stream, group] }: Input<typeof subscriptionsResetOptions>,
  io: Io,
): Promise<ExitCode> {
  const { from } = options;
  if (from === null) throw new UsageError('--from is missing: give the position to start from, such as --from start.');
  await connect(options, io).reset(stream!, group!, from);
  if (options.json) line(io.stdout, JSON.stringify({ stream, group, from }));
  else line(io.stdout, `${name(stream!, group!)} starts over from ${shown(from)}.`);
  return EXIT.ok;
}

export async function runSubscriptionsRestart({ options }: Given, io: Io): Promise<ExitCode> {
  await connect(options, io).restart();
  line(
    io.stdout,
    options.json
      ? JSON.stringify({ result: 'Success' })
      : 'The persistent subscriptions have restarted from their checkpoints.',
  );
  return EXIT.ok;
}

export async function runSubscriptionsDelete(
  { options, positionals: [stream, group] }: Given,
  io: Io,
): Promise<ExitCode> {
  await connect(options, io).delete(stream!, group!);
  line(io.stdout, options.json ? JSON.stringify({ stream, group }) : `${name(stream!, group!)} is deleted.`);
  return EXIT.ok;
}

function name(stream: string, group: string): string {
  return `${shown(stream)}::${shown(group)}`;
}
