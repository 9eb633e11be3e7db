import type { RedactedEvent, RedactOutcome } from '../../core/streams/redact/redact.ts';

/**
 * Documents of redaction as they are sent: types alone, for handlers, the OpenAPI document, the command line and the
 * page.
 */

/** Body of POST `/admin/redact`: numbers of events, or else their ids. */
export interface RedactBody {
  readonly stream: string;
  readonly events?: readonly number[];
  readonly ids?: readonly string[];
  readonly reason: string;
  /** Names that begin with `$` and that are to go, too. */
  readonly metadata?: readonly string[];
}

/** POST `/admin/redact`. */
export interface RedactionDocument extends RedactOutcome {
  /** What is left of the content, and until when; in words. */
  readonly remains: string;
}

export type RedactedEventDocument = RedactedEvent;
