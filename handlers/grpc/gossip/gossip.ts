import { SkuaError } from '../../../core/base/errors.ts';
import { membersFor } from '../../http/asked-host.ts';
import type { App, Call } from '../../http/context.ts';
import type { GossipMember, NodeControl } from '../../http/node-control.ts';
import { unary } from '../call.ts';
import type { GrpcService } from '../call.ts';
import { GossipService, MemberInfoVNodeState as VNodeState } from '../messages/gossip.ts';
import type { ClusterInfo, MemberInfo } from '../messages/gossip.ts';

/**
 * The members that this node knows, by which clients choose the one to speak with. Null where there is no node around
 * the handlers.
 */
export function gossip({ node }: App): GrpcService | null {
  if (node === null) return null;
  return {
    name: GossipService.name,
    methods: [
      unary(GossipService.methods.Read, { place: 'node', access: 'gossip' }, (_, { call, app }) =>
        clusterInfo(node, call, app),
      ),
    ],
  };
}

function clusterInfo(node: NodeControl, call: Call, app: App): ClusterInfo {
  // While it starts it can't be used, whatever it will be: the client asks another member.
  if (node.startUpWork() !== null)
    throw new SkuaError('not_ready', 'The node is starting. Ask another member, or this one again in a moment.');
  const nowMs = app.world.clock.nowMs();
  return { members: membersFor(call, app, node.members()).map((member) => memberInfo(member, nowMs)) };
}

function memberInfo({ instanceId, state, host, port, asMember }: GossipMember, nowMs: number): MemberInfo {
  const heardMs = asMember?.heardMs ?? nowMs;
  const wholeMs = Math.floor(heardMs);
  return {
    instanceId: { text: instanceId, isStructured: true },
    timeStamp: BigInt(wholeMs) * 10_000n + BigInt(Math.floor((heardMs - wholeMs) * 10_000)),
    state: VNodeState[state],
    isAlive: asMember?.isAlive ?? true,
    httpEndPoint: { address: host, port },
  };
}

/**
 * What members of the reference database send each other. Ours do so over HTTP (`/cluster/gossip`), so that no caller
 * may use this service; its name is known lest a client that is pointed at it takes the node for an older one.
 */
export const clusterGossip: GrpcService = {
  name: 'event_store.cluster.Gossip',
  methods: [
    {
      path: '/event_store.cluster.Gossip/Read',
      place: 'node',
      access: 'anyone',
      isUnary: true,
      run() {
        throw new SkuaError('access_denied', 'Only members of a cluster may do this.');
      },
    },
  ],
};
