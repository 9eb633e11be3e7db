import { randomUUID } from 'node:crypto';
import { isSkuaError } from '../../core/errors.ts';
import { FEATURES, isSignedBy, readLicence, signLicence } from '../../core/security/licence-token.ts';
import type { Feature, LicenceClaims } from '../../core/security/licence-token.ts';
import { timeRefusal } from '../../core/security/licence.ts';
import { timestampText } from '../../core/time.ts';
import { systemClock } from '../../infra/clock.ts';
import { nodeKeys } from '../../infra/keys.ts';
import { coloursFor, EXIT, line } from '../cli/io.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../cli/failure.ts';
import { PUBLIC_MODE, SECRET_MODE, writeKeyFiles } from '../cli/key-files.ts';
import { readInput } from '../cli/input.ts';
import type { licenseInspectOptions, licenseIssueOptions, licenseIssuerOptions } from './options.ts';

const DAY_MS = 86_400_000;
/** Longest file of a key, in bytes. */
const FILE_BYTES_MAX = 65_536;

export async function runLicenseIssuer({ options, positionals }: Input<typeof licenseIssuerOptions>, io: Io): Promise<ExitCode> {
  const privateFile = positionals[0]!;
  const publicFile = `${privateFile}.pub`;
  const { privateKey, publicKey } = nodeKeys.ed25519Pair();
  await writeKeyFiles([
    { file: privateFile, text: privateKey, mode: SECRET_MODE },
    { file: publicFile, text: publicKey, mode: PUBLIC_MODE },
  ], options.force);
  if (options.json) line(io.stdout, JSON.stringify({ privateKeyFile: privateFile, publicKeyFile: publicFile }));
  else {
    line(io.stdout, `${privateFile} signs licence keys: keep it secret. Issue one with \`skua license issue ${privateFile}\`.`);
    line(io.stdout, `${publicFile} verifies them: give it to nodes with --licensing-issuer-key-file.`);
  }
  return EXIT.ok;
}

export async function runLicenseIssue({ options, positionals }: Input<typeof licenseIssueOptions>, io: Io): Promise<ExitCode> {
  const features = featuresOf(options.feature);
  if (options.force && options.out === null) throw new UsageError('--force is about the file of --out, which is not given.');
  const file = positionals[0]!;
  const privateKey = await textOf(file);
  const nowMs = systemClock.nowMs();
  const claims: LicenceClaims = { features, issuedAtMs: wholeSeconds(nowMs), notBeforeMs: null, expiresAtMs: wholeSeconds(nowMs + options.days * DAY_MS), holder: options.holder, id: randomUUID() };
  const token = ofFile(file, () => signLicence(claims, privateKey, nodeKeys));
  if (options.out !== null) await writeKeyFiles([{ file: options.out, text: `${token}\n`, mode: SECRET_MODE }], options.force);
  if (options.json) line(io.stdout, JSON.stringify({ ...claimsDocument(claims), ...(options.out === null ? { licenseKey: token } : { file: options.out }) }));
  else line(io.stdout, options.out === null ? token : `${options.out} grants ${features.join(', ')} for ${options.days} days. Set what it holds as Licensing:LicenseKey.`);
  return EXIT.ok;
}

export async function runLicenseInspect({ options, positionals }: Input<typeof licenseInspectOptions>, io: Io): Promise<ExitCode> {
  const file = positionals[0]!;
  const issuerFile = options['issuer-key'];
  const publicKey = issuerFile === null ? null : await textOf(issuerFile);
  const text = await textOf(file === '-' ? '/dev/stdin' : file);
  const token = ofFile(file, () => readLicence(text));
  const isVerified = publicKey === null ? null : ofFile(issuerFile!, () => isSignedBy(token, publicKey, nodeKeys));
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

function ofFile<T>(file: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    throw isSkuaError(error, 'licence_invalid') ? new CommandError(error.code, `${file} is not usable. ${error.message}`, EXIT.failed) : error;
  }
}

export interface Inspection {
  readonly claims: LicenceClaims;
  /** Whether the issuer's public key verifies it; null where none was given. */
  readonly isVerified: boolean | null;
  /** Why it is worth nothing now; null when it is worth something. */
  readonly refusal: string | null;
}

/** The claims as they are reported to programs. */
export function claimsDocument({ features, expiresAtMs, notBeforeMs, issuedAtMs, holder, id }: LicenceClaims) {
  return { id, holder, features, issuedAt: timeText(issuedAtMs), notBefore: timeText(notBeforeMs), expiresAt: timeText(expiresAtMs) };
}

export function showInspection({ claims, isVerified, refusal }: Inspection, nowMs: number, io: Io): void {
  const { green, red, dim } = coloursFor(io.stdout, io.env);
  const row = (name: string, value: string) => line(io.stdout, `${name.padEnd(11)}${value}`);
  row('grants', claims.features.length === 0 ? red('nothing') : claims.features.join(', '));
  row('expires', `${timeText(claims.expiresAtMs)!}${refusal === null ? ` (in ${Math.floor((claims.expiresAtMs - nowMs) / DAY_MS)} days)` : ''}`);
  if (claims.notBeforeMs !== null) row('valid from', timeText(claims.notBeforeMs)!);
  if (claims.issuedAtMs !== null) row('issued', timeText(claims.issuedAtMs)!);
  row('holder', claims.holder ?? dim('none'));
  row('id', claims.id ?? dim('none'));
  row('signature', isVerified === null ? dim('not verified: give the issuer\'s public key with --issuer-key') : isVerified ? green('by this issuer') : red('not by this issuer, or changed afterwards'));
  if (refusal !== null) line(io.stdout, red(refusal));
}

function timeText(ms: number): string;
function timeText(ms: number | null): string | null;
function timeText(ms: number | null): string | null {
  return ms === null ? null : timestampText(Math.floor(ms), 0);
}
