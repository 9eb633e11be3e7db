import { isSkuaError } from '../base/errors.ts';
import { PAGE_EVENTS_MAX } from '../streams/api.ts';
import { ALL_STREAM } from './api.ts';
import { loadCheckpoint } from './checkpoints.ts';
import type { LoadedCheckpoint } from './checkpoints.ts';
import type { Ledger } from './ledger.ts';
import type { ParkedMessages } from './parked.ts';
import type { GroupParts } from './group-parts.ts';
import { BEFORE_ALL, isEndText, parsePosition, positionText } from './positions.ts';
import type { Position } from './positions.ts';
import type { Cursor, GroupPage, GroupReader } from './reader.ts';
import type { Sender } from './sender.ts';
import type { KeptGroup } from './stored-forms.ts';

/** Most messages that a group reads ahead, whatever its settings say. */
const BACKLOG_MAX = 65_536;

export interface IntakeParts {
  readonly parts: GroupParts;
  readonly kept: KeptGroup;
  readonly ledger: Ledger;
  readonly reader: GroupReader;
  readonly sender: Sender;
  readonly parked: ParkedMessages;
  readonly signal: AbortSignal;
  readonly onLoaded: (checkpoint: LoadedCheckpoint | null) => void;
  /** There are new messages, or the end of the source was seen. */
  readonly onRead: () => void;
  readonly onFailed: (what: string, error: unknown) => void;
}

/**
 * Reads ahead for a group as far as there is room: its history, then what is written, and the parked messages that are
 * replayed.
 */
export class Intake {
  readonly #of: IntakeParts;
  readonly #isAll: boolean;
  #cursor: Cursor = { from: { commit: 0, prepare: 0 }, after: BEFORE_ALL };
  isLoaded = false;
  isReading = false;
  /** The group would read if there were room among what all groups hold. */
  lacksRoom = false;
  /** Last number of the stream when the group was loaded, and events that have come while the group was live. */
  endAtLoad = -1;
  liveCount = 0;
  lastKnown: Position | null = null;
  #isAtEnd = false;
  /** Something may have been written since the end was seen. */
  #hasNews = false;
  #isArmed = false;
  #wake: (() => void) | null = null;
  #waiters: (() => void)[] = [];

  constructor(of: IntakeParts) {
    this.#of = of;
    this.#isAll = of.kept.stream === ALL_STREAM;
  }

  /** All that is written has been read. */
  get isLive(): boolean {
    return this.#isAtEnd && !this.#hasNews;
  }
  /** Nothing before is wanted any more, and has not been read. */
  get seen(): Position {
    return this.#cursor.after;
  }

  /** Reads until the signal aborts. Never rejects. */
  async run(): Promise<void> {
    const {
      parts: { clock, limits },
      sender,
      parked,
      signal,
      onFailed,
    } = this.#of;
    while (!signal.aborted) {
      try {
        if (!this.isLoaded) await this.#load();
        else if (parked.toReplay > 0 && sender.retries.count < limits.batchMax) await this.#replay();
        else if (this.wantsMore()) await this.#read();
        else await this.#sleep();
      } catch (error) {
        onFailed('events could not be read', error);
        this.#tell();
        await clock.sleep(limits.retryMs, signal);
      }
    }
    this.#tell();
  }

  /** There may be room now, or news. */
  wake(): void {
    const wake = this.#wake;
    if (wake === null || !(this.#of.signal.aborted || this.#of.parked.toReplay > 0 || this.wantsMore())) return;
    this.#wake = null;
    wake();
  }

  async #sleep(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
  }

  async #load(): Promise<void> {
    const { parts, kept, ledger, reader, parked, onLoaded } = this.#of;
    await reader.load();
    const loaded = await this.#usable(await loadCheckpoint(parts, kept));
    await parked.load();
    this.#cursor = await this.#start(loaded?.place ?? null);
    if (!this.#isAll) this.endAtLoad = (await parts.store.streamInfo(kept.stream)).lastEventNumber;
    ledger.begin(this.#cursor.after);
    this.isLoaded = true;
    this.#hasNews = true;
    onLoaded(loaded);
  }

  /**
   * A checkpoint at which no record begins is no use: what it stood for is not known. Rather is everything sent again
   * than something left out.
   */
  async #usable(loaded: LoadedCheckpoint | null): Promise<LoadedCheckpoint | null> {
    if (loaded === null || !this.#isAll) return loaded;
    const {
      parts: { store, log },
      kept: { group },
    } = this.#of;
    try {
      await store.readAll({ direction: 'forward', from: notNegative(loaded.place), count: 1, payloads: false });
      return loaded;
    } catch (error) {
      if (!isSkuaError(error, 'invalid_position')) throw error;
      log.error(
        'no log record starts at the checkpoint of a persistent subscription: it starts from the beginning of the log',
        { group, checkpoint: positionText(loaded.place, true), error },
      );
      return { place: BEFORE_ALL, isInitial: true };
    }
  }

  async #start(checkpoint: Position | null): Promise<Cursor> {
    const {
      parts,
      kept: { stream, startPosition },
    } = this.#of;
    if (checkpoint !== null) return { from: notNegative(checkpoint), after: checkpoint };
    if (isEndText(startPosition)) return endOf(parts, stream);
    const from = parsePosition(startPosition, this.#isAll) ?? { commit: 0, prepare: 0 };
    return {
      from,
      after: this.#isAll ? { commit: from.commit, prepare: from.prepare - 1 } : { commit: from.commit - 1, prepare: 0 },
    };
  }

  wantsMore(): boolean {
    const {
      parts: { held, limits, onWork },
      kept: { settings },
      ledger,
      sender,
    } = this.#of;
    if (!this.isLoaded || this.isLive) return false;
    const { count, bytes } = sender.backlog;
    if (count > 0 && count + this.#batch() >= Math.min(settings.historyBufferSize, BACKLOG_MAX)) return false;
    if (count > 0 && sender.consumers.size === 0 && bytes >= limits.idleBufferBytesMax) return false;
    // A group that holds nothing may always read something, or a group would stand still because of others that do.
    const isEmpty = count === 0 && (ledger.open.count === 0 || sender.hasRoom);
    this.lacksRoom = !isEmpty && (held.messages >= limits.openMessagesMax || held.bytes >= limits.bufferBytesMax);
    if (this.lacksRoom) onWork();
    return !this.lacksRoom;
  }

  #batch(): number {
    return Math.max(1, Math.min(this.#of.kept.settings.readBatchSize, PAGE_EVENTS_MAX));
  }

  /** How many events to read: as many batches as there is room for. */
  #count(): number {
    const {
      parts: { held, limits },
      kept: { settings },
      sender,
    } = this.#of;
    const batch = this.#batch();
    const batches = Math.floor((Math.min(settings.historyBufferSize, BACKLOG_MAX) - 1 - sender.backlog.count) / batch);
    return Math.min(batch * Math.max(1, batches), PAGE_EVENTS_MAX, Math.max(1, limits.openMessagesMax - held.messages));
  }

  async #read(): Promise<void> {
    const {
      parts: { held, limits, clock },
      sender,
      reader,
      signal,
    } = this.#of;
    const room = sender.consumers.size === 0 ? limits.idleBufferBytesMax - sender.backlog.bytes : limits.pageBytesMax;
    // What the page may take is held before it is read: many groups read at once.
    const reserved = Math.max(0, Math.min(room, limits.pageBytesMax, limits.bufferBytesMax - held.bytes));
    this.#arm();
    this.#hasNews = false;
    held.bytes += reserved;
    this.isReading = true;
    let page: GroupPage;
    try {
      page = await reader.read(this.#cursor, reserved === 0 ? 1 : this.#count(), reserved);
    } catch (error) {
      this.#hasNews = true;
      throw error;
    } finally {
      held.bytes -= reserved;
      this.isReading = false;
    }
    if (signal.aborted) return;
    this.#accept(page);
    // Such a page may not have waited for anything, and the next one may be like it.
    if (page.events.length === 0) await clock.yield();
  }

  #accept({ events, next, isEnd }: GroupPage): void {
    const {
      parts: { clock },
      ledger,
      sender,
      onRead,
    } = this.#of;
    const nowMs = clock.monotonicMs();
    for (const event of events) {
      const message = ledger.add(event, nowMs);
      sender.backlog.add(message);
      this.lastKnown = { commit: message.commit, prepare: message.prepare };
    }
    if (this.#isAtEnd) this.liveCount += events.length;
    this.#cursor = next;
    this.#isAtEnd = isEnd;
    this.#arm();
    onRead();
    this.#tell();
  }

  /**
   * Sees to it that the group hears of what is written: before a page of a stream is read, so that nothing comes
   * between; of the log, when its end was seen.
   */
  #arm(): void {
    const {
      parts: { store, clock, limits },
      kept,
      signal,
      onFailed,
    } = this.#of;
    if (this.#isArmed || signal.aborted || (this.#isAll && !this.#isAtEnd)) return;
    this.#isArmed = true;
    const heard = () => {
      this.#isArmed = false;
      this.#hasNews = true;
      this.wake();
    };
    const heardLater = async () => {
      await clock.sleep(limits.retryMs, signal);
      heard();
    };
    const news = this.#isAll
      ? store.waitForLog(this.#cursor.from.commit, signal)
      : store.waitForStream(kept.stream, signal);
    void news.then(
      (hasCome) => (hasCome ? heard() : heardLater()),
      (error: unknown) => {
        onFailed("its source can't be followed", error);
        return heardLater();
      },
    );
  }

  async #replay(): Promise<void> {
    const {
      parts: { limits },
      sender,
      parked,
      onRead,
    } = this.#of;
    for (const message of await parked.readReplay(limits.batchMax, limits.pageBytesMax)) sender.retries.add(message);
    onRead();
    this.#tell();
  }

  /** Waits, for a reader without a connection, until something has been read, or there is nothing. */
  async firstMessages(): Promise<void> {
    const { sender, parked, signal } = this.#of;
    const isComing = () => !this.isLoaded || this.isReading || parked.toReplay > 0 || this.wantsMore();
    while (!signal.aborted && sender.retries.count === 0 && sender.backlog.count === 0 && isComing()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiters.push(resolve);
      this.wake();
      // oxlint-disable-next-line no-await-in-loop
      await promise;
    }
  }

  #tell(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}

function notNegative({ commit, prepare }: Position): Position {
  return { commit: Math.max(0, commit), prepare: Math.max(0, prepare) };
}

/** What is written from now on. */
export async function endOf({ store }: Pick<GroupParts, 'store'>, stream: string): Promise<Cursor> {
  if (stream === ALL_STREAM) {
    const end = { commit: store.end, prepare: 0 };
    return { from: end, after: end };
  }
  const { lastEventNumber, isTombstoned } = await store.streamInfo(stream);
  // Of a stream that was deleted for ever nothing comes any more.
  const last = isTombstoned ? -1 : lastEventNumber;
  return { from: { commit: last + 1, prepare: 0 }, after: { commit: last, prepare: 0 } };
}
