import type { Foresight } from '../../core/object-log/foresight.ts';
import type { DryRunReport, Explanation, LastScavenge, ScavengeOptions, ScavengeProgress, Scavenger } from '../../core/scavenge/api.ts';

/**
 * Scavenges that ticks of this process carry on: what is asked of them is done at once, not when the timer comes. Dry runs are this
 * process's own; like on any node they stand in the place of a run while they last.
 */
export class KickingScavenger implements Scavenger {
  readonly #scavenger: Scavenger;
  readonly #foresight: Foresight;
  readonly #kick: () => void;

  constructor(scavenger: Scavenger, foresight: Foresight, kick: () => void) {
    this.#scavenger = scavenger;
    this.#foresight = foresight;
    this.#kick = kick;
  }

  async start(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> {
    const started = await this.#scavenger.start(options);
    this.#kick();
    return started;
  }

  async stop(scavengeId: string): Promise<string> {
    const dry = this.#foresight.current();
    if (dry !== null && (scavengeId === dry || (scavengeId === 'current' && this.#scavenger.current() === null))) {
      await this.#foresight.stop();
      return dry;
    }
    const stopping = this.#scavenger.stop(scavengeId);
    this.#kick();
    return stopping;
  }

  current(): string | null { return this.#scavenger.current() ?? this.#foresight.current(); }
  last(): LastScavenge | null { return this.#scavenger.last(); }
  progress(): ScavengeProgress | null { return this.#scavenger.progress() ?? this.#foresight.progress(); }
  async startDryRun(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> { return this.#foresight.startDryRun(options); }
  async dryRun(scavengeId: string): Promise<DryRunReport | null> { return this.#foresight.dryRun(scavengeId); }
  explain(stream: string): Promise<Explanation> { return this.#foresight.explain(stream); }
  hold(): () => void { return this.#scavenger.hold(); }
  async idle(): Promise<void> {}
  close(): Promise<void> { return this.#foresight.close(); }
}

/** The same, for those who would wait for it to come to rest, or stop it, and need not. */
export class RestingScavenger extends KickingScavenger {
  override current(): null { return null; }
  override last(): null { return null; }
  override progress(): null { return null; }
}
