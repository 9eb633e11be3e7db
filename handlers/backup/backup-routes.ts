import type { ManifestSummary } from '../../core/backup/format/snapshot-manifest.ts';
import type { BackupOptions, BackupProgress, Backups } from '../../core/backup/api.ts';
import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { ErrorCode } from '../../core/base/errors.ts';
import { timestampText } from '../../core/base/time.ts';
import { beginHold, listFiles, readFile, releaseHold, renewHold } from './held-files.ts';
import { readBody, requireJsonType } from '../http/body.ts';
import { noteForAudit } from '../http/context.ts';
import type { App, Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf } from '../http/presence.ts';
import { adminJson } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import type {
  BackupDocument,
  BackupProgressDocument,
  BackupsDocument,
  BackupStartedDocument,
} from '../documents/backup.ts';
import { BACKUP_DOCS } from '../openapi/backup-paths.ts';

/** Backups that the node makes of itself. Where they go is set by its options alone: a caller must not choose. */

/** Largest body of POST `/admin/backup`. */
const BODY_BYTES_MAX = 1_024;

/** POST `/admin/backup`: 202 once the backup has begun. */
const startBackup: Handler = async (call, app) => {
  const { node } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  const { backupId } = await reached(node.start(await optionsOf(call, app)));
  noteForAudit(call, { target: backupId });
  return adminJson(call, 202, { backupId } satisfies BackupStartedDocument);
};

/** Errors that keep a repository out of reach until an operator does something about it. */
const OUT_OF_REACH: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'bucket_not_found',
  'storage_denied',
  'wrong_region',
  'clock_skewed',
  'file_not_found',
]);

/**
 * Elsewhere such an error is that of the node's own storage, whose names callers must not learn; a caller that may
 * make backups may know where they go.
 */
async function reached<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isSkuaError(error) || !OUT_OF_REACH.has(error.code)) throw error;
    throw new SkuaError(
      'repository_unreachable',
      `The backup repository can't be reached: ${error.message}`,
      { reason: error.code },
      error,
    );
  }
}

/** GET `/admin/backups`: those in the repository, newest first, and to when they can be restored. */
const listBackups: Handler = async (call, app) => {
  const { node } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  const { backups, times } = await reached(node.listRestorable());
  return adminJson(call, 200, {
    backups: backups.map(backupDocument),
    restorable: times.map(({ fromMs, toMs }) => ({ from: timestampText(fromMs, 0), to: timestampText(toMs, 0) })),
  } satisfies BackupsDocument);
};

/** GET `/admin/backup/current`: how far the backup is; 404 when none is made. */
const currentBackup: Handler = (call, app) => {
  const { node } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  const progress = node.current();
  if (progress === null) throw notRunning(node.last());
  return adminJson(call, 200, progressDocument(progress));
};

/** DELETE `/admin/backup/current`: answered when the backup has ended. */
const abortBackup: Handler = async (call, app) => {
  const { node } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  const backupId = await node.abort();
  noteForAudit(call, { target: backupId });
  return adminJson(call, 200, { backupId } satisfies BackupStartedDocument);
};

function notRunning(last: ReturnType<Backups['last']>): SkuaError {
  const hint =
    last === null
      ? undefined
      : `The result of the last one, ${last.backupId}: ${last.result}.${last.error === null ? '' : ` ${last.error}`}`;
  return new SkuaError('backup_not_running', 'No backup is running.', hint === undefined ? {} : { hint });
}

function backupDocument({
  id,
  nodeId,
  createdMs,
  cause,
  logEnd,
  shippedEnd,
  shippedMs,
  sizeBytes,
}: ManifestSummary): BackupDocument {
  return {
    id,
    createdAt: timeText(createdMs),
    logEnd,
    shippedEnd,
    shippedAt: timeText(shippedMs),
    sizeBytes,
    cause,
    nodeId,
  };
}

/** How far a backup is. */
export function progressDocument({
  backupId,
  phase,
  bytesDone,
  bytesTotal,
  startedMs,
  elapsedSeconds,
  remainingSeconds,
}: BackupProgress): BackupProgressDocument {
  return { backupId, phase, bytesDone, bytesTotal, startedAt: timeText(startedMs), elapsedSeconds, remainingSeconds };
}

function timeText(ms: number): string {
  return timestampText(Math.floor(ms), 0);
}

/** From the query, or from a JSON object in the body. Whatever else is named there is refused, a location above all. */
async function optionsOf(call: Call, app: App): Promise<BackupOptions> {
  const { format: _, ...query } = call.query;
  const given: Record<string, unknown> = { ...(await bodyOf(call, app)), ...query };
  const names = Object.keys(given).filter((name) => name !== 'pauseScavenge');
  if (names.length > 0)
    throw new SkuaError(
      'bad_request',
      `A backup accepts only pauseScavenge, not ${names
        .slice(0, 5)
        .map((name) => `'${name.slice(0, 50)}'`)
        .join(', ')}: its destination is the node's option Backup:Repository.`,
    );
  const { pauseScavenge = false } = given;
  if (pauseScavenge === true || pauseScavenge === 'true') return { pauseScavenge: true };
  if (pauseScavenge === false || pauseScavenge === 'false') return { pauseScavenge: false };
  throw new SkuaError('bad_request', 'pauseScavenge must be true or false');
}

async function bodyOf(call: Call, app: App): Promise<object> {
  const bytes = await readBody(call, app, BODY_BYTES_MAX);
  if (bytes.length === 0) return {};
  requireJsonType(call);
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new SkuaError(
      'bad_json',
      'The body is not valid JSON in UTF-8. Leave it out, or send an object such as {"pauseScavenge": true}.',
    );
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SkuaError('bad_json', 'The body must be a JSON object such as {"pauseScavenge": true}.');
  return body;
}

const BACKUP = '/admin/backup';

/**
 * The paths of backups: what a node makes of itself, and its files for what others make. Operators start the first and
 * learn when and how large they were; the files are for `$backup`, since to read them is to read every stream and
 * every user.
 */
export const BACKUP_ROUTES = area({ tag: 'Backup', feature: 'backups', offBy: 'disableAdminUi' }, [
  {
    path: BACKUP,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('operators', 'here', startBackup, BACKUP_DOCS.start, 'backup.start') },
  },
  {
    path: '/admin/backups',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(listBackups), BACKUP_DOCS.list) },
  },
  {
    path: `${BACKUP}/current`,
    methods: 'DELETE, GET, OPTIONS',
    operations: {
      GET: operation('operators', 'here', currentBackup, BACKUP_DOCS.current),
      DELETE: operation('operators', 'here', abortBackup, BACKUP_DOCS.abort, 'backup.abort'),
    },
  },
  {
    path: `${BACKUP}/hold`,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('backup', 'here', beginHold, BACKUP_DOCS.hold, 'backup.hold') },
  },
  {
    path: `${BACKUP}/hold/:hold`,
    methods: 'DELETE, POST, OPTIONS',
    operations: {
      POST: operation('backup', 'here', renewHold, BACKUP_DOCS.renew),
      DELETE: operation('backup', 'here', releaseHold, BACKUP_DOCS.release, 'backup.release'),
    },
  },
  {
    path: `${BACKUP}/files`,
    methods: 'GET, OPTIONS',
    operations: { GET: operation('backup', 'here', inRoom(listFiles), BACKUP_DOCS.files) },
  },
  {
    path: `${BACKUP}/files/:path+`,
    methods: 'GET, OPTIONS',
    operations: { GET: operation('backup', 'here', readFile, BACKUP_DOCS.file) },
  },
]);
