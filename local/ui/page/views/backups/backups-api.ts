import type { BackupDocument, BackupsDocument } from '../../../../../handlers/documents/backup.ts';

/** Of a node that has made none. */
export const NO_CHECKS = { checks: [] };

export const CAUSES: Readonly<
  Record<BackupDocument['cause'], { readonly word: string; readonly about: string; readonly series: number }>
> = {
  manual: { word: 'by hand', about: 'Started on request.', series: 1 },
  scheduled: { word: 'scheduled', about: "Started by the node's schedule.", series: 3 },
  shipping: { word: 'for shipping', about: 'Log shipping needed a base backup.', series: 2 },
};

/** Beginning of an id, where it stands for the whole. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}

/** A moment as `--to-time` takes it, to the millisecond. */
export function timeWord(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** From when to when a restore takes each moment, in milliseconds. */
export interface Restorable {
  readonly fromMs: number;
  readonly toMs: number;
}

export function restorableOf({ restorable }: BackupsDocument): readonly Restorable[] {
  return restorable.map(({ from, to }) => ({ fromMs: Date.parse(from), toMs: Date.parse(to) }));
}

/** The moment that a restore takes, at one that is asked for or next to it: beyond a gap on the way from `beforeMs`. */
export function takenMs(ranges: readonly Restorable[], ms: number, beforeMs: number): number {
  const behind = ranges.find(({ toMs }) => toMs >= ms);
  const inFront = ranges.findLast(({ fromMs }) => fromMs <= ms);
  const next = behind === undefined ? null : Math.max(ms, behind.fromMs);
  const previous = inFront === undefined ? null : Math.min(ms, inFront.toMs);
  return (ms >= beforeMs ? (next ?? previous) : (previous ?? next)) ?? ms;
}
