import type { HoldView, SnapshotFile } from '../../core/store/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { timestampText } from '../../core/base/time.ts';
import type { HoldDocument, SnapshotDocument } from '../documents/backup.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf } from '../http/presence.ts';
import { adminJson, commonHeaders, empty } from '../http/reply.ts';
import { decodeSegment } from '../http/url.ts';

/**
 * The files of a running node over HTTP, for backups that another program makes of it: held first, then listed and
 * read.
 */

/** POST `/admin/backup/hold`: from now on no scavenge starts and no file goes, for a minute after the last use. */
export const beginHold: Handler = async (call, app) => {
  const { holds } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  const view = await holds.begin();
  noteForAudit(call, { target: view.holdId });
  return adminJson(call, 200, holdDocument(view));
};

/** POST `/admin/backup/hold/{id}`: another minute. */
export const renewHold: Handler = async (call, app) => {
  const { holds } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  return adminJson(call, 200, holdDocument(await holds.renew(decodeSegment(call.params['hold']!))));
};

/** DELETE `/admin/backup/hold/{id}`. */
export const releaseHold: Handler = async (call, app) => {
  await featureOf(call, app, 'backups').holds.release(decodeSegment(call.params['hold']!));
  return empty(call, 204, 'No Content');
};

function holdDocument({ holdId, expiresMs, snapshot }: HoldView): HoldDocument {
  const { nodeId, takenMs, checkpoints, files } = snapshot;
  return {
    holdId,
    expiresAt: timestampText(Math.floor(expiresMs), 0),
    nodeId,
    takenAt: timestampText(Math.floor(takenMs), 0),
    logEnd: checkpoints.writer,
    files: files.length,
    sizeBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}

/** GET `/admin/backup/files?hold=`: the whole snapshot, its files in the order in which they have to be copied. */
export const listFiles: Handler = async (call, app) => {
  const { holds } = featureOf(call, app, 'backups');
  negotiate(call, JSON_ONLY);
  const { snapshot } = await holds.renew(holdOf(call));
  return adminJson(call, 200, {
    ...snapshot,
    files: snapshot.files.map(({ path, kind, sizeBytes }) => ({ path, kind, sizeBytes })),
  } satisfies SnapshotDocument);
};

/**
 * GET `/admin/backup/files/{path}?hold=`: a listed file, or the part of it that `Range`, or `from` and `length`, ask
 * for.
 */
export const readFile: Handler = async (call, app) => {
  const { holds } = featureOf(call, app, 'backups');
  const holdId = holdOf(call);
  const { snapshot } = await holds.renew(holdId);
  const file = listed(snapshot.files, call);
  const range = rangeOf(call, file.sizeBytes);
  const headers = {
    ...commonHeaders(call.methods),
    'content-type': 'application/octet-stream',
    'accept-ranges': 'bytes',
    'cache-control': 'no-store',
  };
  if (range === null)
    throw new SkuaError(
      'range_not_satisfiable',
      `The file has ${file.sizeBytes} bytes, and none at this offset. Ask for a range within it.`,
      { sizeBytes: file.sizeBytes },
    );
  const { from, length, isPartial } = range;
  const pieces = holds.read(holdId, file.path, from, length);
  // What fails at the beginning still has a status of its own.
  const first = await pieces.next();
  const partial = isPartial ? { 'content-range': `bytes ${from}-${from + length - 1}/${file.sizeBytes}` } : undefined;
  return {
    status: isPartial ? 206 : 200,
    statusText: isPartial ? 'Partial Content' : 'OK',
    headers: { ...headers, ...partial, 'content-length': String(length) },
    body: streamBytes(first, pieces),
  };
};

function holdOf(call: Call): string {
  const hold = queryOf(call, 'hold');
  if (hold === undefined || hold === '')
    throw new SkuaError('bad_request', 'The query must name a hold, as POST /admin/backup/hold gives it: ?hold=...');
  return hold;
}

/** A file counts only under the very name that the list gives it, so no name leads anywhere else. */
function listed(files: readonly SnapshotFile[], call: Call): SnapshotFile {
  const path = decoded(call.params['path'] ?? '');
  const file = files.find((each) => each.path === path);
  if (file === undefined)
    throw new SkuaError('not_found', 'There is no such file in this hold. GET /admin/backup/files lists its files.');
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

interface ByteRange {
  readonly from: number;
  readonly length: number;
  /** Asked for by the header, so that the answer is 206. */
  readonly isPartial: boolean;
}

/**
 * The part of a file that is asked for: by `from` and `length` in the query, else by a `Range` of one part, else all of
 * it. Null where the file has nothing of it. Other forms of `Range` are ignored, as RFC 9110 section 14.2 allows.
 * Errors: `bad_request`.
 */
function rangeOf(call: Call, sizeBytes: number): ByteRange | null {
  const from = numberOf(call, 'from');
  const length = numberOf(call, 'length');
  if (from !== null || length !== null) {
    const start = from ?? 0;
    if (start > sizeBytes) return null;
    return { from: start, length: Math.min(length ?? sizeBytes, sizeBytes - start), isPartial: false };
  }
  const found = headerRange(call.request.headers.get('range'), sizeBytes);
  return found === undefined ? { from: 0, length: sizeBytes, isPartial: false } : found;
}

function numberOf(call: Call, name: string): number | null {
  const text = queryOf(call, name);
  if (text === undefined) return null;
  if (!/^\d{1,15}$/.test(text)) throw new SkuaError('bad_request', `${name} must be a number of bytes`);
  return Number(text);
}

/** Undefined: there is no range that is understood. */
function headerRange(header: string | null, sizeBytes: number): ByteRange | null | undefined {
  const parts = header === null ? null : /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.trim());
  if (parts === null || (parts[1] === '' && parts[2] === '')) return undefined;
  const first = parts[1] === '' ? Math.max(0, sizeBytes - Number(parts[2])) : Number(parts[1]);
  const last = parts[1] === '' || parts[2] === '' ? sizeBytes - 1 : Math.min(Number(parts[2]), sizeBytes - 1);
  if (parts[1] !== '' && parts[2] !== '' && Number(parts[2]) < first) return undefined;
  return first > last ? null : { from: first, length: last - first + 1, isPartial: true };
}

/**
 * A body from pieces of bytes, each asked for only when the reader has taken the one before. A reader that goes away
 * ends them. Their memory may be used again, and what the server has not sent yet is still needed, so they are copied.
 */
function streamBytes(
  first: IteratorResult<Uint8Array, void>,
  pieces: AsyncGenerator<Uint8Array, void, undefined>,
): ReadableStream<Uint8Array> {
  let next: IteratorResult<Uint8Array, void> | null = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = next ?? (await pieces.next());
        next = null;
        if (piece.done === true) controller.close();
        else controller.enqueue(piece.value.slice());
      },
      async cancel() {
        await pieces.return();
      },
    },
    { highWaterMark: 0 },
  );
}
