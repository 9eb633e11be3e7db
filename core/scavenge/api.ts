import type { Attributes } from '../attributes/attributes.ts';
import type { BlockCache } from '../cache/cache.ts';
import type { StreamIndex } from '../index/index.ts';
import type { HashChain } from '../integrity/api.ts';
import type { ChunkTable } from '../log/api.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Jobs } from '../ports/jobs.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import type { ScavengePoint, ScavengeStates } from '../ports/scavenge-state.ts';
import type { Storage } from '../ports/storage.ts';
import type { IgnoredMetadata } from '../streams/format/metadata.ts';
import type { RetentionRule } from '../streams/api.ts';
import type { EventStoreInternals } from '../streams/streams.ts';
export type { FileFacts } from './format/scavenge-files.ts';
export type {
  ErasureFinding,
  ErasureProgress,
  ErasureReport,
  ErasureSummary,
  CheckErasureArgs,
} from './erasure/erasure.ts';

/** Starts and stops runs, for administrators, schedules and the command line. */
export interface ScavengeControl {
  /**
   * Starts a run, or goes on with an unfinished one under a new id. Resolves once it is known up to where it goes; what
   * happens then shows in `last`, the log and the history streams. Rejects with `scavenge_in_progress` (data:
   * `scavengeId`), `backup_running`, `bad_option`, or `store_closed`.
   */
  start(options?: ScavengeOptions): Promise<ScavengeStarted>;
  /**
   * Stops the run with this id, or `current`, and resolves with its id once it has ended. Rejects with
   * `scavenge_not_found`.
   */
  stop(scavengeId: string): Promise<string>;
  /** Starts a run that only counts; it can be stopped like any other. Same errors as `start`. */
  startDryRun(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }>;
}

/** What runs there are and were, and what one would do. */
export interface ScavengeView {
  /** Id of the run that is active, or null. */
  current(): string | null;
  /** The last run since the process started, or null. */
  last(): LastScavenge | null;
  /** Null when no run is active. */
  progress(): ScavengeProgress | null;
  /**
   * The older point to which the next run goes, unless it starts afresh; null where it writes a new one, and while a
   * run is active.
   */
  waiting(): Promise<ResumedPoint | null>;
  /**
   * The report, or null while that dry run is still active. Rejects with `scavenge_not_found` for an id that is none of
   * the last ones, and with what ended it.
   */
  dryRun(scavengeId: string): Promise<DryRunReport | null>;
  /**
   * What a scavenge that began now would do to a stream. Rejects with `stream_not_found`, `invalid_stream_name` or
   * `too_busy`.
   */
  explain(stream: string): Promise<Explanation>;
}

/**
 * Scavenging the files of one directory, where runs belong to this process: what it must not run beside can hold it,
 * and wait for it.
 */
export interface Scavenger extends ScavengeControl, ScavengeView {
  /** What the last run was started with, for a backup that stops it and has it go on later. */
  lastOptions(): ScavengeOptions;
  /**
   * Lets no run begin, dry runs excepted, until the returned function is called. Throws `scavenge_in_progress` while
   * one is active.
   */
  hold(): () => void;
  /** Resolves when no run is active. */
  idle(): Promise<void>;
  /** Ends a run without its completion event, as a shutdown does, and waits for it. */
  close(): Promise<void>;
}

export interface ScavengeOptions {
  /** 1 to 4 chunks at a time; more count as 4. Default 1. */
  readonly threads?: number;
  /**
   * Chunks of at least this weight are rewritten; 0: every one with any weight; negative: every one. Default 0. Stored
   * in the scavenge point.
   */
  readonly threshold?: number;
  /** 1 to 100; below 100 only with one thread. Default 100. */
  readonly throttlePercent?: number;
  /** Use an existing scavenge point only. Default false. */
  readonly syncOnly?: boolean;
  /**
   * Write a new scavenge point, and abandon the run that did not end, if there is one. Not with `syncOnly`. Default
   * false.
   */
  readonly startAfresh?: boolean;
}

export interface ScavengeStarted {
  readonly scavengeId: string;
  /** Absent where the run goes up to now. Runs that begin in a later tick tell it in `last`. */
  readonly olderPoint?: ResumedPoint;
}

/**
 * A scavenge point of the past, up to which a run goes: what was deleted, has expired or was limited since is left to
 * the run after it. `unfinished`: of a run that did not end. `unreached`: no run has gone to it yet, though the log has
 * it.
 */
export interface ResumedPoint {
  readonly point: ScavengePoint;
  readonly why: 'unfinished' | 'unreached';
}

export type ScavengeResult = 'Success' | 'Stopped' | 'Errored' | 'Interrupted';

export interface LastScavenge {
  readonly scavengeId: string;
  readonly result: 'InProgress' | ScavengeResult;
  /** Text of what ended it, for `Errored`. */
  readonly error: string | null;
  /** Absent where it went, or goes, up to its start. */
  readonly olderPoint?: ResumedPoint;
  /** What is left of what it removed, where that goes after its end: on object storage. */
  readonly traces?: ScavengeTraces;
}

/** Milliseconds since 1970. */
export interface ScavengeTraces {
  /** Traces remain until this time at the latest, in objects that no reader reads any more, as long as ticks run. */
  readonly untilMs: number;
  /** When none was left; null before. */
  readonly goneMs: number | null;
}

export type ScavengePhase =
  | 'Starting'
  | 'Accumulation'
  | 'Calculation'
  | 'Chunk execution'
  | 'Chunk merging'
  | 'Index execution'
  | 'Cleaning';

export interface ScavengeProgress {
  readonly scavengeId: string;
  readonly phase: ScavengePhase;
  readonly chunksDone: number;
  readonly chunksTotal: number;
  /** Bytes of the phase's work. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Of the whole run so far; negative when files grew. */
  readonly bytesReclaimed: number;
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly elapsedSeconds: number;
  /** Of this phase, at its speed so far; null before it can be told. */
  readonly remainingSeconds: number | null;
  /**
   * Share of the phase's work that is done, from 0 to 1, by whatever the phase counts; absent where that is not known.
   */
  readonly phaseShare?: number;
  /** Absent where the run goes up to its start, and before that is known. */
  readonly olderPoint?: ResumedPoint;
  /** For so long behind its end traces remain of what it removes, where they do: on object storage. */
  readonly tracesRemainSeconds?: number;
}

export interface DryRunChunk {
  readonly file: string;
  /** First and last logical chunk. */
  readonly start: number;
  readonly end: number;
  readonly weight: number;
  readonly records: number;
  readonly discardable: number;
  /** Last events of soft-deleted streams that would stay without their data. */
  readonly redactable: number;
  readonly bytes: number;
  /** What rewriting it would bring, whether or not the threshold lets it be; negative where the file would grow. */
  readonly bytesReclaimable: number;
  readonly wouldExecute: boolean;
}

export interface DryRunReport {
  readonly scavengeId: string;
  readonly threshold: number;
  /** The one that would be written now. */
  readonly point: ScavengePoint;
  /**
   * The older point to which the next run goes all the same, unless it starts afresh: that run removes less than is
   * given here.
   */
  readonly waiting?: ResumedPoint;
  readonly chunks: readonly DryRunChunk[];
  /**
   * Discardable and redactable records and reclaimable bytes are those of the chunks that would be executed; the rest
   * is of all.
   */
  readonly totals: {
    readonly chunks: number;
    readonly records: number;
    readonly discardable: number;
    readonly redactable: number;
    readonly bytes: number;
    readonly bytesReclaimable: number;
    readonly chunksExecuted: number;
  };
}

/** Why events go or stay. */
export interface Explanation {
  readonly stream: string;
  /** -1 for a stream that has none. */
  readonly lastEventNumber: number;
  /** The metadata in force, or null. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** What of the metadata has no effect, and why; absent where all that is meant to mean something does. */
  readonly ignored?: readonly IgnoredMetadata[];
  readonly rules: readonly { readonly rule: RetentionRule; readonly value: number | string | boolean }[];
  /** The events that would go, by the rule that removes them; ascending, ranges of numbers. */
  readonly removed: readonly {
    readonly from: number;
    readonly to: number;
    readonly count: number;
    readonly bytes: number;
    readonly rule: RetentionRule;
  }[];
  readonly kept: readonly {
    readonly from: number;
    readonly to: number;
    readonly count: number;
    readonly why: string;
  }[];
  /**
   * Of the kept ones, the last event of a stream that was deleted: it would lose its data, of so many bytes with its
   * metadata. Absent where there is none.
   */
  readonly redacted?: { readonly number: number; readonly bytes: number };
  /** Of the kept ones, those with a mark of redaction whose content, of so many bytes, is still there and would go. */
  readonly marked?: { readonly count: number; readonly bytes: number };
  /**
   * The older point to which the next run goes all the same, unless it starts afresh, and what of `removed` that run
   * leaves.
   */
  readonly waiting?: ResumedPoint & { readonly leaves: Explanation['removed'] };
}

/** How this node scavenges. */
export interface ScavengeConfig {
  /** Page of the scavenge database: a power of two from 512 to 65 536. */
  readonly pageSizeBytes: number;
  /** Cache of all connections of a run together. */
  readonly cacheBytes: number;
  readonly hashUsersCacheEntries: number;
  readonly disableMerging: boolean;
  /**
   * Neighbours are executed and merged in one, where merging is not disabled. Not where work is done in parts of
   * limited time and space, each of which must come to some end.
   */
  readonly mergesWhileExecuting: boolean;
  /**
   * Neighbours that fit one file are merged whatever is written anew for it, as in the reference: to be compared with
   * what that left.
   */
  readonly mergesAlways: boolean;
  readonly historyMaxAgeDays: number;
  /** Dangerous: removes tombstones too, so that hard-deleted streams can be written again. */
  readonly unsafeIgnoreHardDelete: boolean;
  /** The last event of a soft-deleted stream, which is kept for its number, keeps its data too, as in the reference. */
  readonly keepsDeletedData: boolean;
  /** `host:port` under which the events of the history name this node. */
  readonly nodeEndpoint: string;
  /** Complete the history of runs that the last stop cut off, after the start. */
  readonly repairHistory: boolean;
  /**
   * Look for damage in the scavenge database before a run goes on with it. Not where it was just fetched from an object
   * store, which answers for it.
   */
  readonly checkState: boolean;
}

export const DEFAULT_CONFIG: ScavengeConfig = {
  pageSizeBytes: 16_384,
  cacheBytes: 67_108_864,
  hashUsersCacheEntries: 100_000,
  disableMerging: false,
  mergesWhileExecuting: true,
  mergesAlways: false,
  historyMaxAgeDays: 30,
  unsafeIgnoreHardDelete: false,
  keepsDeletedData: false,
  nodeEndpoint: '127.0.0.1:2113',
  repairHistory: true,
  checkState: true,
};

/** What scavenging asks of the streams. */
export type ScavengeStore = Pick<
  EventStoreInternals,
  'append' | 'appendInternal' | 'completeChunk' | 'forgetTombstones' | 'readStream' | 'redactions' | 'streamInfo'
>;

/** What scavenging reads of the log and the index, and changes in them. */
interface ScavengedData {
  readonly store: ScavengeStore;
  readonly index: StreamIndex;
  /** The attribute indexes; left out, or null, without them. */
  readonly attributes?: Pick<Attributes, 'open'> | null;
  readonly table: ChunkTable;
  readonly cache: BlockCache;
  /** Does work that completes the chunk, prepared so that appends wait for it as little as can be. */
  readonly withNextChunk: <T>(work: () => Promise<T>) => Promise<T>;
  /** The chain of hashes over the log; left out, or null, without one. */
  readonly proofs?: HashChain | null;
}

/** The world around a scavenge. */
interface ScavengePorts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly jobs: Jobs;
  readonly states: ScavengeStates;
  readonly log: Log;
  readonly meter: Meter;
}

/** What scavenging works with. */
export interface ScavengeDeps {
  readonly data: ScavengedData;
  readonly ports: ScavengePorts;
  readonly config: ScavengeConfig;
}
