import type { Outcome } from '../base/step.ts';
import type { RecordFrame } from './format/records.ts';

/**
 * What a record is read for: with those around it; as one of many that lie far apart, which is better read alone than
 * with the blocks in which they lie; or as the only one that is wanted, which is read alone where the storage has it at
 * hand, and else with what lies around it.
 */
export type ReadFor = 'run' | 'sparse' | 'single';

/**
 * Reads committed records of the log, in steps that never wait (core/base/step.ts). Positions are global; a frame's
 * `position` and `next` are filled in. A record that a scavenge removed is END for `readAt` and skipped by the other
 * two.
 *
 * Throws `log_corrupt` when bytes that should be a record are none, with the file and the offset.
 */
export interface LogReader {
  /**
   * Position after the last record that is durable and known to the index: nothing at or beyond it exists for readers.
   */
  readonly end: number;
  /** Reads the record that starts at exactly `position`. */
  readAt(position: number, frame: RecordFrame, what?: ReadFor): Outcome;
  /** Begins to load what `readAt` of the position will need, as far as that is known already. */
  prefetch(position: number): void;
  /**
   * Begins to load the records that start in [from, to], which lie close together and are all wanted, where reading
   * them one by one would be as many requests.
   */
  prefetchRun(from: number, to: number): void;
  /**
   * Reads the first record at or after `position`, which is a record's start, a record's end or a chunk boundary. END
   * at the log's end.
   */
  readForward(position: number, frame: RecordFrame, what?: ReadFor): Outcome;
  /** Reads the last record that ends at or before `position`, which is such a boundary too. END at the log's start. */
  readBackward(position: number, frame: RecordFrame): Outcome;
  /**
   * True when a forward read may start at `position`: a record starts there, or it is a chunk boundary or the end of
   * the log.
   */
  isBoundary(position: number): Outcome;
  /** True where records may be missing since a scavenge has removed them. */
  isScavengedAt(position: number): boolean;
  /**
   * The nearest position at or before `position`, which lies in the log, at which a record certainly may begin: where
   * its chunk does.
   */
  chunkStart(position: number): number;
}
