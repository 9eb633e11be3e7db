import type { Clock } from '../../core/ports/clock.ts';
import { AutoScavengeClient } from '../auto-scavenge/auto-scavenge-client.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import { AnswerError } from '../cli/node-client.ts';
import type { NodeClient } from '../cli/node-client.ts';
import { ScavengeClient } from '../scavenge/scavenge-client.ts';

/** How long auto-scavenge may take to pause, and how often it is asked whether it has. */
const PAUSE_MS_MAX = 600_000;
const LOOK_MS = 500;
/** How often putting things back is tried, and the time between two tries: the node may be busy for a moment. */
const RESUME_TRIES_MAX = 30;
const RESUME_MS = 1_000;

interface PauseOptions {
  readonly node: NodeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told what is done, for people. */
  readonly tell: (message: string) => void;
}

/**
 * Runs `work` while no scavenge runs: a running one is stopped and, where auto-scavenge goes through a cycle, that is
 * paused. Afterwards both go on, also when the work failed or was interrupted. What can't be set going again is told
 * with the command that does it.
 */
export async function whileNoScavenge<T>(options: PauseOptions, work: () => Promise<T>): Promise<T> {
  const undo: Undo[] = [];
  try {
    if (await pauseCycle(options, undo)) options.tell('Auto-scavenge is paused during the backup.');
    const stopped = await stopRun(options, undo);
    if (stopped !== null) options.tell(`Scavenge ${stopped} was stopped for the backup.`);
    return await work();
  } finally {
    for (const step of undo.reverse()) await resume(step, options);
  }
}

interface Undo {
  readonly what: string;
  /** What does the same by hand. */
  readonly command: string;
  run(): Promise<void>;
}

/** Whether a cycle was under way. */
async function pauseCycle({ node, clock, signal }: PauseOptions, undo: Undo[]): Promise<boolean> {
  const client = new AutoScavengeClient(node);
  if (!(await client.enabled()).enabled || (await client.status()).state !== 'InProgress') return false;
  undo.push({ what: 'Auto-scavenge', command: 'skua auto-scavenge resume', run: () => client.resume() });
  const giveUpMs = clock.monotonicMs() + PAUSE_MS_MAX;
  for (let isPaused = await client.pause(); !isPaused; isPaused = (await client.status()).state === 'Paused') {
    if (clock.monotonicMs() > giveUpMs)
      throw new CommandError(
        'auto_scavenge_pausing',
        `Auto-scavenge was asked to pause and has not paused within ${PAUSE_MS_MAX / 60_000} minutes. Check \`skua auto-scavenge status\`, then repeat the command.`,
        EXIT.failed,
      );
    await clock.sleep(LOOK_MS, signal);
    signal.throwIfAborted();
  }
  return true;
}

/** Id of the run that was stopped; null when none was running. */
async function stopRun({ node, signal }: PauseOptions, undo: Undo[]): Promise<string | null> {
  const client = new ScavengeClient(node);
  const running = await client.progress();
  if (running === null) return null;
  const { scavengeId } = running.value;
  const again: Undo = {
    what: 'The scavenge',
    command: 'skua scavenge start',
    run: () => startAgain(client, scavengeId),
  };
  // Stopping takes as long as the work in hand, and goes on where the caller does not wait for it.
  undo.push(again);
  try {
    await client.stop(scavengeId, signal);
    return scavengeId;
  } catch (error) {
    if (!(error instanceof AnswerError && error.status === 404)) throw error;
    // It came to its end by itself.
    undo.splice(undo.indexOf(again), 1);
    return null;
  }
}

/**
 * The scavenge goes on where it stopped. Another user may have started one already; the one that is still being stopped
 * is waited for.
 */
async function startAgain(client: ScavengeClient, stopped: string): Promise<void> {
  try {
    await client.start(new URLSearchParams());
  } catch (error) {
    if (
      !(error instanceof AnswerError && error.code === 'scavenge_in_progress') ||
      error.problem['scavengeId'] === stopped
    )
      throw error;
  }
}

async function resume({ what, command, run }: Undo, { clock, tell }: PauseOptions): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await run();
      tell(`${what} resumed.`);
      return;
    } catch (error) {
      if (tries === RESUME_TRIES_MAX) {
        tell(
          `${what} could not be resumed (${error instanceof Error ? error.message : String(error)}). Run \`${command}\`.`,
        );
        return;
      }
      await clock.sleep(RESUME_MS);
    }
  }
}
