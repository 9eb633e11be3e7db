import { END, HIT, isMiss, type Miss } from '../base/step.ts';
import { viewAt } from '../base/bytes.ts';
import { guidToText } from '../base/guid.ts';
import type { EntryList } from '../index/format/entries.ts';
import {
  FLAG_COMMITTED,
  FLAG_JSON,
  FLAG_REDACTED,
  type PrepareFields,
  type RecordFrame,
  timestampMsAt,
  timestampTicksAt,
} from '../log/format/records.ts';
import { internText } from '../base/text.ts';
import type { StoredEvent } from './api.ts';
import type { Lookup, StreamKey } from './lookup/lookup.ts';
import { LINK_TYPE } from './format/names.ts';
import type { PageBytes } from '../base/page-bytes.ts';
import { isEmptied, keptMetadata } from '../log/format/redaction.ts';
import type { MarkedKeys } from './redactions/redactions.ts';
import { type Retention, shownData } from './format/retention.ts';

const NO_BYTES = new Uint8Array(0);

/**
 * An event as pages have it. It is made by a constructor, not as a literal: where events of a page lived through the
 * first collections, V8 makes those of a literal in the old space ever after, and has to mark the whole heap for every
 * few dozen megabytes that are read.
 */
class PageEvent implements StoredEvent {
  declare readonly stream: string;
  declare readonly number: number;
  declare readonly type: string;
  declare id: string;
  declare readonly isJson: boolean;
  declare readonly isRedacted: boolean;
  declare readonly data: Uint8Array;
  declare readonly metadata: Uint8Array;
  declare readonly position: number;
  declare readonly preparePosition: number;
  declare readonly createdMs: number;
  declare readonly createdTicks: number;
  declare link: StoredEvent | null;
  declare linkTargetMissing: boolean;

  constructor(
    { frame, fields: f }: Lookup,
    stream: string,
    number: number,
    commitPosition: number,
    hasPayload: boolean,
    id: string,
  ) {
    const b = frame.bytes;
    const type = internText(b, f.typeAt, f.typeLength);
    this.stream = stream;
    this.number = number;
    this.type = type;
    this.id = id;
    this.isJson = (f.flags & FLAG_JSON) !== 0;
    this.isRedacted = (f.flags & FLAG_REDACTED) !== 0;
    // Without the data of a link it is not known where the link leads.
    this.data = hasPayload ? shownData(frame, f) : type === LINK_TYPE ? shownData(frame, f).slice() : NO_BYTES;
    this.metadata = !hasPayload || f.metadataLength === 0 ? NO_BYTES : viewAt(b, f.metadataAt, f.metadataLength);
    this.position = commitPosition;
    this.preparePosition = frame.position;
    this.createdMs = timestampMsAt(b, f.timestampAt);
    this.createdTicks = timestampTicksAt(b, f.timestampAt);
    this.link = null;
    this.linkTargetMissing = false;
  }
}

/**
 * The event in a parsed prepare. All events are made here, and none is shown that has a mark of redaction. Without a
 * payload it keeps nothing of the record's bytes.
 */
export function storedEvent(
  lookup: Lookup,
  stream: string,
  number: number,
  commitPosition: number,
  hasPayload = true,
  id = guidToText(lookup.frame.bytes, lookup.fields.eventIdAt),
): StoredEvent & { id: string } {
  const { frame, fields } = lookup;
  const event = new PageEvent(lookup, stream, number, commitPosition, hasPayload, id);
  return lookup.redactions.isClear(frame.position) ? event : hiddenBy(lookup.redactions.of(frame, fields), event);
}

function hiddenBy<Event extends Pick<StoredEvent, 'isRedacted' | 'data' | 'metadata'>>(
  mark: MarkedKeys | null,
  event: Event,
): Event {
  return mark === null
    ? event
    : { ...event, isRedacted: true, data: NO_BYTES, metadata: keptMetadata(event.metadata, mark.keys) };
}

/** The step did its share: let other work run and take it again. */
export const PAUSE = 3;

/** Entries are judged together in runs of this many: whether their records lie far apart. */
const RUN_ENTRIES = 64;
/** Records that lie further apart than this in the mean are read one by one: copying a block costs more. */
const SPARSE_BYTES = 16_384;
/** A record read alone takes as much of a slice as this many others. */
const SPARSE_COST = 4;
/** Records whose blocks are loaded at once when one had to be waited for. */
const PREFETCHED_RECORDS = 16;

/**
 * What a scan is for: the events, upwards or downwards, or only the number of the first or the last one that has not
 * expired.
 */
type ScanAim = 'events' | 'events-downwards' | 'first' | 'last';

/**
 * Looks for the events of a stream with numbers in [from, to] that have not expired, in steps. A number that
 * several records have (a scavenge or an old crash may leave that) belongs to the one at the lowest position.
 */
export class PageScan {
  /** In the order of the aim, where they are it. */
  readonly events: StoredEvent[] = [];
  /** Number of the event before which the page ended, because it had no room for it; -1 where it has all. */
  cutAt = -1;
  /** An event was left out because it is too old. */
  sawExpired = false;
  /** Number of the first or the last event that has not expired, where that is the aim; -1 for none. */
  alive = -1;
  /** Greatest time of the expired events, of those behind `alive` where that is the last. */
  newestMs = -Infinity;
  newestTicks = 0;
  /** Index entries looked at. */
  get examined(): number {
    return this.#at;
  }
  readonly #lookup: Lookup;
  readonly #key: StreamKey;
  readonly #from: number;
  readonly #to: number;
  readonly #retention: Retention;
  readonly #aim: ScanAim;
  readonly #bytes: PageBytes | null;
  readonly #list: EntryList;
  #isListed = false;
  #at = 0;
  #lastNumber = -1;
  #isSparse = false;
  #judgedTo = 0;

  /** `bytes` adds up events, where they are the aim. */
  constructor(
    lookup: Lookup,
    key: StreamKey,
    from: number,
    to: number,
    retention: Retention,
    aim: ScanAim,
    bytes: PageBytes | null,
  ) {
    this.#lookup = lookup;
    this.#key = key;
    this.#from = from;
    this.#to = to;
    this.#retention = retention;
    this.#aim = aim;
    this.#bytes = bytes;
    this.#list = lookup.spareLists.take();
  }

  /** HIT when all is found. At most `slice` entries are looked at. */
  step(slice: number): typeof HIT | typeof PAUSE | Miss {
    try {
      return this.#step(this.#lookup, slice);
    } finally {
      this.#lookup.ids.settle();
    }
  }

  #step(lookup: Lookup, slice: number): typeof HIT | typeof PAUSE | Miss {
    const list = this.#list;
    if (!this.#isListed) {
      list.clear();
      const outcome = lookup.index.range(this.#key.hi, this.#key.lo, this.#from, this.#to, list);
      if (isMiss(outcome)) return outcome;
      this.#isListed = true;
      if (outcome === END) list.clear();
      else if (this.#aim === 'events-downwards') list.reverseVersions();
    }
    const { versions, positions } = list;
    for (let left = slice; this.#at < list.length && left > 0; left -= this.#isSparse ? SPARSE_COST : 1) {
      if (this.#at >= this.#judgedTo) this.#judge();
      const number = versions[this.#at]!;
      if (number !== this.#lastNumber) {
        const outcome = lookup.confirm(positions[this.#at]!, this.#key, this.#isSparse ? 'sparse' : 'run');
        if (isMiss(outcome)) {
          if (this.#isSparse) this.#prefetch(lookup);
          return outcome;
        }
        if (outcome === HIT && !this.#take(lookup, number)) {
          this.cutAt = number;
          return HIT;
        }
      }
      this.#at++;
      if (this.alive >= 0 && this.#aim === 'first') return HIT;
    }
    return this.#at < list.length ? PAUSE : HIT;
  }

  /** Finds out how far the records of the next run of entries lie apart. */
  #judge(): void {
    const { positions, length } = this.#list;
    this.#judgedTo = Math.min(length, this.#at + RUN_ENTRIES);
    const last = this.#judgedTo - 1;
    this.#isSparse = Math.abs(positions[last]! - positions[this.#at]!) > (last - this.#at) * SPARSE_BYTES;
  }

  /** A read that had to wait for one record should not wait for each of the next ones in turn. */
  #prefetch(lookup: Lookup): void {
    const end = Math.min(this.#judgedTo, this.#at + 1 + PREFETCHED_RECORDS);
    for (let i = this.#at + 1; i < end; i++) lookup.reader.prefetch(this.#list.positions[i]!);
  }

  /** False: the page has no room for the event. */
  #take(lookup: Lookup, number: number): boolean {
    const { frame, fields } = lookup;
    this.#lastNumber = number;
    // Of a stream that was deleted, and whose metadata since let its last number be seen again.
    if (isEmptied(frame, fields)) return true;
    if (this.#retention.hasAge && this.#isExpired(frame, fields)) return true;
    const bytes = this.#bytes;
    if (bytes !== null) {
      if (!bytes.take(fields.dataLength + fields.metadataLength, fields.streamLength)) return false;
      this.events.push(pageEvent(lookup, this.#key.name, number, commitPositionOf(lookup), bytes));
    } else {
      this.alive = number;
      if (this.#aim === 'last') this.newestMs = -Infinity;
    }
    return true;
  }

  #isExpired(frame: RecordFrame, fields: PrepareFields): boolean {
    const ms = timestampMsAt(frame.bytes, fields.timestampAt);
    const ticks = timestampTicksAt(frame.bytes, fields.timestampAt);
    if (!this.#retention.isExpired(ms, ticks)) return false;
    this.sawExpired = true;
    if (ms > this.newestMs || (ms === this.newestMs && ticks > this.newestTicks)) {
      this.newestMs = ms;
      this.newestTicks = ticks;
    }
    return true;
  }

  /** Gives its columns back. The scan is over. */
  release(): void {
    this.#lookup.spareLists.give(this.#list);
  }
}

/**
 * The event of the record in the lookup's frame, for a page that has taken it. Its id comes when the step settles those
 * of the lookup.
 */
export function pageEvent(
  lookup: Lookup,
  stream: string,
  number: number,
  commitPosition: number,
  bytes: PageBytes,
): StoredEvent {
  const { hasPayloads } = bytes.limits;
  const event = storedEvent(lookup, stream, number, commitPosition, hasPayloads, '');
  lookup.ids.add(lookup.frame.bytes, lookup.fields.eventIdAt, event);
  if (!hasPayloads) bytes.note(event.data.length);
  bytes.read += lookup.fields.dataLength + lookup.fields.metadataLength;
  return event;
}

/**
 * Commit position of the record just confirmed: its own, or -1 (not known) when a commit record somewhere behind it
 * counts.
 */
export function commitPositionOf(lookup: Lookup): number {
  return (lookup.fields.flags & FLAG_COMMITTED) !== 0 ? lookup.frame.position : -1;
}
