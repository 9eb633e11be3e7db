import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { ALL_STREAM, answerId, checkpointStreamOf, parkedStreamOf, STRATEGIES } from '../../core/persistent/api.ts';
import type {
  Delivery,
  GroupConsumer,
  GroupSettings,
  NackAction,
  PersistentSubscriptionsEngine,
  StartFrom,
} from '../../core/persistent/api.ts';
import { isAfter, parsePosition } from '../../core/persistent/positions.ts';
import type { EngineParts, GroupStore } from '../../core/persistent/group-parts.ts';
import { decodeCheckpoint, decodeInitialMark } from '../../core/persistent/stored-forms.ts';
import type { NewEvent, StoredEvent } from '../../core/streams/api.ts';
import { layer, performWrite } from '../../core/streams/layer/layer.ts';
import { ANY } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ModelStore } from '../support/model-store.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { CONNECT, engineOver, settings } from './support.ts';

/**
 * A group under consumers that die, nack, stall and come back, on a node that crashes, loses writes and the lead,
 * against what the rules say. Everything is chosen by the seed. What is checked stands at `#check…`; each throws a text
 * that says what went wrong.
 */

const GROUP = 'workers';
const NEVER = new Promise<never>(() => {});

type Kind = 'stream' | 'links' | 'all';

interface Held {
  readonly delivery: Delivery;
  readonly key: string;
}

interface Reader {
  readonly consumer: GroupConsumer;
  readonly life: number;
  readonly held: Held[];
  pending: Promise<void> | null;
  isEnded: boolean;
}

interface PendingWrite {
  readonly life: number;
  readonly apply: () => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface SimulationFigures {
  readonly delivered: number;
  readonly parked: number;
  readonly crashes: number;
  readonly replayed: number;
  readonly resets: number;
  readonly resetsCutShort: number;
}

/** From where on a group works, and since when: what was answered or parked before does not count. */
interface Beginning {
  readonly wants: (event: StoredEvent, at: number) => boolean;
  /**
   * A reset to the end that was cut short may begin at the end of a later moment: what is written until it is asked for
   * again can be left out.
   */
  readonly owesNothing?: boolean;
  readonly answersFrom: number;
  readonly logFrom: number;
}

class Simulation {
  readonly #random: Random;
  readonly #clock = new ManualClock(Date.UTC(2026, 10, 23));
  readonly #model: ModelStore;
  readonly #kind: Kind;
  readonly #source: string;
  readonly #settings: GroupSettings;
  readonly #fromEnd: boolean;
  /** Where the group has begun. Several where a reset was cut short: it is at one of them, and that is not known. */
  #beginnings: readonly Beginning[] = [];
  #engine!: PersistentSubscriptionsEngine;
  /**
   * Goes up with each process; `#life` with whatever makes a group start anew, when it has: until then the one before
   * writes what it has to.
   */
  #process = 0;
  #life = 0;
  readonly #dead = new Set<number>();
  #isLeading = true;
  #writeFaults = 0;
  #readFaults = 0;
  #writes: PendingWrite[] = [];
  #holdsWrites = false;
  #readers: Reader[] = [];
  /** Keys of events that a client has acknowledged or skipped, with the number of the last such answer. */
  readonly #answered = new Map<string, number>();
  #answers = 0;
  readonly #replayAnswered = new Set<number>();
  /** Last retry count that was handed out, by life and key. */
  readonly #handed = new Map<string, number>();
  readonly #settled = new Set<string>();
  readonly #parkedIn = new Set<string>();
  #refusal: unknown = null;
  #made = 0;
  #hiddenBelow = 0;
  #delivered = 0;
  #crashes = 0;
  #replayed = 0;
  #resets = 0;
  #resetsCutShort = 0;

  constructor(seed: number) {
    const random = new Random(seed);
    this.#random = random;
    this.#model = new ModelStore(this.#clock, new SeededIds(seed));
    this.#kind = random.pick<Kind>(['stream', 'stream', 'links', 'all']);
    this.#source = this.#kind === 'all' ? ALL_STREAM : this.#kind === 'links' ? 'links' : 'jobs';
    this.#fromEnd = random.chance(0.3);
    this.#settings = settings({
      resolveLinks: this.#kind === 'links',
      strategy: random.pick(STRATEGIES),
      messageTimeoutMs: random.pick([0, 400, 1_500]),
      maxRetryCount: random.int(-1, 3),
      historyBufferSize: random.int(2, 30),
      readBatchSize: 1,
      minCheckpointCount: random.int(0, 5),
      maxCheckpointCount: random.int(1, 12),
      checkpointAfterMs: random.pick([0, 100, 1_000]),
      maxSubscriberCount: random.pick([0, 0, 2]),
    });
  }

  async run(): Promise<SimulationFigures> {
    await this.#append(this.#random.int(0, 12));
    this.#boot();
    await this.#call(() =>
      this.#engine.create(
        this.#source,
        GROUP,
        {
          settings: { ...this.#settings, readBatchSize: this.#random.int(1, this.#settings.historyBufferSize - 1) },
          from: this.#fromEnd ? 'end' : 'start',
          ...(this.#kind === 'all' && { filter: { on: 'stream', prefixes: ['jobs'] } }),
        },
        'admin',
      ),
    );
    this.#beginnings = [this.#beginning(this.#fromEnd ? 'end' : 'start')];
    for (let steps = this.#random.int(30, 120); steps > 0; steps--) await this.#step();
    await this.#heal();
    return {
      delivered: this.#delivered,
      parked: this.#parkedIn.size,
      crashes: this.#crashes,
      replayed: this.#replayed,
      resets: this.#resets,
      resetsCutShort: this.#resetsCutShort,
    };
  }

  async #step(): Promise<void> {
    const random = this.#random;
    const choice = random.int(0, 99);
    if (choice < 16) await this.#append(random.int(1, 6));
    else if (choice < 28) await this.#connect(random.pick([1, 2, 5, 20]));
    else if (choice < 33) this.#close();
    else if (choice < 69) await this.#answer();
    else if (choice < 70) await this.#restart();
    else if (choice < 72) await this.#reset();
    else if (choice < 84) await this.#advance(random.pick([10, 100, 500, 2_000]));
    else if (choice < 87) this.#holdsWrites = !this.#holdsWrites;
    else if (choice < 88) this.#writeFaults = random.int(1, 3);
    else if (choice < 89) this.#readFaults = random.int(1, 3);
    else if (choice < 91) await this.#crash();
    else if (choice < 92) await this.#moveLead();
    else if (choice < 94) await this.#change();
    else if (choice < 97) await this.#replay();
    else if (choice < 98) await this.#truncate();
    else await this.#take();
    if (!this.#holdsWrites) await this.#release();
    await settle();
  }

  // The world

  #boot(): void {
    const process = ++this.#process;
    this.#life++;
    const store = this.#storeOf(process);
    const limits = this.#random.pick([
      {},
      { bufferBytesMax: 1_500, openMessagesMax: 8 },
      { deliveriesMax: 1, batchMax: 2, staleMs: 300 },
      { idleBufferBytesMax: 600, pageBytesMax: 600, staleMs: 1_000 },
    ]);
    this.#engine = engineOver(store, { clock: this.#clock, ids: new SeededIds(1_000 + process), limits }).engine;
    this.#engine.start();
  }

  /**
   * The store as one process sees it: it loses everything at once when that crashes, and writes only while it leads.
   */
  #storeOf(process: number): GroupStore & EngineParts['writes'] {
    const isDead = () => this.#dead.has(process);
    const read = <T>(call: () => Promise<T>): Promise<T> => {
      if (isDead()) return NEVER;
      if (this.#readFaults > 0 && this.#random.chance(0.5)) {
        this.#readFaults--;
        return Promise.reject(new SkuaError('too_busy', 'Chosen by the simulation.'));
      }
      return call().then(
        (value) => (isDead() ? NEVER : value),
        (error: unknown) => {
          if (isDead()) return NEVER;
          throw error;
        },
      );
    };
    const write = (apply: () => Promise<unknown>): Promise<never> => {
      if (isDead()) return NEVER;
      return new Promise<never>((resolve, reject) => {
        this.#writes.push({ life: process, apply, resolve: resolve as (value: unknown) => void, reject });
      });
    };
    return layer(this.#model, {
      read: (call) => read(() => call(this.#model)),
      wait: (call) => read(() => call(this.#model)),
      write: (asked) => {
        const life = this.#life;
        return write(() => {
          const { stream, events } = asked.writes[0]!;
          if (asked.kind === 'append') this.#checkWrite(stream, events, life);
          return performWrite(this.#model, asked);
        });
      },
    });
  }

  /** Writes that wait get their outcome, in order. */
  async #release(most = 200): Promise<void> {
    for (let turns = 0; this.#writes.length > 0 && turns < most; turns++) {
      const { life, apply, resolve, reject } = this.#writes.shift()!;
      if (!this.#isLeading) reject(new SkuaError('not_leader', 'Chosen by the simulation.'));
      else if (this.#writeFaults > 0) {
        this.#writeFaults--;
        // Half of them are written all the same.
        if (this.#random.chance(0.5) && !this.#dead.has(life)) await apply();
        reject(new SkuaError('commit_outcome_unknown', 'Chosen by the simulation.'));
      } else if (!this.#dead.has(life))
        await apply().then(resolve, (error: unknown) => {
          if (!isSkuaError(error)) throw error;
          reject(error);
        });
      await settle();
    }
  }

  async #append(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const n = this.#made++;
      const metadata = this.#random.chance(0.7)
        ? encodeText(JSON.stringify({ $correlationId: `c${this.#random.int(0, 4)}` }))
        : new Uint8Array(0);
      const stream = this.#kind === 'all' ? this.#random.pick(['jobs-1', 'jobs-2', 'noise']) : 'jobs';
      await this.#model.append(stream, ANY, [
        {
          id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
          type: 'happened',
          isJson: true,
          data: encodeText(`{"n":${n}}`),
          metadata,
        },
      ]);
      if (this.#kind === 'links' && this.#random.chance(0.8)) {
        await this.#model.append('links', ANY, [
          {
            id: `00000000-0000-4000-a000-${String(n).padStart(12, '0')}`,
            type: '$>',
            isJson: false,
            data: encodeText(`${this.#random.int(0, n)}@jobs`),
            metadata: new Uint8Array(0),
          },
        ]);
      }
    }
  }

  async #advance(ms: number): Promise<void> {
    const slice = Math.max(100, ms / 10);
    for (let left = ms; left > 0; left -= slice) {
      await this.#clock.advance(Math.min(slice, left));
      if (!this.#holdsWrites) await this.#release();
    }
  }

  /** A call whose writes get their outcome; refusals are part of the game. */
  async #call(call: () => Promise<unknown>): Promise<boolean> {
    const outcome: { error?: unknown; isDone: boolean } = { isDone: false };
    void call().then(
      () => {
        outcome.isDone = true;
      },
      (error: unknown) => {
        outcome.error = error;
        outcome.isDone = true;
      },
    );
    for (let turns = 0; turns < 60 && !outcome.isDone; turns++) {
      await settle();
      await this.#release();
      if (turns > 5) await this.#clock.advance(200);
    }
    if (!outcome.isDone) throw new Error('a call has no end');
    if (outcome.error !== undefined && !isSkuaError(outcome.error)) throw outcome.error;
    this.#refusal = outcome.error;
    return outcome.error === undefined;
  }

  // What happens to the node

  async #crash(): Promise<void> {
    this.#crashes++;
    this.#dead.add(this.#process);
    // What was on its way was written, or was not.
    for (const { apply } of this.#writes) if (this.#random.chance(0.5)) await apply();
    this.#writes = [];
    this.#readers = [];
    this.#boot();
    await settle();
  }

  async #moveLead(): Promise<void> {
    this.#isLeading = this.#random.chance(0.5);
    await this.#call(() => this.#engine.stop());
    this.#isLeading = true;
    await this.#checkDropped();
    this.#boot();
  }

  async #change(): Promise<void> {
    const { historyBufferSize } = this.#settings;
    this.#writeFaults = 0;
    this.#readFaults = 0;
    await this.#call(() =>
      this.#engine.update(
        this.#source,
        GROUP,
        { settings: { ...this.#settings, readBatchSize: this.#random.int(1, historyBufferSize - 1) } },
        'admin',
      ),
    );
    this.#life++;
    await this.#checkDropped();
  }

  /** Whatever fails meanwhile, all groups begin again from what is stored. */
  async #restart(): Promise<void> {
    if (this.#random.chance(0.3)) this.#writeFaults = this.#random.int(1, 2);
    await this.#call(() => this.#engine.restart());
    this.#life++;
    await this.#checkDropped();
  }

  async #reset(): Promise<void> {
    const from = await this.#someStart();
    this.#readFaults = 0;
    this.#writeFaults = this.#random.chance(0.3) ? this.#random.int(1, 3) : 0;
    if (this.#random.chance(0.3)) await this.#resetCutShort(from);
    else await this.#resetTo(from);
  }

  /** The group begins anew: where it is told to, or, if a write fails meanwhile, there or where it was. */
  async #resetTo(from: StartFrom): Promise<void> {
    const chosen = this.#mayBegin(from);
    const isDone = await this.#call(() => this.#engine.reset(this.#source, GROUP, from, 'admin'));
    this.#life++;
    if (isDone) {
      this.#beginnings = [chosen];
      this.#resets++;
    } else {
      this.#resetsCutShort++;
      await this.#advance(1_000);
    }
    await this.#checkDropped();
  }

  async #resetCutShort(from: StartFrom): Promise<void> {
    this.#mayBegin(from);
    this.#resetsCutShort++;
    this.#engine.reset(this.#source, GROUP, from, 'admin').catch(() => {});
    for (let turns = this.#random.int(0, 4); turns > 0; turns--) {
      await settle();
      await this.#release(1);
    }
    await this.#crash();
  }

  #mayBegin(from: StartFrom): Beginning {
    const chosen = this.#beginning(from);
    this.#beginnings = [...this.#beginnings, from === 'end' ? { ...chosen, owesNothing: true } : chosen];
    return chosen;
  }

  async #someStart(): Promise<StartFrom> {
    const which = this.#random.int(0, 3);
    if (which < 2) return which === 0 ? 'start' : 'end';
    if (this.#kind !== 'all')
      return this.#random.int(0, (await this.#model.streamInfo(this.#source)).lastEventNumber + 2);
    if (this.#model.log.length === 0) return 'start';
    const { position, preparePosition } = this.#random.pick(this.#model.log);
    return { commit: position, prepare: preparePosition };
  }

  #beginning(from: StartFrom): Beginning {
    const logFrom = this.#model.log.length;
    const answersFrom = this.#answers + 1;
    if (from === 'start') return { wants: () => true, answersFrom, logFrom };
    if (from === 'end') return { wants: (_, at) => at >= logFrom, answersFrom, logFrom };
    if (typeof from === 'number') return { wants: ({ number }) => number >= from, answersFrom, logFrom };
    return {
      wants: ({ position, preparePosition }) =>
        !isAfter(from.commit, from.prepare, { commit: position, prepare: preparePosition }),
      answersFrom,
      logFrom,
    };
  }

  async #checkDropped(): Promise<void> {
    for (const reader of this.#readers) this.#pull(reader);
    await settle();
    if (this.#readers.some(({ isEnded }) => !isEnded)) throw new Error('a consumer was not dropped');
    this.#readers = [];
  }

  // Consumers

  async #connect(bufferSize: number): Promise<void> {
    const result: { consumer?: GroupConsumer } = {};
    await this.#call(async () => {
      result.consumer = await this.#engine.connect(this.#source, GROUP, { ...CONNECT, bufferSize });
    });
    if (result.consumer === undefined) return;
    const reader: Reader = { consumer: result.consumer, life: this.#life, held: [], pending: null, isEnded: false };
    this.#readers.push(reader);
    // Some never take anything.
    if (!this.#random.chance(0.1)) this.#pull(reader);
  }

  #pull(reader: Reader): void {
    if (reader.pending !== null || reader.isEnded) return;
    reader.pending = reader.consumer.next().then(
      (deliveries) => {
        reader.pending = null;
        if (deliveries.length === 0) reader.isEnded = true;
        for (const delivery of deliveries) reader.held.push(this.#handedOut(delivery, reader.life));
      },
      (error: unknown) => {
        reader.pending = null;
        reader.isEnded = true;
        if (!isSkuaError(error, 'persistent_subscription_dropped')) throw error;
      },
    );
  }

  #close(): void {
    if (this.#readers.length === 0) return;
    const reader = this.#random.pick(this.#readers);
    reader.consumer.close();
    this.#readers = this.#readers.filter((other) => other !== reader);
  }

  async #answer(): Promise<void> {
    for (const reader of this.#readers) if (this.#random.chance(0.8)) this.#pull(reader);
    await settle();
    for (const reader of this.#readers) {
      const held = reader.held.splice(0, this.#random.int(0, reader.held.length));
      for (const one of this.#random.chance(0.3) ? this.#random.shuffle(held) : held) this.#answerOne(one, reader);
    }
  }

  #answerOne({ delivery, key }: Held, { consumer, life, isEnded }: Reader): void {
    const ids = [answerId(delivery.event)];
    const choice = this.#random.int(0, 99);
    // What was answered to a process that is no more, or by a consumer that was let go, was not heard.
    const isHeard = life === this.#life && !isEnded;
    if (choice < 60) {
      if (isHeard) this.#done(key, life);
      consumer.ack(this.#random.chance(0.1) ? [ids[0]!.toUpperCase(), 'no-id'] : ids);
    } else if (choice < 90) {
      const action = this.#random.pick<NackAction>(['Unknown', 'Park', 'Retry', 'Skip', 'Stop']);
      if (isHeard && (action === 'Skip' || action === 'Stop')) this.#done(key, life);
      consumer.nack(ids, action, 'because');
    }
  }

  #done(key: string, life: number): void {
    if (key.startsWith('parked/')) this.#replayAnswered.add(Number(key.slice(7)));
    else this.#answered.set(key, ++this.#answers);
    // With no timeout nothing takes the message from its holder, so the answer counted.
    if (this.#settings.messageTimeoutMs === 0) this.#settled.add(`${life} ${key}`);
  }

  async #take(): Promise<void> {
    const result: { deliveries: readonly Delivery[] } = { deliveries: [] };
    const life = this.#life;
    await this.#call(async () => {
      result.deliveries = await this.#engine.take(this.#source, GROUP, this.#random.int(1, 5));
    });
    for (const delivery of result.deliveries) {
      const { key } = this.#handedOut(delivery, life);
      if (this.#random.chance(0.3)) continue;
      const isAck = this.#random.chance(0.7);
      this.#done(key, life);
      await this.#call(() =>
        isAck
          ? this.#engine.ack(this.#source, GROUP, [answerId(delivery.event)])
          : this.#engine.nack(this.#source, GROUP, [answerId(delivery.event)], 'Skip', ''),
      );
    }
  }

  async #replay(): Promise<void> {
    if (await this.#call(() => this.#engine.replayParked(this.#source, GROUP, this.#random.pick([null, 1, 3]))))
      this.#replayed++;
  }

  /** The head of the source goes: that is never wanted any more. */
  async #truncate(): Promise<void> {
    if (this.#kind === 'all') return;
    const { lastEventNumber } = await this.#model.streamInfo(this.#source);
    if (lastEventNumber < 4) return;
    this.#hiddenBelow = Math.max(this.#hiddenBelow, this.#random.int(0, lastEventNumber >> 1));
    await this.#model.append(`$$${this.#source}`, ANY, [
      {
        id: `00000000-0000-4000-b000-${String(this.#model.log.length).padStart(12, '0')}`,
        type: '$metadata',
        isJson: true,
        data: encodeText(`{"$tb":${this.#hiddenBelow}}`),
        metadata: new Uint8Array(0),
      },
    ]);
  }

  // What must hold

  /** A message comes with 0, 1, 2 … as often as it is handed out, and never again once it was answered. */
  #handedOut(delivery: Delivery, life: number): Held {
    const { event, retryCount } = delivery;
    const source = event.link ?? event;
    const isReplay = source.stream === parkedStreamOf(this.#source, GROUP);
    const key = isReplay ? `parked/${source.number}` : `${source.stream}/${source.number}`;
    this.#delivered++;
    const before = this.#handed.get(`${life} ${key}`) ?? -1;
    // A parked message can be put up for replay again by another life only.
    if (retryCount !== before + 1) throw new Error(`${key} came with ${retryCount} after ${before}`);
    if (retryCount > Math.max(0, this.#settings.maxRetryCount))
      throw new Error(`${key} came ${retryCount} times again`);
    if (this.#settled.has(`${life} ${key}`)) throw new Error(`${key} came again after it had been answered`);
    // What was on its way when the group began anew was of the group that it was before.
    if (!isReplay && life === this.#life && source.number >= this.#hiddenBelow && !this.#isWanted(source))
      throw new Error(`${key} is no event of the group`);
    this.#handed.set(`${life} ${key}`, retryCount);
    return { delivery, key };
  }

  /** Whether an event is of the group, wherever it has begun. */
  #isWanted({ stream, number }: StoredEvent): boolean {
    const at = this.#model.log.findIndex((event) => event.stream === stream && event.number === number);
    return (
      at >= 0 &&
      this.#isOfGroup(this.#model.log[at]!) &&
      this.#beginnings.some(({ wants }) => wants(this.#model.log[at]!, at))
    );
  }

  #isOfGroup({ stream, number }: StoredEvent): boolean {
    return this.#kind === 'all' ? stream.startsWith('jobs') : stream === this.#source && number >= this.#hiddenBelow;
  }

  /** Events that the group must still do something with, wherever it has begun, in order. */
  #due(): StoredEvent[] {
    const parked = this.#parkedKeys();
    return this.#model.log.filter((event, at) => {
      const key = `${event.stream}/${event.number}`;
      return (
        this.#isOfGroup(event) &&
        this.#beginnings.every(
          ({ wants, owesNothing = false, answersFrom, logFrom }) =>
            wants(event, at) &&
            !owesNothing &&
            (this.#answered.get(key) ?? 0) < answersFrom &&
            (parked.get(key) ?? -1) < logFrom,
        )
      );
    });
  }

  /** Events that were parked, with the place in the log where that was written last. */
  #parkedKeys(): Map<string, number> {
    const keys = new Map<string, number>();
    for (const [at, { stream, data, metadata }] of this.#model.log.entries()) {
      if (stream !== parkedStreamOf(this.#source, GROUP)) continue;
      const [number, target] = decodeText(data).split('@');
      keys.set(
        this.#kind === 'links'
          ? `links/${(JSON.parse(decodeText(metadata)) as { subscriptionEventNumber?: number }).subscriptionEventNumber ?? 0}`
          : `${target}/${number}`,
        at,
      );
    }
    return keys;
  }

  #checkWrite(stream: string, events: readonly NewEvent[], life: number): void {
    const parked = parkedStreamOf(this.#source, GROUP);
    for (const event of events) {
      if (stream === checkpointStreamOf(this.#source, GROUP) && decodeInitialMark(event.metadata) === null)
        this.#checkCheckpoint(decodeCheckpoint(event.data)!);
      else if (stream === `$$${parked}`) this.#checkHidden((JSON.parse(decodeText(event.data)) as { $tb: number }).$tb);
      else if (stream === parked) this.#checkParked(event, life);
    }
  }

  /** A checkpoint never stands beyond an event that was neither answered nor parked. */
  #checkCheckpoint(text: string): void {
    const place = parsePosition(text, this.#kind === 'all')!;
    for (const { stream, number, position, preparePosition } of this.#due()) {
      const isBeyond = this.#kind === 'all' ? isAfter(position, preparePosition, place) : number > place.commit;
      if (!isBeyond) throw new Error(`the checkpoint ${text} leaves ${stream}/${number} out`);
    }
  }

  /** Parked messages are hidden only when they were replayed and answered, or parked again. */
  #checkHidden(below: number): void {
    const again = new Set<number>();
    for (const { stream, metadata } of this.#model.log)
      if (stream === parkedStreamOf(this.#source, GROUP))
        again.add(
          (JSON.parse(decodeText(metadata)) as { subscriptionEventNumber?: number }).subscriptionEventNumber ?? 0,
        );
    for (let number = 0; number < below; number++)
      if (!this.#replayAnswered.has(number) && !again.has(number) && !this.#isTargetGone(number))
        throw new Error(`parked message ${number} is hidden and was not done`);
  }

  #isTargetGone(number: number): boolean {
    const link = this.#model.log.find(
      (event) => event.stream === parkedStreamOf(this.#source, GROUP) && event.number === number,
    );
    const target = link === undefined ? -1 : Number(decodeText(link.data).split('@')[0]);
    return this.#kind === 'stream' && target < this.#hiddenBelow;
  }

  /** In one life a message is parked once, and for its retries only when they are used up. */
  #checkParked(event: NewEvent, life: number): void {
    if (this.#model.log.some(({ stream, id }) => stream === parkedStreamOf(this.#source, GROUP) && id === event.id))
      return;
    const { reason, subscriptionEventNumber = 0 } = JSON.parse(decodeText(event.metadata)) as {
      reason: string;
      subscriptionEventNumber?: number;
    };
    const [number, target] = decodeText(event.data).split('@');
    // The number alone does not always tell a replayed message from one of the source.
    const sourceKeys =
      this.#kind === 'links'
        ? [`links/${subscriptionEventNumber}`]
        : Number(number) === subscriptionEventNumber
          ? [`${target}/${number}`]
          : [];
    const keys = [...sourceKeys, `parked/${subscriptionEventNumber}`].filter((key) =>
      this.#handed.has(`${life} ${key}`),
    );
    const open = keys.filter((key) => !this.#parkedIn.has(`${life} ${key}`));
    if (keys.length > 0 && open.length === 0) throw new Error(`${keys.join(' or ')} was parked twice`);
    const { maxRetryCount } = this.#settings;
    if (
      reason.startsWith('Reached') &&
      !open.some((key) => this.#handed.get(`${life} ${key}`) === Math.max(0, maxRetryCount))
    )
      throw new Error(`${open.join(' or ')} was parked before its time`);
    if (keys.length === 1) this.#parkedIn.add(`${life} ${open[0]}`);
  }

  /** All faults end, one consumer answers everything: then nothing may be left. */
  async #heal(): Promise<void> {
    this.#holdsWrites = false;
    this.#writeFaults = 0;
    this.#readFaults = 0;
    await this.#release();
    for (const { consumer } of this.#readers) consumer.close();
    this.#readers = [];
    // Whoever was told that a reset has failed asks for it again.
    for (let tries = 0; this.#beginnings.length > 1 && tries < 20; tries++)
      await this.#resetTo(await this.#someStart());
    if (this.#beginnings.length > 1) throw new Error(`a reset can't be asked for again: ${String(this.#refusal)}`);
    await this.#advance(this.#settings.messageTimeoutMs === 0 ? 31_000 : 2_000);
    await this.#connect(20);
    const reader = this.#readers.at(-1);
    if (reader === undefined) throw new Error(`nobody can connect at the end: ${String(this.#refusal)}`);
    const isLeft = (): StoredEvent | undefined => this.#due()[0];
    const isEmpty = async () =>
      (await this.#engine.figures()).every(
        ({ outstandingMessagesCount, retryBufferCount, readBufferCount }) =>
          outstandingMessagesCount + retryBufferCount + readBufferCount === 0,
      );
    for (let turn = 0; turn < 300; turn++) {
      this.#pull(reader);
      await settle();
      for (const { delivery, key } of reader.held.splice(0)) {
        this.#done(key, reader.life);
        reader.consumer.ack([answerId(delivery.event)]);
      }
      await this.#release();
      await settle();
      if (turn % 4 === 3) {
        await this.#advance(500);
        if (turn > 8 && reader.held.length === 0 && isLeft() === undefined && (await isEmpty())) break;
      }
    }
    const left = isLeft();
    if (left !== undefined) throw new Error(`${left.stream}/${left.number} was left out`);
    await this.#advance(3_000);
    const info = await this.#engine.info(this.#source, GROUP);
    if (!(await isEmpty())) throw new Error(`${JSON.stringify(info)} is not empty`);
    await this.#call(() => this.#engine.stop());
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

export function simulate(seed: number): Promise<SimulationFigures> {
  return new Simulation(seed).run();
}
