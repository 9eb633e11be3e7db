import type { Model } from './api.ts';
import { isPromise } from './batch.ts';

/** A model in memory, and what it holds now. */
export interface MemoryModel<State> extends Model<State> {
  /** As of the last batch that was committed. */
  readonly state: State;
}

/**
 * A value of this process, which handlers change. Each batch gets a copy, which takes the place of the value when all
 * of it has been handled. A projection begins anew with each process. For large ones `copy` says how they are copied,
 * or `skua/project-sqlite` takes a database in memory.
 *
 * @example
 * const totals = memory(() => new Map<string, number>());
 */
export function memory<State>(
  initial: () => State,
  { copy = structuredClone }: { readonly copy?: (state: State) => State } = {},
): MemoryModel<State> {
  const places = new Map<string, string>();
  let state = initial();
  return {
    get state() {
      return state;
    },
    load: async (name) => places.get(name) ?? null,
    commit: async (name, previous, work) => {
      const draft = copy(state);
      const isCurrent = () => (places.get(name) ?? null) === previous;
      if (!isCurrent()) return false;
      const base = state;
      const working = work(draft);
      const text = isPromise(working) ? await working : working;
      // Another projection of the same value may have been faster.
      if (!isCurrent() || state !== base) return false;
      state = draft;
      places.set(name, text);
      return true;
    },
  };
}
