import { SkuaError } from '../../base/errors.ts';
import { timestampText } from '../../base/time.ts';
import type { SnapshotCheckpoints } from '../../store/api.ts';

/**
 * What a repository says of one backup. A manifest is written last, so that a backup exists wholly or not at all, and
 * never changed. Sizes and positions in bytes, times in milliseconds since 1970.
 */
export interface Manifest {
  readonly format: 1;
  /** Text of a UUID. */
  readonly id: string;
  /** `node-id` of the directory that was backed up. */
  readonly nodeId: string;
  /**
   * When the end of the log was taken, everything acknowledged before which is in the backup; behind that of the backup
   * of the node before, whatever the clock says.
   */
  readonly createdMs: number;
  /** When the end of the log was taken by the clock, where that lies before the backup of the node before. */
  readonly madeMs?: number;
  /** Why it was made: by hand, by the schedule of a node, or because shipping needed a new base. */
  readonly cause: 'manual' | 'scheduled' | 'shipping';
  readonly chunkSizeBytes: number;
  /** As they have to stand in the checkpoint files; `writer` and `chaser` are both the end of the log. */
  readonly checkpoints: SnapshotCheckpoints;
  /** Completed chunk files in force, ascending. */
  readonly chunks: readonly ManifestChunk[];
  /** The chunk that was being written; null when the log ended at a boundary where no chunk was begun yet. */
  readonly tail: ManifestTail | null;
  /** Null where the index was left out: it is built anew from the log. */
  readonly index: ManifestIndex | null;
  /** `index/scavenging/scavenging.db`; null when there was none. */
  readonly scavengeDb: ManifestFile | null;
  /** `proofs/*`; left out where there is no chain of hashes over the log, and by older versions. */
  readonly proofs?: readonly ManifestProof[];
}

/** Content that is stored once, under an id that follows from it. */
export interface BlobRef {
  /**
   * 64 hex digits: SHA-256 of the plain content, or in an encrypted repository its HMAC under a key of the repository.
   */
  readonly blob: string;
  /** Of the plain content. */
  readonly sizeBytes: number;
}

export interface ManifestFile extends BlobRef {
  /** In the data directory, with `/`. */
  readonly path: string;
}

export interface ManifestChunk extends ManifestFile {
  readonly startNumber: number;
  readonly endNumber: number;
  readonly isScavenged: boolean;
  /** The MD5 of its footer, in hex. */
  readonly md5: string;
  /**
   * The blob, where its content fitted this MD5 when it was stored. Backups of versions that did not look have none,
   * and neither has a manifest that was changed: the process that writes the chunk elsewhere proves it then
   * (`isProven`).
   */
  readonly provenBlob?: string;
  /** Earliest and latest timestamp of its records; null for one without any. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

export interface ManifestTail {
  readonly number: number;
  readonly path: string;
  /** The 128 bytes of its header, in hex. */
  readonly header: string;
  /** Its data: contiguous, from the chunk's start to the end of the log; none when it has no data yet. */
  readonly segments: readonly ManifestSegment[];
}

/** Bytes [from, to) of the log, by position. */
export interface ManifestSegment extends BlobRef {
  readonly from: number;
  readonly to: number;
}

export interface ManifestProof extends ManifestFile {
  /** Its first bytes, in hex, by which it is known from other files of that name. */
  readonly head: string;
}

export interface ManifestIndex {
  /** Commit checkpoint of the index map; -1 when the index is empty. An older log must not get this index. */
  readonly commitCheckpoint: number;
  /** The index map, tables, bloom filters and the files of the existence filter. */
  readonly files: readonly ManifestFile[];
}

/** What is known of a backup without its lists. */
export interface ManifestSummary {
  readonly id: string;
  readonly nodeId: string;
  /**
   * When it was made, by the clock: backups of a node follow one another in the order of their manifests, not of this.
   */
  readonly createdMs: number;
  readonly cause: Manifest['cause'];
  /** End of the log, and end of what was shipped after it, equal when nothing was. */
  readonly logEnd: number;
  readonly shippedEnd: number;
  /** When the last of it was shipped; `createdMs` when nothing was. */
  readonly shippedMs: number;
  /** Bytes of the files that it restores. */
  readonly sizeBytes: number;
}

/**
 * Log of one chunk that was shipped after a manifest: an object of its own that begins where the log before it ends, or
 * the chunk behind that.
 */
export interface ShippedPiece {
  readonly manifestId: string;
  /**
   * Where the data of the chunk before it ends, when that was completed behind them: this piece is the first of its
   * chunk then. Left out where the log goes on at `from`.
   */
  readonly previousEnd?: number;
  readonly from: number;
  readonly to: number;
  /** All that was acknowledged until then stands before `to`. */
  readonly shippedMs: number;
}

/** Where a manifest stands, and what that tells of it. */
export interface ManifestKey {
  readonly key: string;
  readonly id: string;
  readonly createdMs: number;
}

/** When a backup was made, by the clock of the node. Its `createdMs` says where it stands among the node's backups. */
export function madeMsOf({ createdMs, madeMs = createdMs }: Pick<Manifest, 'createdMs' | 'madeMs'>): number {
  return madeMs;
}

/**
 * Backups lie in the order of their times, which begin with 1970: a clock before that is refused before anything is
 * written.
 */
export function checkClock(nowMs: number): void {
  if (nowMs < 0)
    throw new SkuaError(
      'backup_failed',
      `The clock says ${timestampText(Math.floor(nowMs), 0)}, and backups have times from 1970 on. Set the clock of this machine right, and repeat the backup.`,
    );
}

/** End of the log that a manifest holds. */
export function logEndOf(manifest: Manifest): number {
  return manifest.checkpoints.writer;
}

/** Whether the blob of a chunk held what its MD5 says when it was stored: a SHA-256 that holds proves the rest. */
export function isProven({ blob, provenBlob }: ManifestChunk): boolean {
  return provenBlob === blob;
}

/** Every blob that a manifest needs, some more than once. */
export function* blobsOf(manifest: Manifest): Generator<BlobRef, void, undefined> {
  yield* manifest.chunks;
  if (manifest.tail !== null) yield* manifest.tail.segments;
  if (manifest.index !== null) yield* manifest.index.files;
  if (manifest.scavengeDb !== null) yield manifest.scavengeDb;
  yield* manifest.proofs ?? [];
}

export function sizeOf(manifest: Manifest): number {
  let sum = 0;
  for (const { sizeBytes } of blobsOf(manifest)) sum += sizeBytes;
  return sum;
}

export function summaryOf(
  manifest: Manifest,
  shipped: { readonly to: number; readonly shippedMs: number } | null,
): ManifestSummary {
  const { id, nodeId, cause } = manifest;
  const createdMs = madeMsOf(manifest);
  const logEnd = logEndOf(manifest);
  return {
    id,
    nodeId,
    createdMs,
    cause,
    logEnd,
    shippedEnd: shipped?.to ?? logEnd,
    shippedMs: shipped?.shippedMs ?? createdMs,
    sizeBytes: sizeOf(manifest),
  };
}

/**
 * Backups whose keys are in descending order, those of each node left in it, and among nodes the one first that was
 * made last.
 */
export function newestFirst(descending: readonly ManifestSummary[]): ManifestSummary[] {
  const nodes = [...Map.groupBy(descending, ({ nodeId }) => nodeId).values()].map((ofNode) => ofNode.reverse());
  return descending.map(() => {
    const next = nodes.reduce((best, ofNode) =>
      (ofNode.at(-1)?.createdMs ?? -Infinity) > (best.at(-1)?.createdMs ?? -Infinity) ? ofNode : best,
    );
    return next.pop()!;
  });
}

/**
 * Of the backups of one node, newest first, those whose log reaches further than the newest. There are none but for a
 * short while: while the newest was made, and until shipping goes on behind it, log was shipped behind one before it.
 * Log that was shipped before the newest was made is passed over, for the newest holds it; where it does not, the log
 * was cut in between, and the newest holds what came instead.
 */
export function aheadOfNewest(summaries: readonly ManifestSummary[]): ManifestSummary[] {
  const newest = summaries[0];
  return newest === undefined
    ? []
    : summaries.filter(({ shippedEnd, shippedMs }) => shippedEnd > newest.shippedEnd && shippedMs >= newest.createdMs);
}
