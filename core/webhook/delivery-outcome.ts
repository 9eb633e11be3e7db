import type { RoutingResult } from '../ports/routing-sandbox.ts';
import type { IngestStatus } from './api.ts';
import type { WriteOutcome } from './pipeline.ts';

/** How calls end; webhook-source.md part 7. */

/** As the metric names it. */
export type CallOutcome =
  | 'accepted' | 'written' | 'duplicate' | 'refused-body' | 'refused-signature' | 'refused-json' | 'skipped' | 'script-failed' | 'script-timed-out'
  | 'script-unavailable' | 'refused-route' | 'full' | 'stopping' | 'write-failed' | 'write-timed-out' | 'client-gone' | 'not-active' | 'failed';

/** What a call is answered. */
export interface Verdict {
  readonly status: IngestStatus;
  readonly outcome: CallOutcome;
  /** For people; null where there is nothing to explain, or where it is noted elsewhere. */
  readonly reason: string | null;
}

/** Whether a call may go on to its event. */
export type Admission =
  /** Its event has been written before. */
  | { readonly kind: 'known' }
  | { readonly kind: 'accepted'; readonly written: Promise<WriteOutcome> }
  | { readonly kind: 'refused'; readonly verdict: Verdict };

export function refused(status: IngestStatus, outcome: CallOutcome, reason: string): Admission {
  return { kind: 'refused', verdict: { status, outcome, reason } };
}

/** What a script that routed nothing means for its call. */
export function refusedByScript(result: Exclude<RoutingResult, { readonly kind: 'routed' }>): Admission {
  switch (result.kind) {
    case 'skipped': return refused(400, 'skipped', 'The script named no stream for this call.');
    case 'failed': return refused(500, 'script-failed', result.reason);
    case 'timed-out': return refused(500, 'script-timed-out', result.reason);
    case 'unavailable': return refused(503, 'script-unavailable', result.reason);
  }
}

export const NOT_ACTIVE: Verdict = { status: 404, outcome: 'not-active', reason: null };
export const ACCEPTED: Verdict = { status: 202, outcome: 'accepted', reason: null };
export const STOPPING: Verdict = { status: 503, outcome: 'stopping', reason: 'The connector is stopping.' };
export const FULL: Verdict = { status: 503, outcome: 'full', reason: 'Too many accepted calls wait to be written.' };
export const CLIENT_GONE: Verdict = { status: 503, outcome: 'client-gone', reason: null };

/** What a caller is told who waited for the write. Losses are noted where they happen. */
export function confirmed(outcome: WriteOutcome): Verdict {
  switch (outcome.kind) {
    case 'written': return { status: 201, outcome: 'written', reason: null };
    case 'stopped': return { status: 503, outcome: 'stopping', reason: null };
    case 'failed': return { status: outcome.isPassing ? 503 : 500, outcome: 'write-failed', reason: null };
  }
}

/** Calls by connector and outcome. */
export const CALLS = 'eventstore_webhook_calls_total';
/** From the arrival of a call at the connector to its answer. */
export const CALL_DURATION = 'eventstore_webhook_call_duration_seconds';
/** Which secret a signature was made with. */
export const SECRET_MATCHES = 'eventstore_webhook_secret_matches_total';
/** Accepted calls whose events were not written. */
export const LOSSES = 'eventstore_webhook_losses_total';
