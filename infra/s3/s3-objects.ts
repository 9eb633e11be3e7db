import { createHash } from 'node:crypto';
import { SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import {
  checkKey,
  checkPrefix,
  checkSmall,
  objectAborted,
  SINGLE_UPLOAD_BYTES_MAX,
  throwIfAborted,
  wrongSize,
} from '../../core/ports/object-store.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../core/ports/object-store.ts';
import { systemClock } from '../system-clock.ts';
import { connect, RETRY_LIMITS, S3_TIMEOUTS, sending, statusOf, withRetries } from './s3-client.ts';
import type { RetryLimits, RetryTools, S3Connection, S3Place, S3Timeouts } from './s3-client.ts';
import { s3Failure } from './s3-errors.ts';
import { abortLeftovers, uploadInParts } from './multipart.ts';
import { listPage, S3Removal } from './object-removal.ts';

export interface S3ObjectsOptions {
  /** Waits between repeats; the system's time by default. */
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly retries?: Partial<RetryLimits>;
  readonly timeouts?: Partial<S3Timeouts>;
}

/** What a PUT asks for besides. */
interface PutCondition {
  readonly IfNoneMatch?: string;
  readonly ObjectLockMode?: 'COMPLIANCE';
  readonly ObjectLockRetainUntilDate?: Date;
  readonly ChecksumAlgorithm?: 'SHA256';
  readonly ContentMD5?: string;
}

/** Statuses that a HEAD gives for more than one reason. */
const HIDES_REASON = new Set([301, 307, 400, 401, 403, 404]);

export async function openS3(location: S3Place, options: S3ObjectsOptions = {}): Promise<S3Objects> {
  const connection = await connect(location, { ...S3_TIMEOUTS, ...options.timeouts });
  return new S3Objects(connection, location.prefix === '' ? '' : `${location.prefix}/`, {
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    limits: { ...RETRY_LIMITS, ...options.retries },
  });
}

/** Objects of a bucket under a prefix, on any server that speaks S3 with conditional writes (`If-None-Match: *`). */
export class S3Objects implements ObjectStore {
  readonly place: string;
  readonly #connection: S3Connection;
  /** Ends with `/`, or is empty. */
  readonly #prefix: string;
  readonly #tools: RetryTools;
  readonly #removal: S3Removal;
  /** The bucket has answered for itself before: what is absent now is the object. */
  #isBucketKnown = false;
  #leftovers: Promise<void> | undefined;

  constructor(connection: S3Connection, prefix: string, tools: RetryTools) {
    this.place = connection.target.place;
    this.#connection = connection;
    this.#prefix = prefix;
    this.#tools = tools;
    this.#removal = new S3Removal(connection, prefix, (key, signal, attempt) => this.#run(key, signal, attempt));
  }

  async get(key: string, options: GetOptions = {}): Promise<Uint8Array | null> {
    checkKey(key);
    const { from = 0, length, signal } = options;
    if (length === 0) return (await this.head(key, signal)) === null ? null : new Uint8Array(0);
    const range =
      from === 0 && length === undefined
        ? {}
        : { Range: `bytes=${from}-${length === undefined ? '' : from + length - 1}` };
    return this.#run(key, signal, async () => {
      const { sdk, client } = this.#connection;
      try {
        const found = await client.send(new sdk.GetObjectCommand({ ...this.#at(key), ...range }), sending(signal));
        return await readBody(found.Body, found.ContentLength, signal);
      } catch (error) {
        if (isNamed(error, 'NoSuchKey')) return null;
        // The range begins at or behind the end of the object.
        if (isNamed(error, 'InvalidRange') || statusOf(error) === 416) return new Uint8Array(0);
        throw error;
      }
    });
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null> {
    checkKey(key);
    return this.#run(key, signal, async () => {
      const { sdk, client } = this.#connection;
      try {
        const found = await client.send(new sdk.HeadObjectCommand(this.#at(key)), sending(signal));
        return { key, sizeBytes: found.ContentLength ?? 0, modifiedMs: found.LastModified?.getTime() ?? 0 };
      } catch (error) {
        const status = statusOf(error);
        if (status === 404 && this.#isBucketKnown) return null;
        if (status === undefined || !HIDES_REASON.has(status)) throw error;
        if (await this.#isAbsent(key, signal)) return null;
        throw error;
      }
    });
  }

  /**
   * A GET of one byte, whose reply says in its body what that of a HEAD can't: whether the object, the bucket or
   * something else is missing.
   */
  async #isAbsent(key: string, signal: AbortSignal | undefined): Promise<boolean> {
    const { sdk, client } = this.#connection;
    try {
      const found = await client.send(
        new sdk.GetObjectCommand({ ...this.#at(key), Range: 'bytes=0-0' }),
        sending(signal),
      );
      await readBody(found.Body, found.ContentLength, signal);
      return false;
    } catch (error) {
      if (!isNamed(error, 'NoSuchKey')) throw error;
      this.#isBucketKnown = true;
      return true;
    }
  }

  async put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    checkKey(key);
    checkSmall(key, bytes);
    await this.#run(key, signal, () => this.#put(key, bytes, signal));
  }

  async #put(
    key: string,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
    condition: PutCondition = {},
  ): Promise<void> {
    const { sdk, client } = this.#connection;
    await client.send(
      new sdk.PutObjectCommand({ ...this.#at(key), ...condition, Body: bytes, ContentLength: bytes.length }),
      sending(signal),
    );
  }

  create(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'created' | 'exists'> {
    return this.#create(key, bytes, signal, {});
  }

  createLocked(key: string, bytes: Uint8Array, untilMs: number, signal?: AbortSignal): Promise<'created' | 'exists'> {
    // A request with a lock must have a checksum; the oldest kind is known to all servers.
    const checksum = this.#connection.hasChecksums
      ? ({ ChecksumAlgorithm: 'SHA256' } as const)
      : { ContentMD5: createHash('md5').update(bytes).digest('base64') };
    return this.#create(key, bytes, signal, {
      ObjectLockMode: 'COMPLIANCE',
      ObjectLockRetainUntilDate: new Date(untilMs),
      ...checksum,
    });
  }

  async #create(
    key: string,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
    lock: PutCondition,
  ): Promise<'created' | 'exists'> {
    checkKey(key);
    checkSmall(key, bytes);
    for (let isSecond = false; ; isSecond = true) {
      throwIfAborted(signal, key);
      try {
        await this.#put(key, bytes, signal, { IfNoneMatch: '*', ...lock });
        return 'created';
      } catch (error) {
        if (statusOf(error) === 412) return 'exists';
        const failure = s3Failure(error, this.#connection.target, key);
        const code = failure.error.code;
        // A request signed by a clock that was wrong had no effect, and the SDK knows the server's time now.
        if (code === 'clock_skewed' && failure.isRetryable && !isSecond) continue;
        if (failure.isDefinite && signal?.aborted !== true) throw failure.error;
        throw outcomeUnknown(key, failure.error, signal);
      }
    }
  }

  async upload(
    key: string,
    sizeBytes: number,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    checkKey(key);
    throwIfAborted(signal, key);
    if (sizeBytes <= SINGLE_UPLOAD_BYTES_MAX) {
      const bytes = await gatherContent(content, sizeBytes, key, signal);
      await this.#run(key, signal, () => this.#put(key, bytes, signal));
      return;
    }
    this.#leftovers ??= this.#abortLeftovers();
    await this.#leftovers;
    await uploadInParts({
      connection: this.#connection,
      run: (attempt, until) => this.#run(key, until, attempt),
      key,
      fullKey: this.#prefix + key,
      sizeBytes,
      content,
      signal,
    });
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ObjectPage> {
    checkPrefix(prefix);
    return listPage(this.#connection, this.#prefix, prefix, options, (attempt) =>
      this.#run(prefix, options.signal, attempt),
    );
  }

  async remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    for (const key of keys) checkKey(key);
    await this.#removal.remove(keys, signal);
  }

  async close(): Promise<void> {
    this.#connection.client.destroy();
  }

  /**
   * What killed processes left of large uploads takes space without being seen. Some users may not list uploads: then
   * it stays.
   */
  async #abortLeftovers(): Promise<void> {
    await abortLeftovers(this.#connection, this.#prefix, this.#tools.clock.nowMs()).catch(() => {});
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#connection.target.bucket, Key: this.#prefix + key };
  }

  async #run<T>(key: string, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    const result = await withRetries(this.#tools, key, signal, attempt, (error) =>
      s3Failure(error, this.#connection.target, key),
    );
    if (result !== null) this.#isBucketKnown = true;
    return result;
  }
}

function outcomeUnknown(key: string, reason: SkuaError, signal: AbortSignal | undefined): SkuaError {
  const why = signal?.aborted === true ? objectAborted(key) : reason;
  return new SkuaError(
    'outcome_unknown',
    `It is not known whether ${key} was created: write the same bytes again, then check which are there. ${why.message}`,
    { ...reason.data, key, reason: why.code },
  );
}

function isNamed(error: unknown, name: string): boolean {
  const { name: own, Code } = (error ?? {}) as { name?: string; Code?: string };
  return own === name || Code === name;
}

/** All of a reply's body, which has to have as many bytes as the reply announced. */
export async function readBody(
  body: unknown,
  sizeBytes: number | undefined,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const stream = body as AsyncIterable<Uint8Array> & { destroy?(error?: Error): void };
  const end = () => stream.destroy?.(new Error('aborted'));
  signal?.addEventListener('abort', end);
  try {
    if (sizeBytes === undefined) return await gatherUnknown(stream);
    const bytes = new Uint8Array(sizeBytes);
    let filled = 0;
    for await (const piece of stream) {
      if (filled + piece.length > sizeBytes) throw cutShort();
      bytes.set(piece, filled);
      filled += piece.length;
    }
    if (filled < sizeBytes) throw cutShort();
    return bytes;
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

async function gatherUnknown(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return new Uint8Array(await new Blob(pieces as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

/** As a connection that is reset in the middle, which it mostly was. */
function cutShort(): Error {
  return Object.assign(new Error('the reply ended before all of the object had come'), { code: 'ECONNRESET' });
}

/** All of the content, for an object that is written at once. */
export async function gatherContent(
  content: AsyncIterable<Uint8Array>,
  sizeBytes: number,
  key: string,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(sizeBytes);
  let filled = 0;
  for await (const piece of content) {
    throwIfAborted(signal, key);
    if (filled + piece.length > sizeBytes) throw wrongSize(key, sizeBytes, filled + piece.length);
    bytes.set(piece, filled);
    filled += piece.length;
  }
  if (filled < sizeBytes) throw wrongSize(key, sizeBytes, filled);
  return bytes;
}
