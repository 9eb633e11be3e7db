import { SkuaError } from '../../core/base/errors.ts';
import type { CheckpointAsked, CheckpointDocument } from '../documents/checkpoints.ts';
import { queryOf } from '../http/context.ts';
import type { Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { jsonReply } from '../http/reply.ts';
import { area, operation } from '../http/route.ts';
import { CHECKPOINT_DOC } from '../openapi/checkpoint-paths.ts';
import { eventAccess } from './access.ts';

/**
 * GET `/checkpoint?options=…`: for readers that keep where they are. It asks for what a read by query asks for, and
 * tells of no event more than its reader has sent.
 */
const read: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  await eventAccess(call, app)?.begin();
  const asked = askedOf(call);
  const { checkpoint, end } = await app.store.checkpoint(asked);
  if (checkpoint === null) return jsonReply(call, { checkpoint, end } satisfies CheckpointDocument);
  const isKnown = checkpoint.id === asked.id || checkpoint.id === asked.after?.id;
  return jsonReply(call, {
    checkpoint: { ...checkpoint, id: isKnown ? checkpoint.id : null },
    end,
  } satisfies CheckpointDocument);
};

function askedOf(call: Call): CheckpointAsked {
  const text = queryOf(call, 'options');
  if (text === undefined || text === '') return {};
  try {
    const asked: unknown = JSON.parse(text);
    if (typeof asked === 'object' && asked !== null && !Array.isArray(asked)) return asked as CheckpointAsked;
  } catch {
    // It is refused below.
  }
  throw new SkuaError('bad_request', 'options must be a JSON object such as {"after": …} with a checkpoint.');
}

/** The leader of a cluster has all of the log: one that lags behind would know no checkpoint beyond its own end. */
export const CHECKPOINT_ROUTES = area({ tag: 'Streams', offBy: 'disableAtomPub' }, [
  {
    path: '/checkpoint',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('stream', 'leader', read, CHECKPOINT_DOC) },
  },
]);
