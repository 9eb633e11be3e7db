import type { GossipDocument as Gossip, MemberDocument as Member } from '../../handlers/documents/node.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import { expectStatus } from '../cli/node-client.ts';
import type { NodeClient } from '../cli/node-client.ts';

/** What is shown of a member as GET `/gossip` answers it. Servers of the reference leave out the last three. */
export type MemberDocument = Pick<
  Member,
  | 'instanceId'
  | 'state'
  | 'isAlive'
  | 'httpEndPointIp'
  | 'httpEndPointPort'
  | 'lastCommitPosition'
  | 'writerCheckpoint'
  | 'epochNumber'
  | 'nodePriority'
  | 'isReadOnlyReplica'
  | 'esVersion'
  | 'appliedCommit'
  | 'scavengeId'
  | 'bucketSilentMs'
>;

/** What one member knows of all. */
export interface GossipDocument extends Omit<Gossip, 'members'> {
  readonly members: readonly MemberDocument[];
}

/** Asks a node for the members that it knows. */
export async function readGossip(node: NodeClient): Promise<GossipDocument> {
  const text = await expectStatus(
    await node.call('GET', '/gossip', { headers: { accept: 'application/json' } }),
    [200],
    'asked for the members',
  );
  const found = JSON.parse(text) as Partial<GossipDocument>;
  if (!Array.isArray(found.members))
    throw new CommandError(
      'unexpected_answer',
      `${node.base} does not report cluster members: check that it is a Skua node.`,
      EXIT.failed,
    );
  return found as GossipDocument;
}

export function addressOf({ httpEndPointIp: host, httpEndPointPort: port }: MemberDocument): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** How a member stands among the others. */
export interface MemberStatus {
  readonly address: string;
  readonly state: string;
  readonly isAlive: boolean;
  readonly priority: number;
  readonly epoch: number;
  readonly end: number;
  /** Behind the furthest member that is known; null for commits where the member does not count them. */
  readonly lagBytes: number;
  readonly lagCommits: number | null;
  readonly scavengeId: string | null;
  /** Milliseconds; 0 while the bucket answers it. */
  readonly bucketSilentMs: number;
  readonly version: string;
}

export interface ClusterStatus {
  /** The member that was asked. */
  readonly askedNode: string;
  /** Null where no member says that it leads. */
  readonly leader: string | null;
  readonly epoch: number;
  readonly members: readonly MemberStatus[];
}

export function statusOf({ members, serverIp, serverPort }: GossipDocument): ClusterStatus {
  const end = Math.max(-1, ...members.map(({ writerCheckpoint }) => writerCheckpoint));
  const applied = Math.max(-1, ...members.map(({ appliedCommit = -1 }) => appliedCommit));
  const rows = members.map((member): MemberStatus => ({
    address: addressOf(member),
    state: member.state,
    isAlive: member.isAlive,
    priority: member.nodePriority,
    epoch: member.epochNumber,
    end: member.writerCheckpoint,
    lagBytes: end - member.writerCheckpoint,
    lagCommits: member.appliedCommit === undefined ? null : applied - member.appliedCommit,
    scavengeId: member.scavengeId ?? null,
    bucketSilentMs: member.bucketSilentMs ?? 0,
    version: member.esVersion,
  }));
  // Two may say so for a moment; the later epoch is the one that counts.
  const leaders = rows
    .filter(({ state, isAlive }) => isAlive && (state === 'Leader' || state === 'ResigningLeader'))
    .toSorted((a, b) => b.epoch - a.epoch);
  return {
    askedNode: `${serverIp.includes(':') ? `[${serverIp}]` : serverIp}:${serverPort}`,
    leader: leaders[0]?.address ?? null,
    epoch: Math.max(-1, ...rows.map(({ epoch }) => epoch)),
    members: rows.toSorted((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : 0)),
  };
}

/** Whether a member leads and every member that is known is alive and serves. */
export function isWhole({ leader, members }: ClusterStatus): boolean {
  return leader !== null && members.every(({ isAlive, state }) => isAlive && SERVING.has(state));
}

const SERVING: ReadonlySet<string> = new Set(['Leader', 'ResigningLeader', 'Follower', 'ReadOnlyReplica']);
