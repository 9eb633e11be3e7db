import { isNestedAtMost, JsonScanner } from '../../base/json-scanner.ts';
import type { Clock } from '../../ports/clock.ts';
import type { RoutingSandbox } from '../../ports/routing-sandbox.ts';
import { EVENT_BYTES_MAX, EVENT_TYPE_LENGTH_MAX } from '../../streams/api.ts';
import { checkWritableName } from '../../streams/format/names.ts';
import { encodeText } from '../../base/text.ts';
import type { WebhookSettings, TestInput, TestResult } from '../api.ts';
import { refusalOfList, shownStream } from '../writer.ts';
import type { ListedAccess } from '../writer.ts';

/** What a call looks like to a routing script, and what the script may answer. */

/** Deepest nesting of objects and arrays in a body. */
const BODY_DEPTH_MAX = 64;

/** Whether the text is one JSON value, nested no deeper than BODY_DEPTH_MAX. */
export function isJsonBody(text: string): boolean {
  try {
    // No parser meets what is too deep for it.
    if (!isNestedAtMost(text, BODY_DEPTH_MAX)) return false;
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** As many digits as the smallest integer has that a number of JavaScript may not hold. */
const LONG = /\d{16}/;
const INTEGER = /^-?\d+$/;

/** Whether a body, which is known to be JSON, has an integer beyond 2^53, of which a script sees the nearest number. */
export function hasLongInteger(text: string): boolean {
  if (!LONG.test(text)) return false;
  const scanner = new JsonScanner(text);
  for (let c = scanner.peek(); !Number.isNaN(c); c = scanner.peek()) {
    const from = scanner.at;
    if (c === 34) scanner.skipString();
    else if (c === 45 || (c >= 48 && c <= 57)) {
      scanner.skipValue();
      const number = text.slice(from, scanner.at);
      if (INTEGER.test(number) && !Number.isSafeInteger(Number(number))) return true;
    } else scanner.at++;
  }
  return false;
}

/** Logged, and returned by a trial, for such a body. */
export const INTEGER_WARNING =
  'The body has an integer beyond 2^53, of which body has the nearest number only: request.text is the body as it was sent, in which a script can find it. The event has it as it was sent.';

/** The argument of `route`, as JSON; `bodyJson` stands in it as it is. */
export function routingRequestJson(
  bodyJson: string,
  headers: Iterable<readonly [string, string]>,
  path: string,
  query: Iterable<readonly [string, string]>,
): string {
  return `{"body":${bodyJson},"headers":${membersJson(headers)},"path":${JSON.stringify(path)},"query":${membersJson(query)}}`;
}

/** Written member by member: an object would take `__proto__` for its prototype and move names made of digits. */
function membersJson(members: Iterable<readonly [string, string]>): string {
  const parts: string[] = [];
  for (const [name, value] of members) parts.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
  return `{${parts.join(',')}}`;
}

/** Whether a setting `streams` allows a stream. */
function isAllowedStream(streams: readonly string[] | null, stream: string): boolean {
  return (
    streams === null ||
    streams.some((each) => (each.endsWith('*') ? stream.startsWith(each.slice(0, -1)) : stream === each))
  );
}

/**
 * Why a connector with this setting may not write to a stream; null when it may. What begins with `$` no setting
 * allows: refusalOfRoute refuses it.
 */
export function refusalOfStream(stream: string, streams: readonly string[] | null): string | null {
  if (isAllowedStream(streams, stream)) return null;
  return `The connector may not write to the stream ${shownStream(stream)}, which its setting streams does not list. Return another name, or add it to the setting.`;
}

/** Why a call can't be written where its script wants it; null when it can. */
function refusalOfRoute(stream: string, schema: string | null): string | null {
  if (stream.startsWith('$'))
    return 'The script names a stream that begins with $, which only the system may write. Return another name.';
  if (checkWritableName(stream) !== null || !stream.isWellFormed())
    return 'The script names an invalid stream. Return another name.';
  if (schema === '') return 'The script returns an empty schema. Leave it out, or return a non-empty string.';
  if (schema !== null && (schema.length > EVENT_TYPE_LENGTH_MAX || !schema.isWellFormed()))
    return `The schema must be a string of at most ${EVENT_TYPE_LENGTH_MAX} characters. Return a shorter one.`;
  return null;
}

/** A call that is routed but not written. */
interface Trial {
  /** Names the sandbox's lane: a trial need not stand in the way of the connector's own calls. */
  readonly lane: string;
  /** What the path that the script sees ends in. */
  readonly connectorId: string;
  readonly script: string;
  /** Where the connector may write. */
  readonly streams: WebhookSettings['streams'];
  readonly input: TestInput;
}

/**
 * Runs the script as the ingest would, and returns what would come of the call. Nothing is written, and the lane is
 * left for the caller to release.
 */
export async function tryScript(
  { sandbox, clock, access = null }: { sandbox: RoutingSandbox; clock: Clock; access?: ListedAccess },
  { lane, connectorId, script, streams, input }: Trial,
): Promise<TestResult> {
  if (!isJsonBody(input.body))
    return {
      outcome: 'invalid-json',
      stream: null,
      schema: null,
      error: 'The body is not JSON that a call may have.',
      durationMs: 0,
    };
  const headers = Object.entries(input.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const requestJson = routingRequestJson(
    input.body,
    headers.filter(isGiven),
    `/webhook/${connectorId}`,
    Object.entries(input.query).filter(isGiven),
  );
  const startMs = clock.monotonicMs();
  const result = await sandbox.route({
    connectorId: lane,
    script,
    requestJson,
    bodyLength: input.body.length,
    nowMs: clock.nowMs(),
    seed: 0,
  });
  // Where the sandbox reports it, the time that the limit counts: how long a thread took to start is of no interest.
  const durationMs = 'cpuMs' in result ? result.cpuMs : clock.monotonicMs() - startMs;
  const found = [
    ...(hasLongInteger(input.body) ? [INTEGER_WARNING] : []),
    ...('hasType' in result ? [TYPE_WARNING] : []),
  ];
  const warnings = found.length === 0 ? {} : { warnings: found };
  if (result.kind !== 'routed')
    return {
      outcome: result.kind,
      stream: null,
      schema: null,
      error: result.kind === 'skipped' ? null : result.reason,
      durationMs,
      ...warnings,
    };
  const { stream, schema } = result;
  const error =
    refusalOfRoute(stream, schema) ??
    refusalOfStream(stream, streams) ??
    (await refusalOfList(access, connectorId, stream));
  return { outcome: error === null ? 'routed' : 'failed', stream, schema, error, durationMs, ...warnings };
}

/** Headers and parameters without a value are not shown to a script. */
function isGiven([, value]: readonly [string, string]): boolean {
  return value !== '';
}

/** What a call becomes in its stream. */

/** Type of the event where the script returns no schema. */
export const DEFAULT_TYPE = 'WebhookReceived';

/** The warning for a result with `type` and without schema. */
export const TYPE_WARNING = `The script returns type, which means nothing: the type of the event is what it returns as schema, else ${DEFAULT_TYPE}.`;

/** JSON object of the allowed headers that the call has. */
export function metadataOf(allowedHeaders: readonly string[], headers: ReadonlyMap<string, string>): Uint8Array {
  const members: string[] = [];
  for (const name of allowedHeaders) {
    const value = headers.get(name);
    // A lone surrogate has no UTF-8; JSON escapes it.
    if (value !== undefined) members.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
  }
  return encodeText(`{${members.join(',')}}`);
}

/** Why no store would take the event, null when it can be written. */
export function refusalOfEvent(stream: string, schema: string | null, bytes: number): string | null {
  if (stream === '') return 'The script names no stream.';
  if (bytes > EVENT_BYTES_MAX)
    return `The event would have ${bytes} bytes of data and metadata, and the limit is ${EVENT_BYTES_MAX}.`;
  return refusalOfRoute(stream, schema);
}
