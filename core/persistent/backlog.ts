import type { Message } from './message.ts';

/** Messages that were read and never sent, in reading order. */
export class Backlog {
  #messages: Message[] = [];
  #at = 0;
  bytes = 0;

  get count(): number { return this.#messages.length - this.#at; }
  get head(): Message | null { return this.#messages[this.#at] ?? null; }

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
