import { SkuaError } from '../../base/errors.ts';
import type { Keys } from '../../ports/keys.ts';
import { encodeText } from '../../base/text.ts';
import { decodeBase64Url } from '../../base/base64.ts';

/** Licence keys: JSON claims signed with Ed25519, in the compact form of JWS (RFC 7515, RFC 8037). */

/** What a licence can grant. `ALL` stands for every feature, also for those to come. */
export const FEATURES = ['AUTO_SCAVENGE', 'ALL'] as const;
export type Feature = (typeof FEATURES)[number];

export interface LicenceClaims {
  readonly features: readonly Feature[];
  /** From this moment on the key is worth nothing; milliseconds since 1970. */
  readonly expiresAtMs: number;
  /** Before this moment it is worth nothing yet; null for no such moment. */
  readonly notBeforeMs: number | null;
}

/** Characters; an issued key has some 400. */
const TOKEN_LENGTH_MAX = 16_384;
/** Seconds: up to here a time is a time of JavaScript. */
const SECONDS_MAX = 8_640_000_000_000;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A key taken apart, and nothing of it verified. */
export interface LicenceToken {
  readonly claims: LicenceClaims;
  /** What the signature is made over. */
  readonly signed: Uint8Array;
  readonly signature: Uint8Array;
}

/** Errors: `licence_invalid` for what is no key. Whether it may be believed says `isSignedBy`. */
export function readLicence(text: string): LicenceToken {
  const token = text.trim();
  const parts = token.split('.', 4);
  if (token.length > TOKEN_LENGTH_MAX || parts.length !== 3)
    throw invalid('It is not a signed token (three parts separated by dots). Copy it again, in full.');
  const [header, payload, signature] = parts as [string, string, string];
  const { alg, crit } = objectOf(header, 'header');
  if (alg !== 'EdDSA' || crit !== undefined)
    throw invalid('It is not signed with EdDSA, the only supported algorithm. Have a new one issued.');
  const bytes = decodeBase64Url(signature);
  if (bytes === null) throw invalid('Its signature is not Base64url. Copy it again, in full.');
  return {
    claims: claimsOf(objectOf(payload, 'payload')),
    signed: encodeText(`${header}.${payload}`),
    signature: bytes,
  };
}

/** Errors: `licence_invalid` for what is no public key. */
export function isSignedBy({ signed, signature }: LicenceToken, publicKey: string, keys: Keys): boolean {
  return keys.ed25519Verify(publicKey, signed, signature);
}

type Members = Readonly<Record<string, unknown>>;

function objectOf(part: string, what: string): Members {
  const bytes = decodeBase64Url(part);
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes!));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Members;
  } catch {
    // Reported below: to the reader it is all the same what exactly is broken.
  }
  throw invalid(`Its ${what} is not a JSON object in Base64url. Copy it again, in full.`);
}

function claimsOf(members: Members): LicenceClaims {
  const expiresAtMs = timeOf(members, 'exp');
  if (expiresAtMs === null) throw invalid('It does not say when it expires (claim exp). Have a new one issued.');
  return {
    features: FEATURES.filter((feature) => isGranted(members, feature)),
    expiresAtMs,
    notBeforeMs: timeOf(members, 'nbf'),
  };
}

/** `true`, also as a text in any case. */
function isGranted(members: Members, name: Feature): boolean {
  const value = Object.hasOwn(members, name) ? members[name] : false;
  return value === true || (typeof value === 'string' && value.toLowerCase() === 'true');
}

function timeOf(members: Members, name: string): number | null {
  const seconds = members[name];
  if (seconds === undefined) return null;
  if (typeof seconds !== 'number' || !(seconds >= 0 && seconds <= SECONDS_MAX))
    throw invalid(`Its claim ${name} is not a time in seconds. Have a new one issued.`);
  return seconds * 1_000;
}

function invalid(message: string): SkuaError {
  return new SkuaError('licence_invalid', message);
}
