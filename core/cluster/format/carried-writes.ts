import { SkuaError } from '../../base/errors.ts';
import type { ErrorCode } from '../../base/errors.ts';
import type { AppendCondition, StoreWrite, StreamCheck, StreamWrite, UnchangedStream } from '../../streams/api.ts';
import { decodeText, encodeText } from '../../base/text.ts';

/** What one member sends another to be written, as values: POST `/cluster/append`. */

/**
 * For whom something is written, and what the leader asks before: the lists of the streams, that he is an
 * administrator, or nothing but who he is.
 */
export interface Writer {
  readonly name: string | null;
  /** His groups as the member found them; null for a user of the cluster's own, whom the leader looks up. */
  readonly roles: readonly string[] | null;
  readonly asks: 'list' | 'administrators' | 'nothing';
}

/** A `StoreWrite` with what stands for `authorize` there. */
export interface CarriedWrite extends Pick<StoreWrite, 'kind' | 'isRepeatable' | 'condition'> {
  readonly by: Writer;
  readonly writes: readonly Omit<StreamWrite, 'authorize'>[];
  /** `isAsked`: the caller must be allowed to write to that stream to know of it. */
  readonly checks: readonly (Omit<StreamCheck, 'authorize'> & { readonly isAsked: boolean })[];
  /** What must not have been written to meanwhile. */
  readonly unchanged: readonly UnchangedStream[];
  /**
   * When it had arrived as a whole, or earlier, by the wall clock of the member that it is sent to, as far as the
   * sender knows that clock; null where it does not.
   */
  readonly atMs: number | null;
}

/** What became of one of them: a result of the store, an error, or null where nothing was decided. */
export type WriteOutcome =
  | { readonly result: unknown }
  | {
      readonly error: {
        readonly code: ErrorCode | null;
        readonly message: string;
        readonly data: Record<string, unknown>;
      };
    }
  | null;

/**
 * Bytes of the length of the JSON text, which stands first; behind it are data and metadata of all events, one behind
 * the other.
 */
const LENGTH_BYTES = 4;
const NONE: readonly [] = [];

/** Id, type, whether it is JSON, and how many bytes of data and metadata it has. */
type EventFields = readonly [id: string, type: string, isJson: 0 | 1, dataBytes: number, metadataBytes: number];

interface WriteFields extends Omit<CarriedWrite, 'writes' | 'checks' | 'unchanged'> {
  readonly writes: readonly (readonly [stream: string, expectedVersion: number, events: readonly EventFields[]])[];
  readonly checks?: CarriedWrite['checks'];
  readonly unchanged?: CarriedWrite['unchanged'];
}

/** Writes that are sent together, in their order, in one epoch. */
export function formatWrites(epoch: number, writes: readonly CarriedWrite[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  const add = (part: Uint8Array): number => {
    if (part.length > 0) parts.push(part);
    bytes += part.length;
    return part.length;
  };
  const fields = writes.map(({ writes: streams, checks, unchanged, ...rest }): WriteFields => ({
    ...rest,
    ...(checks.length > 0 && { checks }),
    ...(unchanged.length > 0 && { unchanged }),
    writes: streams.map(({ stream, expectedVersion, events }) => [
      stream,
      expectedVersion,
      events.map(({ id, type, isJson, data, metadata }): EventFields => [
        id,
        type,
        isJson ? 1 : 0,
        add(data),
        add(metadata),
      ]),
    ]),
  }));
  const text = encodeText(JSON.stringify({ epoch, writes: fields }));
  const body = new Uint8Array(LENGTH_BYTES + text.length + bytes);
  new DataView(body.buffer).setUint32(0, text.length);
  body.set(text, LENGTH_BYTES);
  let at = LENGTH_BYTES + text.length;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

/** What another member sent. Names, ids and types are checked where they are written. Errors: `bad_request`. */
export function readWrites(body: Uint8Array): { readonly epoch: number; readonly writes: readonly CarriedWrite[] } {
  try {
    const textEnd = LENGTH_BYTES + new DataView(body.buffer, body.byteOffset, body.length).getUint32(0);
    const { epoch, writes } = JSON.parse(decodeText(body.subarray(LENGTH_BYTES, textEnd))) as {
      readonly epoch: number;
      readonly writes: readonly WriteFields[];
    };
    let at = textEnd;
    const take = (bytes: number): Uint8Array => {
      const end = at + bytes;
      if (!(end >= at && end <= body.length)) throw invalid();
      const part = body.subarray(at, end);
      at = end;
      return part;
    };
    const carried = writes.map(({ writes: streams, checks = NONE, unchanged = NONE, ...rest }): CarriedWrite => ({
      ...rest,
      checks,
      unchanged,
      writes: streams.map(([stream, expectedVersion, events]) => ({
        stream,
        expectedVersion,
        events: events.map(([id, type, isJson, data, metadata]) => ({
          id,
          type,
          isJson: isJson === 1,
          data: take(data),
          metadata: take(metadata),
        })),
      })),
    }));
    if (at !== body.length || !Number.isSafeInteger(epoch) || !carried.every(isSound)) throw invalid();
    return { epoch, writes: carried };
  } catch (error) {
    throw error instanceof SkuaError ? error : invalid();
  }
}

const KINDS: ReadonlySet<unknown> = new Set(['append', 'streams', 'conditional', 'soft', 'hard']);
const ASKS: ReadonlySet<unknown> = new Set(['list', 'administrators', 'nothing']);

/** Who may do what must not depend on what is no value of its type. */
function isSound({
  by: { name, roles, asks },
  kind,
  writes,
  checks,
  isRepeatable,
  unchanged,
  atMs,
  condition,
}: CarriedWrite): boolean {
  return (
    (name === null || typeof name === 'string') &&
    (roles === null ? name !== null : Array.isArray(roles) && roles.every((role) => typeof role === 'string')) &&
    ASKS.has(asks) &&
    KINDS.has(kind) &&
    typeof isRepeatable === 'boolean' &&
    (atMs === null || Number.isFinite(atMs)) &&
    (kind === 'streams' || kind === 'conditional' || writes.length === 1) &&
    (kind === 'conditional') === (condition !== undefined) &&
    (condition === undefined || isCondition(condition)) &&
    writes.every(
      ({ stream, expectedVersion, events }) =>
        typeof stream === 'string' &&
        Number.isSafeInteger(expectedVersion) &&
        events.every(({ id, type }) => typeof id === 'string' && typeof type === 'string'),
    ) &&
    checks.every(
      ({ stream, expectedVersion, isAsked }) =>
        typeof stream === 'string' && Number.isSafeInteger(expectedVersion) && typeof isAsked === 'boolean',
    ) &&
    unchanged.every(
      ({ stream, lastEventNumber, metadataVersion }) =>
        typeof stream === 'string' && Number.isSafeInteger(lastEventNumber) && Number.isSafeInteger(metadataVersion),
    )
  );
}

/** Its limits are looked at where it is decided. */
function isCondition({ failIfEventsMatch, after }: AppendCondition): boolean {
  const isTexts = (texts: unknown): boolean =>
    texts === undefined || (Array.isArray(texts) && texts.every((text) => typeof text === 'string'));
  return (
    (after === undefined || Number.isSafeInteger(after)) &&
    Array.isArray(failIfEventsMatch.items) &&
    failIfEventsMatch.items.every(({ types, tags }) => isTexts(types) && isTexts(tags))
  );
}

function invalid(): SkuaError {
  return new SkuaError('bad_request', 'These are no writes of a member.');
}

/** What the leader answers: where its log ended by then, and what became of each write. */
export function formatOutcomes(logEnd: number, outcomes: readonly WriteOutcome[]): string {
  return JSON.stringify({ logEnd, outcomes });
}

/** Throws for what is no answer to so many writes. */
export function readOutcomes(
  body: Uint8Array,
  count: number,
): { readonly logEnd: number; readonly outcomes: readonly WriteOutcome[] } {
  const { logEnd, outcomes } = JSON.parse(decodeText(body)) as {
    readonly logEnd: number;
    readonly outcomes: readonly WriteOutcome[];
  };
  if (!Number.isSafeInteger(logEnd) || !Array.isArray(outcomes) || outcomes.length !== count)
    throw new Error('it answers other writes');
  return { logEnd, outcomes };
}

export function outcomeOf(error: unknown): WriteOutcome {
  return {
    error:
      error instanceof SkuaError
        ? { code: error.code, message: error.message, data: { ...error.data } }
        : { code: null, message: String(error), data: {} },
  };
}

/** The error that another member told of. */
export function errorOf({
  code,
  message,
  data,
}: {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly data: Record<string, unknown>;
}): Error {
  return code === null
    ? new Error(`The leader could not decide a write: ${message}`)
    : new SkuaError(code, message, data);
}
