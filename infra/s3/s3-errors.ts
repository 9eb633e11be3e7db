import { SkuaError } from '../../core/base/errors.ts';
import type { ErrorCode } from '../../core/base/errors.ts';
import { systemCode } from '../fs/fs-errors.ts';

/** What a failed request means. */
export interface S3Failure {
  readonly error: SkuaError;
  /** A repeat may succeed. */
  readonly isRetryable: boolean;
  /** The server surely did nothing. */
  readonly isDefinite: boolean;
  /** As the server asked for, in milliseconds; null when it did not. */
  readonly retryAfterMs: number | null;
}

/** Where requests go, for messages. */
export interface S3Target {
  readonly place: string;
  readonly bucket: string;
  readonly endpoint: string | null;
  readonly region: string;
}

interface ServiceError {
  readonly name?: string;
  readonly Code?: string;
  readonly message?: string;
  readonly Region?: string;
  /** Of NotImplemented: which header was not taken. */
  readonly Header?: string;
  readonly $metadata?: {
    readonly httpStatusCode?: number;
    readonly requestId?: string;
    readonly clockSkewCorrected?: boolean;
  };
  readonly $response?: { readonly headers?: Record<string, string> };
}

type Kind = readonly [code: ErrorCode, isRetryable: boolean, isDefinite: boolean, message: (at: Details) => string];
interface Details {
  readonly target: S3Target;
  readonly key: string;
  readonly name: string;
  readonly status: number | undefined;
  readonly text: string;
  readonly region: string | undefined;
  readonly header: string | undefined;
}

const noBucket: Kind = [
  'bucket_not_found',
  false,
  true,
  ({ target }) =>
    `The bucket ${target.bucket} does not exist at ${server(target)}. Create it, or check its name, the endpoint and the account.`,
];
const denied: Kind = [
  'storage_denied',
  false,
  true,
  ({ target, name, status, key }) =>
    `${server(target)} denied access to ${key === '' ? target.place : `${key} in ${target.place}`} (${name}, HTTP ${status}). Check the credentials that are used (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE), and that they may list the bucket and read, write and delete its objects.`,
];
const credentials: Kind = [
  'storage_denied',
  false,
  true,
  ({ target }) =>
    `No credentials were found for ${target.place}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run where a role provides them.`,
];
const wrongRegion: Kind = [
  'wrong_region',
  false,
  true,
  ({ target, region }) =>
    `The bucket ${target.bucket} is not in the region ${target.region}${region === undefined ? '' : ` but in ${region}`}. Set ${region === undefined ? 'the region of the bucket' : 'that region'} with --s3-region or AWS_REGION${target.endpoint === null ? '' : ', and check the endpoint'}.`,
];
const noRegion: Kind = [
  'wrong_region',
  false,
  true,
  ({ target }) => `No region is set for ${target.place}. Set --s3-region or AWS_REGION.`,
];
const skewed: Kind = [
  'clock_skewed',
  false,
  true,
  ({ target }) =>
    `The clock of this machine and that of ${server(target)} are too far apart for requests to be accepted. Set this machine's clock, for example by NTP.`,
];
const noSpace: Kind = [
  'disk_full',
  false,
  true,
  ({ target, name, key }) =>
    `${server(target)} has no space left for ${key} in ${target.place} (${name}). Free space there, or raise the quota.`,
];
const throttled: Kind = [
  'storage_throttled',
  true,
  false,
  ({ target, name }) =>
    `${server(target)} was too busy and kept refusing requests (${name}). Try again later, or with fewer at a time.`,
];
const unreachable: Kind = [
  'storage_unreachable',
  true,
  false,
  ({ target, name, text }) =>
    `${server(target)} can't be reached (${name}${text === '' ? '' : `: ${text}`}). Check the endpoint and the network, and that the server runs.`,
];
const certificate: Kind = [
  'storage_unreachable',
  false,
  true,
  ({ target, name }) =>
    `The certificate of ${server(target)} is not trusted (${name}). Give its authority in NODE_EXTRA_CA_CERTS, or check the endpoint.`,
];
const inServer: Kind = [
  'io_error',
  true,
  false,
  ({ target, name, status, key }) =>
    `${server(target)} failed at ${key === '' ? target.place : key} (${name}, HTTP ${status}). Try again later; the server's log says more.`,
];
const conflict: Kind = [
  'io_error',
  true,
  false,
  ({ target, name, key }) => `Another request was at work on ${key} in ${target.place} (${name}). Try again.`,
];
const corrupted: Kind = [
  'io_error',
  true,
  true,
  ({ target, name, key }) =>
    `${key} in ${target.place} was damaged on its way (${name}). Try again; if this persists, check the network and the server.`,
];
const unsupported: Kind = [
  'io_error',
  false,
  true,
  ({ target, name, text, header, key }) => {
    const advice =
      header?.toLowerCase() === 'if-none-match'
        ? 'Use a server with conditional writes.'
        : 'Its manual, or its log, says why.';
    const named = header === undefined ? name : `${name}, header ${header}`;
    return `${server(target)} does not support a request for ${key === '' ? target.place : key} that is needed (${named}${text === '' ? '' : `: ${text}`}). ${advice}`;
  },
];
const other: Kind = [
  'io_error',
  false,
  true,
  ({ target, name, status, key, text }) =>
    `${server(target)} refused a request for ${key === '' ? target.place : key} (${name}, HTTP ${status ?? 'none'}): ${text}`,
];
/** Not from the server, and nothing that is known: a request may have been on its way. */
const strange: Kind = [
  'io_error',
  false,
  false,
  ({ target, key, name, text }) =>
    `A request for ${key === '' ? target.place : key} failed in an unknown way (${name}): ${text}`,
];

/** By the name that the server gives; what is not here goes by the status. */
const BY_NAME: Readonly<Record<string, Kind>> = {
  NoSuchBucket: noBucket,
  InvalidBucketName: noBucket,
  CredentialsProviderError: credentials,
  TokenProviderError: credentials,
  PermanentRedirect: wrongRegion,
  TemporaryRedirect: wrongRegion,
  AuthorizationHeaderMalformed: wrongRegion,
  IllegalLocationConstraint: wrongRegion,
  IllegalLocationConstraintException: wrongRegion,
  InvalidRegionName: wrongRegion,
  RequestTimeTooSkewed: skewed,
  RequestExpired: skewed,
  QuotaExceeded: noSpace,
  EntityTooLarge: noSpace,
  InsufficientStorage: noSpace,
  XMinioStorageFull: noSpace,
  ServiceQuotaExceeded: noSpace,
  InsufficientCapacity: noSpace,
  SlowDown: throttled,
  SlowDownRead: throttled,
  SlowDownWrite: throttled,
  Throttling: throttled,
  ThrottlingException: throttled,
  TooManyRequests: throttled,
  TooManyRequestsException: throttled,
  RequestLimitExceeded: throttled,
  BandwidthLimitExceeded: throttled,
  RequestTimeout: unreachable,
  TimeoutError: unreachable,
  BadDigest: corrupted,
  XAmzContentChecksumMismatch: corrupted,
  XAmzContentSHA256Mismatch: corrupted,
  IncompleteBody: corrupted,
  OperationAborted: conflict,
  ConditionalRequestConflict: conflict,
  ConcurrentModification: conflict,
  NotImplemented: unsupported,
};

const CERTIFICATE = /CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO_VERIFY/;

/** What failed and what to do about it. No message holds more of the server's words than an unknown error needs. */
export function s3Failure(cause: unknown, target: S3Target, key: string): S3Failure {
  if (cause instanceof SkuaError) return { error: cause, isRetryable: false, isDefinite: true, retryAfterMs: null };
  const error = (cause ?? {}) as ServiceError;
  const status = error.$metadata?.httpStatusCode;
  const headers = error.$response?.headers ?? {};
  const system = systemCode(cause);
  const name = nameOf(error, status, system);
  const details: Details = {
    target,
    key,
    name,
    status,
    text: plainText(error),
    region: error.Region ?? headers['x-amz-bucket-region'],
    header: error.Header,
  };
  const [code, isRetryable, isDefinite, message] = kindOf(error, name, status, system);
  const data = {
    key,
    place: target.place,
    ...(status !== undefined && { status }),
    serverCode: name,
    ...(error.$metadata?.requestId !== undefined && { requestId: error.$metadata.requestId }),
  };
  return {
    error: new SkuaError(code, message(details), data),
    // The SDK has learned the server's time from the answer: the next request carries it.
    isRetryable: isRetryable || error.$metadata?.clockSkewCorrected === true,
    isDefinite,
    retryAfterMs: retryAfter(headers['retry-after']),
  };
}

function kindOf(error: ServiceError, name: string, status: number | undefined, system: string): Kind {
  const known = Object.hasOwn(BY_NAME, name) ? BY_NAME[name] : undefined;
  if (known !== undefined) return known;
  if (status === undefined || status < 300) {
    if (CERTIFICATE.test(system)) return certificate;
    if (error.message === 'Region is missing') return noRegion;
    if (/checksum mismatch/i.test(error.message ?? '')) return corrupted;
    return system !== 'unknown' || status !== undefined || name === 'NetworkingError' ? unreachable : strange;
  }
  if (status === 301 || status === 307 || status === 308) return wrongRegion;
  if (status === 401 || status === 403) return denied;
  if (status === 408) return unreachable;
  if (status === 409) return conflict;
  if (status === 413 || status === 507) return noSpace;
  if (status === 429 || status === 503) return throttled;
  if (status === 501) return unsupported;
  return status >= 500 ? inServer : other;
}

function nameOf(error: ServiceError, status: number | undefined, system: string): string {
  const name = error.Code ?? error.name;
  if (name !== undefined && name !== 'Error' && name !== 'TypeError' && name !== 'UnknownError' && name !== 'Unknown')
    return name;
  if (system !== 'unknown') return system;
  return status === undefined ? 'no reply' : `HTTP ${status}`;
}

function plainText(error: ServiceError): string {
  const text = error.message ?? '';
  return text === 'UnknownError' || text === error.name ? '' : text.slice(0, 300);
}

function server(target: S3Target): string {
  return target.endpoint ?? 'S3';
}

/** Seconds only: servers send no dates here. */
function retryAfter(value: string | undefined): number | null {
  const seconds = Number(value);
  return value === undefined || !Number.isFinite(seconds) || seconds < 0 ? null : seconds * 1_000;
}
