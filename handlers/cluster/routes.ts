import { WRITES_PATH } from '../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import { checkCommitsRequest, checkGossip, checkLeadRequest } from '../../core/cluster/format/peer-messages.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { CommitsRequest } from '../../core/ports/peers.ts';
import { readJson } from '../http/body.ts';
import { queryOf } from '../http/context.ts';
import type { Call, ClusterFeature, Handler } from '../http/context.ts';
import { featureOf } from '../http/presence.ts';
import { commonHeaders, empty, jsonReply } from '../http/reply.ts';
import { area, operation } from '../http/route.ts';
import { CLUSTER_DOCS } from '../openapi/cluster-paths.ts';
import { append } from './writes.ts';

/**
 * What the members of a cluster ask of each other (core/ports/peers.ts). No other caller may, and none of it is for
 * other callers.
 */

/** Bytes of a gossip as JSON: an entry has less than 1 KiB unless its address is as long as addresses get. */
const GOSSIP_BYTES_MAX = 262_144;
const LEAD_BYTES_MAX = 4_096;
/**
 * Answers with commits that are under way or held at a time: a member has one open, and forgets some when its
 * connection breaks.
 */
export const COMMITS_HELD_MAX = 100;

/** POST `/cluster/gossip`: what the sender knows, for what this member knows. */
const gossip: Handler = async (call, app) => {
  const { membership } = featureOf(call, app, 'cluster');
  return jsonReply(call, await membership.onGossip(checkGossip(await readJson(call, app, GOSSIP_BYTES_MAX))));
};

/** POST `/cluster/lead`: answered when the epoch is committed. */
const lead: Handler = async (call, app) => {
  const { membership } = featureOf(call, app, 'cluster');
  return jsonReply(call, await membership.onLead(checkLeadRequest(await readJson(call, app, LEAD_BYTES_MAX))));
};

const held = new WeakMap<ClusterFeature, number>();

/**
 * GET `/cluster/commits`: commits one behind the other; 204 when none came in time, 410 where they are not at hand or
 * the member does not lead.
 */
const commits: Handler = async (call, app) => {
  const cluster = featureOf(call, app, 'cluster');
  const request = commitsRequest(call);
  const count = held.get(cluster) ?? 0;
  if (count >= COMMITS_HELD_MAX)
    throw new SkuaError(
      'too_busy',
      `${count} members already receive commits from here. Read the commits from the bucket.`,
    );
  held.set(cluster, count + 1);
  try {
    const reply = await cluster.membership.onCommits(request, call.request.signal);
    if (reply.kind === 'gone') return empty(call, 410, 'Gone');
    if (reply.bytes.length === 0) return empty(call, 204, 'No Content');
    const headers = {
      ...commonHeaders(''),
      'content-type': 'application/octet-stream',
      'content-length': String(reply.bytes.length),
      'cache-control': 'no-store',
    };
    return { status: 200, statusText: 'OK', headers, body: reply.bytes as Uint8Array<ArrayBuffer> };
  } finally {
    held.set(cluster, held.get(cluster)! - 1);
  }
};

function commitsRequest(call: Call): CommitsRequest {
  const numberOf = (name: string): number => {
    const text = queryOf(call, name) ?? '';
    return /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  };
  return checkCommitsRequest({
    logId: queryOf(call, 'log'),
    from: numberOf('from'),
    instanceId: queryOf(call, 'instance'),
    waitMs: numberOf('waitMs'),
  });
}

/** The paths of the members. */
export const CLUSTER_ROUTES = area({ tag: 'Cluster', feature: 'cluster' }, [
  {
    path: '/cluster/gossip',
    methods: 'POST, OPTIONS',
    operations: { POST: operation('members', 'here', gossip, CLUSTER_DOCS.gossip) },
  },
  {
    path: '/cluster/commits',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('members', 'here', commits, CLUSTER_DOCS.commits) },
  },
  {
    path: '/cluster/lead',
    methods: 'POST, OPTIONS',
    operations: { POST: operation('members', 'here', lead, CLUSTER_DOCS.lead) },
  },
  {
    path: WRITES_PATH,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('members', 'here', append, CLUSTER_DOCS.append) },
  },
]);
