import { isSkuaError } from '../../base/errors.ts';
import { SharedLimit } from '../../base/shared-limit.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Keys } from '../../ports/keys.ts';
import type { Log } from '../../ports/log.ts';
import type { Meter } from '../../ports/meter.ts';
import type { RoutingSandbox } from '../../ports/routing-sandbox.ts';
import type { EventStore } from '../../streams/api.ts';
import { rejectionsStream } from '../format/stream-names.ts';
import type { ActiveConnector, ActiveConnectors, InboundCall, IngestAnswer, WebhookIngest } from '../api.ts';
import { challengeOf } from './challenge.ts';
import { deliveryEventId, uuidText } from './delivery.ts';
import {
  ACCEPTED,
  CALL_DURATION,
  CALLS,
  CLIENT_GONE,
  confirmed,
  FULL,
  Intake,
  NOT_ACTIVE,
  refused,
  refusedByScript,
  SECRET_MATCHES,
  STOPPING,
} from './call-intake.ts';
import type { Admission, Verdict } from './call-intake.ts';
import type { Delivery } from './delivery.ts';
import { PIPELINE_LIMITS } from './pipeline.ts';
import type { PipelineLimits, WriteOutcome } from './pipeline.ts';
import { HEADER_NAMES_MAX, Rejections, withoutValues } from './rejections.ts';
import {
  DEFAULT_TYPE,
  hasLongInteger,
  INTEGER_WARNING,
  isJsonBody,
  metadataOf,
  refusalOfEvent,
  refusalOfStream,
  routingRequestJson,
  TYPE_WARNING,
} from '../routing/routing.ts';
import { refusalOfList } from '../writer.ts';
import type { ListedAccess } from '../writer.ts';
import { background } from '../../base/background.ts';

/**
 * Takes the calls of senders. In this order: signature (401), JSON (400), whether it is a question (200), a delivery
 * that is known already, script (400, 500, 503), stream and schema (500), pipeline (503), and the wait for the write
 * where the connector asks for it (201, 503, 504).
 */

interface IngestParts {
  readonly active: ActiveConnectors;
  readonly sandbox: RoutingSandbox;
  readonly store: EventStore;
  /** The access lists, in which the connectors are callers as others; null while security is off. */
  readonly access: ListedAccess;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  readonly limits?: Partial<IngestLimits>;
}

export interface IngestLimits extends PipelineLimits {
  /** Bytes of accepted calls of all connectors that are not yet written. */
  readonly acceptedBytesMax: number;
  /** Bytes of bodies of calls that are being judged. */
  readonly judgedBytesMax: number;
}

const INGEST_LIMITS: IngestLimits = { ...PIPELINE_LIMITS, acceptedBytesMax: 134_217_728, judgedBytesMax: 134_217_728 };

export interface Ingest extends WebhookIngest {
  /** A call was refused before its body was here: too long, too slow, one too many, or of another type. */
  refused(connectorId: string, status: number, reason: string, headerNames: Iterable<string>): Promise<void>;
  /** Takes no more calls, and writes what was accepted or notes it as lost. */
  close(): Promise<void>;
}

export function createIngest(parts: IngestParts): Ingest {
  return new WebhookCalls(parts);
}

class WebhookCalls implements Ingest {
  readonly #parts: IngestParts;
  readonly #limits: IngestLimits;
  readonly #accepted: SharedLimit;
  readonly #judged: SharedLimit;
  readonly #intakes = new Map<string, Intake>();
  /** By connector, over all of its activations: how many are noted a minute does not depend on how often it starts. */
  readonly #rejections = new Map<string, Rejections>();
  /** The last activation of each connector that has stopped here. */
  readonly #stopped = new Map<string, number>();
  #isClosing = false;

  constructor(parts: IngestParts) {
    this.#parts = parts;
    this.#limits = { ...INGEST_LIMITS, ...parts.limits };
    this.#accepted = new SharedLimit(this.#limits.acceptedBytesMax, { reserve: 0 });
    this.#judged = new SharedLimit(this.#limits.judgedBytesMax, { reserve: 0 });
    parts.active.onStop((connector) => this.#stop(connector));
  }

  isActive(connectorId: string): boolean | Promise<boolean> {
    const connector = this.#parts.active.activeOf(connectorId);
    return connector instanceof Promise ? connector.then((found) => found !== null) : connector !== null;
  }

  async checksSignature(connectorId: string): Promise<boolean> {
    return (await this.#parts.active.activeOf(connectorId))?.settings.signature != null;
  }

  async receive(call: InboundCall, signalOf: () => AbortSignal): Promise<IngestAnswer> {
    const { clock, meter } = this.#parts;
    const startMs = clock.monotonicMs();
    let intake: Intake | null = null;
    let verdict: Verdict;
    try {
      const connector = await this.#parts.active.activeOf(call.connectorId);
      intake = connector === null ? null : this.#intakeOf(connector);
      verdict =
        intake !== null ? await this.#admitted(intake, call, signalOf) : connector === null ? NOT_ACTIVE : STOPPING;
    } catch (error) {
      verdict = this.#failed(call, error);
    }
    // Ids of connectors that were never created are no labels.
    const connector = intake === null ? '' : call.connectorId;
    meter.count(CALLS, 1, { connector, outcome: verdict.outcome });
    meter.observe(CALL_DURATION, (clock.monotonicMs() - startMs) / 1_000, { connector });
    if (intake !== null && verdict.reason !== null) this.#note(intake, call, verdict.status, verdict.reason);
    return verdict.text === undefined ? verdict.status : { status: verdict.status, text: verdict.text };
  }

  #rejectionsOf(connectorId: string): Rejections {
    let rejections = this.#rejections.get(connectorId);
    if (rejections === undefined) {
      rejections = new Rejections({ ...this.#parts, stream: rejectionsStream(connectorId) });
      this.#rejections.set(connectorId, rejections);
    }
    return rejections;
  }

  async #admitted(intake: Intake, call: InboundCall, signalOf: () => AbortSignal): Promise<Verdict> {
    const bytes = call.body.length;
    if (!this.#judged.tryTake(null, bytes)) return FULL;
    try {
      return await this.#judge(intake, call, signalOf);
    } finally {
      this.#judged.giveBack(null, bytes);
    }
  }

  async refused(connectorId: string, status: number, reason: string, headerNames: Iterable<string>): Promise<void> {
    const connector = await this.#parts.active.activeOf(connectorId);
    const intake = connector === null ? null : this.#intakeOf(connector);
    this.#parts.meter.count(CALLS, 1, {
      connector: intake === null ? '' : connectorId,
      outcome: status === 415 ? 'refused-type' : 'refused-body',
    });
    intake?.rejections.note(() => ({ status, reason, headerNames, deliveryId: null }));
  }

  #failed({ connectorId }: InboundCall, error: unknown): Verdict {
    // What store and sandbox refuse passes: the sender may try again. Anything else is a fault of ours.
    if (isSkuaError(error)) return { status: 503, outcome: 'failed', reason: `${error.code}: ${error.message}` };
    this.#parts.log.error('a webhook call failed', { connectorId, error });
    return { status: 500, outcome: 'failed', reason: 'The call failed inside the server. See its log for the reason.' };
  }

  #note({ connector, rejections, deliveryIdOf }: Intake, call: InboundCall, status: number, reason: string): void {
    const { connectorId, secrets, settings } = connector;
    rejections.note(() => {
      const shown = withoutValues(reason, [...secrets, ...call.headers.values()]);
      if (settings.loggingEnabled)
        this.#parts.log.warn('a webhook call was refused', { connectorId, status, reason: shown });
      return {
        status,
        reason: shown,
        headerNames: call.headers.keys(),
        deliveryId: status === 401 ? null : idOf(deliveryIdOf, call),
      };
    });
  }

  /** Null once this activation has stopped. */
  #intakeOf(connector: ActiveConnector): Intake | null {
    const { connectorId, activation } = connector;
    if (this.#isClosing || activation <= (this.#stopped.get(connectorId) ?? -1)) return null;
    const known = this.#intakes.get(connectorId);
    if (known !== undefined && known.connector.activation >= activation)
      return known.connector.activation === activation ? known : null;
    const intake = new Intake(connector, {
      ...this.#parts,
      limits: this.#limits,
      budget: this.#accepted,
      rejections: this.#rejectionsOf(connector.connectorId),
    });
    this.#intakes.set(connectorId, intake);
    // Stopped and started again by another instance.
    if (known !== undefined) background(known.drain());
    return intake;
  }

  async #stop({ connectorId, activation }: ActiveConnector): Promise<void> {
    this.#stopped.set(connectorId, Math.max(activation, this.#stopped.get(connectorId) ?? -1));
    const intake = this.#intakes.get(connectorId);
    if (intake !== undefined && intake.connector.activation > activation) return;
    await intake?.drain();
    if (this.#intakes.get(connectorId) === intake) this.#intakes.delete(connectorId);
    this.#parts.sandbox.release(connectorId);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#intakes.values()].map((intake) => intake.drain()));
  }

  async #judge(intake: Intake, call: InboundCall, signalOf: () => AbortSignal): Promise<Verdict> {
    const { connector, verifier } = intake;
    const signature = verifier?.verify(call.headers, call.body, call.arrivedMs) ?? null;
    if (signature?.kind === 'refused')
      return { status: 401, outcome: 'refused-signature', reason: `${signature.reason} (${signature.header})` };
    if (signature !== null)
      this.#parts.meter.count(SECRET_MATCHES, 1, {
        connector: call.connectorId,
        secret: String(signature.secretIndex),
      });
    const text = textOf(call.body);
    if (text === null)
      return {
        status: 400,
        outcome: 'refused-json',
        reason: 'The body is empty, not JSON in UTF-8, or nested too deeply.',
      };
    const challenge = intake.hasChallenge ? challengeOf(text) : null;
    if (challenge !== null) return { status: 200, outcome: 'challenge', reason: null, text: challenge };
    const deliveryId = intake.deliveryIdOf?.(call.headers, text) ?? null;
    if (deliveryId === null)
      return this.#answer(
        connector,
        await this.#admit(intake, call, text, null, uuidText(this.#parts.ids.uuidBytes())),
        signalOf,
      );
    // Calls of one delivery that come while it is under way share what becomes of the first.
    const eventId = deliveryEventId(this.#parts.keys, connector, deliveryId);
    const attempt = intake.attemptOf(eventId);
    const verdict = await this.#answer(
      connector,
      await (attempt ?? intake.share(eventId, this.#admit(intake, call, text, deliveryId, eventId))),
      signalOf,
    );
    return attempt !== null && verdict.status < 300 && verdict.outcome !== 'skipped'
      ? { ...verdict, outcome: 'duplicate' }
      : verdict;
  }

  async #admit(
    intake: Intake,
    call: InboundCall,
    text: string,
    deliveryId: string | null,
    eventId: string,
  ): Promise<Admission> {
    const { connector, deduplication } = intake;
    const delivery: Delivery = {
      deliveryId,
      eventId,
      data: call.body,
      metadata: metadataOf(connector.settings.allowedHeaders, call.headers),
      authorize: connector.settings.waitForWrite ? (call.authorize ?? null) : null,
      stream: '',
      type: '',
    };
    if (deliveryId !== null && deduplication !== null && (await deduplication.isWritten(delivery)))
      return { kind: 'known' };
    if (delivery.stream === '') {
      const refusal = await this.#route(intake, call, text, delivery);
      if (refusal !== null) return refusal;
    }
    // A note of an earlier version counts for the script, and not for what the connector may do today.
    const forbidden =
      refusalOfStream(delivery.stream, connector.settings.streams) ??
      (await refusalOfList(this.#parts.access, connector.connectorId, delivery.stream));
    if (forbidden !== null) return refused(500, 'refused-stream', forbidden);
    const written = intake.accept(delivery, namesOf(call));
    return written === null
      ? { kind: 'refused', verdict: intake.isStopping ? STOPPING : FULL }
      : { kind: 'accepted', written };
  }

  /** Lets the script name stream and type; the refusal if it does not. */
  async #route(intake: Intake, call: InboundCall, text: string, delivery: Delivery): Promise<Admission | null> {
    const {
      connectorId,
      settings: { script },
    } = intake.connector;
    if (!intake.warned.has(INTEGER_WARNING) && hasLongInteger(text)) intake.warnOnce(INTEGER_WARNING);
    const result = await this.#parts.sandbox.route({
      connectorId,
      script,
      requestJson: routingRequestJson(text, call.headers, call.path, call.query),
      bodyLength: text.length,
      nowMs: Math.floor(call.arrivedMs),
      seed: seedOf(this.#parts.ids),
    });
    if (result.kind !== 'routed') return refusedByScript(result);
    const { stream, schema } = result;
    if (result.hasType === true) intake.warnOnce(TYPE_WARNING);
    const refusal = refusalOfEvent(stream, schema, delivery.data.length + delivery.metadata.length);
    if (refusal !== null) return refused(500, 'refused-route', refusal);
    delivery.stream = stream;
    delivery.type = schema ?? DEFAULT_TYPE;
    return null;
  }

  #answer(
    { settings }: ActiveConnector,
    admission: Admission,
    signalOf: () => AbortSignal,
  ): Verdict | Promise<Verdict> {
    switch (admission.kind) {
      case 'refused':
        return admission.verdict;
      // As the connector wants it, and so nothing to report.
      case 'skipped':
        return { status: settings.skippedStatus, outcome: 'skipped', reason: null };
      case 'known':
        return { status: settings.waitForWrite ? 201 : 202, outcome: 'duplicate', reason: null };
      case 'accepted':
        return settings.waitForWrite
          ? this.#confirm(admission.written, settings.confirmationTimeoutMs, signalOf())
          : ACCEPTED;
    }
  }

  async #confirm(written: Promise<WriteOutcome>, timeoutMs: number, signal: AbortSignal): Promise<Verdict> {
    const over = new AbortController();
    const end = () => over.abort(OVER);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end);
    const outcome = await Promise.race([written, this.#parts.clock.sleep(timeoutMs, over.signal)]);
    signal.removeEventListener('abort', end);
    end();
    if (outcome !== undefined) return confirmed(outcome);
    return signal.aborted
      ? CLIENT_GONE
      : {
          status: 504,
          outcome: 'write-timed-out',
          reason: `The event was not written within ${timeoutMs / 1_000} s. It may still be written.`,
        };
  }
}

/** Without a reason an error is made for each wait, with all that belongs to one. Nothing reads that error. */
const OVER = 'over';

/** A byte order mark is no JSON (RFC 8259, 8.1), so it is left for the parser to refuse. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The body as text; null where it is not acceptable. */
function textOf(body: Uint8Array): string | null {
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    return null;
  }
  return isJsonBody(text) ? text : null;
}

/** The delivery's id for the note of a refused call, as far as headers hold it. */
function idOf(deliveryIdOf: Intake['deliveryIdOf'], call: InboundCall): string | null {
  const text = textOf(call.body);
  return text === null ? null : (deliveryIdOf?.(call.headers, text) ?? null);
}

/** As many as a note can hold. */
function namesOf({ headers }: InboundCall): readonly string[] {
  const names: string[] = [];
  for (const name of headers.keys()) if (names.push(name) === HEADER_NAMES_MAX) break;
  return names;
}

/** 32 random bits. */
function seedOf(ids: Ids): number {
  const bytes = ids.uuidBytes();
  return (bytes[0]! | (bytes[1]! << 8) | (bytes[2]! << 16) | (bytes[3]! << 24)) >>> 0;
}
