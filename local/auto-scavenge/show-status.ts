import type { NodeOutcome } from '../../core/auto-scavenge/api.ts';
import { parseTimeSpan } from '../../core/scavenge/time-span.ts';
import { timestampText } from '../../core/time.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Io } from '../cli/io.ts';
import { line } from '../cli/io.ts';
import { tableLines } from '../cli/table.ts';
import type { Column } from '../cli/table.ts';
import { progressText } from '../progress.ts';
import type { ProgressDocument } from '../scavenge/client.ts';
import { progressState } from '../scavenge/follow.ts';
import type { StatusDocument } from './client.ts';

const COLUMNS: readonly Column[] = [{ title: 'node', align: 'left' }, { title: 'state', align: 'left' }, { title: 'result', align: 'left' }, { title: 'scavenge', align: 'left' }];

/** The status for people. `progress` is that of the node that was asked; null when it does not scavenge. */
export function showStatus(status: StatusDocument, progress: ProgressDocument | null, nowMs: number, io: Io): void {
  const { bold } = coloursFor(io.stdout, io.env);
  const out = (text: string) => line(io.stdout, text);
  const { state, schedule, cycle, lastCycle } = status;
  out(`${bold(WORDS[state])}${nextText(status, nowMs)}`);
  out(`Schedule: ${schedule ?? 'none. Set one with `skua auto-scavenge configure CRON`.'}`);
  if (cycle !== null && cycle !== undefined) {
    out(`Cycle ${cycle.clusterScavengeId}, since ${cycle.startedAt}:`);
    showNodes(cycle.nodes, io);
    const running = cycle.nodes.find(({ scavengeId, state: each }) => each === 'running' && scavengeId === progress?.scavengeId);
    if (progress !== null && running !== undefined) out(`${running.node}: ${progressLine(progress)}`);
  }
  if (lastCycle !== null && lastCycle !== undefined) {
    out(`Last cycle ${lastCycle.clusterScavengeId}, completed at ${lastCycle.completedAt}:`);
    showNodes(lastCycle.nodes, io);
  }
}

const WORDS = {
  NotConfigured: 'Not configured', Waiting: 'Waiting', InProgress: 'In progress', Pausing: 'Pausing: a scavenge is being stopped', Paused: 'Paused: nothing starts until `skua auto-scavenge resume`',
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
  const parts = [[Math.floor(seconds / 86_400), 'd'], [Math.floor(seconds / 3_600) % 24, 'h'], [Math.floor(seconds / 60) % 60, 'min']] as const;
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
  return progressText({ ...progressState(progress), bytesPerSecond: elapsedSeconds > 0 ? bytesDone / elapsedSeconds : 0, secondsLeft: remainingSeconds });
}
