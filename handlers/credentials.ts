import { SkuaError } from '../core/errors.ts';
import { decodeText } from '../core/text.ts';

/** Longest `Authorization` header that is looked at, in characters. */
export const CREDENTIALS_LENGTH_MAX = 8_192;

export interface Credentials {
  readonly name: string;
  readonly password: string;
}

const SCHEME = 'Basic';
const COLON = 58;
const SPACE = 32;
const COMMA = ',';
/** Groups of four characters, the last one filled up with `=`. The decoder of the platform would take less. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Name and password of Basic credentials (options-and-security.md section 6.2). Null for what is none, which makes the
 * caller anonymous: another scheme, a text without colon, and more than one header (they arrive joined by a comma).
 * Throws `not_authenticated` for what is no Base64.
 */
export function credentialsOf(header: string): Credentials | null {
  if (!header.startsWith(SCHEME)) return null;
  if (header.length === SCHEME.length) throw malformed('There is nothing behind Basic in the Authorization header.');
  if (header.charCodeAt(SCHEME.length) !== SPACE) return null;
  if (header.length > CREDENTIALS_LENGTH_MAX) throw malformed(`The Authorization header has more than ${CREDENTIALS_LENGTH_MAX} characters.`);
  const text = header.slice(SCHEME.length + 1).trim();
  if (text === '') throw malformed('There is nothing behind Basic in the Authorization header.');
  if ((text.length & 3) !== 0 || !BASE64.test(text)) {
    if (text.includes(COMMA)) return null;
    throw malformed('What follows Basic in the Authorization header is no Base64.');
  }
  const decoded = utf8Of(atob(text));
  for (let i = 0; i < decoded.length; i++) {
    if (decoded.charCodeAt(i) === COLON) return { name: decoded.slice(0, i), password: decoded.slice(i + 1) };
  }
  return null;
}

function malformed(what: string): SkuaError {
  return new SkuaError('not_authenticated', `${what} Send "Basic" and the Base64 of name:password in UTF-8.`);
}

/** The text of which `binary` has one byte a character. What is no UTF-8 becomes replacement characters and matches nothing. */
export function utf8Of(binary: string): string {
  for (let i = 0; i < binary.length; i++) {
    if (binary.charCodeAt(i) > 127) return decodeText(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
  }
  return binary;
}
