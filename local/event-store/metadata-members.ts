import { SkuaError } from '../../core/base/errors.ts';
import type { NewEvent, StreamAccess, StreamMetadata } from './api.ts';

/** The metadata of a stream, between the words of programs and the members of the event that holds them. */

/** Of events that hold the metadata of a stream. */
const METADATA_TYPE = '$metadata';

export const ACCESS: readonly (readonly [keyof StreamAccess, string])[] = [
  ['read', '$r'],
  ['write', '$w'],
  ['delete', '$d'],
  ['metadataRead', '$mr'],
  ['metadataWrite', '$mw'],
];

/** Whole numbers, from which on each means something: what is less a store would take, and not heed. */
export const METADATA_NUMBERS = [
  ['maxCount', '$maxCount', 1],
  ['maxAgeSeconds', '$maxAge', 1],
  ['truncateBefore', '$tb', 0],
  ['cacheControlSeconds', '$cacheControl', 1],
] as const;

/** Throws `invalid_metadata`; an access list is checked by the core. */
export function metadataEvent(stream: string, metadata: StreamMetadata): NewEvent {
  const { access, custom: own = {} } = metadata;
  for (const [name, key, min] of METADATA_NUMBERS) {
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
    data: { ...own, ...Object.fromEntries(METADATA_NUMBERS.map(([name, key]) => [key, metadata[name]])), $acl: list },
  };
}

/** Keys of one's own in what a metadata event holds. */
export function customMetadata(data: unknown): { custom?: Record<string, unknown> } {
  if (typeof data !== 'object' || data === null || data instanceof Uint8Array) return {};
  const own = Object.entries(data).filter(([key]) => !key.startsWith('$'));
  return own.length === 0 ? {} : { custom: Object.fromEntries(own) };
}
