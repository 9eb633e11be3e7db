import { SkuaError, isSkuaError } from '../../core/base/errors.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { changing, document, etagOf, unchanging } from '../http/reply.ts';
import { EVENT_KINDS, FEED_KINDS, negotiate } from '../http/negotiate.ts';
import type { Representation } from '../http/negotiate.ts';
import { decodeSegment } from '../http/url.ts';
import { metadataStreamOf } from './append-events.ts';
import { checkStream, oneWithoutForbidden } from './access.ts';
import { backwardPage, countOf, forwardPage, numberOf, readHeaders, representEvent } from './read-events.ts';

/** Reading stream metadata. Writing it is in append.ts. */

export const latestMetadata: Handler = (call, app) => metadataEvent(call, app, 'head');
export const metadataByNumber: Handler = (call, app) => metadataEvent(call, app, call.params['event']!);

export const metadataBackward: Handler = (call, app) =>
  backwardPage(
    call,
    app,
    metadataStreamOf(call),
    call.params['event']!,
    countOf(call.params['count']!),
    false,
    negotiate(call, FEED_KINDS),
  );

export const metadataForward: Handler = (call, app) =>
  forwardPage(
    call,
    app,
    metadataStreamOf(call),
    call.params['event']!,
    countOf(call.params['count']!),
    false,
    negotiate(call, FEED_KINDS),
  );

/** One event of the metadata stream. Where there is none but the stream exists, the metadata is `{}`. */
async function metadataEvent(call: Call, app: App, event: string): Promise<Reply> {
  const chosen = negotiate(call, EVENT_KINDS);
  const stream = metadataStreamOf(call);
  await checkStream(call, app, 'read', stream);
  const redactions = app.store.redactions.version;
  const isHead = event === 'head';
  const number = isHead ? 'last' : numberOf(event);
  const resolveLinks = readHeaders(call, false);
  try {
    const found = await oneWithoutForbidden(
      call,
      app,
      await app.store.readEvent(stream, number, resolveLinks, app.server.replyShareOf?.(call.request)),
    );
    return representEvent(
      call,
      app,
      found,
      chosen,
      isHead ? changing(app, etagOf((found.link ?? found).number, chosen, redactions)) : unchanging(app),
    );
  } catch (error) {
    if (!isSkuaError(error, 'stream_not_found') && !isSkuaError(error, 'event_not_found')) throw error;
    return noMetadata(call, app, chosen);
  }
}

async function noMetadata(call: Call, app: App, chosen: Representation): Promise<Reply> {
  const stream = decodeSegment(call.params['stream']!);
  const info = await app.store.streamInfo(stream);
  if (info.isTombstoned) throw new SkuaError('stream_deleted', `Stream '${stream}' is hard-deleted.`, { stream });
  if (info.lastEventNumber < 0 && info.metadataVersion < 0)
    throw new SkuaError('stream_not_found', `Stream '${stream}' does not exist. Append an event to create it.`, {
      stream,
    });
  return document(call, '{}', chosen.contentType, changing(app, null));
}
