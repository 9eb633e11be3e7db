import type { RawPrepare, RawRecord } from './raw-log.ts';

/**
 * A naive judge of single events: which records a scavenge must remove, worked out from the whole log
 * without chunks, weights, batches or discard points: each by its own number and time. It supposes what the store sees
 * to: no transactions.
 */

export type Reason = 'tombstone' | 'superseded' | 'tb' | 'count' | 'age';

export interface Point {
  readonly position: number;
  readonly number: number;
  /** See `ticksOf`. */
  readonly ticks: number;
  readonly threshold: number;
}

interface Rules {
  readonly truncateBefore: number;
  readonly maxCount: number;
  readonly maxAgeTicks: number;
}
const NO_RULES: Rules = { truncateBefore: 0, maxCount: Infinity, maxAgeTicks: Infinity };

/** The scavenge point that was written last, or null. */
export function latestPoint(log: readonly RawRecord[]): Point | null {
  const record = log.findLast(
    ({ prepare }) => prepare?.stream === '$scavengePoints' && prepare.type === '$scavengePoint',
  );
  if (record === undefined) return null;
  const { number, ticks, data } = record.prepare!;
  return {
    position: record.position,
    number,
    ticks,
    threshold: (JSON.parse(data) as { threshold?: number }).threshold ?? 0,
  };
}

/** The records that must go, and why. */
export function doomedBy(log: readonly RawRecord[], point: Point): Map<number, Reason> {
  const doomed = new Map<number, Reason>();
  const streams = new Map<string, { position: number; prepare: RawPrepare }[]>();
  for (const { position, prepare } of log) {
    if (position >= point.position || prepare === null) continue;
    const records = streams.get(prepare.stream);
    if (records === undefined) streams.set(prepare.stream, [{ position, prepare }]);
    else records.push({ position, prepare });
  }
  for (const [stream, records] of streams) {
    const isMetastream = stream.startsWith('$$');
    const original = isMetastream ? stream.slice(2) : stream;
    const isTombstoned = streams.get(original)?.some(({ prepare }) => prepare.isTombstone) ?? false;
    const rules = isMetastream ? NO_RULES : rulesOf(streams.get(`$$${stream}`)?.at(-1)?.prepare);
    const last = Math.max(...records.map(({ prepare }) => prepare.number));
    for (const { position, prepare } of records) {
      const reason = reasonFor(prepare, { isMetastream, isTombstoned, rules, last, point });
      if (reason !== null) doomed.set(position, reason);
    }
  }
  return doomed;
}

/**
 * The records that must lose their data: the last events of streams that were deleted softly, and have not been written
 * since.
 */
export function emptiedBy(log: readonly RawRecord[], point: Point): Set<number> {
  const before = log
    .filter(({ position, prepare }) => position < point.position && prepare !== null)
    .map(({ position, prepare }) => ({ position, ...prepare! }));
  const emptied = new Set<number>();
  for (const [stream, records] of Map.groupBy(before, (record) => record.stream)) {
    if (stream.startsWith('$$') || records.some(({ isTombstone }) => isTombstone)) continue;
    const metadata = before.findLast((record) => record.stream === `$$${stream}`);
    if (metadata === undefined || !/^\{"\$tb":9223372036854775807[,}]/.test(metadata.data)) continue;
    const last = Math.max(...records.map(({ number }) => number));
    for (const { position, number } of records)
      if (number === last && position < metadata.position) emptied.add(position);
  }
  return emptied;
}

interface Case {
  readonly isMetastream: boolean;
  readonly isTombstoned: boolean;
  readonly rules: Rules;
  readonly last: number;
  readonly point: Point;
}

function reasonFor(event: RawPrepare, { isMetastream, isTombstoned, rules, last, point }: Case): Reason | null {
  if (event.isTombstone) return null;
  if (isTombstoned) return 'tombstone';
  // The last event keeps the number for the next one.
  if (event.number === last) return null;
  if (isMetastream) return 'superseded';
  if (event.number < rules.truncateBefore) return 'tb';
  if (event.number <= last - rules.maxCount) return 'count';
  return event.ticks < point.ticks - rules.maxAgeTicks ? 'age' : null;
}

function rulesOf(metadata: RawPrepare | undefined): Rules {
  if (metadata === undefined || metadata.data === '') return NO_RULES;
  const keys = JSON.parse(metadata.data) as Record<string, number | undefined>;
  return {
    truncateBefore: keys['$tb'] ?? 0,
    maxCount: keys['$maxCount'] ?? Infinity,
    maxAgeTicks: keys['$maxAge'] === undefined ? Infinity : keys['$maxAge'] * 10_000_000,
  };
}
