/**
 * What was opened, each thing with how it is closed: one after the other in the reverse order, so that nothing is
 * closed before what was opened upon it. What can't be closed keeps nothing else from being closed. It stands for
 * `AsyncDisposableStack`, which Node.js 22 does not have.
 */
export class Disposables {
  readonly #closings: (() => unknown)[] = [];

  get size(): number {
    return this.#closings.length;
  }

  use<T extends AsyncDisposable>(opened: T): T {
    this.defer(() => opened[Symbol.asyncDispose]());
    return opened;
  }

  defer(close: () => unknown): void {
    this.#closings.push(close);
  }

  /** Closes all but the first `kept`; more can be opened afterwards. Rejects with the first error, when all is done. */
  async close(kept = 0): Promise<void> {
    const errors: unknown[] = [];
    while (this.#closings.length > kept) {
      try {
        await this.#closings.pop()!();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
