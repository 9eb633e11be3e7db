import type { ManifestSummary } from '../../core/backup/format/snapshot-manifest.ts';
import type {
  BackupCheck,
  BackupProgress,
  BackupStatus,
  Backups,
  CheckSubject,
  DrillReport,
  VerifiedRepository,
} from '../../core/backup/api.ts';
import type { HoldView, Snapshot, SnapshotFile } from '../../core/store/api.ts';

/** Documents of backups as they are sent: types alone. Moments are ISO texts. */

/** POST `/admin/backup`, and DELETE of the backup under way. */
export interface BackupStartedDocument {
  readonly backupId: string;
}

/** A backup in the repository. */
export interface BackupDocument extends Pick<
  ManifestSummary,
  'id' | 'logEnd' | 'shippedEnd' | 'sizeBytes' | 'cause' | 'nodeId'
> {
  readonly createdAt: string;
  readonly shippedAt: string;
}

/** GET `/admin/backups`. */
export interface BackupsDocument {
  readonly backups: readonly BackupDocument[];
  /** From when to when, each moment of which a restore takes; to the millisecond, ascending. */
  readonly restorable: readonly { readonly from: string; readonly to: string }[];
}

/** GET `/admin/backup/current`. */
export interface BackupProgressDocument extends Omit<BackupProgress, 'startedMs'> {
  readonly startedAt: string;
}

/** GET `/admin/backup/status`. */
export interface BackupStatusDocument extends Pick<
  BackupStatus,
  'schedule' | 'shipEverySeconds' | 'unshippedBytes' | 'commands'
> {
  readonly repository: BackupStatus['place'];
  readonly newest: { readonly id: string; readonly createdAt: string; readonly logEnd: number } | null;
  readonly restorable: { readonly position: number; readonly at: string } | null;
  readonly shipLagSeconds: number | null;
  readonly provenAt: string | null;
  readonly verified: { readonly at: string; readonly errors: number } | null;
  readonly current: BackupProgressDocument | null;
  readonly last: ReturnType<Backups['last']>;
}

/** What begins a check, or ends one, is answered with. */
export interface CheckStartedDocument {
  readonly checkId: string;
}

/** A check of the repository. */
export interface CheckDocument extends Pick<
  BackupCheck,
  'state' | 'phase' | 'bytesDone' | 'bytesTotal' | 'elapsedSeconds' | 'error'
> {
  readonly checkId: string;
  readonly kind: CheckSubject['kind'];
  readonly startedAt: string;
  readonly endedAt: string | null;
  /** Null before the end. */
  readonly isGood: boolean | null;
  readonly report: VerifiedDocument | DrillDocument | null;
}

export interface VerifiedDocument extends Pick<
  VerifiedRepository,
  'manifests' | 'blobs' | 'blobsRead' | 'bytesRead' | 'pieces' | 'errors'
> {
  readonly findings: readonly CheckFindingDocument[];
}

export interface DrillDocument extends Pick<
  DrillReport,
  'backupId' | 'position' | 'chunks' | 'records' | 'events' | 'indexEntries' | 'bytes'
> {
  readonly restoreSeconds: number;
  readonly verifySeconds: number;
  readonly findings: readonly CheckFindingDocument[];
}

export interface CheckFindingDocument {
  readonly where: string;
  readonly kind: string;
  readonly message: string;
}

/** GET `/admin/backup/check`. */
export interface ChecksDocument {
  readonly checks: readonly CheckDocument[];
}

/** What begins or renews a hold is answered with. */
export interface HoldDocument extends Pick<HoldView, 'holdId'> {
  readonly expiresAt: string;
  readonly nodeId: string;
  readonly takenAt: string;
  readonly logEnd: number;
  readonly files: number;
  readonly sizeBytes: number;
}

/** GET `/admin/backup/files`: its files stand in the order in which they have to be copied. */
export interface SnapshotDocument extends Omit<Snapshot, 'files'> {
  readonly files: readonly Pick<SnapshotFile, 'path' | 'kind' | 'sizeBytes'>[];
}
