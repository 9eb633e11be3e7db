import { X509Certificate } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import * as path from 'node:path';
import type { HeldCertificate } from './certificate-set.ts';
import { certificateInvalid, refuse } from './problems.ts';
import type { Problem } from './problems.ts';

/** Longest file with certificates or a key, in bytes. */
const FILE_BYTES_MAX = 1_048_576;
/** Most files in the directory of the trusted roots, and most certificates in a bundle. */
const ROOT_FILES_MAX = 4_096;
const BUNDLE_MAX = 64;
const ROOT_ENDINGS: ReadonlySet<string> = new Set(['.crt', '.cert', '.cer', '.pem', '.der']);
const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

/** The bytes of a file. Errors: `certificate_invalid`. */
export async function readBounded(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size > FILE_BYTES_MAX) refuse(file, `The file has ${size} bytes; at most ${FILE_BYTES_MAX} are read.`);
    return await readFile(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'certificate_invalid') throw error;
    return refuse(file, accessReason(code));
  }
}

function accessReason(code: string | undefined): string {
  switch (code) {
    case 'ENOENT': return 'The file does not exist. Put it there, or correct the option that names it.';
    case 'EACCES':
    case 'EPERM': return 'The file may not be read by the user that runs the node. Change its owner or mode.';
    case 'EISDIR': return 'This is a directory. Name the file.';
    default: return `The file could not be read (${code ?? 'unknown error'}).`;
  }
}

/** The certificates of a file, at most `count`: PEM blocks, other blocks between them left out, or one certificate as DER. */
export function parseCertificates(bytes: Buffer, file: string, count = BUNDLE_MAX): HeldCertificate[] {
  const text = bytes.toString('latin1');
  if (!text.includes(BEGIN)) {
    if (text.includes('-----BEGIN ')) refuse(file, 'The file is PEM, but there is no certificate in it.');
    return [{ certificate: parse(bytes, file, 'The file holds no certificate, neither as PEM nor as DER.'), file }];
  }
  return text.split(BEGIN, count + 1).slice(1).map((block, i) => {
    const end = block.indexOf(END);
    if (end < 0) refuse(file, `Certificate ${i + 1} in the file has no end.`);
    return { certificate: parse(BEGIN + block.slice(0, end) + END, file, `Certificate ${i + 1} in the file can not be read.`), file };
  });
}

function parse(source: Buffer | string, file: string, reason: string): X509Certificate {
  try {
    return new X509Certificate(source);
  } catch {
    return refuse(file, reason);
  }
}

/**
 * The trusted roots: the first certificate of every file in a directory that has one of the usual endings
 * (options-and-security.md section 5.1). Errors: `certificate_invalid` with all files that can't be read.
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
      if (!roots.some(({ certificate }) => certificate.fingerprint256 === root!.certificate.fingerprint256)) roots.push(root!);
    } catch (error) {
      problems.push(...problemsOf(error));
    }
  }
  if (problems.length > 0) throw certificateInvalid(problems);
  if (roots.length === 0) refuse(directory, `There is no trusted root certificate. Put one there with one of the endings ${[...ROOT_ENDINGS].join(', ')}, or correct TrustedRootCertificatesPath.`);
  return roots;
}

async function list(directory: string): Promise<string[]> {
  try {
    const names = (await readdir(directory)).filter((name) => ROOT_ENDINGS.has(path.extname(name))).sort();
    if (names.length > ROOT_FILES_MAX) refuse(directory, `There are ${names.length} files with certificates; at most ${ROOT_FILES_MAX} are read.`);
    return names;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'certificate_invalid') throw error;
    return refuse(directory, code === 'ENOENT' || code === 'ENOTDIR' ? 'There is no such directory for the trusted root certificates. Correct TrustedRootCertificatesPath.' : accessReason(code));
  }
}

/** False also for a link to nothing: reading it says what is wrong. */
async function isDirectory(file: string): Promise<boolean> {
  return stat(file).then((found) => found.isDirectory(), () => false);
}

/** The problems that an error of this folder tells of; any other error is thrown on. */
export function problemsOf(error: unknown): readonly Problem[] {
  const { code, data } = error as { code?: unknown; data?: { problems: readonly Problem[] } };
  if (code !== 'certificate_invalid' || data === undefined) throw error;
  return data.problems;
}
