import type { StoredEvent } from '../streams/api.ts';
import { EVENT_OVERHEAD_BYTES } from '../base/page-bytes.ts';

/** The holder of a message: a consumer (consumer.ts). */
export interface Holder {
  /** Messages that it has. */
  inFlight: number;
  readonly measurement: { answered(ms: number): void };
}

/**
 * buffered: read, not yet sent · sent: a consumer, or a reader without connection, has it · waiting: to be sent again ·
 * parking: on its way to the parked stream · done.
 */
export type MessageState = 'buffered' | 'sent' | 'waiting' | 'parking' | 'done';

/**
 * An event on its way through a group. It holds the event itself only until a consumer takes it: what is sent again is
 * read again, so that a group with many messages under way holds little, and nothing is sent again that has been
 * deleted since.
 */
export class Message {
  /** In the order in which they were read. */
  readonly order: number;
  /** Place of the event, or of its link, in the source. */
  readonly commit: number;
  readonly prepare: number;
  /** Place of what was read before it: where the group stands when this is the first that is not done. */
  readonly beforeCommit: number;
  readonly beforePrepare: number;
  /** Id by which it is answered. */
  readonly id: string;
  /** Stream and number of the event itself, for the link by which it is parked. */
  readonly stream: string;
  readonly number: number;
  /** Number by which the group reached it: of its link, if one was resolved. */
  readonly sourceNumber: number;
  /** Number of the parked message that this replays, -1 for none. */
  readonly parkedNumber: number;
  readonly bytes: number;
  event: StoredEvent | null;
  state: MessageState = 'buffered';
  retryCount = 0;
  /** Null too for messages that were taken without a connection. */
  consumer: Holder | null = null;
  /** Of the hash of what it is pinned by; -1 before it was asked for. */
  bucket = -1;
  sentAtMs = 0;
  /** Another message with the same id is sent: the next of them. */
  sameId: Message | null = null;
  /** Neighbours among those that are not done, in reading order. */
  previousOpen: Message | null = null;
  nextOpen: Message | null = null;
  /** Neighbours among those that are sent, in sending order. */
  previousSent: Message | null = null;
  nextSent: Message | null = null;

  constructor(
    event: StoredEvent,
    order: number,
    commit: number,
    prepare: number,
    beforeCommit: number,
    beforePrepare: number,
    parkedNumber: number,
  ) {
    const source = event.link ?? event;
    this.event = event;
    this.order = order;
    this.commit = commit;
    this.prepare = prepare;
    this.beforeCommit = beforeCommit;
    this.beforePrepare = beforePrepare;
    this.parkedNumber = parkedNumber;
    this.id = source.id;
    this.stream = event.stream;
    this.number = event.number;
    this.sourceNumber = source.number;
    this.bytes = bytesOf(event);
  }
}

export function bytesOf({ data, metadata, link }: StoredEvent): number {
  return (
    EVENT_OVERHEAD_BYTES +
    data.length +
    metadata.length +
    (link === null ? 0 : EVENT_OVERHEAD_BYTES + link.data.length + link.metadata.length)
  );
}

/** What is not done, in reading order: where a group stands is decided by the first. */
export class OpenMessages {
  first: Message | null = null;
  last: Message | null = null;
  count = 0;

  add(message: Message): void {
    message.previousOpen = this.last;
    if (this.last === null) this.first = message;
    else this.last.nextOpen = message;
    this.last = message;
    this.count++;
  }

  remove(message: Message): void {
    const { previousOpen: previous, nextOpen: next } = message;
    if (previous === null) this.first = next;
    else previous.nextOpen = next;
    if (next === null) this.last = previous;
    else next.previousOpen = previous;
    message.previousOpen = null;
    message.nextOpen = null;
    this.count--;
  }
}

/** What was sent and not answered, oldest first, found by its id. */
export class SentMessages {
  oldest: Message | null = null;
  #newest: Message | null = null;
  readonly #byId = new Map<string, Message>();
  count = 0;

  add(message: Message, nowMs: number): void {
    message.sentAtMs = nowMs;
    message.previousSent = this.#newest;
    message.nextSent = null;
    if (this.#newest === null) this.oldest = message;
    else this.#newest.nextSent = message;
    this.#newest = message;
    // Events of several streams may have one id: each is answered by itself, the first that was sent first.
    const same = this.#byId.get(message.id);
    message.sameId = null;
    if (same === undefined) this.#byId.set(message.id, message);
    else {
      let tail = same;
      while (tail.sameId !== null) tail = tail.sameId;
      tail.sameId = message;
    }
    this.count++;
  }

  /**
   * The message with this id that `consumer` has; of others' the first where `consumer` has none, and null where no
   * consumer has one.
   */
  find(id: string, consumer: Holder | null): Message | null {
    const first = this.#byId.get(id) ?? null;
    for (let message = first; message !== null; message = message.sameId)
      if (message.consumer === consumer) return message;
    return first;
  }

  remove(message: Message): void {
    const { previousSent: previous, nextSent: next } = message;
    if (previous === null) this.oldest = next;
    else previous.nextSent = next;
    if (next === null) this.#newest = previous;
    else next.previousSent = previous;
    message.previousSent = null;
    message.nextSent = null;
    this.#forgetId(message);
    this.count--;
  }

  #forgetId(message: Message): void {
    const first = this.#byId.get(message.id)!;
    if (first === message) {
      if (message.sameId === null) this.#byId.delete(message.id);
      else this.#byId.set(message.id, message.sameId);
    } else {
      let before = first;
      while (before.sameId !== message) before = before.sameId!;
      before.sameId = message.sameId;
    }
    message.sameId = null;
  }
}

/** Messages that were read and never sent, in reading order. */
export class Backlog {
  #messages: Message[] = [];
  #at = 0;
  bytes = 0;

  get count(): number {
    return this.#messages.length - this.#at;
  }
  get head(): Message | null {
    return this.#messages[this.#at] ?? null;
  }

  add(message: Message): void {
    this.#messages.push(message);
    this.bytes += message.bytes;
  }

  /** Takes the head out. */
  shift(): Message {
    const message = this.#messages[this.#at++]!;
    this.bytes -= message.bytes;
    if (this.#at === this.#messages.length) this.clear();
    else if (this.#at > 256 && this.#at * 2 > this.#messages.length) {
      this.#messages.splice(0, this.#at);
      this.#at = 0;
    }
    return message;
  }

  /** Puts messages back that were taken out and are still to be sent. */
  unshift(messages: readonly Message[]): void {
    if (messages.length === 0) return;
    for (const message of messages) this.bytes += message.bytes;
    this.#messages = [...messages, ...this.#messages.slice(this.#at)];
    this.#at = 0;
  }

  clear(): void {
    this.#messages = [];
    this.#at = 0;
  }
}

/**
 * Messages to be sent again: those of the source in the order in which they were read, before the replayed ones in
 * theirs. Most of them don't hold their events any more.
 */
export class Retries {
  #messages: Message[] = [];
  #isSorted = true;

  get count(): number {
    return this.#messages.length;
  }

  add(message: Message): void {
    const last = this.#messages.at(-1);
    if (last !== undefined && compare(last, message) > 0) this.#isSorted = false;
    this.#messages.push(message);
  }

  inOrder(): readonly Message[] {
    if (!this.#isSorted) this.#messages.sort(compare);
    this.#isSorted = true;
    return this.#messages;
  }

  /** Leaves out what is not waiting any more. */
  prune(): void {
    this.#messages = this.#messages.filter(({ state }) => state === 'waiting');
  }
}

function compare(a: Message, b: Message): number {
  const isReplay = Number(a.parkedNumber >= 0) - Number(b.parkedNumber >= 0);
  return isReplay === 0 ? a.order - b.order : isReplay;
}
