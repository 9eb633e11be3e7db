import type { StoredEvent } from '../streams/api.ts';
import type { Held } from './group-limits.ts';
import { Message, OpenMessages } from './message.ts';
import { BEFORE_ALL, positionOf } from './positions.ts';
import type { Position } from './positions.ts';

/** Everything up to `place`, which was the message `order`, is done. */
export interface Standing {
  readonly place: Position;
  readonly order: number;
}

/** What a group has read and not yet done with, and what of it counts against the limits of all. */
export class Ledger {
  readonly open = new OpenMessages();
  /** Parked messages that are being replayed. */
  readonly replayed = new OpenMessages();
  /** Position of the last message that was read, and its number in reading order. */
  #lastPlace: Position = BEFORE_ALL;
  #lastOrder = 0;
  #replayOrder = 0;
  readonly #held: Held;
  readonly #isAll: boolean;

  constructor(held: Held, isAll: boolean) {
    this.#held = held;
    this.#isAll = isAll;
  }

  /** The group goes on after this. */
  begin(after: Position): void {
    this.#lastPlace = after;
  }

  /** The next event that the group has read. */
  add(event: StoredEvent, nowMs: number): Message {
    const { commit, prepare } = positionOf(event, this.#isAll);
    const before = this.#lastPlace;
    const message = new Message(event, ++this.#lastOrder, commit, prepare, before.commit, before.prepare, -1);
    this.#lastPlace = { commit, prepare };
    this.open.add(message);
    this.#count(message, nowMs);
    return message;
  }

  /** A parked event that is replayed; `number` is that of its link. */
  addReplayed(event: StoredEvent, number: number, nowMs: number): Message {
    const message = new Message(event, ++this.#replayOrder, number, 0, number - 1, 0, number);
    message.state = 'waiting';
    this.replayed.add(message);
    this.#count(message, nowMs);
    return message;
  }

  #count(message: Message, nowMs: number): void {
    message.sentAtMs = nowMs;
    this.#held.messages++;
    this.#held.bytes += message.bytes;
  }

  standing(): Standing {
    const { first } = this.open;
    return first === null
      ? { place: this.#lastPlace, order: this.#lastOrder }
      : { place: { commit: first.beforeCommit, prepare: first.beforePrepare }, order: first.order - 1 };
  }

  finish(message: Message): void {
    this.dropEvent(message);
    message.state = 'done';
    this.#held.messages--;
    (message.parkedNumber >= 0 ? this.replayed : this.open).remove(message);
  }

  /** The event of a message was read once more. */
  holdEvent(message: Message, event: StoredEvent, nowMs: number): void {
    message.event = event;
    message.sentAtMs = nowMs;
    this.#held.bytes += message.bytes;
  }

  dropEvent(message: Message): void {
    if (message.event === null) return;
    message.event = null;
    this.#held.bytes -= message.bytes;
  }

  /** The group has ended. */
  letGo(): void {
    for (const { first } of [this.open, this.replayed]) {
      for (let message = first; message !== null; message = message.nextOpen) {
        this.dropEvent(message);
        this.#held.messages--;
      }
    }
  }
}
