import { isSkuaError } from '../../core/base/errors.ts';
import { ANY } from '../../core/streams/api.ts';
import type {
  AllPosition,
  AppendResult,
  AppendToStreamsOptions,
  EventStore,
  NewEvent,
  StoredEvent,
  StreamPage,
  StreamWrite,
} from '../../core/streams/api.ts';
import type { EventStoreInternals } from '../../core/streams/streams.ts';
import { readWholeStream } from './oracle.ts';
import type { Command, Expected } from './commands.ts';

const STREAMS = ['plain', 'second stream', '$system-one', 'ünï-日本'] as const;
/** Ids that the commands choose start like this; others are the store's own and differ from store to store. */
const OWN_ID = '00000000-0000-4000-8000-';
const text = new TextEncoder();

type Append = (stream: string, expectedVersion: number, events: readonly NewEvent[]) => Promise<AppendResult>;

interface Earlier {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expectedVersion: number;
}

/**
 * Plays commands on a store and says what came of each, in a form that is the same for every right store: ids that a
 * store invented are hidden, and so are positions, which depend on the log.
 */
export class Player {
  readonly #open: () => Promise<{ store: EventStore; close(): Promise<void> }>;
  readonly #advance: (ms: number) => Promise<void>;
  readonly #stepBack: (ms: number) => void;
  #opened!: { store: EventStore; close(): Promise<void> };
  #earlier: Earlier[] = [];
  readonly #together: { readonly writes: readonly StreamWrite[]; readonly options: AppendToStreamsOptions }[] = [];
  #ids = 0;
  readonly #isOpen: boolean;

  /** Without `stepBack` the clock only goes on. `isOpen`: the store has a way in for what it would refuse. */
  constructor(
    open: () => Promise<{ store: EventStore; close(): Promise<void> }>,
    advance: (ms: number) => Promise<void>,
    stepBack: (ms: number) => void = () => {},
    isOpen = true,
  ) {
    this.#open = open;
    this.#advance = advance;
    this.#stepBack = stepBack;
    this.#isOpen = isOpen;
  }

  async start(): Promise<void> {
    this.#opened = await this.#open();
  }

  async stop(): Promise<void> {
    await this.#opened.close();
  }

  async play(command: Command): Promise<string> {
    try {
      return JSON.stringify((await this.#perform(command)) ?? null, sorted);
    } catch (error) {
      if (!isSkuaError(error)) throw error;
      if (error.code === 'consistency_violation') return `${error.code} ${JSON.stringify(error.data['violations'])}`;
      return error.code === 'wrong_expected_version'
        ? `${error.code} ${String(error.data['expected'])} ${String(error.data['actual'])}`
        : error.code;
    }
  }

  async #perform(command: Command): Promise<unknown> {
    const { store } = this.#opened;
    switch (command.do) {
      case 'append': {
        const events = command.sizes.map((size) => this.#newEvent(size, command.isJson));
        return this.#append(STREAMS[command.stream]!, command.expected, events);
      }
      case 'together':
        return this.#appendTogether(command);
      case 'together-again':
        return this.#appendAgain(command);
      case 'repeat':
        return this.#repeat(command);
      case 'metadata':
        return this.#setMetadata(command);
      case 'delete': {
        const stream = STREAMS[command.stream]!;
        await store.deleteStream(stream, await this.#versionOf(stream, command.expected), command.kind);
        return 'deleted';
      }
      case 'advance':
        return this.#advance(command.ms);
      case 'step-back': {
        this.#stepBack(command.hours * 3_600_000);
        return null;
      }
      case 'reopen': {
        await this.#opened.close();
        this.#opened = await this.#open();
        return null;
      }
      case 'read': {
        const { direction, from, count, resolveLinks } = command;
        return pageOf(await store.readStream(nameOf(command), { direction, from, count, resolveLinks }));
      }
      case 'event':
        return eventOf(await store.readEvent(nameOf(command), command.number));
      case 'info':
        return store.streamInfo(STREAMS[command.stream]!);
      case 'all':
        return (await wholeAll(store, command.direction, command.count, command.resolveLinks)).map(eventOf);
    }
  }

  async #appendTogether({ writes, checks, isRepeatable }: Command & { do: 'together' }): Promise<unknown> {
    const named = writes.map((write) => ({
      ...write,
      stream: write.meta === 0 ? `$$${STREAMS[write.stream]!}` : STREAMS[write.stream]!,
    }));
    const made: StreamWrite[] = [];
    for (const { stream, expected, sizes, meta } of named) {
      const isAlone = checks.length === 0 && named.filter((other) => other.stream === stream).length === 1;
      const events =
        meta === 0
          ? [
              {
                id: this.#newId(),
                type: '$metadata',
                isJson: true,
                data: text.encode(`{"$tb":${sizes[0]! % 3 === 0 ? '9223372036854775807' : sizes[0]! % 9}}`),
                metadata: new Uint8Array(0),
              },
            ]
          : sizes.map((size) => this.#newEvent(size, true));
      made.push({
        stream,
        events,
        expectedVersion: isAlone && meta !== 0 ? await this.#versionOf(stream, expected) : ANY,
      });
    }
    const asked = [];
    for (const { stream, expected } of checks)
      asked.push({ stream: STREAMS[stream]!, expectedVersion: await this.#versionOf(STREAMS[stream]!, expected) });
    this.#together.push({ writes: made, options: { checks: asked, isRepeatable } });
    return this.#toStreams(made, { checks: asked, isRepeatable });
  }

  async #appendAgain({ earlier, how }: Command & { do: 'together-again' }): Promise<unknown> {
    if (this.#together.length === 0) return 'nothing yet';
    const { writes, options } = this.#together[earlier % this.#together.length]!;
    const more = how === 'longer' ? [{ stream: 'more', expectedVersion: ANY, events: [this.#newEvent(4, true)] }] : [];
    return this.#toStreams(
      how === 'shorter' && writes.length > 1 ? writes.slice(1) : [...writes, ...more],
      how === 'unchecked' ? {} : { ...options, isRepeatable: true },
    );
  }

  async #toStreams(writes: readonly StreamWrite[], options: AppendToStreamsOptions): Promise<unknown> {
    const { store } = this.#opened;
    const { streams, position, isRepeat } = await store.appendToStreams(writes, options);
    if (position >= store.end || !streams.some((one) => one.position === position))
      throw new Error(`${position} is not the position of the last event.`);
    return { streams: streams.map(({ stream, lastEventNumber }) => [stream, lastEventNumber]), isRepeat };
  }

  async #repeat(command: Command & { do: 'repeat' }): Promise<unknown> {
    if (this.#earlier.length === 0) return 'nothing yet';
    const earlier = this.#earlier[command.earlier % this.#earlier.length]!;
    const events =
      command.how === 'shorter'
        ? earlier.events.slice(1)
        : command.how === 'longer'
          ? [...earlier.events, this.#newEvent(3, true)]
          : earlier.events;
    const stream = command.how === 'other-stream' ? STREAMS[0] : earlier.stream;
    if (events.length === 0) return 'nothing left';
    return this.#append(
      stream,
      'fixed' in command.expected ? command.expected : { fixed: earlier.expectedVersion },
      events,
    );
  }

  /** What a store refuses to take as metadata it may hold all the same, from other programs. */
  async #setMetadata({ stream, expected, isJson, text: json }: Command & { do: 'metadata' }): Promise<unknown> {
    const events = [
      { id: this.#newId(), type: '$metadata', isJson, data: text.encode(json), metadata: new Uint8Array(0) },
    ];
    const metastream = `$$${STREAMS[stream]!}`;
    const store = this.#opened.store as EventStoreInternals;
    try {
      return await this.#append(metastream, expected, events);
    } catch (error) {
      if (!isSkuaError(error, 'invalid_metadata')) throw error;
      this.#earlier.pop();
      if (!this.#isOpen) return { refused: true };
      return {
        refused: true,
        left: await this.#append(metastream, expected, events, (...args) => store.appendInternal(...args)),
      };
    }
  }

  async #append(
    stream: string,
    expected: Expected,
    events: readonly NewEvent[],
    append: Append = (...args) => this.#opened.store.append(...args),
  ): Promise<unknown> {
    const expectedVersion = await this.#versionOf(stream, expected);
    this.#earlier.push({ stream, events, expectedVersion });
    const { firstEventNumber, lastEventNumber, isRepeat, position } = await append(stream, expectedVersion, events);
    if (position >= this.#opened.store.end)
      throw new Error(`The event at ${position} was acknowledged, but the log ends at ${this.#opened.store.end}.`);
    return { firstEventNumber, lastEventNumber, isRepeat };
  }

  async #versionOf(stream: string, expected: Expected): Promise<number> {
    if ('fixed' in expected) return expected.fixed;
    const info = await this.#opened.store.streamInfo(stream);
    return info.isTombstoned ? 0 : info.lastEventNumber + expected.fromLast;
  }

  #newId(): string {
    return OWN_ID + String(++this.#ids).padStart(12, '0');
  }

  #newEvent(size: number, isJson: boolean): NewEvent {
    // Now and then a link, to an event that may exist or not.
    if (size % 11 === 5)
      return {
        id: this.#newId(),
        type: '$>',
        isJson: false,
        data: text.encode(`${size % 7}@${STREAMS[size % 4]!}`),
        metadata: new Uint8Array(0),
      };
    const data = isJson ? text.encode(`{"n":"${'y'.repeat(size)}"}`) : new Uint8Array(size).fill(size);
    return { id: this.#newId(), type: `type-${size % 3}`, isJson, data, metadata: new Uint8Array(size % 4).fill(0x31) };
  }

  /** All that can be read of the store. */
  async everything(): Promise<string> {
    const { store } = this.#opened;
    const streams: unknown[] = [];
    for (const stream of STREAMS.flatMap((name) => [name, `$$${name}`])) {
      for (const direction of ['forward', 'backward'] as const) {
        const read = await readWholeStream(store, stream, direction, direction === 'forward' ? 3 : 4);
        streams.push([stream, direction, Array.isArray(read) ? read.map(eventOf) : read]);
      }
    }
    const forward = (await wholeAll(store, 'forward', 5, false)).map(eventOf);
    const backward = (await wholeAll(store, 'backward', 4, false)).map(eventOf);
    return JSON.stringify(
      { streams, forward, isReverse: JSON.stringify(backward.reverse()) === JSON.stringify(forward) },
      null,
      1,
    );
  }
}

/** Puts members in order, so that only their values count. */
function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function nameOf(command: { stream: number; meta: boolean }): string {
  return (command.meta ? '$$' : '') + STREAMS[command.stream]!;
}

/** Reads `$all` in pages and checks that positions run the right way. */
async function wholeAll(
  store: EventStore,
  direction: 'forward' | 'backward',
  count: number,
  resolveLinks: boolean,
): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  let from: AllPosition | 'start' | 'end' = direction === 'forward' ? 'start' : 'end';
  for (;;) {
    const page = await store.readAll({ direction, from, count, resolveLinks });
    if (page.events.length > count) throw new Error(`A page of ${count} events has ${page.events.length}.`);
    for (const event of page.events) {
      const at = event.link ?? event;
      const last = events.at(-1);
      const lastAt = last === undefined ? null : (last.link ?? last);
      if (
        lastAt !== null &&
        (direction === 'forward' ? at.position <= lastAt.position : at.position >= lastAt.position)
      )
        throw new Error(`$all ${direction} gives ${at.position} after ${lastAt.position}.`);
      events.push(event);
    }
    if (page.isEnd) return events;
    from = page.next;
  }
}

function pageOf(page: StreamPage): unknown {
  const { stream, from, lastEventNumber, nextEventNumber, isEnd, metadata } = page;
  return { stream, from, lastEventNumber, nextEventNumber, isEnd, metadata, events: page.events.map(eventOf) };
}

function eventOf(event: StoredEvent): unknown {
  return {
    stream: event.stream,
    number: event.number,
    type: event.type,
    id: event.id.startsWith(OWN_ID) ? event.id : 'its own',
    isJson: event.isJson,
    data: Buffer.from(event.data).toString('latin1'),
    metadata: Buffer.from(event.metadata).toString('latin1'),
    createdMs: event.createdMs,
    link: event.link === null ? null : eventOf(event.link),
    linkTargetMissing: event.linkTargetMissing,
  };
}
