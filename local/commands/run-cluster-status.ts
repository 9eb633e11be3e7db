import { systemClock } from '../../infra/system-clock.ts';
import { isWhole, readGossip, statusOf } from '../cluster/gossip-client.ts';
import type { ClusterStatus, MemberStatus } from '../cluster/gossip-client.ts';
import { nodeOf } from '../cli/command.ts';
import type { Input } from '../cli/command.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { coloursFor, countText, draw, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import { AnswerError, NodeClient } from '../cli/node-client.ts';
import { bytesText } from '../cli/progress.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import { shown } from '../../infra/runtime/config/sources.ts';
import type { clusterStatusOptions } from './options-command.ts';

/** How often --watch asks. */
const LOOK_MS = 1_000;
/** Of a terminal that does not say how wide it is. */
const WIDTH = 80;

type Options = Input<typeof clusterStatusOptions>['options'];

/**
 * Shows the members of a cluster as one of them knows it; exit code 1 where no member leads, or a member does not
 * serve.
 */
export async function runClusterStatus(
  { options }: Input<typeof clusterStatusOptions>,
  io: Io,
  lookMs = LOOK_MS,
): Promise<ExitCode> {
  const asked = new Asked(options, io);
  if (options.watch) return watch(asked, options.json, io, lookMs);
  const status = await asked.status();
  if (options.json) line(io.stdout, JSON.stringify(status, null, 2));
  else for (const text of statusLines(status, io)) line(io.stdout, text);
  return isWhole(status) ? EXIT.ok : EXIT.failed;
}

/** The nodes to ask: the one that was named, and where it is silent those that it has listed. */
class Asked {
  readonly #options: Options;
  readonly #io: Io;
  readonly #first: URL;
  #members: readonly string[] = [];

  constructor(options: Options, io: Io) {
    this.#options = options;
    this.#io = io;
    this.#first = new URL(nodeOf(options.node, io));
  }

  async status(): Promise<ClusterStatus> {
    let failure: unknown = null;
    for (const host of [this.#first.host, ...this.#members.filter((each) => each !== this.#first.host)]) {
      try {
        const status = statusOf(await readGossip(this.#client(host)));
        this.#members = status.members.map(({ address }) => address);
        return status;
      } catch (error) {
        if (!isSilent(error)) throw error;
        failure ??= error;
      }
    }
    throw failure;
  }

  #client(host: string): NodeClient {
    const url = new URL(this.#first);
    url.host = host;
    return new NodeClient(url.href, this.#io.env, this.#options.ca);
  }
}

/** What may pass while a watch goes on. */
function isSilent(error: unknown): boolean {
  return (
    (error instanceof CommandError && error.code === 'node_unreachable') ||
    (error instanceof AnswerError && error.status === 503)
  );
}

/** Shows the status anew until Ctrl+C: in place on a terminal, else whenever it has changed. */
async function watch(asked: Asked, json: boolean, io: Io, lookMs: number): Promise<ExitCode> {
  const interrupt = listenForInterrupt('', io);
  const inPlace = io.stdout.isTTY === true && !json;
  let last = '';
  let height = 0;
  try {
    while (!interrupt.signal.aborted) {
      const lines = await looked(asked, json, io, inPlace ? (io.stdout.columns ?? WIDTH) : Number.POSITIVE_INFINITY);
      const text = lines.join('\n');
      if (inPlace) {
        // Up to where the last one began; each line is cleared to its end, and so is what lies below.
        if (height > 0) draw(io.stdout, `\u001B[${height}A`);
        for (const each of lines) {
          io.stdout.write(each);
          draw(io.stdout, '\u001B[K\n');
        }
        draw(io.stdout, '\u001B[J');
        height = lines.length;
      } else if (text !== last) {
        line(io.stdout, text);
        last = text;
      }
      await systemClock.sleep(lookMs, interrupt.signal);
    }
    return EXIT.ok;
  } finally {
    interrupt.release();
  }
}

async function looked(asked: Asked, json: boolean, io: Io, width: number): Promise<readonly string[]> {
  try {
    const status = await asked.status();
    return json ? [JSON.stringify(status)] : statusLines(status, io, width);
  } catch (error) {
    if (!isSilent(error)) throw error;
    const { code, message } = error as CommandError;
    return [
      json
        ? JSON.stringify({ error: code, message })
        : coloursFor(io.stdout, io.env).red(`No member answers: ${message}`.slice(0, width)),
    ];
  }
}

/** A bucket whose answer is on its way has been silent for some milliseconds, too. */
const SILENCE_SHOWN_MS = 1_000;

const COLUMNS: readonly Column[] = [
  { title: 'member', align: 'left' },
  { title: 'state', align: 'left' },
  { title: 'priority', align: 'right' },
  { title: 'epoch', align: 'right' },
  { title: 'log end', align: 'right' },
  { title: 'lag', align: 'left' },
  { title: 'version', align: 'left' },
  { title: 'remarks', align: 'left' },
];

/**
 * A line for each member, and above them the leader. A line that wrapped would be shown again and again by what redraws
 * it.
 */
export function statusLines(status: ClusterStatus, io: Io, width = Number.POSITIVE_INFINITY): readonly string[] {
  const { bold, red, yellow } = coloursFor(io.stdout, io.env);
  const { leader, epoch, members, askedNode } = status;
  const alive = members.filter(({ isAlive }) => isAlive).length;
  const paint = leader === null ? red : bold;
  const [titles, ...rows] = tableLines(COLUMNS, members.map(cellsOf)).map((text) => text.slice(0, width));
  return [
    paint(
      `${leader === null ? 'No leader' : `${leader} leads, epoch ${epoch}`}; ${alive} of ${members.length} ${members.length === 1 ? 'member' : 'members'} alive, as seen by ${askedNode}`.slice(
        0,
        width,
      ),
    ),
    titles!,
    ...rows.map((text, at) =>
      !members[at]!.isAlive
        ? red(text)
        : members[at]!.lagBytes > 0 || members[at]!.bucketSilentMs >= SILENCE_SHOWN_MS
          ? yellow(text)
          : text,
    ),
  ];
}

function cellsOf({
  address,
  state,
  isAlive,
  priority,
  epoch,
  end,
  lagBytes,
  lagCommits,
  scavengeId,
  bucketSilentMs,
  version,
}: MemberStatus): string[] {
  const remarks = [
    ...(scavengeId === null ? [] : [`scavenges (${scavengeId})`]),
    ...(bucketSilentMs < SILENCE_SHOWN_MS
      ? []
      : [`the bucket has not answered for ${Math.floor(bucketSilentMs / 1_000)} s`]),
  ];
  const commits = lagCommits === null ? '' : `${countText(lagCommits)} commits, `;
  const lag = lagBytes === 0 && (lagCommits ?? 0) === 0 ? 'none' : commits + bytesText(lagBytes);
  return [
    shown(address),
    isAlive ? shown(state) : `dead (${shown(state)})`,
    String(priority),
    epoch < 0 ? 'none' : String(epoch),
    countText(end),
    lag,
    shown(version),
    shown(remarks.join(', ')),
  ];
}
