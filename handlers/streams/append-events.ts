import { SkuaError } from '../../core/base/errors.ts';
import { newId } from '../../core/ports/ids.ts';
import type { Authorize } from '../../core/streams/api.ts';
import { NO_BYTES, parseBatch } from './posted-events.ts';
import { refusal } from '../http/authorization.ts';
import { readBody } from '../http/body.ts';
import { noteForAudit } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import {
  checkRequireLeader,
  eventIdOf,
  eventTypeOf,
  expectedVersionOf,
  hardDeleteOf,
  isUsableEventId,
} from '../http/http-headers.ts';
import { postedKind } from '../http/negotiate.ts';
import type { PostedKind } from '../http/negotiate.ts';
import { created, empty, POSITION_HEADER, redirect } from '../http/reply.ts';
import { baseOf, decodeSegment, streamUrl } from '../http/url.ts';
import { authorizeWrite } from './access.ts';
import { auditWrite, noteMetadata } from './audit-write.ts';

/**
 * Appending. Checks come in the order of the reference, behind the media type and the right to write: a caller without
 * that right learns nothing else.
 */

/**
 * POST `/streams/{stream}`, the route that is called most: it is reached without the router, each header is read once,
 * and the reply is one small object.
 */
export function appendTo(call: Call, app: App, segment: string): Reply | Promise<Reply> {
  const kind = postedKind(call.request.headers.get('content-type'));
  const stream = streamToWrite(call, segment);
  if (app.audit !== null) auditWrite(call, stream);
  const authorize = authorizeWrite(call, app, 'write', stream);
  return authorize instanceof Promise
    ? authorize.then((known) => appendPosted(call, app, stream, kind, known))
    : appendPosted(call, app, stream, kind, authorize);
}

function appendPosted(
  call: Call,
  app: App,
  stream: string,
  kind: PostedKind,
  authorize: Authorize | null,
): Reply | Promise<Reply> {
  const headers = call.request.headers;
  if (kind === 'batch' || kind === 'unusable') return append(call, app, stream, kind, '', '', authorize);
  const type = eventTypeOf(headers);
  if (type === null)
    throw new SkuaError(
      'bad_request',
      'Must include an event type with the request either in body or as ES-EventType header.',
    );
  const id = eventIdOf(headers);
  if (id === null) return redirect(call, `${baseOf(call)}${call.path}/incoming/${newId(app.world.ids)}`, NO_ID_TEXT);
  return append(call, app, stream, kind, id, type, authorize);
}

/** The first line is the reference's. */
const NO_ID_TEXT = `Forwarding to idempotent URI
Nothing was written: the event has no id. Post it again with a UUID in the header ES-EventId, the same one in each repeat, so that it is written once. Or post it to the address in Location, which has an id: a client that follows redirects does so (curl -L).
`;

export const appendHandler: Handler = (call, app) => appendTo(call, app, call.params['stream']!);

/**
 * POST `/streams/{stream}/incoming/{guid}`: the address a client is sent to when it gave no id, so that it can repeat.
 */
export const appendIncoming: Handler = async (call, app) => {
  const headers = call.request.headers;
  const kind = postedKind(headers.get('content-type'));
  if (kind === 'batch')
    throw new SkuaError(
      'unsupported_media_type',
      'Post a single event here: application/json or application/octet-stream. Batches contain their own ids and are posted to the stream.',
    );
  const stream = streamToWrite(call, call.params['stream']!);
  if (app.audit !== null) auditWrite(call, stream);
  const authorize = await authorizeWrite(call, app, 'write', stream);
  const id = decodeSegment(call.params['guid']!);
  if (!isUsableEventId(id)) throw new SkuaError('bad_request', 'Invalid request. Unable to parse guid');
  const type = eventTypeOf(headers);
  if (type === null && kind !== 'unusable')
    throw new SkuaError(
      'bad_request',
      'Must include an event type with the request either in body or as ES-EventType header.',
    );
  return append(call, app, stream, kind, id, type ?? '', authorize);
};

/** POST `/streams/{stream}/metadata`: an append to the metadata stream, without the redirect. */
export const appendMetadata: Handler = async (call, app) => {
  const headers = call.request.headers;
  const kind = postedKind(headers.get('content-type'));
  const stream = metadataStreamOf(call);
  if (app.audit !== null) auditWrite(call, stream);
  const authorize = await authorizeWrite(call, app, 'write', stream);
  const type = eventTypeOf(headers);
  if (type !== null && type !== '$metadata')
    throw new SkuaError('bad_request', 'Bad Request. You should not include an event type for metadata.');
  const id = eventIdOf(headers);
  if (id === null && (kind === 'json' || kind === 'binary'))
    throw new SkuaError('bad_request', "Empty eventId provided. (Parameter 'eventId')", {
      hint: 'Give it a UUID in the header ES-EventId, the same one in each repeat.',
    });
  return append(call, app, stream, kind, id ?? '', '$metadata', authorize);
};

/** Name of the metadata stream of the stream in the path. Metadata streams have none of their own. */
export function metadataStreamOf(call: Call): string {
  const stream = decodeSegment(call.params['stream']!);
  if (stream.startsWith('$$'))
    throw refusal(call.principal, `'${stream}' is a metadata stream; metadata streams have no metadata of their own.`, {
      stream,
    });
  return `$$${stream}`;
}

async function append(
  call: Call,
  app: App,
  stream: string,
  kind: PostedKind,
  id: string,
  type: string,
  authorize: Authorize | null,
): Promise<Reply> {
  const expected = expectedVersionOf(call.request.headers);
  checkRequireLeader(call.request.headers);
  if (kind === 'unusable')
    throw new SkuaError('bad_json', 'Write request body invalid.', {
      hint: 'Post events as application/vnd.eventstore.events+json, or one as application/json.',
    });
  const body = await readBody(call, app);
  const parsed =
    kind === 'batch'
      ? parseBatch(body, app.turns, call.countedAs, () => app.server.replyShareOf?.(call.request))
      : [{ id, type, isJson: kind === 'json', data: body, metadata: NO_BYTES }];
  call.isLong = parsed instanceof Promise;
  const events = parsed instanceof Promise ? await parsed : parsed;
  // The body may have taken its time, and the defaults of access lists may have changed meanwhile.
  const again = authorize === null ? null : authorizeWrite(call, app, 'write', stream);
  const decide = again instanceof Promise ? await again : again;
  if (events.length === 0)
    throw new SkuaError('batch_empty', 'The request has no events: send at least one.', { stream });
  if (call.audited !== null && stream.startsWith('$$')) await noteMetadata(call, app, stream.slice(2), events);
  const result = await app.store.append(stream, expected, events, decide ?? undefined);
  return created(call, `${streamUrl(call, stream)}/${result.firstEventNumber}`);
}

/** The stream of a segment, unless nothing can ever be written to it. */
function streamToWrite(call: Call, segment: string): string {
  const stream = decodeSegment(segment);
  if (stream === '$all')
    throw refusal(
      call.principal,
      'Nothing can be appended to $all: it shows the events of all streams. Name the stream.',
      { stream },
    );
  return stream;
}

/** DELETE `/streams/{stream}`: soft, or for ever with the hard-delete header. */
export const deleteHandler: Handler = async (call, app) => {
  const stream = decodeSegment(call.params['stream']!);
  if (stream === '$all' || stream.startsWith('$$'))
    throw refusal(call.principal, `'${stream}' can't be deleted. Delete the stream it belongs to.`, { stream });
  const authorize = await authorizeWrite(call, app, 'delete', stream);
  const headers = call.request.headers;
  const expected = expectedVersionOf(headers);
  checkRequireLeader(headers);
  const kind = hardDeleteOf(headers) ? 'hard' : 'soft';
  if (kind === 'hard') noteForAudit(call, { action: 'stream.tombstone' });
  const { position } = await app.store.deleteStream(stream, expected, kind, authorize ?? undefined);
  const reply = empty(call, 204, 'Stream deleted');
  return { ...reply, headers: { ...reply.headers, [POSITION_HEADER]: String(position) } };
};
