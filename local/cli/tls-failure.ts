import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import * as tls from 'node:tls';

/**
 * Why a connection failed, where TLS is the reason: which authority vouches for which certificate, until when, and for
 * which names.
 */

interface TlsFailure {
  readonly code:
    | 'certificate_untrusted'
    | 'certificate_expired'
    | 'certificate_name'
    | 'certificate_invalid'
    | 'tls_expected'
    | 'tls_not_spoken';
  readonly message: string;
}

/** How long a second look at the other side may take, in milliseconds. */
const LOOK_MS_MAX = 3_000;
/** Most certificates of a chain that are looked at. */
const CHAIN_MAX = 10;
/** Characters of a name that a message repeats: the other side has chosen it. */
const NAME_LENGTH_MAX = 300;

/** OpenSSL's codes for a chain that does not end at a trusted authority. */
const UNTRUSTED: ReadonlySet<unknown> = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_UNTRUSTED',
]);
/** Other things that are wrong with certificates. */
const INVALID: ReadonlySet<unknown> = new Set([
  'CERT_REVOKED',
  'CERT_REJECTED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_CHAIN_TOO_LONG',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
]);
/**
 * How a connection ends that speaks plain HTTP to a server that expects TLS; the answer may be an alert, which is no
 * HTTP either.
 */
const CUT_OFF: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** Whether a connection failed because no trusted authority vouches for the other side. Nothing was sent then. */
export function isUntrusted(error: unknown): boolean {
  return UNTRUSTED.has(codeOf(error));
}

/**
 * Null where something else is the reason. `file`: where further authorities came from; `option`: what names the URL.
 */
export async function explainTls(
  error: unknown,
  url: string,
  { file, option }: { readonly file: string | null; readonly option: string },
): Promise<TlsFailure | null> {
  const { protocol, host } = new URL(url);
  const code = codeOf(error);
  if (protocol === 'http:')
    return (CUT_OFF.has(code) || String(code).startsWith('HPE_')) && (await presented(url)) !== null
      ? {
          code: 'tls_expected',
          message: `${host} speaks TLS, and ${option} says http://. Write https://${host} instead.`,
        }
      : null;
  if (isUntrusted(error)) return untrusted(host, await presented(url), file);
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') return outOfDate(host, await presented(url));
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return otherName(url, await presented(url), option);
  if (INVALID.has(code))
    return {
      code: 'certificate_invalid',
      message: `The certificate of ${host} was not accepted (${String(code)}). Check the certificate and those of its authorities.`,
    };
  return isNoTls(error)
    ? {
        code: 'tls_not_spoken',
        message: `${host} does not speak TLS, and ${option} says https://. Write http://${host} instead, if that is a node without TLS; or start the node with a certificate.`,
      }
    : null;
}

function codeOf(error: unknown): unknown {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  return cause?.code ?? code;
}

/** What OpenSSL says of an answer that is no TLS record. */
function isNoTls(error: unknown): boolean {
  return /wrong version number|packet length too long|http request/i.test((error as Error).message);
}

/** The certificate that the other side shows, unverified: for messages only. Null where it shows none in time. */
function presented(url: string): Promise<X509Certificate | null> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = tls.connect({
      host,
      port: Number(port || (url.startsWith('https:') ? 443 : 80)),
      rejectUnauthorized: false,
      ...(isIP(host) === 0 && { servername: host }),
    });
    const end = (certificate: X509Certificate | null) => {
      clearTimeout(late);
      resolve(certificate);
      socket.destroy();
    };
    const late = setTimeout(() => end(null), LOOK_MS_MAX);
    socket.on('secureConnect', () => end(socket.getPeerX509Certificate() ?? null));
    socket.on('error', () => end(null));
  });
}

/** From the other side's own to the last that it shows. */
function chainOf(certificate: X509Certificate): readonly X509Certificate[] {
  const chain: X509Certificate[] = [];
  for (
    let next: X509Certificate | undefined = certificate;
    next !== undefined && chain.length < CHAIN_MAX;
    next = next.issuerCertificate
  ) {
    if (chain.some(({ fingerprint256 }) => fingerprint256 === next!.fingerprint256)) break;
    chain.push(next);
  }
  return chain;
}

function untrusted(host: string, certificate: X509Certificate | null, file: string | null): TlsFailure {
  const where = file === null ? 'this machine does not trust' : `neither this machine nor ${file} trusts`;
  const code = 'certificate_untrusted';
  if (certificate === null)
    return {
      code,
      message: `The certificate of ${host} was issued by an authority that ${where}. Give the certificate of that authority with --ca FILE or SKUA_CA.`,
    };
  const last = chainOf(certificate).at(-1)!;
  const name = nameOf(certificate.subject);
  if (last === certificate && certificate.subject === certificate.issuer)
    return {
      code,
      message: `The certificate of ${host} (${name}) is self-signed, and ${where} it. Give it with --ca FILE or SKUA_CA if it is the right one (SHA-256 ${certificate.fingerprint256}).`,
    };
  return {
    code,
    message: `The certificate of ${host} (${name}) was issued by ${nameOf(last.issuer)}, an authority that ${where}. Give the certificate of that authority with --ca FILE or SKUA_CA.`,
  };
}

function outOfDate(host: string, certificate: X509Certificate | null): TlsFailure {
  const now = Date.now();
  const chain = certificate === null ? [] : chainOf(certificate);
  const old = chain.find(({ validToDate }) => validToDate.getTime() < now);
  const early = chain.find(({ validFromDate }) => validFromDate.getTime() > now);
  const of = (one: X509Certificate) =>
    one === certificate
      ? `The certificate of ${host} (${nameOf(one.subject)})`
      : `The certificate of ${nameOf(one.subject)}, an authority of ${host},`;
  const code = 'certificate_expired';
  if (old !== undefined)
    return {
      code,
      message: `${of(old)} expired on ${old.validToDate.toISOString()}. Replace it there and reload the configuration.`,
    };
  if (early !== undefined)
    return {
      code,
      message: `${of(early)} is not valid before ${early.validFromDate.toISOString()}. Check the clock of this machine.`,
    };
  return {
    code,
    message: `A certificate of ${host} is not valid at this time. Replace it there and reload the configuration, or correct the clock of this machine.`,
  };
}

function otherName(url: string, certificate: X509Certificate | null, option: string): TlsFailure {
  const { hostname } = new URL(url);
  const names = (certificate?.subjectAltName ?? '').replaceAll('IP Address:', '').replaceAll('DNS:', '');
  const is = names === '' ? 'names no host' : `is for ${cleaned(names)}`;
  return {
    code: 'certificate_name',
    message: `The certificate that ${new URL(url).host} shows ${is}, and not for ${hostname}. ${names === '' ? '' : `Name one of these in ${option}, or give`}${names === '' ? 'Give' : ''} the node a certificate for ${hostname}.`,
  };
}

/** A subject or issuer on one line. */
function nameOf(subject: string | undefined): string {
  return `"${cleaned((subject ?? '').split('\n').join(', '))}"`;
}

/** Nothing that a terminal would obey. */
function cleaned(name: string): string {
  return name.replaceAll(/\p{Cc}+/gu, ' ').slice(0, NAME_LENGTH_MAX);
}
