import { useEffect } from 'preact/hooks';
import { usePolled } from '../../api/polled.ts';
import type { Polled } from '../../api/polled.ts';
import { followDryRun } from './dry-run.ts';
import type { OlderPoint } from './older-point.ts';

/** The scavenge that runs on this node, whoever started it. */

export interface Progress {
  readonly scavengeId: string;
  readonly phase: string;
  readonly chunksDone: number;
  readonly chunksTotal: number;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly bytesReclaimed: number;
  readonly startedAt: string;
  readonly elapsedSeconds: number;
  readonly remainingSeconds: number | null;
  readonly phaseShare?: number;
  readonly olderPoint?: OlderPoint;
}

export interface Current {
  /** Empty while none runs. */
  readonly scavengeId: string;
  readonly olderPoint?: OlderPoint;
  /** The point to which the next start goes. */
  readonly waiting?: OlderPoint;
}

const EVERY_MS = 2_000;
export const CURRENT_PATH = '/admin/scavenge/current';

export interface Run {
  readonly current: Polled<Current>;
  readonly scavengeId: string | null;
  /** It changes nothing; null while nobody knows. */
  readonly isDry: boolean | null;
  readonly progress: Progress | null;
}

export function useRun(): Run {
  const current = usePolled<Current>(CURRENT_PATH, EVERY_MS);
  const scavengeId = current.data.value?.scavengeId || null;
  const told = usePolled<Progress>(scavengeId === null ? null : '/admin/scavenge/progress', EVERY_MS).data.value;
  // What is kept of an earlier run says nothing of this one.
  const progress = told?.scavengeId === scavengeId ? told : null;
  const isDry = progress === null ? null : isDryOf(progress);
  useEffect(() => {
    // Also one that somebody else has started: its report serves all.
    if (isDry === true && scavengeId !== null) followDryRun(scavengeId);
  }, [scavengeId, isDry]);
  return { current, scavengeId, isDry, progress };
}

/** A dry run has no phases, and counts from its start; a scavenge that starts has no bytes yet. */
function isDryOf({ phase, bytesTotal }: Progress): boolean | null {
  if (phase !== 'Starting') return false;
  return bytesTotal > 0 ? true : null;
}

/** How much of the log a run has gone through in its phase, as the number of files that lie behind it; null where it goes through no files. */
export function filesBehind({ phase, chunksDone, chunksTotal, bytesDone, bytesTotal, phaseShare }: Progress, isDry: boolean | null, complete: number): number | null {
  if (isDry === true) {
    // It reads the log twice: to learn, and to count.
    const half = bytesTotal / 2;
    return half <= 0 ? null : Math.floor(((bytesDone >= half ? bytesDone - half : bytesDone) / half) * complete);
  }
  if (phase === 'Accumulation') return Math.floor((phaseShare ?? 0) * complete);
  // A run that goes on where another stopped has fewer before it than there are.
  if (phase === 'Chunk execution') return Math.max(0, complete - chunksTotal + chunksDone);
  return null;
}
