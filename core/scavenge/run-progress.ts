import type { Clock } from '../ports/clock.ts';
import type { JobProgress } from '../ports/jobs.ts';
import type { Meter } from '../ports/meter.ts';
import type { ResumedPoint, ScavengePhase, ScavengeProgress } from './api.ts';

/** Shortest time in milliseconds between two lines in the log. */
const LINE_EVERY_MS = 10_000;

/** How the reference names a phase in its metric. */
const STATUS: Readonly<Record<ScavengePhase, string | null>> = {
  Starting: null,
  Accumulation: 'Accumulation Phase',
  Calculation: 'Calculation Phase',
  'Chunk execution': 'Chunk execution Phase',
  'Chunk merging': 'Chunk merging Phase',
  'Index execution': 'Index execution Phase',
  Cleaning: 'Cleaning Phase',
};
const STATUSES = 'eventstore_statuses';

/** How far a run has come: for callers that ask, as metrics, and now and then as a line in the log. */
export class RunProgress {
  readonly #clock: Clock;
  readonly #meter: Meter;
  readonly #scavengeId: string;
  readonly #onLine: (progress: ScavengeProgress) => void;
  readonly #startedAtMs: number;
  readonly #startedMs: number;
  #phase: ScavengePhase = 'Starting';
  #phaseStartedMs: number;
  #lastLineMs: number;
  /** What the time left is estimated by: bytes, or whatever a job counts. */
  #done = 0;
  #total = 0;
  readonly #underWay = new Map<symbol, number>();
  chunksDone = 0;
  chunksTotal = 0;
  bytesReclaimed = 0;
  olderPoint: ResumedPoint | null = null;
  #bytesDone = 0;
  #bytesTotal = 0;

  constructor(scavengeId: string, world: { clock: Clock; meter: Meter }, onLine: (progress: ScavengeProgress) => void) {
    this.#clock = world.clock;
    this.#meter = world.meter;
    this.#scavengeId = scavengeId;
    this.#onLine = onLine;
    this.#startedAtMs = world.clock.nowMs();
    this.#startedMs = world.clock.monotonicMs();
    this.#phaseStartedMs = this.#startedMs;
    this.#lastLineMs = this.#startedMs;
  }

  get elapsedMs(): number {
    return this.#clock.monotonicMs() - this.#startedMs;
  }
  get phaseElapsedMs(): number {
    return this.#clock.monotonicMs() - this.#phaseStartedMs;
  }

  /** Begins a phase of so many chunks and bytes. */
  begin(phase: ScavengePhase, chunksTotal: number, bytesTotal: number): void {
    this.#phase = phase;
    this.#phaseStartedMs = this.#clock.monotonicMs();
    this.chunksDone = 0;
    this.chunksTotal = chunksTotal;
    this.#bytesDone = 0;
    this.#bytesTotal = bytesTotal;
    this.#done = 0;
    this.#total = bytesTotal;
    this.#underWay.clear();
    const status = STATUS[phase];
    if (status !== null) this.#status('Scavenge', status);
    if (phase === 'Index execution') this.#status('Index', 'Scavenging');
    else if (phase === 'Cleaning') this.#status('Index', 'Idle');
    this.#show();
  }

  /** The run has ended. */
  end(): void {
    this.#status('Scavenge', 'Idle');
    if (this.#phase === 'Index execution') this.#status('Index', 'Idle');
  }

  /** Takes what one job that is the whole phase says. */
  ofPhase(progress: JobProgress): void {
    this.#done = progress.done;
    this.#total = progress.total;
    if (progress.unit === 'bytes') {
      this.#bytesDone = progress.done;
      this.#bytesTotal = progress.total;
    } else if (progress.unit === 'chunks') {
      this.chunksDone = progress.done;
      this.chunksTotal = progress.total;
    }
    this.#show();
  }

  /** Takes what one of several jobs of the phase says; its share is `bytes`. */
  ofPart(part: symbol, progress: JobProgress, bytes: number): void {
    this.#underWay.set(part, progress.total > 0 ? Math.min(1, progress.done / progress.total) * bytes : 0);
    this.#show();
  }

  /** A part has ended, well or not. */
  endPart(part: symbol, bytes: number, chunks: number): void {
    this.#underWay.delete(part);
    this.#bytesDone += bytes;
    this.#done = this.#bytesDone;
    this.chunksDone += chunks;
    this.#show();
  }

  current(): ScavengeProgress {
    let partial = 0;
    for (const bytes of this.#underWay.values()) partial += bytes;
    const done = this.#done + partial;
    const elapsedMs = this.phaseElapsedMs;
    const canTell = done > 0 && this.#total >= done && elapsedMs > 0;
    return {
      scavengeId: this.#scavengeId,
      phase: this.#phase,
      chunksDone: this.chunksDone,
      chunksTotal: this.chunksTotal,
      bytesDone: Math.floor(this.#bytesDone + partial),
      bytesTotal: this.#bytesTotal,
      bytesReclaimed: this.bytesReclaimed,
      startedAtMs: this.#startedAtMs,
      elapsedSeconds: this.elapsedMs / 1_000,
      remainingSeconds: canTell ? (elapsedMs * (this.#total - done)) / done / 1_000 : null,
      phaseShare: this.#total > 0 ? Math.min(1, done / this.#total) : 0,
      ...(this.olderPoint !== null && { olderPoint: this.olderPoint }),
    };
  }

  #show(): void {
    const now = this.#clock.monotonicMs();
    const shown = this.current();
    this.#meter.gauge('eventstore_scavenge_chunks_done', shown.chunksDone);
    this.#meter.gauge('eventstore_scavenge_chunks_total', shown.chunksTotal);
    this.#meter.gauge('eventstore_scavenge_done_bytes', shown.bytesDone);
    this.#meter.gauge('eventstore_scavenge_total_bytes', shown.bytesTotal);
    this.#meter.gauge('eventstore_scavenge_reclaimed_bytes', shown.bytesReclaimed);
    if (now - this.#lastLineMs < LINE_EVERY_MS) return;
    this.#lastLineMs = now;
    this.#onLine(shown);
  }

  /** Only the newest value counts, so the value is the time. */
  #status(name: string, status: string): void {
    this.#meter.gauge(STATUSES, Math.floor(this.#clock.nowMs() / 1_000), { name, status });
  }
}
