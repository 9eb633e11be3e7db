import { decodeBase64Url, encodeBase64Url } from '../base/base64.ts';
import type { Keys } from '../ports/keys.ts';
import { decodeText, encodeText } from '../base/text.ts';
import type { StreamMark } from './stream-info.ts';
import type { UserRecord } from './user-streams.ts';

/**
 * A session as text: `2.<claims>.<HMAC-SHA256 of what comes before>`, both in Base64 for URLs. It says all that a node
 * has to know but its key, so that nodes keep nothing of a session, and each member of a cluster understands what
 * another has begun.
 */

/** Longest text that is looked at, in characters; browsers keep no cookie of more. */
const VALUE_LENGTH_MAX = 4_096;
const VERSION = '2';
/** What else is signed with the same key can't be taken for a session. */
const SIGNED = encodeText('skua session\n');
const FINGERPRINTED = 'skua user\n';
const FINGERPRINT_BYTES = 16;

export interface SessionClaims {
  readonly keyId: string;
  readonly id: string;
  readonly user: string;
  /** This time selects the key, and is compared with the ends that are kept. */
  readonly issuedMs: number;
  readonly endsMs: number;
  /** Where the user's stream ended. */
  readonly mark: StreamMark;
  /** Of the user's record, see `fingerprintOf`. */
  readonly fingerprint: string;
}

export interface SignedClaims {
  readonly claims: SessionClaims;
  readonly key: Uint8Array;
}

export function formatSession(
  { keyId, id, user, issuedMs, endsMs, mark, fingerprint }: SessionClaims,
  key: Uint8Array,
  keys: Keys,
): string {
  const claims = JSON.stringify([
    keyId,
    id,
    user,
    issuedMs,
    endsMs,
    mark.lastEventNumber,
    mark.metadataVersion,
    fingerprint,
  ]);
  const signed = `${VERSION}.${encodeBase64Url(encodeText(claims))}`;
  return `${signed}.${encodeBase64Url(macOf(signed, key, keys))}`;
}

/**
 * What the text claims, and the key; null for what is no session, or is not signed by the key that belongs to its
 * claims.
 */
export async function parseSession(
  value: string,
  keyOf: (claims: SessionClaims) => Promise<Uint8Array | null>,
  keys: Keys,
): Promise<SignedClaims | null> {
  if (value.length > VALUE_LENGTH_MAX) return null;
  const [version, text, signature, ...more] = value.split('.');
  if (version !== VERSION || text === undefined || signature === undefined || more.length > 0) return null;
  const claims = claimsOf(decodeBase64Url(text));
  const mac = decodeBase64Url(signature);
  if (claims === null || mac === null) return null;
  const key = await keyOf(claims);
  return key !== null && keys.equal(macOf(`${version}.${text}`, key, keys), mac) ? { claims, key } : null;
}

function macOf(signed: string, key: Uint8Array, keys: Keys): Uint8Array {
  const text = encodeText(signed);
  const bytes = new Uint8Array(SIGNED.length + text.length);
  bytes.set(SIGNED);
  bytes.set(text, SIGNED.length);
  return keys.hmac('sha256', key, bytes);
}

function claimsOf(bytes: Uint8Array | null): SessionClaims | null {
  if (bytes === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(decodeText(bytes));
  } catch {
    return null;
  }
  if (!Array.isArray(value) || value.length !== 8) return null;
  const [keyId, id, user, issuedMs, endsMs, lastEventNumber, metadataVersion, fingerprint] = value as unknown[];
  if (
    ![keyId, id, user, fingerprint].every((each) => typeof each === 'string') ||
    ![issuedMs, endsMs, lastEventNumber, metadataVersion].every((each) => Number.isSafeInteger(each))
  )
    return null;
  return {
    keyId: keyId as string,
    id: id as string,
    user: user as string,
    issuedMs: issuedMs as number,
    endsMs: endsMs as number,
    mark: { lastEventNumber: lastEventNumber as number, metadataVersion: metadataVersion as number },
    fingerprint: fingerprint as string,
  };
}

/**
 * What a user's record is, unreadable without the key. Numbers of events alone would not do: after the restore of an
 * older backup another record can come to have the same one.
 */
export function fingerprintOf(
  { loginName, salt, hash, isDisabled, groups }: UserRecord,
  key: Uint8Array,
  keys: Keys,
): string {
  return encodeBase64Url(
    keys
      .hmac('sha256', key, encodeText(FINGERPRINTED + JSON.stringify([loginName, salt, hash, isDisabled, groups])))
      .subarray(0, FINGERPRINT_BYTES),
  );
}
