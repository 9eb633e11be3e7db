import type { MemberDocument, NodeState } from '../../../../../handlers/documents/node.ts';

/** What a member is to its cluster, in words that one need not look up. */
export const ROLES: Readonly<Record<NodeState, string>> = {
  Initializing: 'Starting',
  CatchingUp: 'Catching up',
  Unknown: 'No leader',
  Follower: 'Follower',
  Leader: 'Leader',
  ResigningLeader: 'Resigning leader',
  ReadOnlyReplica: 'Read-only replica',
  ReadOnlyLeaderless: 'Replica, no leader',
  ShuttingDown: 'Shutting down',
  Shutdown: 'Shut down',
};

/** Those in which a member does all that it is there for. */
export const WELL: ReadonlySet<NodeState> = new Set(['Leader', 'Follower', 'ReadOnlyReplica']);

export function addressOf({ httpEndPointIp, httpEndPointPort }: MemberDocument): string {
  return `${httpEndPointIp}:${httpEndPointPort}`;
}
