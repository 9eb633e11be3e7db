import type { StoredEvent } from '../../core/streams/api.ts';
import type { Call } from '../http/context.ts';
import type { JsonBytes } from '../http/json-bytes.ts';
import { Entries } from './atom-feed.ts';
import {
  contentText,
  LONG_BYTES,
  payloadBytes,
  Payloads,
  prepareContent,
  valueText,
  writeContent,
} from './event-payloads.ts';

/** How a single event is shown. */
export type EventForm = 'data' | 'content' | 'entry';

/** A document of one event: its data alone, the object of `writeContent`, or an entry as in a feed. */
export class EventDocument {
  readonly #call: Call;
  readonly #event: StoredEvent;
  readonly #form: EventForm;
  readonly #author: string;

  constructor(call: Call, event: StoredEvent, form: EventForm, author: string) {
    this.#call = call;
    this.#event = event;
    this.#form = form;
    this.#author = author;
  }

  get isLong(): boolean {
    return payloadBytes(this.#event) > LONG_BYTES;
  }

  /** The whole of a short one where it is no entry: a server sends a short text together with its head. Else null. */
  text(): string | null {
    const event = this.#event;
    if (this.#form === 'entry' || this.isLong) return null;
    return this.#form === 'data' ? valueText(event.data, event.isJson, 0, null) : contentText(event, 1);
  }

  /** Yields behind each of its slices. */
  *write(out: JsonBytes): Generator<void, void, undefined> {
    const event = this.#event;
    if (this.#form === 'entry') {
      const entries = new Entries(this.#call, 'content', this.#author, 1);
      if (this.isLong) yield* entries.prepare(event);
      return entries.write(out, event);
    }
    const payloads = new Payloads();
    if (this.#form === 'content') {
      if (this.isLong) yield* prepareContent(event, 1, payloads);
      writeContent(out, event, 1, payloads);
    } else {
      if (this.isLong) yield* payloads.makeValue(event.data, event.isJson, 0);
      payloads.writeValue(out, event.data, event.isJson, 0);
    }
  }
}
