import { isSkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Schedule } from '../ports/schedule.ts';
import type { NodeBackups } from './node-backups.ts';

/** The wall clock may be set meanwhile, so that it is looked at this often. */
const LOOK_MS = 30_000;
const ZONE = 'UTC';

export interface BackupScheduleParts {
  readonly backups: Pick<NodeBackups, 'begin'>;
  readonly schedule: Schedule;
  /** As `parseSchedule` gives it. */
  readonly expression: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Begins a backup whenever the schedule comes round, until aborted. A scavenge that runs then is stopped for that time.
 * Where one backup still runs when the next is due, that one is left out; so is what was due while the node did not run.
 */
export async function runBackupSchedule({ backups, schedule, expression, clock, log, signal }: BackupScheduleParts): Promise<void> {
  let dueMs = schedule.next(expression, clock.nowMs(), ZONE);
  while (!signal.aborted && dueMs !== null) {
    const nowMs = clock.nowMs();
    if (nowMs < dueMs) {
      // A clock that was set back makes an earlier time the next one.
      dueMs = Math.min(dueMs, schedule.next(expression, nowMs, ZONE) ?? dueMs);
      await clock.sleep(Math.min(dueMs - nowMs, LOOK_MS), signal);
      continue;
    }
    dueMs = schedule.next(expression, nowMs, ZONE);
    try {
      backups.begin('scheduled', { pauseScavenge: true });
    } catch (error) {
      log.warn('a scheduled backup is left out', { reason: isSkuaError(error) ? error.message : String(error) });
    }
  }
}
