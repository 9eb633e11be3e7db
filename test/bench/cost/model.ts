import type { ObjectCounts } from '../../support/counting-objects.ts';
import type { Prices } from './prices.ts';

/** What one of something asks of the object storage. */
export interface Requests {
  /** PUT, LIST, parts and ends of multipart uploads: billed alike. */
  readonly puts: number;
  /** GET and HEAD. */
  readonly gets: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Measured by counting calls (`measure.ts`). */
export interface Measured {
  /** Bytes of data of the events that were measured with. */
  readonly eventBytes: number;
  /** What one such event takes in the log. */
  readonly recordBytes: number;
  /** One event in a commit of its own, by an instance that knows the stream. */
  readonly append: Requests;
  /** The same where the instance has not seen the stream. */
  readonly appendUnknown: Requests;
  /** One event read that was written lately. */
  readonly read: Requests;
  /** One webhook call: delivery note and event. */
  readonly webhook: Requests;
  /** A tick with nothing to do. */
  readonly idleTick: Requests;
  /** A tick that takes in `tickCommits` commits. */
  readonly busyTick: Requests;
  readonly tickCommits: number;
  /** One chunk of `chunkBytes` rewritten by a scavenge. */
  readonly scavengedChunk: Requests;
  readonly chunkBytes: number;
}

/** What the arithmetic takes for granted; none of it is measured here. */
export interface Assumptions {
  /** From the call of a conditional write to its reply. */
  readonly commitMs: number;
  /** Memory and time of a function that appends or reads. */
  readonly functionGb: number;
  readonly functionMs: number;
  /** Memory and time of a tick, and how often it comes. */
  readonly tickGb: number;
  readonly tickMs: number;
  readonly tickEverySeconds: number;
  /** Reads for each event written. */
  readonly readsPerEvent: number;
  /** Months of events that are kept. */
  readonly monthsKept: number;
  /** Writes that the store takes under one prefix in a second. */
  readonly prefixPutsPerSecond: number;
}

export const ASSUMPTIONS: Assumptions = {
  commitMs: 25,
  functionGb: 0.5,
  functionMs: 40,
  tickGb: 1.5,
  tickMs: 4_000,
  tickEverySeconds: 60,
  readsPerEvent: 1,
  monthsKept: 1,
  prefixPutsPerSecond: 3_500,
};

export interface Month {
  readonly eventsPerSecond: number;
  /** Logs among which the streams are divided, so that no log has more than one commit at a time. */
  readonly logs: number;
  readonly eventsPerCommit: number;
  readonly commitsPerSecond: number;
  readonly puts: number;
  readonly gets: number;
  readonly storedGb: number;
  readonly invocations: number;
  readonly gbSeconds: number;
  readonly dollars: {
    readonly requests: number;
    readonly storage: number;
    readonly functions: number;
    readonly total: number;
  };
}

/** Of an index table and its bloom filter, about. */
const INDEX_ENTRY_BYTES = 26;
export const SECONDS_PER_MONTH = 2_592_000;
/** Events that one call brings, where senders batch. */
export const EVENTS_PER_COMMIT_MAX = 1_000;

export function requestsOf(counts: ObjectCounts, count = 1): Requests {
  return {
    puts: (counts.puts + counts.lists + counts.parts + counts.multiparts) / count,
    gets: (counts.gets + counts.heads) / count,
    bytesIn: counts.bytesIn / count,
    bytesOut: counts.bytesOut / count,
  };
}

/** Commits that one log takes in a second: each one waits for the one before it. */
export function commitsPerSecondMax({ commitMs }: Assumptions): number {
  return 1_000 / commitMs;
}

/**
 * A month at a steady rate. Below the limit of one log each event is a commit of its own; above it, `batch` events
 * share one, and where that is not enough the streams are divided among several logs.
 */
export function monthOf(
  eventsPerSecond: number,
  batch: number,
  measured: Measured,
  assumed: Assumptions,
  prices: Prices,
): Month {
  const eventsPerCommit = Math.min(EVENTS_PER_COMMIT_MAX, Math.max(1, batch));
  const commitsPerSecond = eventsPerSecond / eventsPerCommit;
  const logs = Math.max(1, Math.ceil(commitsPerSecond / commitsPerSecondMax(assumed)));
  const commits = commitsPerSecond * SECONDS_PER_MONTH;
  const events = eventsPerSecond * SECONDS_PER_MONTH;
  const reads = commits * assumed.readsPerEvent;
  const ticks = (logs * SECONDS_PER_MONTH) / assumed.tickEverySeconds;
  const perTickCommit = {
    puts: (measured.busyTick.puts - measured.idleTick.puts) / measured.tickCommits,
    gets: (measured.busyTick.gets - measured.idleTick.gets) / measured.tickCommits,
  };
  const storedBytes = events * assumed.monthsKept * (measured.recordBytes + INDEX_ENTRY_BYTES);
  const puts =
    commits * (measured.append.puts + perTickCommit.puts) + reads * measured.read.puts + ticks * measured.idleTick.puts;
  const gets =
    commits * (measured.append.gets + perTickCommit.gets) + reads * measured.read.gets + ticks * measured.idleTick.gets;
  const invocations = commits + reads + ticks;
  const gbSeconds =
    (((commits + reads) * assumed.functionMs) / 1_000) * assumed.functionGb +
    ((ticks * assumed.tickMs) / 1_000) * assumed.tickGb;
  const storedGb = storedBytes / 1e9;
  const requests = (puts / 1_000) * prices.putPer1000 + (gets / 1_000) * prices.getPer1000;
  const storage = storedGb * prices.storedGbMonth;
  const functions = (invocations / 1e6) * prices.invocationsPerMillion + gbSeconds * prices.gbSecond;
  return {
    eventsPerSecond,
    logs,
    eventsPerCommit,
    commitsPerSecond,
    puts,
    gets,
    storedGb,
    invocations,
    gbSeconds,
    dollars: { requests, storage, functions, total: requests + storage + functions },
  };
}
