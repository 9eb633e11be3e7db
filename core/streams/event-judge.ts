import { HIT, isMiss, type Miss } from '../base/step.ts';
import { timestampMsAt, timestampTicksAt } from '../log/format/records.ts';
import type { AllFilter, EventAccess } from './api.ts';
import { QueryMatcher } from './event-query/event-query.ts';
import { NO_METADATA } from './format/metadata.ts';
import { isMetastream, originalOf } from './format/names.ts';
import { Retention } from './format/retention.ts';
import type { Lookup } from './lookup/lookup.ts';
import type { PlainStreams } from './plain-streams.ts';
import { type StreamState, StreamView } from './stream-state.ts';
import type { StreamStates } from './stream-states.ts';

/** The event is wanted, or it is not. */
export const WANTED = HIT;
export const UNWANTED = 1;
export type Verdict = typeof WANTED | typeof UNWANTED | Miss;

/** What a judge asks beside the record. */
interface JudgeParts {
  readonly states: StreamStates;
  /** Default: the state of each stream is looked at. */
  readonly plain?: PlainStreams;
  readonly nowMs: number;
  readonly access: EventAccess | undefined;
  /** Gets the streams whose rules hide events that are asked for. */
  readonly onHidden?: (owner: string, state: StreamState) => void;
}

/**
 * Which events of `$all` a page keeps. Those of a query are judged by their stream, too: what its rules hide is not
 * shown, nor what the reader may not see.
 */
export class EventJudge {
  /** Steps that the expression of the filter has taken at most. */
  matchingSteps = 0;
  readonly #filter: AllFilter;
  readonly #matcher: QueryMatcher | null;
  readonly #parts: JudgeParts;
  /** Events are judged by their streams. */
  readonly #asksStreams: boolean;
  /** What was waited for on behalf of the event that is judged: the stream whose rules count, and its state. */
  #owner = '';
  #state: StreamState | null = null;

  constructor(filter: AllFilter, parts: JudgeParts) {
    this.#filter = filter;
    this.#matcher = filter.query === undefined ? null : new QueryMatcher(filter.query);
    this.#parts = parts;
    this.#asksStreams = filter.query !== undefined || filter.forDecisions === true;
  }

  /** Judges the event in the lookup's frame by what is in it. */
  fits(lookup: Lookup, stream: string, type: string): boolean {
    return (this.#matcher === null || this.#matcher.matches(lookup)) && this.#passes(stream, type);
  }

  /** A regular expression wins over prefixes. */
  #passes(stream: string, type: string): boolean {
    const { on, regex, prefixes, excludeSystemEvents, forDecisions } = this.#filter;
    if (forDecisions === true && stream.startsWith('$')) return false;
    const text = on === 'stream' ? stream : type;
    if (regex !== undefined) this.matchingSteps += regex.stepsPerCharacter * text.length;
    if (excludeSystemEvents === true && type.startsWith('$')) return false;
    if (regex !== undefined) return regex.test(text);
    if (prefixes === undefined) return true;
    for (const prefix of prefixes) if (text.startsWith(prefix)) return true;
    return false;
  }

  /** Judges the event in the lookup's frame, which fits, by its stream: to a miss the same question follows. */
  sees(lookup: Lookup, stream: string, number: number): Verdict {
    if (!this.#asksStreams) return WANTED;
    const { states, plain, nowMs, access, onHidden } = this.#parts;
    const isMeta = isMetastream(stream);
    const owner = isMeta ? originalOf(stream) : stream;
    const known = this.#state !== null && this.#owner === owner ? this.#state : states.get(owner);
    if (known === undefined && !isMeta && plain !== undefined) {
      const outcome = plain.step(owner);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT) return access === undefined || access.allows(stream, NO_METADATA) ? WANTED : UNWANTED;
    }
    const state = known ?? states.load(owner);
    if (state instanceof Promise) return this.#wait(owner, state);
    const view = new StreamView(state, isMeta);
    if (view.isTombstoned || view.isMissing) {
      onHidden?.(owner, state);
      return UNWANTED;
    }
    const retention = Retention.forReaders(view.metadata, view.lastNumber, nowMs);
    const { frame, fields } = lookup;
    const ms = timestampMsAt(frame.bytes, fields.timestampAt);
    const ticks = timestampTicksAt(frame.bytes, fields.timestampAt);
    if (retention.ruleAgainst(number, ms, ticks) !== null) {
      onHidden?.(owner, state);
      return UNWANTED;
    }
    return access === undefined || access.allows(stream, state.committed.metadata) ? WANTED : UNWANTED;
  }

  async #wait(owner: string, loading: Promise<StreamState>): Promise<void> {
    this.#state = await loading;
    this.#owner = owner;
  }

  /** The event has been judged: the next one of the stream is judged by what is known of it then. */
  forget(): void {
    this.#state = null;
  }
}
