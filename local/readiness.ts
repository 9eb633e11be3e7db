import type { Clock } from '../core/ports/clock.ts';
import type { StartProgress } from '../core/store.ts';
import type { StartUpWork } from '../handlers/http/node-control.ts';

/** Before this much of a phase has passed its rate says nothing. */
const RATE_AFTER_MS = 500;

/** How far the start of a node has come, for `/health/ready` and the metrics. */
export class Readiness {
  readonly #clock: Clock;
  readonly #startedMs: number;
  #phaseStartedMs: number;
  #firstBytes = 0;
  #progress: { readonly phase: string; readonly bytesDone: number; readonly bytesTotal: number } = { phase: 'opening', bytesDone: 0, bytesTotal: 0 };
  #isReady = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#phaseStartedMs = this.#startedMs;
  }

  /** What `openStore` tells as its `onProgress`. */
  update(progress: StartProgress): void {
    if (progress.phase !== this.#progress.phase) {
      this.#phaseStartedMs = this.#clock.monotonicMs();
      this.#firstBytes = progress.bytesDone;
    }
    this.#progress = progress;
  }

  /** The node serves from now on. */
  ready(): void {
    this.#isReady = true;
  }

  /** Null once the node serves. The time left is that of the present phase. */
  work(): StartUpWork | null {
    if (this.#isReady) return null;
    const now = this.#clock.monotonicMs();
    const { phase, bytesDone, bytesTotal } = this.#progress;
    const phaseMs = now - this.#phaseStartedMs;
    const done = bytesDone - this.#firstBytes;
    const canTell = phaseMs >= RATE_AFTER_MS && done > 0 && bytesTotal >= bytesDone;
    return { phase, bytesDone, bytesTotal, elapsedSeconds: (now - this.#startedMs) / 1_000, remainingSeconds: canTell ? (bytesTotal - bytesDone) * phaseMs / done / 1_000 : null };
  }
}
