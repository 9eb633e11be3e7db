import { createHash } from 'node:crypto';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { EventStore, StoredEvent } from '../../core/streams/api.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import type { AllRow, ReadRow } from './fixtures.ts';

/**
 * Our answers in the form of the recorded oracle, which was made with a JavaScript client: JSON went through
 * JSON.parse and JSON.stringify, numbers beyond 2^53 were rounded.
 */

/** What 2^63-1 becomes as a JavaScript number. */
const TOMBSTONE_AS_RECORDED = 9_223_372_036_854_776_000;

function hashOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 16);
}

/** Not JSON: of the bytes. JSON: of the text as JavaScript writes it; what does not parse counts as a JSON string. */
export function dataHash(event: StoredEvent): string {
  if (!event.isJson) return hashOf(event.data);
  const text = Buffer.from(event.data).toString('utf8');
  try {
    return hashOf(JSON.stringify(JSON.parse(text)));
  } catch {
    return hashOf(JSON.stringify(text));
  }
}

/** No bytes, or JSON of a value that is false in JavaScript: ''. JSON: of its text. Other bytes: as stored. */
export function metadataHash(event: StoredEvent): string {
  if (event.metadata.length === 0) return '';
  try {
    const value = JSON.parse(Buffer.from(event.metadata).toString('utf8')) as unknown;
    return value ? hashOf(JSON.stringify(value)) : '';
  } catch {
    return hashOf(event.metadata);
  }
}

function recordedNumber(number: number): number {
  return number === TOMBSTONE ? TOMBSTONE_AS_RECORDED : number;
}

export function allRow(event: StoredEvent): AllRow {
  return [
    String(event.position),
    String(event.preparePosition),
    event.stream,
    recordedNumber(event.number),
    event.type,
    event.id,
    event.isJson,
    dataHash(event),
    metadataHash(event),
  ];
}

export function readRow(event: StoredEvent): ReadRow {
  return [recordedNumber(event.number), event.type, event.id, dataHash(event)];
}

/** Reads `$all` from one end to the other in pages of `count`. */
export async function readWholeAll(
  store: EventStore,
  direction: 'forward' | 'backward',
  count: number,
): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  let page = await store.readAll({ direction, from: direction === 'forward' ? 'start' : 'end', count });
  for (;;) {
    events.push(...page.events);
    if (page.isEnd) return events;
    const before = page.next;
    page = await store.readAll({ direction, from: before, count });
    if (
      !page.isEnd &&
      page.events.length === 0 &&
      page.next.commit === before.commit &&
      page.next.prepare === before.prepare
    ) {
      throw new Error(`A ${direction} read of $all does not move on from ${before.commit}/${before.prepare}.`);
    }
  }
}

/** Reads a stream from one end to the other in pages of `count`; `{ error }` for one that can't be read. */
export async function readWholeStream(
  store: EventStore,
  stream: string,
  direction: 'forward' | 'backward',
  count: number,
): Promise<StoredEvent[] | { error: string }> {
  const events: StoredEvent[] = [];
  try {
    let from: number | 'end' = direction === 'forward' ? 0 : 'end';
    for (;;) {
      const page = await store.readStream(stream, { direction, from, count });
      events.push(...page.events);
      if (page.isEnd) return events;
      const moved =
        direction === 'forward' ? page.nextEventNumber > Number(from) : from === 'end' || page.nextEventNumber < from;
      if (!moved) throw new Error(`A ${direction} read of ${stream} does not move on from ${from}.`);
      from = page.nextEventNumber;
    }
  } catch (error) {
    if (isSkuaError(error, 'stream_deleted')) return { error: 'stream-deleted' };
    if (isSkuaError(error, 'stream_not_found')) return { error: 'stream-not-found' };
    throw error;
  }
}
