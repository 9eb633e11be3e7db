import { isSkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Schedule } from '../../ports/schedule.ts';
import type { Repository } from '../repository/api.ts';
import { logEndOf, madeMsOf } from '../format/snapshot-manifest.ts';
import { lastProven } from '../notes/notes.ts';
import type { BaseReason, Shipper } from '../shipper/shipper.ts';
import type { NodeBackups } from '../backups/backups.ts';

/** A failure that goes on is logged again after this many attempts. */
const FAILURES_BETWEEN_LINES = 100;

interface ShippingParts {
  readonly shipper: Pick<Shipper, 'tick'>;
  readonly backups: Pick<NodeBackups, 'begin' | 'current'>;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Ships the end of the log every few seconds, and makes the backups that shipping needs to begin behind. */
export class Shipping {
  readonly #parts: ShippingParts;
  /** The backup that is asked for and not begun. */
  #wanted: BaseReason | null = null;
  #failures = 0;

  constructor(parts: ShippingParts) {
    this.#parts = parts;
  }

  /** A backup of this node is needed. One that can't begin now, because a scavenge runs, is tried again every time. */
  want(reason: BaseReason): void {
    this.#wanted = reason;
  }

  /** Ships until aborted. A store that does not answer keeps no stop waiting. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.#parts;
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    while (!signal.aborted) {
      await Promise.race([this.#once(signal), aborted]);
      await clock.sleep(everyMs, signal);
    }
  }

  async #once(signal: AbortSignal): Promise<void> {
    const { shipper, log } = this.#parts;
    const { error } = await shipper.tick();
    if (signal.aborted) return;
    if (error === null) {
      if (this.#failures > 0) log.info('log is shipped again', { failures: this.#failures });
      this.#failures = 0;
    } else if (this.#failures++ % FAILURES_BETWEEN_LINES === 0) {
      log.error('log could not be shipped; will retry', { code: isSkuaError(error) ? error.code : undefined, error });
    }
    if (this.#wanted !== null) this.#begin(this.#wanted);
  }

  #begin(reason: BaseReason): void {
    const { backups, log } = this.#parts;
    if (backups.current() !== null) {
      // Whatever it is made for, it serves.
      this.#wanted = null;
      return;
    }
    try {
      const { backupId } = backups.begin('shipping');
      log.info('log shipping needs a new base backup', { reason, backupId });
      this.#wanted = null;
    } catch (error) {
      if (!isSkuaError(error, 'scavenge_in_progress') && !isSkuaError(error, 'store_closed')) throw error;
    }
  }
}

/** The wall clock may be set meanwhile, so that it is looked at this often. */
const SCHEDULE_LOOK_MS = 30_000;
const ZONE = 'UTC';

interface BackupScheduleParts {
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
 * Where one backup still runs when the next is due, that one is left out; so is what was due while the node did not
 * run.
 */
export async function runBackupSchedule({
  backups,
  schedule,
  expression,
  clock,
  log,
  signal,
}: BackupScheduleParts): Promise<void> {
  let dueMs = schedule.next(expression, clock.nowMs(), ZONE);
  while (!signal.aborted && dueMs !== null) {
    const nowMs = clock.nowMs();
    if (nowMs < dueMs) {
      // A clock that was set back makes an earlier time the next one.
      dueMs = Math.min(dueMs, schedule.next(expression, nowMs, ZONE) ?? dueMs);
      await clock.sleep(Math.min(dueMs - nowMs, SCHEDULE_LOOK_MS), signal);
      continue;
    }
    dueMs = schedule.next(expression, nowMs, ZONE);
    try {
      backups.begin('scheduled', { pauseScavenge: true });
    } catch (error) {
      log.warn('a scheduled backup was skipped', { reason: isSkuaError(error) ? error.message : String(error) });
    }
  }
}

/** Others write to the repository too: drills, and backups that are made from outside. */
const LOOK_MS = 300_000;
/** A repository that can't be reached is tried again sooner. */
const RETRY_MS = 60_000;
/** A failure that goes on is logged again after this many looks. */
const LOOKS_BETWEEN_LINES = 60;

interface WatchParts {
  readonly repository: () => Promise<Repository>;
  /** Of this node. */
  readonly nodeId: string;
  /** Told when there is another newest backup than the one that was known. */
  readonly onNewer?: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** As a restore takes it. */
export interface NewestBackup {
  readonly id: string;
  readonly createdMs: number;
  /** Position in the log. */
  readonly logEnd: number;
}

/**
 * What the repository holds of this node, for metrics. A repository that fails is logged and asked again; the node goes
 * on.
 */
export class RepositoryWatch {
  readonly #parts: WatchParts;
  #newest: NewestBackup | null = null;
  #provenMs: number | null = null;
  #failures = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** When the newest backup of this node was taken; null for none, or before it is known. Milliseconds since 1970. */
  get newestMs(): number | null {
    return this.#newest?.createdMs ?? null;
  }
  get newest(): NewestBackup | null {
    return this.#newest;
  }
  /** When a backup in the repository was last proven by a drill. */
  get provenMs(): number | null {
    return this.#provenMs;
  }

  /** A backup of this node was made. */
  made({ id, createdMs, logEnd }: NewestBackup): void {
    if (logEnd >= (this.#newest?.logEnd ?? logEnd)) this.#newest = { id, createdMs, logEnd };
  }

  /** A drill has passed. */
  proven(provenMs: number): void {
    this.#provenMs = Math.max(provenMs, this.#provenMs ?? provenMs);
  }

  /** Looks every few minutes, until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    while (!signal.aborted) {
      // A repository that does not answer keeps no stop waiting.
      await Promise.race([this.look(signal), aborted]);
      await this.#parts.clock.sleep(this.#failures > 0 ? RETRY_MS : LOOK_MS, signal);
    }
  }

  /** Never rejects. */
  async look(signal?: AbortSignal): Promise<void> {
    const { repository: open, nodeId, onNewer, log } = this.#parts;
    try {
      const repository = await open();
      const newest = await repository.newestOf(nodeId);
      if (newest?.id !== this.#newest?.id) onNewer?.();
      this.#newest = newest === null ? null : { id: newest.id, createdMs: madeMsOf(newest), logEnd: logEndOf(newest) };
      this.#provenMs = (await lastProven(repository))?.provenMs ?? null;
      if (this.#failures > 0)
        log.info('the backup repository is available again', {
          repository: repository.place,
          failures: this.#failures,
        });
      this.#failures = 0;
    } catch (error) {
      if (signal?.aborted === true) return;
      if (this.#failures % LOOKS_BETWEEN_LINES === 0)
        log.error('the backup repository is unavailable; will retry', {
          code: isSkuaError(error) ? error.code : undefined,
          error,
        });
      this.#failures++;
    }
  }
}
