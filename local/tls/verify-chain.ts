import type { X509Certificate } from 'node:crypto';
import { basename } from 'node:path';
import { subjectText } from './certificate-set.ts';
import type { HeldCertificate, Problem } from './certificate-set.ts';

/** Longest chain from a node to its root. */
const CHAIN_MAX = 10;

interface ChainParts {
  readonly node: HeldCertificate;
  readonly intermediates: readonly HeldCertificate[];
  readonly roots: readonly HeldCertificate[];
  readonly nowMs: number;
  /** How many intermediates a certificate authority allows below it; null for any number. */
  readonly pathLengthOf: (certificate: X509Certificate) => number | null;
  /** Whether the roots are those of an option; else they came with the node's certificate, or are the system's. */
  readonly rootsAreNamed: boolean;
  /** Roots that stand in the file of the node's certificate. */
  readonly ownRoots: readonly HeldCertificate[];
}

/** The certificates from the node's to the last before the root; or why there is no such chain. */
type Chain = { readonly path: readonly HeldCertificate[] } | { readonly problem: Problem };

/**
 * Builds the chain node, intermediates, one of the roots: every signature holds, every certificate is in date, and
 * those that sign are authorities that may.
 */
export function buildChain(parts: ChainParts): Chain {
  const expired = outOfDate(parts.node, parts.nowMs);
  if (expired !== null) return { problem: expired };
  return extend([parts.node], parts);
}

function extend(path: readonly HeldCertificate[], parts: ChainParts): Chain {
  const last = path.at(-1)!;
  // A certificate that is trusted itself needs no other to vouch for it.
  if (parts.roots.some((root) => isSame(root, last))) return { path };
  let problem: Problem | null = null;
  for (const issuer of [...parts.roots, ...parts.intermediates]) {
    if (path.some((one) => isSame(one, issuer)) || !last.certificate.checkIssued(issuer.certificate)) continue;
    const refused = issuerProblem(issuer, path, parts);
    if (refused !== null) {
      problem ??= refused;
      continue;
    }
    if (parts.roots.includes(issuer)) return { path };
    if (path.length >= CHAIN_MAX)
      return { problem: { file: last.file, reason: `The chain is longer than ${CHAIN_MAX} certificates.` } };
    const further = extend([...path, issuer], parts);
    if ('path' in further) return further;
    problem ??= further.problem;
  }
  return { problem: problem ?? unknownIssuer(last, parts) };
}

/** Why an issuer can not be the next of this path; null when it can. */
function issuerProblem(
  issuer: HeldCertificate,
  path: readonly HeldCertificate[],
  { nowMs, pathLengthOf }: ChainParts,
): Problem | null {
  const last = path.at(-1)!;
  const { certificate, file } = issuer;
  if (!last.certificate.verify(certificate.publicKey)) {
    return {
      file: last.file,
      reason: `The signature of ${quoted(last)} was not made by ${quoted(issuer)} (${file}): that is a different authority with the same name. Put the one that has signed it in the place of that.`,
    };
  }
  if (!certificate.ca)
    return { file, reason: `${quoted(issuer)} has signed ${quoted(last)}, but is not a certificate authority.` };
  const lengthMax = pathLengthOf(certificate);
  // The node's own certificate does not count.
  if (lengthMax !== null && path.length - 1 > lengthMax)
    return {
      file,
      reason: `${quoted(issuer)} allows ${lengthMax} intermediates below it; there are ${path.length - 1}.`,
    };
  return outOfDate(issuer, nowMs);
}

function outOfDate(held: HeldCertificate, nowMs: number): Problem | null {
  const { validFromDate, validToDate } = held.certificate;
  if (nowMs > validToDate.getTime())
    return { file: held.file, reason: `${quoted(held)} expired on ${validToDate.toISOString()}.` };
  if (nowMs < validFromDate.getTime())
    return {
      file: held.file,
      reason: `${quoted(held)} is not valid before ${validFromDate.toISOString()}. Check the clock of this machine.`,
    };
  return null;
}

function unknownIssuer(last: HeldCertificate, parts: ChainParts): Problem {
  const { intermediates, roots } = parts;
  const issuer = (last.certificate.issuer ?? '').split('\n').join(', ');
  const namesake = [...intermediates, ...roots].find(
    ({ certificate }) => certificate.subject === last.certificate.issuer,
  );
  const reason =
    namesake === undefined
      ? `${quoted(last)} was issued by "${issuer}", which is neither among the intermediate certificates nor among the trusted roots. ${whatToPutWhere(last, parts)}`
      : `${quoted(last)} was issued by an authority named "${issuer}", but not by the one in ${namesake.file}, or that one may not sign certificates. Put the one that has signed it there.`;
  return { file: last.file, reason };
}

/**
 * For an authority that no option names: one that is a root belongs elsewhere than one that is none, and which it is
 * its certificate alone would tell.
 */
function whatToPutWhere(last: HeldCertificate, { node, rootsAreNamed, ownRoots }: ChainParts): string {
  const { subject, issuer } = last.certificate;
  if (subject === issuer)
    return 'It has signed itself: put a copy of it alone into a folder, and name that in TrustedRootCertificatesPath.';
  if (ownRoots.some(({ certificate }) => certificate.subject === issuer))
    return 'That root stands in the file, where it counts only while no roots are named: put it into the folder of TrustedRootCertificatesPath.';
  const name = /^[\w-][\w.-]*$/.exec(basename(node.file))?.[0] ?? 'node.crt';
  const joined = PKCS12.test(name)
    ? `openssl pkcs12 -export -in node.crt -inkey node.key -certfile ca.crt -out ${name}`
    : `cat ${name} ca.crt > chain.crt`;
  if (rootsAreNamed)
    return `If that is a root, put its certificate into the folder of TrustedRootCertificatesPath; if it is an intermediate, put it behind the node's (${joined}), and name that file in CertificateFile.`;
  return `Put the certificates of all authorities up to the root behind the node's (${joined}), and name that file in CertificateFile; or put the root into a folder, and name that in TrustedRootCertificatesPath.`;
}

const PKCS12 = /\.(?:p12|pfx)$/i;

function isSame(a: HeldCertificate, b: HeldCertificate): boolean {
  return a.certificate.fingerprint256 === b.certificate.fingerprint256;
}

function quoted({ certificate }: HeldCertificate): string {
  return `"${subjectText(certificate)}"`;
}
