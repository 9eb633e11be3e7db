import type { DryRunReport, Explanation, LastScavenge, ScavengeOptions, ScavengeProgress, Scavenger } from '../../core/scavenge/api.ts';

/** Scavenges that ticks of this process carry on: what is asked of them is done at once, not when the timer comes. */
export class KickingScavenger implements Scavenger {
  readonly #scavenger: Scavenger;
  readonly #kick: () => void;

  constructor(scavenger: Scavenger, kick: () => void) {
    this.#scavenger = scavenger;
    this.#kick = kick;
  }

  async start(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> {
    const started = await this.#scavenger.start(options);
    this.#kick();
    return started;
  }

  async stop(scavengeId: string): Promise<string> {
    const stopping = this.#scavenger.stop(scavengeId);
    this.#kick();
    return stopping;
  }

  current(): string | null { return this.#scavenger.current(); }
  last(): LastScavenge | null { return this.#scavenger.last(); }
  progress(): ScavengeProgress | null { return this.#scavenger.progress(); }
  startDryRun(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> { return this.#scavenger.startDryRun(options); }
  dryRun(scavengeId: string): Promise<DryRunReport | null> { return this.#scavenger.dryRun(scavengeId); }
  explain(stream: string): Promise<Explanation> { return this.#scavenger.explain(stream); }
  hold(): () => void { return this.#scavenger.hold(); }
  async idle(): Promise<void> {}
  async close(): Promise<void> {}
}
