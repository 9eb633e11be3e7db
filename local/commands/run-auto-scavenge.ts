import type { NodeOutcome } from '../../core/auto-scavenge/api.ts';
import { parseTimeSpan, timestampText } from '../../core/base/time.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { AutoScavengeClient } from '../auto-scavenge/auto-scavenge-client.ts';
import type { StatusDocument } from '../auto-scavenge/auto-scavenge-client.ts';
import { coloursFor, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { AnswerError, NodeClient } from '../cli/node-client.ts';
import { progressText, shareDone, timeLeft } from '../cli/progress.ts';
import { ScavengeClient } from '../scavenge/scavenge-client.ts';
import type { ProgressDocument } from '../../handlers/documents/scavenging.ts';
import { momentOf, NODE_WAYS } from '../scavenge/resumed-point.ts';
import { progressState } from '../scavenge/follow.ts';
import type { autoScavengeOptions } from './options-command.ts';

type Given = Input<typeof autoScavengeOptions>;

function connect({ options }: Given, io: Io): { readonly node: NodeClient; readonly client: AutoScavengeClient } {
  const node = NodeClient.of(options, io.env);
  return { node, client: new AutoScavengeClient(node) };
}

/** That it is off is an answer, not a failure. */
export async function runAutoScavengeStatus(given: Given, io: Io): Promise<ExitCode> {
  const { node, client } = connect(given, io);
  const enabled = await client.enabled();
  if (!enabled.enabled) {
    line(
      io.stdout,
      given.options.json ? JSON.stringify(enabled) : `Auto-scavenge is off. ${enabled.reason ?? ''}`.trimEnd(),
    );
    return EXIT.ok;
  }
  const status = await client.status();
  const progress =
    status.cycle?.nodes.some(({ state }) => state === 'running') === true ? await progressOf(node) : null;
  if (given.options.json) line(io.stdout, JSON.stringify({ ...enabled, ...status, progress }, null, 2));
  else showStatus(status, progress, systemClock.nowMs(), io);
  return EXIT.ok;
}

/** A user who may see the status need not be allowed to see the progress. */
async function progressOf(node: NodeClient): Promise<ProgressDocument | null> {
  try {
    return (await new ScavengeClient(node).progress())?.value ?? null;
  } catch (error) {
    if (error instanceof AnswerError && error.status === 403) return null;
    throw error;
  }
}

export async function runAutoScavengeConfigure(given: Given, io: Io): Promise<ExitCode> {
  const { client } = connect(given, io);
  await client.configure(given.positionals[0]!);
  const status = await client.status();
  if (given.options.json) line(io.stdout, JSON.stringify(status));
  else
    line(
      io.stdout,
      `The schedule is ${status.schedule ?? given.positionals[0]!}${nextText(status, systemClock.nowMs())}`,
    );
  return EXIT.ok;
}

export async function runAutoScavengePause(given: Given, io: Io): Promise<ExitCode> {
  const isPaused = await connect(given, io).client.pause();
  if (given.options.json) line(io.stdout, JSON.stringify({ state: isPaused ? 'Paused' : 'Pausing' }));
  else
    line(
      io.stdout,
      isPaused
        ? 'Paused. Nothing starts until `skua auto-scavenge resume`.'
        : 'Pausing: no new scavenge starts, and the running one is being stopped. `skua auto-scavenge status` shows when it has stopped.',
    );
  return EXIT.ok;
}

export async function runAutoScavengeResume(given: Given, io: Io): Promise<ExitCode> {
  const { client } = connect(given, io);
  await client.resume();
  const status = await client.status();
  if (given.options.json) line(io.stdout, JSON.stringify(status));
  else
    line(
      io.stdout,
      `Resumed. ${status.state === 'InProgress' ? 'The cycle continues.' : `State: ${status.state}${nextText(status, systemClock.nowMs())}`}`,
    );
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'node', align: 'left' },
  { title: 'state', align: 'left' },
  { title: 'result', align: 'left' },
  { title: 'scavenge', align: 'left' },
];

/** The status for people. `progress` is that of the node that was asked; null when it does not scavenge. */
export function showStatus(status: StatusDocument, progress: ProgressDocument | null, nowMs: number, io: Io): void {
  const { bold } = coloursFor(io.stdout, io.env);
  const out = (text: string) => line(io.stdout, text);
  const { state, schedule, cycle, lastCycle, waiting } = status;
  out(`${bold(WORDS[state])}${nextText(status, nowMs)}`);
  out(`Schedule: ${schedule ?? 'none. Set one with `skua auto-scavenge configure CRON`.'}`);
  if (cycle !== null && cycle !== undefined) {
    out(`Cycle ${cycle.clusterScavengeId}, since ${cycle.startedAt}:`);
    showNodes(cycle.nodes, io);
    const running = cycle.nodes.find(
      ({ scavengeId, state: each }) => each === 'running' && scavengeId === progress?.scavengeId,
    );
    if (progress !== null && running !== undefined) out(`${running.node}: ${progressLine(progress)}`);
  }
  if (waiting !== undefined) {
    out(
      `A scavenge of this node is unfinished, of ${momentOf(waiting)}: the next cycle resumes it, up to that time, and leaves what was deleted or has expired since to the cycle after it. \`${NODE_WAYS.untilClean}\` does both now.`,
    );
  }
  if (lastCycle !== null && lastCycle !== undefined) {
    out(`Last cycle ${lastCycle.clusterScavengeId}, completed at ${lastCycle.completedAt}:`);
    showNodes(lastCycle.nodes, io);
  }
}

const WORDS = {
  NotConfigured: 'Not configured',
  Waiting: 'Waiting',
  InProgress: 'In progress',
  Pausing: 'Pausing: a scavenge is being stopped',
  Paused: 'Paused: nothing starts until `skua auto-scavenge resume`',
} as const satisfies Readonly<Record<StatusDocument['state'], string>>;

/** When the next cycle starts; only where one is waited for. */
export function nextText({ state, timeUntilNextCycle }: StatusDocument, nowMs: number): string {
  const span = state === 'Waiting' && timeUntilNextCycle !== null ? parseTimeSpan(timeUntilNextCycle) : null;
  if (span === null) return '.';
  if (span === 0) return ': the next cycle is about to start.';
  return `: the next cycle starts in ${spanText(span)}, at ${timestampText(Math.round((nowMs + span) / 1_000) * 1_000, 0)}.`;
}

/** `2 d 3 h 45 min`, without the units that are zero; seconds only below a minute. */
function spanText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`);
  return shown.length === 0 ? `${seconds} s` : shown.join(' ');
}

function showNodes(nodes: readonly NodeOutcome[], io: Io): void {
  const { green, red, yellow } = coloursFor(io.stdout, io.env);
  const rows = nodes.map(({ node, state, result, scavengeId }) => [node, state, result ?? '', scavengeId ?? '']);
  const [titles, ...lines] = tableLines(COLUMNS, rows);
  line(io.stdout, `  ${titles!}`);
  for (const [at, text] of lines.entries()) {
    const { result } = nodes[at]!;
    const paint = result === 'Success' ? green : result === 'Errored' ? red : result === 'Stopped' ? yellow : String;
    line(io.stdout, `  ${paint(text)}`);
  }
}

function progressLine(progress: ProgressDocument): string {
  const { elapsedSeconds, remainingSeconds, bytesDone } = progress;
  const state = progressState(progress);
  return progressText({
    ...state,
    done: shareDone(state),
    bytesPerSecond: elapsedSeconds > 0 ? bytesDone / elapsedSeconds : 0,
    secondsLeft: timeLeft(state, elapsedSeconds, remainingSeconds),
  });
}
