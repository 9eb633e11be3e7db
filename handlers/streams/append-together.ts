import { decodeBase64 } from '../../core/base/base64.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { elementsOf, membersOf } from '../../core/base/json-scanner.ts';
import { encodeText } from '../../core/base/text.ts';
import { newId } from '../../core/ports/ids.ts';
import {
  ANY,
  type AppendCondition,
  type NewEvent,
  NO_STREAM,
  STREAM_EXISTS,
  type StreamWrite,
} from '../../core/streams/api.ts';
import { checkWritableName } from '../../core/streams/format/names.ts';
import type { AppendedDocument, AppendedStream } from '../documents/together.ts';
import { readJsonText } from '../http/body.ts';
import type { App, Call, Handler } from '../http/context.ts';
import { checkRequireLeader } from '../http/http-headers.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { jsonReply } from '../http/reply.ts';
import { authorizeWrite, authorizeWrites, checkReader } from './access.ts';
import { ALL_STREAM } from './all-reading.ts';
import { auditWrite, noteMetadata } from './audit-write.ts';
import { badRequest } from './condition-items.ts';
import { conditionOf } from './dcb-routes.ts';
import { NO_BYTES, WHOLE_BODY_BYTES_MAX } from './posted-events.ts';

/**
 * POST `/streams`: appends of programs, to one stream or to several at once, all or nothing. Events are kept as they
 * are: any JSON value as its text, bytes as bytes; and the answer says where they lie, and whether they had been
 * written before. `{stream, expected, events}` is an append to one stream as any other; `{appends: […]}`, maybe with a
 * condition, is one to several.
 */
export const appendTogether: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  checkRequireLeader(call.request.headers);
  await authorizeWrite(call, app, 'write', ANY_NAME);
  const { value, text } = await readJsonText(call, app, Math.min(WHOLE_BODY_BYTES_MAX, app.options.bodyBytesMax));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badRequest(SHAPE);
  call.isLong = text.length > LONG_BODY_LENGTH;
  const parts = partsOf(text, ['stream', 'expected', 'events', 'appends', 'condition'], 'the body');
  if (parts['appends'] !== undefined) return jsonReply(call, await appendToSeveral(call, app, parts));
  if (parts['condition'] !== undefined) throw badRequest('a condition stands beside appends');
  return jsonReply(call, await appendToOne(call, app, parts));
};

/**
 * The streams stand in the body. One of any name shows that nothing at all may be written, before that is read; this
 * one reads well where the refusal names it.
 */
const ANY_NAME = 'streams';
/** Longer bodies make the call one of those that short ones don't wait for, in characters. */
const LONG_BODY_LENGTH = 262_144;
const SHAPE = 'the body must be an object with stream and events, or with appends';

async function appendToOne(call: Call, app: App, parts: Parts): Promise<AppendedDocument> {
  const { stream, expectedVersion, events } = writeOf(app, parts, { hasAllIds: true });
  if (app.audit !== null) auditWrite(call, stream);
  const authorize = await authorizeWrite(call, app, 'write', stream);
  if (call.audited !== null && stream.startsWith('$$')) await noteMetadata(call, app, stream.slice(2), events);
  const { lastEventNumber, position, isRepeat } = await app.store.append(
    stream,
    expectedVersion,
    events,
    authorize ?? undefined,
  );
  return { streams: [{ stream, version: lastEventNumber, position }], position, isRepeat };
}

async function appendToSeveral(call: Call, app: App, parts: Parts): Promise<AppendedDocument> {
  if (parts['stream'] !== undefined || parts['events'] !== undefined) throw badRequest(SHAPE);
  const seen = { hasAllIds: true };
  const condition = parts['condition'] === undefined ? undefined : conditionIn(parts['condition']);
  // A condition counts events whatever their lists say.
  if (condition !== undefined) await checkReader(call, app, ALL_STREAM);
  const writes = arrayOf(parts['appends']!, 'appends').map((each) =>
    writeOf(app, partsOf(each, ['stream', 'expected', 'events'], 'an append'), seen),
  );
  for (const { stream } of writes)
    if (isForItself(stream))
      throw badRequest(`${stream.slice(0, 100)} says who may do what, or what is kept: append to it alone`);
  const authorized = await authorizeWrites(call, app, writes);
  const result = await app.store.appendToStreams(
    authorized.map((write) => ({ ...write, expectedVersion: ANY })),
    {
      condition,
      // What is expected of a stream is a check of the whole, so that all that do not hold are told.
      checks: writes.filter(({ expectedVersion }) => expectedVersion !== ANY),
      isRepeatable: seen.hasAllIds,
    },
  );
  return {
    streams: result.streams.map(({ stream, lastEventNumber, position }): AppendedStream => ({
      stream,
      version: lastEventNumber,
      position,
    })),
    position: result.position,
    isRepeat: result.isRepeat,
  };
}

/** What is audited has an entry of its own for each request. */
function isForItself(stream: string): boolean {
  const target: Parameters<typeof auditWrite>[0] = { audited: null };
  auditWrite(target, stream);
  return target.audited !== null;
}

type Parts = Readonly<Record<string, string | undefined>>;

/** The members that are known, as they are written. */
function partsOf(text: string, names: readonly string[], what: string): Parts {
  if (!text.startsWith('{') && !text.trimStart().startsWith('{')) throw badRequest(`${what} must be an object`);
  const parts: Record<string, string> = {};
  for (const { key, raw } of membersOf(text)) {
    if (!names.includes(key)) throw badRequest(`${what} has no member ${key.slice(0, 100)}`);
    parts[key] = raw;
  }
  return parts;
}

function arrayOf(raw: string, name: string): string[] {
  if (!raw.startsWith('[')) throw badRequest(`${name} must be an array`);
  return [...elementsOf(raw)];
}

function textIn(raw: string | undefined, name: string): string {
  const value: unknown = raw === undefined ? undefined : JSON.parse(raw);
  if (typeof value !== 'string') throw badRequest(`${name} must be a text`);
  return value;
}

function writeOf(app: App, parts: Parts, seen: { hasAllIds: boolean }): StreamWrite {
  const stream = textIn(parts['stream'], 'stream');
  // A name that nothing can have says more than that its list forbids it.
  const refusal = checkWritableName(stream);
  if (refusal !== null) throw refusal;
  const events = arrayOf(parts['events'] ?? '', 'events').map((each) =>
    eventOf(partsOf(each, ['id', 'type', 'data', 'dataBase64', 'metadata', 'metadataBase64'], 'an event'), app, seen),
  );
  if (events.length === 0)
    throw new SkuaError('batch_empty', 'The request has no events: send at least one.', { stream });
  return { stream, expectedVersion: expectedIn(parts['expected']), events };
}

const WORDS: ReadonlyMap<unknown, number> = new Map([
  ['any', ANY],
  ['none', NO_STREAM],
  ['exists', STREAM_EXISTS],
]);

function expectedIn(raw = '"any"'): number {
  const value: unknown = JSON.parse(raw);
  const number = WORDS.get(value) ?? value;
  if (!Number.isSafeInteger(number) || (number === value && (number as number) < 0))
    throw new SkuaError(
      'invalid_expected_version',
      'expected must be the version of the last event, or any, none or exists.',
      {},
    );
  return number as number;
}

function eventOf(parts: Parts, app: App, seen: { hasAllIds: boolean }): NewEvent {
  if (parts['id'] === undefined) seen.hasAllIds = false;
  return {
    id: parts['id'] === undefined ? newId(app.world.ids) : textIn(parts['id'], 'id'),
    type: textIn(parts['type'], 'type'),
    isJson: parts['data'] !== undefined,
    data: bytesIn(parts, 'data'),
    metadata: bytesIn(parts, 'metadata'),
  };
}

function bytesIn(parts: Parts, name: 'data' | 'metadata'): Uint8Array {
  const [raw, base64] = [parts[name], parts[`${name}Base64`]];
  if (raw !== undefined && base64 !== undefined) throw badRequest(`of ${name} and ${name}Base64 give one`);
  if (raw !== undefined) return encodeText(raw);
  if (base64 === undefined) return NO_BYTES;
  const bytes = decodeBase64(textIn(base64, `${name}Base64`));
  if (bytes === null) throw badRequest(`${name}Base64 must be Base64`);
  return bytes;
}

function conditionIn(raw: string): AppendCondition {
  return conditionOf(JSON.parse(raw));
}
