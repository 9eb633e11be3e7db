import { type AttributeSetting, NO_ATTRIBUTES } from '../attributes/api.ts';
import type { ByteShare } from '../base/byte-budget.ts';
import { SkuaError } from '../base/errors.ts';
import { TOMBSTONE } from '../log/format/records.ts';
import type {
  AllPage,
  AllPosition,
  AppendResult,
  AppendToStreamsOptions,
  AppendToStreamsResult,
  Authorize,
  CheckpointAnswer,
  CheckpointOptions,
  EventStore,
  NewEvent,
  ReadAllOptions,
  ReadStreamOptions,
  StoredEvent,
  StreamInfo,
  StreamPage,
  StreamWrite,
  SubscribeAllOptions,
  SubscribeStreamOptions,
  SubscriptionMessage,
  SubscriptionPage,
} from './api.ts';
import { PAGE_EVENTS_MAX } from './api.ts';
import { Appender } from './appender.ts';
import type { CommittedParts, CommittedRecords } from './committed/committed.ts';
import {
  type AppendRequest,
  checkExpected,
  CompleteChunkRequest,
  DeleteRequest,
  type EpochDecision,
  type EpochInput,
  EpochRequest,
  EventChecks,
  EventsRequest,
  EventTypes,
  type PendingRequest,
  StreamsRequest,
} from './append-request.ts';
import {
  assertReadable,
  countRead,
  DEFAULT_OPTIONS,
  type EventStoreDeps,
  type EventStoreOptions,
  pageLimits,
  stateOf,
  type StoreContext,
  viewOf,
} from './store-context.ts';
import { checkCondition } from './condition-search.ts';
import { Conditions } from './conditions.ts';
import { checkQuery } from './event-query/event-query.ts';
import { followAll, followStream } from './following.ts';
import { LinkViews, readLink } from './link-views/link-views.ts';
import { resolveLink, resolveLinks } from './resolve-links.ts';
import { Lookup } from './lookup/lookup.ts';
import { checkMeaning, METASTREAM_METADATA } from './format/metadata.ts';
import { PageBytes } from '../base/page-bytes.ts';
import {
  checkNumber,
  checkReadableName,
  checkWritableName,
  isMetastream,
  isViewName,
  POINT_TYPE,
  POINTS_STREAM,
} from './format/names.ts';
import { MARKS_STREAM } from './format/marks.ts';
import { readAllPage } from './read-all.ts';
import { checkAttributeSetting, loadSetting, settingStays } from './load-setting/load-setting.ts';
import { SETTING_STREAM } from '../attributes/format/setting.ts';
import { checkMarks, loadMarks, marksStay } from './load-marks/load-marks.ts';
import type { MarkColumns } from './format/mark-columns.ts';
import type { RedactionView } from './redactions/redaction-view.ts';
import { readPage, readVisible } from './read-stream.ts';
import { primeRecentIds, RecentIds } from './recent-ids.ts';
import { checkpointOf } from './reader-checkpoint.ts';
import { RecordTime } from './record-time.ts';
import { type StreamState, StreamView } from './stream-state.ts';
import { StreamStates } from './stream-states.ts';
import { messagesOf, Waiters } from './subscriptions.ts';
export type { CommittedRecords } from './committed/committed.ts';
export type { EventStoreOptions } from './store-context.ts';
export type { FoundStream, NamesWanted } from './find-names/find-names.ts';

interface InternalAppendOptions {
  /** End the chunk behind this write, as a scavenge point needs it. */
  readonly completeChunkAfter?: boolean;
}

/** Figures of the moment; hits and misses since the start. */
export interface StreamFigures {
  readonly appendsQueued: number;
  readonly statesInMemory: number;
  readonly stateHits: number;
  readonly stateMisses: number;
  /** Subscriptions and waits. */
  readonly subscriptions: number;
}

/** The store with what only parts of the node itself use. */
export interface EventStoreInternals extends EventStore {
  /** As `append`, also of metadata that are not understood, and without a limit of their size. */
  appendInternal(
    stream: string,
    expectedVersion: number,
    events: readonly NewEvent[],
    options?: InternalAppendOptions,
  ): Promise<AppendResult>;
  /**
   * Completes the ongoing chunk if `position` lies in it, as it does when the process ended between a scavenge point
   * and the completion of its chunk. Rejects with what stands in the way, or resolves all the same: look at the chunk.
   */
  completeChunk(position: number): Promise<void>;
  /**
   * Forgets what is remembered of hard-deleted streams: a scavenge that ignores hard deletes has removed their
   * tombstones.
   */
  forgetTombstones(): void;
  /**
   * The end of the log is about to be moved by another writer's records: what is being put together for it is put back.
   */
  overtake(): void;
  /**
   * Takes in the records of a commit that another writer of the same log has made, and shows them to readers. Not while
   * a group of this store is on its way to the log.
   */
  follow(records: CommittedRecords): void;
  /**
   * Forgets what is remembered of streams and event ids: the log has come to `end` by records that this process has not
   * seen.
   */
  forgetStreams(end: number): void;
  /**
   * Writes an epoch record and its event, and returns the record's position. Rejects as appends do, and with what the
   * decision refuses with.
   */
  writeEpoch(epoch: EpochInput | EpochDecision): Promise<number>;
  /** Reads the marks of redaction that the log has. Call it before the first read. */
  loadMarks(): Promise<void>;
  /** The newest setting of attribute indexes that the log has; null where it has none. */
  loadSetting(): Promise<AttributeSetting | null>;
  /** Takes marks that were read elsewhere. */
  addMarks(marks: MarkColumns): void;
  /**
   * Remembers the ids of the last events of the log, so that repeats of requests from before a restart are recognised.
   * Call it before the first append.
   */
  primeRecentIds(): Promise<void>;
  figures(): StreamFigures;
  /**
   * Finishes what is in flight, rejects what waits, ends subscriptions. Later calls that write reject with
   * `store_closed`.
   */
  close(): Promise<void>;
}

/** Creates the store over a recovered log and a replayed index. */
export function createEventStore(deps: EventStoreDeps): EventStoreInternals {
  return new Store(deps);
}

class Store implements EventStoreInternals {
  readonly #deps: EventStoreDeps;
  readonly #options: EventStoreOptions;
  readonly #context: StoreContext;
  readonly #waiters: Waiters;
  readonly #committed: CommittedParts;
  readonly #checks: EventChecks;
  readonly #conditions: Conditions;
  readonly #appender: Appender;
  readonly #views: LinkViews;

  constructor(deps: EventStoreDeps) {
    this.#deps = deps;
    this.#options = { ...DEFAULT_OPTIONS, ...deps.options };
    const lookup = new Lookup(deps.reader, deps.index);
    // Its own, so that a scan can ask for a state while it looks at a record.
    const states = new StreamStates(
      new Lookup(deps.reader, deps.index),
      deps.index.hasher,
      this.#options.streamStatesMax,
    );
    const { clock, meter, attributes = NO_ATTRIBUTES } = deps;
    this.#context = { lookup, states, attributes, clock, meter, options: this.#options };
    this.#waiters = new Waiters(this.#options.subscriptionsMax);
    this.#views = new LinkViews(this.#context, this.#waiters, deps.log);
    this.#committed = {
      index: deps.index,
      states,
      recent: new RecentIds(this.#options.recentIds),
      times: new RecordTime(lookup, deps),
      log: deps.commitLog,
      reader: deps.reader,
      waiters: this.#waiters,
      redactions: lookup.redactions,
      attributes,
      onEpoch: deps.onEpoch,
    };
    const types = new EventTypes();
    this.#checks = new EventChecks(types);
    const { shared } = deps.commitLog;
    const { times } = this.#committed;
    this.#conditions = new Conditions({
      lookup,
      states,
      attributes,
      clock,
      times,
      confirm: shared === undefined ? null : () => shared.confirm(),
    });
    this.#appender = new Appender({
      deps,
      options: this.#options,
      lookup,
      types,
      committed: this.#committed,
      conditions: this.#conditions,
    });
  }

  get end(): number {
    return this.#deps.reader.end;
  }

  get redactions(): RedactionView {
    return this.#context.lookup.redactions;
  }

  addMarks(marks: MarkColumns): void {
    this.#context.lookup.redactions.addMissing(marks);
  }

  loadSetting(): Promise<AttributeSetting | null> {
    return loadSetting(this.#context.lookup);
  }

  loadMarks(): Promise<void> {
    const { lookup, clock } = this.#context;
    return loadMarks(lookup, lookup.redactions, clock);
  }

  figures(): StreamFigures {
    const { states } = this.#context;
    return {
      appendsQueued: this.#appender.queued,
      statesInMemory: states.size,
      stateHits: states.hits,
      stateMisses: states.misses,
      subscriptions: this.#waiters.count,
    };
  }

  append(
    stream: string,
    expectedVersion: number,
    events: readonly NewEvent[],
    authorize?: Authorize,
  ): Promise<AppendResult> {
    const refusal = checkBytes(events, this.#options.appendBytesMax) ?? this.#checkMeaning(stream, events);
    return refusal === null
      ? this.appendInternal(stream, expectedVersion, events, undefined, authorize)
      : Promise.reject(refusal);
  }

  appendInternal(
    stream: string,
    expectedVersion: number,
    events: readonly NewEvent[],
    options?: InternalAppendOptions,
    authorize?: Authorize,
  ): Promise<AppendResult> {
    const refusal = checkWritableName(stream) ?? checkExpected(expectedVersion);
    if (refusal !== null) return Promise.reject(refusal);
    try {
      const endsChunk = options?.completeChunkAfter === true || isPoint(stream, events);
      return this.#send(
        new EventsRequest(stream, expectedVersion, this.#checks.check(stream, events), endsChunk, authorize ?? null),
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #checkMeaning(stream: string, events: readonly NewEvent[]): SkuaError | null {
    return checkMeaning(stream, events) ?? checkMarks(stream, events) ?? checkAttributeSetting(stream, events);
  }

  async appendToStreams(
    writes: readonly StreamWrite[],
    options: AppendToStreamsOptions = {},
  ): Promise<AppendToStreamsResult> {
    for (const { stream, expectedVersion, events } of writes) {
      const refusal = checkWritableName(stream) ?? checkExpected(expectedVersion) ?? this.#checkMeaning(stream, events);
      if (refusal !== null) throw refusal;
      if (stream === POINTS_STREAM)
        throw new SkuaError(
          'bad_request',
          `A scavenge point completes its chunk, so nothing else can be written with it: append to ${POINTS_STREAM} alone.`,
          { stream },
        );
    }
    for (const { stream, expectedVersion } of options.checks ?? []) {
      const refusal =
        (isViewName(stream) ? checkWritableName(stream) : checkReadableName(stream)) ?? checkExpected(expectedVersion);
      if (refusal !== null) throw refusal;
    }
    const refusal = checkBytes(
      writes.flatMap(({ events }) => events),
      this.#options.appendBytesMax,
    );
    if (refusal !== null) throw refusal;
    const condition = options.condition === undefined ? null : checkCondition(options.condition);
    const request = new StreamsRequest(writes, options, (stream, events) => this.#checks.check(stream, events));
    if (condition !== null) request.search = this.#conditions.searchFor(request, condition);
    return this.#send(request);
  }

  async deleteStream(
    stream: string,
    expectedVersion: number,
    kind: 'soft' | 'hard',
    authorize?: Authorize,
  ): Promise<{ readonly position: number }> {
    const refusal = checkWritableName(stream) ?? checkExpected(expectedVersion);
    if (refusal !== null) throw refusal;
    if (stream === MARKS_STREAM) throw marksStay(stream);
    if (stream === SETTING_STREAM) throw settingStays(stream);
    if (isMetastream(stream))
      throw new SkuaError(
        'access_denied',
        `${stream} is a metadata stream, which is deleted with its stream: delete that.`,
        { stream },
      );
    return this.#send(
      new DeleteRequest(kind === 'soft' ? 'soft-delete' : 'hard-delete', stream, expectedVersion, authorize ?? null),
    );
  }

  async completeChunk(position: number): Promise<void> {
    return this.#send(new CompleteChunkRequest(position));
  }

  forgetTombstones(): void {
    this.#context.states.forgetTombstones();
  }

  overtake(): void {
    this.#appender.overtake();
  }

  follow(records: CommittedRecords): void {
    this.#appender.follow(records);
  }

  forgetStreams(end: number): void {
    this.#appender.overtake();
    this.#context.states.clear();
    this.#committed.recent.completeFrom = end;
    this.#committed.times.forget();
    this.#waiters.wakeAll();
  }

  async writeEpoch(epoch: EpochInput | EpochDecision): Promise<number> {
    return this.#send(new EpochRequest(typeof epoch === 'function' ? epoch : () => epoch));
  }

  #send<R>(request: AppendRequest & PendingRequest<R>): Promise<R> {
    const pending: PendingRequest<R> = request;
    return new Promise((resolve, reject) => {
      pending.resolve = resolve;
      pending.reject = reject;
      this.#appender.enqueue(request);
    });
  }

  async readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> {
    checkPage(options.count);
    if (options.from !== 'end') checkNumber(options.from);
    if (isViewName(stream)) {
      checkName(stream);
      return this.#views.read(stream, options);
    }
    const bytes = new PageBytes(pageLimits(this.#context, options));
    for (;;) {
      const view = await this.#readable(stream);
      const page = await readPage(this.#context, view, options, bytes);
      if (!bytes.lacksRoom) {
        countRead(this.#deps.meter, page.events, bytes.read);
        const cut = options.resolveLinks === true ? await resolveLinks(this.#context, page.events, bytes) : null;
        if (!bytes.lacksRoom) {
          bytes.settle();
          return cut === null ? page : { ...page, nextEventNumber: cut.number, isEnd: false, isCut: true };
        }
      }
      await bytes.waitForRoom();
    }
  }

  async readEvent(stream: string, number: number | 'last', withLinks = false, share?: ByteShare): Promise<StoredEvent> {
    if (number !== 'last') checkNumber(number);
    if (isViewName(stream)) {
      checkName(stream);
      return readLink(this, stream, number, { resolveLinks: withLinks, share });
    }
    const bytes = new PageBytes(pageLimits(this.#context, { bytesMax: 0, share }));
    for (;;) {
      const view = await this.#readable(stream);
      const event = await readVisible(this.#context, view, number === 'last' ? view.lastNumber : number);
      if (event === null)
        throw new SkuaError(
          'event_not_found',
          `There is no event ${number} in ${stream}: it was never written, or has expired.`,
          { stream, number },
        );
      if (bytes.take(event.data.length + event.metadata.length, 0)) {
        countRead(this.#deps.meter, [event], event.data.length + event.metadata.length);
        const shown = withLinks ? await resolveLink(this.#context, event, bytes, true) : event;
        if (shown !== null) {
          bytes.settle();
          return shown;
        }
      }
      await bytes.waitForRoom();
    }
  }

  async readAll(options: ReadAllOptions): Promise<AllPage> {
    checkPage(options.count);
    const { from } = options;
    if (typeof from !== 'string') {
      if (
        !Number.isSafeInteger(from.commit) ||
        !Number.isSafeInteger(from.prepare) ||
        from.commit < 0 ||
        from.prepare < 0
      ) {
        throw new SkuaError(
          'invalid_position',
          `${from.commit}/${from.prepare} is not a position: give two whole numbers, or start or end.`,
          { ...from },
        );
      }
    }
    if (options.filter?.query !== undefined) checkQuery(options.filter.query);
    return readAllPage(this.#context, options);
  }

  async #readable(stream: string): Promise<StreamView> {
    checkName(stream);
    const view = await viewOf(this.#context, stream);
    assertReadable(view);
    return view;
  }

  checkpoint(options: CheckpointOptions): Promise<CheckpointAnswer> {
    const { reader, logId = null } = this.#deps;
    return checkpointOf({ reader, events: this, logId }, options);
  }

  async streamInfo(stream: string): Promise<StreamInfo> {
    checkName(stream);
    if (isViewName(stream)) return this.#views.info(stream);
    return infoOf(stream, await stateOf(this.#context, stream));
  }

  streamInfoNow(stream: string): StreamInfo | null {
    if (isViewName(stream) || checkReadableName(stream) !== null) return null;
    const state = stateOf(this.#context, stream);
    if (!(state instanceof Promise)) return infoOf(stream, state);
    // A caller that asks again with a promise gets the error.
    state.catch(() => {});
    return null;
  }

  subscribeToStream(
    stream: string,
    options: SubscribeStreamOptions,
  ): AsyncGenerator<SubscriptionMessage<number>, void, undefined> {
    return messagesOf(this.followStream(stream, options), this.redactions, options);
  }

  subscribeToAll(options: SubscribeAllOptions): AsyncGenerator<SubscriptionMessage<AllPosition>, void, undefined> {
    return messagesOf(this.followAll(options), this.redactions, options);
  }

  followStream(
    stream: string,
    options: SubscribeStreamOptions,
  ): AsyncGenerator<SubscriptionPage<number>, void, undefined> {
    return isViewName(stream)
      ? this.#followView(stream, options)
      : followStream(this.#context, this.#waiters, stream, options);
  }

  async *#followView(
    stream: string,
    options: SubscribeStreamOptions,
  ): AsyncGenerator<SubscriptionPage<number>, void, undefined> {
    checkName(stream);
    yield* this.#views.follow(stream, options);
  }

  followAll(options: SubscribeAllOptions): AsyncGenerator<SubscriptionPage<AllPosition>, void, undefined> {
    return followAll(this.#context, this.#waiters, options);
  }

  async waitForStream(stream: string, signal: AbortSignal): Promise<boolean> {
    // What comes to a view is written to other streams: the caller looks whether there is something.
    return isViewName(stream)
      ? this.#wait(null, signal, endsBehind(this, this.end))
      : this.#wait(stream, signal, () => false);
  }

  async waitForLog(position: number, signal: AbortSignal): Promise<boolean> {
    return this.#wait(null, signal, () => this.end > position);
  }

  async #wait(stream: string | null, signal: AbortSignal, isDone: () => boolean): Promise<boolean> {
    if (isDone()) return true;
    const waiter = this.#waiters.add(stream);
    try {
      do {
        waiter.arm();
        await waiter.wait(signal);
        if (signal.aborted || this.#waiters.isClosed) return false;
      } while (stream === null && !isDone());
      return true;
    } finally {
      this.#waiters.remove(waiter);
    }
  }

  primeRecentIds(): Promise<void> {
    return primeRecentIds(this.#context, this.#committed.recent);
  }

  async close(): Promise<void> {
    await this.#appender.close();
    this.#waiters.close();
  }
}

function infoOf(stream: string, state: StreamState): StreamInfo {
  const isMeta = isMetastream(stream);
  const { committed } = state;
  const { isTombstoned } = committed;
  return {
    lastEventNumber: isTombstoned ? TOMBSTONE : isMeta ? committed.metadataVersion : committed.lastNumber,
    isTombstoned,
    isSoftDeleted: !isMeta && committed.isSoftDeleted,
    metadata: isMeta ? METASTREAM_METADATA : committed.metadata,
    metadataVersion: isMeta ? -1 : committed.metadataVersion,
  };
}

/** Throws unless a stream can have the name. */
function checkName(stream: string): void {
  const refusal = checkReadableName(stream);
  if (refusal !== null) throw refusal;
}

function endsBehind(store: { readonly end: number }, position: number): () => boolean {
  return () => store.end > position;
}

/** Whichever writer a scavenge point comes from, it ends its chunk. */
function isPoint(stream: string, events: readonly NewEvent[]): boolean {
  return events.length === 1 && stream === POINTS_STREAM && events[0]!.type === POINT_TYPE;
}

function checkBytes(events: readonly NewEvent[], limit: number): SkuaError | null {
  // Without a limit nothing has to be added up.
  if (limit === DEFAULT_OPTIONS.appendBytesMax) return null;
  const size = events.reduce((sum, { data }) => sum + data.length, 0);
  return size <= limit
    ? null
    : new SkuaError(
        'batch_too_large',
        `The data of one append can have at most ${limit} bytes, and this has ${size}: split it.`,
        { size, limit },
      );
}

function checkPage(count: number): void {
  if (!Number.isInteger(count) || count < 1)
    throw new SkuaError('invalid_count', `A page of ${count} events can't be read: ask for 1 to ${PAGE_EVENTS_MAX}.`, {
      count,
    });
  if (count > PAGE_EVENTS_MAX)
    throw new SkuaError(
      'page_too_large',
      `A page of ${count} events is too large: ask for at most ${PAGE_EVENTS_MAX}.`,
      { count, limit: PAGE_EVENTS_MAX },
    );
}
