import { systemClock } from '../../infra/clock.ts';
import { AutoScavengeClient } from '../auto-scavenge/client.ts';
import { nextText, showStatus } from '../auto-scavenge/show-status.ts';
import type { Input } from '../cli/command.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { nodeOf } from '../cli/node-option.ts';
import { AnswerError, NodeClient } from '../node-client.ts';
import { ScavengeClient } from '../scavenge/client.ts';
import type { ProgressDocument } from '../scavenge/client.ts';
import type { autoScavengeOptions } from './auto-scavenge.ts';

type Given = Input<typeof autoScavengeOptions>;

function connect({ options }: Given, io: Io): { readonly node: NodeClient; readonly client: AutoScavengeClient } {
  const node = new NodeClient(nodeOf(options.node, io), io.env);
  return { node, client: new AutoScavengeClient(node) };
}

/** That it is off is an answer, not a failure. */
export async function runAutoScavengeStatus(given: Given, io: Io): Promise<ExitCode> {
  const { node, client } = connect(given, io);
  const enabled = await client.enabled();
  if (!enabled.enabled) {
    line(io.stdout, given.options.json ? JSON.stringify(enabled) : `Auto-scavenge is off. ${enabled.reason ?? ''}`.trimEnd());
    return EXIT.ok;
  }
  const status = await client.status();
  const progress = status.cycle?.nodes.some(({ state }) => state === 'running') === true ? await progressOf(node) : null;
  if (given.options.json) line(io.stdout, JSON.stringify({ ...enabled, ...status, progress }, null, 2));
  else showStatus(status, progress, systemClock.nowMs(), io);
  return EXIT.ok;
}

/** Whoever may see the status need not be allowed to see the progress. */
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
  else line(io.stdout, `The schedule is ${status.schedule ?? given.positionals[0]!}${nextText(status, systemClock.nowMs())}`);
  return EXIT.ok;
}

export async function runAutoScavengePause(given: Given, io: Io): Promise<ExitCode> {
  const isPaused = await connect(given, io).client.pause();
  if (given.options.json) line(io.stdout, JSON.stringify({ state: isPaused ? 'Paused' : 'Pausing' }));
  else line(io.stdout, isPaused ? 'Paused. Nothing starts until `skua auto-scavenge resume`.' : 'Pausing: no more scavenges start, and the one that is running is still being stopped. `skua auto-scavenge status` shows when it has stopped.');
  return EXIT.ok;
}

export async function runAutoScavengeResume(given: Given, io: Io): Promise<ExitCode> {
  const { client } = connect(given, io);
  await client.resume();
  const status = await client.status();
  if (given.options.json) line(io.stdout, JSON.stringify(status));
  else line(io.stdout, `Resumed. ${status.state === 'InProgress' ? 'The cycle goes on.' : `State: ${status.state}${nextText(status, systemClock.nowMs())}`}`);
  return EXIT.ok;
}
