import { SkuaError } from '../base/errors.ts';
import type { Authorize } from '../streams/api.ts';
export type { ArrivalLimits } from './arrivals/arrivals.ts';

/** What the webhook source offers to handlers and commands. */

export type ConnectorState =
  | 'CONNECTOR_STATE_ACTIVATING'
  | 'CONNECTOR_STATE_RUNNING'
  | 'CONNECTOR_STATE_DEACTIVATING'
  | 'CONNECTOR_STATE_STOPPED';

/**
 * Flat settings: nested names joined with `:`, lists as `name:0`. Names compare without regard to case and are shown as
 * `format/settings-shape.ts` spells them.
 */
export type Settings = ReadonlyMap<string, string>;

export interface Connector {
  readonly connectorId: string;
  readonly instanceTypeName: 'webhook-source';
  readonly name: string;
  readonly state: ConnectorState;
  readonly stateUpdatedMs: number;
  /** Secrets are masked. */
  readonly settings: Settings;
  readonly settingsUpdatedMs: number;
  readonly settingsRevision: number;
  readonly createdMs: number;
  readonly updatedMs: number;
  readonly deletedMs: number | null;
  /** Of a connector that a failure stopped. */
  readonly error: { readonly code: number; readonly message: string } | null;
}

/**
 * Management. Errors: `invalid_connector` (data: violations: {field, description}[]), `connector_exists`,
 * `connector_not_found`, `connector_state` (wrong state for the command), `secret_refused` (a secret without a
 * data-protection token).
 */
export interface Connectors {
  /** All of them, deleted ones too, in the order of creation. */
  list(): Promise<readonly Connector[]>;
  get(connectorId: string): Promise<Connector>;
  /** Gives what is allowed and yet worth a warning, in words; so does `reconfigure`. */
  create(connectorId: string, name: string | null, settings: Settings): Promise<readonly string[]>;
  reconfigure(connectorId: string, settings: Settings): Promise<readonly string[]>;
  rename(connectorId: string, name: string): Promise<void>;
  /** `reconfigure` and, unless `name` is null, `rename`: both or neither. */
  update(connectorId: string, name: string | null, settings: Settings): Promise<readonly string[]>;
  start(connectorId: string): Promise<void>;
  /** Resolves when the connector has stopped: what it had accepted is written or recorded as lost. */
  stop(connectorId: string): Promise<void>;
  reset(connectorId: string): Promise<void>;
  delete(connectorId: string): Promise<void>;
  /**
   * Runs the connector's script, or refuses as the ingest would, without writing anything. With `settings` those are
   * tried instead of what is stored, and the connector need not exist.
   */
  test(connectorId: string, input: TestInput, settings?: Settings): Promise<TestResult>;
}

export interface TestInput {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

export interface TestResult {
  readonly outcome: 'routed' | 'skipped' | 'failed' | 'timed-out' | 'unavailable' | 'invalid-json';
  readonly stream: string | null;
  readonly schema: string | null;
  readonly error: string | null;
  readonly durationMs: number;
  /** What is allowed, and yet perhaps not meant; absent where there is nothing. */
  readonly warnings?: readonly string[];
}

/** One call as it arrived, once its content type is known to be JSON. */
export interface InboundCall {
  readonly connectorId: string;
  readonly path: string;
  /** Lower-cased names; several values joined with a comma; empty ones left out. */
  readonly headers: ReadonlyMap<string, string>;
  readonly query: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
  readonly arrivedMs: number;
  /**
   * Of a call that another member of a cluster has passed on: lets its event take its place in the log, while the
   * caller waits for that.
   */
  readonly authorize?: Authorize;
}

/** Statuses of our own, and those that a connector may have chosen for calls that its script skips. */
export type IngestStatus = 200 | 201 | 202 | 204 | 400 | 401 | 404 | 422 | 500 | 503 | 504;

/** A status; or, to a sender that sends a challenge, with the text that it wants back. */
export type IngestAnswer = IngestStatus | { readonly status: IngestStatus; readonly text: string };

export interface WebhookIngest {
  /** Whether a connector with this id takes calls here; otherwise the body is not even read (404). */
  isActive(connectorId: string): boolean | Promise<boolean>;
  /** Whether such a connector runs here and checks the signature of each call. */
  checksSignature?(connectorId: string): boolean | Promise<boolean>;
  /**
   * Signature, JSON, script, pipeline; never rejects. The signal ends the wait for a confirmation when the client goes
   * away; it is asked for where there is such a wait only, since servers make a signal only when asked for one.
   */
  receive(call: InboundCall, signalOf: () => AbortSignal): Promise<IngestAnswer>;
  /**
   * A call was refused before its body was here: too long (413), too slow (408), one too many (503), or of a type that
   * is not taken (415).
   */
  refused?(connectorId: string, status: number, reason: string, headerNames: Iterable<string>): Promise<void>;
}

/** What management gives to the ingest: which connectors run, and what each runs with. */

/** The settings of a webhook source, parsed. Secrets stand in `ActiveConnector` only. */
export interface WebhookSettings {
  /** The script's text, decoded. */
  readonly script: string;
  /** What the sender of a call is answered that the script skips. */
  readonly skippedStatus: SkippedStatus;
  readonly waitForWrite: boolean;
  readonly confirmationTimeoutMs: number;
  /** Null: calls are not signed. */
  readonly signature: SignatureSettings | null;
  /** Lower-cased names, each once. */
  readonly allowedHeaders: readonly string[];
  /**
   * Where the connector may write: names, with `*` at the end for all that begin so; null for every stream that does
   * not begin with `$`.
   */
  readonly streams: readonly string[] | null;
  readonly deduplication: DeduplicationSettings;
  /** Whether calls of this connector may be logged at all. */
  readonly loggingEnabled: boolean;
}

/** 400 is the default; senders that take it for a failure (and show it in red, or try again) get another one. */
export const SKIPPED_STATUSES = [200, 202, 204, 400] as const;
export type SkippedStatus = (typeof SKIPPED_STATUSES)[number];

export interface SignatureSettings {
  /** As configured; names of schemes compare without regard to case. */
  readonly scheme: string;
  readonly timestampToleranceMs: number;
  /** Of the scheme `Generic`; null where nothing is configured. */
  readonly header: string | null;
  readonly prefix: string | null;
  readonly encoding: string | null;
  readonly hash: string | null;
}

export interface DeduplicationSettings {
  readonly enabled: boolean;
  /** Lower-cased name of the header with the delivery's id; null: where the scheme's sender puts it. */
  readonly header: string | null;
  /** How long ids are remembered, whole seconds. */
  readonly maxAgeMs: number;
  /** How many ids are remembered. */
  readonly maxCount: number;
}

/** A running connector. The same object as long as the same activation runs. */
export interface ActiveConnector {
  readonly connectorId: string;
  /** Number of the event in the connector's stream with which it was started: another start, another number. */
  readonly activation: number;
  /** Number of the event that created it: a connector deleted and created again is another one. */
  readonly incarnation: number;
  /** Revision of the settings that it runs with. */
  readonly revision: number;
  readonly settings: WebhookSettings;
  /** `signature:secret` first, then `signature:secrets:0` and on; none without a signature. */
  readonly secrets: readonly string[];
}

/**
 * Writes what was accepted for a connector, or records it as lost, and takes nothing more for it; bounded in time by
 * itself.
 */
export type Drain = (connector: ActiveConnector) => Promise<void>;

export interface ActiveConnectors {
  /**
   * The running connector of this id; at once where the store knows without reading that its stream has not changed.
   * Null for every other id, whatever it looks like.
   */
  activeOf(connectorId: string): ActiveConnector | null | Promise<ActiveConnector | null>;
  /** Has `drain` called with a connector that runs no more, before it counts as stopped. */
  onStop(drain: Drain): void;
}

/** A setting, or another field of a request, and what is wrong with it. Never holds a secret. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

export function invalidConnector(violations: readonly Violation[]): SkuaError {
  const text = violations.map(({ field, description }) => `${field}: ${description}`).join(' ');
  return new SkuaError('invalid_connector', `The connector was refused. ${text}`, { violations });
}

/** Most secrets of one connector. */
export const SECRETS_MAX = 10;
/** UTF-8 bytes of a routing script. */
export const SCRIPT_BYTES_MAX = 131_072;
