import { SYSTEM } from '../../core/base/principal.ts';
import type { Principal } from '../../core/security/api.ts';
import { notAMember } from '../http/authorization.ts';
import type { App, Call } from '../http/context.ts';

const SCHEME = 'Cluster ';
/** Longest header that is looked at, in characters. */
const LENGTH_MAX = 8_192;

/**
 * The system user for a member that speaks for itself and proves it by the secret that all share
 * (core/cluster/README.md, rule 14); null for credentials of another kind, where there is no secret, and for another
 * one of a member whose certificate proves it, since members are given a new secret one after the other. Errors:
 * `not_a_member` for a wrong secret.
 */
export function memberBySecret(
  authorization: string,
  { request }: Call,
  { features: { cluster }, server }: App,
): Principal | null {
  if (cluster?.isSecret == null || !authorization.startsWith(SCHEME)) return null;
  if (authorization.length <= LENGTH_MAX && cluster.isSecret(authorization.slice(SCHEME.length))) return SYSTEM;
  if ((server.peerOf?.(request) ?? null) !== null) return null;
  throw notAMember('The secret in the Authorization header is not the ClusterSecret of this cluster.');
}
