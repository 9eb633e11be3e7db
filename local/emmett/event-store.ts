import {
  assertExpectedVersionMatchesCurrent,
  downcastRecordedMessages,
  ExpectedVersionConflictError,
  NO_CONCURRENCY_CHECK,
  STREAM_DOES_NOT_EXIST,
  STREAM_EXISTS,
  tryPublishMessagesAfterCommit,
  upcastRecordedMessage,
} from 'emmett-current';
import type {
  AggregateStreamOptions,
  AggregateStreamResult,
  AppendToStreamOptions,
  AppendToStreamResult,
  Event,
  ExpectedStreamVersion,
  ReadEvent,
  ReadStreamOptions,
  ReadStreamResult,
} from 'emmett-current';
import { StreamGone, VersionConflict } from './emmett-connection.ts';
import type { Connection, Expected, OutgoingEvent } from './emmett-connection.ts';
import { SkuaEventStoreError } from './emmett-errors.ts';
import { committed, outgoing, recorded, refuseNoJson } from './emmett-events.ts';
import type { SkuaEventStore, SkuaEventStoreOptions, SkuaReadEventMetadata } from './api.ts';

/** Version of a stream without events. */
export const SkuaEventStoreDefaultStreamVersion = -1n;

/** Versions beyond are none: numbers of events are safe integers. */
const VERSION_MAX = BigInt(Number.MAX_SAFE_INTEGER);

type Recorded<E extends Event> = ReadEvent<E, SkuaReadEventMetadata>;
type Range = Pick<ReadStreamOptions, 'from' | 'to' | 'maxCount' | 'expectedStreamVersion'>;
type Ends = Pick<ReadStreamResult<Event>, 'streamExists'> & { readonly currentStreamVersion: bigint };

/**
 * The event store over one connection. Its methods stand for themselves, so that it may be wrapped by a copy of them,
 * as Emmett does.
 */
export function eventStoreOver(connection: Connection, { hooks }: SkuaEventStoreOptions = {}): SkuaEventStore {
  async function readStream<E extends Event, Payload extends Event = E>(
    stream: string,
    options?: ReadStreamOptions<bigint, E, Payload>,
  ): Promise<ReadStreamResult<E, SkuaReadEventMetadata>> {
    const events: Recorded<E>[] = [];
    const ends = await readRange(
      connection,
      stream,
      options,
      readerOf<E, Payload>(stream, options, (event) => {
        events.push(event);
      }),
    );
    return { ...ends, events };
  }

  /** Event by event, so that a long stream is never held as a whole. */
  async function aggregateStream<State, E extends Event, Payload extends Event = E>(
    stream: string,
    { evolve, initialState, read }: AggregateStreamOptions<State, E, SkuaReadEventMetadata, Payload>,
  ): Promise<AggregateStreamResult<State>> {
    let state = initialState();
    const ends = await readRange(
      connection,
      stream,
      read,
      readerOf<E, Payload>(stream, read, (event) => {
        state = evolve(state, event);
      }),
    );
    return { ...ends, state };
  }

  async function appendToStream<E extends Event, Payload extends Event = E>(
    stream: string,
    events: E[],
    options?: AppendToStreamOptions<bigint, E, Payload>,
  ): Promise<AppendToStreamResult> {
    const expectedVersion = options?.expectedStreamVersion ?? NO_CONCURRENCY_CHECK;
    const expected = expectedOf(expectedVersion);
    if (events.length === 0) {
      const currentStreamVersion = (await lastVersion(connection, stream)) ?? SkuaEventStoreDefaultStreamVersion;
      assertExpectedVersionMatchesCurrent(currentStreamVersion, expectedVersion, SkuaEventStoreDefaultStreamVersion);
      return { nextExpectedStreamVersion: currentStreamVersion, createdNewStream: false };
    }
    const written = downcastRecordedMessages<E, Payload, SkuaReadEventMetadata>(
      events,
      options?.schema?.versioning,
    ).map(outgoing);
    const { version, position } = await append(stream, written, expected, expectedVersion);
    const first = version - BigInt(events.length) + 1n;
    const onAfterCommit = hooks?.onAfterCommit;
    if (onAfterCommit !== undefined) {
      // What goes wrong from here on is reported by Emmett's own means: the events are written.
      const tell = async (): Promise<void> => {
        await onAfterCommit(await messagesOf(stream, events, written, first, position));
      };
      await tryPublishMessagesAfterCommit<SkuaEventStore>([], { onAfterCommit: tell });
    }
    return { nextExpectedStreamVersion: version, createdNewStream: first === 0n || expected === 'none' };
  }

  async function append(
    stream: string,
    events: readonly OutgoingEvent[],
    expected: Expected,
    expectedVersion: ExpectedStreamVersion,
  ) {
    try {
      return await connection.append(stream, events, expected);
    } catch (error) {
      if (error instanceof VersionConflict)
        throw Object.assign(
          new ExpectedVersionConflictError(error.actual ?? SkuaEventStoreDefaultStreamVersion, expectedVersion),
          { cause: error.cause },
        );
      refuseNoJson(events);
      throw goneError(stream, error);
    }
  }

  /**
   * The events with their places among all. Of one event an append tells it; of several they are read, but for those
   * that the stream's metadata hide already, which get that of the next one that is there.
   */
  async function messagesOf(
    stream: string,
    events: readonly Event[],
    written: readonly OutgoingEvent[],
    first: bigint,
    last: bigint | null,
  ): Promise<Recorded<Event>[]> {
    const positions = new Map<bigint, bigint>();
    if (last !== null) positions.set(first + BigInt(events.length) - 1n, last);
    if (positions.size < events.length)
      await connection.read(stream, first, BigInt(events.length), ({ version, position }) => {
        positions.set(version, position);
      });
    let next = last ?? 0n;
    return events
      .map((event, index) => ({ event, index }))
      .reverse()
      .map(({ event, index }) => {
        const version = first + BigInt(index);
        next = positions.get(version) ?? next;
        return committed(stream, event, written[index]!, version, next);
      })
      .reverse();
  }

  async function streamExists(stream: string): Promise<boolean> {
    return (await lastVersion(connection, stream)) !== null;
  }

  return { readStream, aggregateStream, appendToStream, streamExists };
}

/** What takes the events of a stream as they are stored, and gives them on as they are now. */
function readerOf<E extends Event, Payload extends Event>(
  stream: string,
  options: ReadStreamOptions<bigint, E, Payload> | undefined,
  each: (event: Recorded<E>) => void,
) {
  const versioning = options?.schema?.versioning;
  return (event: Parameters<Parameters<Connection['read']>[3]>[0]): void => {
    each(upcastRecordedMessage<E, Payload, SkuaReadEventMetadata>(recorded<Payload>(stream, event), versioning));
  };
}

async function readRange(
  connection: Connection,
  stream: string,
  options: Range | undefined,
  each: Parameters<Connection['read']>[3],
): Promise<Ends> {
  const { from = 0n, to, maxCount, expectedStreamVersion } = options ?? {};
  checkNumber('from', from);
  if (to !== undefined) checkNumber('to', to);
  if (maxCount !== undefined && (typeof maxCount !== 'bigint' || maxCount < 1n))
    throw new SkuaEventStoreError(
      'invalid_count',
      400,
      `maxCount is ${String(maxCount)}: leave it out, or give 1n or more.`,
    );
  const wanted = to === undefined ? undefined : to > from ? to - from : 0n;
  const limit = wanted === undefined || (maxCount !== undefined && maxCount < wanted) ? maxCount : wanted;

  let count = 0n;
  let lastSeen: bigint | null = null;
  const isThere =
    limit === 0n
      ? (await lastVersion(connection, stream)) !== null
      : await told(stream, () =>
          connection.read(stream, from, limit, (event) => {
            count++;
            lastSeen = event.version;
            // Where the first events of a range are gone, as many behind it come in their place.
            if (to === undefined || event.version < to) each(event);
          }),
        );
  const ends = (streamExists: boolean, currentStreamVersion: bigint): Ends => ({ streamExists, currentStreamVersion });
  if (!isThere) {
    assertExpectedVersionMatchesCurrent(
      SkuaEventStoreDefaultStreamVersion,
      expectedStreamVersion,
      SkuaEventStoreDefaultStreamVersion,
    );
    return ends(false, SkuaEventStoreDefaultStreamVersion);
  }

  const isToEnd = limit === undefined || count < limit;
  const isChecked = expectedStreamVersion !== undefined && expectedStreamVersion !== NO_CONCURRENCY_CHECK;
  // The last event that a read to the end has shown is the last of the stream; otherwise it has to be asked for, if it
  // matters.
  const last: bigint | null =
    isToEnd && lastSeen !== null
      ? lastSeen
      : isToEnd || isChecked || limit === 0n
        ? await lastVersion(connection, stream)
        : null;
  if (isChecked)
    assertExpectedVersionMatchesCurrent(
      last ?? SkuaEventStoreDefaultStreamVersion,
      expectedStreamVersion,
      SkuaEventStoreDefaultStreamVersion,
    );
  const readTo = isToEnd || limit === 0n || lastSeen === null ? (last ?? SkuaEventStoreDefaultStreamVersion) : lastSeen;
  return ends(true, to !== undefined && readTo >= to ? to - 1n : readTo);
}

function lastVersion(connection: Connection, stream: string): Promise<bigint | null> {
  return told(stream, () => connection.lastVersion(stream));
}

async function told<T>(stream: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw goneError(stream, error);
  }
}

function goneError(stream: string, error: unknown): unknown {
  return error instanceof StreamGone
    ? new SkuaEventStoreError(
        'stream_deleted',
        410,
        `The stream '${stream}' was hard-deleted: use another name.`,
        error.cause,
      )
    : error;
}

/** Throws `invalid_event_number`. */
function checkNumber(name: string, value: unknown): void {
  if (typeof value !== 'bigint' || value < 0n || value > VERSION_MAX)
    throw new SkuaEventStoreError(
      'invalid_event_number',
      400,
      `${name} is ${String(value)}: it must be a bigint from 0n to ${VERSION_MAX}n.`,
    );
}

/** Throws `invalid_expected_version`. */
function expectedOf(version: ExpectedStreamVersion): Expected {
  switch (version) {
    case NO_CONCURRENCY_CHECK:
      return 'any';
    case STREAM_EXISTS:
      return 'exists';
    // As reads say it of a stream without events.
    case STREAM_DOES_NOT_EXIST:
    case SkuaEventStoreDefaultStreamVersion:
      return 'none';
    default:
  }
  if (typeof version === 'bigint' && version >= 0n && version <= VERSION_MAX) return version;
  throw new SkuaEventStoreError(
    'invalid_expected_version',
    400,
    `expectedStreamVersion is ${String(version)}: it must be a bigint that a read returned, or one of Emmett's constants.`,
  );
}
