import { encodeBase64 } from '../../core/base/base64.ts';
import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { CheckpointDocument } from '../../handlers/documents/checkpoints.ts';
import type { EventDocument } from '../../handlers/documents/streams.ts';
import type { AppendedDocument, StreamInfoDocument } from '../../handlers/documents/together.ts';
import { checkedExpected, checkedList, type GivenEvent, givenEvent, taggedEvents } from '../event-store/given.ts';
import { ACCESS, customMetadata, METADATA_NUMBERS, metadataEvent } from '../event-store/metadata-members.ts';
import { positionAt } from '../event-store/values.ts';
import { EXPECTED_NUMBERS } from '../event-store/words.ts';
import type {
  AppendCondition,
  AppendResult,
  CallOptions,
  Checkpoint,
  CheckpointOptions,
  Client,
  DeleteOptions,
  Expected,
  NewEvent,
  Position,
  ReadAllOptions,
  ReadOptions,
  RecordedEvent,
  RecordedMetadata,
  SetMetadataOptions,
  StreamAppend,
  StreamAppended,
  StreamInfo,
  StreamMetadata,
  SubscribeToAllOptions,
  SubscribeToStreamOptions,
  TaggedEvent,
} from './api.ts';
import { type Caller, jsonOf } from './caller.ts';
import { unexpected } from './client-errors.ts';
import { followCalled } from './client-following.ts';
import { pathOf, readAllCalled, readCalled, withQuery } from './client-reading.ts';

export class CalledStore implements Client {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  readonly append: Client['append'] = ((first: unknown, second: never, third: never) =>
    typeof first === 'string'
      ? this.#append(first, second, third)
      : this.#appendIf(first as TaggedEvent, second)) as Client['append'];

  async #append(
    stream: string,
    events: NewEvent | readonly NewEvent[],
    { expected, signal }: CallOptions & { readonly expected?: Expected } = {},
  ): Promise<AppendResult> {
    this.#caller.check(signal);
    const checked = checkedExpected(expected);
    const given = checkedList(events).map(givenEvent);
    const { streams, position, isRepeat } = await this.#post(appendText(stream, checked, given), signal);
    const { version } = streams[0]!;
    return { version, firstVersion: version - given.length + 1, position: positionAt(position), isRepeat };
  }

  async #appendIf(
    events: TaggedEvent | readonly TaggedEvent[],
    { condition, signal }: CallOptions & { readonly condition?: AppendCondition } = {},
  ): Promise<{ readonly position: Position; readonly isRepeat: boolean }> {
    this.#caller.check(signal);
    const appends = taggedEvents(events).map(({ stream, event }) => appendText(stream, 'any', [event]));
    const { position, isRepeat } = await this.#post(
      `{"appends":[${appends.join()}]${conditionText(condition)}}`,
      signal,
    );
    return { position: positionAt(position), isRepeat };
  }

  async appendToStreams(
    appends: readonly StreamAppend[],
    { signal }: CallOptions = {},
  ): Promise<{ streams: readonly StreamAppended[]; position: Position; isRepeat: boolean }> {
    this.#caller.check(signal);
    const texts = appends.map(({ stream, events, expected }) => {
      const given = checkedList(events).map(givenEvent);
      return appendText(stream, checkedExpected(expected), given);
    });
    if (texts.length === 0) throw new SkuaError('batch_empty', 'There are no streams to append to: give one or more.');
    const { streams, position, isRepeat } = await this.#post(`{"appends":[${texts.join()}]}`, signal);
    return {
      streams: streams.map((each) => ({ ...each, position: positionAt(each.position) })),
      position: positionAt(position),
      isRepeat,
    };
  }

  #post(body: string, signal: AbortSignal | undefined): Promise<AppendedDocument> {
    return this.#caller.value(
      { method: 'POST', path: '/streams', headers: { 'content-type': 'application/json' }, body },
      signal,
    );
  }

  read<Data = unknown, Metadata = unknown>(
    stream: string,
    options?: ReadOptions,
  ): AsyncIterable<RecordedEvent<Data, Metadata>> {
    return readCalled(this.#caller, stream, options);
  }

  readAll<Data = unknown, Metadata = unknown>(options?: ReadAllOptions): AsyncIterable<RecordedEvent<Data, Metadata>> {
    return readAllCalled(this.#caller, options);
  }

  subscribe<Data = unknown, Metadata = unknown>(
    options?: SubscribeToStreamOptions | SubscribeToAllOptions,
  ): AsyncIterable<RecordedEvent<Data, Metadata>> {
    return followCalled(this.#caller, options);
  }

  async checkpoint({ signal, ...options }: CallOptions & CheckpointOptions = {}): Promise<{
    checkpoint: Checkpoint | null;
    end: number;
  }> {
    this.#caller.check(signal);
    const search = new URLSearchParams({ options: JSON.stringify(options) });
    return this.#caller.value<CheckpointDocument>(
      { method: 'GET', path: withQuery('/checkpoint', search), headers: {} },
      signal,
    );
  }

  async delete(
    stream: string,
    { expected, hard = false, signal }: CallOptions & DeleteOptions = {},
  ): Promise<{ readonly position: Position }> {
    this.#caller.check(signal);
    const { headers } = await this.#caller.whole(
      {
        method: 'DELETE',
        path: pathOf(stream),
        headers: {
          'es-expectedversion': String(numberOf(checkedExpected(expected))),
          'es-harddelete': String(hard),
        },
      },
      signal,
    );
    const position = headers.get('es-position');
    if (position === null) throw unexpected(204, 'it does not say where the deletion lies');
    return { position: positionAt(Number(position)) };
  }

  async info(stream: string, { signal }: CallOptions = {}): Promise<StreamInfo> {
    this.#caller.check(signal);
    return this.#caller.value<StreamInfoDocument>(
      { method: 'GET', path: `${pathOf(stream)}/info`, headers: {} },
      signal,
    );
  }

  async metadata(stream: string, { signal }: CallOptions = {}): Promise<RecordedMetadata> {
    this.#caller.check(signal);
    try {
      const { text } = await this.#caller.whole(
        {
          method: 'GET',
          path: `${pathOf(stream)}/metadata`,
          headers: { accept: 'application/vnd.eventstore.event+json', 'es-resolvelinktos': 'false' },
        },
        signal,
      );
      const { eventNumber = null, data } = jsonOf(text) as Partial<EventDocument>;
      return { version: eventNumber, ...inForce(data), ...customMetadata(data) };
    } catch (error) {
      if (isSkuaError(error, 'stream_not_found')) return { version: null };
      throw error;
    }
  }

  async setMetadata(
    stream: string,
    metadata: StreamMetadata,
    { expected, signal }: CallOptions & SetMetadataOptions = {},
  ): Promise<AppendResult> {
    this.#caller.check(signal);
    pathOf(stream);
    return this.#append(`$$${stream}`, metadataEvent(stream, metadata), {
      ...(expected !== undefined && { expected }),
      ...(signal !== undefined && { signal }),
    });
  }

  async close(): Promise<void> {
    this.#caller.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function conditionText(condition: AppendCondition | undefined): string {
  if (condition === undefined) return '';
  const { failIfEventsMatch, after } = condition;
  return `,"condition":${JSON.stringify({ failIfEventsMatch, after: after?.commit })}`;
}

/** What is appended to a stream, as JSON. Payloads are such already. */
function appendText(stream: string, expected: Expected, events: readonly GivenEvent[]): string {
  return `{"stream":${JSON.stringify(stream)},"expected":${JSON.stringify(expected)},"events":[${events.map(eventText).join()}]}`;
}

function eventText({ id, type, data, metadata }: GivenEvent): string {
  return `{"id":${JSON.stringify(id)},"type":${JSON.stringify(type)}${member('data', data)}${member('metadata', metadata)}}`;
}

function member(name: string, payload: string | Uint8Array | undefined): string {
  if (payload === undefined || payload.length === 0) return '';
  return typeof payload === 'string' ? `,"${name}":${payload}` : `,"${name}Base64":"${encodeBase64(payload)}"`;
}

function numberOf(expected: Expected): number {
  return typeof expected === 'number' ? expected : EXPECTED_NUMBERS[expected];
}

/** What means something of the members that metadata have. */
function inForce(data: unknown): StreamMetadata {
  if (typeof data !== 'object' || data === null) return {};
  const members = data as Readonly<Record<string, unknown>>;
  const numbers = METADATA_NUMBERS.flatMap(([name, key, min]) => {
    const value = members[key];
    // Of a stream that was deleted `$tb` is a number beyond all versions, and no limit that a user has set.
    return Number.isSafeInteger(value) && (value as number) >= min && value !== Number.MAX_SAFE_INTEGER
      ? [[name, value]]
      : [];
  });
  const list = members['$acl'];
  const access =
    typeof list === 'object' && list !== null
      ? ACCESS.flatMap(([name, key]) => {
          const roles = (list as Readonly<Record<string, unknown>>)[key];
          return roles === undefined || roles === null ? [] : [[name, typeof roles === 'string' ? [roles] : roles]];
        })
      : null;
  return {
    ...(Object.fromEntries(numbers) as StreamMetadata),
    ...(access !== null && { access: Object.fromEntries(access) as StreamMetadata['access'] & {} }),
  };
}
