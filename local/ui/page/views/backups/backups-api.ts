import type { BackupDocument } from '../../../../../handlers/documents/backup.ts';

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

/** A moment as `--to-time` takes it. */
export function timeWord(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
