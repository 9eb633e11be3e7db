import { SYSTEM } from '../../core/security/principal.ts';
import type { Principal } from '../../core/security/principal.ts';
import { notAMember } from '../http/authorization.ts';
import type { App } from '../http/context.ts';

const SCHEME = 'Cluster ';
/** Longest header that is looked at, in characters. */
const LENGTH_MAX = 8_192;

/**
 * The system user for a member that speaks for itself and proves it by the secret that all share (ARCHITECTURE.md, "The cluster", 14;
 * options-and-security.md section 4); null for credentials of another kind, and where there is no secret: with TLS a certificate proves a member, and
 * nothing else does. Errors: `not_a_member` for a wrong secret.
 */
export function memberBySecret(authorization: string, { features: { cluster } }: App): Principal | null {
  if (cluster?.isSecret == null || !authorization.startsWith(SCHEME)) return null;
  if (authorization.length > LENGTH_MAX || !cluster.isSecret(authorization.slice(SCHEME.length))) throw notAMember('The secret in the Authorization header is not that of this cluster.');
  return SYSTEM;
}
