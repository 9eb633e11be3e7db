import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import { checkTls, tlsModeOf } from '../config/check-config.ts';
import type { Config } from '../config/config.ts';
import { daysLeft } from './certificate-set.ts';
import type { CertificateSet } from './certificate-set.ts';
import type { DevCertificate } from './dev-certificate.ts';

/** How a node protects its connections. */
export type NodeCertificates =
  | { readonly mode: 'off' }
  | { readonly mode: 'dev'; readonly set: CertificateSet; readonly fingerprint: string }
  | { readonly mode: 'certificates'; readonly set: CertificateSet };

/**
 * Loads, or makes, the certificates that the options ask for. `shared`: the development certificate of nodes that have
 * one together. Errors: a ConfigError where none are named, `certificate_invalid`.
 */
export async function nodeCertificates(
  config: Config,
  clock: Clock,
  log: Log,
  shared: ((nowMs: number) => Promise<DevCertificate>) | null = null,
): Promise<NodeCertificates> {
  const mode = tlsModeOf(config.values);
  if (mode === 'off') return { mode };
  // Loaded only where there is TLS: parsing certificates takes packages.
  if (mode === 'dev') {
    const make = shared ?? (await import('./dev-certificate.ts')).devCertificate;
    const { set, fingerprint } = await make(clock.nowMs(), config.values.DevCertPath);
    log.info('a development certificate is in use: trust it on this machine only', { fingerprint });
    return { mode, set, fingerprint };
  }
  checkTls(config);
  const { isSystemStore, loadConfigured } = await import('./load-certificates.ts');
  const set = await loadConfigured(config.values, clock.nowMs());
  for (const { kind, subject, serial, thumbprint, notAfter } of set.loaded.slice(0, LOGGED_MAX))
    log.info('certificate loaded', { kind, subject, serial, thumbprint, notAfter });
  const named = config.values.TrustedRootCertificatesPath;
  if (named !== null && (await isSystemStore(named))) {
    log.warn(
      "TrustedRootCertificatesPath trusts the system's certificate authorities: anyone who gets a certificate with the name of the nodes from one of them can do anything",
      { path: named, name: set.reservedNodeCommonName },
    );
  }
  return { mode, set };
}

/** Trusted roots can be many. */
const LOGGED_MAX = 20;

const DAY_MS = 86_400_000;

interface ExpiryOptions {
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
    const todo = set.isMadeAtStart ? 'start the node again, which makes a new one' : 'replace it and reload';
    if (days <= 0) log.error(`the certificate of the node has expired: ${todo}`, fields);
    else if (days < set.remindDays)
      log.warn(`the certificate of the node expires in ${days.toFixed(1)} days: ${todo}`, fields);
    await clock.sleep(DAY_MS, signal);
  }
}
