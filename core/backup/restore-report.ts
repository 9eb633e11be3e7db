/** What a restore did. */
export interface RestoreReport {
  /** Null for a copy of files, which has none. */
  readonly backupId: string | null;
  /** Where the restored log ends. */
  readonly position: number;
  /** The new id of the directory, so that its backups never mix with those of the node that was backed up. */
  readonly nodeId: string;
  readonly files: number;
  readonly bytes: number;
  readonly warnings: readonly string[];
  /** What was damaged and left out: empty unless damage was allowed. */
  readonly skipped: readonly Skipped[];
}

export interface Skipped {
  /** Of the damaged object; null where it is a file that was damaged before it was backed up. */
  readonly key: string | null;
  /** The file of the data directory that it would have become. */
  readonly path: string;
  readonly reason: string;
  /** What of the log is lost by it, in positions; null where the loss is made good, as that of an index is. */
  readonly lost: { readonly from: number; readonly to: number; readonly chunks: number } | null;
}
