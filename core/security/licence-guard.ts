import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Licence } from './licence.ts';
import type { Feature } from './licence-token.ts';

export interface GuardParts {
  readonly licence: Licence;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Says, whenever it is asked, why the licence does not grant a feature; null while it does. Once it does not, that stays so
 * until the process is started again, whatever the clock says then, and the log has it once (auto-scavenge.md section 2.2).
 */
export function licenceGuard(feature: Feature, { licence, clock, log }: GuardParts): () => string | null {
  let lost: string | null = null;
  return () => {
    if (lost !== null) return lost;
    lost = licence.refusal(feature, clock.nowMs());
    if (lost !== null) log.warn('A feature has no licence, and is off until the node is started again.', { feature, reason: lost });
    return lost;
  };
}
