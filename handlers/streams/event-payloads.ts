import type { StoredEvent } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import type { JsonBytes } from '../http/json-bytes.ts';
import { Growth, indent, jsonString, literalSlices, reindent, reindentSlices } from '../http/json-text.ts';
import { numberText } from '../http/url.ts';

/** Data and metadata of events as text, in one stretch or in slices. */

const QUOTE = encodeText('"');
/** Payloads of more bytes together are made to text in slices. */
export const LONG_BYTES = 262_144;

/** Bytes of all that is shown of an event's data and metadata. */
export function payloadBytes({ data, metadata, link }: StoredEvent): number {
  return data.length + metadata.length + (link === null ? 0 : link.metadata.length);
}

interface MadeText {
  readonly bytes: Uint8Array;
  readonly isJson: boolean;
}

/**
 * The texts of data and metadata in one document. Those of large events are made before the rest of their entries, so
 * that it can be in slices.
 */
export class Payloads {
  readonly #growth = new Growth();
  /** By the bytes that they are made of; null while there are none. */
  #made: Map<Uint8Array, MadeText> | null = null;

  *makeLiteral(bytes: Uint8Array, isIndented: boolean): Generator<void, void, undefined> {
    if (bytes.length === 0) return;
    const text = decodeText(bytes);
    const json = isIndented ? yield* reindentSlices(text, 0, this.#growth, true) : null;
    (this.#made ??= new Map()).set(bytes, { bytes: json ?? (yield* literalSlices(text)), isJson: json !== null });
  }

  *makeValue(bytes: Uint8Array, isJson: boolean, depth: number): Generator<void, void, undefined> {
    if (bytes.length === 0) return;
    const text = decodeText(bytes);
    const json = isJson ? yield* reindentSlices(text, depth, this.#growth, false) : null;
    (this.#made ??= new Map()).set(bytes, { bytes: json ?? (yield* literalSlices(text)), isJson: json !== null });
  }

  /** Bytes as a string literal, indented where they are JSON. Returns whether they are. */
  writeIndented(out: JsonBytes, bytes: Uint8Array): boolean {
    const made = this.#take(bytes);
    if (made !== null) {
      writeQuoted(out, made.bytes);
      return made.isJson;
    }
    const text = decodeText(bytes);
    const pretty = text === '' ? '' : reindent(text, 0, this.#growth);
    out.text(jsonString(pretty ?? text));
    return pretty !== null;
  }

  /** Bytes as a string literal. */
  writeLiteral(out: JsonBytes, bytes: Uint8Array): void {
    const made = this.#take(bytes);
    if (made === null) out.string(bytes);
    else writeQuoted(out, made.bytes);
  }

  writeValue(out: JsonBytes, bytes: Uint8Array, isJson: boolean, depth: number): void {
    const made = this.#take(bytes);
    if (made === null) out.text(valueText(bytes, isJson, depth, this.#growth));
    else if (made.isJson) out.raw(made.bytes);
    else writeQuoted(out, made.bytes);
  }

  #take(bytes: Uint8Array): MadeText | null {
    if (this.#made === null) return null;
    const made = this.#made.get(bytes);
    this.#made.delete(bytes);
    return made ?? null;
  }
}

/** Bytes as a JSON value at `depth`: parsed and indented if they are JSON, else as one string. */
export function valueText(bytes: Uint8Array, isJson: boolean, depth: number, growth: Growth | null): string {
  const text = decodeText(bytes);
  return (isJson && text !== '' ? reindent(text, depth, growth) : null) ?? jsonString(text);
}

function writeQuoted(out: JsonBytes, bytes: Uint8Array): void {
  out.raw(QUOTE);
  out.raw(bytes);
  out.raw(QUOTE);
}

/**
 * The event as an object with its data and metadata as JSON, its members at `depth` (`embed=content`, and
 * `event+json`).
 */
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
export function* prepareContent(
  event: StoredEvent,
  depth: number,
  payloads: Payloads,
): Generator<void, void, undefined> {
  yield* payloads.makeValue(event.data, event.isJson, depth);
  yield* payloads.makeValue(event.metadata, true, depth);
}

/** The same in one stretch. */
export function contentText(event: StoredEvent, depth: number): string {
  return `${contentBefore(event, depth)}${valueText(event.data, event.isJson, depth, null)}${contentBetween(depth)}${valueText(event.metadata, true, depth, null)}${contentBehind(depth)}`;
}
