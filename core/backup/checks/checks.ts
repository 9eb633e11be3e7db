import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Log } from '../../ports/log.ts';
import { Tasks, type TaskView, type TaskWork } from '../../tasks/tasks.ts';
import type { DrillReport } from '../drill/drill.ts';
import type { VerifiedRepository } from '../jobs/jobs.ts';
import { backupOff } from '../backups/backups.ts';

/** What is checked, and by what part of it or which backup. */
export type CheckSubject =
  | { readonly kind: 'verify'; readonly subset: number }
  | { readonly kind: 'drill'; readonly backupId: string | null };
/** Both hold what they found in `list` or `findings`. */
export type CheckReport =
  | { readonly kind: 'verify'; readonly verified: VerifiedRepository }
  | { readonly kind: 'drill'; readonly drill: DrillReport };
export type BackupCheck = TaskView<CheckSubject, CheckReport>;

/** Checks of the repository of a node, which are asked for: one at a time, in the background. */
export interface BackupChecks {
  /** Begins one and gives its id. Throws `backup_off`, `task_running`, `store_closed`. */
  start(subject: CheckSubject): string;
  /** Newest first; the last ones since the start of the node. */
  list(): readonly BackupCheck[];
  /** Ends the one under way, and resolves with its id when it has ended. Rejects with `task_not_found`. */
  abort(): Promise<string>;
}

interface ChecksParts {
  /** Null where the node has no repository. */
  readonly check: ((subject: CheckSubject) => TaskWork<CheckReport>) | null;
  /** Told of each check that has found nothing wrong, or something. */
  readonly onDone?: (report: CheckReport) => void;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

export class NodeBackupChecks implements BackupChecks {
  readonly #parts: ChecksParts;
  readonly #tasks: Tasks<CheckSubject, CheckReport>;

  constructor(parts: ChecksParts) {
    this.#parts = parts;
    this.#tasks = new Tasks({ ...parts, what: 'check of the backups' });
  }

  start(subject: CheckSubject): string {
    const { check, onDone } = this.#parts;
    if (check === null) throw backupOff();
    const work = check(subject);
    return this.#tasks.start(subject, async (signal, onProgress) => {
      const report = await work(signal, onProgress);
      onDone?.(report);
      return report;
    });
  }

  list(): readonly BackupCheck[] {
    return this.#tasks.list();
  }
  abort(): Promise<string> {
    return this.#tasks.abort(null);
  }
  close(): Promise<void> {
    return this.#tasks.close();
  }
}

/** Whether a check that was done found nothing wrong. */
export function isGood(report: CheckReport): boolean {
  return report.kind === 'verify' ? report.verified.errors === 0 : report.drill.isProven;
}

/** What a node knows of its backups without asking the repository; milliseconds since 1970. */
export interface BackupStatus {
  readonly place: string | null;
  /** Five fields; null for none. */
  readonly schedule: string | null;
  /** Null where the log is not shipped. */
  readonly shipEverySeconds: number | null;
  readonly newest: { readonly id: string; readonly createdMs: number; readonly logEnd: number } | null;
  /** How far a restore of the newest state reaches; null where nothing can be restored, or nothing is known yet. */
  readonly restorable: { readonly position: number; readonly atMs: number } | null;
  readonly unshippedBytes: number | null;
  readonly shipLagMs: number | null;
  /** When a drill last passed. */
  readonly provenMs: number | null;
  /** The last verification since the start. */
  readonly verified: { readonly atMs: number; readonly errors: number } | null;
  /** To be typed for a restore, without secrets; null without a repository. */
  readonly commands: BackupCommands | null;
}

export interface BackupCommands {
  readonly restore: string;
  readonly restoreToTime: string;
  readonly list: string;
  readonly verify: string;
  readonly drill: string;
}
