import { SkuaError } from '../../core/base/errors.ts';
import type { AccessList, EventStore, StreamMetadata as ParsedMetadata } from '../../core/streams/api.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { METADATA_TYPE, metastreamOf } from '../../core/streams/format/names.ts';
import type { NewEvent, RecordedMetadata, StreamMetadata } from './api.ts';
import { recordedEvent } from './embedded-events.ts';
import { lastEvent } from './reading.ts';

const ACCESS: readonly (readonly [keyof AccessList, string])[] = [
  ['read', '$r'],
  ['write', '$w'],
  ['delete', '$d'],
  ['metadataRead', '$mr'],
  ['metadataWrite', '$mw'],
];

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
    ...(last !== null && custom(recordedEvent(last).data)),
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

function custom(data: unknown): { custom?: Record<string, unknown> } {
  if (typeof data !== 'object' || data === null || data instanceof Uint8Array) return {};
  const own = Object.entries(data).filter(([key]) => !key.startsWith('$'));
  return own.length === 0 ? {} : { custom: Object.fromEntries(own) };
}

/** Whole numbers, from which on each means something: what is less the store would take, and not heed. */
const NUMBERS = [
  ['maxCount', '$maxCount', 1],
  ['maxAgeSeconds', '$maxAge', 1],
  ['truncateBefore', '$tb', 0],
  ['cacheControlSeconds', '$cacheControl', 1],
] as const;

/** Throws `invalid_metadata`; an access list is checked by the core. */
export function metadataEvent(stream: string, metadata: StreamMetadata): NewEvent {
  const { access, custom: own = {} } = metadata;
  for (const [name, key, min] of NUMBERS) {
    const value = metadata[name];
    if (value !== undefined && (!Number.isSafeInteger(value) || value < min))
      throw new SkuaError(
        'invalid_metadata',
        `${name} in the metadata of ${stream} is ${value}; it must be a whole number of ${min} or more.`,
        { stream, key },
      );
  }
  for (const key of Object.keys(own))
    if (key.startsWith('$'))
      throw new SkuaError(
        'invalid_metadata',
        `${key} can't be a custom key in the metadata of ${stream}: keys starting with $ are reserved.`,
        { stream, key },
      );
  const list =
    access === undefined
      ? undefined
      : Object.fromEntries(ACCESS.flatMap(([name, key]) => (access[name] === undefined ? [] : [[key, access[name]]])));
  return {
    type: METADATA_TYPE,
    data: { ...own, ...Object.fromEntries(NUMBERS.map(([name, key]) => [key, metadata[name]])), $acl: list },
  };
}
