import type { Message } from './message.ts';

/**
 * Messages to be sent again: those of the source in the order in which they were read, before the replayed ones in theirs. Most of them don't hold their
 * events any more.
 */
export class Retries {
  #messages: Message[] = [];
  #isSorted = true;

  get count(): number { return this.#messages.length; }

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
