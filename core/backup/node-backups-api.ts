import type { ManifestSummary } from './manifest.ts';

/** The backups that a node makes of itself, to the repository that its options name. */
export interface Backups {
  /** Where the repository is; null when none is configured. */
  readonly place: string | null;
  /**
   * Begins a backup; what becomes of it shows in `current`, the log, and the list. Rejects with `backup_off`, `backup_running`
   * (data: backupId), `scavenge_in_progress` (data: scavengeId), `store_closed`, and what opening the repository rejects with.
   */
  start(options?: BackupOptions): Promise<{ readonly backupId: string }>;
  /** The backup that is under way, or null. */
  current(): BackupProgress | null;
  /** How the last one since the start of the process ended, or null. */
  last(): LastBackup | null;
  /** Ends the backup that is under way and resolves with its id once it has ended. Rejects with `backup_not_running`. */
  abort(): Promise<string>;
  /** Backups in the repository, newest first. Rejects with `backup_off` and what the repository rejects with. */
  list(): Promise<readonly ManifestSummary[]>;
}

export interface BackupOptions {
  /** Stop a scavenge that runs, and go on with it afterwards; auto-scavenge is paused for that time when a cycle runs. Default false: such a backup is refused. */
  readonly pauseScavenge?: boolean;
}

export type BackupPhase = 'Starting' | 'Copying' | 'Pruning';

export interface BackupProgress {
  readonly backupId: string;
  readonly phase: BackupPhase;
  readonly bytesDone: number;
  /** Of all files of the backup; 0 before they are known. */
  readonly bytesTotal: number;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
  readonly elapsedSeconds: number;
  /** At the speed so far; null before it can be told. */
  readonly remainingSeconds: number | null;
}

export interface LastBackup {
  readonly backupId: string;
  readonly result: 'Success' | 'Aborted' | 'Failed';
  /** Text of what ended it, for `Failed`. */
  readonly error: string | null;
}
