import { isSkuaError } from '../base/errors.ts';
import type { AllFilter, StoredEvent, StreamPage } from '../streams/api.ts';
import { namesIndex, queryOfIndex } from '../streams/event-query/event-query.ts';
import { ALL_STREAM, parkedStreamOf } from './api.ts';
import type { GroupFilter } from './api.ts';
import type { Message } from './message.ts';
import { ABSENT } from './group-parts.ts';
import type { EngineParts, GroupParts } from './group-parts.ts';
import { isAfter, positionOf } from './positions.ts';
import type { Position } from './positions.ts';
import type { KeptGroup } from './stored-forms.ts';

/** Where a group reads on: at `from`, of which nothing up to `after` is wanted. */
export interface Cursor {
  readonly from: Position;
  readonly after: Position;
}

export interface GroupPage {
  readonly events: readonly StoredEvent[];
  readonly next: Cursor;
  readonly isEnd: boolean;
}

/** What groups of `$all` write themselves would come back to them, for ever. */
const OWN_PREFIX = '$persistentsubscription-$all::';

export async function filterOf(
  { matcherOf }: Pick<EngineParts, 'matcherOf'>,
  filter: GroupFilter | null,
): Promise<AllFilter | null> {
  if (filter === null) return null;
  if ('prefixes' in filter && filter.on === 'stream' && namesIndex(filter.prefixes))
    return { on: 'stream', query: queryOfIndex(filter.prefixes) };
  return 'prefixes' in filter
    ? { on: filter.on, prefixes: filter.prefixes }
    : { on: filter.on, regex: await matcherOf(filter.expression) };
}

/** Reads for one group. */
export class GroupReader {
  readonly #parts: GroupParts;
  readonly #kept: KeptGroup;
  readonly #isAll: boolean;
  #filter: AllFilter | null = null;

  constructor(parts: GroupParts, kept: KeptGroup) {
    this.#parts = parts;
    this.#kept = kept;
    this.#isAll = kept.stream === ALL_STREAM;
  }

  async load(): Promise<void> {
    this.#filter = await filterOf(this.#parts, this.#kept.filter);
  }

  read(cursor: Cursor, count: number, bytesMax: number): Promise<GroupPage> {
    return this.#isAll ? this.#readAll(cursor, count, bytesMax) : this.#readStream(cursor, count, bytesMax);
  }

  async #readStream({ from, after }: Cursor, count: number, bytesMax: number): Promise<GroupPage> {
    const {
      stream,
      settings: { resolveLinks },
    } = this.#kept;
    try {
      const page = await this.#parts.store.readStream(stream, {
        direction: 'forward',
        from: Math.max(0, from.commit),
        count,
        resolveLinks,
        bytesMax,
      });
      if (page.hasGaps === true) return gapped(page, after);
      // The end of a stream that was cut at its head may lie before what its group waits for.
      const next = Math.max(page.nextEventNumber, from.commit);
      return {
        events: wanted(page.events, after, false),
        next: { from: { commit: next, prepare: 0 }, after: { commit: Math.max(after.commit, next - 1), prepare: 0 } },
        isEnd: page.isEnd,
      };
    } catch (error) {
      // A stream that is not there yet, or not any more, may come, and goes on with its numbers.
      if (isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'stream_deleted'))
        return { events: [], next: { from, after }, isEnd: true };
      throw error;
    }
  }

  async #readAll({ from, after }: Cursor, count: number, bytesMax: number): Promise<GroupPage> {
    const {
      settings: { resolveLinks },
    } = this.#kept;
    const page = await this.#parts.store.readAll({
      direction: 'forward',
      from,
      orNext: true,
      count,
      resolveLinks,
      bytesMax,
      ...(this.#filter !== null && { filter: this.#filter }),
    });
    const events = wanted(page.events, after, true).filter(
      (event) => !(event.link ?? event).stream.startsWith(OWN_PREFIX),
    );
    const last = page.events.at(-1);
    const { next } = page;
    // Between records all is seen up to there; inside a transaction, up to the last event.
    const seen =
      next.prepare === 0 && isAfter(next.commit, 0, after) ? next : last === undefined ? after : positionOf(last, true);
    return {
      events,
      next: { from: next, after: isAfter(seen.commit, seen.prepare, after) ? seen : after },
      isEnd: page.isEnd,
    };
  }

  /** The event of a message once more; null when it is there no more. */
  async again(message: Message): Promise<StoredEvent | null> {
    const {
      stream,
      group,
      settings: { resolveLinks },
    } = this.#kept;
    const { store } = this.#parts;
    try {
      if (message.parkedNumber >= 0) {
        const event = await store.readEvent(parkedStreamOf(stream, group), message.parkedNumber, true);
        return event.link === null ? null : event;
      }
      if (!this.#isAll) return await store.readEvent(stream, message.sourceNumber, resolveLinks);
      const { events } = await store.readAll({
        direction: 'forward',
        from: { commit: message.commit, prepare: message.prepare },
        count: 1,
        resolveLinks,
      });
      const event = events[0];
      if (event === undefined) return null;
      const position = positionOf(event, true);
      return position.commit === message.commit && position.prepare === message.prepare ? event : null;
    } catch (error) {
      if (isSkuaError(error) && ABSENT.has(error.code)) return null;
      throw error;
    }
  }
}

/** Of a view: its pages begin where they were asked for, with what is seen already or behind it. */
function gapped({ events, nextEventNumber, isEnd }: StreamPage, after: Position): GroupPage {
  return {
    events: events.filter((event) => positionOf(event, false).commit !== after.commit),
    next: {
      from: { commit: nextEventNumber, prepare: 0 },
      after: { commit: Math.max(after.commit, nextEventNumber - 1), prepare: 0 },
    },
    isEnd,
  };
}

function wanted(events: readonly StoredEvent[], after: Position, isAll: boolean): readonly StoredEvent[] {
  let skipped = 0;
  while (skipped < events.length) {
    const { commit, prepare } = positionOf(events[skipped]!, isAll);
    if (isAfter(commit, prepare, after)) break;
    skipped++;
  }
  return skipped === 0 ? events : events.slice(skipped);
}
