import { Anchoring } from '../../core/integrity/anchoring/anchoring.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { systemClock } from '../../infra/system-clock.ts';
import type { Disposables } from '../../infra/disposables.ts';
import type { Values } from '../../infra/runtime/config/options.ts';
import type { Collector } from '../metrics/metrics.ts';
import { openAnchorLocation } from '../../infra/anchors/anchor-locations.ts';

interface HashChainWorld {
  readonly values: Values;
  readonly open: DirectoryStore;
  /** What is opened is closed with it. */
  readonly opened: Disposables;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * The proof of a node that nothing was changed, and, where the options name a place for anchors, what brings them
 * there. Throws `bad_option`.
 */
export async function openProof({
  values,
  open,
  opened,
  log,
  meter,
}: HashChainWorld): Promise<{ readonly metrics: Collector; run?(signal: AbortSignal): Promise<void> }> {
  const place = values['Proof:Anchor'];
  if (place === null) return { metrics: proofMetrics(open, null) };
  const anchoring = new Anchoring({
    hashChain: () => open.hashChain,
    isScavenging: () => open.scavenger.current() !== null,
    everyMs: values['Proof:AnchorEveryMin'] * 60_000,
    clock: systemClock,
    log,
    meter,
    place: await openAnchorLocation({
      place,
      lockDays: values['Proof:LockDays'],
      s3: { endpoint: values['Proof:S3Endpoint'], region: values['Proof:S3Region'] },
    }),
  });
  opened.defer(() => anchoring.close());
  return { metrics: proofMetrics(open, anchoring), run: (signal) => anchoring.run(signal) };
}

/** How far the chain of hashes is, and its newest anchor. */
function proofMetrics(open: DirectoryStore, anchoring: Anchoring | null): Collector {
  return (metrics) => {
    const chain = open.hashChain;
    if (chain === null) return;
    metrics.gauge('eventstore_proof_chunks', chain.figures.chunks);
    metrics.gauge('eventstore_proof_receipts', chain.figures.receipts);
    metrics.gauge('eventstore_proof_damaged', chain.damage === null ? 0 : 1);
    const { position = null, ageMs = null } = anchoring?.figures() ?? {};
    if (position !== null) metrics.gauge('eventstore_proof_anchored_position', position);
    if (ageMs !== null) metrics.gauge('eventstore_proof_anchor_age_seconds', ageMs / 1_000);
  };
}
