import type { AttributeIndexes, AttributeIndexName } from '../attributes/api.ts';
import type { EntriesAhead } from '../attributes/entries-ahead/entries-ahead.ts';
import { hashKey } from '../attributes/format/attribute-keys.ts';
import { SkuaError } from '../base/errors.ts';
import { PageBytes } from '../base/page-bytes.ts';
import { END, HIT, isMiss, type Outcome } from '../base/step.ts';
import { Hash64 } from '../base/stream-hash.ts';
import type { Clock } from '../ports/clock.ts';
import { type AllPosition, type AppendCondition, type EventQuery, QUERY_ITEMS_MAX, type StoredEvent } from './api.ts';
import { BackwardScan } from './backward-scan.ts';
import { Candidates } from './candidates.ts';
import { EventJudge } from './event-judge.ts';
import { checkQuery } from './event-query/event-query.ts';
import { ForwardScan } from './forward-scan.ts';
import { METADATA_TYPE } from './format/names.ts';
import { Retention } from './format/retention.ts';
import type { Lookup } from './lookup/lookup.ts';
import { type StreamState, StreamView } from './stream-state.ts';
import { nextRecord } from './read-all.ts';
import type { RecordTime } from './record-time.ts';
import type { StreamStates } from './stream-states.ts';

/** Entries of indexes, and records, that the search for one condition looks at in all. */
const CONDITION_ENTRIES_MAX = 65_536;
/** Records that are looked at between two chances for other work, and at most in a turn. */
const SLICE_RECORDS = 1_024;
/** Times that a request leaves the queue for what is not in memory. */
const ROUNDS_MAX = 64;
/** Streams whose rules hide events that are remembered one by one; with more any change of metadata counts. */
const HIDING_MAX = 256;

const METADATA_KEY = new Hash64();
hashKey('et', METADATA_TYPE, METADATA_KEY);

/** The query that a condition asks for; null for all events. */
function queryOf({ failIfEventsMatch: { items } }: AppendCondition): EventQuery | null {
  if (items.length === 0 || items.some(({ types, tags }) => isNone(types) && isNone(tags))) return null;
  return {
    anyOf: items.map(({ types, tags }) =>
      isNone(types) ? { tags: tags! } : isNone(tags) ? { types } : { types, tags },
    ),
  };
}

function isNone(texts: readonly string[] | undefined): texts is undefined {
  return texts === undefined || texts.length === 0;
}

/** A condition that can be one, and what it asks for. */
export interface CheckedCondition {
  /** Null for all events. */
  readonly query: EventQuery | null;
  readonly after: number | undefined;
}

/** Throws `bad_request` for what no condition can be. */
export function checkCondition(condition: AppendCondition): CheckedCondition {
  const { failIfEventsMatch, after } = condition;
  const query = queryOf(condition);
  if (query !== null) checkQuery(query);
  else if (failIfEventsMatch.items.length > QUERY_ITEMS_MAX)
    throw new SkuaError('bad_request', `A query has at most ${QUERY_ITEMS_MAX} items.`, { limit: QUERY_ITEMS_MAX });
  if (after !== undefined && !(Number.isSafeInteger(after) && after >= -1))
    throw new SkuaError('bad_request', `A condition counts from behind a position of the log, not ${after}.`, {
      after,
    });
  return { query, after };
}

/** What of a group in flight is asked. */
export interface GroupInFlight {
  readonly start: number;
  readonly length: number;
  /** Of its records, as far as somebody has asked. */
  readonly entries: EntriesAhead;
  /** Its records, `length` bytes as far as they have been written, and room for more. */
  readonly buffer: Uint8Array;
}

/** What a search asks of the store. */
export interface ConditionParts {
  readonly lookup: Lookup;
  readonly states: StreamStates;
  readonly attributes: AttributeIndexes;
  readonly clock: Clock;
  readonly times: Pick<RecordTime, 'isLatestKnown' | 'latestMs' | 'readyForLatest'>;
  /** Lets in what others have committed; null on a log with one writer. */
  readonly confirm: (() => Promise<void>) | null;
}

/** An event of the request that was found in the log: the request was written before. */
export interface FoundRepeat {
  readonly match: StoredEvent;
  /** All events of the request that are there, by their ids. */
  readonly events: ReadonlyMap<string, StoredEvent>;
}

/** What a condition comes to in a turn. AGAIN: only `prepare` can tell. */
type ConditionOutcome = 'holds' | 'fails' | 'repeat' | 'again' | 'unknown';

/**
 * Whether the condition of one request holds, as it goes on with the log: what long searches found before the turn is
 * only added to in it.
 */
export class ConditionSearch {
  readonly #parts: ConditionParts;
  readonly #after: number | undefined;
  /** Ids of the events of the request, as texts. */
  readonly #ids: () => ReadonlySet<string>;
  /** Null for all events. */
  readonly #query: EventQuery | null;
  /** What was read of the indexes in a long search is known in the turn. */
  #candidates: Candidates | null = null;
  #from!: AllPosition;
  #examined = 0;
  #rounds = 0;
  /** Metadata versions, as they were looked at, of the streams that hide events which would match; null for none. */
  #hiding: Map<string, number> | null = null;
  /** Changes of metadata that there had been when the search began. */
  #changesSeen = 0;
  /** Null while it is not known that one counts. */
  #found: StoredEvent | null = null;
  /** The match has been looked at for what it says of the request. */
  #isJudged = false;
  #repeat: FoundRepeat | null = null;
  #failure: unknown = null;

  constructor(parts: ConditionParts, { query, after }: CheckedCondition, ids: () => ReadonlySet<string>) {
    this.#parts = parts;
    this.#after = after;
    this.#ids = ids;
    this.#query = query;
    this.#restart();
  }

  /** Why it can't be told whether the condition holds; null where it can. */
  get failure(): unknown {
    return this.#failure;
  }
  get match(): StoredEvent | null {
    return this.#found;
  }
  get repeat(): FoundRepeat | null {
    return this.#repeat;
  }

  #restart(): void {
    const after = this.#after;
    this.#from = { commit: after === undefined ? 0 : after + 1, prepare: 0 };
    this.#examined = 0;
    this.#hiding = null;
    this.#changesSeen = this.#parts.states.metadataChanges;
    this.#found = null;
    this.#isJudged = false;
    this.#repeat = null;
  }

  /**
   * The long part, outside the turn; null where it has been done at once. What fails refuses the request in its turn,
   * unless it is a repeat: `position_unknown`, `index_off`, `index_building`, `condition_too_broad`, `too_busy`.
   */
  prepare(): Promise<void> | null {
    return this.#isPassed() ? null : this.#prepareSlowly();
  }

  /**
   * Whether, at the first look, what of the indexes is in memory says that nothing matches: mostly so, and cheaper than
   * a promise. Else nothing has been looked at yet.
   */
  #isPassed(): boolean {
    if (this.#candidates !== null || this.#query === null || !this.#parts.times.isLatestKnown) return false;
    try {
      this.#checkAfter();
      this.#checkIndexes();
      this.#candidates = Candidates.of(this.#query, this.#parts.attributes);
      if (this.#pass() === HIT) return true;
    } catch {
      // The long search meets it again, and knows what to do about it.
    }
    this.#examined = 0;
    return false;
  }

  async #prepareSlowly(): Promise<void> {
    const { confirm } = this.#parts;
    try {
      await this.#prepare().catch(async (error: unknown) => {
        // What others have committed may say otherwise: where the log ends, and which indexes it has.
        if (confirm === null) throw error;
        await confirm();
        await this.#prepare();
      });
    } catch (error) {
      this.#failure = error;
    }
  }

  async #prepare(): Promise<void> {
    if (++this.#rounds > ROUNDS_MAX)
      throw new SkuaError(
        'too_busy',
        `What the condition asks for could not be kept in memory in ${ROUNDS_MAX} attempts: try again in a moment.`,
        { limit: ROUNDS_MAX },
      );
    await this.#parts.times.readyForLatest();
    if (this.#isOutdated()) this.#restart();
    this.#checkAfter();
    if (this.#found === null) {
      this.#checkIndexes();
      await this.#runLong();
    }
    if (this.#found !== null && !this.#isJudged) {
      this.#repeat = this.#ids().has(this.#found.id) ? await this.#repeatOf(this.#found) : null;
      this.#isJudged = true;
    }
  }

  #checkAfter(): void {
    const after = this.#after;
    const { end } = this.#parts.lookup.reader;
    if (after === undefined || after < Math.max(0, end)) return;
    throw new SkuaError(
      'position_unknown',
      `The condition counts from behind position ${after}, where this log has nothing yet, since it ends at ${end}: it is another log, or was restored since. Read again, and decide by what is there.`,
      { after, end },
    );
  }

  #checkIndexes(): void {
    for (const { types, tags } of this.#query?.anyOf ?? []) {
      if (types !== undefined) this.#checkIndex('names');
      if (tags !== undefined) this.#checkIndex('tags');
    }
  }

  #checkIndex(name: AttributeIndexName): void {
    const { attributes, lookup } = this.#parts;
    const index = attributes.of(name);
    if (index === null && !attributes.isOn(name))
      throw new SkuaError(
        'index_off',
        `The condition names ${name === 'tags' ? 'tags' : 'types'}, and this log has no index of ${name}: an administrator switches it on with skua indexes set, POST /admin/indexes, or an event of $attribute-indexes.`,
        { index: name },
      );
    if (index === null || index.coveredTo < lookup.reader.end)
      throw new SkuaError(
        'index_building',
        `The index of ${name} is being built, and covers the log up to ${index?.coveredTo ?? 0} of ${lookup.reader.end}: try again later.`,
        { index: name, coveredTo: index?.coveredTo ?? 0, logEnd: lookup.reader.end },
      );
  }

  #scan(): ForwardScan {
    const { lookup, states, times } = this.#parts;
    const query = this.#query;
    const judge = new EventJudge(
      { on: 'stream', forDecisions: true, ...(query !== null && { query }) },
      {
        states,
        access: undefined,
        nowMs: times.latestMs,
        onHidden: (owner, state) => this.#hides(owner, state),
      },
    );
    const page = { count: 1, judge, candidates: this.#candidates, bytes: oneEvent() };
    return new ForwardScan(lookup, this.#from, page, false);
  }

  /** HIT where the indexes alone say that nothing up to the log's end can match, and END where that is not said. */
  #pass(): Outcome {
    const candidates = this.#candidates;
    const { end } = this.#parts.lookup.reader;
    if (candidates === null || this.#from.prepare > 0) return END;
    const before = candidates.examined;
    const outcome = candidates.find(this.#from.commit, true);
    this.#count(candidates.examined - before);
    if (outcome !== HIT || candidates.at < end) return isMiss(outcome) ? outcome : END;
    if (this.#from.commit < end) this.#from = { commit: end, prepare: 0 };
    return HIT;
  }

  #hides(owner: string, { committed }: StreamState): void {
    // What is deleted for ever does not come back.
    if (committed.isTombstoned) return;
    const hiding = (this.#hiding ??= new Map());
    if (hiding.size > HIDING_MAX) return;
    const known = hiding.get(owner);
    if (known === undefined || known > committed.metadataVersion) hiding.set(owner, committed.metadataVersion);
  }

  get #areManyHiding(): boolean {
    return this.#hiding !== null && this.#hiding.size > HIDING_MAX;
  }

  /** Whether a stream that hid events has got other metadata since, or may have. */
  #hasLoosened(): boolean {
    if (this.#hiding === null) return false;
    if (this.#areManyHiding) return this.#parts.states.metadataChanges !== this.#changesSeen;
    for (const [owner, version] of this.#hiding) {
      const latest = this.#parts.states.get(owner)?.latest;
      if (latest === undefined || latest.metadataVersion !== version) return true;
    }
    return false;
  }

  /** Whether what was found may count no longer, or no longer be the oldest. */
  #isOutdated(): boolean {
    return this.#hasLoosened() || (this.#found !== null && this.#repeat === null && this.#isHidden(this.#found));
  }

  /** Whether readers see the event no more, or whether that is not in memory. */
  #isHidden({ stream, number, createdMs, createdTicks }: StoredEvent): boolean {
    const state = this.#parts.states.get(stream);
    if (state === undefined) return true;
    const { isTombstoned, isMissing, metadata, lastNumber } = new StreamView(state, false);
    if (isTombstoned || isMissing) return true;
    const retention = Retention.forReaders(metadata, lastNumber, this.#parts.times.latestMs);
    return retention.ruleAgainst(number, createdMs, createdTicks) !== null;
  }

  async #runLong(): Promise<void> {
    if (this.#query === null) await this.#toRecord();
    else {
      this.#candidates = Candidates.of(this.#query, this.#parts.attributes);
      for (;;) {
        const outcome = this.#pass();
        if (outcome === HIT) return;
        if (outcome === END) break;
        await outcome;
      }
      // Where no index rules anything out any more, the search begins at the position that was asked for: no record's.
      if (this.#candidates === null || this.#candidates.at === this.#from.commit) await this.#toRecord();
    }
    const scan = this.#scan();
    for (;;) {
      const before = scan.examined;
      const outcome = scan.step(SLICE_RECORDS, Infinity);
      this.#count(scan.examined - before);
      if (isMiss(outcome)) await outcome;
      else if (outcome === HIT || outcome === END) break;
      else await this.#parts.clock.yield();
    }
    this.#found = scan.events[0] ?? null;
    this.#from = scan.next();
  }

  /** The search goes on at a record, or where the log ends. */
  async #toRecord(): Promise<void> {
    this.#from = { commit: await nextRecord(this.#parts, this.#from.commit), prepare: 0 };
  }

  #count(examined: number): void {
    this.#examined += examined;
    if (this.#examined > CONDITION_ENTRIES_MAX)
      throw new SkuaError(
        'condition_too_broad',
        `The search for events that match looked at more than ${CONDITION_ENTRIES_MAX} entries: name tags that fewer events have, or count from behind a later position.`,
        { limit: CONDITION_ENTRIES_MAX },
      );
  }

  /** One step in the turn: what was committed since is looked at, as far as it is in memory. */
  decide(): ConditionOutcome {
    if (this.#failure !== null) return 'unknown';
    if (!this.#parts.times.isLatestKnown) return 'again';
    if (this.#isOutdated()) return 'again';
    if (this.#found !== null) return !this.#isJudged ? 'again' : this.#repeat === null ? 'fails' : 'repeat';
    const passed = this.#pass();
    if (isMiss(passed)) return 'again';
    if (passed === END) {
      const scan = this.#scan();
      if (scan.step(SLICE_RECORDS, Infinity) !== END) return 'again';
      this.#count(scan.examined);
      this.#from = scan.next();
    }
    return this.#hasLoosened() ? 'again' : 'holds';
  }

  /** Whether an event of the group in flight may match, or several have together what is asked for. */
  mayMatch({ start, length, buffer, entries }: GroupInFlight): boolean {
    if (length === 0) return false;
    // A group has no records of explicit transactions, at which the reading would stop.
    entries.read(buffer, start, length);
    if (this.#areManyHiding && entries.mayHave('names', METADATA_KEY.hi, METADATA_KEY.lo)) return true;
    // Without candidates nothing says what can't match: all events do, or the log had none that are indexed.
    return this.#candidates === null || this.#candidates.mayBeAmong(entries);
  }

  /** All events of the request that are there: its records lie side by side. */
  async #repeatOf(match: StoredEvent): Promise<FoundRepeat> {
    const events = new Map<string, StoredEvent>();
    const { lookup } = this.#parts;
    const around = { commit: match.position, prepare: match.position };
    const ids = this.#ids();
    const page = { count: ids.size, judge: null, candidates: null };
    for (const scan of [
      new BackwardScan(lookup, around, { ...page, bytes: manyEvents() }),
      new ForwardScan(lookup, around, { ...page, bytes: manyEvents() }, false),
    ]) {
      for (;;) {
        const outcome = scan.step(ids.size * 2, Infinity);
        if (isMiss(outcome)) await outcome;
        else break;
      }
      for (const event of scan.events) if (ids.has(event.id)) events.set(event.id, event);
    }
    return { match, events };
  }
}

/** Without payloads: what an event is, and not what it holds, is asked. */
function oneEvent(): PageBytes {
  return new PageBytes({ bytesMax: 1, scanBytesMax: Number.MAX_SAFE_INTEGER, hasPayloads: false, share: null });
}

function manyEvents(): PageBytes {
  return new PageBytes({
    bytesMax: Number.MAX_SAFE_INTEGER,
    scanBytesMax: Number.MAX_SAFE_INTEGER,
    hasPayloads: false,
    share: null,
  });
}
