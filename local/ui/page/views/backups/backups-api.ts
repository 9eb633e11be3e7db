/** Backups as the node tells of them. */

export interface Backup {
  readonly id: string;
  readonly createdAt: string;
  readonly logEnd: number;
  /** The end of the log that was shipped behind it. */
  readonly shippedEnd: number;
  readonly shippedAt: string;
  readonly sizeBytes: number;
  readonly cause: 'manual' | 'scheduled' | 'shipping';
  readonly nodeId: string;
}

export interface Status {
  readonly repository: string | null;
  readonly schedule: string | null;
  readonly shipEverySeconds: number | null;
  readonly newest: { readonly id: string; readonly createdAt: string; readonly logEnd: number } | null;
  readonly restorable: { readonly position: number; readonly at: string } | null;
  readonly unshippedBytes: number | null;
  readonly shipLagSeconds: number | null;
  readonly provenAt: string | null;
  /** The one under way. */
  readonly current: Running | null;
  readonly last: { readonly backupId: string; readonly result: string; readonly error: string | null } | null;
  readonly verified: { readonly at: string; readonly errors: number } | null;
  readonly commands: Commands | null;
}

export interface Commands {
  readonly restore: string;
  readonly restoreToTime: string;
  readonly list: string;
  readonly verify: string;
  readonly drill: string;
}

/** A backup that is being made. */
export interface Running {
  readonly backupId: string;
  readonly phase: string;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly startedAt: string;
  readonly elapsedSeconds: number;
  readonly remainingSeconds: number | null;
}

export interface Check {
  readonly checkId: string;
  readonly kind: 'verify' | 'drill';
  readonly state: 'running' | 'done' | 'failed' | 'aborted';
  readonly phase: string | null;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly elapsedSeconds: number;
  readonly error: string | null;
  readonly isGood: boolean | null;
  readonly report: Readonly<Record<string, unknown>> | null;
}

export interface Checks {
  readonly checks: readonly Check[];
}

export const NO_CHECKS: Checks = { checks: [] };

export const CAUSES: Readonly<Record<Backup['cause'], { readonly word: string; readonly about: string; readonly series: number }>> = {
  manual: { word: 'by hand', about: 'Somebody asked for it.', series: 1 },
  scheduled: { word: 'scheduled', about: 'The schedule of the node asked for it.', series: 3 },
  shipping: { word: 'for shipping', about: 'Shipping needed a backup to begin behind.', series: 2 },
};

/** Beginning of an id, where it stands for the whole. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}

/** A moment as `--to-time` takes it. */
export function timeWord(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
