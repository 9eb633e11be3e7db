import type { KeyObject } from 'node:crypto';
import { createHash, createPrivateKey, webcrypto, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { PUBLIC_MODE, SECRET_MODE, writeKeyFiles } from '../cli/key-files.ts';
import { certificateSet, refuse } from './certificate-set.ts';
import type { CertificateSet } from './certificate-set.ts';

const DAY_MS = 86_400_000;
const VALID_DAYS = 30;
/** A kept certificate with less time than this left is replaced. */
const REUSE_DAYS_MIN = 1;
const NAME = 'localhost';
const ALGORITHM = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  modulusLength: 2_048,
  publicExponent: new Uint8Array([1, 0, 1]),
};

export interface DevCertificate {
  readonly set: CertificateSet;
  /** SHA-256 of the certificate, as browsers and openssl show it. */
  readonly fingerprint: string;
  /** The certificate in PEM, without its key. */
  readonly certificate: string;
}

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/**
 * A certificate for developing on this machine: self-signed, for localhost, its own trusted root. It lives in memory
 * unless `keepAt` names a file, which then holds certificate and key (PEM, for its owner only) and is used again until
 * it expires; the certificate alone is put beside it with `.crt` behind the name, for clients.
 */
export async function devCertificate(nowMs: number, keepAt: string | null = null): Promise<DevCertificate> {
  const kept = keepAt === null ? null : await readKept(keepAt, nowMs);
  const pair = kept ?? (await create(nowMs));
  if (keepAt !== null && kept === null) await keep(keepAt, pair);
  const certificate = new X509Certificate(pair.cert);
  const held = { certificate, file: keepAt ?? 'the development certificate' };
  const set = certificateSet({
    material: pair,
    node: held,
    intermediates: [],
    roots: [held],
    trustsNodes: false,
    reservedNodeCommonName: NAME,
    nowMs,
    madeAnewDays: REUSE_DAYS_MIN,
  });
  return { set, fingerprint: certificate.fingerprint256, certificate: pair.cert };
}

async function create(nowMs: number): Promise<Pair> {
  // Loaded here only. The package wants reflection to be there before it.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const publicKey = await webcrypto.subtle.exportKey('spki', keys.publicKey);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${NAME}`,
    // Its beginning must not be mistaken for a negative number.
    serialNumber: `01${createHash('sha256').update(new Uint8Array(publicKey)).digest('hex').slice(0, 30)}`,
    notBefore: new Date(nowMs - DAY_MS),
    notAfter: new Date(nowMs + VALID_DAYS * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        { type: 'dns', value: NAME },
        { type: 'ip', value: '127.0.0.1' },
        { type: 'ip', value: '::1' },
      ]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  const key = createPrivateKey({
    key: Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)),
    format: 'der',
    type: 'pkcs8',
  });
  return {
    cert: `${certificate.toString('pem').trim()}\n`,
    key: key.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

/**
 * Null where there is no file, or what it holds is about to expire. A file that is no development certificate is
 * a key or data of the user, and never overwritten. Errors: `certificate_invalid`.
 */
async function readKept(file: string, nowMs: number): Promise<Pair | null> {
  const text = await readFile(file, 'latin1').catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? null : refuse(file, `The development certificate could not be read (${error.code}).`),
  );
  if (text === null) return null;
  const { certificate, key } = parsePair(text, file);
  const isFresh =
    certificate.validFromDate.getTime() <= nowMs &&
    certificate.validToDate.getTime() - nowMs >= REUSE_DAYS_MIN * DAY_MS;
  return isFresh ? { cert: certificate.toString(), key: key.export({ type: 'pkcs8', format: 'pem' }) as string } : null;
}

function parsePair(text: string, file: string): { certificate: X509Certificate; key: KeyObject } {
  try {
    const certificate = new X509Certificate(text);
    const key = createPrivateKey(text);
    if (isOwn(certificate) && certificate.checkPrivateKey(key)) return { certificate, key };
  } catch {
    // Told below.
  }
  return refuse(file, 'The file exists but is not a development certificate. Name another file, or remove it.');
}

/** A file that is there beside the kept one, and no certificate of ours, is the user's. */
async function refuseStranger(file: string): Promise<void> {
  const text = await readFile(file, 'latin1').catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? null : refuse(file, `The development certificate could not be read (${error.code}).`),
  );
  if (text === null) return;
  try {
    if (isOwn(new X509Certificate(text))) return;
  } catch {
    // Told below.
  }
  refuse(file, 'The file exists but is not a development certificate. Name another file, or remove it.');
}

function isOwn({ subject, issuer }: X509Certificate): boolean {
  return subject === `CN=${NAME}` && issuer === subject;
}

/** Whole or not at all, and never readable to others. */
async function keep(file: string, { cert, key }: Pair): Promise<void> {
  const beside = `${file}.crt`;
  await refuseStranger(beside);
  try {
    await writeKeyFiles(
      [
        { file, text: key + cert, mode: SECRET_MODE },
        { file: beside, text: cert, mode: PUBLIC_MODE },
      ],
      true,
    );
  } catch (error) {
    refuse(
      file,
      `The development certificate could not be written. ${(error as Error).message} Check the folder, or leave the path out.`,
    );
  }
}
