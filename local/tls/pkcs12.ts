import type { X509Certificate } from 'node:crypto';
import { duplexPair } from 'node:stream';
import type { SecureContext } from 'node:tls';
import { connect, createSecureContext, TLSSocket } from 'node:tls';
import type { HeldCertificate } from './certificate-set.ts';
import { refuse } from './problems.ts';

/** Most certificates taken from a file. */
const CERTIFICATES_MAX = 64;

/**
 * The certificates in a PKCS#12 file, the node's first. The TLS library opens such a file but does not say what is in
 * it; so it serves one connection within this process, and the certificates are those that its client is shown.
 * Errors: `certificate_invalid`.
 */
export async function readPkcs12(bytes: Buffer, password: string | null, file: string): Promise<HeldCertificate[]> {
  const first = await presented(open(bytes, password, file)).catch(() => refuse(file, 'The certificate and key in the file can not be used for TLS.'));
  const found: HeldCertificate[] = [];
  for (let next: X509Certificate | undefined = first; next !== undefined && found.length < CERTIFICATES_MAX; next = next.issuerCertificate) {
    found.push({ certificate: next, file });
  }
  return found;
}

function open(pfx: Buffer, password: string | null, file: string): SecureContext {
  if (pfx.includes('-----BEGIN ')) refuse(file, 'The file is PEM. Give its key with CertificatePrivateKeyFile; without one a PKCS#12 file is expected.');
  try {
    return createSecureContext({ pfx, ...(password !== null && { passphrase: password }) });
  } catch (error) {
    const { message } = error as Error;
    if (/mac verify failure/i.test(message)) refuse(file, 'The file could not be opened with this password. Check CertificatePassword.');
    if (/private key/i.test(message)) refuse(file, 'There is no private key in the file, or none that belongs to its certificate.');
    return refuse(file, /unsupported/i.test(message)
      ? 'The file is encrypted in an old way that is not supported. Write it again with a present version of its tool.'
      : 'The file is not PKCS#12. For a certificate in PEM or DER, give its key with CertificatePrivateKeyFile.');
  }
}

/** Shakes hands over a pair of pipes in memory. The chain hangs on the certificate as the server sent it. */
function presented(secureContext: SecureContext): Promise<X509Certificate> {
  const [ours, theirs] = duplexPair();
  const server = new TLSSocket(ours, { isServer: true, secureContext });
  // Nothing is trusted here: the certificates are only looked at.
  const client = connect({ socket: theirs, rejectUnauthorized: false });
  const shaken = new Promise<X509Certificate>((resolve, reject) => {
    client.on('secureConnect', () => {
      const certificate = client.getPeerX509Certificate();
      if (certificate === undefined) reject(new Error('no certificate'));
      else resolve(certificate);
    });
    client.on('error', reject);
    server.on('error', reject);
  });
  return shaken.finally(() => {
    client.destroy();
    server.destroy();
  });
}
