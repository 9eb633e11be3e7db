import { decodeText } from '../core/text.ts';
import type { StoredEvent } from '../core/streams/api.ts';
import { indent, jsonString, reindent } from './json-text.ts';
import { numberText } from './links.ts';

/** How much of an event a feed entry carries (http-api.md 2.10). */
export type EmbedLevel = 'none' | 'content' | 'rich' | 'body' | 'pretty' | 'tryharder';

const LEVELS: ReadonlyMap<string, EmbedLevel> = new Map([
  ['content', 'content'], ['rich', 'rich'], ['body', 'body'], ['pretty', 'pretty'], ['prettybody', 'pretty'], ['tryharder', 'tryharder'],
]);

/** The level named by `?embed=`, in any case; anything else embeds nothing. */
export function embedLevelOf(value: string | undefined): EmbedLevel {
  return value === undefined ? 'none' : LEVELS.get(value.toLowerCase()) ?? 'none';
}

/** Text of a member that may be null. */
function stringOrNull(text: string | null): string {
  return text === null ? 'null' : jsonString(text);
}

/** JSON text of the event's data, and whether it counts as JSON, at a level. */
function dataOf(event: StoredEvent, level: EmbedLevel): { readonly data: string | null; readonly isJson: boolean } {
  if (level === 'rich' || (!event.isJson && level !== 'tryharder')) return { data: null, isJson: event.isJson };
  const text = decodeText(event.data);
  if (level === 'body') return { data: text, isJson: true };
  const pretty = text === '' ? '' : reindent(text);
  return { data: pretty ?? text, isJson: event.isJson || pretty !== null };
}

/** Metadata as text; null when there is none. */
function metadataOf(event: StoredEvent, level: EmbedLevel): string | null {
  if (level === 'rich' || event.metadata.length === 0) return null;
  const text = decodeText(event.metadata);
  return level === 'body' ? text : reindent(text) ?? text;
}

/**
 * The members of the levels from `rich` on, each followed by a comma and begun by `before`. `eventNumber` and
 * `streamId` describe the event itself, `position…` the place in the stream that was read.
 */
export function richMembers(event: StoredEvent, level: EmbedLevel, before: string, colon: string): string {
  const { data, isJson } = dataOf(event, level);
  const place = event.link ?? event;
  const linkMetadata = event.link === null || level === 'rich' ? null : metadataOf(event.link, level) ?? '';
  // Below `body` the reference does not look at metadata and says that there is none.
  const hasMetadata = level !== 'rich' && event.metadata.length > 0;
  const hasLinkMetadata = level !== 'rich' && event.link !== null && event.link.metadata.length > 0;
  return `${before}"eventId"${colon}"${event.id}",${before}"eventType"${colon}${jsonString(event.type)},${before}"eventNumber"${colon}${numberText(event.number)},` +
    `${before}"data"${colon}${stringOrNull(data)},${before}"metaData"${colon}${stringOrNull(metadataOf(event, level))},${before}"linkMetaData"${colon}${stringOrNull(linkMetadata)},` +
    `${before}"streamId"${colon}${jsonString(event.stream)},${before}"isJson"${colon}${isJson},${before}"isMetaData"${colon}${hasMetadata},` +
    `${before}"isLinkMetaData"${colon}${hasLinkMetadata},${before}"isRedacted"${colon}${event.isRedacted},` +
    `${before}"positionEventNumber"${colon}${numberText(place.number)},${before}"positionStreamId"${colon}${jsonString(place.stream)},`;
}

/** Bytes as a JSON value at `depth`: parsed and indented if they are JSON, else as one string. */
export function jsonValue(bytes: Uint8Array, isJson: boolean, depth: number): string {
  const text = decodeText(bytes);
  return (isJson && text !== '' ? reindent(text, depth) : null) ?? jsonString(text);
}

/** The event as an object with its data and metadata as JSON, its members at `depth` (http-api.md 2.10 `content`, 2.11 `event+json`). */
export function contentObject(event: StoredEvent, depth: number): string {
  const before = indent(depth);
  return `{${before}"eventStreamId": ${jsonString(event.stream)},${before}"eventNumber": ${numberText(event.number)},${before}"eventType": ${jsonString(event.type)},` +
    `${before}"eventId": "${event.id}",${before}"data": ${jsonValue(event.data, event.isJson, depth)},` +
    `${before}"metadata": ${jsonValue(event.metadata, true, depth)}${indent(depth - 1)}}`;
}
