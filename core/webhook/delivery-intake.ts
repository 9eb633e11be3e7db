import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Keys } from '../ports/keys.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import type { EventStore } from '../streams/api.ts';
import { deliveriesStream } from './active.ts';
import type { ActiveConnector } from './active.ts';
import { Deduplication } from './deduplication.ts';
import { deliveryIdOf } from './delivery-id.ts';
import type { DeliveryIdOf } from './delivery-id.ts';
import type { Delivery } from './delivery-item.ts';
import { confirmed, LOSSES } from './delivery-outcome.ts';
import type { Admission } from './delivery-outcome.ts';
import { Pipeline } from './pipeline.ts';
import type { ByteBudget, PipelineLimits, WriteOutcome } from './pipeline.ts';
import type { Rejections } from './rejections.ts';
import { createSignatureVerifier } from './signatures.ts';
import type { SignatureVerifier } from './signatures.ts';

export interface IntakeParts {
  readonly store: EventStore;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  readonly limits: PipelineLimits;
  /** Of what is accepted, for all connectors. */
  readonly budget: ByteBudget;
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
  readonly rejections: Rejections;
  readonly #parts: IntakeParts;
  readonly #pipeline: Pipeline;
  /** Deliveries under way, by event id. */
  readonly #attempts = new Map<string, Promise<Admission>>();
  #draining: Promise<void> | null = null;

  constructor(connector: ActiveConnector, parts: IntakeParts) {
    const { connectorId, settings, secrets } = connector;
    const { store, keys, clock, ids, log, limits, budget } = parts;
    this.connector = connector;
    this.#parts = parts;
    this.verifier = settings.signature === null ? null : createSignatureVerifier(keys, settings.signature, secrets);
    this.deliveryIdOf = deliveryIdOf(connector);
    const { enabled, maxAgeMs, maxCount } = settings.deduplication;
    this.deduplication = enabled ? new Deduplication({ store, clock, ids, stream: deliveriesStream(connectorId), maxAgeMs, maxCount }) : null;
    this.rejections = parts.rejections;
    this.#pipeline = new Pipeline({
      store, clock, limits, budget, deduplication: this.deduplication,
      onWithdrawalFailed: (error) => log.warn('the note of a refused delivery could not be withdrawn: it will be looked for in its stream when it comes again', { connectorId, error: String(error) }),
    });
  }

  get isStopping(): boolean { return this.#pipeline.isStopping; }

  /** What is becoming of this delivery, where it is under way. */
  attemptOf(eventId: string): Promise<Admission> | null {
    return this.#attempts.get(eventId) ?? null;
  }

  /** Lets other calls of this delivery share in the attempt, until the memory of deliveries knows what came of it. */
  share(eventId: string, attempt: Promise<Admission>): Promise<Admission> {
    this.#attempts.set(eventId, attempt);
    const forget = () => { this.#attempts.delete(eventId); };
    attempt.then((admission) => (admission.kind === 'accepted' ? admission.written.then(forget) : forget()), forget);
    return attempt;
  }

  /** Null: full, or stopping. Losses are noted, whoever waits for the outcome. */
  accept(delivery: Delivery, headerNames: readonly string[]): Promise<WriteOutcome> | null {
    const written = this.#pipeline.accept(delivery);
    if (written !== null) void written.then((outcome) => this.#noteLoss(delivery, headerNames, outcome));
    return written;
  }

  #noteLoss({ deliveryId }: Delivery, headerNames: readonly string[], outcome: WriteOutcome): void {
    if (outcome.kind === 'written') return;
    const { connectorId, settings } = this.connector;
    this.#parts.meter.count(LOSSES, 1, { connector: connectorId });
    const reason = outcome.kind === 'failed' ? outcome.reason : 'The connector stopped before the event was seen to be written. It may be there.';
    this.rejections.lost({ status: settings.waitForWrite ? confirmed(outcome).status : 202, reason, headerNames, deliveryId });
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
