import { SkuaError } from '../../base/errors.ts';
import type { Keys } from '../../ports/keys.ts';
import type { SignatureSettings } from '../api.ts';
import { checkSignatureSettings, schemeOf } from '../format/schemes.ts';
import type { HeaderNames, SignatureScheme } from '../format/schemes.ts';

/**
 * Signatures of calls.
 *
 * A signature counts in its canonical text only: lower-case hex, or Base64 with padding and without stray bits. It is
 * made anew, written in that text and compared with what came, in a time that does not depend on where they differ. So
 * two texts never stand for one signature, and upper-case hex, white space or another alphabet are refused.
 */

/** Characters of each header that is looked at; more is refused unread. */
export const SIGNATURE_HEADER_LENGTH_MAX = 4_096;
/** Signatures in one header; more are refused. */
export const SIGNATURES_MAX = 16;
/** Characters of a signed id. */
const ID_LENGTH_MAX = 256;
/** Unix seconds, up to the year 33658; as the sender writes them, since their text is signed. */
const TIMESTAMP = /^(?:0|[1-9][0-9]{0,11})$/;
/**
 * Anything visible but a full stop: that would let the end of an id pass for a time, and a time for the start of a
 * body.
 */
const ID = /^[\x21-\x2D\x2F-\x7E]+$/;

export type SignatureOutcome =
  /** `secretIndex` tells which secret signed: 0 for `signature:secret`, 1 for `signature:secrets:0`. */
  | { readonly kind: 'valid'; readonly secretIndex: number }
  | {
      readonly kind: 'refused';
      readonly reason: SignatureRefusal;
      /** The lower-cased name of the header at fault. */ readonly header: string;
    };

/** Why a signature does not count; fixed words, which hold nothing of the call. */
type SignatureRefusal =
  | 'signature-missing'
  | 'signature-malformed'
  | 'signature-wrong'
  | 'timestamp-missing'
  | 'timestamp-malformed'
  | 'timestamp-outside-tolerance'
  | 'id-missing'
  | 'id-malformed';

export interface SignatureVerifier {
  /** `headers` have lower-cased names; `body` is what was received; `nowMs` is wall-clock time. Never throws. */
  verify(headers: ReadonlyMap<string, string>, body: Uint8Array, nowMs: number): SignatureOutcome;
}

/**
 * Prepares the keys once for many calls. Throws `invalid_connector` for settings that `checkSignatureSettings` refuses.
 */
export function createSignatureVerifier(
  keys: Keys,
  settings: SignatureSettings,
  secrets: readonly string[],
): SignatureVerifier {
  const scheme = checkedScheme(settings, secrets);
  const prepared = secrets.map((secret) => scheme.keyOf(secret)!);
  const names = headerNames(scheme);
  return {
    verify: (headers, body, nowMs) =>
      verify({ keys, scheme, names, prepared, toleranceMs: settings.timestampToleranceMs }, headers, body, nowMs),
  };
}

interface CallToSign {
  readonly body: Uint8Array;
  /** Unix time of signing, whole seconds. */
  readonly timestampS: number;
  /** The delivery's id; only schemes that name deliveries in a header send it. */
  readonly id: string | null;
}

/**
 * The headers that a sender would add to this call. Throws `invalid_connector` for unusable settings or an unusable id.
 */
export function signCall(
  keys: Keys,
  settings: SignatureSettings,
  secret: string,
  { body, timestampS, id }: CallToSign,
): readonly (readonly [name: string, value: string])[] {
  const scheme = checkedScheme(settings, [secret]);
  if (scheme.signedIdHeader !== null && (id === null || !isId(id)))
    throw new SkuaError(
      'invalid_connector',
      `${scheme.name} signs the delivery id: give one of at most ${ID_LENGTH_MAX} visible ASCII characters without a full stop.`,
    );
  const timestamp = String(timestampS);
  const signature =
    scheme.prefix +
    keys.hmacText(scheme.hash, scheme.keyOf(secret)!, signedBytes(scheme, timestamp, id ?? '', body), scheme.encoding);
  const { timestamp: place, deliveryHeader } = scheme;
  const headers: [string, string][] = [];
  if (deliveryHeader !== null && id !== null) headers.push([deliveryHeader, id]);
  if (place !== null && 'header' in place) headers.push([place.header, timestamp]);
  headers.push([
    scheme.header,
    place !== null && 'itemPrefix' in place
      ? `${place.itemPrefix}${timestamp}${scheme.separator}${signature}`
      : signature,
  ]);
  return headers;
}

function checkedScheme(settings: SignatureSettings, secrets: readonly string[]): SignatureScheme {
  const violations = checkSignatureSettings(settings, secrets);
  if (violations.length > 0)
    throw new SkuaError(
      'invalid_connector',
      violations.map(({ field, description }) => `${field}: ${description}`).join(' '),
      { violations },
    );
  return schemeOf(settings)!;
}

/** Everything that stays the same from call to call. */
interface Prepared {
  readonly keys: Keys;
  readonly scheme: SignatureScheme;
  readonly names: HeaderNames;
  readonly prepared: readonly Uint8Array[];
  readonly toleranceMs: number;
}

/** Lower-cased; of what a scheme does not have, the header in which it would stand. */
function headerNames({ header, timestamp, signedIdHeader }: SignatureScheme): HeaderNames {
  const signature = header.toLowerCase();
  return {
    signature,
    timestamp: timestamp !== null && 'header' in timestamp ? timestamp.header.toLowerCase() : signature,
    id: signedIdHeader?.toLowerCase() ?? signature,
  };
}

function verify(
  from: Prepared,
  headers: ReadonlyMap<string, string>,
  body: Uint8Array,
  nowMs: number,
): SignatureOutcome {
  const { keys, scheme, prepared } = from;
  const names = namesIn(headers, scheme, from.names);
  const text = headers.get(names.signature);
  if (text === undefined || text === '') return refused('signature-missing', names.signature);
  const items = text.length > SIGNATURE_HEADER_LENGTH_MAX ? [] : itemsOf(scheme, text);
  const signatures = items
    .filter((item) => item.startsWith(scheme.prefix))
    .map((item) => item.slice(scheme.prefix.length));
  if (signatures.length === 0 || signatures.length > SIGNATURES_MAX || signatures.includes(''))
    return refused('signature-malformed', names.signature);
  const timestamp = timestampOf(from, names, headers, items, nowMs);
  if (typeof timestamp !== 'string') return timestamp;
  let id = '';
  if (scheme.signedIdHeader !== null) {
    id = headers.get(names.id) ?? '';
    if (id === '') return refused('id-missing', names.id);
    if (!isId(id)) return refused('id-malformed', names.id);
  }
  const signed = signedBytes(scheme, timestamp, id, body);
  const given = signatures.map(asciiBytes);
  for (let index = 0; index < prepared.length; index++) {
    const expected = asciiBytes(keys.hmacText(scheme.hash, prepared[index]!, signed, scheme.encoding));
    for (const each of given) if (keys.equal(each, expected)) return { kind: 'valid', secretIndex: index };
  }
  return refused('signature-wrong', names.signature);
}

/**
 * The names under which a call is signed: all of one family, since what stands under those of the other is not signed.
 */
function namesIn(
  headers: ReadonlyMap<string, string>,
  { formerNames }: SignatureScheme,
  names: HeaderNames,
): HeaderNames {
  return formerNames === null || headers.has(names.signature) || !headers.has(formerNames.signature)
    ? names
    : formerNames;
}

function itemsOf({ separator }: SignatureScheme, text: string): readonly string[] {
  return separator === null ? [text] : text.split(separator);
}

/** The text of the time, empty where the scheme has none; or why it does not count. */
function timestampOf(
  { scheme, toleranceMs }: Prepared,
  names: HeaderNames,
  headers: ReadonlyMap<string, string>,
  items: readonly string[],
  nowMs: number,
): string | SignatureOutcome {
  const place = scheme.timestamp;
  if (place === null) return '';
  const header = headers.get(names.timestamp);
  const found =
    'itemPrefix' in place
      ? items.filter((item) => item.startsWith(place.itemPrefix)).map((item) => item.slice(place.itemPrefix.length))
      : header === undefined || header === ''
        ? []
        : [header];
  if (found.length === 0) return refused('timestamp-missing', names.timestamp);
  const text = found[0]!;
  // Which of two times was signed is not known.
  if (found.length > 1 || !TIMESTAMP.test(text)) return refused('timestamp-malformed', names.timestamp);
  return Math.abs(nowMs - Number(text) * 1000) <= toleranceMs
    ? text
    : refused('timestamp-outside-tolerance', names.timestamp);
}

function isId(id: string): boolean {
  return id.length <= ID_LENGTH_MAX && ID.test(id);
}

function signedBytes({ signedHead }: SignatureScheme, timestamp: string, id: string, body: Uint8Array): Uint8Array {
  const head = signedHead(timestamp, id);
  if (head === '') return body;
  const signed = new Uint8Array(head.length + body.length);
  putAscii(head, signed);
  signed.set(body, head.length);
  return signed;
}

function asciiBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  putAscii(text, bytes);
  return bytes;
}

/**
 * Several times cheaper than an encoder for short texts. A character beyond ASCII becomes a byte that no signature has.
 */
function putAscii(text: string, out: Uint8Array): void {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    out[i] = code < 128 ? code : 0;
  }
}

function refused(reason: SignatureRefusal, header: string): SignatureOutcome {
  return { kind: 'refused', reason, header };
}
