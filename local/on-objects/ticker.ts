import type { ObjectLogOptions, ObjectWorld } from '../../core/shared-log/api.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import type { TemporaryStorage } from '../../core/shared-log/overlay/overlay.ts';
import type { TickParts, TickReport } from '../../core/shared-log/tick/tick.ts';
import { logStrangersOnce } from '../../core/ports/object-kinds.ts';
import { tick } from '../../core/shared-log/tick/tick.ts';
import { newTemporaryStorage } from '../../infra/runtime/temporary-storage.ts';

/** Between two ticks when there is nothing to do, and after one that failed, in milliseconds. */
const EVERY_MS = 10_000;
/** How long one tick may work, in milliseconds. */
const WORK_MS = 50_000;

interface TickerParts {
  readonly world: ObjectWorld;
  readonly options: ObjectLogOptions;
  readonly settings: TickParts['settings'];
  readonly autoScavenge?: TickParts['autoScavenge'];
  /** By default an instance of its own over the bucket. */
  readonly open?: TickParts['open'];
  /** Called after each tick, for code that reports how scavenges stand. */
  readonly onTick?: (report: TickReport | null) => Promise<void>;
  /** By default a folder among the temporary files of this machine. */
  readonly newTemporaryStorage?: () => Promise<TemporaryStorage>;
  /** Asked before each tick; left out where every one is wanted. */
  readonly isWanted?: () => boolean | Promise<boolean>;
}

/**
 * Runs the ticks of a node on object storage, or of a member of a cluster: what the platform's schedule does for
 * functions.
 */
export class Ticker {
  readonly #parts: TickerParts;
  #wake = new AbortController();
  /** Of the tick that is under way. */
  #scratch: TemporaryStorage | null = null;

  constructor(parts: TickerParts) {
    const { log } = parts.world;
    this.#parts = {
      ...parts,
      world: { ...parts.world, onStrangers: logStrangersOnce((message) => log.warn(message)) },
    };
  }

  /** The next tick comes at once. */
  kick(): void {
    this.#wake.abort();
  }

  /**
   * Ticks until aborted. One that is under way then is left to its fate: what a tick has not put in force by its
   * manifest is as if it had never been, and a node must not wait for it to stop. Its folder is removed, since the
   * process may end.
   */
  async run(signal: AbortSignal): Promise<void> {
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([this.#run(signal), aborted]);
    // The tick may be writing there at this moment: what is left then is among the temporary files of the machine.
    await this.#scratch?.remove().catch(() => {});
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts.world;
    signal.addEventListener('abort', () => this.#wake.abort(), { once: true });
    while (!signal.aborted) {
      this.#wake = new AbortController();
      let goesOn = false;
      try {
        const report = (await (this.#parts.isWanted?.() ?? true)) ? await this.#tick() : null;
        goesOn = report?.outcome === 'published' && (report.scavenge?.state === 'running' || report.hasMore);
        await this.#parts.onTick?.(report);
      } catch (error) {
        if (!signal.aborted) log.error('the tick failed; will retry', { error });
      }
      if (!goesOn && !signal.aborted) await clock.sleep(EVERY_MS, this.#wake.signal);
    }
  }

  /** A tick in a folder of its own. */
  async #tick(): Promise<TickReport> {
    const { world, options, settings, autoScavenge, open = openObjectStore } = this.#parts;
    const scratch = (this.#scratch = await (this.#parts.newTemporaryStorage ?? newTemporaryStorage)());
    try {
      return await tick({
        world,
        options,
        scratch: scratch.storage,
        open,
        scavengeStates: scratch.states,
        deadlineMs: world.clock.monotonicMs() + WORK_MS,
        ...(settings !== undefined && { settings }),
        ...(autoScavenge !== undefined && { autoScavenge }),
      });
    } finally {
      this.#scratch = null;
      await scratch.remove();
    }
  }
}
