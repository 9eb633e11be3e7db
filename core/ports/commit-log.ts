/**
 * The durable, ordered end of the log, as the append pipeline sees it. On a node it is `core/log/log-writer.ts` over
 * Storage; on object storage another writer may have been first, and then `append` rejects with `commit_lost` data.
 */
export interface CommitLog {
  /** Position at which the next group must start. */
  readonly end: number;
  /** Bytes that still fit into the ongoing chunk. */
  readonly remaining: number;
  /** Bytes that fit into a fresh chunk: the largest possible group. */
  readonly capacity: number;
  /**
   * Makes a group of framed records durable as one unit, starting at `end`. Resolves once it will outlive a crash.
   * One call at a time. Rejects with `disk_full` or `io_error` when nothing was appended and the log goes on as
   * before, and with `writer_stopped` when durability can no longer be promised; every later call then rejects too.
   */
  append(group: Uint8Array): Promise<void>;
  /** Ends the ongoing chunk at `end` and begins the next one; `end` moves to its start. Same errors as `append`. */
  completeChunk(): Promise<void>;
}
