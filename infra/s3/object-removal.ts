import type { _Object as ListedObject } from '@aws-sdk/client-s3';
import { SkuaError } from '../../core/base/errors.ts';
import { isKey, OBJECT_LIST_MAX } from '../../core/ports/object-store.ts';
import type { ListOptions, ObjectInfo, ObjectPage } from '../../core/ports/object-store.ts';
import { sending, statusOf } from './s3-client.ts';
import type { S3Connection } from './s3-client.ts';

/** Single removals on their way at the same time. */
const SINGLE_AT_ONCE = 8;
/**
 * What servers without DeleteObjects say, or those that want another checksum than the SDK sends, or refuse the header
 * of that one.
 */
const NOT_SUPPORTED = new Set([
  'NotImplemented',
  'MethodNotAllowed',
  'MalformedXML',
  'InvalidRequest',
  'InvalidArgument',
  'MissingContentMD5',
  'InvalidDigest',
]);

type Run = <T>(key: string, signal: AbortSignal | undefined, attempt: () => Promise<T>) => Promise<T>;

/** Removes objects a thousand at a time, or one by one where the server knows nothing else. */
export class S3Removal {
  readonly #connection: S3Connection;
  readonly #prefix: string;
  readonly #run: Run;
  #isBatching = true;

  constructor(connection: S3Connection, prefix: string, run: Run) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.#run = run;
  }

  async remove(keys: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    for (let at = 0; at < keys.length; at += OBJECT_LIST_MAX) {
      const batch = keys.slice(at, at + OBJECT_LIST_MAX);
      if (batch.length > 1 && this.#isBatching && (await this.#removeBatch(batch, signal))) continue;
      for (let n = 0; n < batch.length; n += SINGLE_AT_ONCE) {
        await Promise.all(batch.slice(n, n + SINGLE_AT_ONCE).map((key) => this.#removeOne(key, signal)));
      }
    }
  }

  /** False when the server can't do this. A repeat is for those keys only that failed. */
  #removeBatch(batch: readonly string[], signal: AbortSignal | undefined): Promise<boolean> {
    const { sdk, client, target } = this.#connection;
    let left = batch;
    return this.#run(batch[0]!, signal, async () => {
      const result = await client
        .send(
          new sdk.DeleteObjectsCommand({
            Bucket: target.bucket,
            Delete: { Quiet: true, Objects: left.map((key) => ({ Key: this.#prefix + key })) },
          }),
          sending(signal),
        )
        .catch((error: { name?: string }) => {
          if (!NOT_SUPPORTED.has(error.name ?? '') && statusOf(error) !== 501) throw error;
          this.#isBatching = false;
          return null;
        });
      if (result === null) return false;
      const failed = (result.Errors ?? []).filter((error) => error.Code !== 'NoSuchKey');
      if (failed.length === 0) return true;
      left = failed.map((error) => error.Key!.slice(this.#prefix.length));
      throw asServiceError(failed[0]!.Code, failed[0]!.Message);
    });
  }

  async #removeOne(key: string, signal: AbortSignal | undefined): Promise<void> {
    const { sdk, client, target } = this.#connection;
    await this.#run(key, signal, () =>
      client.send(new sdk.DeleteObjectCommand({ Bucket: target.bucket, Key: this.#prefix + key }), sending(signal)),
    );
  }
}

/** The failure of one key, in the form that failures of whole requests have. */
function asServiceError(code: string | undefined, message: string | undefined): Error {
  const status = code === 'AccessDenied' ? 403 : code === 'SlowDown' ? 503 : 500;
  return Object.assign(new Error(message ?? ''), {
    name: code ?? 'InternalError',
    $metadata: { httpStatusCode: status },
  });
}

/** Pages that hold no key of ours, one after the other, before a listing gives up. */
const FOREIGN_PAGES_MAX = 1_000;

/** One page of the objects whose key begins with `root` and then `prefix`. `root` ends with `/`, or is empty. */
export async function listPage(
  connection: S3Connection,
  root: string,
  prefix: string,
  options: ListOptions,
  run: <T>(attempt: () => Promise<T>) => Promise<T>,
): Promise<ObjectPage> {
  const { sdk, client, target } = connection;
  const max = Math.min(options.max ?? OBJECT_LIST_MAX, OBJECT_LIST_MAX);
  // Whole keys of the bucket: what others put there counts too.
  let after = options.after === undefined || options.after === '' ? undefined : root + options.after;
  for (let page = 0; page < FOREIGN_PAGES_MAX; page++) {
    const start = after;
    const found = await run(() =>
      client.send(
        new sdk.ListObjectsV2Command({
          Bucket: target.bucket,
          Prefix: root + prefix,
          MaxKeys: max,
          ...(start !== undefined && { StartAfter: start }),
        }),
        sending(options.signal),
      ),
    );
    const listed = found.Contents ?? [];
    const objects = listed.map((object) => infoOf(object, root)).filter((info) => info !== null);
    const isMore = found.IsTruncated === true;
    if (objects.length > 0 || !isMore || listed.length === 0) return { objects, isMore: isMore && objects.length > 0 };
    after = listed.at(-1)!.Key;
  }
  throw new SkuaError(
    'io_error',
    `${target.place} holds too many objects not written by Skua: use a separate prefix.`,
    { place: target.place, limit: FOREIGN_PAGES_MAX },
  );
}

/** Null for what others put there, such as the markers that consoles make for folders. */
function infoOf(object: ListedObject, root: string): ObjectInfo | null {
  const key = (object.Key ?? '').slice(root.length);
  return isKey(key) ? { key, sizeBytes: object.Size ?? 0, modifiedMs: object.LastModified?.getTime() ?? 0 } : null;
}
