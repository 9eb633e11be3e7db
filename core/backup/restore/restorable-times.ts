import { RecordWalk } from '../../log/format/record-walk.ts';
import type { Repository } from '../repository/api.ts';
import { aheadOfNewest, madeMsOf } from '../format/snapshot-manifest.ts';
import type { ManifestSummary } from '../format/snapshot-manifest.ts';
import { keptEnd, stretches } from './restore-locations.ts';
import type { Kept, Stretch } from './restore-locations.ts';

/** Milliseconds since 1970, from the first to the last, each of which a restore to a time takes. */
export interface RestorableTime {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Most of them: of a log with more gaps the older ones are left out. */
const RESTORABLE_TIMES_MAX = 1_000;

/**
 * Bytes of the ends of logs that one call reads, as many as a chunk has by default: the page asks for the times, and
 * what is read may lie in a bucket. Later calls read what was left out.
 */
const TAIL_BYTES_MAX = 268_435_456;

/** The latest time behind the completed chunks of backups before the newest, which takes reading their logs' ends. */
export type LastTimes = Map<string, number>;

/** Times t with from <= t < to. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * The times to which `chooseRestore` restores the log of the node with the newest of all `backups`, which comes first;
 * ascending. What it takes to know them all would be reading all logs that were not complete yet: some times near the
 * end of an older backup are left out, and none is named that is refused. `lastTimes` is what earlier calls have read;
 * it is brought up to date, and each call reads `tailBytesMax` more at most. Rejects with what the repository rejects
 * with.
 */
export async function restorableTimes(
  repository: Repository,
  backups: readonly ManifestSummary[],
  lastTimes: LastTimes = new Map(),
  tailBytesMax = TAIL_BYTES_MAX,
): Promise<readonly RestorableTime[]> {
  const summaries = backups.filter(({ nodeId }) => nodeId === backups[0]!.nodeId);
  const [newest] = summaries;
  if (newest === undefined) return [];
  const keptOf = async ({ id, logEnd, shippedEnd }: ManifestSummary): Promise<Kept> => ({
    manifest: await repository.manifest(id),
    pieces: shippedEnd === logEnd ? [] : await repository.shipped(id),
  });
  const ahead = await Promise.all(aheadOfNewest(summaries).map(keptOf));
  const read: LastTimes = new Map();
  let found: readonly Span[] = [];
  let bytesLeft = tailBytesMax;
  for (const summary of summaries) {
    const kept = await keptOf(summary);
    // Later than the newest backup reaches, and what was shipped beside it, nothing is known.
    const to = summary === newest ? Math.min(...[kept, ...ahead].map(reachMs)) + 1 : null;
    const lastMs = async (tail: readonly Stretch[], ms: number): Promise<number> => {
      const key = `${summary.id} ${summary.shippedEnd}`;
      let last = lastTimes.get(key);
      if (last === undefined) {
        const bytes = tail.reduce((sum, { from, to }) => sum + to - from, 0);
        if (bytes > bytesLeft) return ms;
        bytesLeft -= bytes;
        last = await lastLaterMs(tail, ms);
      }
      read.set(key, last);
      return last;
    };
    found = united([...found, ...(await spansOf(kept, { repository, known: found, to: to ?? lastMs }))]);
    // A backup of which nothing was scavenged says all: those before it have no more.
    if (kept.manifest.chunks.every(({ isScavenged }) => !isScavenged)) break;
  }
  lastTimes.clear();
  for (const [key, ms] of read) lastTimes.set(key, ms);
  return found
    .map(({ from, to }) => ({ fromMs: Math.ceil(from), toMs: Math.ceil(to) - 1 }))
    .filter(({ fromMs, toMs }) => fromMs <= toMs)
    .slice(-RESTORABLE_TIMES_MAX);
}

/** Up to when a backup, with what was shipped after it, holds all that was acknowledged. */
function reachMs({ manifest, pieces }: Kept): number {
  return pieces.at(-1)?.shippedMs ?? madeMsOf(manifest);
}

interface SpansOptions {
  readonly repository: Repository;
  /** Times that other backups serve: nothing is read for these. */
  readonly known: readonly Span[];
  /** Where they end, told of the newest backup, and to be read of those before it. */
  readonly to: number | ((tail: readonly Stretch[], ms: number) => Promise<number>);
}

/** The times that one backup serves. One that is not the newest serves nothing behind its last record. */
async function spansOf(kept: Kept, { repository, known, to }: SpansOptions): Promise<readonly Span[]> {
  if (keptEnd(kept) === 0) return [];
  const spans: Span[] = [];
  const tail: Stretch[] = [];
  // Up to there records of completed chunks go: a time before it lies in one of them.
  let reached = -Infinity;
  let isFirst = true;
  for (const { chunk, stretch } of stretches(repository, kept)) {
    if (chunk === null) tail.push(stretch);
    else if (chunk.toMs !== null && chunk.fromMs !== null && chunk.toMs > reached) {
      const end = chunk.isScavenged ? Math.min(chunk.fromMs, chunk.toMs) : chunk.toMs;
      if (!isFirst) spans.push({ from: reached, to: end });
      // Before the first write there is nothing to restore; where it was scavenged its time is not known.
      else if (!chunk.isScavenged) spans.push({ from: await firstWriteMs(stretch), to: end });
      reached = chunk.toMs;
      isFirst = false;
    }
  }
  if (isFirst && tail[0] !== undefined) reached = await firstWriteMs(tail[0]);
  if (Number.isFinite(reached)) {
    if (typeof to === 'number') spans.push({ from: reached, to });
    else if (!holds(known, { from: reached, to: reachMs(kept) + 1 }))
      spans.push({ from: reached, to: await to(tail, reached) });
  }
  return spans;
}

/** The latest time in the first write: from then on the log can end behind it. */
async function firstWriteMs({ from, content }: Stretch): Promise<number> {
  const walk = new RecordWalk(from);
  let latestMs = -Infinity;
  const look = (): boolean => {
    latestMs = Math.max(latestMs, walk.timeMs);
    return !walk.endsWrite;
  };
  for await (const bytes of content()) if (!walk.push(bytes, look)) break;
  return latestMs;
}

/** The latest time of the last stretch that has a record later than `ms`; `ms` where none has. */
async function lastLaterMs(tail: readonly Stretch[], ms: number): Promise<number> {
  for (const { from, content } of tail.toReversed()) {
    const walk = new RecordWalk(from);
    let latestMs = ms;
    const look = (): boolean => {
      latestMs = Math.max(latestMs, walk.timeMs);
      return true;
    };
    for await (const bytes of content()) walk.push(bytes, look);
    if (latestMs > ms) return latestMs;
  }
  return ms;
}

function holds(spans: readonly Span[], { from, to }: Span): boolean {
  return spans.some((span) => span.from <= from && to <= span.to);
}

/** In their order, those that meet as one. */
function united(spans: readonly Span[]): readonly Span[] {
  const joined: Span[] = [];
  for (const span of spans.filter(({ from, to }) => from < to).toSorted((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last === undefined || last.to < span.from) joined.push(span);
    else if (last.to < span.to) joined[joined.length - 1] = { from: last.from, to: span.to };
  }
  return joined;
}
