import type { StreamInfoDocument } from '../documents/together.ts';
import type { Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { jsonReply } from '../http/reply.ts';
import { decodeSegment } from '../http/url.ts';
import { checkReading } from './access.ts';

/** GET `/streams/{stream}/info`: whether a stream is there, and the number of its last event, without reading it. */
export const streamInfo: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const stream = decodeSegment(call.params['stream']!);
  await checkReading(call, app, stream);
  const { lastEventNumber, isTombstoned, isSoftDeleted } = await app.store.streamInfo(stream);
  const hasEvents = lastEventNumber >= 0;
  const state = isTombstoned ? 'tombstoned' : isSoftDeleted ? 'deleted' : hasEvents ? 'live' : 'none';
  return jsonReply(call, {
    stream,
    state,
    version: hasEvents && !isTombstoned ? lastEventNumber : null,
  } satisfies StreamInfoDocument);
};
