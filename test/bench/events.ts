import { randomFillSync } from 'node:crypto';
import { i32, putI32 } from '../../core/base/bytes.ts';
import { guidToText } from '../../core/base/guid.ts';
import type { NewEvent } from '../../core/streams/api.ts';

/** Data bytes of every event. */
export const EVENT_BYTES = 256;
const EMPTY = new Uint8Array(0);
export const EVENT_TYPES: readonly string[] = [
  'OrderPlaced',
  'OrderPaid',
  'OrderPacked',
  'OrderShipped',
  'OrderReturned',
  'AddressChanged',
  'InvoiceSent',
  'NoteAdded',
];

/** JSON text of exactly EVENT_BYTES ASCII characters. */
export const EVENT_JSON: string = (() => {
  const head =
    '{"order":"0001742","customer":"c-55120","total":129.5,"lines":[{"sku":"A-1","n":2},{"sku":"B-7","n":1}],"note":"';
  return head + 'n'.repeat(EVENT_BYTES - head.length - 2) + '"}';
})();

/** All events share these bytes, as a client's would not; the store copies them in any case. */
export const EVENT_DATA: Uint8Array = new TextEncoder().encode(EVENT_JSON);

/** Where in an id the counter stands. */
const COUNTER_AT = 12;
const id = randomFillSync(new Uint8Array(16));

/**
 * An id that no other process has, random once and counted from there on. It becomes a text as it does in a node that
 * reads it from a message: random ones, pieced together of short texts, are the client's work and took a seventh of the
 * time of a batch.
 */
function newId(): string {
  putI32(id, COUNTER_AT, (i32(id, COUNTER_AT) + 1) | 0);
  return guidToText(id, 0);
}

export function newEvent(index: number): NewEvent {
  return { id: newId(), type: EVENT_TYPES[index & 7]!, isJson: true, data: EVENT_DATA, metadata: EMPTY };
}

export function newEvents(count: number): NewEvent[] {
  const events: NewEvent[] = [];
  for (let i = 0; i < count; i++) events.push(newEvent(i));
  return events;
}
