import type { HoldView } from '../core/backup/holds.ts';
import type { SnapshotFile } from '../core/backup/source.ts';
import { SkuaError } from '../core/errors.ts';
import { timestampText } from '../core/time.ts';
import { adminJson } from './admin-reply.ts';
import { backupsOf } from './backup-context.ts';
import { rangeOf } from './backup-range.ts';
import { streamBytes } from './byte-stream.ts';
import { corsHeaders } from './cors.ts';
import { queryOf } from './context.ts';
import type { Call, Handler } from './context.ts';
import { JSON_ONLY, negotiate } from './negotiate.ts';
import { decodeSegment } from './path.ts';
import { empty } from './reply.ts';

/** The files of a running node over HTTP, for backups that somebody else makes of it: held first, then listed and read. */

/** POST `/admin/backup/hold`: from now on no scavenge starts and no file goes, for a minute after the last use. */
export const beginHold: Handler = async (call, app) => {
  const { holds } = backupsOf(call, app);
  negotiate(call, JSON_ONLY);
  return adminJson(call, 200, holdDocument(await holds.begin()));
};

/** POST `/admin/backup/hold/{id}`: another minute. */
export const renewHold: Handler = async (call, app) => {
  const { holds } = backupsOf(call, app);
  negotiate(call, JSON_ONLY);
  return adminJson(call, 200, holdDocument(await holds.renew(decodeSegment(call.params['hold']!))));
};

/** DELETE `/admin/backup/hold/{id}`. */
export const releaseHold: Handler = async (call, app) => {
  await backupsOf(call, app).holds.release(decodeSegment(call.params['hold']!));
  return empty(call, 204, 'No Content');
};

function holdDocument({ holdId, expiresMs, snapshot }: HoldView) {
  const { nodeId, takenMs, checkpoints, files } = snapshot;
  return {
    holdId, expiresAt: timestampText(Math.floor(expiresMs), 0), nodeId, takenAt: timestampText(Math.floor(takenMs), 0), logEnd: checkpoints.writer,
    files: files.length, sizeBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}

/** GET `/admin/backup/files?hold=`: the whole snapshot, its files in the order in which they have to be copied. */
export const listFiles: Handler = async (call, app) => {
  const { holds } = backupsOf(call, app);
  negotiate(call, JSON_ONLY);
  const { snapshot } = await holds.renew(holdOf(call));
  return adminJson(call, 200, { ...snapshot, files: snapshot.files.map(({ path, kind, sizeBytes }) => ({ path, kind, sizeBytes })) });
};

/** GET `/admin/backup/files/{path}?hold=`: a listed file, or the part of it that `Range`, or `from` and `length`, ask for. */
export const readFile: Handler = async (call, app) => {
  const { holds } = backupsOf(call, app);
  const holdId = holdOf(call);
  const { snapshot } = await holds.renew(holdId);
  const file = listed(snapshot.files, call);
  const range = rangeOf(call, file.sizeBytes);
  const headers = { ...corsHeaders(call.methods), 'content-type': 'application/octet-stream', 'accept-ranges': 'bytes', 'cache-control': 'no-store' };
  if (range === null) return new Response(null, { status: 416, statusText: 'Range Not Satisfiable', headers: { ...headers, 'content-range': `bytes */${file.sizeBytes}`, 'content-length': '0' } });
  const { from, length, isPartial } = range;
  const pieces = holds.read(holdId, file.path, from, length);
  // What fails at the beginning still has a status of its own.
  const first = await pieces.next();
  const partial = isPartial ? { 'content-range': `bytes ${from}-${from + length - 1}/${file.sizeBytes}` } : undefined;
  return new Response(streamBytes(first, pieces), { status: isPartial ? 206 : 200, statusText: isPartial ? 'Partial Content' : 'OK', headers: { ...headers, ...partial, 'content-length': String(length) } });
};

function holdOf(call: Call): string {
  const hold = queryOf(call, 'hold');
  if (hold === undefined || hold === '') throw new SkuaError('bad_request', 'The query must name a hold, as POST /admin/backup/hold gives it: ?hold=...');
  return hold;
}

/** A file counts only under the very name that the list gives it, so no name leads anywhere else. */
function listed(files: readonly SnapshotFile[], call: Call): SnapshotFile {
  const path = decoded(call.params['path'] ?? '');
  const file = files.find((each) => each.path === path);
  if (file === undefined) throw new SkuaError('not_found', 'There is no such file in this hold. GET /admin/backup/files lists those there are.');
  return file;
}

/** Null for what is no text. */
function decoded(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}
