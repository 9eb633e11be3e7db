import { Redactions } from '../../core/streams/redactions/redactions.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import {
  ANY,
  IS_SOFT_DELETED,
  IS_TOMBSTONED,
  NO_STREAM,
  STREAM_EXISTS,
  STREAMS_PER_WRITE_MAX,
} from '../../core/streams/api.ts';
import type {
  AllPage,
  AllPosition,
  AppendResult,
  AppendToStreamsOptions,
  AppendToStreamsResult,
  Authorize,
  CheckpointAnswer,
  CheckpointOptions,
  EventAccess,
  EventStore,
  NewEvent,
  ReadAllOptions,
  ReadStreamOptions,
  StoredEvent,
  StreamCheck,
  StreamMetadata,
  StreamOutcome,
  StreamPage,
  StreamWrite,
  SubscribeAllOptions,
  SubscribeStreamOptions,
  SubscriptionMessage,
  SubscriptionPage,
} from '../../core/streams/api.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Ids } from '../../core/ports/ids.ts';
import { modelMetadata } from './model-metadata.ts';
import {
  checkBytes,
  checkCount,
  checkEvent,
  checkExpectedForm,
  checkMeaning,
  checkName,
  checkNewName,
  checkNumber,
  compare,
  conflict,
  deleted,
  matches,
} from './model-rules.ts';

/** Keys of metadata that mean something, in the order in which they are written. */
const KNOWN_KEYS: readonly string[] = ['$maxCount', '$maxAge', '$tb', '$tmp', '$cacheControl', '$acl'];

/** One stream of a write to several. */
interface ModelPart {
  readonly stream: string;
  readonly expected: number;
  readonly repeat: AppendResult | null;
  /** Why an append of its events alone would be refused. */
  readonly error: unknown;
}

type ModelEvent = StoredEvent & { readonly end: number };

/** The limits that the model knows, as `EventStoreOptions` have them. */
export interface ModelLimits {
  readonly appendBytesMax?: number;
  readonly subscriptionPageEvents?: number;
}

/**
 * The store as a list of events in memory: every question is answered by looking through the list. It says what the
 * real store must answer, so it is kept too simple to be wrong; positions are its own.
 */
export class ModelStore implements EventStore {
  readonly log: ModelEvent[] = [];
  end = 0;
  readonly redactions = new Redactions();
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #appendBytesMax: number;
  /** Events that a subscription gives at a time. */
  readonly #pageEvents: number;
  #waiters: { readonly isDone: () => boolean; readonly wake: (arrived: boolean) => void }[] = [];

  constructor(
    clock: Clock,
    ids: Ids,
    { appendBytesMax = Infinity, subscriptionPageEvents = Infinity }: ModelLimits = {},
  ) {
    this.#clock = clock;
    this.#ids = ids;
    this.#appendBytesMax = appendBytesMax;
    this.#pageEvents = subscriptionPageEvents;
  }

  async append(
    stream: string,
    expected: number,
    events: readonly NewEvent[],
    authorize?: Authorize,
  ): Promise<AppendResult> {
    checkNewName(stream);
    checkMeaning(stream, events);
    return this.appendInternal(stream, expected, events, undefined, authorize);
  }

  /** Takes metadata too that nobody understands, as other programs may have left it. */
  async appendInternal(
    stream: string,
    expected: number,
    events: readonly NewEvent[],
    _options?: unknown,
    authorize?: Authorize,
  ): Promise<AppendResult> {
    checkNewName(stream);
    checkExpectedForm(expected);
    events.forEach(checkEvent);
    checkBytes(events, this.#appendBytesMax);
    this.#ask(stream, authorize);
    if (this.#isTombstoned(stream)) throw deleted(stream);
    const last = this.#last(stream);
    if (expected === STREAM_EXISTS && this.#metadataOf(stream).truncateBefore === TOMBSTONE) throw deleted(stream);
    const repeat = this.#repeat(stream, expected, last, events);
    if (repeat !== null) return repeat;
    this.#checkExpected(stream, expected, last);
    const revival =
      this.#metadataOf(stream).truncateBefore === TOMBSTONE ? this.#metadataEvent(String(last + 1), stream) : null;
    const owner = this.#ownerOfDeleted(stream);
    const written = events.map((event) => this.#write(stream, event));
    if (revival !== null) this.#write(`$$${stream}`, revival);
    if (owner !== null) this.#hideDeleted(owner);
    this.#wake();
    return {
      firstEventNumber: last + 1,
      lastEventNumber: last + events.length,
      position: written.at(-1)?.position ?? this.end,
      isRepeat: false,
    };
  }

  /**
   * Says first, stream by stream, what an append of all its events would say; then writes. Nothing else has a turn in
   * between.
   */
  async appendToStreams(
    writes: readonly StreamWrite[],
    { checks = [], isRepeatable = true }: AppendToStreamsOptions = {},
  ): Promise<AppendToStreamsResult> {
    if (writes.length === 0 || writes.some(({ events }) => events.length === 0))
      throw new SkuaError('batch_empty', 'There is nothing to write.');
    if (new Set([...writes, ...checks].map(({ stream }) => stream)).size > STREAMS_PER_WRITE_MAX)
      throw new SkuaError('bad_request', 'Too many streams.');
    for (const { stream, events, expectedVersion } of writes) {
      checkNewName(stream);
      checkMeaning(stream, events);
      if (stream === '$scavengePoints') throw new SkuaError('bad_request', 'A scavenge point is written alone.');
      checkExpectedForm(expectedVersion);
      events.forEach(checkEvent);
      if (expectedVersion !== ANY && writes.filter((other) => other.stream === stream).length > 1)
        throw new SkuaError('bad_request', 'Several expectations.');
    }
    for (const { expectedVersion } of checks) checkExpectedForm(expectedVersion);
    checkBytes(
      writes.flatMap(({ events }) => events),
      this.#appendBytesMax,
    );
    for (const { stream, authorize } of [...writes, ...checks]) this.#ask(stream, authorize);
    const parts = [...new Set(writes.map(({ stream }) => stream))].map((stream) =>
      this.#part(stream, writes, checks, isRepeatable),
    );
    if (parts.every(({ repeat }) => repeat !== null)) {
      const streams = parts.map(({ stream, repeat }) => ({
        stream,
        lastEventNumber: repeat!.lastEventNumber,
        position: repeat!.position,
      }));
      return { streams, position: Math.max(...streams.map(({ position }) => position)), isRepeat: true };
    }
    this.#assertAllowed(parts, checks);
    const outcomes = new Map<string, StreamOutcome>();
    let pending: NewEvent | null = null;
    let owner: string | null = null;
    for (const [i, { stream, events }] of writes.entries()) {
      const revival =
        this.#metadataOf(stream).truncateBefore === TOMBSTONE
          ? this.#metadataEvent(String(this.#last(stream) + 1), stream)
          : null;
      owner = owner ?? this.#ownerOfDeleted(stream);
      for (const event of events)
        outcomes.set(stream, {
          stream,
          lastEventNumber: this.#last(stream) + 1,
          position: this.#write(stream, event).position,
        });
      pending = pending ?? revival;
      // What follows in the same stream is written with it.
      if (writes[i + 1]?.stream === stream) continue;
      if (pending !== null) this.#write(`$$${stream}`, pending);
      if (owner !== null) this.#hideDeleted(owner);
      pending = owner = null;
    }
    this.#wake();
    return {
      streams: parts.map(({ stream }) => outcomes.get(stream)!),
      position: Math.max(...[...outcomes.values()].map(({ position }) => position)),
      isRepeat: false,
    };
  }

  #part(
    stream: string,
    writes: readonly StreamWrite[],
    checks: readonly StreamCheck[],
    isRepeatable: boolean,
  ): ModelPart {
    const own = writes.filter((write) => write.stream === stream);
    const check = checks.findLast((one) => one.stream === stream && one.expectedVersion !== ANY);
    const expected = check?.expectedVersion ?? own[0]!.expectedVersion;
    const part = { stream, expected, repeat: null, error: null };
    if (this.#isTombstoned(stream)) return { ...part, error: deleted(stream) };
    const isDeleted = this.#metadataOf(stream).truncateBefore === TOMBSTONE;
    if (expected === STREAM_EXISTS && isDeleted)
      return { ...part, error: new SkuaError('stream_deleted', 'It is deleted.', { stream, isSoftDeleted: true }) };
    try {
      const repeat = isRepeatable
        ? this.#repeat(
            stream,
            expected,
            this.#last(stream),
            own.flatMap(({ events }) => events),
          )
        : null;
      if (repeat === null) this.#checkExpected(stream, expected, this.#last(stream));
      return { ...part, repeat };
    } catch (error) {
      return { ...part, error };
    }
  }

  #assertAllowed(parts: readonly ModelPart[], checks: readonly StreamCheck[]): void {
    const violations = checks
      .map((check, index) => ({
        index,
        stream: check.stream,
        expected: check.expectedVersion,
        actual: this.#actual(check.stream),
      }))
      .filter(
        ({ stream, expected, actual }) =>
          !this.#holds(
            expected,
            actual,
            parts.some((part) => part.stream === stream),
            stream,
          ),
      );
    if (violations.length > 0) throw new SkuaError('consistency_violation', 'The checks do not hold.', { violations });
    for (const { stream, expected, repeat, error } of parts) {
      if (error !== null) throw error;
      if (repeat !== null) throw conflict(stream, expected, this.#last(stream));
    }
  }

  /** Throws what refuses the write, by the metadata of the stream, or of the one that a metadata stream belongs to. */
  #ask(stream: string, authorize: Authorize | undefined): void {
    const owner = stream.startsWith('$$') ? stream.slice(2) : stream;
    const refusal = authorize?.(this.#metadataOf(owner), (other) => ({
      lastEventNumber: this.#last(other),
      metadataVersion: this.#last(`$$${other}`),
    }));
    if (refusal != null) throw refusal;
  }

  #actual(stream: string): number {
    if (this.#isTombstoned(stream)) return IS_TOMBSTONED;
    return this.#metadataOf(stream).truncateBefore === TOMBSTONE ? IS_SOFT_DELETED : this.#last(stream);
  }

  #holds(expected: number, actual: number, isWritten: boolean, stream: string): boolean {
    switch (expected) {
      case ANY:
        return true;
      case NO_STREAM:
        return actual === NO_STREAM || actual === IS_SOFT_DELETED || (actual === IS_TOMBSTONED && !isWritten);
      case STREAM_EXISTS:
        return actual >= 0 || (actual === NO_STREAM && this.#last(`$$${stream}`) >= 0);
      default:
        return actual === expected;
    }
  }

  async deleteStream(
    stream: string,
    expected: number,
    kind: 'soft' | 'hard',
    authorize?: Authorize,
  ): Promise<{ readonly position: number }> {
    checkNewName(stream);
    checkExpectedForm(expected);
    if (stream.startsWith('$$')) throw new SkuaError('access_denied', 'Metadata go with their stream.', { stream });
    this.#ask(stream, authorize);
    if (this.#isTombstoned(stream)) throw deleted(stream);
    const last = this.#last(stream);
    const hasMetadata = this.#last(`$$${stream}`) >= 0;
    if (kind === 'soft' && last < 0 && !hasMetadata) throw conflict(stream, expected, -1);
    this.#checkExpected(stream, expected, last);
    const event =
      kind === 'soft'
        ? this.#write(`$$${stream}`, this.#metadataEvent('9223372036854775807'))
        : this.#write(
            stream,
            {
              id: this.#newId(),
              type: '$streamDeleted',
              isJson: false,
              data: new Uint8Array(0),
              metadata: new Uint8Array(0),
            },
            TOMBSTONE,
          );
    this.#wake();
    return { position: event.position };
  }

  async readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> {
    checkName(stream);
    checkCount(options.count);
    if (options.from !== 'end') checkNumber(options.from);
    const { last, metadata } = this.#readable(stream);
    const from = options.from === 'end' ? last : options.from;
    const isForward = options.direction === 'forward';
    const high = isForward ? from + options.count - 1 : Math.min(from, last);
    const low = isForward ? from : Math.max(0, high - options.count + 1);
    const visible = this.#visible(stream);
    const inRange = visible.filter((e) => e.number >= low && e.number <= high);
    // A forward page of expired numbers holds what comes behind them.
    const jumpsTo =
      isForward &&
      inRange.length === 0 &&
      metadata.maxAge !== undefined &&
      Math.min(high, last) >= this.#firstByNumber(stream) &&
      high < last
        ? visible.find((e) => e.number > high)?.number
        : undefined;
    if (jumpsTo !== undefined) return { ...(await this.readStream(stream, { ...options, from: jumpsTo })), from };
    const events = inRange.map((e) => this.#resolve(e, options.resolveLinks === true));
    // A page without events leads on to the next one that a reader sees, and so does one that met expired events on its
    // way down.
    const above = events.length > 0 ? high + 1 : (visible.find((e) => e.number > high)?.number ?? last + 1);
    const hasSkipped =
      events.length === 0 ||
      this.#all(stream).some(
        (e) => e.number >= Math.max(low, this.#firstByNumber(stream)) && e.number <= high && !visible.includes(e),
      );
    const below =
      low <= this.#firstByNumber(stream)
        ? -1
        : hasSkipped
          ? (visible.findLast((e) => e.number < low)?.number ?? -1)
          : low - 1;
    const next = isForward ? Math.min(above, last + 1) : below;
    const isEnd = isForward ? next > last : next < 0;
    return {
      stream,
      events: isForward ? events : events.toReversed(),
      from,
      lastEventNumber: last,
      nextEventNumber: next,
      isEnd,
      isCut: false,
      metadata,
    };
  }

  async readEvent(stream: string, number: number | 'last', resolveLinks = false): Promise<StoredEvent> {
    checkName(stream);
    if (number !== 'last') checkNumber(number);
    const { last } = this.#readable(stream);
    const event = this.#visible(stream).find((e) => e.number === (number === 'last' ? last : number));
    if (event === undefined) throw new SkuaError('event_not_found', `Stream '${stream}' has no event ${number}.`);
    return this.#resolve(event, resolveLinks);
  }

  async readAll(options: ReadAllOptions): Promise<AllPage> {
    checkCount(options.count);
    await options.access?.begin();
    const end = { commit: this.end, prepare: this.end };
    const from = options.from === 'start' ? { commit: 0, prepare: 0 } : options.from === 'end' ? end : options.from;
    const isForward = options.direction === 'forward';
    if (isForward || from.commit <= this.end) this.#checkPosition(from);
    else throw new SkuaError('invalid_position', `The log ends before ${from.commit}.`);
    const matching = this.log.filter(
      (e) => (isForward ? compare(e, from) >= 0 : compare(e, from) < 0) && this.#isWanted(e, options),
    );
    const taken = (isForward ? matching : matching.toReversed()).slice(0, options.count);
    const isEnd = taken.length === matching.length;
    const lastTaken = taken.at(-1);
    const after = isForward
      ? isEnd || lastTaken === undefined
        ? this.end
        : lastTaken.end
      : lastTaken === undefined
        ? 0
        : lastTaken.position;
    const next = isForward && from.commit > this.end ? from : { commit: after, prepare: after };
    const events = taken.map((e) => this.#resolve(e, options.resolveLinks === true));
    return { events, from, next, isEnd, lastCommitPosition: this.log.at(-1)?.position ?? 0 };
  }

  /** It is never put back, and knows no epochs. */
  async checkpoint({ position, id, after }: CheckpointOptions): Promise<CheckpointAnswer> {
    const last = this.log.at(-1);
    const at = position ?? after?.position ?? (last && { commit: last.position, prepare: last.position });
    if (at === undefined) return { checkpoint: null, end: this.end };
    for (const asked of [...(after === undefined ? [] : [after]), { position: at, id }]) {
      const found = this.log.find((each) => each.position === asked.position.commit);
      if (found === undefined || (asked.id ?? found.id) !== found.id)
        throw new SkuaError('checkpoint_unknown', 'It is not of this log.', { position: asked.position, why: '' });
    }
    const found = this.log.find((each) => each.position === at.commit)!;
    return { checkpoint: { position: at, id: found.id, epoch: null, log: null }, end: this.end };
  }

  async streamInfo(stream: string) {
    const isTombstoned = this.#isTombstoned(stream);
    const metadata = isTombstoned ? {} : this.#metadataOf(stream);
    return {
      lastEventNumber: isTombstoned ? TOMBSTONE : this.#last(stream),
      isTombstoned,
      isSoftDeleted: !isTombstoned && metadata.truncateBefore === TOMBSTONE,
      metadata,
      metadataVersion: this.#last(`$$${stream}`),
    };
  }

  #checkPosition({ commit }: AllPosition): void {
    if (commit < this.end && commit !== 0 && !this.log.some((e) => e.position === commit || e.end === commit))
      throw new SkuaError('invalid_position', `No record begins or ends at ${commit}.`);
  }

  subscribeToStream(stream: string, options: SubscribeStreamOptions): AsyncGenerator<SubscriptionMessage<number>> {
    return messagesOf(this.followStream(stream, options));
  }

  subscribeToAll(options: SubscribeAllOptions): AsyncGenerator<SubscriptionMessage<AllPosition>> {
    return messagesOf(this.followAll(options));
  }

  async *followStream(stream: string, options: SubscribeStreamOptions): AsyncGenerator<SubscriptionPage<number>> {
    if (options.after === 'end' && this.#isTombstoned(stream)) throw deleted(stream);
    let after = options.after === 'end' ? this.#last(stream) : options.after;
    const left = (): ModelEvent[] => {
      const tombstone = this.log.find((e) => e.stream === stream && e.number === TOMBSTONE);
      if (tombstone === undefined ? this.#isTombstoned(stream) : after === TOMBSTONE) throw deleted(stream);
      return [...this.#visible(stream), ...(tombstone === undefined ? [] : [tombstone])].filter(
        (e) => e.number > after,
      );
    };
    yield* this.#pages(
      options,
      left,
      (last) => (after = last?.number ?? after),
      () => this.#last(stream) < 0 || this.#metadataOf(stream).truncateBefore === TOMBSTONE,
    );
  }

  async *followAll(options: SubscribeAllOptions): AsyncGenerator<SubscriptionPage<AllPosition>> {
    const { after } = options;
    if (typeof after === 'object') this.#checkPosition(after);
    let next =
      after === 'start'
        ? 0
        : after === 'end'
          ? this.log.length
          : this.log.filter((e) => compare(e, after) < (options.isInclusive === true ? 0 : 1)).length;
    const left = () => this.log.slice(next).filter((e) => this.#isWanted(e, options));
    const advance = (last: ModelEvent | undefined, isMore: boolean): AllPosition | null => {
      next = isMore ? this.log.indexOf(last!) + 1 : this.log.length;
      const seen = this.log[next - 1];
      return seen === undefined ? null : { commit: seen.position, prepare: seen.preparePosition };
    };
    yield* this.#pages(options, left, advance, () => false, options.access);
  }

  /**
   * Pages of what is `left`. `advance` hears the last event of each, and whether there is more, and says how far the
   * subscription is.
   */
  async *#pages<Place>(
    { signal, resolveLinks = false }: Pick<SubscribeStreamOptions, 'signal' | 'resolveLinks'>,
    left: () => ModelEvent[],
    advance: (last: ModelEvent | undefined, isMore: boolean) => Place | null,
    isAwaited: () => boolean,
    access?: EventAccess,
  ): AsyncGenerator<SubscriptionPage<Place>> {
    for (let isBehind = true; signal?.aborted !== true;) {
      await access?.begin();
      const { length } = this.log;
      const found = left();
      const isMore = found.length > this.#pageEvents;
      const taken = found.slice(0, this.#pageEvents);
      const after = advance(taken.at(-1), isMore);
      const isCaughtUp = isBehind && !isMore;
      isBehind = isMore;
      if (taken.length > 0 || isCaughtUp) {
        const events = taken.map((event) => this.#resolve(event, resolveLinks));
        yield { events, checkpoints: [], isCaughtUp, after, isAwaited: taken.length === 0 && isAwaited() };
        events.length = 0;
      } else await this.#wait(() => this.log.length > length, signal);
    }
  }

  waitForStream(stream: string, signal: AbortSignal): Promise<boolean> {
    const length = this.log.length;
    return this.#wait(() => this.log.slice(length).some((e) => e.stream === stream), signal);
  }

  waitForLog(position: number, signal: AbortSignal): Promise<boolean> {
    return this.#wait(() => this.end > position, signal);
  }

  #wait(isDone: () => boolean, signal: AbortSignal | undefined): Promise<boolean> {
    if (isDone()) return Promise.resolve(true);
    if (signal?.aborted === true) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiter = {
        isDone,
        wake: (arrived: boolean) => {
          this.#waiters = this.#waiters.filter((other) => other !== waiter);
          resolve(arrived);
        },
      };
      this.#waiters.push(waiter);
      signal?.addEventListener('abort', () => waiter.wake(false));
    });
  }

  #wake(): void {
    for (const waiter of this.#waiters) if (waiter.isDone()) waiter.wake(true);
  }

  #write(stream: string, event: NewEvent, number = this.#last(stream) + 1): ModelEvent {
    const position = this.end;
    this.end += 100 + 2 * stream.length + event.type.length + event.data.length + event.metadata.length;
    const now = this.#clock.nowMs();
    const written: ModelEvent = {
      stream,
      number,
      type: event.type,
      id: event.id.toLowerCase(),
      isJson: event.isJson,
      isRedacted: false,
      data: event.data.slice(),
      metadata: event.metadata.slice(),
      position,
      preparePosition: position,
      createdMs: Math.floor(now),
      createdTicks: Math.floor((now - Math.floor(now)) * 10_000),
      link: null,
      linkTargetMissing: false,
      end: this.end,
    };
    this.log.push(written);
    return written;
  }

  /**
   * Metadata with only `$tb`, or, for a stream that comes back, with the other members it had; those that mean
   * something first, in their order.
   */
  #metadataEvent(truncateBefore: string, returning?: string): NewEvent {
    const previous = this.log.findLast((e) => e.stream === `$$${returning}`);
    const members = previous === undefined ? {} : (JSON.parse(decodeText(previous.data)) as Record<string, unknown>);
    delete members['$tb'];
    const texts = new Map(Object.entries(members).map(([key, value]) => [key, JSON.stringify(value)])).set(
      '$tb',
      truncateBefore,
    );
    const keys = [
      ...KNOWN_KEYS.filter((key) => texts.has(key)),
      ...[...texts.keys()].filter((key) => !KNOWN_KEYS.includes(key)),
    ];
    return {
      id: this.#newId(),
      type: '$metadata',
      isJson: true,
      data: encodeText(`{${keys.map((key) => `"${key}":${texts.get(key)!}`).join(',')}}`),
      metadata: new Uint8Array(0),
    };
  }

  /** The stream that is deleted and whose metadata this is. */
  #ownerOfDeleted(stream: string): string | null {
    const owner = stream.startsWith('$$') ? stream.slice(2) : null;
    return owner !== null && this.#metadataOf(owner).truncateBefore === TOMBSTONE ? owner : null;
  }

  /** What was deleted stays away, where the metadata with which a stream comes back say nothing of it. */
  #hideDeleted(stream: string): void {
    if (this.#metadataOf(stream).truncateBefore === undefined)
      this.#write(`$$${stream}`, this.#metadataEvent(String(this.#last(stream) + 1), stream));
  }

  #newId(): string {
    const hex = Array.from(this.#ids.uuidBytes(), (b) => b.toString(16).padStart(2, '0')).join('');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }

  #last(stream: string): number {
    return this.log.findLast((e) => e.stream === stream && e.number !== TOMBSTONE)?.number ?? -1;
  }

  /** A metadata stream goes with its stream. */
  #isTombstoned(stream: string): boolean {
    const original = stream.startsWith('$$') ? stream.slice(2) : stream;
    return this.log.some((e) => e.stream === original && e.number === TOMBSTONE);
  }

  #metadataOf(stream: string): StreamMetadata {
    if (stream.startsWith('$$')) return { maxCount: 1 };
    const event = this.log.findLast((e) => e.stream === `$$${stream}`);
    return event === undefined ? {} : modelMetadata(event.data, event.isJson);
  }

  #readable(stream: string): { readonly last: number; readonly metadata: StreamMetadata } {
    if (this.#isTombstoned(stream)) throw deleted(stream);
    const last = this.#last(stream);
    const metadata = this.#metadataOf(stream);
    if (last < 0 || metadata.truncateBefore === TOMBSTONE)
      throw new SkuaError('stream_not_found', `Stream '${stream}' does not exist.`, { stream });
    return { last, metadata };
  }

  #all(stream: string): ModelEvent[] {
    return this.log.filter((e) => e.stream === stream && e.number !== TOMBSTONE);
  }

  /** Each event by its own number and its own time: the clock may have been set back. */
  #visible(stream: string): ModelEvent[] {
    const { maxCount = Infinity, maxAge = Infinity, truncateBefore = 0 } = this.#metadataOf(stream);
    const last = this.#last(stream);
    const oldest = this.#clock.nowMs() - maxAge * 1000;
    return this.#all(stream).filter(
      (e) =>
        e.number >= truncateBefore && e.number > last - maxCount && e.createdMs + e.createdTicks / 10_000 >= oldest,
    );
  }

  /** Of a query, what the rules of its stream hide is hidden, and what the reader may not see. */
  #isWanted(e: ModelEvent, { filter, access }: Pick<ReadAllOptions, 'filter' | 'access'>): boolean {
    if (!matches(e, filter)) return false;
    if (filter?.query === undefined) return true;
    const { stream } = e;
    const owner = stream.startsWith('$$') ? stream.slice(2) : stream;
    if (this.#isTombstoned(stream) || this.#metadataOf(stream).truncateBefore === TOMBSTONE) return false;
    return this.#visible(stream).includes(e) && (access?.allows(stream, this.#metadataOf(owner)) ?? true);
  }

  /** First number that `$tb` and `$maxCount` leave. */
  #firstByNumber(stream: string): number {
    const { maxCount = Infinity, truncateBefore = 0 } = this.#metadataOf(stream);
    return Math.max(truncateBefore, this.#last(stream) - maxCount + 1, 0);
  }

  #resolve(event: ModelEvent, resolveLinks: boolean): StoredEvent {
    const { end: _, ...plain } = event;
    const match = resolveLinks && event.type === '$>' ? /^(\d+)@([^]*)$/.exec(decodeText(event.data)) : null;
    if (match === null) return plain;
    const stream = match[2]!;
    const target =
      this.#isTombstoned(stream) || this.#metadataOf(stream).truncateBefore === TOMBSTONE
        ? undefined
        : this.#visible(stream).find((e) => e.number === Number(match[1]));
    if (target === undefined) return { ...plain, linkTargetMissing: true };
    const { end: __, ...found } = target;
    return { ...found, link: plain };
  }

  #checkExpected(stream: string, expected: number, last: number): void {
    const isSoftDeleted = this.#metadataOf(stream).truncateBefore === TOMBSTONE;
    if (expected === ANY || (expected === NO_STREAM && isSoftDeleted)) return;
    if (expected === STREAM_EXISTS) {
      if (isSoftDeleted) throw deleted(stream);
      if (last < 0 && this.#last(`$$${stream}`) < 0) throw conflict(stream, expected, -1);
    } else if (expected !== last) throw conflict(stream, expected, last);
  }

  /** The original outcome if the request was written before, null if it is new; a broken retry is a conflict. */
  #repeat(stream: string, expected: number, last: number, events: readonly NewEvent[]): AppendResult | null {
    if (events.length === 0) return null;
    const isAny = expected === ANY || expected === STREAM_EXISTS;
    if (!isAny && expected >= last) return null;
    const isRevival = expected === NO_STREAM && this.#metadataOf(stream).truncateBefore === TOMBSTONE;
    const stored = this.log.filter((e) => e.stream === stream);
    const found = events.map((event, k) =>
      stored.find((e) => e.id === event.id.toLowerCase() && (isAny || e.number === expected + 1 + k)),
    );
    if ((isAny || isRevival) && found[0] === undefined) return null;
    if (found.some((e) => e === undefined)) throw conflict(stream, expected, last);
    const original = found.at(-1)!;
    return {
      firstEventNumber: found[0]!.number,
      lastEventNumber: original.number,
      position: original.position,
      isRepeat: true,
    };
  }
}

/** The messages of pages. */
async function* messagesOf<Place>(
  pages: AsyncIterable<SubscriptionPage<Place>>,
): AsyncGenerator<SubscriptionMessage<Place>> {
  for await (const { events, isCaughtUp, after } of pages) {
    for (const event of events) yield { kind: 'event', event };
    if (isCaughtUp) yield { kind: 'caught-up', after };
  }
}
