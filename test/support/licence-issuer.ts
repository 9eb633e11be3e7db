import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { encodeBase64Url } from '../../core/base/base64.ts';
import { encodeText } from '../../core/base/text.ts';

/** What RFC 8410 puts before the 32 bytes of a private key, and of a public one. */
const PRIVATE_PREFIX = '302e020100300506032b657004220420';
const PUBLIC_PREFIX = '302a300506032b6570032100';

/** Issues licence keys as any program can that knows JWS (RFC 7515, RFC 8037). Times count in milliseconds. */
export class LicenceIssuer {
  readonly privateKey: string;
  /** The file that a node is given. */
  readonly publicKey: string;

  constructor(seed: Uint8Array) {
    this.privateKey = pemOf('PRIVATE KEY', PRIVATE_PREFIX, seed);
    this.publicKey = createPublicKey(this.privateKey).export({ format: 'pem', type: 'spki' }) as string;
  }

  /** The key that grants these features until then. */
  issue({
    features,
    expiresAtMs,
    notBeforeMs = null,
  }: {
    readonly features: readonly string[];
    readonly expiresAtMs: number;
    readonly notBeforeMs?: number | null;
  }): string {
    return this.token({
      ...(notBeforeMs !== null && { nbf: notBeforeMs / 1_000 }),
      exp: expiresAtMs / 1_000,
      ...Object.fromEntries(features.map((feature) => [feature, true])),
    });
  }

  /** A token of any header and payload, signed as it stands. */
  token(payload: unknown, header: unknown = { alg: 'EdDSA', typ: 'JWT' }): string {
    const part = (value: unknown) =>
      encodeBase64Url(encodeText(typeof value === 'string' ? value : JSON.stringify(value)));
    const signed = `${part(header)}.${part(payload)}`;
    return `${signed}.${encodeBase64Url(this.sign(encodeText(signed)))}`;
  }

  sign(data: Uint8Array): Uint8Array {
    return new Uint8Array(sign(null, data, createPrivateKey(this.privateKey)));
  }
}

/** The file of a public key with these bytes. */
export function publicPemOf(bytes: Uint8Array): string {
  return pemOf('PUBLIC KEY', PUBLIC_PREFIX, bytes);
}

function pemOf(label: string, prefix: string, bytes: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${Buffer.concat([Buffer.from(prefix, 'hex'), bytes]).toString('base64')}\n-----END ${label}-----\n`;
}
