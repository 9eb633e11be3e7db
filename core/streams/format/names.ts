import { SkuaError } from '../../base/errors.ts';
import { STREAM_NAME_LENGTH_MAX } from '../api.ts';

/** Names of streams. */

/** The stream of scavenge points, and the type of their events. */
export const POINTS_STREAM = '$scavengePoints';
export const POINT_TYPE = '$scavengePoint';
/** The stream whose last event says who may do what where a stream's own list is silent. */
export const SETTINGS_STREAM = '$settings';
export const METADATA_TYPE = '$metadata';
export const TOMBSTONE_TYPE = '$streamDeleted';
export const LINK_TYPE = '$>';
/** What names of views of links begin with (core/streams/link-views). */
export const VIEW_OF_CATEGORY = '$ce-';
export const VIEW_OF_TYPE = '$et-';
export const VIEW_OF_CORRELATION = '$bc-';

const DOLLAR = 36;
const DASH = 45;

/** Such a stream is read and never written, whatever of that name is in the log. */
export function isViewName(name: string): boolean {
  return (
    name.charCodeAt(0) === DOLLAR &&
    name.charCodeAt(3) === DASH &&
    (name.startsWith(VIEW_OF_CATEGORY) || name.startsWith(VIEW_OF_TYPE) || name.startsWith(VIEW_OF_CORRELATION))
  );
}

/** True for `$$S`, the stream that holds the metadata of S. */
export function isMetastream(name: string): boolean {
  return name.length >= 2 && name.charCodeAt(0) === DOLLAR && name.charCodeAt(1) === DOLLAR;
}

export function metastreamOf(name: string): string {
  return '$$' + name;
}

/** S of `$$S`. */
export function originalOf(metastream: string): string {
  return metastream.slice(2);
}

/** True for `$$$$S`: metadata of a metastream has no effect and can't be written. */
function isMetastreamOfMetastream(name: string): boolean {
  return isMetastream(name) && name.charCodeAt(2) === DOLLAR && name.charCodeAt(3) === DOLLAR;
}

function invalid(name: string, why: string): SkuaError {
  return new SkuaError('invalid_stream_name', `The stream name ${JSON.stringify(name.slice(0, 100))} ${why}.`, {
    stream: name,
  });
}

/**
 * Refuses names that no stream can have. Foreign data may hold names that we would not write, so reading asks no more.
 */
export function checkReadableName(name: string): SkuaError | null {
  if (name === '' || name === '$$') return invalid(name, 'is empty: name a stream');
  if (!name.isWellFormed()) return invalid(name, 'is not valid Unicode: remove the lone surrogate');
  return null;
}

/** Refuses names that must not be written or deleted. */
export function checkWritableName(name: string): SkuaError | null {
  const unreadable = checkReadableName(name);
  if (unreadable !== null) return unreadable;
  if (name.length > STREAM_NAME_LENGTH_MAX)
    return invalid(name, `is longer than ${STREAM_NAME_LENGTH_MAX} characters: shorten it`);
  if (name === '.' || name === '..') return invalid(name, "can't be used in URLs: choose another");
  if (name === '$all' || name.startsWith('$mem-'))
    return invalid(name, 'is reserved for a read-only stream: choose another');
  const owner = isMetastream(name) ? originalOf(name) : name;
  if (isViewName(owner))
    return new SkuaError(
      'stream_is_view',
      `${owner} is a view of events of other streams, and can't be written, deleted or given metadata: write to those.`,
      { stream: owner },
    );
  for (let i = 0; i < name.length; i++) {
    const unit = name.charCodeAt(i);
    if (unit < 32 || unit === 127) return invalid(name, 'has a control character: remove it');
  }
  if (isMetastreamOfMetastream(name)) {
    return new SkuaError(
      'access_denied',
      `${name} would be metadata of a metadata stream, which is fixed: write to ${originalOf(name)} instead.`,
      { stream: name },
    );
  }
  return null;
}

export function deletedError(stream: string): SkuaError {
  return new SkuaError('stream_deleted', `The stream ${stream} was hard-deleted: use another name.`, { stream });
}

export function notFoundError(stream: string): SkuaError {
  return new SkuaError('stream_not_found', `There is no stream ${stream}: check the name, or append to create it.`, {
    stream,
  });
}

/** Length in bytes of the UTF-8 form of a well-formed text. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    // A surrogate is two units and four bytes: two for each.
    bytes += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2;
  }
  return bytes;
}

/** Refuses what is no event number. */
export function checkNumber(number: number): void {
  if (!Number.isSafeInteger(number) || number < 0)
    throw new SkuaError('invalid_event_number', `${number} is not an event number: give a whole number from 0.`, {
      number,
    });
}
