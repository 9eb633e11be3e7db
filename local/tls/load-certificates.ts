import type { KeyObject, X509Certificate } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import * as path from 'node:path';
import { createSecureContext } from 'node:tls';
import { certificateInvalid, certificateSet, refuse, serverContext, subjectText } from './certificate-set.ts';
import type { CertificateSet, HeldCertificate, KeyMaterial, Problem } from './certificate-set.ts';
import { commonNameOf, matchesReservedName } from './peer.ts';
import {
  parseCertificates,
  readBounded,
  readPkcs12,
  readPkcs12Key,
  readPrivateKey,
  readRoots,
} from './read-certificates.ts';
import { shakeHands } from './shake-hands.ts';
import { buildChain } from './verify-chain.ts';

/** The options about certificates. */
export interface CertificateOptions {
  readonly certificateFile: string;
  /** Null where the certificate's file is PKCS#12 and holds the key, too. */
  readonly certificatePrivateKeyFile: string | null;
  /** Of a PKCS#12 file. */
  readonly certificatePassword: string | null;
  readonly certificatePrivateKeyPassword: string | null;
  /** Null for none: the node's own certificate is verified by the system's authorities, and no client's is. */
  readonly trustedRootCertificatesPath: string | null;
  /** Null for the node's own common name. */
  readonly certificateReservedNodeCommonName: string | null;
}

/** The same as the options are named in the configuration. */
export interface CertificateValues {
  readonly CertificateFile: string | null;
  readonly CertificatePrivateKeyFile: string | null;
  readonly CertificatePassword: string | null;
  readonly CertificatePrivateKeyPassword: string | null;
  readonly TrustedRootCertificatesPath: string | null;
  readonly CertificateReservedNodeCommonName: string | null;
}

/** Loads what the options name. Errors: as `loadCertificates`, also when no certificate is named. */
export async function loadConfigured(values: CertificateValues, nowMs: number): Promise<CertificateSet> {
  if (values.CertificateFile === null) refuse('CertificateFile', 'No certificate is configured, and TLS needs one.');
  return loadCertificates(
    {
      certificateFile: values.CertificateFile,
      certificatePrivateKeyFile: values.CertificatePrivateKeyFile,
      certificatePassword: values.CertificatePassword,
      certificatePrivateKeyPassword: values.CertificatePrivateKeyPassword,
      trustedRootCertificatesPath: values.TrustedRootCertificatesPath,
      certificateReservedNodeCommonName: values.CertificateReservedNodeCommonName || null,
    },
    nowMs,
  );
}

/** Where systems keep the authorities that browsers trust. */
const SYSTEM_ROOTS = '/etc/ssl/certs';

/** Whether a directory is that of the system's authorities. */
export async function isSystemStore(directory: string): Promise<boolean> {
  const [named, system] = await Promise.all(
    [directory, SYSTEM_ROOTS].map((one) => realpath(one).catch(() => path.resolve(one))),
  );
  return named === system;
}

/** What the file of the node's certificate holds, and its key. */
interface NodeParts {
  readonly material: Exclude<KeyMaterial, { cert: string }> | { readonly key: string };
  readonly node: HeldCertificate;
  readonly intermediates: readonly HeldCertificate[];
  /** Roots that stand in the file. They are neither sent nor trusted to vouch for other certificates. */
  readonly ownRoots: readonly HeldCertificate[];
}

/**
 * Loads the node's certificate, its key and the trusted roots, and verifies them. Certificates may stand in the file in
 * any order, a root among them. Where no roots are named, the node's own certificate is verified by those in its file,
 * else by the operating system's, of which nothing else is used; nothing is fetched. Errors: `certificate_invalid`
 * (data: file and reason of the first problem, and all `problems`).
 */
export async function loadCertificates(
  options: CertificateOptions,
  nowMs: number,
  systemRoots = SYSTEM_ROOTS,
): Promise<CertificateSet> {
  const parts =
    options.certificatePrivateKeyFile === null
      ? await fromPkcs12(options)
      : await fromPem(options, options.certificatePrivateKeyFile);
  const { node, intermediates, ownRoots } = parts;
  const named = options.trustedRootCertificatesPath;
  const roots = named === null && ownRoots.length > 0 ? ownRoots : await readRoots(named ?? systemRoots);
  checkName(node, options.certificateReservedNodeCommonName);
  checkRoots(roots);
  const pathLengthOf = intermediates.length === 0 ? () => null : await pathLengthReader();
  const chain = buildChain({
    node,
    intermediates,
    roots,
    nowMs,
    pathLengthOf,
    rootsAreNamed: named !== null,
    ownRoots,
  });
  if ('problem' in chain) throw certificateInvalid([chain.problem]);
  const set = certificateSet({
    material: inOrder(parts.material, chain.path, intermediates),
    node,
    intermediates,
    roots,
    nowMs,
    trustsNodes: named !== null,
    reservedNodeCommonName: options.certificateReservedNodeCommonName ?? commonNameOf(node.certificate),
  });
  await checkUsable(set, node, roots);
  return set;
}

async function fromPkcs12({ certificateFile, certificatePassword }: CertificateOptions): Promise<NodeParts> {
  const pfx = await readBounded(certificateFile);
  const [node, ...others] = distinct(await readPkcs12(pfx, certificatePassword, certificateFile));
  const { intermediates, ownRoots } = sorted(others);
  const key = await readPkcs12Key(pfx, certificatePassword, node!.certificate);
  if (key !== null) return { material: { key: keyText(key) }, node: node!, intermediates, ownRoots };
  // The TLS library would send the root, and trust it to vouch for clients.
  if (ownRoots.length > 0)
    refuse(
      certificateFile,
      'The key in the file is stored in a form that can only be read if the file has no root certificate. Leave the root out, or give certificate and key in PEM: openssl pkcs12 -in OLD -nodes -out NEW.',
    );
  return {
    material: { pfx, ...(certificatePassword !== null && { passphrase: certificatePassword }) },
    node: node!,
    intermediates,
    ownRoots,
  };
}

async function fromPem(
  { certificateFile, certificatePrivateKeyPassword }: CertificateOptions,
  keyFile: string,
): Promise<NodeParts> {
  const found = distinct(parseCertificates(await readBounded(certificateFile), certificateFile));
  const key = await readPrivateKey(keyFile, certificatePrivateKeyPassword);
  // Whatever the order: the node's is the one that the key belongs to.
  const node = found.find(({ certificate }) => certificate.checkPrivateKey(key));
  if (node === undefined)
    refuse(
      keyFile,
      `The private key does not belong to ${found.length === 1 ? 'the certificate' : `any of the ${found.length} certificates`} in ${certificateFile}.`,
    );
  return { material: { key: keyText(key) }, node, ...sorted(found.filter((one) => one !== node)) };
}

function keyText(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string;
}

/** Each once: bundles that were put together by hand repeat some. */
function distinct(found: readonly HeldCertificate[]): HeldCertificate[] {
  return found.filter(
    ({ certificate }, i) =>
      found.findIndex((other) => other.certificate.fingerprint256 === certificate.fingerprint256) === i,
  );
}

function sorted(others: readonly HeldCertificate[]): Pick<NodeParts, 'intermediates' | 'ownRoots'> {
  return {
    intermediates: others.filter(({ certificate }) => !isSelfSigned(certificate)),
    ownRoots: others.filter(({ certificate }) => isSelfSigned(certificate)),
  };
}

/** Fails alone, before all else is looked at. */
function checkName({ certificate, file }: HeldCertificate, reservedName: string | null): void {
  if (reservedName === null) return;
  const commonName = commonNameOf(certificate);
  if (commonName === null)
    refuse(file, `The certificate has no common name; CertificateReservedNodeCommonName is ${reservedName}.`);
  if (!matchesReservedName(commonName, reservedName))
    refuse(
      file,
      `The common name ${commonName} does not match CertificateReservedNodeCommonName, which is ${reservedName}.`,
    );
}

function checkRoots(roots: readonly HeldCertificate[]): void {
  const problems: Problem[] = roots
    .filter(({ certificate }) => !isSelfSigned(certificate))
    .map(({ certificate, file }) => ({
      file,
      reason: `"${subjectText(certificate)}" is not a root certificate (subject and issuer differ). TrustedRootCertificatesPath is for root certificates only: put it behind the node's certificate, in the file of CertificateFile (cat node.crt ${path.basename(file)} > chain.crt).`,
    }));
  if (problems.length > 0) throw certificateInvalid(problems);
}

function isSelfSigned({ subject, issuer }: X509Certificate): boolean {
  return subject === issuer;
}

/** Clients want the chain in the order in which it is verified, and have the root already. */
function inOrder(
  material: NodeParts['material'],
  path: readonly HeldCertificate[],
  intermediates: readonly HeldCertificate[],
): KeyMaterial {
  if ('pfx' in material) return material;
  const rest = intermediates.filter((one) => !path.includes(one));
  return { ...material, cert: [...path, ...rest].map(({ certificate }) => pem(certificate)).join('') };
}

function pem(certificate: X509Certificate): string {
  return certificate.toString();
}

/**
 * What no client takes from a server, whatever its chain: a certificate, or one of its authorities, that is for other
 * purposes.
 */
const WRONG_PURPOSE = 'INVALID_PURPOSE';

/**
 * What the TLS library would refuse later, such as a key that is too short, and what its clients would, is refused
 * here.
 */
async function checkUsable(
  set: CertificateSet,
  { file }: HeldCertificate,
  roots: readonly HeldCertificate[],
): Promise<void> {
  let problem: string;
  try {
    const trusted = roots.map(({ certificate }) => pem(certificate));
    problem = await shakeHands(createSecureContext(serverContext(set)), trusted, ({ authorizationError }) =>
      String(authorizationError ?? ''),
    );
  } catch (error) {
    return refuse(file, `The certificate cannot be used for TLS: ${(error as Error).message}.`);
  }
  if (problem === WRONG_PURPOSE)
    refuse(
      file,
      'Clients will not accept the certificate from a server: its extended key usage or key usage, or that of its authority, does not allow it. If these are present, extended key usage must include serverAuth and key usage must include digitalSignature.',
    );
}

export type PathLengthOf = (certificate: X509Certificate) => number | null;

/** How many intermediates an authority allows below it: the one thing that Node.js does not tell of a certificate. */
export async function pathLengthReader(): Promise<PathLengthOf> {
  // Loaded here only, since few need it and it takes its time. The package wants reflection to be there before it.
  await import('reflect-metadata');
  const { BasicConstraintsExtension, X509Certificate: Parsed } = await import('@peculiar/x509');
  return ({ raw }) => new Parsed(raw).getExtension(BasicConstraintsExtension)?.pathLength ?? null;
}
