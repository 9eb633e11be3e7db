import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** A wildcard stands for the first label of a name of at least this many. */
const WILDCARD_LABELS_MIN = 3;

/**
 * Whether a certificate's common name matches the reserved name of the nodes (options-and-security.md section 5.3): label
 * by label, in any case, where the reserved name may have `*` as its first label.
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
  const names = certificate.subjectAltName?.replace(/"(?:[^"\\]|\\.)*"/g, '""') ?? '';
  return /(?:^|, )(?:DNS|IP Address):./.test(names);
}
