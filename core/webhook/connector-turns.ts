import { SkuaError } from '../errors.ts';
import { shown } from './connector-flatten.ts';

/** Commands of one connector that wait for each other, the running one included. */
export const COMMANDS_QUEUED_MAX = 100;

/** Lets the commands of one connector run one after the other, and those of different ones at once. */
export class Turns {
  readonly #queues = new Map<string, { last: Promise<unknown>; length: number }>();
  #isClosed = false;

  /** Errors: `store_closed`, `too_busy`, and what the command fails with. */
  take(connectorId: string, command: () => Promise<void>): Promise<void> {
    if (this.#isClosed) return Promise.reject(new SkuaError('store_closed', 'The node is stopping and takes no more commands for connectors.'));
    const queue = this.#queues.get(connectorId) ?? { last: Promise.resolve(), length: 0 };
    if (queue.length >= COMMANDS_QUEUED_MAX) return Promise.reject(new SkuaError('too_busy', `Too many commands for connector '${shown(connectorId)}' wait for each other. Try again.`));
    this.#queues.set(connectorId, queue);
    queue.length++;
    const result = queue.last.then(command).finally(() => {
      if (--queue.length === 0) this.#queues.delete(connectorId);
    });
    // The next one runs whatever becomes of this one.
    queue.last = result.catch(() => {});
    return result;
  }

  /** When no command is under way. */
  async idle(): Promise<void> {
    while (this.#queues.size > 0) await Promise.allSettled([...this.#queues.values()].map(({ last }) => last));
  }

  /** Those under way are ended, new ones refused. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.idle();
  }
}
