import { decodeBase64 } from '../../core/base/base64.ts';
import type { LineDocument } from '../../handlers/documents/streams.ts';
import type { Position, RecordedEvent } from '../event-store/api.ts';
import type { Attempt } from './caller.ts';
import { unexpected, unreachable } from './client-errors.ts';

/** Lines of replies, and the messages and events that stand in them. */

/** Characters of the longest line: 4 MiB of data and metadata, each character escaped, and what stands around them. */
const LINE_LENGTH_MAX = 33_554_432;

/** Lines as they come, without what ends them. Throws where the last one is not whole. */
export async function* linesOf(attempt: Attempt): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  // Of a long line the parts are put together once.
  let parts: string[] = [];
  let length = 0;
  for (let piece = await attempt.next(); piece !== null; piece = await attempt.next()) {
    const text = decoder.decode(piece, { stream: true });
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      parts.push(text.slice(from, end));
      yield parts.length === 1 ? parts[0]! : parts.join('');
      parts = [];
      length = 0;
      from = end + 1;
    }
    if (from === text.length) continue;
    parts.push(text.slice(from));
    length += text.length - from;
    if (length > LINE_LENGTH_MAX) throw unexpected(200, `a line has more than ${LINE_LENGTH_MAX} characters`);
  }
  if (length > 0) throw unreachable('The reply broke off within a line');
}

/** Of server-sent events. */
export interface Message {
  /** Empty where it has no name. */
  readonly event: string;
  readonly id: string;
  readonly data: string;
  readonly retryMs: number | null;
}

/** What stands between two empty lines. One that is not ended is none. */
export async function* messagesOf(lines: AsyncIterable<string>): AsyncGenerator<Message, void, undefined> {
  let [event, id, data] = ['', '', ''];
  let retryMs: number | null = null;
  for await (const text of lines) {
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
    if (line === '') {
      if (event !== '' || id !== '' || data !== '' || retryMs !== null) yield { event, id, data, retryMs };
      [event, id, data] = ['', '', ''];
      retryMs = null;
      continue;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'event') event = value;
    else if (name === 'id') id = value;
    else if (name === 'data') data = data === '' ? value : `${data}\n${value}`;
    else if (name === 'retry' && /^\d{1,9}$/.test(value)) retryMs = Number(value);
  }
}

/** Throws `unexpected_reply`. */
export function lineOf(text: string): LineDocument {
  let line: Partial<LineDocument> | null = null;
  try {
    line = JSON.parse(text) as Partial<LineDocument> | null;
  } catch {
    // No line of events.
  }
  if (typeof line?.eventId !== 'string' || typeof line.position !== 'string')
    throw unexpected(200, 'a line of it is no event');
  return line as LineDocument;
}

export function positionOf(text: string): Position {
  const [commit, prepare] = text.split('/', 2);
  return { commit: Number(commit), prepare: Number(prepare) };
}

/** Of the event that hard-deletes a stream, which is beyond all others. */
function versionOf(number: number): number {
  return Math.min(number, Number.MAX_SAFE_INTEGER);
}

export function recordedLine<D, M>(line: LineDocument): RecordedEvent<D, M> {
  const { isRedacted, eventPosition, eventUpdated } = line;
  const data = isRedacted ? UNSEEN : payloadOf(line.data, line.dataBase64);
  const metadata = payloadOf(line.metaData, line.metaDataBase64);
  const position = positionOf(line.position);
  return {
    stream: line.streamId,
    version: versionOf(line.eventNumber),
    type: line.eventType,
    id: line.eventId,
    data: data.value as D,
    // Of a redacted event what was kept is JSON; other bytes are what a tool has written over it.
    metadata: (isRedacted && !metadata.isJson ? undefined : metadata.value) as M,
    isJson: data.isJson,
    isRedacted,
    position: eventPosition === undefined ? position : positionOf(eventPosition),
    createdAt: timeOf(eventUpdated ?? line.updated),
    link:
      eventPosition === undefined
        ? null
        : { stream: line.positionStreamId, version: versionOf(line.positionEventNumber), position },
  };
}

/** Milliseconds: not every platform reads more digits. */
function timeOf(text: string): Date {
  return new Date(text.replace(/(\.\d{3})\d+/, '$1'));
}

interface Payload {
  readonly value: unknown;
  readonly isJson: boolean;
}

const UNSEEN: Payload = { value: undefined, isJson: false };

function payloadOf(text: string | null, base64: string | undefined): Payload {
  if (base64 !== undefined) return { value: decodeBase64(base64) ?? new Uint8Array(0), isJson: false };
  if (text === null || text === '') return UNSEEN;
  try {
    return { value: JSON.parse(text), isJson: true };
  } catch {
    // What others have marked as JSON need not be any.
    return { value: new TextEncoder().encode(text), isJson: false };
  }
}
