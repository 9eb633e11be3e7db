import type { _Object as ListedObject } from '@aws-sdk/client-s3';
import { SkuaError } from '../../core/errors.ts';
import { isKey, OBJECT_LIST_MAX } from '../../core/ports/object-store.ts';
import type { ListOptions, ObjectInfo, ObjectPage } from '../../core/ports/object-store.ts';
import { sending } from './s3-client.ts';
import type { S3Connection } from './s3-client.ts';

/** Pages that hold no key of ours, one after the other, before a listing gives up. */
const FOREIGN_PAGES_MAX = 1_000;

/** One page of the objects whose key begins with `root` and then `prefix`. `root` ends with `/`, or is empty. */
export async function listPage(connection: S3Connection, root: string, prefix: string, options: ListOptions, run: <T>(attempt: () => Promise<T>) => Promise<T>): Promise<ObjectPage> {
  const { sdk, client, target } = connection;
  const max = Math.min(options.max ?? OBJECT_LIST_MAX, OBJECT_LIST_MAX);
  // Whole keys of the bucket: what others put there counts too.
  let after = options.after === undefined || options.after === '' ? undefined : root + options.after;
  for (let page = 0; page < FOREIGN_PAGES_MAX; page++) {
    const start = after;
    const found = await run(() => client.send(new sdk.ListObjectsV2Command({
      Bucket: target.bucket, Prefix: root + prefix, MaxKeys: max, ...(start !== undefined && { StartAfter: start }),
    }), sending(options.signal)));
    const listed = found.Contents ?? [];
    const objects = listed.map((object) => infoOf(object, root)).filter((info) => info !== null);
    const isMore = found.IsTruncated === true;
    if (objects.length > 0 || !isMore || listed.length === 0) return { objects, isMore: isMore && objects.length > 0 };
    after = listed.at(-1)!.Key;
  }
  throw new SkuaError('io_error', `${target.place} holds too much that was not written by Skua: use a prefix of its own.`, { place: target.place, limit: FOREIGN_PAGES_MAX });
}

/** Null for what others put there, such as the markers that consoles make for folders. */
function infoOf(object: ListedObject, root: string): ObjectInfo | null {
  const key = (object.Key ?? '').slice(root.length);
  return isKey(key) ? { key, sizeBytes: object.Size ?? 0, modifiedMs: object.LastModified?.getTime() ?? 0 } : null;
}
