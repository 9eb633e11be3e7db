import { listOf, moment, optional, oneOf, record, uuid, whole } from '../../base/shape.ts';
import type { Shape } from '../../base/shape.ts';
import {
  checkpointsShape,
  CHUNK_BYTES_MAX,
  DATABASE_PATH,
  FILE_BYTES_MAX,
  isChunkPath,
  isIndexPath,
  isMarksPath,
  isProofPath,
} from './manifest-shape.ts';
import type { Snapshot, SnapshotFile, SnapshotKind } from '../../store/api.ts';

/**
 * What a node may say of its files. They are written under the names that it gives, and another program may have its
 * address.
 */

const CHECKPOINT = /^(writer|chaser|epoch|proposal|truncate)\.chk$/;
/** By kind, the names that there are. */
const NAMES: Readonly<Record<SnapshotKind, (path: string) => boolean>> = {
  'index-map': isIndexPath,
  'existence-checkpoint': isIndexPath,
  'existence-filter': isIndexPath,
  'index-table': isIndexPath,
  'bloom-filter': isIndexPath,
  'scavenge-database': (path) => path === DATABASE_PATH || path === `${DATABASE_PATH}-wal`,
  proof: isProofPath,
  redactions: isMarksPath,
  checkpoint: (path) => CHECKPOINT.test(path),
  chunk: isChunkPath,
  'ongoing-chunk': isChunkPath,
};
/** Chunks, tables and files of the chain of hashes, all together. */
const FILES_MAX = 2_000_000;

const file = record<SnapshotFile>({
  path: (value, member) => (typeof value === 'string' ? null : { member, why: 'is no text' }),
  kind: oneOf(...(Object.keys(NAMES) as SnapshotKind[])),
  sizeBytes: whole(0, FILE_BYTES_MAX),
  content: optional(neverSent()),
});

/** The bytes of small files are read as those of all others. */
function neverSent(): Shape<Uint8Array> {
  return (_, member) => ({ member, why: 'is sent with a list' });
}

const named: Shape<SnapshotFile> = (value, member) => {
  const wrong = file(value, member);
  if (wrong !== null) return wrong;
  const { path, kind } = value as SnapshotFile;
  return NAMES[kind](path)
    ? null
    : {
        member: `${member}.path`,
        why: `is ${JSON.stringify(path.slice(0, 64)).replace(/[^\x20-\x7e]/g, '?')}, which is not the name of a file of this kind (${kind})`,
      };
};

export const snapshotShape: Shape<Snapshot> = (value, member) => {
  const wrong = record<Snapshot>({
    nodeId: uuid,
    takenMs: moment,
    chunkSizeBytes: whole(1, CHUNK_BYTES_MAX),
    checkpoints: checkpointsShape,
    files: listOf(named, FILES_MAX),
  })(value, member);
  if (wrong !== null) return wrong;
  const seen = new Set<string>();
  for (const [i, { path }] of (value as Snapshot).files.entries()) {
    if (seen.has(path)) return { member: `files[${i}].path`, why: `is "${path}", which is listed before` };
    seen.add(path);
  }
  return null;
};
