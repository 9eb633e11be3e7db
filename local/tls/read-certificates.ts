import { createPrivateKey } from 'node:crypto';
import type { KeyObject, X509Certificate } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import * as path from 'node:path';
import { createSecureContext } from 'node:tls';
import type { SecureContext } from 'node:tls';
import { isSkuaError } from '../../core/base/errors.ts';
import { certificatesIn } from '../../infra/pem.ts';
import { certificateInvalid, refuse } from './certificate-set.ts';
import type { HeldCertificate, Problem } from './certificate-set.ts';
import { shakeHands } from './shake-hands.ts';

/** Longest file with certificates or a key, in bytes. */
const FILE_BYTES_MAX = 1_048_576;
/** Most files in the directory of the trusted roots, and most certificates in a bundle. */
const ROOT_FILES_MAX = 4_096;
const BUNDLE_MAX = 64;
const ROOT_ENDINGS: ReadonlySet<string> = new Set(['.crt', '.cert', '.cer', '.pem', '.der']);

/** The bytes of a file. Errors: `certificate_invalid`. */
export async function readBounded(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size > FILE_BYTES_MAX) refuse(file, `The file has ${size} bytes; the limit is ${FILE_BYTES_MAX}.`);
    return await readFile(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'certificate_invalid') throw error;
    return refuse(file, accessReason(code));
  }
}

function accessReason(code: string | undefined): string {
  switch (code) {
    case 'ENOENT':
      return 'The file does not exist. Put it there, or correct the option that names it.';
    case 'EACCES':
    case 'EPERM':
      return 'The user that runs the node may not read the file. Change its owner or mode.';
    case 'EISDIR':
      return 'This is a directory. Name the file.';
    default:
      return `The file could not be read (${code ?? 'unknown error'}).`;
  }
}

/** The certificates of a file, at most `count`. Errors: `certificate_invalid`. */
export function parseCertificates(bytes: Buffer, file: string, count = BUNDLE_MAX): HeldCertificate[] {
  try {
    return certificatesIn(bytes, count).map((certificate) => ({ certificate, file }));
  } catch (error) {
    return refuse(file, (error as Error).message);
  }
}

/**
 * The trusted roots: the first certificate of every file in a directory that has one of the usual endings.
 * Errors: `certificate_invalid` with all files that can't be read.
 */
export async function readRoots(directory: string): Promise<HeldCertificate[]> {
  const names = await list(directory);
  const roots: HeldCertificate[] = [];
  const problems: Problem[] = [];
  for (const name of names) {
    const file = path.join(directory, name);
    try {
      if (await isDirectory(file)) continue;
      const [root] = parseCertificates(await readBounded(file), file, 1);
      if (!roots.some(({ certificate }) => certificate.fingerprint256 === root!.certificate.fingerprint256))
        roots.push(root!);
    } catch (error) {
      problems.push(...problemsOf(error));
    }
  }
  if (problems.length > 0) throw certificateInvalid(problems);
  if (roots.length === 0)
    refuse(
      directory,
      `The directory has no trusted root certificate. Add one as a file ending in ${[...ROOT_ENDINGS].join(', ')}, or correct TrustedRootCertificatesPath.`,
    );
  return roots;
}

async function list(directory: string): Promise<string[]> {
  try {
    const names = (await readdir(directory)).filter((name) => ROOT_ENDINGS.has(path.extname(name))).sort();
    if (names.length > ROOT_FILES_MAX)
      refuse(directory, `There are ${names.length} certificate files; the limit is ${ROOT_FILES_MAX}.`);
    return names;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'certificate_invalid') throw error;
    return refuse(
      directory,
      code === 'ENOENT' || code === 'ENOTDIR'
        ? 'The directory for trusted root certificates does not exist. Correct TrustedRootCertificatesPath.'
        : accessReason(code),
    );
  }
}

/** False also for a link to nothing: reading it says what is wrong. */
async function isDirectory(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** The problems that an error of this folder tells of; any other error is thrown on. */
function problemsOf(error: unknown): readonly Problem[] {
  if (!isSkuaError(error, 'certificate_invalid') || error.data.problems === undefined) throw error;
  return error.data.problems;
}

/** Kinds of keys that are read; PEM headers. */
const HEADERS = ['PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY', 'ENCRYPTED PRIVATE KEY'] as const;

/**
 * Reads a private key in PEM. Errors: `certificate_invalid`; its texts never hold anything of the key or the password.
 */
export async function readPrivateKey(file: string, password: string | null): Promise<KeyObject> {
  const text = (await readBounded(file)).toString('latin1');
  const header = /-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----/.exec(text)?.[1];
  if (header === undefined) refuse(file, 'The file has no private key in PEM.');
  if (!HEADERS.includes(header as (typeof HEADERS)[number]))
    refuse(
      file,
      `Keys of the type ${header} are not supported. Convert it to PKCS#8: openssl pkcs8 -topk8 -in OLD -out NEW.`,
    );
  if (/^Proc-Type: 4,ENCRYPTED/m.test(text))
    refuse(
      file,
      'This legacy form of encrypted key is not supported. Convert it to PKCS#8: openssl pkcs8 -topk8 -in OLD -out NEW.',
    );
  if (header === 'ENCRYPTED PRIVATE KEY' && (password === null || password === '')) {
    refuse(file, 'The private key is encrypted. Set CertificatePrivateKeyPassword.');
  }
  try {
    return createPrivateKey({ key: text, format: 'pem', ...(password !== null && { passphrase: password }) });
  } catch {
    // The cause is a text of the cryptography library that does not help the user.
    return refuse(
      file,
      header === 'ENCRYPTED PRIVATE KEY'
        ? 'The private key could not be decrypted. Check CertificatePrivateKeyPassword.'
        : 'The private key is damaged.',
    );
  }
}

/** Most certificates taken from a file. */
const CERTIFICATES_MAX = 64;

/**
 * The certificates in a PKCS#12 file, the node's first. The TLS library opens such a file but does not say what is in
 * it; so it serves one connection within this process, and the certificates are those that its client is shown.
 * Errors: `certificate_invalid`.
 */
export async function readPkcs12(bytes: Buffer, password: string | null, file: string): Promise<HeldCertificate[]> {
  const first = await presented(open(bytes, password, file)).catch(() =>
    refuse(file, 'The certificate and key in the file cannot be used for TLS.'),
  );
  const found: HeldCertificate[] = [];
  for (
    let next: X509Certificate | undefined = first;
    next !== undefined && found.length < CERTIFICATES_MAX;
    next = next.issuerCertificate
  ) {
    found.push({ certificate: next, file });
  }
  return found;
}

/** Content that is not encrypted as a whole (RFC 5652, id-data); keys are encrypted one by one. */
const DATA = '1.2.840.113549.1.7.1';

/**
 * The private key in a PKCS#12 file (RFC 7292) that belongs to a certificate, once the TLS library has opened the file:
 * that library would send every certificate in the file, and trust the roots among them to vouch for clients. Null
 * where the key is packed in another way than the usual tools do it.
 */
export async function readPkcs12Key(
  bytes: Buffer,
  password: string | null,
  certificate: X509Certificate,
): Promise<KeyObject | null> {
  // Loaded here only: few have such files.
  const [{ AuthenticatedSafe, id_keyBag, id_pkcs8ShroudedKeyBag, PFX, SafeContents }, { AsnConvert, OctetString }] =
    await Promise.all([import('@peculiar/asn1-pfx'), import('@peculiar/asn1-schema')]);
  const contentOf = (octets: ArrayBuffer) => AsnConvert.parse(octets, OctetString).buffer;
  try {
    for (const { contentType, content } of AsnConvert.parse(
      contentOf(AsnConvert.parse(bytes, PFX).authSafe.content),
      AuthenticatedSafe,
    )) {
      if (contentType !== DATA) continue;
      for (const { bagId, bagValue } of AsnConvert.parse(contentOf(content), SafeContents)) {
        if (bagId !== id_keyBag && bagId !== id_pkcs8ShroudedKeyBag) continue;
        const key = createPrivateKey({
          key: Buffer.from(bagValue),
          format: 'der',
          type: 'pkcs8',
          passphrase: password ?? '',
        });
        if (certificate.checkPrivateKey(key)) return key;
      }
    }
  } catch {
    // Told by the caller, where it matters.
  }
  return null;
}

function open(pfx: Buffer, password: string | null, file: string): SecureContext {
  if (pfx.includes('-----BEGIN '))
    refuse(
      file,
      'The file is PEM. Give its key with CertificatePrivateKeyFile; without it a PKCS#12 file is expected.',
    );
  try {
    return createSecureContext({ pfx, ...(password !== null && { passphrase: password }) });
  } catch (error) {
    const { message } = error as Error;
    if (/mac verify failure/i.test(message))
      refuse(file, 'The file could not be opened with this password. Check CertificatePassword.');
    if (/private key/i.test(message))
      refuse(file, 'The file has no private key, or none that matches its certificate.');
    return refuse(
      file,
      /unsupported/i.test(message)
        ? 'The file uses a legacy encryption that is not supported. Export it again with a current version of its tool.'
        : 'The file is not PKCS#12. For a certificate in PEM or DER, give its key with CertificatePrivateKeyFile.',
    );
  }
}

/** The chain hangs on the certificate as the server sent it. */
function presented(secureContext: SecureContext): Promise<X509Certificate> {
  return shakeHands(secureContext, [], (client) => {
    const certificate = client.getPeerX509Certificate();
    if (certificate === undefined) throw new Error('no certificate');
    return certificate;
  });
}
