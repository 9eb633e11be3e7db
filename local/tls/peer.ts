import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { SYSTEM } from '../../core/security/principal.ts';
import type { Principal } from '../../core/security/principal.ts';
import { commonNameOf, matchesReservedName, namesAddress } from './common-name.ts';

const SERVER_AUTHENTICATION = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTHENTICATION = '1.3.6.1.5.5.7.3.2';

/** Callers proved by their connection. Judged once, so that a reload does not take away what a connection was given. */
const peers = new WeakMap<Socket, Principal>();

/**
 * Judges the certificate of a client when its handshake is done (options-and-security.md section 5.4): another node is the
 * system user. Returns why the certificate proves nothing, or null when it does or there is none.
 */
export function judgePeer(socket: TLSSocket, reservedName: string | null): string | null {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return null;
  const reason = socket.authorized ? nodeProblem(certificate, reservedName) : `it was not verified (${String(socket.authorizationError)})`;
  if (reason === null) peers.set(socket, SYSTEM);
  return reason;
}

/** The caller whom the connection proves; null for none. */
export function peerOfSocket(socket: Socket): Principal | null {
  return peers.get(socket) ?? null;
}

/** Why a certificate that chains to the roots is not one of a node. */
function nodeProblem(certificate: X509Certificate, reservedName: string | null): string | null {
  const commonName = commonNameOf(certificate);
  if (commonName === null || reservedName === null || !matchesReservedName(commonName, reservedName)) {
    return `its common name ${commonName ?? '(none)'} does not match ${reservedName ?? '(none)'}`;
  }
  if (!namesAddress(certificate)) return 'it names neither a host nor an address';
  // Node.js calls the extended usages this. A user's certificate is for clients only.
  const usages = certificate.keyUsage as readonly string[] | undefined;
  if (usages !== undefined && !(usages.includes(SERVER_AUTHENTICATION) && usages.includes(CLIENT_AUTHENTICATION))) return 'its extended key usages are not those of a node';
  return null;
}
