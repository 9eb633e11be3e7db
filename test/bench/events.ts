import { randomUUID } from 'node:crypto';
import type { NewEvent } from '../../core/streams/api.ts';

/** Data bytes of every event. */
export const EVENT_BYTES = 256;
const EMPTY = new Uint8Array(0);
export const EVENT_TYPES: readonly string[] = ['OrderPlaced', 'OrderPaid', 'OrderPacked', 'OrderShipped', 'OrderReturned', 'AddressChanged', 'InvoiceSent', 'NoteAdded'];

/** JSON text of exactly EVENT_BYTES ASCII characters. */
export const EVENT_JSON: string = (() => {
  const head = '{"order":"0001742","customer":"c-55120","total":129.5,"lines":[{"sku":"A-1","n":2},{"sku":"B-7","n":1}],"note":"';
  return head + 'n'.repeat(EVENT_BYTES - head.length - 2) + '"}';
})();

/** All events share these bytes, as a client's would not; the store copies them in any case. */
export const EVENT_DATA: Uint8Array = new TextEncoder().encode(EVENT_JSON);

export function newEvent(index: number): NewEvent {
  return { id: randomUUID(), type: EVENT_TYPES[index & 7]!, isJson: true, data: EVENT_DATA, metadata: EMPTY };
}

export function newEvents(count: number): NewEvent[] {
  return Array.from({ length: count }, (_, i) => newEvent(i));
}
