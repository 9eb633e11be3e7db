import { randomUUID } from 'node:crypto';
import { isSkuaError } from '../../core/errors.ts';
import { ED25519_KEY_BYTES } from '../../core/ports/keys.ts';
import { parsePrivateKeyPem, parsePublicKeyPem, privateKeyPem, publicKeyPem } from '../../core/security/ed25519-keys.ts';
import { timeRefusal } from '../../core/security/licence.ts';
import { FEATURES, isSignedBy, readLicence, signLicence } from '../../core/security/licence-token.ts';
import type { Feature, LicenceClaims } from '../../core/security/licence-token.ts';
import { systemClock } from '../../infra/clock.ts';
import { nodeKeys } from '../../infra/keys.ts';
import type { Input } from '../cli/command.ts';
import { CommandError } from '../cli/failure.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { UsageError } from '../cli/usage-error.ts';
import { PUBLIC_MODE, SECRET_MODE, writeKeyFiles } from '../license/key-files.ts';
import { claimsDocument, showInspection } from '../license/show-license.ts';
import { readInput } from '../webhook/input.ts';
import type { inspectOptions, issueOptions, issuerOptions } from './license.ts';

const DAY_MS = 86_400_000;
/** Longest file of a key, in bytes. */
const FILE_BYTES_MAX = 65_536;

export async function runLicenseIssuer({ options, positionals }: Input<typeof issuerOptions>, io: Io): Promise<ExitCode> {
  const privateFile = positionals[0]!;
  const publicFile = `${privateFile}.pub`;
  const key = nodeKeys.randomBytes(ED25519_KEY_BYTES);
  await writeKeyFiles([
    { file: privateFile, text: privateKeyPem(key), mode: SECRET_MODE },
    { file: publicFile, text: publicKeyPem(nodeKeys.ed25519Public(key)), mode: PUBLIC_MODE },
  ], options.force);
  if (options.json) line(io.stdout, JSON.stringify({ privateKeyFile: privateFile, publicKeyFile: publicFile }));
  else {
    line(io.stdout, `${privateFile} signs licence keys: keep it secret. Issue one with \`skua license issue ${privateFile}\`.`);
    line(io.stdout, `${publicFile} verifies them: give it to nodes with --licensing-issuer-key-file.`);
  }
  return EXIT.ok;
}

export async function runLicenseIssue({ options, positionals }: Input<typeof issueOptions>, io: Io): Promise<ExitCode> {
  const features = featuresOf(options.feature);
  if (options.force && options.out === null) throw new UsageError('--force is about the file of --out, which is not given.');
  const file = positionals[0]!;
  const privateKey = ofFile(file, parsePrivateKeyPem, await textOf(file));
  const nowMs = systemClock.nowMs();
  const claims: LicenceClaims = { features, issuedAtMs: wholeSeconds(nowMs), notBeforeMs: null, expiresAtMs: wholeSeconds(nowMs + options.days * DAY_MS), holder: options.holder, id: randomUUID() };
  const token = signLicence(claims, privateKey, nodeKeys);
  if (options.out !== null) await writeKeyFiles([{ file: options.out, text: `${token}\n`, mode: SECRET_MODE }], options.force);
  if (options.json) line(io.stdout, JSON.stringify({ ...claimsDocument(claims), ...(options.out === null ? { licenseKey: token } : { file: options.out }) }));
  else line(io.stdout, options.out === null ? token : `${options.out} grants ${features.join(', ')} for ${options.days} days. Set what it holds as Licensing:LicenseKey.`);
  return EXIT.ok;
}

export async function runLicenseInspect({ options, positionals }: Input<typeof inspectOptions>, io: Io): Promise<ExitCode> {
  const file = positionals[0]!;
  const issuerFile = options['issuer-key'];
  const publicKey = issuerFile === null ? null : ofFile(issuerFile, parsePublicKeyPem, await textOf(issuerFile));
  const token = ofFile(file, readLicence, await textOf(file === '-' ? '/dev/stdin' : file));
  const isVerified = publicKey === null ? null : isSignedBy(token, publicKey, nodeKeys);
  const nowMs = systemClock.nowMs();
  const refusal = timeRefusal(token.claims, nowMs);
  if (options.json) line(io.stdout, JSON.stringify({ ...claimsDocument(token.claims), isVerified, refusal }));
  else showInspection({ claims: token.claims, isVerified, refusal }, nowMs, io);
  return refusal === null && isVerified !== false && token.claims.features.length > 0 ? EXIT.ok : EXIT.failed;
}

function featuresOf(given: readonly string[]): readonly Feature[] {
  const names = given.map((name) => name.toUpperCase());
  for (const name of names) if (!FEATURES.includes(name as Feature)) throw new UsageError(`--feature must be one of ${FEATURES.join(', ')}, not '${name}'.`);
  return names.length === 0 ? ['AUTO_SCAVENGE'] : FEATURES.filter((feature) => names.includes(feature));
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000;
}

async function textOf(file: string): Promise<string> {
  return Buffer.from(await readInput(file, FILE_BYTES_MAX)).toString('utf8');
}

function ofFile<T>(file: string, parse: (text: string) => T, text: string): T {
  try {
    return parse(text);
  } catch (error) {
    throw isSkuaError(error, 'licence_invalid') ? new CommandError(error.code, `${file} is not usable. ${error.message}`, EXIT.failed) : error;
  }
}
