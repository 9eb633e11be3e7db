import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import type { CertificateSet } from './certificate-set.ts';
import { daysLeft } from './certificate-set.ts';

const DAY_MS = 86_400_000;
/** From this many days before the end on, an operator is reminded. */
const WARN_DAYS = 30;

export interface ExpiryOptions {
  /** The certificates in force. */
  readonly certificates: () => CertificateSet;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Warns at the start and daily while the node's certificate is about to expire, until the signal aborts. */
export async function watchExpiry({ certificates, clock, log, signal }: ExpiryOptions): Promise<void> {
  while (!signal.aborted) {
    const set = certificates();
    const days = daysLeft(set, clock.nowMs());
    const fields = { subject: set.loaded[0]!.subject, notAfter: set.loaded[0]!.notAfter };
    if (days <= 0) log.error('the certificate of the node has expired: put a new one in its place and reload', fields);
    else if (days < WARN_DAYS) log.warn(`the certificate of the node expires in ${days.toFixed(1)} days: put a new one in its place and reload`, fields);
    await clock.sleep(DAY_MS, signal);
  }
}
