import { decodeBase64, encodeBase64, encodeBase64Url } from '../base64.ts';
import { isSkuaError, SkuaError } from '../errors.ts';
import { guidFromUuidBytes, guidToText } from '../guid.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Keys } from '../ports/keys.ts';
import type { Log } from '../ports/log.ts';
import { NO_STREAM, PAGE_EVENTS_MAX } from '../streams/api.ts';
import type { EventStore, NewEvent, StoredEvent } from '../streams/api.ts';
import { formatMetadata } from '../streams/metadata.ts';
import { METADATA_TYPE, metastreamOf } from '../streams/names.ts';
import { decodeText, encodeText } from '../text.ts';
import type { SealedSecrets } from './sealed-secrets.ts';
import { infoNow, isUnchanged } from './stream-info.ts';
import type { ObservableStore, StreamInfo, StreamMark } from './stream-info.ts';

/** Keys of sessions, sealed, and the sessions that were ended before their time. Nobody but the node itself has anything to do with it. */
export const SESSION_KEYS_STREAM = '$ui-session-keys';
/** How long a session lasts. */
export const SESSION_MS = 12 * 3_600_000;
/** For so long a key begins sessions; what it has signed counts until it ends. */
export const KEY_SIGNS_MS = 24 * 3_600_000;
const KEY_COUNTS_MS = KEY_SIGNS_MS + SESSION_MS;
/** A key from so far in the future begins no session: the clock of another member is wrong, or was. */
const CLOCK_DIFFERENCE_MS = 300_000;
/** What the stream keeps, so that a scavenge removes what means nothing any more. */
const MAX_AGE_SECONDS = 172_800;
/** Keys stand before what they have signed, so that with too many ends of sessions keys go first, and with them all sessions: none comes back to life. */
export const MAX_COUNT = 100_000;

const KEY_TYPE = '$ui-session-key';
const ENDED_TYPE = '$ui-session-ended';
const KEY_BYTES = 32;
const KEY_ID_BYTES = 9;
const NO_BYTES = new Uint8Array(0);
/** How often a key is made that another member was quicker to make, or that is not to be seen here yet. */
const ATTEMPTS_MAX = 16;
/** What was written elsewhere is waited for. */
const SEEN_MS = 5_000;
const LOOK_AGAIN_MS = 50;
const ABSENT: ReadonlySet<string> = new Set(['stream_not_found', 'stream_deleted', 'event_not_found']);

export interface SessionKeysParts {
  readonly store: ObservableStore;
  /** What the node writes for itself, which in a cluster goes to whoever leads. */
  readonly written: Pick<EventStore, 'append'>;
  /** Asked for once a session is begun, or one comes that has been begun. */
  readonly secrets: () => Promise<SealedSecrets>;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

export interface SessionKey {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly madeMs: number;
  /** Of its event. */
  readonly number: number;
}

/** `number` as of a key. */
interface Ended {
  readonly endsMs: number;
  readonly number: number;
}

const NOTHING: StreamMark = { lastEventNumber: -1, metadataVersion: -1 };

/**
 * What the stream says, held in memory and compared with the end of the stream at every question: what another member writes counts here as soon as this
 * one has it. A key that can't be opened here is none.
 */
export class SessionKeys {
  readonly #parts: SessionKeysParts;
  #keys = new Map<string, SessionKey>();
  #ended = new Map<string, Ended>();
  #mark: StreamMark = NOTHING;
  #refreshing: Promise<void> | null = null;
  #making: Promise<SessionKey> | null = null;
  #hasWarned = false;

  constructor(parts: SessionKeysParts) {
    this.#parts = parts;
  }

  /** Whether what is in memory is all that the stream says, as far as that is known at once. */
  get isUpToDate(): boolean {
    const info = infoNow(this.#parts.store, SESSION_KEYS_STREAM);
    return info !== null && isUnchanged(this.#mark, info);
  }

  /** Takes in what the stream says now. */
  async refresh(): Promise<void> {
    while (!isUnchanged(this.#mark, await this.#parts.store.streamInfo(SESSION_KEYS_STREAM))) {
      this.#refreshing ??= this.#read().finally(() => { this.#refreshing = null; });
      await this.#refreshing;
    }
  }

  /** Null for one that is not known, can't be opened here, or is too old. */
  keyOf(id: string): Uint8Array | null {
    const key = this.#keys.get(id);
    return key !== undefined && this.#parts.clock.nowMs() - key.madeMs < KEY_COUNTS_MS ? key.bytes : null;
  }

  isEnded(session: string): boolean {
    return this.#ended.has(session);
  }

  /** The key that sessions are begun with, made where there is none: that of whoever was first, where several make one at once. Errors: as an append. */
  async signing(): Promise<SessionKey> {
    await this.refresh();
    return this.#newest() ?? (this.#making ??= this.#make().finally(() => { this.#making = null; }));
  }

  /** Ends a session for all members. Errors: as an append. */
  async end(session: string, endsMs: number): Promise<void> {
    const data = encodeText(JSON.stringify({ session, endsMs }));
    for (let i = 1; ; i++) {
      await this.refresh();
      if (this.#ended.has(session)) return;
      if (i > ATTEMPTS_MAX) throw notSettled();
      await this.#append(data, ENDED_TYPE);
    }
  }

  #newest(): SessionKey | null {
    const nowMs = this.#parts.clock.nowMs();
    let newest: SessionKey | null = null;
    for (const key of this.#keys.values()) {
      const ageMs = nowMs - key.madeMs;
      if (ageMs < KEY_SIGNS_MS && ageMs > -CLOCK_DIFFERENCE_MS && (newest === null || key.number > newest.number)) newest = key;
    }
    return newest;
  }

  async #make(): Promise<SessionKey> {
    const { keys, clock } = this.#parts;
    const secrets = await this.#parts.secrets();
    for (let i = 0; i < ATTEMPTS_MAX; i++) {
      const known = this.#newest();
      if (known !== null) return known;
      await this.#prepare();
      const id = encodeBase64Url(keys.randomBytes(KEY_ID_BYTES));
      const madeMs = Math.floor(clock.nowMs());
      const sealed = secrets.seal(encodeBase64(keys.randomBytes(KEY_BYTES)), placeOf(id, madeMs));
      await this.#append(encodeText(JSON.stringify({ keyId: id, madeMs, sealed })), KEY_TYPE);
      await this.refresh();
    }
    throw notSettled();
  }

  /** Behind what is known here, or not at all; then waits until this node has it, or what came in its place. */
  async #append(data: Uint8Array, type: string): Promise<void> {
    const { store, written, clock } = this.#parts;
    const info = await store.streamInfo(SESSION_KEYS_STREAM);
    // What was known when it was decided to write: who was quicker is read first.
    if (!isUnchanged(this.#mark, info)) return;
    try {
      await written.append(SESSION_KEYS_STREAM, info.isSoftDeleted ? NO_STREAM : info.lastEventNumber, [this.#event(type, data)]);
    } catch (error) {
      if (!isSkuaError(error, 'wrong_expected_version')) throw error;
    }
    for (const untilMs = clock.monotonicMs() + SEEN_MS; clock.monotonicMs() < untilMs;) {
      if (!isUnchanged(this.#mark, await store.streamInfo(SESSION_KEYS_STREAM))) return;
      await clock.sleep(LOOK_AGAIN_MS);
    }
  }

  /** Who may see it, and how long it is kept; never over what somebody else has set. */
  async #prepare(): Promise<void> {
    const { store, written } = this.#parts;
    if ((await store.streamInfo(SESSION_KEYS_STREAM)).metadataVersion >= 0) return;
    const nobody: readonly string[] = [];
    const metadata = formatMetadata({ maxAge: MAX_AGE_SECONDS, maxCount: MAX_COUNT, acl: { read: nobody, write: nobody, delete: nobody, metadataRead: nobody, metadataWrite: nobody } });
    await written.append(metastreamOf(SESSION_KEYS_STREAM), NO_STREAM, [this.#event(METADATA_TYPE, encodeText(metadata))]).catch((error: unknown) => {
      if (!isSkuaError(error, 'wrong_expected_version')) throw error;
    });
    await this.refresh();
  }

  #event(type: string, data: Uint8Array): NewEvent {
    return { id: guidToText(guidFromUuidBytes(this.#parts.ids.uuidBytes()), 0), type, isJson: true, data, metadata: NO_BYTES };
  }

  async #read(): Promise<void> {
    const { store } = this.#parts;
    const info = await store.streamInfo(SESSION_KEYS_STREAM);
    // Metadata hides events that were there: then all is read anew.
    const isAppended = info.metadataVersion === this.#mark.metadataVersion && info.lastEventNumber > this.#mark.lastEventNumber;
    const known = isAppended ? { keys: new Map(this.#keys), ended: new Map(this.#ended) } : { keys: new Map<string, SessionKey>(), ended: new Map<string, Ended>() };
    await this.#take(isAppended ? this.#mark.lastEventNumber + 1 : 0, info, known);
    this.#forget(info, known);
    // Whatever the reading has left out is later than this mark, or is hidden.
    this.#keys = known.keys;
    this.#ended = known.ended;
    this.#mark = { lastEventNumber: info.lastEventNumber, metadataVersion: info.metadataVersion };
  }

  async #take(first: number, { lastEventNumber }: StreamInfo, known: Known): Promise<void> {
    const { store } = this.#parts;
    try {
      for (let from = first, isEnd = false; !isEnd && from <= lastEventNumber; ) {
        const page = await store.readStream(SESSION_KEYS_STREAM, { direction: 'forward', from, count: PAGE_EVENTS_MAX });
        for (const event of page.events) if (event.number <= lastEventNumber) await this.#takeOne(event, known);
        ({ isEnd, nextEventNumber: from } = page);
      }
    } catch (error) {
      if (!isSkuaError(error) || !ABSENT.has(error.code)) throw error;
    }
  }

  async #takeOne({ type, data, number }: StoredEvent, { keys, ended }: Known): Promise<void> {
    const value = membersOf(data);
    if (type === ENDED_TYPE && typeof value['session'] === 'string' && typeof value['endsMs'] === 'number') ended.set(value['session'], { endsMs: value['endsMs'], number });
    const { keyId, madeMs, sealed } = value;
    if (type !== KEY_TYPE || typeof keyId !== 'string' || typeof madeMs !== 'number' || typeof sealed !== 'string' || this.#parts.clock.nowMs() - madeMs >= KEY_COUNTS_MS) return;
    const bytes = await this.#open(sealed, placeOf(keyId, madeMs));
    if (bytes !== null) keys.set(keyId, { id: keyId, bytes, madeMs, number });
  }

  /** Null where it can't be opened: its sessions are none here, and nobody is let in by it. */
  async #open(sealed: string, place: readonly string[]): Promise<Uint8Array | null> {
    try {
      const bytes = decodeBase64((await this.#parts.secrets()).open(sealed, place));
      return bytes?.length === KEY_BYTES ? bytes : null;
    } catch (error) {
      if (!this.#hasWarned) this.#parts.log.warn('a key of sessions of the web page can not be opened here, so that whoever has logged in by it has to log in again: members of a cluster need the same data-protection token, or the same ClusterSecret', { error: String(error) });
      this.#hasWarned = true;
      return null;
    }
  }

  /** What means nothing any more, and what the stream does not show any more. */
  #forget({ lastEventNumber }: StreamInfo, { keys, ended }: Known): void {
    const nowMs = this.#parts.clock.nowMs();
    const firstShown = lastEventNumber - MAX_COUNT + 1;
    for (const [id, { madeMs, number }] of keys) if (number < firstShown || nowMs - madeMs >= KEY_COUNTS_MS) keys.delete(id);
    for (const [id, { endsMs, number }] of ended) if (number < firstShown || endsMs <= nowMs) ended.delete(id);
  }
}

interface Known {
  readonly keys: Map<string, SessionKey>;
  readonly ended: Map<string, Ended>;
}

/** A sealed key that was moved to another event does not open there. */
function placeOf(keyId: string, madeMs: number): readonly string[] {
  return [SESSION_KEYS_STREAM, keyId, String(madeMs)];
}

function membersOf(data: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(decodeText(data));
    return typeof value === 'object' && value !== null ? value as Record<string, unknown> : {};
  } catch {
    return {};
  }
}

function notSettled(): SkuaError {
  return new SkuaError('too_busy', 'The stream of sessions is being written to again and again, or this member lags behind: try again.', { retryAfterSeconds: 1 });
}
