import { constants } from 'node:crypto';
import type { X509Certificate } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import { SkuaError } from '../../core/base/errors.ts';
import type { LoadedCertificate } from '../../handlers/documents/node.ts';

const DAY_MS = 86_400_000;

/** Certificates that were verified together, ready to be used for connections. */
export interface CertificateSet {
  /**
   * The node's certificate with its intermediates and key, and the roots by which those of clients are verified. Holds
   * secrets: never log it.
   */
  readonly secureContext: KeyMaterial & { readonly ca: readonly string[] };
  /**
   * Common name by which certificates of other nodes are known: as configured, else the node's own; null where it has
   * none.
   */
  readonly reservedNodeCommonName: string | null;
  /**
   * Whether roots were named by which clients can prove to be nodes. The authorities that a system trusts anyway give
   * certificates to everybody.
   */
  readonly trustsNodes: boolean;
  /** The node's certificate first, then intermediates, then roots. */
  readonly loaded: readonly LoadedCertificate[];
  /** When the node's certificate expires; UTC milliseconds. */
  readonly notAfterMs: number;
  /** From so many days before that on, an operator is reminded. */
  readonly remindDays: number;
  /** The node makes itself another one when it starts then. */
  readonly isMadeAtStart: boolean;
}

/**
 * Of a certificate that is valid for three months or more; of one that is renewed more often the last third of its
 * time.
 */
const REMIND_DAYS_MAX = 30;
const REMIND_SHARE = 1 / 3;

/** PEM texts, or a PKCS#12 file as it is. */
export type KeyMaterial =
  | { readonly cert: string; readonly key: string }
  | { readonly pfx: Buffer; readonly passphrase?: string };

/** A certificate and the file that it came from. */
export interface HeldCertificate {
  readonly certificate: X509Certificate;
  readonly file: string;
}

interface CertificateParts {
  readonly material: KeyMaterial;
  readonly node: HeldCertificate;
  readonly intermediates: readonly HeldCertificate[];
  readonly roots: readonly HeldCertificate[];
  readonly trustsNodes: boolean;
  readonly reservedNodeCommonName: string | null;
  readonly nowMs: number;
  /** Of a certificate that the node has made: within how many days of its end it makes another one. */
  readonly madeAnewDays?: number;
}

export function certificateSet({
  material,
  node,
  intermediates,
  roots,
  trustsNodes,
  reservedNodeCommonName,
  nowMs,
  madeAnewDays,
}: CertificateParts): CertificateSet {
  const { validFromDate, validToDate } = node.certificate;
  return {
    secureContext: { ...material, ca: trustsNodes ? roots.map(({ certificate }) => certificate.toString()) : [] },
    reservedNodeCommonName,
    trustsNodes,
    loaded: [
      describe('node', node.certificate, nowMs),
      ...intermediates.map(({ certificate }) => describe('intermediate', certificate, nowMs)),
      ...roots.map(({ certificate }) => describe('root', certificate, nowMs)),
    ],
    notAfterMs: validToDate.getTime(),
    remindDays:
      madeAnewDays ??
      Math.min(REMIND_DAYS_MAX, ((validToDate.getTime() - validFromDate.getTime()) * REMIND_SHARE) / DAY_MS),
    isMadeAtStart: madeAnewDays !== undefined,
  };
}

function describe(kind: LoadedCertificate['kind'], certificate: X509Certificate, nowMs: number): LoadedCertificate {
  const notAfter = certificate.validToDate;
  return {
    kind,
    subject: subjectText(certificate),
    serial: certificate.serialNumber,
    thumbprint: certificate.fingerprint.replaceAll(':', ''),
    notAfter: notAfter.toISOString(),
    daysLeft: Math.floor((notAfter.getTime() - nowMs) / DAY_MS),
  };
}

/** The subject on one line. */
export function subjectText(certificate: X509Certificate): string {
  return (certificate.subject ?? '').split('\n').join(', ');
}

/** Days until the node's certificate expires; negative when it has. */
export function daysLeft(set: CertificateSet, nowMs: number): number {
  return (set.notAfterMs - nowMs) / DAY_MS;
}

/** Whether both sets hold the same certificates and accept the same nodes. */
export function isSameSet(a: CertificateSet, b: CertificateSet): boolean {
  return identityOf(a) === identityOf(b);
}

/**
 * TLS 1.3 has no others. Of TLS 1.2 those whose keys are gone when a connection ends (ECDHE), and that notice each
 * changed byte (AEAD): neither RSA key exchange nor CBC.
 */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/**
 * The options of a TLS server. Each use of them has ticket keys of its own, so a session from before a reload is not
 * resumed: its client sees the new certificate, and is checked by the new roots.
 */
export function serverContext({ secureContext }: CertificateSet): SecureContextOptions {
  return {
    ...secureContext,
    ca: [...secureContext.ca],
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}

function identityOf({ loaded, reservedNodeCommonName, trustsNodes }: CertificateSet): string {
  return JSON.stringify([
    reservedNodeCommonName,
    trustsNodes,
    ...loaded.map(({ kind, thumbprint }) => `${kind} ${thumbprint}`),
  ]);
}

/** What is wrong with one file. */
export interface Problem {
  readonly file: string;
  readonly reason: string;
}

/** One error for all that is wrong; its data holds the first problem as `file` and `reason`, and all as `problems`. */
export function certificateInvalid(problems: readonly Problem[]): SkuaError {
  const [first] = problems;
  const message = problems.map(({ file, reason }) => `${file}: ${reason}`).join(' ');
  return new SkuaError('certificate_invalid', message, { file: first!.file, reason: first!.reason, problems });
}

/** Ends a step whose failure leaves nothing more to look at. */
export function refuse(file: string, reason: string): never {
  throw certificateInvalid([{ file, reason }]);
}
