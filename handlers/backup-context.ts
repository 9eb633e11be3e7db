import type { Holds } from '../core/backup/holds.ts';
import type { Backups } from '../core/backup/node-backups-api.ts';
import { SkuaError } from '../core/errors.ts';
import type { App, Call } from './context.ts';

/** What the handlers of backups need of the context. */
export interface BackupContext {
  /** Null, or absent, where files are not given away and no backups made: the routes are absent then. */
  readonly backups?: { readonly holds: Holds; readonly node: Backups } | null;
}

/** Whether the path is there only where backups are made. */
export function isBackupPath(path: string): boolean {
  return path.startsWith('/admin/backup');
}

/** Errors: `not_found` where no backups are made. */
export function backupsOf(call: Call, { backups }: App): NonNullable<BackupContext['backups']> {
  if (backups !== null && backups !== undefined) return backups;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: this node makes no backups.`);
}
