import type { KeyObject } from 'node:crypto';
import { createPrivateKey } from 'node:crypto';
import { readBounded } from './read-certificates.ts';
import { refuse } from './problems.ts';

/** Kinds of keys that are read; PEM headers. */
const HEADERS = ['PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY', 'ENCRYPTED PRIVATE KEY'] as const;

/** Reads a private key in PEM. Errors: `certificate_invalid`; its texts never hold anything of the key or the password. */
export async function readPrivateKey(file: string, password: string | null): Promise<KeyObject> {
  const text = (await readBounded(file)).toString('latin1');
  const header = /-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----/.exec(text)?.[1];
  if (header === undefined) refuse(file, 'The file holds no private key in PEM.');
  if (!HEADERS.includes(header as (typeof HEADERS)[number])) refuse(file, `A key of the kind ${header} is not read. Convert it to PKCS#8: openssl pkcs8 -topk8 -in OLD -out NEW.`);
  if (/^Proc-Type: 4,ENCRYPTED/m.test(text)) refuse(file, 'An encrypted key of this old kind is not read. Convert it to PKCS#8: openssl pkcs8 -topk8 -in OLD -out NEW.');
  if (header === 'ENCRYPTED PRIVATE KEY' && (password === null || password === '')) {
    refuse(file, 'The private key is encrypted. Give its password with CertificatePrivateKeyPassword.');
  }
  try {
    return createPrivateKey({ key: text, format: 'pem', ...(password !== null && { passphrase: password }) });
  } catch {
    // The cause is a text of the cryptography library that helps nobody.
    return refuse(file, header === 'ENCRYPTED PRIVATE KEY' ? 'The private key could not be decrypted. Check CertificatePrivateKeyPassword.' : 'The private key is damaged.');
  }
}
