import type { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../../core/ports/clock.ts';
import { throwIfAborted } from '../../core/ports/object-store.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { s3Failure } from './s3-errors.ts';
import type { S3Failure, S3Target } from './s3-errors.ts';

type Sdk = typeof import('@aws-sdk/client-s3');
export type S3Place = Extract<ObjectLocation, { kind: 's3' }>;

export interface S3Timeouts {
  /** Longest time to connect, in milliseconds. */
  readonly connectMs: number;
  /** Longest time without a byte either way, in milliseconds. */
  readonly idleMs: number;
}

export interface S3Connection {
  readonly sdk: Sdk;
  readonly client: S3Client;
  /** Requests carry checksums in headers that not every service knows. */
  readonly hasChecksums: boolean;
  readonly target: S3Target;
}

export const S3_TIMEOUTS: S3Timeouts = { connectMs: 5_000, idleMs: 30_000 };

/**
 * S3 itself knows all checksums; of other servers some refuse a request with such headers. Setting the SDK's own
 * variable to WHEN_SUPPORTED asks for them.
 */
function checksums(endpoint: string | null) {
  const policyOf = (name: string) =>
    endpoint === null || process.env[name]?.toUpperCase() === 'WHEN_SUPPORTED' ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
  return {
    requestChecksumCalculation: policyOf('AWS_REQUEST_CHECKSUM_CALCULATION'),
    responseChecksumValidation: policyOf('AWS_RESPONSE_CHECKSUM_VALIDATION'),
  } as const;
}

/** Servers of their own take any region, and most are set up with this one. */
const REGION_OF_OTHERS = 'us-east-1';

/**
 * Loads the SDK, which takes a while and memory, and makes a client. Credentials come by the SDK's usual chain; so do
 * region and endpoint where the location has none. The SDK itself never repeats a request: which request is repeated is
 * decided in one place here.
 */
export async function connect(location: S3Place, timeouts: S3Timeouts): Promise<S3Connection> {
  const sdk: Sdk = await import('@aws-sdk/client-s3');
  const endpoint = location.endpoint ?? process.env['AWS_ENDPOINT_URL_S3'] ?? process.env['AWS_ENDPOINT_URL'] ?? null;
  const policy = checksums(endpoint);
  const make = (region: string | null) =>
    new sdk.S3Client({
      ...(endpoint !== null && { endpoint, forcePathStyle: true }),
      ...(region !== null && { region }),
      ...policy,
      maxAttempts: 1,
      // Waiting for "100 Continue" costs a connection for each large part.
      expectContinueHeader: false,
      requestHandler: { connectionTimeout: timeouts.connectMs, socketTimeout: timeouts.idleMs },
    });
  const where = prefixedPlace(location);
  let client = make(location.region);
  let region: string;
  try {
    region = await client.config.region();
  } catch (error) {
    client.destroy();
    if (endpoint === null)
      throw s3Failure(error, { place: where, bucket: location.bucket, endpoint, region: '' }, '').error;
    region = REGION_OF_OTHERS;
    client = make(region);
  }
  return {
    sdk,
    client,
    hasChecksums: policy.requestChecksumCalculation === 'WHEN_SUPPORTED',
    target: {
      place: where,
      bucket: location.bucket,
      endpoint: endpoint === null ? null : withoutSecrets(endpoint),
      region,
    },
  };
}

function prefixedPlace({ bucket, prefix }: S3Place): string {
  return prefix === '' ? `s3://${bucket}` : `s3://${bucket}/${prefix}`;
}

/** An endpoint may have been given with a user and password in it: messages leave them out. */
function withoutSecrets(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).origin : endpoint;
}

/** The options of a request that a signal may end. */
export function sending(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal === undefined ? {} : { abortSignal: signal };
}

/** The HTTP status of a failed request; undefined when there was no reply. */
export function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;
}

export interface RetryLimits {
  readonly attemptsMax: number;
  /** No attempt begins later than this after the first, in milliseconds. */
  readonly totalMsMax: number;
  /** The first wait in milliseconds, doubled each time; a busy server gets more. */
  readonly waitMs: number;
  readonly busyWaitMs: number;
  readonly waitMsMax: number;
}

export const RETRY_LIMITS: RetryLimits = {
  attemptsMax: 6,
  totalMsMax: 60_000,
  waitMs: 100,
  busyWaitMs: 500,
  waitMsMax: 20_000,
};

export interface RetryTools {
  readonly clock: Clock;
  /** 0 to below 1: spreads the repeats of many clients. */
  readonly random: () => number;
  readonly limits: RetryLimits;
}

/** Repeats what may be repeated, within the limits, after waits that grow; the last failure is thrown. */
export async function withRetries<T>(
  tools: RetryTools,
  key: string,
  signal: AbortSignal | undefined,
  attempt: () => Promise<T>,
  judge: (error: unknown) => S3Failure,
): Promise<T> {
  const { clock, limits } = tools;
  const began = clock.monotonicMs();
  for (let n = 1; ; n++) {
    throwIfAborted(signal, key);
    let failure: S3Failure;
    try {
      return await attempt();
    } catch (error) {
      throwIfAborted(signal, key);
      failure = judge(error);
    }
    const wait = waitBefore(tools, n, failure);
    if (!failure.isRetryable || n >= limits.attemptsMax || clock.monotonicMs() - began + wait > limits.totalMsMax)
      throw failure.error;
    await clock.sleep(wait, signal);
  }
}

/** Between half and all of a wait that doubles, and never less than the server asked for. */
function waitBefore({ random, limits }: RetryTools, n: number, failure: S3Failure): number {
  const base = failure.error.code === 'storage_throttled' ? limits.busyWaitMs : limits.waitMs;
  const most = Math.min(base * 2 ** (n - 1), limits.waitMsMax);
  return Math.max(most * (0.5 + random() / 2), failure.retryAfterMs ?? 0);
}
