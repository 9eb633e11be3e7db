import { apply } from './apply.ts';
import type { Seen, State } from './state.ts';
import { INITIAL } from './state.ts';
import type { Loaded } from './streams.ts';

/**
 * The state that stored events lead to; auto-scavenge.md section 11.4. Starts that were due before this node took the lead
 * (`leadsSinceMs`) are skipped.
 */
export function stateOf({ configuration, facts, version }: Loaded, leadsSinceMs: number, seen: Seen): State {
  let state = configuration === null ? INITIAL : apply(INITIAL, configuration, -1);
  let { anchorMs } = state;
  for (const { fact, number } of facts) {
    state = apply(state, fact, number);
    if (state.anchorMs !== null) anchorMs = Math.max(anchorMs ?? 0, state.anchorMs);
  }
  // The two streams do not tell in which order their events came: the later time counts.
  return { ...state, version, seen, anchorMs: anchorMs === null ? null : Math.max(anchorMs, leadsSinceMs) };
}
