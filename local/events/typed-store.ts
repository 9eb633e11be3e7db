import type {
  EventQuery,
  AppendCondition,
  EventStore,
  Expected,
  NewEvent,
  ReadAllOptions,
  ReadOptions,
  RecordedEvent,
  StreamAppend,
  SubscribeToAllOptions,
  SubscribeToStreamOptions,
  TaggedEvent,
} from '../event-store/api.ts';
import type { TypedEventStore } from './api.ts';
import type { EventTypes } from './event-types.ts';

type AppendOptions = { readonly expected?: Expected; readonly condition?: AppendCondition };

/** A store whose events are checked on their way in, and in their newest form on their way out. */
export function typedStore(types: EventTypes, store: EventStore): TypedEventStore<RecordedEvent, NewEvent> {
  async function written<E extends NewEvent>(events: E | readonly E[], stream?: string): Promise<E[]> {
    const checked: E[] = [];
    for (const [index, event] of ((Array.isArray(events) ? events : [events]) as readonly E[]).entries())
      // Tags and stream go along.
      checked.push((await types.written(event, index, stream)) as E);
    return checked;
  }

  async function* read(events: AsyncIterable<RecordedEvent>): AsyncGenerator<RecordedEvent, void, undefined> {
    for await (const event of events) yield types.read(event);
  }

  /** Types stand for their older names, too. */
  function asStored<Q extends EventQuery>(query: Q): Q {
    return {
      ...query,
      ...(query.types !== undefined && { types: types.storedNames(query.types) }),
      ...(query.items !== undefined && { items: query.items.map(asStored) }),
    };
  }

  return {
    async append(
      target: string | TaggedEvent | readonly TaggedEvent[],
      given?: NewEvent | readonly NewEvent[] | AppendOptions,
      options?: AppendOptions,
    ) {
      if (typeof target === 'string')
        return store.append(target, await written(given as NewEvent | readonly NewEvent[]), options);
      const { condition } = (given as AppendOptions | undefined) ?? {};
      return store.append(
        await written(target),
        condition && { condition: { ...condition, failIfEventsMatch: asStored(condition.failIfEventsMatch) } },
      ) as never;
    },

    async appendToStreams(appends: readonly StreamAppend[]) {
      const checked: StreamAppend[] = [];
      for (const append of appends) checked.push({ ...append, events: await written(append.events, append.stream) });
      return store.appendToStreams(checked);
    },

    read: (stream: string, options?: ReadOptions) => read(store.read(stream, options)),
    readAll: (options: ReadAllOptions = {}) => read(store.readAll(asStored(options))),
    subscribe: (options: SubscribeToStreamOptions | SubscribeToAllOptions = {}) =>
      read(store.subscribe(options.stream === undefined ? asStored(options) : options)),

    checkpoint: (options) => store.checkpoint(options),
    delete: (stream, options) => store.delete(stream, options),
    info: (stream) => store.info(stream),
    metadata: (stream) => store.metadata(stream),
    setMetadata: (stream, metadata, options) => store.setMetadata(stream, metadata, options),
    close: () => store.close(),
    [Symbol.asyncDispose]: () => store.close(),
  };
}
