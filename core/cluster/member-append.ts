import { SkuaError } from '../errors.ts';
import type { AppendResult, NewEvent } from '../streams/api.ts';
import { encodeText } from '../text.ts';

/** An append that a member sends to another as JSON: POST `/cluster/append`. Data and metadata stand in it as texts, byte for byte. */
export interface MemberAppend {
  readonly stream: string;
  readonly expectedVersion: number;
  readonly events: readonly NewEvent[];
  /** When it was begun, by the wall clock of the member that it is sent to; null where the sender does not know that clock. */
  readonly atMs: number | null;
}

/** Bytes of data and metadata that are sent at most, and of the request around them, in which a character may take six. */
export const MEMBER_APPEND_BYTES_MAX = 2_097_152;
export const MEMBER_APPEND_BODY_BYTES_MAX = 16_777_216;
const EVENTS_MAX = 4_096;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Whether these can be sent: texts, and not too many. What can't is appended by the member itself. */
export function isCarried(events: readonly NewEvent[]): boolean {
  const bytes = events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0);
  return events.length > 0 && events.length <= EVENTS_MAX && bytes <= MEMBER_APPEND_BYTES_MAX && events.every(({ data, metadata }) => isText(data) && isText(metadata));
}

function isText(bytes: Uint8Array): boolean {
  try {
    utf8.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

export function formatMemberAppend({ stream, expectedVersion, events, atMs }: MemberAppend): string {
  return JSON.stringify({ stream, expectedVersion, atMs, events: events.map(({ id, type, isJson, data, metadata }) => ({ id, type, isJson, data: utf8.decode(data), metadata: utf8.decode(metadata) })) });
}

/** What another member sent. Names, ids and types are checked where they are appended. Errors: `bad_request`. */
export function readMemberAppend(value: unknown): MemberAppend {
  const { stream, expectedVersion, events, atMs = null } = (value ?? {}) as Readonly<Record<keyof MemberAppend, unknown>>;
  if (typeof stream !== 'string' || !Number.isSafeInteger(expectedVersion) || !Array.isArray(events) || events.length === 0 || events.length > EVENTS_MAX || !(atMs === null || Number.isFinite(atMs))) throw invalid();
  return { stream, expectedVersion: expectedVersion as number, atMs: atMs as number | null, events: events.map(readEvent) };
}

function readEvent(value: unknown): NewEvent {
  const { id, type, isJson, data, metadata } = (value ?? {}) as Readonly<Record<keyof NewEvent, unknown>>;
  if (typeof id !== 'string' || typeof type !== 'string' || typeof isJson !== 'boolean' || typeof data !== 'string' || typeof metadata !== 'string') throw invalid();
  return { id, type, isJson, data: encodeText(data), metadata: encodeText(metadata) };
}

function invalid(): SkuaError {
  return new SkuaError('bad_request', 'This is no append of a member: an object with stream, expectedVersion and events was expected.');
}

/** What the other member answered. Errors: `member_refused`. */
export function readAppendResult(value: unknown): AppendResult {
  const { firstEventNumber, lastEventNumber, position, isRepeat } = (value ?? {}) as Readonly<Record<keyof AppendResult, unknown>>;
  if (!isNumber(firstEventNumber) || !isNumber(lastEventNumber) || !isNumber(position) || typeof isRepeat !== 'boolean') throw new SkuaError('member_refused', 'What the leader answered to an append is not understood.', { status: 200, code: null });
  return { firstEventNumber, lastEventNumber, position, isRepeat };
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= -1;
}
