import { SkuaError } from '../../core/base/errors.ts';
import type { EventStore, StreamMetadata as ParsedMetadata } from '../../core/streams/api.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { metastreamOf } from '../../core/streams/format/names.ts';
import { ACCESS, customMetadata } from '../event-store/metadata-members.ts';
import type { RecordedMetadata, StreamMetadata } from './api.ts';
import { recordedEvent } from './embedded-events.ts';
import { lastEvent } from './reading.ts';

/** What is in force, as the store understands it, and the keys that are the user's own. */
export async function readMetadata(store: EventStore, stream: string): Promise<RecordedMetadata> {
  const { metadata, metadataVersion, isTombstoned } = await store.streamInfo(stream);
  if (isTombstoned)
    throw new SkuaError('stream_deleted', `The stream ${stream} was hard-deleted: it has no metadata.`, { stream });
  const last = metadataVersion < 0 ? null : await lastEvent(store, metastreamOf(stream));
  // Others may have written meanwhile: then both parts are read once more, until they are of one version.
  if (last !== null && last.number !== metadataVersion) return readMetadata(store, stream);
  return {
    version: last === null ? null : metadataVersion,
    ...known(metadata),
    ...(last !== null && customMetadata(recordedEvent(last).data)),
  };
}

function known({ maxCount, maxAge, truncateBefore, cacheControl, acl }: ParsedMetadata): StreamMetadata {
  return {
    ...(maxCount !== undefined && { maxCount }),
    ...(maxAge !== undefined && { maxAgeSeconds: maxAge }),
    // Of a stream that was deleted it is a number beyond all versions, and no limit that a user has set.
    ...(truncateBefore !== undefined && truncateBefore !== TOMBSTONE && { truncateBefore }),
    ...(cacheControl !== undefined && { cacheControlSeconds: cacheControl }),
    ...(acl !== undefined && {
      access: Object.fromEntries(ACCESS.flatMap(([name]) => (acl[name] === undefined ? [] : [[name, acl[name]]]))),
    }),
  };
}
