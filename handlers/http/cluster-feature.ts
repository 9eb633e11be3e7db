import type { ClusterMember, HeldWrite, Writer } from '../../core/cluster/api.ts';
import type { SessionProof, Principal } from '../../core/security/api.ts';
import type { Authorize } from '../../core/streams/api.ts';

/** What a member needs to have requests decided by the one that leads (core/cluster/README.md, rules 12 and 13). */

/** The way of a request from the member that was asked to the one that leads. */
export interface Forwarder {
  /** Scheme under which the members serve clients. */
  readonly scheme: 'http' | 'https';
  /**
   * Sends a request and resolves with the answer, whatever its status: one of a client that is passed on, which says so
   * (`skua-forwarded`), or this member's own. Rejects with `member_unreachable` where it is certain that it did not
   * arrive, and with `member_silent` where that is not known; both say in their data as `reason` why: the member is
   * gone where that is `refused` or `broken`, and may only be slow or far where it is another. It waits at most
   * `timeoutMs` milliseconds, and no longer than the signal lets it.
   */
  send(
    leader: ClusterMember,
    request: RequestParts,
    timeoutMs: number,
    signal: AbortSignal | null,
  ): Promise<ReplyParts>;
}

export interface RequestParts {
  readonly method: string;
  /** Path and query as they arrived. */
  readonly target: string;
  /** By lower-cased name, those of the connection left out. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface ReplyParts {
  readonly status: number;
  readonly statusText: string;
  /** By lower-cased name, those of the connection left out. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer> | null;
}

/**
 * Keeps a request that another member has passed on from being decided once there is a newer epoch than the one in
 * which it was sent, and every write that has waited for too long from taking its position.
 */
export interface Fence {
  /**
   * Runs the handling of a request. Writes that it makes take their position in the log only while the passage is open,
   * later they reject with `not_leader`; and only while `held` lets them, later they reject with `write_expired`.
   * `epochNumber` is null for what is decided here whichever member leads.
   */
  run<T>(epochNumber: number | null, held: HeldWrite, work: (guard: EpochGuard) => T): T;
  /** The same for writes whose handling is no request of its own. */
  guard(epochNumber: number | null, held: HeldWrite): EpochGuard;
  /**
   * Runs the handling of a client's own request: what it writes while another member leads is written there, for this
   * writer, in its order, and only while the client waits for the answer.
   */
  own<T>(writer: () => Writer, isGone: () => boolean, work: () => T): T;
}

export interface EpochGuard {
  /** The epoch is the newest one in the log of this member, which wrote it. */
  readonly isOpen: boolean;
  /** Something was written, so that a later refusal does not mean that nothing happened. */
  readonly hasWritten: boolean;
  /**
   * For a write that is made later than in the handling of the request: lets it take its position while the passage is
   * open.
   */
  readonly authorize: Authorize;
}

/**
 * What a member says of a request that it passes on, in a header of its own beside the caller's: the leader can't see
 * it for itself. It counts only where the connection is a member's; from any other caller the header is ignored.
 */
export interface Forwarded {
  /** Number of the epoch in which it was sent. */
  readonly epoch: number;
  /**
   * When it had arrived as a whole, or earlier, by the wall clock of the member that it is sent to, as far as the
   * sender knows that clock; null, or left out, where it does not.
   */
  readonly atMs?: number | null;
  /** Beginning of links and of `Location`: they name the member that was asked. */
  readonly base: string;
  /** Where the client's request came from; null where that is not known. */
  readonly address: string | null;
  /** It was sent on the machine of the member that was asked. */
  readonly isLocal: boolean;
  /**
   * Whom the client's connection or its proxy has proved at the member that was asked; credentials in the request win.
   */
  readonly caller: Principal | null;
  /** The name in the client's certificate. */
  readonly certificate: string | null;
  /** The session of the page that the member has verified, and from where it came; null, or left out, for none. */
  readonly session?: SessionProof | null;
}
