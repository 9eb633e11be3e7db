import { refusal } from '../../http/authorization.ts';
import { authorizeWrite } from '../../streams/access.ts';
import { GrpcError, STATUS, unary } from '../call.ts';
import type { GrpcCall, GrpcMethod, MethodRule } from '../call.ts';
import { StreamsService } from '../messages/streams.ts';
import type { AppendReqOptions, DeleteResp } from '../messages/streams.ts';
import { checkTarget, conflictOf, expectedOf, nameOf } from './expectation.ts';
import { unhandled } from './proposed.ts';

const { Delete, Tombstone } = StreamsService.methods;
const RULE: MethodRule = { place: 'writes', access: 'stream' };

/**
 * The two ways to delete a stream, each decided by the leader and once: a tombstone has no id by which a repeat could
 * be known.
 */
export const deleteMethod: GrpcMethod = unary(Delete, RULE, ({ options }, call) => remove(options, call, 'soft'));
export const tombstoneMethod: GrpcMethod = unary(Tombstone, RULE, ({ options }, call) => remove(options, call, 'hard'));

const CHOICES = {
  soft: 'DeleteReq+Types+Options+ExpectedStreamRevisionOneofCase',
  hard: 'TombstoneReq+Types+Options+ExpectedStreamRevisionOneofCase',
} as const;

async function remove(
  options: AppendReqOptions | undefined,
  { call, app }: GrpcCall,
  kind: 'soft' | 'hard',
): Promise<DeleteResp> {
  if (options === undefined) throw unhandled();
  const stream = nameOf(options.streamIdentifier);
  const expected = expectedOf(options, options.revision, CHOICES[kind]);
  if (app.audit !== null)
    call.audited = { action: kind === 'hard' ? 'stream.tombstone' : 'stream.delete', target: stream, details: null };
  checkTarget(call, stream);
  if (stream.startsWith('$$'))
    throw refusal(call.principal, `'${stream}' can't be deleted. Delete the stream it belongs to.`, { stream });
  const authorize = await authorizeWrite(call, app, 'delete', stream);
  try {
    const { position } = await app.store.deleteStream(stream, expected, kind, authorize ?? undefined);
    return { position: { commitPosition: position, preparePosition: position } };
  } catch (error) {
    const conflict = conflictOf(error);
    if (conflict === null) throw error;
    const { actual } = conflict;
    throw new GrpcError(
      STATUS.failedPrecondition,
      `Delete failed due to WrongExpectedVersion. Stream: ${stream}, Expected version: ${expected}, Actual version: ${actual}`,
      {
        exception: 'wrong-expected-version',
        'stream-name': stream,
        'expected-version': String(expected),
        'actual-version': String(actual),
      },
      error,
    );
  }
}
