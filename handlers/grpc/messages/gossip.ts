// Made of gossip.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Uuid, Writer } from './wire.ts';

export interface ClusterInfo {
  readonly members: readonly MemberInfo[];
}

export function writeClusterInfo(message: ClusterInfo, writer: Writer): void {
  for (const one of message.members) { writer.uint32(10).fork(); writeMemberInfo(one, writer); writer.ldelim(); }
}

export interface EndPoint {
  readonly address: string;
  readonly port: number;
}

export function writeEndPoint(message: EndPoint, writer: Writer): void {
  if (message.address !== '') { writer.uint32(10).string(message.address); }
  if (message.port !== 0) { writer.uint32(16).uint32(message.port); }
}

export interface MemberInfo {
  readonly instanceId?: Uuid | undefined;
  readonly timeStamp: number | bigint;
  readonly state: number;
  readonly isAlive: boolean;
  readonly httpEndPoint?: EndPoint | undefined;
}

export function writeMemberInfo(message: MemberInfo, writer: Writer): void {
  if (message.instanceId !== undefined) { writer.uint32(10).fork(); wire.writeUuid(message.instanceId, writer); writer.ldelim(); }
  if (Number(message.timeStamp) !== 0) { writer.uint32(16); wire.writeInt64(writer, message.timeStamp); }
  if (message.state !== 0) { writer.uint32(24).int32(message.state); }
  if (message.isAlive !== false) { writer.uint32(32).bool(message.isAlive); }
  if (message.httpEndPoint !== undefined) { writer.uint32(42).fork(); writeEndPoint(message.httpEndPoint, writer); writer.ldelim(); }
}

export const MemberInfoVNodeState = { Initializing: 0, DiscoverLeader: 1, Unknown: 2, PreReplica: 3, CatchingUp: 4, Clone: 5, Follower: 6, PreLeader: 7, Leader: 8, Manager: 9, ShuttingDown: 10, Shutdown: 11, ReadOnlyLeaderless: 12, PreReadOnlyReplica: 13, ReadOnlyReplica: 14, ResigningLeader: 15 } as const;

/** `event_store.client.gossip.Gossip` */
export const GossipService = {
  name: 'event_store.client.gossip.Gossip',
  methods: {
    Read: { path: '/event_store.client.gossip.Gossip/Read', hasManyRequests: false, hasManyResponses: false, readRequest: wire.readNothing, writeResponse: writeClusterInfo },
  },
} as const;
