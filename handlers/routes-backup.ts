import { beginHold, listFiles, readFile, releaseHold, renewHold } from './backup-files.ts';
import { abortBackup, currentBackup, listBackups, startBackup } from './backup.ts';
import { BACKUP_DOCS as DOCS } from './openapi-backup.ts';
import { operation } from './route.ts';
import type { Route } from './route.ts';

const BACKUP = '/admin/backup';

/** The paths of backups: what a node makes of itself, and its files for what others make. */
export const BACKUP_ROUTES: readonly Route[] = [
  { path: BACKUP, methods: 'POST, OPTIONS', operations: { POST: operation('operators', startBackup, DOCS.start) } },
  { path: '/admin/backups', methods: 'GET, OPTIONS', operations: { GET: operation('operators', listBackups, DOCS.list) } },
  { path: `${BACKUP}/current`, methods: 'DELETE, GET, OPTIONS', operations: { GET: operation('operators', currentBackup, DOCS.current), DELETE: operation('operators', abortBackup, DOCS.abort) } },
  { path: `${BACKUP}/hold`, methods: 'POST, OPTIONS', operations: { POST: operation('operators', beginHold, DOCS.hold) } },
  { path: `${BACKUP}/hold/:hold`, methods: 'DELETE, POST, OPTIONS', operations: { POST: operation('operators', renewHold, DOCS.renew), DELETE: operation('operators', releaseHold, DOCS.release) } },
  { path: `${BACKUP}/files`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', listFiles, DOCS.files) } },
  { path: `${BACKUP}/files/:path+`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', readFile, DOCS.file) } },
];
