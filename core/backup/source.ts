import type { ManifestCheckpoints } from './manifest.ts';

/**
 * The files of one node at one moment. Files that are listed stay readable, and as they are within the listed sizes, until
 * `release`: over a running node a hold provides for that (`core/backup/hold.ts`), over a stopped directory its lock.
 */
export interface BackupSource {
  readonly snapshot: Snapshot;
  /** `length` bytes of a listed file from `position` on, in pieces; a piece may be used again after the next one was asked for. Rejects with `file_not_found`, `hold_not_found` when the hold has ended, and what storage or connection throw. */
  read(path: string, position: number, length: number): AsyncIterable<Uint8Array>;
  release(): Promise<void>;
}

export interface Snapshot {
  readonly nodeId: string;
  /** When the end of the log was taken: milliseconds since 1970. */
  readonly takenMs: number;
  readonly chunkSizeBytes: number;
  /** Made durable when the snapshot was taken: `writer` and `chaser` are both the end of the log. */
  readonly checkpoints: ManifestCheckpoints;
  /** In the order in which the seed has files copied: index checkpoint files, other index files, checkpoint files of the log, chunk files. */
  readonly files: readonly SnapshotFile[];
}

export type SnapshotKind =
  /** `index/indexmap` */
  | 'index-map'
  /** `index/stream-existence/streamExistenceFilter.chk` */
  | 'existence-checkpoint'
  | 'existence-filter' | 'index-table' | 'bloom-filter'
  /** `index/scavenging/scavenging.db` and what SQLite keeps beside it */
  | 'scavenge-database'
  /** `*.chk` of the log */
  | 'checkpoint'
  | 'chunk'
  /** The chunk that is being written: `sizeBytes` reaches to the end of the log. */
  | 'ongoing-chunk';

export interface SnapshotFile {
  readonly path: string;
  readonly kind: SnapshotKind;
  readonly sizeBytes: number;
  /** Of a small file that a running node goes on changing (index map, checkpoints): the bytes that belong to this moment. Absent where the file itself is read. */
  readonly content?: Uint8Array;
}
