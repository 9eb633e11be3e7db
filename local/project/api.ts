import type {
  Checkpoint,
  CheckpointOptions,
  EventQuery,
  Filter,
  Position,
  RecordedEvent,
  SubscribeToAllOptions,
  SubscribeToStreamOptions,
} from '../event-store/api.ts';

export type * from '../event-store/api.ts';

/**
 * What `skua/project` promises: models that are made of events, in order and exactly once. These types name nothing of
 * the insides, and stay what they are within a major version.
 */

/** What a projection needs of a store: every `EventStore` has it, and one with types of `skua/events` in front. */
export interface EventSource<Event extends RecordedEvent = RecordedEvent> {
  subscribe(options?: SubscribeToStreamOptions | SubscribeToAllOptions): AsyncIterable<Event>;
  checkpoint(options?: CheckpointOptions): Promise<{ readonly checkpoint: Checkpoint | null; readonly end: number }>;
}

/** Which events a projection reads: one stream, or those of all streams that have all of what is named. */
export type ProjectionFilter =
  | {
      readonly stream: string;
      /** Give the targets of links instead of the links. Default false. */
      readonly resolveLinks?: boolean;
    }
  | (EventQuery & {
      readonly stream?: undefined;
      readonly filter?: Filter;
      /** Also the system's own events, whose types begin with `$`. Default false. */
      readonly system?: boolean;
      readonly resolveLinks?: boolean;
    });

/**
 * Makes of one event what the model holds of it. `tx` is the model's: a connection in the transaction of the batch, or
 * the state. What it returns is awaited, and means nothing. What it does elsewhere is done again where the batch is.
 */
export type Handler<Tx, Event> = { handle(tx: Tx, event: Event): unknown }['handle'];

/** By the type of the event. */
export type Handlers<Tx, Event extends RecordedEvent> = string extends Event['type']
  ? { readonly [Type in string]: Handler<Tx, RecordedEvent> }
  : { readonly [Type in Event['type']]?: Handler<Tx, Whole<Extract<Event, { readonly type: Type }>>> };

/** Those of a union that were not redacted. */
export type Whole<Event extends RecordedEvent> = Exclude<Event, { readonly isRedacted: true }>;

/** What `project` takes. */
export interface ProjectionOptions<Tx, Event extends RecordedEvent> {
  /**
   * 1 to 200 characters. Where the projection is is kept under it: another name builds the model anew, beside the one
   * of the old name. It has to be another one when `filter` or handlers change, unless what they skipped may be
   * skipped.
   */
  readonly name: string;
  /** Default: all events that `on` has a handler for. */
  readonly filter?: ProjectionFilter;
  /**
   * Where it begins, as long as nothing is kept under its name: behind the event at a position, or at the end of the
   * log. Only `start` where one stream is read. Default `start`.
   */
  readonly after?: 'start' | 'end' | Position;
  /** Where the model is. */
  readonly store: Model<Tx>;
  /** Makes what the handlers need, as tables: once, in the transaction in which the projection begins. */
  readonly init?: (tx: Tx) => unknown;
  readonly on: Handlers<Tx, Event>;
  /** Of events of all types that `on` has no handler for. Default: they are passed over. */
  readonly onOther?: Handler<Tx, Whole<Event>>;
  /** Of an event whose content was taken away before it was read. Default: it is passed over. */
  readonly onErased?: Handler<Tx, RecordedEvent<undefined>>;
  /** Limits of what is committed together. */
  readonly batch?: Partial<BatchLimits>;
}

/** A batch ends at the first of these. */
export interface BatchLimits {
  /** 1 to 10 000. Default 500. */
  readonly events: number;
  /** Of data and metadata as JSON, behind one event at least. Default 4 MiB. */
  readonly bytes: number;
  /** That handlers take; one that is under way ends. Default 1 000. */
  readonly milliseconds: number;
}

/**
 * A place for models, and for where they are: a text for each name. Adapters implement it; so can a program, for a
 * database that has transactions.
 */
export interface Model<Tx> {
  /** The text that was committed last under a name; null where there is none. */
  load(name: string): Promise<string | null>;
  /**
   * Commits what `work` does with `tx`, and the text that it gives, in one transaction: where the text is still
   * `previous`, else nothing, and resolves with false. What `work` throws rolls back and is thrown. `work` is called
   * once at most, and answers at once where nothing has to be waited for.
   */
  commit(name: string, previous: string | null, work: (tx: Tx) => string | Promise<string>): Promise<boolean>;
  /** Default of `batch.events`. */
  readonly batchEvents?: number;
  /**
   * False where what `work` did stays done when it throws. Behind a failure, what came before the event that failed is
   * then kept as it is, else done again. Default true.
   */
  readonly rollsBack?: boolean;
}

/** How a projection stands. */
export interface ProjectionStatus {
  readonly name: string;
  /**
   * `standing-by`: another instance is at work. `stopped`: not called yet, or ended; `run` and `catchUp` go on.
   */
  readonly state: 'stopped' | 'catching-up' | 'live' | 'standing-by';
  /** Behind the last event that the model holds; null at the beginning. */
  readonly checkpoint: Checkpoint | null;
  /** All events that there were have been handled. */
  readonly isCaughtUp: boolean;
  /** Bytes of the log from there to its end, as far as that is known; 0 where it is caught up, null before a look. */
  readonly behindBytes: number | null;
  /** When the last event that this instance has handled was written; null before one. */
  readonly lastEventAt: Date | null;
  /** Events that this instance has handled. */
  readonly events: number;
}

/** A projection. It does nothing until it is called. */
export interface Projection {
  readonly name: string;
  /**
   * Catches up, goes on with what is appended, and resolves when the signal aborts, behind the batch under way.
   *
   * @throws `projection_failed` (data: projection, stream, version, type, id, position) where a handler threw; nothing
   * of that event is kept, and `run` goes on with it. `checkpoint_unknown` where the log is not the one that the model
   * was made of. `projection_running` while a call is under way. What store and model reject with.
   */
  run(options?: { readonly signal?: AbortSignal }): Promise<void>;
  /**
   * Handles what there is, and resolves when that is done, or the deadline (a Date, or milliseconds since 1970) near;
   * the next call goes on there. For functions, by a schedule or before a request is answered.
   *
   * @throws as `run`.
   */
  catchUp(options?: { readonly deadline?: Date | number; readonly signal?: AbortSignal }): Promise<ProjectionStatus>;
  status(): ProjectionStatus;
}
