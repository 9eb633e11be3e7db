import { isSkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { NodeBackups } from './node-backups.ts';
import type { BaseReason, Shipper } from './shipper.ts';

/** A failure that goes on is logged again after this many attempts. */
const FAILURES_BETWEEN_LINES = 100;

export interface ShippingParts {
  readonly shipper: Pick<Shipper, 'tick'>;
  readonly backups: Pick<NodeBackups, 'begin' | 'current'>;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Ships the end of the log every few seconds, and makes the backups that shipping needs to begin behind. */
export class Shipping {
  readonly #parts: ShippingParts;
  /** The backup that is asked for and not begun. */
  #wanted: BaseReason | null = null;
  #failures = 0;

  constructor(parts: ShippingParts) {
    this.#parts = parts;
  }

  /** A backup of this node is needed. One that can't begin now, because a scavenge runs, is tried again every time. */
  want(reason: BaseReason): void {
    this.#wanted = reason;
  }

  /** Ships until aborted. A store that does not answer keeps nobody from stopping. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.#parts;
    const aborted = new Promise<void>((resolve) => { signal.addEventListener('abort', () => resolve(), { once: true }); });
    while (!signal.aborted) {
      await Promise.race([this.#once(signal), aborted]);
      await clock.sleep(everyMs, signal);
    }
  }

  async #once(signal: AbortSignal): Promise<void> {
    const { shipper, log } = this.#parts;
    const { error } = await shipper.tick();
    if (signal.aborted) return;
    if (error === null) {
      if (this.#failures > 0) log.info('log is shipped again', { failures: this.#failures });
      this.#failures = 0;
    } else if (this.#failures++ % FAILURES_BETWEEN_LINES === 0) {
      log.error('log could not be shipped; it is tried again', { code: isSkuaError(error) ? error.code : undefined, error });
    }
    if (this.#wanted !== null) this.#begin(this.#wanted);
  }

  #begin(reason: BaseReason): void {
    const { backups, log } = this.#parts;
    if (backups.current() !== null) {
      // Whatever it is made for, it serves.
      this.#wanted = null;
      return;
    }
    try {
      const { backupId } = backups.begin('shipping');
      log.info('shipping needs a new backup to begin behind', { reason, backupId });
      this.#wanted = null;
    } catch (error) {
      if (!isSkuaError(error, 'scavenge_in_progress') && !isSkuaError(error, 'store_closed')) throw error;
    }
  }
}
