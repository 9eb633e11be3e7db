import type { StoredEvent } from '../streams/api.ts';
import { TOMBSTONE } from '../log/format/records.ts';
import { ALL_STREAM, droppedError, maximumError, tooManyConsumers } from './api.ts';
import type { ConnectionInfo, ConnectOptions, Delivery, GroupInfo, NackAction } from './api.ts';
import { CheckpointWriter } from './checkpoints.ts';
import { Consumer } from './consumer.ts';
import type { ConsumerGroup } from './consumer.ts';
import { Intake } from './event-intake.ts';
import { Ledger } from './ledger.ts';
import { Measurement } from './measurement.ts';
import type { Message } from './message.ts';
import { ParkedMessages } from './parked.ts';
import type { GroupParts, GroupStore } from './group-parts.ts';
import { positionText } from './positions.ts';
import type { Position } from './positions.ts';
import { GroupReader } from './reader.ts';
import { Sender } from './sender.ts';
import type { KeptGroup } from './stored-forms.ts';

/**
 * Milliseconds that a reader without a connection has for a message where consumers have for ever: nothing else would
 * tell that it is gone.
 */
const UNCONNECTED_TIMEOUT_MS = 30_000;

/**
 * One group at work: it reads ahead (intake.ts), sends to consumers (sender.ts), takes their answers, and writes down
 * how far it is. Whatever changes it is a short synchronous step; what takes time is one loop that reads, and one write
 * at a time each for checkpoints, parked messages and replayed ones.
 */
export class Group implements ConsumerGroup {
  readonly kept: KeptGroup;
  readonly subscriptionId: string;
  readonly checkpoints: CheckpointWriter;
  readonly parked: ParkedMessages;
  readonly sender: Sender;
  readonly intake: Intake;
  readonly #parts: GroupParts;
  readonly #ledger: Ledger;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  parkedByClient = 0;
  parkedByRetries = 0;

  constructor(parts: GroupParts, kept: KeptGroup) {
    this.#parts = parts;
    this.kept = kept;
    this.subscriptionId = `${kept.stream}::${kept.group}`;
    const { signal } = this.#stopping;
    const onFailed = (what: string, error: unknown) => {
      if (!signal.aborted)
        parts.log.warn(`persistent subscription: ${what}`, { stream: kept.stream, group: kept.group, error });
    };
    const ledger = new Ledger(parts.held, kept.stream === ALL_STREAM);
    const reader = new GroupReader(parts, kept);
    this.#ledger = ledger;
    this.checkpoints = new CheckpointWriter(parts, kept);
    this.parked = new ParkedMessages({
      parts,
      kept,
      ledger,
      onParked: (messages) => {
        this.#parked(messages);
      },
    });
    this.sender = new Sender({ parts, kept, ledger, reader, signal, onFailed });
    this.intake = new Intake({
      parts,
      kept,
      ledger,
      reader,
      signal,
      onFailed,
      sender: this.sender,
      parked: this.parked,
      onRead: () => {
        this.#proceed(false);
      },
      onLoaded: (checkpoint) => {
        this.checkpoints.begin(checkpoint, 0);
      },
    });
  }

  get isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  start(): void {
    this.#running = this.intake.run();
  }

  /**
   * Drops the consumers, and waits until nothing is written any more; with `isFlushing` it writes first what it may.
   */
  async stop(isFlushing: boolean): Promise<void> {
    if (this.isStopped) return;
    const error = droppedError(this.kept.stream, this.kept.group);
    this.#stopping.abort();
    for (const consumer of this.sender.consumers) consumer.end(error);
    this.sender.consumers.clear();
    this.intake.wake();
    await this.#running;
    const flushes = isFlushing && this.intake.isLoaded;
    await this.parked.stop(flushes);
    await this.checkpoints.stop(flushes ? this.#ledger.standing() : null);
    this.#ledger.letGo();
  }

  connect(options: ConnectOptions): Consumer {
    const { stream, group, settings } = this.kept;
    const { limits, held, clock } = this.#parts;
    const { size } = this.sender.consumers;
    if (this.isStopped) throw droppedError(stream, group);
    if (settings.maxSubscriberCount > 0 && size >= settings.maxSubscriberCount) throw maximumError(stream, group);
    if (size >= limits.consumersPerGroupMax) throw tooManyConsumers(stream, group, limits.consumersPerGroupMax);
    const consumer = new Consumer(options, this, limits, held, new Measurement(clock, settings.extraStatistics));
    this.sender.add(consumer);
    this.#proceed(false);
    return consumer;
  }

  left(consumer: Consumer): void {
    if (!this.sender.remove(consumer)) return;
    for (let message = this.sender.sent.oldest; message !== null;) {
      const next = message.nextSent;
      if (message.consumer === consumer) this.#again(message);
      message = next;
    }
    this.#proceed(false);
  }

  shown(event: StoredEvent): StoredEvent {
    return this.#parts.store.redactions.shown(event);
  }

  took(): void {
    this.#proceed(false);
  }

  /** Sends up to `count` messages to a reader without a connection. */
  async take(count: number): Promise<readonly Delivery[]> {
    await this.intake.firstMessages();
    this.sender.dropHidden();
    await this.sender.reload(count);
    if (this.isStopped) return [];
    const deliveries = this.sender.hand(count);
    this.#proceed(false);
    return deliveries;
  }

  ack(ids: readonly string[], consumer: Consumer | null): void {
    if (this.isStopped) return;
    const nowMs = this.#parts.clock.monotonicMs();
    for (const id of ids) {
      const message = this.#find(id, consumer);
      if (message === null) continue;
      message.consumer?.measurement.answered(nowMs - message.sentAtMs);
      this.sender.unsend(message);
      this.#ledger.finish(message);
    }
    this.#proceed(false);
  }

  /** Counts only from the consumer that has the message. */
  nack(ids: readonly string[], action: NackAction, reason: string, consumer: Consumer | null): void {
    if (this.isStopped) return;
    const nowMs = this.#parts.clock.monotonicMs();
    for (const id of ids) {
      const message = this.#find(id, consumer);
      if (message === null || message.consumer !== consumer) continue;
      consumer?.measurement.answered(nowMs - message.sentAtMs);
      if (action === 'Retry' || action === 'Unknown') this.#again(message);
      else {
        this.sender.unsend(message);
        if (action === 'Park') this.#park(message, `Client explicitly NAK'ed message.\n${reason}`, true);
        else this.#ledger.finish(message);
      }
    }
    this.#proceed(false);
  }

  #find(id: string, consumer: Consumer | null): Message | null {
    return this.sender.sent.find(id, consumer) ?? this.sender.sent.find(id.toLowerCase(), consumer);
  }

  /** To be sent once more, or parked where that was done often enough. */
  #again(message: Message): void {
    const { maxRetryCount } = this.kept.settings;
    // A message that was not taken was not sent.
    const wasTaken = message.event === null;
    this.sender.unsend(message);
    if (wasTaken && message.retryCount >= maxRetryCount) {
      this.#park(message, `Reached retry count of ${maxRetryCount}`, false);
      return;
    }
    if (wasTaken) message.retryCount++;
    this.sender.again(message);
  }

  #park(message: Message, reason: string, isByClient: boolean): void {
    message.state = 'parking';
    this.#ledger.dropEvent(message);
    if (isByClient) this.parkedByClient++;
    else this.parkedByRetries++;
    this.parked.park(message, reason);
    this.#parts.onWork();
  }

  #parked(messages: readonly Message[]): void {
    for (const message of messages) this.#ledger.finish(message);
    this.#proceed(false);
  }

  replayParked(stopAt: number | null): void {
    this.parked.replay(stopAt);
    this.#parts.onWork();
    this.intake.wake();
  }

  /** True as long as there is something to look at in time. */
  tick(): boolean {
    if (this.isStopped) return false;
    if (!this.intake.isLoaded) return true;
    const { messageTimeoutMs } = this.kept.settings;
    const { sent, retries } = this.sender;
    const nowMs = this.#parts.clock.monotonicMs();
    const timeoutMs = messageTimeoutMs > 0 ? messageTimeoutMs : UNCONNECTED_TIMEOUT_MS;
    for (let message = sent.oldest; message !== null && nowMs - message.sentAtMs >= timeoutMs;) {
      const next = message.nextSent;
      if (messageTimeoutMs > 0 || message.consumer === null) this.#again(message);
      message = next;
    }
    this.sender.forgetStale();
    this.#proceed(true);
    return (
      sent.count > 0 ||
      retries.count > 0 ||
      this.intake.lacksRoom ||
      this.parked.hasWork ||
      this.parked.toReplay > 0 ||
      this.checkpoints.isBehind(this.#ledger.standing().order)
    );
  }

  /** Does what can be done after something has changed, or with `isTimed`, after some time. */
  #proceed(isTimed: boolean): void {
    this.sender.dispatch();
    this.intake.wake();
    if (!this.intake.isLoaded) return;
    const standing = this.#ledger.standing();
    this.checkpoints.consider(standing, isTimed);
    if (this.kept.stream === ALL_STREAM && this.#ledger.open.first === null)
      this.checkpoints.passed({ place: this.intake.seen, order: standing.order });
    if (this.parked.hasWork && (isTimed || this.#ledger.replayed.first === null)) this.parked.settle();
    if (this.checkpoints.isBehind(standing.order)) this.#parts.onWork();
  }

  async info(): Promise<GroupInfo> {
    const oldestParkedMs = await this.parked.oldestMs();
    return figuresOf(this, this.#parts.store, true, oldestParkedMs);
  }

  /** Never rejects. */
  async figures(): Promise<GroupInfo> {
    const oldestParkedMs = await this.parked.oldestMs().catch(() => null);
    return figuresOf(this, this.#parts.store, false, oldestParkedMs);
  }

  figuresNow(): GroupInfo {
    return figuresOf(this, this.#parts.store, false, null);
  }
}

interface FiguresParts {
  readonly kept: KeptGroup;
  readonly sender: Sender;
  readonly intake: Intake;
  readonly parked: ParkedMessages;
  readonly checkpoints: CheckpointWriter;
  readonly parkedByClient: number;
  readonly parkedByRetries: number;
}

/** What a group is at; `isAsked`: the next measurement begins now. */
function figuresOf(of: FiguresParts, store: GroupStore, isAsked: boolean, oldestParkedMs: number | null): GroupInfo {
  const {
    kept: { stream, group, settings, filter, startPosition },
    sender,
    intake,
    parked,
    checkpoints,
  } = of;
  const isAll = stream === ALL_STREAM;
  const { total, sinceLast, perSecond } = sender.measurement.figures(isAsked);
  const number = isAll || !intake.isLoaded ? null : (store.streamInfoNow?.(stream)?.lastEventNumber ?? null);
  const last = number === TOMBSTONE ? null : number;
  // The reference keeps the last events that came while the group was loaded, sent or not.
  const live = last === null ? intake.liveCount : Math.max(0, last - intake.endAtLoad);
  const known = live > 0 && last !== null ? { commit: last, prepare: 0 } : intake.lastKnown;
  const textOf = (position: Position | null) => (position === null ? null : positionText(position, isAll));
  const state = intake.isLive ? 'Live' : 'Behind';
  const connections = [...sender.consumers].map((consumer) => connectionOf(consumer, isAsked));
  return {
    stream,
    group,
    settings,
    filter,
    startFrom: startPosition,
    connections,
    status: !intake.isLoaded
      ? 'NotReady'
      : intake.isReading && state === 'Behind'
        ? 'Behind, OutstandingPageRequest'
        : state,
    averagePerSecond: perSecond,
    totalItems: total,
    countSinceLastMeasurement: sinceLast,
    lastCheckpointedPosition: textOf(checkpoints.last),
    lastKnownPosition: textOf(known),
    readBufferCount: sender.backlog.count,
    liveBufferCount: Math.min(live, Math.max(0, settings.liveBufferSize)),
    retryBufferCount: sender.retries.count + parked.toReplay,
    totalInFlightMessages: connections.reduce((sum, { inFlightMessages }) => sum + inFlightMessages, 0),
    outstandingMessagesCount: sender.sent.count,
    parkedMessageCount: parked.count,
    oldestParkedMs,
    parkedReplays: parked.replays,
    parkedTruncations: parked.truncations,
    parkedByClient: of.parkedByClient,
    parkedByRetries: of.parkedByRetries,
  };
}

function connectionOf({ options, measurement, bufferSize, inFlight }: Consumer, isAsked: boolean): ConnectionInfo {
  const { total, sinceLast, perSecond } = measurement.figures(isAsked);
  return {
    from: options.from,
    username: options.username,
    connectionName: options.connectionName,
    averageItemsPerSecond: perSecond,
    totalItems: total,
    countSinceLastMeasurement: sinceLast,
    availableSlots: Math.max(0, bufferSize - inFlight),
    inFlightMessages: inFlight,
    observedMeasurements: measurement.observed(),
  };
}
