import { isSkuaError, SkuaError } from '../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import { ANY, NO_STREAM, PAGE_EVENTS_MAX } from '../streams/api.ts';
import type { EventStore, NewEvent, StoredEvent } from '../streams/api.ts';
import { formatMetadata } from '../streams/format/metadata.ts';
import { METADATA_TYPE, metastreamOf } from '../streams/format/names.ts';
import { decodeText, encodeText } from '../base/text.ts';
import { infoNow, isUnchanged } from './stream-info.ts';
import type { ObservableStore, StreamInfo, StreamMark } from './stream-info.ts';

/** The sessions that were ended before their time. Only the node itself reads and writes this stream. */
export const SESSION_ENDS_STREAM = '$ui-ended-sessions';
/**
 * Ends that the stream keeps, so that a scavenge removes the others. No age: what is missing at its beginning was taken
 * away, and does not mean that it was old.
 */
const MAX_COUNT = 100_000;

const ENDED_TYPE = '$ui-session-ended';
/** Stands for no session, where all ends were taken away: sessions that begin from then on count. */
const NO_SESSION = '';
const NO_BYTES = new Uint8Array(0);
/** What a leader has written is waited for here. */
const SEEN_MS = 5_000;
const LOOK_AGAIN_MS = 50;
const ABSENT: ReadonlySet<string> = new Set(['stream_not_found', 'stream_deleted', 'event_not_found']);

interface SessionEndsParts {
  readonly store: ObservableStore;
  /** What the node writes for itself, which in a cluster goes to the leader. */
  readonly written: Pick<EventStore, 'append'>;
  readonly clock: Clock;
  readonly ids: Ids;
}

interface Ended {
  readonly number: number;
  readonly endedMs: number;
}

const NOTHING: StreamMark = { lastEventNumber: -1, metadataVersion: -1 };

/**
 * What the stream says, held in memory and compared with the end of the stream at every question: what another member
 * writes counts here as soon as this one has it. Where older ends are not kept any more, a session that began before
 * the oldest one that is was perhaps ended, and counts as that.
 */
export class SessionEnds {
  readonly #parts: SessionEndsParts;
  /** By session, in the order of the stream. */
  #ended = new Map<string, Ended>();
  /** Of the first event that the stream shows. */
  #first = 0;
  #mark: StreamMark = NOTHING;
  #refreshing: Promise<void> | null = null;

  constructor(parts: SessionEndsParts) {
    this.#parts = parts;
  }

  /** Whether what is in memory is all that the stream says, as far as that is known at once. */
  get isUpToDate(): boolean {
    const info = infoNow(this.#parts.store, SESSION_ENDS_STREAM);
    return info !== null && isUnchanged(this.#mark, info);
  }

  /** Takes in what the stream says now. */
  async refresh(): Promise<void> {
    while (!isUnchanged(this.#mark, await this.#parts.store.streamInfo(SESSION_ENDS_STREAM))) {
      this.#refreshing ??= this.#read().finally(() => {
        this.#refreshing = null;
      });
      await this.#refreshing;
    }
  }

  /** Whether a session that began then has been ended. */
  isEnded(session: string, beganMs: number): boolean {
    return beganMs <= this.#keptFromMs || this.#ended.has(session);
  }

  /** Ends of up to then may be missing. */
  get #keptFromMs(): number {
    if (this.#first === 0) return -Infinity;
    for (const { endedMs } of this.#ended.values()) return endedMs;
    return Infinity;
  }

  /**
   * When a session begins that begins now: behind the oldest end that is kept, also where the clock of the process that
   * wrote this end was ahead. Errors: as an append.
   */
  async beginning(): Promise<number> {
    await this.refresh();
    if (this.#keptFromMs === Infinity) await this.end(NO_SESSION);
    return Math.max(Math.floor(this.#parts.clock.nowMs()), this.#keptFromMs + 1);
  }

  /**
   * Ends a session for all members; then waits until this node has it. Errors: as an append; `too_busy` where that
   * takes long; `invalid_metadata` where the stream hides what is written to it.
   */
  async end(session: string): Promise<void> {
    const { written, clock } = this.#parts;
    await this.#prepare();
    const { lastEventNumber } = await written.append(SESSION_ENDS_STREAM, ANY, [
      this.#event(ENDED_TYPE, encodeText(JSON.stringify({ session, endedMs: Math.floor(clock.nowMs()) }))),
    ]);
    for (const untilMs = clock.monotonicMs() + SEEN_MS; ; await clock.sleep(LOOK_AGAIN_MS)) {
      await this.refresh();
      if (this.#ended.has(session)) return;
      if (this.#mark.lastEventNumber >= lastEventNumber)
        throw new SkuaError(
          'invalid_metadata',
          `The metadata of ${SESSION_ENDS_STREAM} hides what is written to it, so no one can log in: an administrator must write it without $tb, or delete the stream.`,
          { stream: SESSION_ENDS_STREAM, key: '$tb' },
        );
      if (clock.monotonicMs() >= untilMs)
        throw new SkuaError('too_busy', 'The end of the session is written, but this member lags behind: try again.', {
          retryAfterSeconds: 1,
        });
    }
  }

  /** Who may see the stream, and how long it is kept; never over what a user has set. */
  async #prepare(): Promise<void> {
    const { store, written } = this.#parts;
    if ((await store.streamInfo(SESSION_ENDS_STREAM)).metadataVersion >= 0) return;
    const nobody: readonly string[] = [];
    const metadata = formatMetadata({
      maxCount: MAX_COUNT,
      acl: { read: nobody, write: nobody, delete: nobody, metadataRead: nobody, metadataWrite: nobody },
    });
    await written
      .append(metastreamOf(SESSION_ENDS_STREAM), NO_STREAM, [this.#event(METADATA_TYPE, encodeText(metadata))])
      .catch((error: unknown) => {
        if (!isSkuaError(error, 'wrong_expected_version')) throw error;
      });
  }

  #event(type: string, data: Uint8Array): NewEvent {
    return {
      id: guidToText(guidFromUuidBytes(this.#parts.ids.uuidBytes()), 0),
      type,
      isJson: true,
      data,
      metadata: NO_BYTES,
    };
  }

  async #read(): Promise<void> {
    const { store } = this.#parts;
    const info = await store.streamInfo(SESSION_ENDS_STREAM);
    // Metadata hides events that were there: then all is read anew.
    const isAppended =
      info.metadataVersion === this.#mark.metadataVersion && info.lastEventNumber > this.#mark.lastEventNumber;
    const known: Known = isAppended
      ? { ended: this.#ended, first: this.#first }
      : { ended: new Map(), first: info.lastEventNumber + 1 };
    await this.#take(isAppended ? this.#mark.lastEventNumber + 1 : 0, info, known);
    this.#forget(info, known);
    // Whatever the reading has left out is later than this mark, or is hidden.
    this.#ended = known.ended;
    this.#first = known.first;
    this.#mark = { lastEventNumber: info.lastEventNumber, metadataVersion: info.metadataVersion };
  }

  async #take(first: number, { lastEventNumber }: StreamInfo, known: Known): Promise<void> {
    const { store } = this.#parts;
    try {
      for (let from = first, isEnd = false; !isEnd && from <= lastEventNumber;) {
        const page = await store.readStream(SESSION_ENDS_STREAM, {
          direction: 'forward',
          from,
          count: PAGE_EVENTS_MAX,
        });
        for (const event of page.events) if (event.number <= lastEventNumber) this.#takeOne(event, known);
        ({ isEnd, nextEventNumber: from } = page);
      }
    } catch (error) {
      if (!isSkuaError(error) || !ABSENT.has(error.code)) throw error;
    }
  }

  #takeOne({ type, data, number }: StoredEvent, known: Known): void {
    known.first = Math.min(known.first, number);
    const { session, endedMs } = membersOf(data);
    if (type === ENDED_TYPE && typeof session === 'string' && typeof endedMs === 'number' && !known.ended.has(session))
      known.ended.set(session, { number, endedMs });
  }

  /** What the stream does not show any more. */
  #forget({ lastEventNumber }: StreamInfo, known: Known): void {
    known.first = Math.max(known.first, lastEventNumber - MAX_COUNT + 1);
    for (const [session, { number }] of known.ended) {
      if (number >= known.first) break;
      known.ended.delete(session);
    }
  }
}

interface Known {
  readonly ended: Map<string, Ended>;
  first: number;
}

function membersOf(data: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(decodeText(data));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
