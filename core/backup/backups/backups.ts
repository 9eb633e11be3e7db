import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { ErrorCode } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Meter } from '../../ports/meter.ts';
import type { Scavenger } from '../../scavenge/api.ts';
import type { Repository } from '../repository/api.ts';
import type { Manifest, ManifestSummary } from '../format/snapshot-manifest.ts';
import type { StoreHold } from '../../store/api.ts';
import { restorableTimes } from '../restore/restorable-times.ts';
import type { LastTimes, RestorableTime } from '../restore/restorable-times.ts';
import { pauseScavenges } from './pause.ts';
import type { PauseParts } from './pause.ts';

/** The backups that a node makes of itself, to the repository that its options name. */
export interface Backups {
  /** Where the repository is; null when none is configured. */
  readonly place: string | null;
  /**
   * Begins a backup; what becomes of it shows in `current`, the log, and the list. Rejects with `backup_off`,
   * `backup_running` (data: backupId), `scavenge_in_progress` (data: scavengeId), `store_closed`, and what opening the
   * repository rejects with.
   */
  start(options?: BackupOptions): Promise<{ readonly backupId: string }>;
  /** The backup that is under way, or null. */
  current(): BackupProgress | null;
  /** How the last one since the start of the process ended, or null. */
  last(): LastBackup | null;
  /**
   * Ends the backup that is under way and resolves with its id once it has ended. Rejects with `backup_not_running`.
   */
  abort(): Promise<string>;
  /** Backups in the repository, newest first. Rejects with `backup_off` and what the repository rejects with. */
  list(): Promise<readonly ManifestSummary[]>;
  /** These, with the times to which they can be restored. Rejects as `list` does. */
  listRestorable(): Promise<RestorableBackups>;
}

export interface RestorableBackups {
  readonly backups: readonly ManifestSummary[];
  /** Ascending; none where a backup is damaged, which a restore refuses. */
  readonly times: readonly RestorableTime[];
}

export interface BackupOptions {
  /**
   * Stop a scavenge that runs, and go on with it afterwards; auto-scavenge is paused for that time when a cycle runs.
   * Default false: such a backup is refused.
   */
  readonly pauseScavenge?: boolean;
}

type BackupPhase = 'Starting' | 'Copying' | 'Pruning';

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

/** One backup, as it is handed to what makes it. */
export interface BackupRequest {
  /** The backup gets this id. */
  readonly backupId: string;
  readonly cause: Manifest['cause'];
  readonly hold: StoreHold;
  readonly signal: AbortSignal;
  onProgress(bytesDone: number, bytesTotal: number): void;
}

export interface NodeBackupsParts extends PauseParts {
  /** Where the repository is; null when none is configured. */
  readonly place: string | null;
  readonly scavenger: (PauseParts['scavenger'] & Pick<Scavenger, 'hold'>) | null;
  /** Holds the files of the store. */
  readonly hold: () => Promise<StoreHold>;
  /** Makes a backup of what is held, off the request loop. */
  readonly backUp: (request: BackupRequest) => Promise<ManifestSummary>;
  /** The repository, open; one that could not be opened is tried again at the next call. */
  readonly repository: () => Promise<Repository>;
  /** Removes the backups that need not be kept any more; null where all are kept. */
  readonly prune: ((signal: AbortSignal) => Promise<void>) | null;
  /** Told of each backup that begins. */
  readonly onBegun?: (backupId: string, cause: Manifest['cause']) => void;
  /** Told of each backup that was made. */
  readonly onMade?: (summary: ManifestSummary) => void;
  readonly ids: Ids;
  readonly meter: Meter;
}

interface Running {
  readonly backupId: string;
  readonly cause: Manifest['cause'];
  readonly options: BackupOptions;
  readonly aborting: AbortController;
  readonly startedMs: number;
  readonly startedMonotonicMs: number;
  phase: BackupPhase;
  copyingMonotonicMs: number;
  bytesDone: number;
  bytesTotal: number;
}

/** What reading a backup rejects with that a restore would not take, or that was pruned meanwhile. */
const UNRESTORABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'repository_damaged',
  'log_corrupt',
  'backup_not_found',
]);

/** The backups that a node makes of itself, one at a time. What ends one is logged, counted and kept in `last`. */
export class NodeBackups implements Backups {
  readonly #parts: NodeBackupsParts;
  #running: Running | null = null;
  #ended: Promise<void> = Promise.resolve();
  #last: LastBackup | null = null;
  readonly #lastTimes: LastTimes = new Map();
  #isClosed = false;

  constructor(parts: NodeBackupsParts) {
    this.#parts = parts;
  }

  get place(): string | null {
    return this.#parts.place;
  }
  last(): LastBackup | null {
    return this.#last;
  }

  async start(options: BackupOptions = {}): Promise<{ readonly backupId: string }> {
    return { backupId: this.begin('manual', options).backupId };
  }

  /** As `start`, for every cause. `made` resolves with the result when the backup has ended. */
  begin(
    cause: Manifest['cause'],
    options: BackupOptions = {},
  ): { readonly backupId: string; readonly made: Promise<LastBackup> } {
    const { place, scavenger, ids, clock } = this.#parts;
    if (this.#isClosed) throw new SkuaError('store_closed', 'The node is stopping: no new backup can start.');
    if (place === null) throw backupOff();
    if (this.#running !== null)
      throw new SkuaError(
        'backup_running',
        `The backup ${this.#running.backupId} is running: wait until it has finished, or stop it with DELETE /admin/backup/current.`,
        { backupId: this.#running.backupId },
      );
    // Until the files are held: no scavenge comes in between.
    const release = options.pauseScavenge === true || scavenger === null ? () => {} : scavenger.hold();
    const running: Running = {
      backupId: guidToText(guidFromUuidBytes(ids.uuidBytes()), 0),
      cause,
      options,
      aborting: new AbortController(),
      startedMs: clock.nowMs(),
      startedMonotonicMs: clock.monotonicMs(),
      phase: 'Starting',
      copyingMonotonicMs: 0,
      bytesDone: 0,
      bytesTotal: 0,
    };
    this.#running = running;
    this.#parts.onBegun?.(running.backupId, cause);
    const made = this.#make(running, release);
    this.#ended = made.then(() => {});
    return { backupId: running.backupId, made };
  }

  /** Never rejects. */
  async #make(running: Running, release: () => void): Promise<LastBackup> {
    const { log, meter, clock, place } = this.#parts;
    const { backupId, cause } = running;
    log.info('a backup has started', { backupId, cause, repository: place });
    let last: LastBackup;
    try {
      const { sizeBytes, logEnd } = await this.#made(running, release);
      last = { backupId, result: 'Success', error: null };
      log.info('a backup has completed', { backupId, sizeBytes, logEnd, seconds: this.#elapsedSeconds(running) });
    } catch (error) {
      const isAborted = running.aborting.signal.aborted;
      last = {
        backupId,
        result: isAborted ? 'Aborted' : 'Failed',
        error: isAborted ? null : error instanceof Error ? error.message : String(error),
      };
      if (isAborted) log.info('a backup was interrupted; the next one reuses what it stored', { backupId });
      else
        log.error('a backup failed; the next one reuses what it stored', {
          backupId,
          code: isSkuaError(error) ? error.code : undefined,
          error,
        });
    } finally {
      release();
    }
    this.#last = last;
    this.#running = null;
    meter.count('eventstore_backup_runs_total', 1, { result: last.result });
    meter.observe('eventstore_backup_duration_seconds', (clock.monotonicMs() - running.startedMonotonicMs) / 1_000);
    return last;
  }

  async #made(running: Running, release: () => void): Promise<ManifestSummary> {
    const { prune, onMade, log } = this.#parts;
    const resume = running.options.pauseScavenge === true ? await pauseScavenges(this.#parts) : null;
    let summary: ManifestSummary;
    try {
      summary = await this.#copied(running, release);
    } finally {
      await resume?.();
    }
    onMade?.(summary);
    if (prune !== null && !running.aborting.signal.aborted) {
      running.phase = 'Pruning';
      // The backup is there: what could not be removed is removed after the next one.
      await prune(running.aborting.signal).catch((error: unknown) =>
        log.warn('old backups could not be removed from the repository; the next backup tries again', {
          backupId: running.backupId,
          error,
        }),
      );
    }
    return summary;
  }

  async #copied(running: Running, release: () => void): Promise<ManifestSummary> {
    const { hold: takeHold, backUp, clock } = this.#parts;
    const { signal } = running.aborting;
    const hold = await takeHold();
    release();
    try {
      if (signal.aborted) throw new SkuaError('aborted', 'The backup was interrupted.', { backupId: running.backupId });
      running.phase = 'Copying';
      running.copyingMonotonicMs = clock.monotonicMs();
      running.bytesTotal = hold.snapshot.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      return await backUp({
        backupId: running.backupId,
        cause: running.cause,
        hold,
        signal,
        onProgress: (bytesDone, bytesTotal) => {
          running.bytesDone = bytesDone;
          running.bytesTotal = bytesTotal;
        },
      });
    } finally {
      await hold.release();
    }
  }

  #elapsedSeconds({ startedMonotonicMs }: Running): number {
    return (this.#parts.clock.monotonicMs() - startedMonotonicMs) / 1_000;
  }

  current(): BackupProgress | null {
    const running = this.#running;
    if (running === null) return null;
    const { backupId, phase, bytesDone, bytesTotal, startedMs, copyingMonotonicMs } = running;
    const copyingSeconds = (this.#parts.clock.monotonicMs() - copyingMonotonicMs) / 1_000;
    const remainingSeconds =
      phase !== 'Copying' || bytesDone <= 0
        ? null
        : Math.max(0, (copyingSeconds * (bytesTotal - bytesDone)) / bytesDone);
    return {
      backupId,
      phase,
      bytesDone,
      bytesTotal,
      startedMs,
      elapsedSeconds: this.#elapsedSeconds(running),
      remainingSeconds,
    };
  }

  async abort(): Promise<string> {
    const running = this.#running;
    if (running === null) throw new SkuaError('backup_not_running', 'No backup is running.');
    running.aborting.abort();
    await this.#ended;
    return running.backupId;
  }

  async list(): Promise<readonly ManifestSummary[]> {
    return (await this.#listed()).backups;
  }

  async listRestorable(): Promise<RestorableBackups> {
    const { repository, backups, isDamaged } = await this.#listed();
    if (isDamaged) return { backups, times: [] };
    try {
      return { backups, times: await restorableTimes(repository, backups, this.#lastTimes) };
    } catch (error) {
      if (!isSkuaError(error) || !UNRESTORABLE.has(error.code)) throw error;
      return { backups, times: [] };
    }
  }

  async #listed(): Promise<{
    readonly repository: Repository;
    readonly backups: readonly ManifestSummary[];
    readonly isDamaged: boolean;
  }> {
    const { place, repository: open, log } = this.#parts;
    if (place === null) throw backupOff();
    const repository = await open();
    let isDamaged = false;
    const backups = await repository.backups((key, error) => {
      isDamaged = true;
      log.warn('a backup in the repository is damaged', { key, error: error.message });
    });
    return { repository, backups, isDamaged };
  }

  /** Ends the backup under way and waits for it; none begins any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#running?.aborting.abort();
    await this.#ended;
  }
}

export function backupOff(): SkuaError {
  return new SkuaError(
    'backup_off',
    'This node has no repository for backups: set the option Backup:Repository to a directory or s3://bucket/prefix and restart it. Without one, use `skua backup` to make backups from outside.',
  );
}
