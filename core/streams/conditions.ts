import { SkuaError } from '../base/errors.ts';
import { guidToText } from '../base/guid.ts';
import type { AppendToStreamsResult, StoredEvent, StreamOutcome } from './api.ts';
import { type StreamsRequest, VERDICT, type Verdict } from './append-request.ts';
import {
  type CheckedCondition,
  type ConditionParts,
  ConditionSearch,
  type FoundRepeat,
  type GroupInFlight,
} from './condition-search.ts';

/** The conditions of a store's appends: searched outside the turn, decided in it. */
export class Conditions {
  readonly #parts: ConditionParts;

  constructor(parts: ConditionParts) {
    this.#parts = parts;
  }

  /** The search for the condition of a request that has one. */
  searchFor(request: StreamsRequest, condition: CheckedCondition): ConditionSearch {
    const ids = () =>
      new Set(
        request.parts.flatMap(({ events, ids: bytes, idsAt }) =>
          events.map((_, i) => guidToText(bytes, idsAt + i * 16)),
        ),
      );
    return new ConditionSearch(this.#parts, condition, ids);
  }

  /**
   * One step for a request in its turn. NEW: the condition holds. REPEAT and REFUSED: the request is decided. WAIT: its
   * turn comes behind the group. AGAIN: it has to leave the queue for what is not in memory.
   */
  decide(request: StreamsRequest, search: ConditionSearch, group: GroupInFlight): Verdict {
    const outcome = search.decide();
    if (outcome === 'again') return VERDICT.AGAIN;
    if (outcome === 'unknown') return request.refuse(search.failure);
    if (outcome === 'fails') return request.refuse(conditionFailed(search.match!));
    if (outcome === 'repeat') {
      request.accept(resultOf(request, search.repeat!));
      return VERDICT.REPEAT;
    }
    return search.mayMatch(group) ? VERDICT.WAIT : VERDICT.NEW;
  }
}

function conditionFailed({ stream, number, type, position }: StoredEvent): SkuaError {
  return new SkuaError(
    'condition_failed',
    `Nothing was written: event ${number} of ${stream} (${type}), at position ${position}, has come since and matches the condition. Read again, and decide anew.`,
    { stream, number, position },
  );
}

/**
 * What the first try was answered with, as far as its events are there: of a stream all of whose events have gone
 * since, the last number is not known (-1).
 */
function resultOf(request: StreamsRequest, { match, events }: FoundRepeat): AppendToStreamsResult {
  const streams = request.parts.map((part): StreamOutcome => {
    const { stream, ids, idsAt } = part;
    for (let i = part.events.length - 1; i >= 0; i--) {
      const found = events.get(guidToText(ids, idsAt + i * 16));
      if (found !== undefined && found.stream === stream)
        return {
          stream,
          lastEventNumber: found.number + part.events.length - 1 - i,
          position: found.position,
        };
    }
    return { stream, lastEventNumber: -1, position: match.position };
  });
  return { streams, position: streams.reduce((max, { position }) => Math.max(max, position), -1), isRepeat: true };
}
