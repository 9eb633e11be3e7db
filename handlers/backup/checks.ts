import { isGood } from '../../core/backup/checks/checks.ts';
import type { BackupCheck, CheckReport, CheckSubject } from '../../core/backup/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { timestampText } from '../../core/base/time.ts';
import { progressDocument } from './backup-routes.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { AppFeatures, Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf } from '../http/presence.ts';
import { adminJson, jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import type {
  BackupStatusDocument,
  CheckDocument,
  ChecksDocument,
  CheckStartedDocument,
  DrillDocument,
  VerifiedDocument,
} from '../documents/backup.ts';
import { CHECK_DOCS } from '../openapi/backup-paths.ts';

/** How the backups of a node are, and what proves that they are good: checks of its repository in the background. */

/** Longest id of a backup, in characters. */
const BACKUP_ID_LENGTH_MAX = 64;

/** GET `/admin/backup/status`: what the node knows without asking its repository. */
const backupStatus: Handler = (call, app) => {
  const backups = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  return jsonReply(call, statusDocument(backups));
};

function statusDocument({ status, node }: NonNullable<AppFeatures['backups']>): BackupStatusDocument {
  const {
    place,
    schedule,
    shipEverySeconds,
    newest,
    restorable,
    unshippedBytes,
    shipLagMs,
    provenMs,
    verified,
    commands,
  } = status();
  const current = node.current();
  return {
    repository: place,
    schedule,
    shipEverySeconds,
    newest: newest === null ? null : { id: newest.id, createdAt: timeText(newest.createdMs), logEnd: newest.logEnd },
    restorable: restorable === null ? null : { position: restorable.position, at: timeText(restorable.atMs) },
    unshippedBytes,
    shipLagSeconds: shipLagMs === null ? null : shipLagMs / 1_000,
    provenAt: provenMs === null ? null : timeText(provenMs),
    verified: verified === null ? null : { at: timeText(verified.atMs), errors: verified.errors },
    commands,
    current: current === null ? null : progressDocument(current),
    last: node.last(),
  };
}

/** POST `/admin/backup/verify` and `/admin/backup/drill`: 202 once the check has begun. */
function startCheck(subjectOf: (call: Call) => CheckSubject): Handler {
  return (call, app) => {
    const { checks } = featureOf(call, app, 'backups');
    negotiate(call, JSON_ONLY);
    const subject = subjectOf(call);
    if (subject.kind === 'drill') noteForAudit(call, { target: subject.backupId });
    return adminJson(call, 202, { checkId: checks.start(subject) } satisfies CheckStartedDocument);
  };
}

function verifyOf(call: Call): CheckSubject {
  const text = queryOf(call, 'subset');
  const subset = text === undefined ? 1 : /^\d(?:\.\d{1,6})?$/.test(text) ? Number(text) : 0;
  if (!(subset > 0 && subset <= 1))
    throw new SkuaError(
      'bad_request',
      'subset must be a number above 0 and at most 1: the share of the content to read.',
    );
  return { kind: 'verify', subset };
}

function drillOf(call: Call): CheckSubject {
  const backupId = queryOf(call, 'backup') ?? null;
  if (backupId !== null && (backupId === '' || backupId.length > BACKUP_ID_LENGTH_MAX))
    throw new SkuaError('bad_request', 'backup must be the id of a backup. Leave it out for the newest.');
  return { kind: 'drill', backupId };
}

/** GET `/admin/backup/check`: the last ones, with what they found. */
const listChecks: Handler = (call, app) => {
  const { checks } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  return adminJson(call, 200, { checks: checks.list().map(checkDocument) } satisfies ChecksDocument);
};

/** DELETE `/admin/backup/check`: answered when it has ended. */
const abortCheck: Handler = async (call, app) => {
  const { checks } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  const checkId = await checks.abort();
  noteForAudit(call, { target: checkId });
  return adminJson(call, 200, { checkId } satisfies CheckStartedDocument);
};

function checkDocument({
  id,
  subject,
  state,
  phase,
  bytesDone,
  bytesTotal,
  startedMs,
  endedMs,
  elapsedSeconds,
  error,
  report,
}: BackupCheck): CheckDocument {
  return {
    checkId: id,
    kind: subject.kind,
    state,
    phase,
    bytesDone,
    bytesTotal,
    startedAt: timeText(startedMs),
    endedAt: endedMs === null ? null : timeText(endedMs),
    elapsedSeconds,
    error,
    isGood: report === null ? null : isGood(report),
    report: report === null ? null : reportDocument(report),
  };
}

function reportDocument(report: CheckReport): VerifiedDocument | DrillDocument {
  if (report.kind === 'verify') {
    const { manifests, blobs, blobsRead, bytesRead, pieces, errors, list } = report.verified;
    return {
      manifests,
      blobs,
      blobsRead,
      bytesRead,
      pieces,
      errors,
      findings: list.map(({ key, kind, message }) => ({ where: key, kind, message })),
    };
  }
  const { backupId, position, chunks, records, events, indexEntries, bytes, findings, restoreMs, verifyMs } =
    report.drill;
  return {
    backupId,
    position,
    chunks,
    records,
    events,
    indexEntries,
    bytes,
    restoreSeconds: Math.round(restoreMs) / 1_000,
    verifySeconds: Math.round(verifyMs) / 1_000,
    findings: findings.map(({ file, severity, message }) => ({ where: file, kind: severity, message })),
  };
}

function timeText(ms: number): string {
  return timestampText(Math.floor(ms), 0);
}

const BACKUP = '/admin/backup';

/** The paths of checks of backups. */
export const BACKUP_CHECK_ROUTES = area({ tag: 'Backup', feature: 'backups', offBy: 'disableAdminUi' }, [
  {
    path: `${BACKUP}/status`,
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', backupStatus, CHECK_DOCS.status) },
  },
  {
    path: `${BACKUP}/verify`,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('operators', 'here', startCheck(verifyOf), CHECK_DOCS.verify, 'backup.verify') },
  },
  {
    path: `${BACKUP}/drill`,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('operators', 'here', startCheck(drillOf), CHECK_DOCS.drill, 'backup.drill') },
  },
  {
    path: `${BACKUP}/check`,
    methods: 'DELETE, GET, OPTIONS',
    operations: {
      GET: operation('operators', 'here', inRoom(listChecks), CHECK_DOCS.list),
      DELETE: operation('operators', 'here', abortCheck, CHECK_DOCS.abort, 'backup.check-abort'),
    },
  },
]);
