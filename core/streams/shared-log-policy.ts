import { isSkuaError } from '../base/errors.ts';
import type { SharedLog } from '../ports/commit-log.ts';
import type { AppendGroup } from './append-group.ts';
import type { AppendQueue } from './append-request.ts';

/**
 * What a group needs besides on a log to which others write too: another writer may move the end of the log while the
 * group is put together, and may be first when it is committed. In both cases the group is withdrawn, its requests wait
 * again before all others, and everything is decided anew.
 */
export class SharedLogPolicy {
  readonly #log: SharedLog;
  readonly #group: AppendGroup;
  readonly #queue: AppendQueue;
  /** The group is being put together: nothing of it has gone to the log. */
  #isCollecting = false;
  #isOvertaken = false;

  constructor(log: SharedLog, group: AppendGroup, queue: AppendQueue) {
    this.#log = log;
    this.#group = group;
    this.#queue = queue;
  }

  /** Another writer has moved the end of the log since the group was begun: it takes no further request. */
  get isOvertaken(): boolean {
    return this.#isOvertaken;
  }

  /** Null while the log takes a group; else a promise to await before. Rejects with why nothing can be written now. */
  ready(): Promise<void> | null {
    return this.#log.ready();
  }

  /**
   * What others have committed is on its way in, and the group knows nothing of it: another round has to begin it anew.
   */
  get isLettingIn(): boolean {
    return this.#log.isLettingIn;
  }

  /** The group was begun at the end of the log. */
  begin(): void {
    this.#isCollecting = true;
    this.#isOvertaken = false;
  }

  /**
   * The end of the log is about to be moved by another writer's records. Never called while the group is on its way.
   */
  overtake(): void {
    if (!this.#isCollecting || this.#isOvertaken) return;
    this.#group.withdraw();
    this.#isOvertaken = true;
  }

  /**
   * A group that has something to append proves itself that the latest state decided it. Refusals and repeats alone may
   * have been decided by a state that other writers have long left behind: they are answered only after the log of
   * these writers was read.
   */
  async confirm(): Promise<void> {
    const { length, requests } = this.#group;
    if (length > 0 || this.#isOvertaken || requests.every(({ isConfirmed, error }) => isConfirmed || isFinal(error)))
      return;
    for (const request of requests) request.isConfirmed = true;
    await this.#log.confirm();
  }

  /**
   * Nothing is collected any more. From here to the log no other code may have a turn. False when the group was
   * overtaken.
   */
  leave(): boolean {
    this.#isCollecting = false;
    return !this.#isOvertaken;
  }

  /** Lets the requests of a withdrawn group wait again, before all others. */
  putBack(): void {
    this.#queue.putBack(this.#group.requests.splice(0));
  }

  /**
   * The group is in the log, and what is kept here of the log could not take it in: its requests have their answers,
   * and its records come again like another writer's.
   */
  async leaveToOthers(): Promise<void> {
    this.#group.withdraw();
    await this.#log.settled()?.catch(() => {});
  }

  /** The group has been published or withdrawn: others may move the log again. */
  async settled(): Promise<void> {
    await this.#log.settled();
  }

  /** Another writer was first. `stopped`: why nothing is written any more, if so. */
  async tryAgain(stopped: unknown): Promise<void> {
    this.#group.withdraw();
    const requests = [...this.#group.requests];
    this.putBack();
    try {
      const settled = this.#log.settled();
      if (stopped !== null) {
        // No request waits for the next attempt, but readers wait for the outcome of this one.
        settled?.catch(() => {});
        throw stopped;
      }
      await settled;
    } catch (error) {
      // The group's requests are still the first: nothing is taken from the queue meanwhile.
      for (const request of requests) {
        if (this.#queue.peek() !== request) break;
        this.#queue.shift();
        request.reject(error);
      }
    }
  }
}

/** As `Authorize` says it. */
function isFinal(error: unknown): boolean {
  return isSkuaError(error) && error.data['isFinal'] === true;
}
