import { ANY } from '../../../core/streams/api.ts';
import type { AppendResult, EventStore, NewEvent } from '../../../core/streams/api.ts';
import type { Json } from '../codec.ts';
import { loadGrpcExchanges, textOf } from './exchange.ts';
import { textOfStructured } from './likeness.ts';

/** For what was written beside the recorded calls. */
export type Writes = Pick<EventStore, 'append' | 'deleteStream'>;

/**
 * What the recorder did between the recorded calls, as far as the answers show it: events whose identifiers it chose
 * and no recorded request has, and what had to be there for a call to mean what its name says.
 */
export class Recorder {
  readonly #store: Writes;
  readonly #onWritten: (recorded: string, position: number) => void;
  readonly #sent = new Set<string>();
  readonly #written = new Set<string>();
  #next = 0;

  /** `onWritten` is told at which position an event lies here that has another one in the recording. */
  constructor(store: Writes, onWritten: (recorded: string, position: number) => void) {
    this.#store = store;
    this.#onWritten = onWritten;
    for (const { requests } of loadGrpcExchanges()) for (const id of idsIn(requests)) this.#sent.add(id);
  }

  /** Before a call begins. */
  async before(name: string): Promise<void> {
    const [, stream] = /^(?:Delete|Tombstone): (metadata but no events|two events), /.exec(name) ?? [];
    const prefix = name.startsWith('Delete') ? 'g-d' : 'g-t';
    const wanted = name.slice(name.indexOf(', ') + 2).replace(' ', '');
    if (stream === 'metadata but no events') await this.#metadata(`${prefix}-meta-${wanted}`, '{"$maxCount":10}');
    if (stream === 'two events') await this.#events(`${prefix}-ev-${wanted}`, 2);
    if (name === 'ps: create on a stream from start') await this.#numbered('ps-1', 9000, 9007);
  }

  /** While a call is open, once it has received so many messages. */
  async during(name: string, received: number): Promise<void> {
    if (received === 2) {
      if (name === 'sub: stream from a revision past the end') await this.#numbered('cart-1', 5069, 5069);
      if (name === 'sub: soft delete while live, then written') await this.#store.deleteStream('cart-3', ANY, 'soft');
      if (name === 'sub: slow consumer while live') await this.#slow();
      if (name === 'sub: tombstone while live') await this.#store.deleteStream('cart-5', ANY, 'hard');
      if (name === 'sub: access revoked while live') await this.#metadata('cart-7', '{"$acl":{"$r":["$admins"]}}');
      if (name === 'sub: filtered, nothing matches, from end, multiplier 1, max 5')
        await this.#numbered('g-noise', 5486, 5497);
      if (name === 'sub: filtered, window count, multiplier 2, from end, every second matches') {
        for (let id = 5498; id <= 5597; id++) await this.#numbered(id % 2 === 0 ? 'g-noise' : 'g-m', id, id);
      }
      if (name === 'sub: filtered, every event matches, max 4, multiplier 1') await this.#numbered('g-m', 5598, 5606);
    }
    // Its first 60 messages were kept.
    if (received === 60 && name === 'sub: filtered by stream prefix from start, max 32, multiplier 10') {
      await this.#numbered('cart-1', 5084, 5084);
      await this.#numbered('g-noise', 5085, 5485);
    }
    if (received === 1 && name === 'sub: missing stream, then created') await this.#numbered('g-sub-new', 5070, 5071);
  }

  /** Writes what of these answers somebody has written by now, and no recorded request. */
  async saw(answers: readonly Json[]): Promise<void> {
    const missing = answers
      .flatMap((answer) => [answer['event']?.['event'], answer['event']?.['link']])
      .filter((event): event is Json => event !== undefined && this.#isOurs(event));
    missing.sort((a, b) => Number(a['prepare_position']) - Number(b['prepare_position']));
    for (const event of missing) {
      const isJson = event['metadata']['content-type'] === 'application/json';
      const { position } = await this.#append(textOf(event['stream_identifier']['stream_name']), [
        {
          id: idOf(event),
          type: event['metadata']['type'],
          isJson,
          data: Buffer.from(event['data'] ?? '', 'base64'),
          metadata: Buffer.from(event['custom_metadata'] ?? '', 'base64'),
        },
      ]);
      this.#onWritten(event['prepare_position'], position);
    }
  }

  #isOurs(event: Json): boolean {
    const id = idOf(event);
    return id.startsWith('00000000-0000-4000-8000-') && !this.#sent.has(id) && !this.#written.has(id);
  }

  async #numbered(stream: string, first: number, last: number): Promise<void> {
    for (let id = first; id <= last; id++) {
      const event = { ...EVENT, id: `00000000-0000-4000-8000-${String(id).padStart(12, '0')}` };
      if (!this.#written.has(event.id)) await this.#append(stream, [event]);
    }
  }

  async #events(stream: string, count: number): Promise<void> {
    await this.#append(
      stream,
      Array.from({ length: count }, () => ({ ...EVENT, id: this.#id() })),
    );
  }

  /** More than a subscriber was let lag behind. */
  async #slow(): Promise<void> {
    for (let i = 0; i < 90; i++)
      await this.#append('g-slow', [{ ...EVENT, id: this.#id(), data: Buffer.alloc(190_000, 0x61) }]);
  }

  async #metadata(stream: string, json: string): Promise<void> {
    await this.#append(`$$${stream}`, [
      { id: this.#id(), type: '$metadata', isJson: true, data: Buffer.from(json), metadata: new Uint8Array(0) },
    ]);
  }

  async #append(stream: string, events: readonly NewEvent[]): Promise<AppendResult> {
    const result = await this.#store.append(stream, ANY, events);
    for (const { id } of events) this.#written.add(id);
    return result;
  }

  #id(): string {
    return `00000000-0000-4000-9000-${String(++this.#next).padStart(12, '0')}`;
  }
}

const EVENT = { type: 'tested', isJson: true, data: Buffer.from('{"a":1}'), metadata: new Uint8Array(0) };

function idOf({ id }: Json): string {
  return id['string'] ?? textOfStructured(id['structured'] as Json);
}

function* idsIn(json: unknown): Generator<string> {
  if (typeof json !== 'object' || json === null) return;
  for (const [key, value] of Object.entries(json)) {
    if (key === 'id' && typeof value === 'object' && value !== null && !Array.isArray(value))
      yield String((value as Json)['string'] ?? '');
    else if (key !== 'ack' && key !== 'nack') yield* idsIn(value);
  }
}
