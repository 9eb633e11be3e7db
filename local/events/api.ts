import type {
  AppendCondition,
  AppendResult,
  ConditionQuery,
  EventStore,
  Expected,
  NewEvent,
  Position,
  ReadAllOptions,
  ReadOptions,
  RecordedEvent,
  StreamAppended,
  SubscribeToAllOptions,
  SubscribeToStreamOptions,
} from '../event-store/api.ts';
import type { InputOf, OutputOf, StandardSchema } from './standard-schema.ts';

/**
 * What `skua/events` promises: types of events that are defined once, for every event store. These types name nothing
 * of the insides, and stay what they are within a major version.
 */

/** The data of an event by a type of TypeScript alone: nothing is checked. */
export interface PlainType<Data> extends StandardSchema<Data> {
  readonly isPlain: true;
}

/** The schemas that a type of event has had, the newest last. */
export interface Versions<Newest extends StandardSchema = StandardSchema> {
  readonly newest: Newest;
  readonly upcasts: readonly Upcast[];
  /**
   * A further version, and what makes data of it of those of the version before. Both are as they are stored. What it
   * throws is `event_invalid`.
   */
  next<Next extends StandardSchema>(
    schema: Next,
    upcast: (data: StoredBy<Newest>, event: RecordedEvent) => StoredBy<Next>,
  ): Versions<Next>;
}

/** Makes data of one version more. `event` is as it is stored. */
export type Upcast = (data: unknown, event: RecordedEvent) => unknown;

/** The data of a type of event: a schema, a plain type, or versions of them. */
export type Definition = StandardSchema | Versions;

/** Types of events by their names. */
export type Definitions = Readonly<Record<string, Definition>>;

/** What `defineEvents` takes beside the definitions. */
export interface EventsOptions<Type extends string = string> {
  /**
   * Of the metadata of all events. `$tags` and `$schemaVersion` are not shown to it; other members whose names begin
   * with `$` are kept also where it leaves them out.
   */
  readonly metadata?: StandardSchema;
  /**
   * When schemas are asked: `append`, or `read`, which is at append and at read. A schema that transforms has to take
   * what it gave, as JSON, when it reads. Default `append`: what is read is believed to be what was written.
   */
  readonly check?: 'append' | 'read';
  /**
   * What to do with an event that was read and whose type is not defined: `refuse` ends the reading with
   * `event_unknown`, `keep` gives it as an `UnknownEvent`. Default `refuse`.
   */
  readonly unknown?: 'refuse' | 'keep';
  /** Names that types had before, with those that they have now: both are read, only the newer is written. */
  readonly renamed?: Readonly<Record<string, Type>>;
}

/** Types of events that belong together. `EventOf` and `NewEventOf` give the unions of events. */
export interface Events<Recorded extends RecordedEvent = RecordedEvent, New extends NewNamed = NewEvent> {
  /** All names under which events of them may be stored, older ones included: what a query for them names. */
  readonly types: readonly string[];
  /** A store that knows them. It is closed with the one below, which may be used beside it. */
  over(store: EventStore): TypedEventStore<Recorded, New>;
}

/** The union of what is read, by `type` and `isRedacted`: `EventOf<typeof orders>`. */
export type EventOf<E> = E extends Events<infer Recorded, infer _> ? Recorded : never;

/** The union of what is written, by `type`: `NewEventOf<typeof orders>`. */
export type NewEventOf<E> = E extends Events<infer _, infer New> ? New : never;

/** An event to be written; data and metadata may be left out where they may be undefined. */
export type NewTypedEvent<Type extends string = string, Data = unknown, Metadata = unknown> = {
  [Key in keyof Members<Type, Data, Metadata>]: Members<Type, Data, Metadata>[Key];
};

/** An event of a type that is defined, in its newest form. */
export interface KnownEvent<Type extends string, Data, Metadata = unknown> extends RecordedEvent<Data, Metadata> {
  readonly type: Type;
  readonly isRedacted: false;
}

/** An event of a type that is defined, whose content was taken away: no schema sees it. */
export interface RedactedEvent<Type extends string> extends RecordedEvent<undefined> {
  readonly type: Type;
  readonly isRedacted: true;
}

/** An event of a type that is not defined (`unknown: 'keep'`). `type` tells it from the others. */
export interface UnknownEvent extends RecordedEvent {
  readonly type: '$unknown';
  /** The type that it has in the store. */
  readonly storedType: string;
}

/**
 * An event store whose events have types. Its methods are those of the store below, and reject as they do. Besides,
 * appends reject with `event_invalid` (data: type, index, issues) where an event does not fit its schema, and
 * `event_unknown` where its type is not defined; nothing is written then. What is written is what the schema has made.
 * Readings reject with `event_invalid` (data: type, stream, version, issues) where an event does not fit, or can't be
 * made the newest form of its type, and `event_unknown` where its type, or that version of it, is not defined: an event
 * is never left out.
 */
export interface TypedEventStore<Recorded extends RecordedEvent, New extends NewNamed> extends Omit<
  EventStore,
  'append' | 'appendToStreams' | 'read' | 'readAll' | 'subscribe'
> {
  /** As of every store. The condition's types stand for their older names, too. */
  append(
    events: Tagged<New> | readonly Tagged<New>[],
    options?: { readonly condition?: TypedCondition<New['type']> },
  ): Promise<{ readonly position: Position; readonly isRepeat: boolean }>;

  /** As of every store, with events that are checked. */
  append(
    stream: string,
    events: New | readonly New[],
    options?: { readonly expected?: Expected },
  ): Promise<AppendResult>;

  /** As of every store, with events that are checked. */
  appendToStreams(
    appends: readonly TypedStreamAppend<New>[],
  ): Promise<{ readonly streams: readonly StreamAppended[]; readonly position: Position; readonly isRepeat: boolean }>;

  /** As of every store, with events in their newest form. */
  read(stream: string, options?: ReadOptions): AsyncIterable<Recorded>;

  /** As of every store, of some types alone, older names included. */
  readAll<Type extends New['type']>(
    options: ReadAllOptions & { readonly types: readonly Type[] },
  ): AsyncIterable<Extract<Recorded, { readonly type: Type }>>;

  /** As of every store, with events in their newest form. */
  readAll(options?: ReadAllOptions & { readonly types?: undefined }): AsyncIterable<Recorded>;

  /** As of every store, of some types alone, older names included. */
  subscribe<Type extends New['type']>(
    options: SubscribeToAllOptions & { readonly types: readonly Type[] },
  ): AsyncIterable<Extract<Recorded, { readonly type: Type }>>;

  /** As of every store, with events in their newest form. */
  subscribe(
    options?: SubscribeToStreamOptions | (SubscribeToAllOptions & { readonly types?: undefined }),
  ): AsyncIterable<Recorded>;
}

/** An event that says what it belongs to, and maybe where it lies. */
export type Tagged<New extends NewNamed> = New & { readonly tags?: readonly string[]; readonly stream?: string };

/** Events for one stream of several. */
export interface TypedStreamAppend<New extends NewNamed> {
  readonly stream: string;
  /** One or more. */
  readonly events: readonly New[];
  /** Default `any`. */
  readonly expected?: Expected;
}

/** A condition on events of types that are defined. */
export interface TypedCondition<Type extends string> extends Omit<AppendCondition, 'failIfEventsMatch'> {
  readonly failIfEventsMatch: {
    readonly items: readonly (Omit<ConditionQuery['items'][number], 'types'> & { readonly types?: readonly Type[] })[];
  };
}

/** What is wrong with an event: `data.issues` of `event_invalid`. */
export interface EventIssue {
  readonly message: string;
  /** Begins with `data` or `metadata`. */
  readonly path: readonly (string | number)[];
}

/** Data of a schema as they are stored and read: JSON of what the schema has made. */
export type StoredBy<Schema extends StandardSchema> =
  Schema extends PlainType<infer Data> ? Data : Stored<OutputOf<Schema>>;

/** What JSON makes of a value; a Date, for instance, is a text. */
export type Stored<Value> = Value extends string | number | boolean | null | undefined | Uint8Array
  ? Value
  : Value extends { toJSON(): infer Json }
    ? Json
    : Value extends object
      ? { [Key in keyof Value]: Stored<Value[Key]> }
      : Value;

/** The newest schema of a definition. */
export type SchemaOf<D extends Definition> = D extends StandardSchema
  ? D
  : D extends Versions<infer Newest>
    ? Newest
    : never;
/** The data that are read. */
export type ReadData<Schema extends StandardSchema, Options extends EventsOptions> = Options extends {
  readonly check: 'read';
}
  ? OutputOf<Schema>
  : StoredBy<Schema>;
/** The metadata that are read. */
export type ReadMetadata<Options extends EventsOptions> = Options extends {
  readonly metadata: infer S extends StandardSchema;
}
  ? ReadData<S, Options>
  : unknown;
/** The metadata that are written. */
export type NewMetadata<Options extends EventsOptions> = Options extends {
  readonly metadata: infer S extends StandardSchema;
}
  ? InputOf<S>
  : unknown;
/** What else is read. */
export type Kept<Options extends EventsOptions> = Options extends { readonly unknown: 'keep' } ? UnknownEvent : never;
type Member<Name extends string, Value> = undefined extends Value
  ? { readonly [N in Name]?: Value }
  : { readonly [N in Name]: Value };
type NewNamed = Pick<NewEvent, 'type'>;
type Members<Type, Data, Metadata> = { readonly type: Type; readonly id?: string } & Member<'data', Data> &
  Member<'metadata', Metadata>;
