import { SkuaError } from '../base/errors.ts';
import { ANY, type EndOf, IS_SOFT_DELETED, IS_TOMBSTONED, NO_STREAM, STREAM_EXISTS, type StreamViolation } from './api.ts';
import { conflictError, decideAppend, type Decision, lastNumberOf } from './append-decision.ts';
import type { AppendGroup } from './append-group.ts';
import { deletedError } from './format/names.ts';
import { CONFLICT, NEW, REPEAT, type RepeatCheck, type Verdict, WAIT } from './repeat-check.ts';
import type { StreamState, StreamVersion } from './stream-state.ts';
import type { StreamStates } from './stream-states.ts';
import type { CheckedStream, StreamPart, StreamsRequest } from './streams-request.ts';

/** Its streams are new to it, or all of it has been written before. */
export const ALL_NEW = 30;
export const ALL_REPEATED = 31;

interface StreamsDeciderParts {
  readonly states: StreamStates;
  readonly repeat: RepeatCheck;
  readonly endOf: EndOf;
  /** Compares the events of one stream with what is there. */
  readonly compare: (part: StreamPart, state: StreamState, group: AppendGroup, byIds: boolean) => Verdict;
}

/** Decides a write to several streams by what they were before it: all of it, or none. */
export class StreamsDecider {
  readonly #parts: StreamsDeciderParts;
  /** Verdicts on the first streams of the request that is being decided. */
  readonly #verdicts: Exclude<Verdict, Promise<unknown>>[] = [];

  constructor(parts: StreamsDeciderParts) {
    this.#parts = parts;
  }

  begin(): void {
    if (this.#verdicts.length > 0) this.#verdicts.length = 0;
  }

  /** One step: what may be done, or the error that refuses it; WAIT, or what has to be awaited before the next step. */
  step(request: StreamsRequest, group: AppendGroup): typeof ALL_NEW | typeof ALL_REPEATED | SkuaError | typeof WAIT | Promise<unknown> {
    const { states, repeat, endOf } = this.#parts;
    for (const { owner } of request.parts) {
      const state = states.load(owner);
      if (state instanceof Promise) return state;
      // A state with a draft stays where it is while the others are read, and until the group is decided.
      group.draft(state, state.latest);
    }
    for (const { owner } of request.checks) {
      const state = states.load(owner);
      if (state instanceof Promise) return state;
    }
    const denied = this.#denial(request, endOf);
    if (denied !== null) return denied;
    for (let i = this.#verdicts.length; i < request.parts.length; i++) {
      const part = request.parts[i]!;
      const verdict = this.#verdictOn(part, request, group);
      if (verdict === WAIT || verdict instanceof Promise) return verdict;
      this.#verdicts.push(verdict);
      if (verdict === REPEAT) {
        part.last = repeat.last;
        part.position = repeat.position;
      }
      repeat.begin();
    }
    if (this.#verdicts.every((verdict) => verdict === REPEAT)) return ALL_REPEATED;
    return this.#refusal(request) ?? ALL_NEW;
  }

  /** A stream that is gone for ever says so to everyone, as in a write to it alone; what nobody may see is refused before anything of the others is told. */
  #denial({ parts, checks }: StreamsRequest, endOf: EndOf): SkuaError | null {
    for (const { owner, authorize } of [...parts, ...checks]) {
      const { latest } = this.#parts.states.get(owner)!;
      const denied = latest.isTombstoned || authorize === null || authorize === undefined ? null : authorize(latest.metadata, endOf);
      if (denied !== null) return denied;
    }
    return null;
  }

  #verdictOn(part: StreamPart, { isRepeatable }: StreamsRequest, group: AppendGroup): Verdict {
    const state = this.#parts.states.get(part.owner)!;
    const decision = decideAppend(state.latest, part.isMeta, part.expected);
    if (decision === 'write') return NEW;
    if (decision === 'deleted' || decision === 'conflict') return CONFLICT;
    if (isRepeatable) return this.#parts.compare(part, state, group, decision === 'compare-ids');
    return decision === 'compare-ids' || isNoneAgain(part, state.latest) ? NEW : CONFLICT;
  }

  #refusal({ parts, checks }: StreamsRequest): SkuaError | null {
    const violations: StreamViolation[] = [];
    for (const [index, check] of checks.entries()) {
      const { latest } = this.#parts.states.get(check.owner)!;
      if (!holds(check, latest)) violations.push({ index, stream: check.stream, expected: check.expectedVersion, actual: actualOf(check, latest) });
    }
    if (violations.length > 0) {
      const names = violations.slice(0, 3).map(({ stream, expected, actual }) => `${stream} (expected ${expected}, found ${actual})`).join(', ');
      return new SkuaError('consistency_violation', `Nothing was written: ${violations.length} of the ${checks.length} checks failed: ${names}. Read the streams and decide again.`, { violations });
    }
    const isPartial = this.#verdicts.includes(REPEAT);
    for (const [i, part] of parts.entries()) {
      const { latest } = this.#parts.states.get(part.owner)!;
      if (latest.isTombstoned) return deletedError(part.stream);
      const verdict = this.#verdicts[i]!;
      // All checks hold: what conflicts nevertheless was written in part.
      if (verdict === NEW) continue;
      const decision: Decision = decideAppend(latest, part.isMeta, part.expected);
      if (decision === 'deleted') return new SkuaError('stream_deleted', `The stream ${part.stream} was deleted and does not exist until it is written to again without an expectation that it exists.`, { stream: part.stream, isSoftDeleted: true });
      return conflictError(part.stream, part.expected, lastNumberOf(latest, part.isMeta));
    }
    return isPartial ? conflictError(parts[0]!.stream, ANY, lastNumberOf(this.#parts.states.get(parts[0]!.owner)!.latest, parts[0]!.isMeta)) : null;
  }
}

/** A stream that was deleted is none, whatever its numbers. */
function isNoneAgain({ isMeta, expected }: StreamPart, version: StreamVersion): boolean {
  return expected === NO_STREAM && !isMeta && version.isSoftDeleted;
}

function holds({ expectedVersion: expected, isMeta, isWritten }: CheckedStream, version: StreamVersion): boolean {
  if (expected === ANY) return true;
  if (version.isTombstoned) return expected === NO_STREAM && !isWritten;
  const last = lastNumberOf(version, isMeta);
  const isNone = !isMeta && version.isSoftDeleted;
  if (expected === NO_STREAM) return last < 0 || isNone;
  if (isNone) return false;
  return expected === STREAM_EXISTS ? last >= 0 || (!isMeta && version.metadataVersion >= 0) : last === expected;
}

function actualOf({ isMeta }: CheckedStream, version: StreamVersion): number {
  if (version.isTombstoned) return IS_TOMBSTONED;
  return !isMeta && version.isSoftDeleted ? IS_SOFT_DELETED : Math.max(NO_STREAM, lastNumberOf(version, isMeta));
}
