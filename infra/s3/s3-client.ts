import type { S3Client } from '@aws-sdk/client-s3';
import type { ObjectPlace } from '../../core/ports/object-store.ts';
import { s3Failure } from './s3-errors.ts';
import type { S3Target } from './s3-errors.ts';

export type Sdk = typeof import('@aws-sdk/client-s3');
export type S3Place = Extract<ObjectPlace, { kind: 's3' }>;

export interface S3Timeouts {
  /** Longest time to connect, in milliseconds. */
  readonly connectMs: number;
  /** Longest time without a byte either way, in milliseconds. */
  readonly idleMs: number;
}

export interface S3Connection {
  readonly sdk: Sdk;
  readonly client: S3Client;
  readonly target: S3Target;
}

export const S3_TIMEOUTS: S3Timeouts = { connectMs: 5_000, idleMs: 30_000 };

/** Servers of their own take any region, and most are set up with this one. */
const REGION_OF_OTHERS = 'us-east-1';

/**
 * Loads the SDK, which takes a while and memory, and makes a client. Credentials come by the SDK's usual chain; so do region
 * and endpoint where the place has none. The SDK itself never repeats a request: who may do so is decided in one place here.
 */
export async function connect(place: S3Place, timeouts: S3Timeouts): Promise<S3Connection> {
  const sdk: Sdk = await import('@aws-sdk/client-s3');
  const endpoint = place.endpoint ?? process.env['AWS_ENDPOINT_URL_S3'] ?? process.env['AWS_ENDPOINT_URL'] ?? null;
  const make = (region: string | null) => new sdk.S3Client({
    ...(endpoint !== null && { endpoint, forcePathStyle: true }),
    ...(region !== null && { region }),
    maxAttempts: 1,
    // Waiting for "100 Continue" costs a connection for each large part.
    expectContinueHeader: false,
    requestHandler: { connectionTimeout: timeouts.connectMs, socketTimeout: timeouts.idleMs },
  });
  const where = prefixedPlace(place);
  let client = make(place.region);
  let region: string;
  try {
    region = await client.config.region();
  } catch (error) {
    client.destroy();
    if (endpoint === null) throw s3Failure(error, { place: where, bucket: place.bucket, endpoint, region: '' }, '').error;
    region = REGION_OF_OTHERS;
    client = make(region);
  }
  return { sdk, client, target: { place: where, bucket: place.bucket, endpoint: endpoint === null ? null : withoutSecrets(endpoint), region } };
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
