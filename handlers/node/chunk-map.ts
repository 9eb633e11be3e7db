import { SkuaError } from '../../core/base/errors.ts';
import { queryOf } from '../http/context.ts';
import type { Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { nodeOf } from '../http/presence.ts';
import { jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { CHUNK_MAP_DOC } from '../openapi/inspection-paths.ts';

/** Longest version of a chunk map in characters; those that are given are shorter. */
const VERSION_LENGTH_MAX = 64;

/**
 * GET `/admin/chunks?since=`: every chunk file in log order, in one line, since there may be ten thousand; without them
 * where the caller knows them.
 */
const chunkMap: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  const node = nodeOf(call, app);
  const since = queryOf(call, 'since') ?? null;
  if (since !== null && since.length > VERSION_LENGTH_MAX)
    throw new SkuaError('bad_request', 'since must be the version of an earlier answer. Leave it out for all chunks.');
  return jsonReply(call, node.chunkMap(since));
};

/** The path of the chunk files. */
export const CHUNK_MAP_ROUTES = area({ tag: 'Administration', offBy: 'disableAdminUi' }, [
  {
    path: '/admin/chunks',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(chunkMap), CHUNK_MAP_DOC) },
  },
]);
