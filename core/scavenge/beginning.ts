import type { ScavengeCheckpoint, ScavengePoint } from '../ports/scavenge-state.ts';

/** What a run does first. */
export type Beginning =
  /** Goes on from this checkpoint, for its scavenge point. */
  | { readonly kind: 'resume'; readonly checkpoint: ScavengeCheckpoint }
  /** Scavenges to a point that is in the log, accumulating from this logical chunk on. */
  | { readonly kind: 'use'; readonly point: ScavengePoint; readonly fromChunk: number }
  /** Writes a point behind the one with number `after` (-1: none) and scavenges to it. */
  | { readonly kind: 'write'; readonly after: number; readonly fromChunk: number }
  /** Nothing is to be done, and that is a success. */
  | { readonly kind: 'nothing' };

/** Decides how a run begins; the table of scavenge.md section 3. `latest` is not looked at when a run is to be resumed. */
export function decideBeginning(checkpoint: ScavengeCheckpoint | null, latest: ScavengePoint | null, syncOnly: boolean, chunkSize: number): Beginning {
  if (checkpoint === null) {
    if (latest !== null) return { kind: 'use', point: latest, fromChunk: 0 };
    return syncOnly ? { kind: 'nothing' } : { kind: 'write', after: -1, fromChunk: 0 };
  }
  if (checkpoint.stage !== 'Done') return { kind: 'resume', checkpoint };
  const { point } = checkpoint;
  // A point ends its chunk, so what is new begins with the next one.
  const fromChunk = Math.floor(point.position / chunkSize) + 1;
  if (latest !== null && latest.eventNumber > point.eventNumber) return { kind: 'use', point: latest, fromChunk };
  if (syncOnly) return { kind: 'nothing' };
  return { kind: 'write', after: latest === null ? -1 : point.eventNumber, fromChunk };
}
