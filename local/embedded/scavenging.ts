import { SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { LastScavenge, ScavengeControl, ScavengeView } from '../../core/scavenge/api.ts';
import type { EventStore } from '../../core/streams/api.ts';
import type { ScavengeOptions, ScavengeProgress, ScavengeResult } from './api.ts';
import { completionIn } from '../scavenge/completion.ts';
import { background } from '../../core/base/background.ts';

/** Milliseconds between two looks at a run: progress is reported no more often. */
const LOOK_MS = 250;
/**
 * Runs for one call: one that goes on with an unfinished one, perhaps one to a point that others wrote meanwhile, and
 * the one up to now.
 */
const RUNS_MAX = 4;
/**
 * The end of a run comes into its history later: on object storage it is written by the process that ended the run,
 * behind the manifest, and that process may die before. Milliseconds.
 */
const HISTORY_WAIT_MS = 5_000;

export interface ScavengingParts {
  readonly scavenger: Pick<ScavengeControl & ScavengeView, 'start' | 'stop' | 'last' | 'progress'>;
  readonly store: EventStore;
  readonly clock: Clock;
  /** Resolves when no run is active, where this process runs it. */
  readonly idle?: () => Promise<void>;
  /** Brings `last` of the scavenger up to date, where others run it. */
  readonly refresh?: () => Promise<void>;
  /** Aborted when the store closes. */
  readonly closing: AbortSignal;
}

/**
 * Scavenges up to now. A run that goes on with one that did not end only removes what was gone when that began, so that
 * another one follows it.
 */
export async function scavengeNow(parts: ScavengingParts, options: ScavengeOptions): Promise<ScavengeResult> {
  const { signal } = options;
  signal?.throwIfAborted();
  const startedMs = parts.clock.monotonicMs();
  let bytesFreed: number | null = 0;
  for (let runs = 1; ; runs++) {
    const last = await oneRun(parts, options);
    const { bytesReclaimed: freed } = await completionIn(parts.store, last.scavengeId, {
      waitMs: HISTORY_WAIT_MS,
      clock: parts.clock,
      signal: parts.closing,
    });
    bytesFreed = bytesFreed === null || freed === null ? null : bytesFreed + freed;
    if (last.olderPoint !== undefined && runs < RUNS_MAX) continue;
    if (last.olderPoint !== undefined)
      throw new SkuaError(
        'scavenge_failed',
        'Other processes keep starting scavenges, so none covered the time of this call: try again.',
        { scavengeId: last.scavengeId },
      );
    return {
      id: last.scavengeId,
      bytesFreed,
      elapsedMs: parts.clock.monotonicMs() - startedMs,
      goneBy: last.traces === undefined ? null : new Date(last.traces.untilMs),
    };
  }
}

async function oneRun(
  parts: ScavengingParts,
  { signal, onProgress, ...asked }: ScavengeOptions,
): Promise<LastScavenge> {
  const { scavenger, closing } = parts;
  const { scavengeId } = await scavenger.start(asked);
  // It ends by itself when the store closes.
  const stop = () => {
    void scavenger.stop(scavengeId).catch(() => {});
  };
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted === true) stop();
  try {
    const last = await untilEnded(parts, scavengeId, onProgress);
    if (signal?.aborted === true && last.result !== 'Success') throw signal.reason;
    if (closing.aborted && last.result !== 'Success')
      throw new SkuaError('store_closed', 'The store was closed during a scavenge; the next scavenge resumes it.');
    if (last.result !== 'Success')
      throw new SkuaError(
        last.result === 'Stopped' ? 'aborted' : 'scavenge_failed',
        last.error ?? 'The scavenge was stopped.',
        { scavengeId },
      );
    return last;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

async function untilEnded(
  { scavenger, store, clock, idle, refresh, closing }: ScavengingParts,
  scavengeId: string,
  onProgress: ScavengeOptions['onProgress'],
): Promise<LastScavenge> {
  const ended = new AbortController();
  // On object storage the end of a run is not announced.
  if (idle !== undefined) background(idle().then(() => ended.abort()));
  for (;;) {
    const last = scavenger.last();
    if (last !== null && last.scavengeId === scavengeId && last.result !== 'InProgress') return last;
    if (last !== null && last.scavengeId !== scavengeId) {
      // Others have begun the next one meanwhile.
      const { result, error } = await completionIn(store, scavengeId, { clock, signal: closing });
      return { scavengeId, result: result === 'Success' || result === 'Stopped' ? result : 'Errored', error };
    }
    if (refresh !== undefined && closing.aborted)
      throw new SkuaError(
        'store_closed',
        'The store was closed during a scavenge; the process that runs it continues.',
      );
    const progress = scavenger.progress();
    if (progress !== null && progress.scavengeId === scavengeId) onProgress?.(progressOf(progress));
    await clock.sleep(LOOK_MS, refresh === undefined ? ended.signal : closing);
    await refresh?.();
  }
}

function progressOf({
  phase,
  chunksDone,
  chunksTotal,
  bytesReclaimed,
}: {
  readonly phase: string;
  readonly chunksDone: number;
  readonly chunksTotal: number;
  readonly bytesReclaimed: number;
}): ScavengeProgress {
  return { phase, chunksDone, chunksTotal, bytesFreed: bytesReclaimed };
}
