import type { AutoScavenge } from '../../auto-scavenge/api.ts';
import { isSkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Scavenger } from '../../scavenge/api.ts';

/**
 * Auto-scavenge takes no order to go on before it has come to rest; it is asked again so often, with this pause
 * between.
 */
const RESUMES_MAX = 30;
const RESUME_PAUSE_MS = 1_000;

type PausedScavenger = Pick<Scavenger, 'current' | 'last' | 'lastOptions' | 'stop' | 'start'>;

export interface PauseParts {
  /** Null where no scavenge has to stop for a backup. */
  readonly scavenger: PausedScavenger | null;
  /** Null where nothing is scheduled. */
  readonly autoScavenge: Pick<AutoScavenge, 'enabled' | 'status' | 'pause' | 'resume'> | null;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Stops a scavenge that runs, and pauses auto-scavenge while a cycle is under way; resolves when nothing runs any more,
 * with how to let both go on. What an operator has paused stays paused. A process that dies in between leaves
 * auto-scavenge paused, as its status shows. Rejects with what auto-scavenge rejects with; everything goes on then.
 */
export async function pauseScavenges(parts: PauseParts): Promise<() => Promise<void>> {
  const { scavenger, autoScavenge, log } = parts;
  const undo: (() => Promise<void>)[] = [];
  const resume = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    let ownedByCycle: string | null = null;
    if (autoScavenge !== null && autoScavenge.enabled().enabled) {
      const { state, cycle } = await autoScavenge.status();
      ownedByCycle = cycle?.nodes.find((node) => node.state === 'running')?.scavengeId ?? null;
      if (state === 'InProgress') {
        log.info('auto-scavenge was paused for a backup', { clusterScavengeId: cycle?.clusterScavengeId });
        undo.push(() => resumeCycle(parts));
        await autoScavenge.pause();
      }
    }
    const scavengeId = scavenger === null ? null : running(scavenger);
    if (scavenger === null || scavengeId === null) return resume;
    // The cycle itself goes on with a run of its own.
    if (scavengeId !== ownedByCycle) undo.push(() => startAgain(scavenger, log, scavengeId));
    log.info('the scavenge was stopped for a backup', { scavengeId });
    await stopped(scavenger, scavengeId);
    return resume;
  } catch (error) {
    await resume();
    throw error;
  }
}

/** Dry runs change nothing, so they may go on. */
function running(scavenger: PausedScavenger): string | null {
  const current = scavenger.current();
  return current !== null && scavenger.last()?.scavengeId === current ? current : null;
}

async function stopped(scavenger: PausedScavenger, scavengeId: string): Promise<void> {
  try {
    await scavenger.stop(scavengeId);
  } catch (error) {
    // It has ended by itself.
    if (!isSkuaError(error, 'scavenge_not_found')) throw error;
  }
}

/** A run that ended by itself just before it would have been stopped has nothing left to do. */
async function startAgain(scavenger: PausedScavenger, log: Log, stoppedId: string): Promise<void> {
  const last = scavenger.last();
  if (last?.scavengeId !== stoppedId || last.result !== 'Stopped') return;
  try {
    const { scavengeId } = await scavenger.start(scavenger.lastOptions());
    log.info('the scavenge that was stopped for a backup has resumed', { stoppedId, scavengeId });
  } catch (error) {
    log.warn(
      'the scavenge that was stopped for a backup could not be resumed: start it with POST /admin/scavenge, and it resumes where it stopped',
      { stoppedId, error: String(error) },
    );
  }
}

async function resumeCycle({ autoScavenge, clock, log }: PauseParts): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await autoScavenge!.resume();
      log.info('auto-scavenge has resumed after a backup');
      return;
    } catch (error) {
      if (isSkuaError(error, 'auto_scavenge_pausing') && tries < RESUMES_MAX) {
        await clock.sleep(RESUME_PAUSE_MS);
        continue;
      }
      log.error(
        'auto-scavenge, which was paused for a backup, could not be resumed: resume it with POST /auto-scavenge/resume',
        { error: String(error) },
      );
      return;
    }
  }
}
