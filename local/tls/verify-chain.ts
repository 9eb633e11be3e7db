import type { X509Certificate } from 'node:crypto';
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
  // A certificate that is trusted itself needs nobody to vouch for it.
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
    if (path.length >= CHAIN_MAX) return { problem: { file: last.file, reason: `The chain is longer than ${CHAIN_MAX} certificates.` } };
    const further = extend([...path, issuer], parts);
    if ('path' in further) return further;
    problem ??= further.problem;
  }
  return { problem: problem ?? unknownIssuer(last, parts) };
}

/** Why an issuer can not be the next of this path; null when it can. */
function issuerProblem(issuer: HeldCertificate, path: readonly HeldCertificate[], { nowMs, pathLengthOf }: ChainParts): Problem | null {
  const last = path.at(-1)!;
  const { certificate, file } = issuer;
  if (!last.certificate.verify(certificate.publicKey)) {
    return { file: last.file, reason: `The signature of ${quoted(last)} was not made by ${quoted(issuer)} (${file}), which is a different authority with the same name.` };
  }
  if (!certificate.ca) return { file, reason: `${quoted(issuer)} has signed ${quoted(last)}, but is not a certificate authority.` };
  const lengthMax = pathLengthOf(certificate);
  // The node's own certificate does not count.
  if (lengthMax !== null && path.length - 1 > lengthMax) return { file, reason: `${quoted(issuer)} allows ${lengthMax} intermediates below it; there are ${path.length - 1}.` };
  return outOfDate(issuer, nowMs);
}

function outOfDate(held: HeldCertificate, nowMs: number): Problem | null {
  const { validFromDate, validToDate } = held.certificate;
  if (nowMs > validToDate.getTime()) return { file: held.file, reason: `${quoted(held)} expired on ${validToDate.toISOString()}.` };
  if (nowMs < validFromDate.getTime()) return { file: held.file, reason: `${quoted(held)} is not valid before ${validFromDate.toISOString()}. Check the clock of this machine.` };
  return null;
}

function unknownIssuer(last: HeldCertificate, { intermediates, roots }: ChainParts): Problem {
  const issuer = (last.certificate.issuer ?? '').split('\n').join(', ');
  const namesake = [...intermediates, ...roots].find(({ certificate }) => certificate.subject === last.certificate.issuer);
  const reason = namesake === undefined
    ? `${quoted(last)} was issued by "${issuer}", which is neither among the intermediate certificates nor among the trusted roots.`
    : `${quoted(last)} was issued by an authority named "${issuer}", but not by the one in ${namesake.file}, or that one may not sign certificates.`;
  return { file: last.file, reason };
}

function isSame(a: HeldCertificate, b: HeldCertificate): boolean {
  return a.certificate.fingerprint256 === b.certificate.fingerprint256;
}

function quoted({ certificate }: HeldCertificate): string {
  return `"${subjectText(certificate)}"`;
}
