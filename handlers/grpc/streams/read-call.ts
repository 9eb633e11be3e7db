import { isSkuaError } from '../../../core/base/errors.ts';
import { encodeText } from '../../../core/base/text.ts';
import { isViewName } from '../../../core/streams/format/names.ts';
import { refusal } from '../../http/authorization.ts';
import { checkStream, eventAccess } from '../../streams/access.ts';
import { GrpcError, serverStreaming, STATUS } from '../call.ts';
import type { GrpcCall, GrpcMethod } from '../call.ts';
import { frame } from '../messages/wire.ts';
import { StreamsService, writeReadResp } from '../messages/streams.ts';
import type { ReadReq, ReadReqOptions } from '../messages/streams.ts';
import { readAll, readStream } from './counted-read.ts';
import { nameOf, noneText } from './expectation.ts';
import { readsIndex } from './filter.ts';
import { unhandled } from './proposed.ts';
import { Reply } from './read-reply.ts';
import { subscribeToAll, subscribeToStream } from './subscribe-call.ts';

/** Events of a stream or of `$all`, once or as they come, as each member has them. */
export const readMethod: GrpcMethod = serverStreaming(
  StreamsService.methods.Read,
  { place: 'here', access: 'stream' },
  read,
);

/** Its access list decides about `$all` as a whole. */
const ALL_STREAM = '$all';

async function read({ options }: ReadReq, call: GrpcCall): Promise<void> {
  if (options === undefined) throw unhandled();
  const { stream, all, filter, resolveLinks } = options;
  if (stream === undefined && all === undefined)
    throw new GrpcError(STATUS.invalidArgument, noneText('ReadReq+Types+Options+StreamOptionOneofCase'));
  const name = stream === undefined ? ALL_STREAM : nameOf(stream.streamIdentifier);
  if (name === '')
    throw refusal(call.call.principal, 'No stream has an empty name. Name the stream.', { stream: name });
  const readsView = stream !== undefined && isViewName(name);
  const isByEvent = readsView || (stream === undefined && filter !== undefined && readsIndex(filter));
  const access = isByEvent ? eventAccess(call.call, call.app) : undefined;
  const checking = isByEvent ? undefined : checkStream(call.call, call.app, 'read', name);
  if (checking !== undefined) await checking;
  checkCombination(options);
  const isForward = options.readDirection === FORWARDS;
  const reply = new Reply(call, isByEvent ? null : name, {
    isStructured: isStructured(options),
    resolvesLinks: resolveLinks,
  });
  try {
    if (stream === undefined)
      await (options.count === undefined
        ? subscribeToAll(all!, { filter, access }, call, reply)
        : readAll(all!, { filter, access }, { isForward, count: countOf(options.count) }, call, reply));
    else if (options.count === undefined) await subscribeToStream(name, stream, access, call, reply);
    else
      await readStream(
        name,
        stream,
        { isForward, count: countOf(options.count), compatibility: options.controlOption?.compatibility ?? 0, access },
        call,
        reply,
      );
  } catch (error) {
    if (stream === undefined || !isSkuaError(error, 'stream_not_found')) throw error;
    await reply.send(frame({ streamNotFound: { streamIdentifier: { streamName: encodeText(name) } } }, writeReadResp));
  }
}

const FORWARDS = 0;
const DIRECTIONS: readonly string[] = ['Forwards', 'Backwards'];

/** What can be read how; all else is refused in the words of the recorded node. */
function checkCombination({ stream, count, subscription, readDirection, filter, noFilter }: ReadReqOptions): void {
  const hasMode = count !== undefined || (subscription !== undefined && readDirection === FORWARDS);
  const hasFilter = noFilter !== undefined || (filter !== undefined && stream === undefined);
  if (hasMode && hasFilter && DIRECTIONS[readDirection] !== undefined) return;
  const parts = [
    stream === undefined ? 'All' : 'Stream',
    count !== undefined ? 'Count' : subscription !== undefined ? 'Subscription' : 'None',
    DIRECTIONS[readDirection] ?? String(readDirection),
    filter !== undefined ? 'Filter' : noFilter !== undefined ? 'NoFilter' : 'None',
  ];
  throw new GrpcError(STATUS.invalidArgument, `The combination of (${parts.join(', ')}) is invalid.`);
}

/**
 * Everything but `string` gives structured ids. Without the option the recorded node neither answers nor ends the call.
 */
function isStructured({ uuidOption }: ReadReqOptions): boolean {
  if (uuidOption === undefined)
    throw new GrpcError(
      STATUS.invalidArgument,
      'uuid_option is not set: say whether ids are to come as text (string) or as numbers (structured).',
    );
  return uuidOption.string === undefined;
}

/** Numbers beyond those that we have are more events than there are. */
function countOf(count: number): number {
  return count >= 0 ? count : Number.POSITIVE_INFINITY;
}
