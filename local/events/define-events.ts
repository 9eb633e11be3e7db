import { eventTypes } from './event-types.ts';
import { typedStore } from './typed-store.ts';
import type {
  Definitions,
  Events,
  EventsOptions,
  Kept,
  KnownEvent,
  NewMetadata,
  NewTypedEvent,
  PlainType,
  ReadData,
  ReadMetadata,
  RedactedEvent,
  SchemaOf,
  StoredBy,
  Upcast,
  Versions,
} from './api.ts';
import type { InputOf, StandardSchema } from './standard-schema.ts';

/**
 * Types of events by their names, with a schema of any library of Standard Schema each, a plain type (`type<…>()`), or
 * versions of them (`versions(…)`).
 *
 * @example
 *   const orders = defineEvents({
 *     OrderPlaced: z.object({ pieces: z.int() }),
 *     OrderPaid: type<{ euros: number }>(),
 *   });
 *   const store = orders.over(await openStore({ memory: true }));
 *   await store.append('order-1', { type: 'OrderPlaced', data: { pieces: 2 } });
 *   for await (const event of store.read('order-1'))
 *     if (!event.isRedacted && event.type === 'OrderPlaced') console.log(event.data.pieces); // 2
 *
 * @throws TypeError for a definition that is none, and a name before that stands for a type which is not defined.
 */
export function defineEvents<
  const D extends Definitions,
  const Options extends EventsOptions<keyof D & string> = { readonly check?: 'append' },
>(
  definitions: D,
  options?: Options,
): Events<
  // Not by names of their own, which messages of the compiler would show in place of the events.
  | {
      [Type in keyof D & string]:
        | KnownEvent<Type, ReadData<SchemaOf<D[Type]>, Options>, ReadMetadata<Options>>
        | RedactedEvent<Type>;
    }[keyof D & string]
  | Kept<Options>,
  {
    [Type in keyof D & string]: NewTypedEvent<Type, InputOf<SchemaOf<D[Type]>>, NewMetadata<Options>>;
  }[keyof D & string]
> {
  const types = eventTypes(definitions, options);
  return {
    types: types.storedNames(Object.keys(definitions)),
    // What is checked when it runs is what the types say, which the compiler can't see.
    over: (store) => typedStore(types, store) as never,
  };
}

/** The data of an event by a type of TypeScript alone: nothing is checked. */
export function type<Data>(): PlainType<Data> {
  return {
    isPlain: true,
    '~standard': { version: 1, vendor: 'skua', validate: (value) => ({ value: value as Data }) },
  };
}

/**
 * The schemas that a type of event has had. Events are written as the newest, whose number they have in their metadata
 * (`$schemaVersion`; events without are of the first), and read as the newest.
 *
 * @example
 *   const orders = defineEvents({
 *     OrderPlaced: versions(type<{ pieces: number }>()).next(
 *       z.object({ pieces: z.int(), currency: z.string() }),
 *       (data) => ({ ...data, currency: 'EUR' }),
 *     ),
 *   });
 */
export function versions<First extends StandardSchema>(first: First): Versions<First> {
  return versionsOf(first, []);
}

function versionsOf<S extends StandardSchema>(newest: S, upcasts: readonly Upcast[]): Versions<S> {
  return {
    newest,
    upcasts,
    next: (schema, upcast) => versionsOf(schema, [...upcasts, (data, event) => upcast(data as StoredBy<S>, event)]),
  };
}
