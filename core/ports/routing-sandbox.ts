/**
 * Runs users' routing scripts where they can do no harm: text in, text out, under limits of time, memory, stack and
 * output. A call never sees another call's state and nothing of the host: to a script it is as if its top level were
 * run anew for each call. What comes of a call follows from the script, the request, the time and the seed alone.
 */
export interface RoutingSandbox {
  /**
   * Syntax, top-level evaluation within the limit, and whether `route` is there. Null when all is well, else the reason
   * for people.
   */
  check(script: string): Promise<string | null>;
  /** Runs `route(request)`. Never rejects, but with `aborted` after `close`. */
  route(call: RoutingCall): Promise<RoutingResult>;
  /** Lets go of what was prepared for a connector that stopped or has another script now. */
  release(connectorId: string): void;
  close(): Promise<void>;
}

export interface RoutingCall {
  /** Calls of one connector never take more than one worker. */
  readonly connectorId: string;
  readonly script: string;
  /**
   * `{"body":…,"headers":…,"path":…,"query":…}`: the argument of `route`, as JSON. The body's text stands in it as
   * received.
   */
  readonly requestJson: string;
  /** Characters of the body's text in it, which a script gets as `request.text`; 0 or absent: it has none. */
  readonly bodyLength?: number;
  /** The present in all its forms (`Date.now()`, `new Date()`, `Date()`), at the top level too. UTC milliseconds. */
  readonly nowMs: number;
  /** Seed of `Math.random`, 32 bits. */
  readonly seed: number;
}

/**
 * What came of a call. `skipped`: null, undefined, or an object whose stream is empty or missing. `failed` covers a
 * throw, a result that is no object, and a stream or schema that is no text; `reason` is for people, at most
 * REASON_LENGTH_MAX characters. The names are not judged here: `$` at the beginning is the ingest's matter. `hasType`:
 * the result has a member `type` of its own and no schema, so that the author of the script may expect an effect that
 * `type` does not have.
 */
export type RoutingResult =
  | {
      readonly kind: 'routed';
      readonly stream: string;
      readonly schema: string | null;
      readonly cpuMs: number;
      readonly hasType?: true;
    }
  | { readonly kind: 'skipped'; readonly cpuMs: number }
  | { readonly kind: 'failed'; readonly reason: string; readonly cpuMs: number }
  | { readonly kind: 'timed-out'; readonly reason: string }
  /** After repeated timeouts, because too many calls wait, or because no thread could be started. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterMs: number };

export const REASON_LENGTH_MAX = 500;

export interface RoutingLimits {
  /** Processor time of one call. */
  readonly timeoutMs: number;
  readonly memoryBytesMax: number;
  /** Of the engine's stack; more than 512 KiB counts as that. */
  readonly stackBytesMax: number;
  /** Characters of stream and schema together. */
  readonly outputLengthMax: number;
  /** Fewer than 2 count as 2. */
  readonly workers: number;
  /** Calls that may wait, over all connectors and of one connector. */
  readonly callsQueuedMax: number;
  readonly connectorCallsQueuedMax: number;
}
