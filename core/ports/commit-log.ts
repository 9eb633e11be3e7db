/**
 * The durable, ordered end of the log, as the append pipeline sees it. On a node it is `TransactionLog` (`core/log/`)
 * over Storage; on object storage it is `ObjectCommitLog` (`core/shared-log/`), where another writer may have been
 * first, and then `append` rejects with `commit_lost`.
 *
 * It has two ends. The writer's is `end`, to which `append` moves it. The one that readers see (`LogReader.end`)
 * follows with `publish`, when index and states of the streams know what lies between: a reader that sees a record
 * finds all that follows from it.
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
   *
   * Where others write to the same log `append` also rejects with `commit_lost`, after which `shared.settled` moves
   * `end` and the group has to be decided anew; with `commit_outcome_unknown` when it can't be known whether the group
   * was appended; and with what the object store refuses with, when nothing was appended. `endsChunk`: `completeChunk`
   * will follow, so that a log in which that is part of the group says so. `hasMarks`: there are marks of redaction in
   * it, so that programs that know none read no further.
   */
  append(group: Uint8Array, endsChunk?: boolean, hasMarks?: boolean): Promise<void>;
  /**
   * Shows readers everything up to `end`. Called when what was appended is in index and states, and before anything
   * waiting for it gets an answer.
   */
  publish(): void;
  /**
   * Ends the ongoing chunk at `end` and begins the next one; `end` moves to its start. Everything has been published.
   * Same errors as `append`.
   */
  completeChunk(): Promise<void>;
  /** What there is to do besides where others write to the same log; a log with one writer leaves it out. */
  readonly shared?: SharedLog;
}

/** The end of a log to which others write too. */
export interface SharedLog {
  /**
   * Null while a group may be begun; else a promise to await before. It rejects when nothing can be written now, and
   * then nothing that waits was written.
   */
  ready(): Promise<void> | null;
  /**
   * What others have committed is being let in at this moment: a group that is begun now would not be withdrawn for it.
   */
  readonly isLettingIn: boolean;
  /**
   * Resolves when all that others had committed before the call has been let in. Asked before a group is answered that
   * holds refusals or repeats and nothing to append: an append proves itself that it was decided by the latest state,
   * these do not.
   */
  confirm(): Promise<void>;
  /**
   * The outcome of the last `append` has been taken in: its group is published or withdrawn. After `commit_lost` this
   * lets in what the others have committed, and the promise says when the next attempt is due; it rejects with
   * `commit_contended` when there were too many.
   */
  settled(): Promise<void> | null;
}
