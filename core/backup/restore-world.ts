import { SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { ScavengeStates } from '../ports/scavenge-state.ts';
import type { Storage } from '../ports/storage.ts';
import type { StoreIndexOptions, StoreWorld } from '../store/open-store.ts';

/** What the dry start opens the store with, besides what every restore needs. `jobs` work on the directory to restore to. */
export interface DryStart extends Pick<StoreWorld, 'jobs' | 'log' | 'meter'>, Omit<StoreIndexOptions, 'verify'> {
  readonly scavengeStates?: ScavengeStates;
  readonly cacheBytes?: number;
}

/** What restoring needs of the world, whatever is restored. */
export interface RestoreWorld {
  /** Over the directory to restore to. */
  readonly target: Storage;
  /** Removes first what Skua keeps in a directory that is not empty. Default false: `directory_not_empty`. */
  readonly force?: boolean;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly clock: Clock;
  readonly start: DryStart;
  /** Files that are written at the same time. Default 2 from a directory by one thread, else 4; RESTORE_PARALLEL_MAX at most. */
  readonly parallel?: number;
  readonly onProgress?: (progress: RestoreProgress) => void;
  readonly signal?: AbortSignal;
}

export interface RestoreProgress {
  readonly phase: 'copying' | 'opening';
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** From one disk to another, more than two files at a time on one thread only push each other out of the processor's cache. */
const PARALLEL_DEFAULT = 4;
const PARALLEL_LOCAL_DEFAULT = 2;
/** As many jobs may wait without one being refused, and so many pieces are in memory. */
export const RESTORE_PARALLEL_MAX = 32;

/** `isLocal`: from one disk of this machine to another. `hasThreads`: by threads of their own. */
export function parallelOf({ parallel }: RestoreWorld, isLocal: boolean, hasThreads: boolean): number {
  return Math.max(1, Math.min(parallel ?? (isLocal && !hasThreads ? PARALLEL_LOCAL_DEFAULT : PARALLEL_DEFAULT), RESTORE_PARALLEL_MAX));
}

export function endWhenAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new SkuaError('aborted', 'The restore was ended before it was complete. Repeat it with --force: nothing opens the directory before.');
}
