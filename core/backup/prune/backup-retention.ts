import { logEndOf, madeMsOf } from '../format/snapshot-manifest.ts';
import type { Manifest, ManifestChunk } from '../format/snapshot-manifest.ts';

/**
 * How many backups of a node stay: the last ones, and the last of each of so many hours, days and weeks (UTC) that have
 * any.
 */
export interface Retention {
  readonly last: number;
  readonly hourly: number;
  readonly daily: number;
  readonly weekly: number;
}

interface Retained {
  readonly id: string;
  readonly nodeId: string;
  readonly createdMs: number;
  readonly madeMs?: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** 1970 began on a Thursday; weeks begin on Mondays. */
const WEEK_OFFSET_MS = 3 * DAY_MS;

/**
 * Ids of the backups that stay. Every node is looked at by itself, and the newest backup of each always stays. A rule
 * that is 0 keeps nothing; when all are, everything stays.
 */
export function retained(backups: readonly Retained[], retention: Retention): Set<string> {
  const { last, hourly, daily, weekly } = retention;
  if (last + hourly + daily + weekly === 0) return new Set(backups.map(({ id }) => id));
  const kept = new Set<string>();
  for (const nodeId of new Set(backups.map((backup) => backup.nodeId))) {
    const own = backups.filter((backup) => backup.nodeId === nodeId).toSorted((a, b) => b.createdMs - a.createdMs);
    for (const { id } of own.slice(0, Math.max(1, last))) kept.add(id);
    keepOnePer(own, hourly, (ms) => Math.floor(ms / HOUR_MS), kept);
    keepOnePer(own, daily, (ms) => Math.floor(ms / DAY_MS), kept);
    keepOnePer(own, weekly, (ms) => Math.floor((ms + WEEK_OFFSET_MS) / WEEK_MS), kept);
  }
  return kept;
}

/**
 * Keeps the newest of each of the last `count` periods in which there are any. Where a clock was wrong for a while,
 * they do not follow one another.
 */
function keepOnePer(
  newestFirst: readonly Retained[],
  count: number,
  periodOf: (ms: number) => number,
  kept: Set<string>,
): void {
  const periods = new Set<number>();
  for (const backup of newestFirst) {
    const period = periodOf(madeMsOf(backup));
    if (periods.has(period)) continue;
    if (periods.size === count) return;
    periods.add(period);
    kept.add(backup.id);
  }
}

/**
 * Backups that hold log which a scavenge has replaced since: for some chunk that the newest backup of the same node has
 * scavenged, they hold another version, or its data from when it was being written, or it was shipped after them: what
 * was goes with them. `shippedEnds` has where that ends, by their ids.
 */
export function heldFromBeforeScavenges(
  manifests: readonly Manifest[],
  shippedEnds: ReadonlyMap<string, number>,
): Manifest[] {
  const newest = newestOfEach(manifests);
  return manifests.filter((manifest) => {
    const latest = newest.get(manifest.nodeId)!;
    return (
      manifest !== latest &&
      latest.chunks.some((chunk) => chunk.isScavenged && holdsOther(manifest, shippedEnds.get(manifest.id), chunk))
    );
  });
}

function holdsOther(manifest: Manifest, shippedEnd: number | undefined, scavenged: ManifestChunk): boolean {
  const { chunks, tail, chunkSizeBytes } = manifest;
  const logEnd = logEndOf(manifest);
  const chunkOf = (position: number) => Math.floor(position / chunkSizeBytes);
  if (
    shippedEnd !== undefined &&
    shippedEnd > logEnd &&
    chunkOf(logEnd) <= scavenged.endNumber &&
    chunkOf(shippedEnd - 1) >= scavenged.startNumber
  )
    return true;
  const isWithin = (number: number) => number >= scavenged.startNumber && number <= scavenged.endNumber;
  if (tail !== null && isWithin(tail.number) && tail.segments.length > 0) return true;
  return chunks.some(
    ({ startNumber, endNumber, blob }) =>
      startNumber <= scavenged.endNumber && endNumber >= scavenged.startNumber && blob !== scavenged.blob,
  );
}

/** By node. */
export function newestOfEach(manifests: readonly Manifest[]): Map<string, Manifest> {
  const newest = new Map<string, Manifest>();
  for (const manifest of manifests)
    if (manifest.createdMs >= (newest.get(manifest.nodeId)?.createdMs ?? -Infinity))
      newest.set(manifest.nodeId, manifest);
  return newest;
}

/** Stretches [from, to] of the log of one node in which a backup can restore any position. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** `shippedEnds` has where the log ends that was shipped after a backup, by its id. */
export interface Restorable {
  readonly nodeId: string;
  /**
   * From here to the end of what is backed up, the log can be restored to any position; null when it can be nowhere.
   */
  readonly from: number | null;
}

export function restorableFrom(manifests: readonly Manifest[], shippedEnds: ReadonlyMap<string, number>): Restorable[] {
  return [...new Set(manifests.map(({ nodeId }) => nodeId))].toSorted().map((nodeId) => {
    const stretches: Stretch[] = manifests
      .filter((manifest) => manifest.nodeId === nodeId)
      .flatMap((manifest) => stretchesOf(manifest, shippedEnds.get(manifest.id)));
    // From the end backwards, as far as the stretches join.
    let from = Math.max(-1, ...stretches.map(({ to }) => to));
    for (let reached = NaN; reached !== from;) {
      reached = from;
      for (const stretch of stretches) if (stretch.to >= from && stretch.from < from) ({ from } = stretch);
    }
    return { nodeId, from: from < 0 ? null : from };
  });
}

function stretchesOf(manifest: Manifest, shippedEnd: number | undefined): Stretch[] {
  const { chunkSizeBytes, chunks, tail } = manifest;
  const stretches: Stretch[] = chunks
    .filter(({ isScavenged }) => !isScavenged)
    .map(({ startNumber, endNumber }) => ({
      from: startNumber * chunkSizeBytes,
      to: (endNumber + 1) * chunkSizeBytes,
    }));
  const end = logEndOf(manifest);
  stretches.push({ from: tail === null ? end : tail.number * chunkSizeBytes, to: shippedEnd ?? end });
  return stretches;
}
