import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { StoredEvent } from '../../core/streams/api.ts';

/** What a stream read should give, worked out from `$all` alone. */
export type ExpectedRead = readonly StoredEvent[] | { readonly error: 'stream-deleted' | 'stream-not-found' };

interface Rules {
  readonly maxCount: number;
  readonly truncateBefore: number;
  readonly maxAgeMs: number;
}
const NO_RULES: Rules = { maxCount: Infinity, truncateBefore: 0, maxAgeMs: Infinity };

/** Expected forward read of each stream, by deletion, `$maxCount`, `$tb` and `$maxAge`. */
export function foldStreams(all: readonly StoredEvent[], nowMs: number): Map<string, ExpectedRead> {
  const streams = new Map<string, StoredEvent[]>();
  for (const event of all) {
    const events = streams.get(event.stream);
    if (events === undefined) streams.set(event.stream, [event]);
    else events.push(event);
  }
  const reads = new Map<string, ExpectedRead>();
  for (const stream of streams.keys()) reads.set(stream, readOf(stream, streams, nowMs));
  return reads;
}

function readOf(stream: string, streams: ReadonlyMap<string, readonly StoredEvent[]>, nowMs: number): ExpectedRead {
  const owner = stream.startsWith('$$') ? stream.slice(2) : stream;
  if (streams.get(owner)?.some((event) => event.number === TOMBSTONE)) return { error: 'stream-deleted' };
  const events = [...streams.get(stream)!].sort((a, b) => a.number - b.number);
  const last = events.at(-1)!.number;
  const rules = stream.startsWith('$$') ? { ...NO_RULES, maxCount: 1 } : rulesOf(streams.get(`$$${stream}`));
  if (rules.truncateBefore === TOMBSTONE) return { error: 'stream-not-found' };
  return events.filter(
    (event) =>
      event.number >= rules.truncateBefore &&
      event.number > last - rules.maxCount &&
      event.createdMs >= nowMs - rules.maxAgeMs,
  );
}

function rulesOf(metadata: readonly StoredEvent[] | undefined): Rules {
  if (metadata === undefined) return NO_RULES;
  const last = metadata.reduce((a, b) => (b.number > a.number ? b : a));
  if (!last.isJson || last.data.length === 0) return NO_RULES;
  const keys = JSON.parse(Buffer.from(last.data).toString('utf8')) as Record<string, number>;
  const tb = keys['$tb'] ?? 0;
  return {
    maxCount: keys['$maxCount'] ?? Infinity,
    truncateBefore: tb >= 2 ** 63 ? TOMBSTONE : tb,
    maxAgeMs: (keys['$maxAge'] ?? Infinity) * 1000,
  };
}
