export type {
  BackupCheck,
  BackupChecks,
  BackupCommands,
  BackupStatus,
  CheckReport,
  CheckSubject,
} from './checks/checks.ts';
export type { CopyReport } from './copy/copy.ts';
export type { CreatedBackup } from './create/create.ts';
export type {
  BackupJobArgs,
  BackupJobResult,
  DrillArgs,
  VerifiedRepository,
  VerifyRepositoryArgs,
} from './jobs/jobs.ts';
export type {
  BackupOptions,
  BackupProgress,
  BackupRequest,
  Backups,
  NodeBackupsParts,
  RestorableBackups,
} from './backups/backups.ts';
export type { PruneReport } from './prune/prune.ts';
export type { Retention } from './prune/backup-retention.ts';
export type { RunningBackup } from './notes/notes.ts';
export type { BackupLanes, RepositorySpec } from './repository/repository.ts';
export type { RestoreChoice } from './restore/choose.ts';
export type { RestorableTime } from './restore/restorable-times.ts';
export type { RestoreProgress, RestoreReport, RestoreWorld } from './restore/restore-files.ts';
export type { DrillReport } from './drill/drill.ts';
export type { RepositoryErasureSummary } from './erasure-check/erasure-check.ts';
export type { RepositoryFinding, VerifyRepositoryReport } from './verify/verify.ts';
