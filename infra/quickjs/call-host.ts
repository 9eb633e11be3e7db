import type { EngineHost } from './engine.ts';
import { threadCpuMs } from './thread-signal.ts';

/** Processor time is counted in slices of the scheduler: a shorter call is measured by the wall clock instead, in milliseconds. */
const SLICE_MS = 10;

/** The world as one call sees it: a time that stands still, chance that follows from the seed, and a limit of processor time. */
export class CallHost implements EngineHost {
  readonly #timeoutMs: number;
  #nowMs = 0;
  #seed = 0;
  #randomState = 0;
  #startedMs = 0;
  #startedCpuMs = 0;
  #nextLookMs = Infinity;
  /** The script was made to end because its time was over. */
  isTimedOut = false;
  /** The script has asked for the time or for a random number. */
  hasAsked = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  begin(nowMs: number, seed: number): void {
    this.#nowMs = nowMs;
    this.#seed = seed;
    this.#startedCpuMs = threadCpuMs();
    this.#startedMs = performance.now();
    this.#nextLookMs = this.#startedMs + this.#timeoutMs;
    this.isTimedOut = false;
    this.rewind();
  }

  /** Back to the first random number. The time used so far stays used. */
  rewind(): void {
    this.#randomState = this.#seed | 0;
    this.hasAsked = false;
  }

  /** Processor time since `begin`. */
  get cpuMs(): number {
    const wallMs = performance.now() - this.#startedMs;
    return wallMs < SLICE_MS ? wallMs : threadCpuMs() - this.#startedCpuMs;
  }

  nowMs(): number {
    this.hasAsked = true;
    return this.#nowMs;
  }

  /** 53 bits of two steps of the generator. */
  random(): number {
    this.hasAsked = true;
    return (this.#next32() * 2 ** 21 + (this.#next32() >>> 11)) / 2 ** 53;
  }

  /** Looks at the processor time only when as much wall time has gone by: a thread that had to wait for its turn is not late. */
  isOver(): boolean {
    if (this.isTimedOut) return true;
    const now = performance.now();
    if (now < this.#nextLookMs) return false;
    const left = this.#timeoutMs - this.cpuMs;
    this.isTimedOut = left <= 0;
    this.#nextLookMs = now + Math.max(1, left);
    return this.isTimedOut;
  }

  /** splitmix32 */
  #next32(): number {
    this.#randomState = (this.#randomState + 0x9e3779b9) | 0;
    let z = this.#randomState;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }
}
