import { SkuaError } from '../../base/errors.ts';
import { TOMBSTONE } from '../../log/format/records.ts';
import type { Ids } from '../../ports/ids.ts';
import { newId } from '../../ports/ids.ts';
import { ANY, type EventStore, type NewEvent, PAGE_EVENTS_MAX, type StoredEvent } from '../api.ts';
import {
  encodeMark,
  type Mark,
  MARK_KEY_LENGTH_MAX,
  MARK_KEYS_MAX,
  MARK_TYPE,
  MARKS_STREAM,
  REASON_LENGTH_MAX,
} from '../format/marks.ts';

/** Events that one request names at most. */
export const REDACTED_EVENTS_MAX = 1_000;
/** Events of a stream that are looked through for ids at most. */
export const SEARCHED_EVENTS_MAX = 1_000_000;

/** What is to read as empty from now on. */
export interface RedactRequest {
  readonly stream: string;
  /** Numbers of events of the stream, or else ids (UUID text). */
  readonly numbers?: readonly number[];
  readonly ids?: readonly string[];
  readonly reason: string;
  /** Metadata whose names begin with `$`, to go with the others. Default none. */
  readonly metadata?: readonly string[];
}

/** An event that was named. */
export interface RedactedEvent {
  readonly number: number;
  readonly id: string;
  readonly type: string;
  /** Of its record in the log. */
  readonly position: number;
  readonly dataBytes: number;
  readonly metadataBytes: number;
  /** It had a mark before, and gets none. */
  readonly wasRedacted: boolean;
}

export interface RedactOutcome {
  readonly stream: string;
  readonly events: readonly RedactedEvent[];
  /** Position of the last mark in the log; null where none was written. A scavenge point behind it applies them all. */
  readonly position: number | null;
}

/**
 * Finds the events that a request names, and what of them would go; changes nothing. Errors: `bad_request`, those of
 * reading, `event_not_found` (data: stream, number or id), `not_redactable` (data: stream, number).
 */
export async function findRedacted(store: EventStore, request: RedactRequest): Promise<readonly RedactedEvent[]> {
  checkRequest(request);
  const { stream, numbers = [], ids = [], metadata = [] } = request;
  const found = numbers.length > 0 ? await byNumber(store, stream, numbers) : await byId(store, stream, ids);
  return found.map((event) => {
    checkEvent(event);
    return {
      number: event.number,
      id: event.id,
      type: event.type,
      position: event.preparePosition,
      dataBytes: event.data.length,
      metadataBytes: event.metadata.length,
      wasRedacted: metadata.length === 0 && store.redactions.has(event.preparePosition, event.id),
    };
  });
}

/**
 * Redacts events: from the moment at which the call resolves they read as empty, and the next scavenge removes their
 * content from the files. Errors: as `findRedacted`, those of appending, `redactions_full`.
 */
export async function redact(store: EventStore, ids: Ids, by: string, request: RedactRequest): Promise<RedactOutcome> {
  const { stream, reason, metadata = [] } = request;
  const events = await findRedacted(store, request);
  const marks = events
    .filter(({ wasRedacted }) => !wasRedacted)
    .map(({ number, id, position }) =>
      markEvent(ids, { stream, number, id, position, by, reason, keys: [...new Set(metadata)] }),
    );
  const position = marks.length === 0 ? null : (await store.append(MARKS_STREAM, ANY, marks)).position;
  return { stream, events, position };
}

/** The event that says it. */
export function markEvent(ids: Ids, mark: Mark): NewEvent {
  return { id: newId(ids), type: MARK_TYPE, isJson: true, data: encodeMark(mark), metadata: new Uint8Array(0) };
}

function checkRequest({ stream, numbers = [], ids = [], reason, metadata = [] }: RedactRequest): void {
  const named = numbers.length + ids.length;
  const wrong =
    numbers.length > 0 === ids.length > 0
      ? 'Name the events either by number or by id'
      : named > REDACTED_EVENTS_MAX
        ? `At most ${REDACTED_EVENTS_MAX} events can be redacted at a time, and ${named} were named: send several requests`
        : reason.trim() === '' || reason.length > REASON_LENGTH_MAX
          ? `Give a reason of 1 to ${REASON_LENGTH_MAX} characters, without what is to be removed`
          : metadata.length > MARK_KEYS_MAX || metadata.some((key) => !isKey(key))
            ? `Metadata are named by at most ${MARK_KEYS_MAX} names that begin with $, as $correlationId: all others go in any case`
            : null;
  if (wrong !== null) throw new SkuaError('bad_request', `${wrong}.`, { stream });
  if (stream.startsWith('$'))
    throw new SkuaError(
      'not_redactable',
      `${stream} is a stream of the store itself, or holds metadata of one, and its events decide what is shown: write or delete what they are about.`,
      { stream },
    );
}

function isKey(key: string): boolean {
  return key.startsWith('$') && key.length <= MARK_KEY_LENGTH_MAX;
}

/** What marks have no effect on (`isRedactable`, core/log/format/redaction.ts). */
function checkEvent({ stream, number, position, preparePosition }: StoredEvent): void {
  if (number === TOMBSTONE)
    throw new SkuaError('not_redactable', `The tombstone of ${stream} has no content: nothing is to be redacted.`, {
      stream,
      number,
    });
  if (position !== preparePosition)
    throw new SkuaError(
      'not_redactable',
      `Event ${number} of ${stream} is part of an explicit transaction, whose records stay as they were written: delete the stream.`,
      { stream, number },
    );
}

async function byNumber(store: EventStore, stream: string, numbers: readonly number[]): Promise<StoredEvent[]> {
  const found: StoredEvent[] = [];
  for (const number of new Set(numbers)) found.push(await store.readEvent(stream, number));
  return found;
}

async function byId(store: EventStore, stream: string, ids: readonly string[]): Promise<StoredEvent[]> {
  const wanted = new Set(ids.map((id) => id.toLowerCase()));
  const found: StoredEvent[] = [];
  let from: number | 'end' = 'end';
  for (let seen = 0; wanted.size > 0 && seen < SEARCHED_EVENTS_MAX;) {
    const page = await store.readStream(stream, { direction: 'backward', from, count: PAGE_EVENTS_MAX });
    for (const event of page.events) if (wanted.delete(event.id)) found.push(event);
    seen += page.events.length;
    if (page.isEnd) break;
    from = page.nextEventNumber;
  }
  const [missing] = wanted;
  if (missing !== undefined)
    throw new SkuaError(
      'event_not_found',
      `There is no event ${missing} in ${stream}, or not among the last ${SEARCHED_EVENTS_MAX} that can be read: check the id, or name it by number.`,
      { stream, id: missing },
    );
  return found.reverse();
}
