import type { AutoScavenge, AutoScavengeStatus } from '../auto-scavenge/api.ts';
import { SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Licence } from './licence.ts';

/** The error of everything that is asked of an auto-scavenge that is off; auto-scavenge.md section 3.2. */
export function autoScavengeOff(reason: string | null): SkuaError {
  return new SkuaError('auto_scavenge_off', 'AutoScavenge is not enabled', { reason, ...(reason !== null && { hint: reason }) });
}

/**
 * An auto-scavenge for as long as the licence grants it. Once it does not, it stays off until the process is started
 * again, whatever the clock says then; a scavenge that runs on a node ends by itself (auto-scavenge.md section 2.2).
 */
export class LicensedAutoScavenge implements AutoScavenge {
  readonly #inner: AutoScavenge;
  readonly #licence: Licence;
  readonly #clock: Clock;
  readonly #log: Log;
  #lost: string | null = null;

  constructor(inner: AutoScavenge, { licence, clock, log }: { readonly licence: Licence; readonly clock: Clock; readonly log: Log }) {
    this.#inner = inner;
    this.#licence = licence;
    this.#clock = clock;
    this.#log = log;
  }

  enabled(): { readonly enabled: boolean; readonly reason: string | null } {
    const reason = this.#refusal();
    return reason === null ? this.#inner.enabled() : { enabled: false, reason };
  }

  status(): Promise<AutoScavengeStatus> { return this.#use((inner) => inner.status()); }
  configure(schedule: string): Promise<void> { return this.#use((inner) => inner.configure(schedule)); }
  pause(): Promise<'paused' | 'pausing'> { return this.#use((inner) => inner.pause()); }
  resume(): Promise<void> { return this.#use((inner) => inner.resume()); }

  async tick(deadlineMs: number): Promise<void> {
    if (this.#refusal() === null) await this.#inner.tick(deadlineMs);
  }

  async #use<T>(run: (inner: AutoScavenge) => Promise<T>): Promise<T> {
    const reason = this.#refusal();
    if (reason !== null) throw autoScavengeOff(reason);
    return run(this.#inner);
  }

  /** Why the licence does not grant it; null while it does. What is off for another reason has nothing to lose. */
  #refusal(): string | null {
    if (this.#lost !== null || !this.#inner.enabled().enabled) return this.#lost;
    this.#lost = this.#licence.refusal('AUTO_SCAVENGE', this.#clock.nowMs());
    if (this.#lost !== null) this.#log.warn('AutoScavenge has no licence and stops.', { reason: this.#lost });
    return this.#lost;
  }
}
