import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

const DAY_MS = 86_400_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
export const { KeyUsageFlags } = x509;
export const NODE_USAGES = [x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth];
export const CLIENT_USAGES = [x509.ExtendedKeyUsage.clientAuth];

export interface Issued {
  /** PEM with a line feed at the end. */
  readonly cert: string;
  readonly der: Buffer;
  /** PKCS#8 in PEM. */
  readonly key: string;
  readonly parsed: x509.X509Certificate;
  readonly keys: webcrypto.CryptoKeyPair;
}

export interface IssueOptions {
  /** Left out, or null, there is none. */
  readonly commonName?: string | null;
  readonly dns?: readonly string[];
  readonly ips?: readonly string[];
  readonly usages?: readonly string[] | null;
  /** What its key is for; left out, anything. */
  readonly keyUsages?: x509.KeyUsageFlags;
  /** Days from now. */
  readonly from?: number;
  readonly to?: number;
  readonly isAuthority?: boolean;
  readonly pathLength?: number;
  /** The authority; left out, it signs itself. */
  readonly by?: Issued;
  readonly rsaBits?: number;
  readonly keys?: webcrypto.CryptoKeyPair;
}

let serial = 0;

/** A certificate made on the spot, valid now unless told otherwise. */
export async function issue(options: IssueOptions): Promise<Issued> {
  const {
    commonName = null,
    dns = [],
    ips = [],
    usages = null,
    from = -1,
    to = 90,
    isAuthority = false,
    by,
    rsaBits,
  } = options;
  const algorithm =
    rsaBits === undefined
      ? ALGORITHM
      : {
          name: 'RSASSA-PKCS1-v1_5',
          hash: 'SHA-256',
          modulusLength: rsaBits,
          publicExponent: new Uint8Array([1, 0, 1]),
        };
  const keys =
    options.keys ??
    ((await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair);
  const now = Date.now();
  const subject = commonName === null ? 'O=Parcels' : `CN=${commonName}`;
  const names = [
    ...dns.map((value) => ({ type: 'dns' as const, value })),
    ...ips.map((value) => ({ type: 'ip' as const, value })),
  ];
  const extensions: x509.Extension[] = [new x509.BasicConstraintsExtension(isAuthority, options.pathLength, true)];
  if (names.length > 0) extensions.push(new x509.SubjectAlternativeNameExtension(names));
  if (options.keyUsages !== undefined) extensions.push(new x509.KeyUsagesExtension(options.keyUsages, true));
  if (usages !== null) extensions.push(new x509.ExtendedKeyUsageExtension([...usages]));
  const parsed = await x509.X509CertificateGenerator.create({
    subject,
    issuer: by === undefined ? subject : by.parsed.subject,
    publicKey: keys.publicKey,
    signingKey: (by?.keys ?? keys).privateKey,
    serialNumber: (++serial).toString(16).padStart(4, '0').padStart(6, '1'),
    notBefore: new Date(now + from * DAY_MS),
    notAfter: new Date(now + to * DAY_MS),
    signingAlgorithm: { ...(by?.keys ?? keys).privateKey.algorithm, hash: 'SHA-256' } as never,
    extensions,
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  return {
    cert: `${parsed.toString('pem').trim()}\n`,
    der: Buffer.from(parsed.rawData),
    parsed,
    keys,
    key: `-----BEGIN PRIVATE KEY-----\n${pkcs8.match(/.{1,64}/g)!.join('\n')}\n-----END PRIVATE KEY-----\n`,
  };
}

export function issueRoot(commonName = 'Parcels Root', options: IssueOptions = {}): Promise<Issued> {
  return issue({ commonName, isAuthority: true, to: 3_650, ...options });
}

/** A node's certificate for this machine. */
export function issueNode(by: Issued, commonName = 'node.parcels.test', options: IssueOptions = {}): Promise<Issued> {
  return issue({ commonName, by, dns: ['localhost'], ips: ['127.0.0.1'], usages: NODE_USAGES, ...options });
}
