import { checkCommitsRequest, checkGossip, checkLeadRequest } from '../../core/cluster/membership/check.ts';
import { MEMBER_APPEND_BODY_BYTES_MAX, readMemberAppend } from '../../core/cluster/member-append.ts';
import { SkuaError } from '../../core/errors.ts';
import type { CommitsRequest } from '../../core/ports/peers.ts';
import { readJson } from '../http/body.ts';
import { goneOf, queryOf } from '../http/context.ts';
import type { Call, ClusterFeature, Handler } from '../http/context.ts';
import { clusterOf } from '../http/presence.ts';
import { commonHeaders, empty, jsonReply } from '../http/reply.ts';
import { operation } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { CLUSTER_DOCS } from '../openapi/cluster.ts';

/** What the members of a cluster ask of each other (core/ports/peers.ts). Nobody else may, and none of it is for anybody else. */

/** Bytes of a gossip as JSON: an entry has less than 1 KiB unless its address is as long as addresses get. */
const GOSSIP_BYTES_MAX = 262_144;
const LEAD_BYTES_MAX = 4_096;
/** Answers with commits that are under way or held at a time: a member has one open, and forgets some when its connection breaks. */
export const COMMITS_HELD_MAX = 100;

/** POST `/cluster/gossip`: what the sender knows, for what this member knows. */
const gossip: Handler = async (call, app) => {
  const { membership } = clusterOf(call, app);
  return jsonReply(call, await membership.onGossip(checkGossip(await readJson(call, app, GOSSIP_BYTES_MAX))));
};

/** POST `/cluster/lead`: answered when the epoch is committed. */
const lead: Handler = async (call, app) => {
  const { membership } = clusterOf(call, app);
  return jsonReply(call, await membership.onLead(checkLeadRequest(await readJson(call, app, LEAD_BYTES_MAX))));
};

/** POST `/cluster/append`: what a member writes for itself, as the system user; the leader decides it. */
const append: Handler = async (call, app) => {
  const { membership, fence, patience } = clusterOf(call, app);
  const { stream, expectedVersion, events, atMs } = readMemberAppend(await readJson(call, app, Math.min(MEMBER_APPEND_BODY_BYTES_MAX, app.options.bodyBytesMax)));
  if (!membership.isLeader) throw new SkuaError('not_leader', 'This member does not lead. Ask the member that leads now.');
  return jsonReply(call, await fence.run(null, patience.beginPassedOn(atMs, goneOf(call, app)), () => app.store.append(stream, expectedVersion, events)));
};

const held = new WeakMap<ClusterFeature, number>();

/** GET `/cluster/commits`: commits one behind the other; 204 when none came in time, 410 where they are not at hand or the member does not lead. */
const commits: Handler = async (call, app) => {
  const cluster = clusterOf(call, app);
  const request = commitsRequest(call);
  const count = held.get(cluster) ?? 0;
  if (count >= COMMITS_HELD_MAX) throw new SkuaError('too_busy', `${count} members are fed from here already. Read the commits from the bucket.`);
  held.set(cluster, count + 1);
  try {
    const reply = await cluster.membership.onCommits(request, call.request.signal);
    if (reply.kind === 'gone') return empty(call, 410, 'Gone');
    if (reply.bytes.length === 0) return empty(call, 204, 'No Content');
    const headers = { ...commonHeaders(''), 'content-type': 'application/octet-stream', 'content-length': String(reply.bytes.length), 'cache-control': 'no-store' };
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
  return checkCommitsRequest({ logId: queryOf(call, 'log'), from: numberOf('from'), instanceId: queryOf(call, 'instance'), waitMs: numberOf('waitMs') });
}

/** GET `/cluster/frames`: nothing but that the caller is a member. A server that knows the protocol gives it the connection then (local/http/frames.ts). */
const frames: Handler = (call) => empty(call, 204, 'No Content');

/** The paths of the members. */
export const CLUSTER_ROUTES: readonly Route[] = [
  { path: '/cluster/gossip', methods: 'POST, OPTIONS', operations: { POST: operation('members', 'here', gossip, CLUSTER_DOCS.gossip) } },
  { path: '/cluster/commits', methods: 'GET, OPTIONS', operations: { GET: operation('members', 'here', commits, CLUSTER_DOCS.commits) } },
  { path: '/cluster/frames', methods: 'GET, OPTIONS', operations: { GET: operation('members', 'here', frames, CLUSTER_DOCS.frames) } },
  { path: '/cluster/lead', methods: 'POST, OPTIONS', operations: { POST: operation('members', 'here', lead, CLUSTER_DOCS.lead) } },
  { path: '/cluster/append', methods: 'POST, OPTIONS', operations: { POST: operation('members', 'here', append, CLUSTER_DOCS.append) } },
];
