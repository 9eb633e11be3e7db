import { SkuaError } from '../base/errors.ts';
import { ANY, type AppendToStreamsOptions, type AppendToStreamsResult, type Authorize, bothAllow, type NewEvent, type StreamCheck, STREAMS_PER_WRITE_MAX, type StreamWrite } from './api.ts';
import { isMetastream, originalOf } from './format/names.ts';
import { type CheckedEvents, PendingRequest } from './pending-request.ts';

/** One stream of a write to several, with all its events. */
export interface StreamPart {
  readonly stream: string;
  readonly owner: string;
  readonly isMeta: boolean;
  /** What has to hold; where a check says it, that is what repeats are known by. */
  readonly expected: number;
  readonly authorize: Authorize | null;
  readonly events: readonly NewEvent[];
  readonly ids: Uint8Array;
  readonly idsAt: number;
  /** Set when it has been decided. */
  last: number;
  position: number;
}

/** Events that follow each other in one stream: a transaction of the log. */
export interface StreamRun {
  readonly part: StreamPart;
  readonly checked: CheckedEvents;
  /** It begins with the first event of its part. */
  readonly isFirst: boolean;
}

/** A check with the stream whose state it asks for. */
export interface CheckedStream extends StreamCheck {
  readonly owner: string;
  readonly isMeta: boolean;
  readonly isWritten: boolean;
}

/** Bytes of a metadata event beside its JSON, at most, without the name of its stream. */
const REVIVAL_BYTES = 160;
/** How much longer JSON can become that is written anew: a character may be escaped. */
const REWRITTEN_FACTOR = 6;

/** Appends to several streams in one commit. */
export class StreamsRequest extends PendingRequest {
  readonly kind = 'append-to-streams';
  readonly parts: readonly StreamPart[];
  readonly runs: readonly StreamRun[];
  readonly checks: readonly CheckedStream[];
  readonly isRepeatable: boolean;
  /** Bytes that streams may need that come back by what the request itself writes to their metadata. */
  readonly revivalBytes: number;

  /** `check` looks at the events of one stream. Throws `batch_empty`, `bad_request`, and what `check` throws. */
  constructor(writes: readonly StreamWrite[], { checks = [], isRepeatable = true }: AppendToStreamsOptions, check: (stream: string, events: readonly NewEvent[]) => CheckedEvents) {
    if (writes.length === 0) throw new SkuaError('batch_empty', 'The request has no events: send at least one.');
    const byStream = collect(writes);
    const expected = new Map(checks.filter(({ expectedVersion }) => expectedVersion !== ANY).map(({ stream, expectedVersion }) => [stream, expectedVersion]));
    const parts = new Map<string, StreamPart>();
    const whole = new Map<string, CheckedEvents>();
    let bytes = 0;
    for (const [stream, { events, expectedVersion, authorize }] of byStream) {
      const checked = check(stream, events);
      const isMeta = isMetastream(stream);
      const said = expected.get(stream);
      bytes += checked.bytes;
      whole.set(stream, checked);
      parts.set(stream, {
        stream, owner: isMeta ? originalOf(stream) : stream, isMeta, expected: said ?? expectedVersion, authorize, events: checked.events, ids: checked.ids, idsAt: checked.idsAt, last: -1, position: -1,
      });
    }
    super([...parts.values()][0]!.owner, bytes, false);
    this.parts = [...parts.values()];
    this.runs = runsOf(writes, parts, whole, check);
    this.checks = checks.map((one) => {
      const isMeta = isMetastream(one.stream);
      return { ...one, isMeta, owner: isMeta ? originalOf(one.stream) : one.stream, isWritten: parts.has(one.stream) };
    });
    this.isRepeatable = isRepeatable;
    this.revivalBytes = this.parts.reduce((sum, part) => sum + (part.isMeta ? revivalOf(part, this.runs) : 0), 0);
    const touched = new Set([...parts.keys(), ...checks.map(({ stream }) => stream)]).size;
    if (touched > STREAMS_PER_WRITE_MAX) throw new SkuaError('bad_request', `One write can write to and check at most ${STREAMS_PER_WRITE_MAX} streams, and this one has ${touched}: split it.`, { limit: STREAMS_PER_WRITE_MAX, size: touched });
  }

  get outcome(): AppendToStreamsResult {
    return { streams: this.parts.map(({ stream, last, position }) => ({ stream, lastEventNumber: last, position })), position: this.position, isRepeat: this.isRepeat };
  }

  override reset(): void {
    super.reset();
    for (const part of this.parts) {
      part.last = -1;
      part.position = -1;
    }
  }
}

interface Collected {
  readonly events: NewEvent[];
  readonly expectedVersion: number;
  authorize: Authorize | null;
}

function collect(writes: readonly StreamWrite[]): Map<string, Collected> {
  const byStream = new Map<string, Collected>();
  for (const { stream, expectedVersion, events, authorize } of writes) {
    if (events.length === 0) throw new SkuaError('batch_empty', `The write to ${stream} has no events: give at least one for each stream.`, { stream });
    const known = byStream.get(stream);
    if (known === undefined) byStream.set(stream, { events: [...events], expectedVersion, authorize: authorize ?? null });
    else if (known.expectedVersion !== ANY || expectedVersion !== ANY) throw new SkuaError('bad_request', `${stream} occurs more than once, so its writes can't expect a version: use a check.`, { stream });
    else {
      for (const event of events) known.events.push(event);
      known.authorize = bothAllow(known.authorize, authorize ?? null);
    }
  }
  return byStream;
}

/** The writes in their order; those that follow each other in one stream are one. */
function runsOf(writes: readonly StreamWrite[], parts: ReadonlyMap<string, StreamPart>, whole: ReadonlyMap<string, CheckedEvents>, check: (stream: string, events: readonly NewEvent[]) => CheckedEvents): StreamRun[] {
  const runs: StreamRun[] = [];
  const begun = new Set<string>();
  for (let i = 0; i < writes.length;) {
    const { stream } = writes[i]!;
    let end = i + 1;
    while (end < writes.length && writes[end]!.stream === stream) end++;
    const part = parts.get(stream)!;
    const events = writes.slice(i, end).flatMap((write) => write.events);
    // Nearly always a stream is one run, whose events have been looked at.
    runs.push({ part, checked: events.length === part.events.length ? whole.get(stream)! : check(stream, events), isFirst: !begun.has(stream) });
    begun.add(stream);
    i = end;
  }
  return runs;
}

function revivalOf({ stream, events, owner }: StreamPart, runs: readonly StreamRun[]): number {
  const longest = events.reduce((max, { data }) => Math.max(max, data.length), 0);
  const behind = runs.filter(({ part }) => part.stream === owner || part.stream === stream).length - 1;
  return behind * (REVIVAL_BYTES + 3 * owner.length + REWRITTEN_FACTOR * longest);
}
