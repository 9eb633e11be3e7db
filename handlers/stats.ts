import { SkuaError } from '../core/errors.ts';
import { queryOf } from './context.ts';
import type { Call, Handler } from './context.ts';
import { JSON_ONLY, negotiate } from './negotiate.ts';
import { nodeOf } from './node-of.ts';
import { document } from './reply.ts';
import { branchOf, described, describedFlat, flatten } from './stats-tree.ts';

const CACHING = { cacheControl: 'max-age=1, public', etag: null } as const;
/** Deeper than any branch. */
const DEPTH_MAX = 16;

/** GET `/stats` and `/stats/{path…}` (http-api.md section 4.3). */
export const stats: Handler = (call, app) => {
  const { contentType } = negotiate(call, JSON_ONLY);
  const isGrouped = booleanOf(call, 'group', true);
  const isDescribed = booleanOf(call, 'metadata', false);
  const keys = keysOf(call);
  if (keys.length > 0 && !isGrouped) throw new SkuaError('bad_request', 'Dynamic stats selection works only with grouping enabled');
  const branch = branchOf(nodeOf(call, app).stats(), keys);
  if (branch === undefined) throw new SkuaError('not_found', `There are no statistics '${keys.join('/')}', or they are a single value. GET /stats shows all.`);
  const shown = isGrouped ? (isDescribed ? described(branch, keys) : branch) : isDescribed ? describedFlat(branch) : flatten(branch);
  return document(call, JSON.stringify(shown, null, 2), contentType, CACHING);
};

/** GET `/stats/replication` and `/stats/tcp`: a single node has no replicas, and nothing here speaks the TCP protocol. */
export const noConnections: Handler = (call, app) => {
  const { contentType } = negotiate(call, JSON_ONLY);
  nodeOf(call, app);
  return document(call, '[]', contentType, CACHING);
};

function booleanOf(call: Call, name: string, otherwise: boolean): boolean {
  const text = queryOf(call, name)?.toLowerCase();
  if (text === undefined) return otherwise;
  if (text === 'true' || text === 'false') return text === 'true';
  throw new SkuaError('bad_request', `${name} is '${text}'; it must be true or false.`);
}

/** The keys behind `/stats/`, each decoded by itself: a drive's name may hold slashes. */
function keysOf(call: Call): string[] {
  const path = call.params['path'];
  if (path === undefined) return [];
  const segments = path.split('/');
  if (segments.length > DEPTH_MAX) throw new SkuaError('not_found', 'There are no statistics as deep as that. GET /stats shows all.');
  return segments.map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      throw new SkuaError('bad_request', `The path holds malformed percent-encoding: '${segment}'. Encode names as UTF-8.`);
    }
  });
}
