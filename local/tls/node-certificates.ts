import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import { checkTls } from '../config/check-start.ts';
import { tlsModeOf } from '../config/check-config.ts';
import type { Config } from '../config/config.ts';
import type { CertificateSet } from './certificate-set.ts';

/** How a node protects its connections. */
export type NodeCertificates =
  | { readonly mode: 'off' }
  | { readonly mode: 'dev'; readonly set: CertificateSet; readonly fingerprint: string }
  | { readonly mode: 'certificates'; readonly set: CertificateSet };

/** Loads, or makes, the certificates that the options ask for. Errors: a ConfigError where none are named, `certificate_invalid`. */
export async function nodeCertificates(config: Config, clock: Clock, log: Log): Promise<NodeCertificates> {
  const mode = tlsModeOf(config.values);
  if (mode === 'off') return { mode };
  // Loaded only where there is TLS: parsing certificates takes packages.
  if (mode === 'dev') {
    const { devCertificate } = await import('./dev-certificate.ts');
    const { set, fingerprint } = await devCertificate(clock.nowMs(), config.values.DevCertPath);
    log.info('a development certificate is in use: trust it on this machine only', { fingerprint });
    return { mode, set, fingerprint };
  }
  checkTls(config);
  const { loadConfigured } = await import('./load-certificates.ts');
  const set = await loadConfigured(config.values, clock.nowMs());
  for (const { kind, subject, serial, thumbprint, notAfter } of set.loaded.slice(0, LOGGED_MAX)) log.info('certificate loaded', { kind, subject, serial, thumbprint, notAfter });
  return { mode, set };
}

/** Trusted roots can be many. */
const LOGGED_MAX = 20;
