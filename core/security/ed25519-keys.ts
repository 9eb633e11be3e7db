import { equalBytes } from '../bytes.ts';
import { SkuaError } from '../errors.ts';
import { ED25519_KEY_BYTES } from '../ports/keys.ts';
import { decodeBase64, encodeBase64 } from '../base64.ts';

/**
 * Ed25519 keys in the files that other programs use too (RFC 8410): PEM around a structure whose first bytes are always
 * the same and whose last 32 are the key.
 */

/** SubjectPublicKeyInfo. */
const PUBLIC_PREFIX = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00);
/** PKCS #8, version 1. */
const PRIVATE_PREFIX = Uint8Array.of(0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20);
/** Characters; such a file has less than 200. */
const PEM_LENGTH_MAX = 4_096;

export function publicKeyDer(key: Uint8Array): Uint8Array {
  return joined(PUBLIC_PREFIX, key);
}

export function privateKeyDer(key: Uint8Array): Uint8Array {
  return joined(PRIVATE_PREFIX, key);
}

export function publicKeyPem(key: Uint8Array): string {
  return pemOf('PUBLIC KEY', publicKeyDer(key));
}

export function privateKeyPem(key: Uint8Array): string {
  return pemOf('PRIVATE KEY', privateKeyDer(key));
}

/** The key in the text of a file. Errors: `licence_invalid`. */
export function parsePublicKeyPem(text: string): Uint8Array {
  return parse(text, 'PUBLIC KEY', PUBLIC_PREFIX);
}

/** The key in the text of a file. Errors: `licence_invalid`. */
export function parsePrivateKeyPem(text: string): Uint8Array {
  return parse(text, 'PRIVATE KEY', PRIVATE_PREFIX);
}

function joined(prefix: Uint8Array, key: Uint8Array): Uint8Array {
  if (key.length !== ED25519_KEY_BYTES) throw new TypeError(`An Ed25519 key has ${ED25519_KEY_BYTES} bytes, not ${key.length}.`);
  const bytes = new Uint8Array(prefix.length + key.length);
  bytes.set(prefix);
  bytes.set(key, prefix.length);
  return bytes;
}

function pemOf(label: string, der: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${encodeBase64(der)}\n-----END ${label}-----\n`;
}

function parse(text: string, label: string, prefix: Uint8Array): Uint8Array {
  const pem = text.trim();
  const match = pem.length > PEM_LENGTH_MAX ? null : /^-----BEGIN ([A-Z0-9 ]+)-----\s([A-Za-z0-9+/=\s]+)\s-----END ([A-Z0-9 ]+)-----$/.exec(pem);
  if (match === null) throw refused(`It is no ${label.toLowerCase()} in PEM.`);
  const [, begun, body, ended] = match;
  if (begun !== label || ended !== label) throw refused(`It holds a ${begun!.toLowerCase()}, and a ${label.toLowerCase()} is needed.`);
  const der = decodeBase64(body!.replaceAll(/\s/g, ''));
  const isKey = der !== null && der.length === prefix.length + ED25519_KEY_BYTES && equalBytes(der, 0, prefix, 0, prefix.length);
  if (!isKey) throw refused('It holds a key of another kind: only Ed25519 is understood. Make one with `skua license issuer`.');
  return der.slice(prefix.length);
}

function refused(message: string): SkuaError {
  return new SkuaError('licence_invalid', message);
}
