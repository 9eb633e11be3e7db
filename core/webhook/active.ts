import type { Settings } from './api.ts';

/**
 * What the registry gives to the ingest: which connectors run, and what each runs with. The checks of a call that the
 * ingest and the test of a script have in common stand in routing.ts.
 */

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
  /** Where the connector may write: names, with `*` at the end for all that begin so; null for every stream that does not begin with `$`. */
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

/** Writes what was accepted for a connector, or records it as lost, and takes nothing more for it; bounded in time by itself. */
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

/** Checks what the schemes know of: unknown scheme, settings that it lacks or can't use, a secret of the wrong form. */
export type CheckSignature = (signature: SignatureSettings, secrets: readonly string[]) => readonly Violation[];

/** A setting, or another field of a request, and what is wrong with it. Never holds a secret. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

/** Where the deliveries of a connector are remembered. */
export function deliveriesStream(connectorId: string): string {
  return `$webhook-${connectorId}-deliveries`;
}

/** Where refused calls of a connector are noted. */
export function rejectionsStream(connectorId: string): string {
  return `$webhook-${connectorId}-rejections`;
}

/** Most secrets of one connector. */
export const SECRETS_MAX = 10;

export type { Settings };
