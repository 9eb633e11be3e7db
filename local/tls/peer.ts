import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { domainToASCII } from 'node:url';
import { SYSTEM } from '../../core/base/principal.ts';
import type { Principal } from '../../core/security/api.ts';
import type { CertificateSet } from './certificate-set.ts';

const SERVER_AUTHENTICATION = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTHENTICATION = '1.3.6.1.5.5.7.3.2';

/** Callers proved by their connection. Judged once, so that a reload does not take away what a connection was given. */
const peers = new WeakMap<Socket, Principal>();

/**
 * Judges the certificate of a client when its handshake is done: another node is the system user. Returns why the
 * certificate proves nothing, or null when it does or there is none. `formerNames`: those of nodes before a change that
 * has not reached all of them yet.
 */
export function judgePeer(
  socket: TLSSocket,
  { reservedNodeCommonName, trustsNodes }: Pick<CertificateSet, 'reservedNodeCommonName' | 'trustsNodes'>,
  formerNames: readonly string[] = [],
): string | null {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return null;
  if (!trustsNodes) return 'no trusted roots are configured for node certificates (TrustedRootCertificatesPath)';
  const reason = socket.authorized
    ? nodeProblem(certificate, reservedNodeCommonName, formerNames)
    : `it was not verified (${String(socket.authorizationError)})`;
  if (reason === null) peers.set(socket, SYSTEM);
  return reason;
}

/** The caller whom the connection proves; null for none. */
export function peerOfSocket(socket: Socket): Principal | null {
  return peers.get(socket) ?? null;
}

/** The name in the certificate by which the client of a connection was verified; null without one. */
export function certificateOfSocket(socket: Socket): string | null {
  const { authorized, getPeerX509Certificate } = socket as Partial<TLSSocket>;
  const certificate = authorized === true ? getPeerX509Certificate?.call(socket) : undefined;
  return certificate === undefined ? null : (commonNameOf(certificate) ?? certificate.subjectAltName ?? null);
}

/** Why a certificate that chains to the roots is not one of a node. */
function nodeProblem(
  certificate: X509Certificate,
  reservedName: string | null,
  formerNames: readonly string[],
): string | null {
  const commonName = commonNameOf(certificate);
  if (
    commonName === null ||
    reservedName === null ||
    ![reservedName, ...formerNames].some((name) => matchesReservedName(commonName, name))
  ) {
    return `its common name ${commonName ?? '(none)'} does not match ${reservedName ?? '(none)'}`;
  }
  if (!namesAddress(certificate)) return 'it names no host or address';
  // Node.js calls the extended usages this. A user's certificate is for clients only.
  const usages = certificate.keyUsage as readonly string[] | undefined;
  if (usages !== undefined && !(usages.includes(SERVER_AUTHENTICATION) && usages.includes(CLIENT_AUTHENTICATION)))
    return 'its extended key usage is not that of a node';
  return null;
}

/** A wildcard stands for the first label of a name of at least this many. */
const WILDCARD_LABELS_MIN = 3;

/**
 * Whether a certificate's common name matches the reserved name of the nodes: label by label, in any case, where the
 * reserved name may have `*` as its first label.
 */
export function matchesReservedName(commonName: string, reservedName: string): boolean {
  if (isIP(commonName) !== 0 || isIP(reservedName) !== 0) return commonName === reservedName;
  const labels = asciiLabels(commonName);
  const reserved = asciiLabels(reservedName);
  if (labels.length !== reserved.length || labels.some((label) => label === '')) return false;
  const isWildcard = reserved[0] === '*' && reserved.length >= WILDCARD_LABELS_MIN;
  return reserved.every((label, i) => label === labels[i] || (i === 0 && isWildcard));
}

/** Internationalised labels are compared as they stand in the DNS. */
function asciiLabels(name: string): string[] {
  const lower = name.toLowerCase();
  // Only where it is needed: the conversion would also read numbers as addresses.
  if (/^[ -~]*$/.test(lower)) return lower.split('.');
  const prefix = lower.startsWith('*.') ? '*.' : '';
  const ascii = domainToASCII(lower.slice(prefix.length));
  return ascii === '' ? lower.split('.') : (prefix + ascii).split('.');
}

/** The common name of a certificate's subject; null without one, or where there are several and none is the name. */
export function commonNameOf(certificate: X509Certificate): string | null {
  const name: unknown = certificate.toLegacyObject().subject?.CN;
  return typeof name === 'string' && name !== '' ? name : null;
}

/** Whether the certificate names a host or an address, as those of nodes do. */
export function namesAddress(certificate: X509Certificate): boolean {
  // Values with a comma are quoted, and could hold what looks like another name.
  return /(?:^|, )(?:DNS|IP Address):./.test(withoutQuoted(certificate.subjectAltName ?? ''));
}

/**
 * The text without what stands between quotes, in which a backslash takes the next character with it. Behind a quote
 * without an end nothing counts.
 */
function withoutQuoted(text: string): string {
  let kept = '';
  let from = 0;
  for (let open = text.indexOf('"'); open >= 0; open = text.indexOf('"', from)) {
    let close = open + 1;
    while (close < text.length && text[close] !== '"') close += text[close] === '\\' ? 2 : 1;
    if (close >= text.length) return kept + text.slice(from, open);
    kept += `${text.slice(from, open)}""`;
    from = close + 1;
  }
  return kept + text.slice(from);
}
