import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Keys } from '../../ports/keys.ts';
import type { Log } from '../../ports/log.ts';
import type { Meter } from '../../ports/meter.ts';
import type { RoutingResult } from '../../ports/routing-sandbox.ts';
import type { EventStore } from '../../streams/api.ts';
import { deliveriesStream } from '../format/stream-names.ts';
import type { ActiveConnector, IngestStatus } from '../api.ts';
import { listedAuthorize } from '../writer.ts';
import type { ListedAccess } from '../writer.ts';
import { Deduplication } from './deduplication.ts';
import { Pipeline } from './pipeline.ts';
import type { SharedLimit } from '../../base/shared-limit.ts';
import type { PipelineLimits, WriteOutcome } from './pipeline.ts';
import type { Rejections } from './rejections.ts';
import { schemeOf } from '../format/schemes.ts';
import { createSignatureVerifier } from '../signatures/signatures.ts';
import type { SignatureVerifier } from '../signatures/signatures.ts';
import { deliveryIdOf } from './delivery.ts';
import type { Delivery, DeliveryIdOf } from './delivery.ts';
import { background } from '../../base/background.ts';

interface IntakeParts {
  readonly store: EventStore;
  readonly access: ListedAccess;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  readonly limits: PipelineLimits;
  /** Of what is accepted, for all connectors. */
  readonly budget: SharedLimit;
  /** Of the connector. */
  readonly rejections: Rejections;
}

/** All that the ingest holds for one activation of a connector, from the first call to the stop. */
export class Intake {
  readonly connector: ActiveConnector;
  /** Null: calls are not signed. */
  readonly verifier: SignatureVerifier | null;
  /** Null: deliveries are not told apart. */
  readonly deliveryIdOf: DeliveryIdOf | null;
  readonly deduplication: Deduplication | null;
  /** The sender may send a challenge. */
  readonly hasChallenge: boolean;
  readonly rejections: Rejections;
  readonly #parts: IntakeParts;
  readonly #pipeline: Pipeline;
  /** Deliveries under way, by event id. */
  readonly #attempts = new Map<string, Promise<Admission>>();
  /** What has been warned of. */
  readonly warned = new Set<string>();
  #draining: Promise<void> | null = null;

  constructor(connector: ActiveConnector, parts: IntakeParts) {
    const { connectorId, settings, secrets } = connector;
    const { store, access, keys, clock, ids, limits, budget } = parts;
    this.connector = connector;
    this.#parts = parts;
    this.verifier = settings.signature === null ? null : createSignatureVerifier(keys, settings.signature, secrets);
    this.hasChallenge = settings.signature !== null && schemeOf(settings.signature)?.hasChallenge === true;
    this.deliveryIdOf = deliveryIdOf(connector);
    const { enabled, maxAgeMs, maxCount } = settings.deduplication;
    this.deduplication = enabled
      ? new Deduplication({ store, clock, ids, stream: deliveriesStream(connectorId), maxAgeMs, maxCount })
      : null;
    this.rejections = parts.rejections;
    this.#pipeline = new Pipeline({
      store,
      clock,
      limits,
      budget,
      deduplication: this.deduplication,
      authorize: ({ stream, authorize }) => listedAuthorize(access, connectorId, stream, authorize),
    });
  }

  /** Logs what is allowed and yet perhaps not meant, once. */
  warnOnce(warning: string): void {
    if (this.warned.has(warning)) return;
    this.warned.add(warning);
    this.#parts.log.warn(
      'a call of a webhook connector deserves a warning, which is not repeated until it starts again',
      { connectorId: this.connector.connectorId, warning },
    );
  }

  get isStopping(): boolean {
    return this.#pipeline.isStopping;
  }

  /** What is becoming of this delivery, where it is under way. */
  attemptOf(eventId: string): Promise<Admission> | null {
    return this.#attempts.get(eventId) ?? null;
  }

  /** Lets other calls of this delivery share in the attempt, until the memory of deliveries knows what came of it. */
  share(eventId: string, attempt: Promise<Admission>): Promise<Admission> {
    this.#attempts.set(eventId, attempt);
    const forget = () => {
      this.#attempts.delete(eventId);
    };
    attempt.then((admission) => (admission.kind === 'accepted' ? admission.written.then(forget) : forget()), forget);
    return attempt;
  }

  /** Null: full, or stopping. Losses are noted, whether or not a caller waits for the outcome. */
  accept(delivery: Delivery, headerNames: readonly string[]): Promise<WriteOutcome> | null {
    const written = this.#pipeline.accept(delivery);
    if (written !== null) background(written.then((outcome) => this.#noteLoss(delivery, headerNames, outcome)));
    return written;
  }

  #noteLoss({ deliveryId }: Delivery, headerNames: readonly string[], outcome: WriteOutcome): void {
    // Another member decides what was refused because this one leads no more.
    if (outcome.kind === 'written' || (outcome.kind === 'failed' && outcome.code === 'not_leader')) return;
    const { connectorId, settings } = this.connector;
    this.#parts.meter.count(LOSSES, 1, { connector: connectorId });
    const reason =
      outcome.kind === 'failed'
        ? outcome.reason
        : 'The connector stopped before the write was confirmed. The event may have been written.';
    this.rejections.lost({
      status: settings.waitForWrite ? confirmed(outcome).status : 202,
      code: outcome.kind === 'failed' ? outcome.code : outcome.kind,
      reason,
      headerNames,
      deliveryId,
    });
  }

  /** Takes nothing more, writes what was accepted, and notes what was lost; within twice the limit. */
  drain(): Promise<void> {
    this.#draining ??= this.#drain();
    return this.#draining;
  }

  async #drain(): Promise<void> {
    const { clock, limits } = this.#parts;
    await this.#pipeline.drain();
    const noted = new AbortController();
    await Promise.race([this.rejections.idle(), clock.sleep(limits.drainMs, noted.signal)]);
    noted.abort();
  }
}

/** How calls end. */

/** As the metric names it. */
type CallOutcome =
  | 'accepted'
  | 'written'
  | 'duplicate'
  | 'challenge'
  | 'refused-type'
  | 'refused-body'
  | 'refused-signature'
  | 'refused-json'
  | 'skipped'
  | 'script-failed'
  | 'script-timed-out'
  | 'script-unavailable'
  | 'refused-route'
  | 'refused-stream'
  | 'stream-deleted'
  | 'full'
  | 'stopping'
  | 'write-failed'
  | 'write-timed-out'
  | 'client-gone'
  | 'not-active'
  | 'failed';

/** What a call is answered. */
export interface Verdict {
  readonly status: IngestStatus;
  readonly outcome: CallOutcome;
  /** For people; null where there is nothing to explain, or where it is noted elsewhere. */
  readonly reason: string | null;
  /** What the sender wants to be answered. */
  readonly text?: string;
}

/** Whether a call may go on to its event. */
export type Admission =
  /** Its event has been written before. */
  | { readonly kind: 'known' }
  | { readonly kind: 'accepted'; readonly written: Promise<WriteOutcome> }
  | { readonly kind: 'refused'; readonly verdict: Verdict }
  /** The script wants nothing of it. */
  | { readonly kind: 'skipped' };

export function refused(status: IngestStatus, outcome: CallOutcome, reason: string): Admission {
  return { kind: 'refused', verdict: { status, outcome, reason } };
}

/** What a script that routed nothing means for its call. */
export function refusedByScript(result: Exclude<RoutingResult, { readonly kind: 'routed' }>): Admission {
  switch (result.kind) {
    case 'skipped':
      return { kind: 'skipped' };
    case 'failed':
      return refused(500, 'script-failed', result.reason);
    case 'timed-out':
      return refused(500, 'script-timed-out', result.reason);
    case 'unavailable':
      return refused(503, 'script-unavailable', result.reason);
  }
}

export const NOT_ACTIVE: Verdict = { status: 404, outcome: 'not-active', reason: null };
export const ACCEPTED: Verdict = { status: 202, outcome: 'accepted', reason: null };
export const STOPPING: Verdict = { status: 503, outcome: 'stopping', reason: 'The connector is stopping.' };
export const FULL: Verdict = { status: 503, outcome: 'full', reason: 'Too many accepted calls wait to be written.' };
export const CLIENT_GONE: Verdict = { status: 503, outcome: 'client-gone', reason: null };

/** The answer to a caller that waited for the write. Losses are noted where they happen. */
export function confirmed(outcome: WriteOutcome): Verdict {
  switch (outcome.kind) {
    case 'written':
      return { status: 201, outcome: 'written', reason: null };
    case 'stopped':
      return { status: 503, outcome: 'stopping', reason: null };
    case 'failed':
      // Nothing is wrong with script or server. Not 410, by which some senders take the whole address for gone.
      if (outcome.code === 'stream_deleted') return { status: 422, outcome: 'stream-deleted', reason: null };
      return {
        status: outcome.isPassing ? 503 : 500,
        // The list changed between the question and the write's turn.
        outcome: outcome.code === 'access_denied' ? 'refused-stream' : 'write-failed',
        reason: null,
      };
  }
}

/** Calls by connector and outcome. */
export const CALLS = 'eventstore_webhook_calls_total';
/** From the arrival of a call at the connector to its answer. */
export const CALL_DURATION = 'eventstore_webhook_call_duration_seconds';
/** Which secret a signature was made with. */
export const SECRET_MATCHES = 'eventstore_webhook_secret_matches_total';
/** Accepted calls whose events were not written. */
const LOSSES = 'eventstore_webhook_losses_total';
