import { timestampText } from '../core/time.ts';
import type { App, Handler } from './context.ts';
import { ADMIN_KINDS, negotiate } from './negotiate.ts';
import type { GossipMember, NodeControl } from './node-control.ts';
import { ASK_AGAIN, nodeOf } from './node-of.ts';
import { document } from './reply.ts';

/** GET `/gossip` (http-api.md section 4.4): the members of the cluster as this node knows them. */
export const gossip: Handler = (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const node = nodeOf(call, app);
  const member = node.member();
  const view = { members: [memberView(node, member, app)], serverIp: member.host, serverPort: member.port };
  const text = chosen.kind === 'text' ? `${view.members.map(memberLine).join('\n')}\n` : JSON.stringify(view, null, 2);
  return document(call, text, chosen.contentType, ASK_AGAIN);
};

/** A member as it is sent; ports of protocols that we do not speak are 0. */
function memberView({ version }: NodeControl, member: GossipMember, app: App) {
  const nowMs = app.clock.nowMs();
  const wholeMs = Math.floor(nowMs);
  return {
    instanceId: member.instanceId,
    timeStamp: timestampText(wholeMs, Math.floor((nowMs - wholeMs) * 10_000)),
    state: member.state,
    isAlive: true,
    internalTcpIp: member.host,
    internalTcpPort: 0,
    internalSecureTcpPort: 0,
    externalTcpIp: member.host,
    externalTcpPort: 0,
    externalSecureTcpPort: 0,
    httpEndPointIp: member.host,
    httpEndPointPort: member.port,
    lastCommitPosition: member.lastCommitPosition,
    writerCheckpoint: member.writerCheckpoint,
    chaserCheckpoint: member.chaserCheckpoint,
    epochPosition: member.epochPosition,
    epochNumber: member.epochNumber,
    epochId: member.epochId,
    nodePriority: member.nodePriority,
    isReadOnlyReplica: false,
    esVersion: version,
  };
}

function memberLine(member: ReturnType<typeof memberView>): string {
  return `${member.instanceId} ${member.state} ${member.httpEndPointIp}:${member.httpEndPointPort} writer ${member.writerCheckpoint} chaser ${member.chaserCheckpoint} epoch ${member.epochNumber}@${member.epochPosition}:${member.epochId} priority ${member.nodePriority} at ${member.timeStamp}`;
}
