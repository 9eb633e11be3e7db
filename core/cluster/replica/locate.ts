import { i32 } from '../../base/bytes.ts';
import type { ChunkTable } from '../../log/api.ts';
import { FRAME_BYTES, FRAME_SOUND, isRecordLength, RecordFrame, takeFrame } from '../../log/format/records.ts';
import type { Commit } from '../../shared-log/format/commit-object.ts';
import type { ObjectManifest } from '../../shared-log/format/manifest.ts';
import { COMPARED_BYTES, diverged, holdsRecord } from './compare.ts';

/** What of a commit its place in a copy follows from. */
export type LocatedCommit = Pick<Commit, 'number' | 'start' | 'end' | 'endsChunk' | 'records'>;

/**
 * Finds which commit a copy has reached whose end lies at or behind the end of the manifest's files: the one that ends
 * there, or that ends its chunk and after which the copy has begun the next one. `commits` are those from the
 * manifest's boundary on, in order; no more of them is asked for than needed. The records of the last 64 KiB are
 * compared. Resolves with the number of the last commit in the copy; `boundary - 1` where it has none of the tail.
 * Throws `log_diverged` when the log has no such place, or other records.
 */
export async function locateInTail(
  table: ChunkTable,
  manifest: Pick<ObjectManifest, 'boundary' | 'logEnd' | 'endsChunk' | 'chunkSizeBytes'>,
  commits: AsyncIterable<LocatedCommit> | Iterable<LocatedCommit>,
  location: string,
): Promise<number> {
  const replicaEnd = table.end;
  const size = manifest.chunkSizeBytes;
  let last = { number: manifest.boundary - 1, end: manifest.logEnd, endsChunk: manifest.endsChunk };
  const isReached = (): boolean =>
    last.end === replicaEnd || (last.endsChunk && Math.ceil(last.end / size) * size === replicaEnd);
  if (isReached()) return last.number;
  for await (const commit of commits) {
    // The chunk was ended because this commit did not fit.
    if (commit.start >= replicaEnd) return reachedBefore(commit, last, replicaEnd, location);
    if (commit.end > replicaEnd)
      throw diverged(
        location,
        replicaEnd,
        `differ: the replica ends at ${replicaEnd}, inside commit ${commit.number}, which reaches to ${commit.end}`,
      );
    if (commit.end > replicaEnd - COMPARED_BYTES) await checkRecords(table, commit, location);
    last = { number: commit.number, end: commit.end, endsChunk: commit.endsChunk };
    if (isReached()) return last.number;
  }
  throw diverged(location, last.end, `differ: the replica ends at ${replicaEnd}, and the log at ${last.end}`);
}

function reachedBefore(
  commit: LocatedCommit,
  last: { readonly number: number; readonly end: number },
  replicaEnd: number,
  location: string,
): number {
  if (commit.start === replicaEnd) return last.number;
  throw diverged(
    location,
    last.end,
    `differ: the replica ends at ${replicaEnd}, where no commit of the log ends; commit ${last.number} ends at ${last.end}`,
  );
}

/** Throws `log_diverged` when the copy has other records than the commit. */
async function checkRecords(
  table: ChunkTable,
  { number, start, records }: LocatedCommit,
  location: string,
): Promise<void> {
  const frame = new RecordFrame();
  const own = new RecordFrame();
  for (let at = 0; at < records.length; at += frame.length + FRAME_BYTES) {
    const length = i32(records, at);
    const isWhole = isRecordLength(length) && at + length + FRAME_BYTES <= records.length;
    if (!isWhole || takeFrame(frame, records, at, length, start + at) !== FRAME_SOUND)
      throw diverged(
        location,
        start + at,
        `can't be compared: commit ${number} holds no valid record at position ${start + at}`,
      );
    if ((await holdsRecord(table, frame, own)) === 'other')
      throw diverged(location, start + at, `differ at position ${start + at}, in commit ${number}`);
  }
}
