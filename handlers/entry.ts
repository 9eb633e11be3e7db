import { decodeText } from '../core/text.ts';
import { timestampText } from '../core/time.ts';
import type { StoredEvent } from '../core/streams/api.ts';
import { contentObject, richMembers } from './embed.ts';
import type { EmbedLevel } from './embed.ts';
import { indent, jsonString } from './json-text.ts';
import { numberText, streamUrl } from './links.ts';
import type { Call } from './context.ts';

/** One entry of a feed, or a single event as an entry (http-api.md 2.9 to 2.11). */

/** `{ uri, relation, type }`, its members at `depth`. */
export function linkObject(uri: string, relation: string, depth: number): string {
  const before = indent(depth);
  return `{${before}"uri": ${jsonString(uri)},${before}"relation": "${relation}",${before}"type": null${indent(depth - 1)}}`;
}

/** Where a link whose target is gone pointed: `number@stream`. */
function targetOf(event: StoredEvent): { readonly number: string; readonly stream: string } {
  const match = /^(\d+)@([^]+)$/.exec(decodeText(event.data));
  return match === null ? { number: numberText(event.number), stream: event.stream } : { number: match[1]!, stream: match[2]! };
}

/** The entry's text, its members at `depth`. A resolved link shows its target, with the time and the type of the link. */
export function entryText(call: Call, event: StoredEvent, level: EmbedLevel, author: string, depth: number): string {
  const before = indent(depth);
  const inner = indent(depth + 1);
  const shown = event.linkTargetMissing ? targetOf(event) : { number: numberText(event.number), stream: event.stream };
  const place = event.link ?? event;
  const uri = `${streamUrl(call, shown.stream)}/${shown.number}`;
  const isPlain = event.link === null && !event.linkTargetMissing;
  const rich = level === 'none' || level === 'content' || event.linkTargetMissing ? '' : richMembers(event, level, before, ': ');
  const content = level === 'content' && isPlain && event.isJson ? contentObject(event, depth + 1) : 'null';
  return `{${rich}${before}"title": ${jsonString(`${shown.number}@${shown.stream}`)},${before}"id": ${jsonString(uri)},` +
    `${before}"updated": "${timestampText(place.createdMs, place.createdTicks)}",${before}"author": {${inner}"name": "${author}"${before}},` +
    `${before}"summary": ${jsonString(place.type)},${before}"retryCount": null,${before}"content": ${content},` +
    `${before}"links": [${inner}${linkObject(uri, 'edit', depth + 2)},${inner}${linkObject(uri, 'alternate', depth + 2)}${before}]${indent(depth - 1)}}`;
}
