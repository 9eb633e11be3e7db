import type { Clock } from '../../ports/clock.ts';
import { nodeKey } from '../../ports/nodes.ts';
import type { GossipEntry, Peers } from '../../ports/peers.ts';
import type { MemberLog } from '../api.ts';

/** How long one member may take to commit an epoch, before the next one is asked. */
const ASK_MS = 2_000;
/**
 * For so long this member begins no commit while another one is asked: under load its own would take number after
 * number, and the epoch would lose to it again and again.
 */
const HOLD_MS = 200;

export interface ResignParts {
  readonly copy: MemberLog;
  readonly peers: Peers;
  readonly clock: Clock;
  /** Members that can lead, the best one first. */
  readonly candidates: readonly GossipEntry[];
  /** As in `Membership`. */
  readonly newerEpoch: (than: number, signal: AbortSignal) => Promise<boolean>;
}

export type ResignOutcome =
  /** A newer epoch is in the copy. */
  | { readonly kind: 'given' }
  /** No member took the lead in time; `why` says for each that was asked what came of it. */
  | { readonly kind: 'kept'; readonly why: string };

/**
 * Asks one member after the other to commit the next epoch (rule 10). The lead is given away when that epoch is met in
 * the log, and not before: until then whatever is sent to this member is decided by it, so no caller is without a
 * leader for a moment. While another one commits the epoch what is sent here waits, for HOLD_MS at most.
 */
export async function giveLeadAway(parts: ResignParts, waitMs: number): Promise<ResignOutcome> {
  const { copy, peers, clock, candidates, newerEpoch } = parts;
  const epochNumber = copy.epoch?.number ?? -1;
  const untilMs = clock.monotonicMs() + waitMs;
  const ending = new AbortController();
  const limit = clock.sleep(waitMs, ending.signal).then(() => {
    ending.abort();
  });
  const newer = newerEpoch(epochNumber, ending.signal);
  const reasons: string[] = [];
  let release = (): void => {};
  try {
    for (const { node } of candidates) {
      release = await hold(copy, clock);
      const leftMs = untilMs - clock.monotonicMs();
      if (leftMs <= 0) break;
      const asked = peers.lead(node, { logId: copy.logId, epochNumber }, Math.min(leftMs, ASK_MS)).then(
        () => null,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      const reason = await Promise.race([asked, newer.then(() => null)]);
      if (reason === null) {
        // It is in the bucket; here it comes with the next commit, or with this question.
        void (async () => copy.refresh())().catch(() => {});
        if (await newer) return { kind: 'given' };
      }
      release();
      reasons.push(`${nodeKey(node)}: ${reason ?? 'it committed no epoch in time'}`);
    }
    return (copy.epoch?.number ?? -1) > epochNumber
      ? { kind: 'given' }
      : { kind: 'kept', why: reasons.length === 0 ? 'no other member has caught up' : reasons.join('; ') };
  } finally {
    release();
    ending.abort();
    await limit;
  }
}

/** Holds the commits of this member; resolves when none is under way any more, or the time is over. */
async function hold(copy: MemberLog, clock: Clock): Promise<() => void> {
  const holding = new AbortController();
  const release = (): void => {
    holding.abort();
  };
  const over = clock.sleep(HOLD_MS, holding.signal).then(release);
  // A copy that is being opened again commits nothing anyway.
  await Promise.race([copy.hold(holding.signal).catch(() => {}), over]);
  return release;
}
