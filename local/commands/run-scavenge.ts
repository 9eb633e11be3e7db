import type { LastDocument } from '../../handlers/documents/scavenging.ts';
import { coloursFor, EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import type { Interrupt } from '../cli/signals.ts';
import { AnswerError, NodeClient } from '../cli/node-client.ts';
import { elapsedText, progressText, shareDone, timeLeft } from '../cli/progress.ts';
import { completionOfNode, ScavengeClient } from '../scavenge/scavenge-client.ts';
import type { CompletionReader } from '../scavenge/scavenge-client.ts';
import {
  followDryRun,
  followRun,
  isClean,
  progressState,
  showDryRun,
  showEnding,
  tooManyRuns,
  tracesOf,
} from '../scavenge/follow.ts';
import { NODE_WAYS, notTheNextLine, logResumedPoint, waitingLines } from '../scavenge/resumed-point.ts';
import {
  checkUntilClean,
  scavengeOptionsOf,
  scavengeQueryOf,
  UNTIL_CLEAN_RUNS_MAX,
} from '../scavenge/scavenge-options.ts';
import type {
  scavengeStartOptions,
  scavengeStatusOptions,
  scavengeStopOptions,
  scavengeWatchOptions,
} from './options-command.ts';

const GOES_ON = 'The scavenge keeps running. Follow it with `skua scavenge watch`, stop it with `skua scavenge stop`.';

interface Node {
  readonly client: ScavengeClient;
  readonly completion: CompletionReader;
}

function connect(options: { readonly node: string | null; readonly ca: string | null }, io: Io): Node {
  const node = NodeClient.of(options, io.env);
  return { client: new ScavengeClient(node), completion: completionOfNode(node) };
}

export async function runScavengeStart(
  { options, given }: Input<typeof scavengeStartOptions>,
  io: Io,
): Promise<ExitCode> {
  const isDryRun = options['dry-run'];
  if (isDryRun && (options.watch || options.wait))
    throw new UsageError('--dry-run always waits for its report: leave out --watch and --wait.');
  if (options['until-clean']) {
    checkUntilClean(options);
    if (!options.watch && !options.wait)
      throw new UsageError('--until-clean waits for several runs: give --wait or --watch with it.');
  }
  const query = scavengeQueryOf(scavengeOptionsOf(options, given), isDryRun);
  const node = connect(options, io);
  // From before the start on, so that an early Ctrl+C does not leave a dry run behind.
  const interrupt = listenForInterrupt(isDryRun ? 'The dry run was stopped.' : GOES_ON, io);
  try {
    for (let runs = 1; ; runs++) {
      const started = await node.client.start(query).catch((error: unknown) => {
        throw withCommands(error);
      });
      const { scavengeId, olderPoint } = started;
      if (isDryRun) return await reportDryRun(node, scavengeId, options, interrupt, io);
      if (!options.watch && !options.wait) {
        line(
          io.stdout,
          options.json
            ? JSON.stringify(started)
            : `Scavenge ${scavengeId} has started. Follow it with \`skua scavenge watch\`.`,
        );
        if (olderPoint !== undefined && !options.json) logResumedPoint(olderPoint, io.stderr);
        return EXIT.ok;
      }
      if (olderPoint !== undefined && !options.json) logResumedPoint(olderPoint, io.stderr);
      const ending = await followRun(node.client, node.completion, scavengeId, {
        io,
        json: options.json,
        isShown: options.watch,
        signal: interrupt.signal,
      });
      const code = showEnding(ending, options.json, io);
      if (code !== EXIT.ok || !options['until-clean'] || isClean(ending)) return code;
      if (runs === UNTIL_CLEAN_RUNS_MAX) throw tooManyRuns();
    }
  } finally {
    interrupt.release();
  }
}

async function reportDryRun(
  { client }: Node,
  scavengeId: string,
  { json, fresh }: { readonly json: boolean; readonly fresh: boolean },
  { signal }: Interrupt,
  io: Io,
): Promise<ExitCode> {
  try {
    const report = await followDryRun(client, scavengeId, { io, json, isShown: !json, signal });
    if (json) line(io.stdout, report.text);
    else {
      const { waiting } = report.value;
      showDryRun(report.value, io);
      if (waiting !== undefined && !fresh) line(io.stdout, notTheNextLine(waiting, NODE_WAYS));
    }
    return EXIT.ok;
  } catch (error) {
    if (signal.aborted) await client.stop(scavengeId, AbortSignal.timeout(10_000)).catch(() => {});
    throw error;
  }
}

/** Says how to go on with the commands of this program. */
function withCommands(error: unknown): unknown {
  if (!(error instanceof AnswerError) || error.code !== 'scavenge_in_progress') return error;
  return new CommandError(
    error.code,
    `Scavenge ${String(error.problem['scavengeId'])} is already running. Follow it with \`skua scavenge watch\`, or stop it with \`skua scavenge stop\`; the next start then resumes where it stopped.`,
    EXIT.refused,
  );
}

export async function runScavengeStop(
  { options, positionals }: Input<typeof scavengeStopOptions>,
  io: Io,
): Promise<ExitCode> {
  const { client } = connect(options, io);
  const asked = positionals[0] ?? 'current';
  const interrupt = listenForInterrupt('The scavenge will stop; this command does not wait for it.', io);
  try {
    const scavengeId = await client.stop(asked, interrupt.signal);
    line(
      io.stdout,
      options.json
        ? JSON.stringify({ scavengeId })
        : `Scavenge ${scavengeId} has stopped. The next start resumes where it stopped.`,
    );
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof AnswerError) || error.code !== 'scavenge_not_found') throw error;
    throw new CommandError(
      error.code,
      asked === 'current'
        ? 'No scavenge is running.'
        : `Scavenge ${asked} is not running. \`skua scavenge status\` shows the one that is.`,
      EXIT.failed,
    );
  } finally {
    interrupt.release();
  }
}

export async function runScavengeStatus({ options }: Input<typeof scavengeStatusOptions>, io: Io): Promise<ExitCode> {
  const { client, completion } = connect(options, io);
  const progress = await client.progress();
  const last = (await client.last()).value;
  const { waiting } = last;
  const hasRun = last.scavengeResult !== 'Unknown';
  if (options.json) {
    line(
      io.stdout,
      JSON.stringify(
        {
          running: progress?.value ?? null,
          last: hasRun ? withoutWaiting(last) : null,
          ...(waiting !== undefined && { waiting }),
        },
        null,
        2,
      ),
    );
    return EXIT.ok;
  }
  const { bold } = coloursFor(io.stdout, io.env);
  if (progress !== null) {
    const { scavengeId, elapsedSeconds, remainingSeconds, bytesDone, olderPoint } = progress.value;
    const bytesPerSecond = elapsedSeconds > 0 ? bytesDone / elapsedSeconds : 0;
    line(io.stdout, `${bold('Running')} for ${elapsedText(elapsedSeconds)}: scavenge ${scavengeId}.`);
    const state = progressState(progress.value);
    line(
      io.stdout,
      progressText({
        ...state,
        done: shareDone(state),
        bytesPerSecond,
        secondsLeft: timeLeft(state, elapsedSeconds, remainingSeconds),
      }),
    );
    if (olderPoint !== undefined) logResumedPoint(olderPoint, io.stdout);
  } else if (!hasRun) line(io.stdout, 'No scavenge is running, and none has run since the node was started.');
  else if (last.scavengeResult !== 'InProgress') {
    line(io.stdout, 'No scavenge is running. The last one:');
    const { scavengeId, scavengeResult: result, error = null, olderPoint } = last;
    const { bytesReclaimed, seconds } = await completion(scavengeId);
    showEnding(
      {
        scavengeId,
        result,
        error,
        bytesReclaimed,
        seconds,
        ...(olderPoint !== undefined && { olderPoint }),
        ...tracesOf(last),
      },
      false,
      io,
    );
  }
  if (progress === null && waiting !== undefined)
    for (const text of waitingLines(waiting, NODE_WAYS)) line(io.stdout, text);
  return EXIT.ok;
}

/** It is told beside the last run, whose own it need not be. */
function withoutWaiting({ waiting: _, ...last }: LastDocument): Omit<LastDocument, 'waiting'> {
  return last;
}

export async function runScavengeWatch({ options }: Input<typeof scavengeWatchOptions>, io: Io): Promise<ExitCode> {
  const { client, completion } = connect(options, io);
  const interrupt = listenForInterrupt(GOES_ON, io);
  let watched: string | null = null;
  try {
    const scavengeId = (await client.progress())?.value.scavengeId ?? (await lastId(client));
    watched = scavengeId;
    const ending = await followRun(client, completion, scavengeId, {
      io,
      json: options.json,
      isShown: true,
      signal: interrupt.signal,
    });
    return showEnding(ending, options.json, io);
  } catch (error) {
    if (
      error instanceof CommandError &&
      error.code === 'scavenge_superseded' &&
      watched !== null &&
      (await showWatchedDryRun(client, watched, options.json, io))
    )
      return EXIT.ok;
    throw error;
  } finally {
    interrupt.release();
  }
}

/**
 * What was followed may have been a dry run that another user started: its end is its report. False when it has none.
 */
async function showWatchedDryRun(client: ScavengeClient, scavengeId: string, json: boolean, io: Io): Promise<boolean> {
  const report = await client.dryRun(scavengeId).catch(() => null);
  if (report === null) return false;
  if (json) line(io.stdout, JSON.stringify({ kind: 'result', ...report.value }));
  else showDryRun(report.value, io);
  return true;
}

async function lastId(client: ScavengeClient): Promise<string> {
  const { scavengeId, scavengeResult } = (await client.last()).value;
  if (scavengeResult !== 'Unknown') return scavengeId;
  throw new CommandError(
    'scavenge_not_found',
    'No scavenge is running, and none has run since the node was started. Start one with `skua scavenge start`.',
    EXIT.failed,
  );
}
