import type { MemberStore } from '../../core/cluster/replica/replica.ts';
import type { ClusterMember, Membership } from '../../core/cluster/api.ts';
import type { NodeState, StartUpWork } from '../../handlers/documents/node.ts';
import type { GossipMember } from '../../handlers/http/node-control.ts';
import { NO_EPOCH, SingleNode } from './control.ts';
import type { NodeControlParts } from './control.ts';

const LEADING: ReadonlySet<NodeState> = new Set(['Leader', 'ResigningLeader']);

/** A node that is a member of a cluster: its membership knows the leader and the other members. */
export class ClusterNode extends SingleNode {
  readonly #parts: NodeControlParts;
  readonly #startedMs = performance.now();
  #open: MemberStore | null = null;
  #membership: (Membership & { readonly refusal: Error | null }) | null = null;
  #isEnding = false;

  constructor(parts: NodeControlParts) {
    super(parts);
    this.#parts = parts;
  }

  joined(open: MemberStore, membership: Membership & { readonly refusal: Error | null }): void {
    this.opened(open, NO_EPOCH);
    this.#open = open;
    this.#membership = membership;
  }

  override stopping(): void {
    super.stopping();
    this.#isEnding = true;
  }

  override get state(): NodeState {
    return this.#isEnding ? 'ShuttingDown' : (this.#membership?.state ?? 'Initializing');
  }

  override member(): GossipMember {
    const { self } = this.#membership!;
    return this.#view({ ...self, state: this.state, isAlive: true, heardMs: Date.now() });
  }

  override members(): readonly GossipMember[] {
    const { instanceId } = this.#membership!.self;
    return this.#membership!.members().map((member) =>
      this.#view(member.instanceId === instanceId ? { ...member, state: this.state } : member),
    );
  }

  #view({
    instanceId,
    state,
    node,
    lastCommitPosition,
    writerCheckpoint,
    chaserCheckpoint,
    epoch,
    priority,
    isAlive,
    isReadOnlyReplica,
    version,
    heardMs,
    applied,
    scavengeId,
    bucketSilentMs,
  }: ClusterMember): GossipMember {
    const { position, number, id } = epoch ?? NO_EPOCH;
    return {
      // A client that looks for the leader must not find one that is gone.
      instanceId,
      state: isAlive || !LEADING.has(state) ? state : 'Unknown',
      host: node.address,
      port: node.port,
      isSecure: this.#parts.isSecure,
      lastCommitPosition,
      writerCheckpoint,
      chaserCheckpoint,
      epochPosition: position,
      epochNumber: number,
      epochId: id,
      nodePriority: priority,
      asMember: { isAlive, isReadOnlyReplica, version, heardMs, appliedCommit: applied, scavengeId, bucketSilentMs },
    };
  }

  /** A member whose copy can't take in what is committed, or that may not take part, is not ready either. */
  override startUpWork(): StartUpWork | null {
    const work = super.startUpWork();
    const open = this.#open;
    if (work !== null || open === null || (open.log.isCaughtUp && this.#membership!.refusal === null)) return work;
    const { bytes } = open.log.lag;
    const { end } = open.log;
    return {
      phase: open.log.trouble?.code ?? (this.#membership!.refusal === null ? 'catching-up' : 'refused'),
      bytesDone: end,
      bytesTotal: end + bytes,
      elapsedSeconds: (performance.now() - this.#startedMs) / 1_000,
      remainingSeconds: null,
    };
  }

  override setPriority(priority: number): Promise<void> {
    return this.#membership!.setPriority(priority);
  }
  override resign(): Promise<string> {
    return this.#membership!.resign();
  }
}
