import type { StoredEvent } from '../../core/streams/api.ts';
import type { JsonBytes } from '../http/json-bytes.ts';
import { indent, jsonString } from '../http/json-text.ts';
import { numberText } from '../http/url.ts';
import { valueText } from './payloads.ts';
import type { Payloads } from './payloads.ts';

/** The event as an object with its data and metadata as JSON, its members at `depth` (`embed=content`, and `event+json`). */
export function writeContent(out: JsonBytes, event: StoredEvent, depth: number, payloads: Payloads): void {
  out.text(contentBefore(event, depth));
  payloads.writeValue(out, event.data, event.isJson, depth);
  out.text(contentBetween(depth));
  payloads.writeValue(out, event.metadata, true, depth);
  out.text(contentBehind(depth));
}

function contentBefore(event: StoredEvent, depth: number): string {
  const before = indent(depth);
  return `{${before}"eventStreamId": ${jsonString(event.stream)},${before}"eventNumber": ${numberText(event.number)},${before}"eventType": ${jsonString(event.type)},${before}"eventId": "${event.id}",${before}"data": `;
}

function contentBetween(depth: number): string {
  return `,${indent(depth)}"metadata": `;
}

function contentBehind(depth: number): string {
  return `${indent(depth - 1)}}`;
}

/** Makes the texts of a large event, so that `writeContent` only puts them together. */
export function* prepareContent(event: StoredEvent, depth: number, payloads: Payloads): Generator<void, void, undefined> {
  yield* payloads.makeValue(event.data, event.isJson, depth);
  yield* payloads.makeValue(event.metadata, true, depth);
}

/** The same in one stretch. */
export function contentText(event: StoredEvent, depth: number): string {
  return `${contentBefore(event, depth)}${valueText(event.data, event.isJson, depth, null)}${contentBetween(depth)}${valueText(event.metadata, true, depth, null)}${contentBehind(depth)}`;
}
