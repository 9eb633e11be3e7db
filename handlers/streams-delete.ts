import { refusal } from './authorization.ts';
import type { Handler } from './context.ts';
import { checkRequireLeader, expectedVersionOf, hardDeleteOf } from './headers.ts';
import { decodeSegment } from './path.ts';
import { empty } from './reply.ts';
import { authorizeWrite } from './streams-access.ts';

/** DELETE `/streams/{stream}` (http-api.md 2.5): soft, or for ever with the hard-delete header. */
export const deleteHandler: Handler = async (call, app) => {
  const stream = decodeSegment(call.params['stream']!);
  if (stream === '$all' || stream.startsWith('$$')) throw refusal(call.principal, `'${stream}' can't be deleted. Delete the stream it belongs to.`, { stream });
  const authorize = await authorizeWrite(call, app, 'delete', stream);
  const headers = call.request.headers;
  const expected = expectedVersionOf(headers);
  checkRequireLeader(headers);
  await app.store.deleteStream(stream, expected, hardDeleteOf(headers) ? 'hard' : 'soft', authorize ?? undefined);
  return empty(call, 204, 'Stream deleted');
};
