/**
 * What the event store for Emmett needs of whatever holds the events. Versions are numbers of events, from 0 on, as the
 * whole of this store counts.
 */

/** What a stream has to be for a write. `none`: no events; a deleted stream that can be written again has none. */
export type Expected = 'any' | 'none' | 'exists' | bigint;

/** An event on its way in. */
export interface OutgoingEvent {
  /** UUID. */
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  /** Undefined for none. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** An event that was read. */
export interface IncomingEvent {
  readonly id: string;
  readonly type: string;
  readonly version: bigint;
  /** Commit position: its place among all events. */
  readonly position: bigint;
  /** JSON value, or bytes of an event that holds something else. */
  readonly data: unknown;
  /** JSON value, or what else is there. */
  readonly metadata: unknown;
}

export interface Appended {
  /** Version of the last event written. */
  readonly version: bigint;
  /** Commit position of the last event written; null where the answer lacks it. */
  readonly position: bigint | null;
}

export interface Connection {
  /**
   * Calls `each` with the events of a stream from a version on, oldest first, `limit` (1 or more) at most. False where
   * there is no such stream, or it was deleted and can be written again. Throws `StreamGone`, what `each` throws, and
   * errors of its own.
   */
  read(stream: string, from: bigint, limit: bigint | undefined, each: (event: IncomingEvent) => void): Promise<boolean>;
  /**
   * Version of the last event of a stream, whether or not that is still there; null where `read` is false. Throws as
   * `read`.
   */
  lastVersion(stream: string): Promise<bigint | null>;
  /**
   * Appends one event or more, all or nothing, durably. The same events again are known by their ids. Throws
   * `VersionConflict`, `StreamGone`, and errors of its own.
   */
  append(stream: string, events: readonly OutgoingEvent[], expected: Expected): Promise<Appended>;
}

/** The stream is another than expected; `actual` is the version of its last event, null where it has none. */
export class VersionConflict extends Error {
  readonly actual: bigint | null;

  constructor(actual: bigint | null, cause: unknown) {
    super('The stream is not at the expected version.', { cause });
    this.actual = actual;
  }
}

/** The stream was deleted for ever: it is never read nor written again. */
export class StreamGone extends Error {
  constructor(cause: unknown) {
    super('The stream was hard-deleted.', { cause });
  }
}
