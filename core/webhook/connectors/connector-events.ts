import type { StoredEvent } from '../../streams/api.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { parseTimestamp, timestampText } from '../../base/time.ts';
import type { ConnectorState, Settings } from '../api.ts';

/** The management events of a connector, and its state as they make it. */

const CREATED = '$conn-mngt-connector-created';
const RECONFIGURED = '$conn-mngt-connector-reconfigured';
const RENAMED = '$conn-mngt-connector-renamed';
const ACTIVATING = '$conn-mngt-connector-activating';
export const RUNNING = '$conn-mngt-connector-running';
export const DEACTIVATING = '$conn-mngt-connector-deactivating';
export const STOPPED = '$conn-mngt-connector-stopped';
const FAILED = '$conn-mngt-connector-failed';
const DELETED = '$conn-mngt-connector-deleted';

export interface ConnectorError {
  readonly code: number;
  readonly message: string;
}

/** What a connector was started with, which later changes of its settings leave alone. */
export interface Activation {
  /** Number of the event. */
  readonly number: number;
  readonly revision: number;
  readonly settings: Settings;
}

/** State of a connector. Secrets in settings are sealed. */
export interface ConnectorRecord {
  readonly connectorId: string;
  /** Number of the event that created it. */
  readonly incarnation: number;
  readonly name: string;
  readonly settings: Settings;
  readonly revision: number;
  readonly state: ConnectorState;
  /** The last one. */
  readonly activation: Activation | null;
  readonly error: ConnectorError | null;
  readonly createdMs: number;
  readonly stateUpdatedMs: number;
  readonly settingsUpdatedMs: number;
  readonly updatedMs: number;
  readonly deletedMs: number | null;
}

/**
 * What a command writes; `metadata` is what only the deletion has, so that a deleted connector can still be listed by
 * its name.
 */
export interface ConnectorEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export function created(connectorId: string, name: string, settings: Settings, nowMs: number): ConnectorEvent {
  return {
    type: CREATED,
    data: { connectorId, name, settings: Object.fromEntries(settings), timestamp: timeText(nowMs) },
  };
}

export function reconfigured(connectorId: string, revision: number, settings: Settings, nowMs: number): ConnectorEvent {
  return {
    type: RECONFIGURED,
    data: { connectorId, revision, settings: Object.fromEntries(settings), timestamp: timeText(nowMs) },
  };
}

export function renamed(connectorId: string, name: string, nowMs: number): ConnectorEvent {
  return { type: RENAMED, data: { connectorId, name, timestamp: timeText(nowMs) } };
}

export function activating(connectorId: string, revision: number, settings: Settings, nowMs: number): ConnectorEvent {
  return {
    type: ACTIVATING,
    data: { connectorId, revision, settings: Object.fromEntries(settings), timestamp: timeText(nowMs) },
  };
}

/** `RUNNING`, `DEACTIVATING` or `STOPPED`. */
export function stateChanged(type: string, connectorId: string, nowMs: number): ConnectorEvent {
  const timestamp = timeText(nowMs);
  return { type, data: { connectorId, timestamp, ...(type !== DEACTIVATING && { recordedAt: timestamp }) } };
}

export function failed(connectorId: string, { code, message }: ConnectorError, nowMs: number): ConnectorEvent {
  const timestamp = timeText(nowMs);
  return { type: FAILED, data: { connectorId, errorDetails: { code, message }, timestamp, recordedAt: timestamp } };
}

export function deleted({ connectorId, name, createdMs }: ConnectorRecord, nowMs: number): ConnectorEvent {
  return {
    type: DELETED,
    data: { connectorId, timestamp: timeText(nowMs) },
    metadata: { name, created: timeText(createdMs) },
  };
}

export function timeText(ms: number): string {
  return timestampText(Math.floor(ms), 0);
}

export function eventBytes(value: object | undefined): Uint8Array {
  return value === undefined ? new Uint8Array(0) : encodeText(JSON.stringify(value));
}

/** The state behind one more event. Events that we don't know, or that are malformed, change nothing. */
export function applyEvent(
  record: ConnectorRecord | null,
  connectorId: string,
  event: StoredEvent,
): ConnectorRecord | null {
  const data = objectOf(event.data);
  if (data === null) return record;
  const atMs = timeOf(data['timestamp'], event.createdMs);
  if (event.type === CREATED) return applyCreated(connectorId, event.number, data, atMs);
  if (event.type === DELETED) return applyDeleted(record, connectorId, event, atMs);
  if (record === null || record.deletedMs !== null) return record;
  switch (event.type) {
    case RECONFIGURED:
      return {
        ...record,
        settings: settingsOf(data['settings']),
        revision: numberOf(data['revision'], record.revision + 1),
        settingsUpdatedMs: atMs,
        updatedMs: atMs,
      };
    case RENAMED:
      return { ...record, name: textOf(data['name'], record.name), updatedMs: atMs };
    case ACTIVATING: {
      const activation: Activation = {
        number: event.number,
        revision: numberOf(data['revision'], record.revision),
        settings: settingsOf(data['settings']),
      };
      return { ...inState(record, 'CONNECTOR_STATE_ACTIVATING', atMs), activation, error: null };
    }
    case RUNNING:
      return inState(record, 'CONNECTOR_STATE_RUNNING', atMs);
    case DEACTIVATING:
      return inState(record, 'CONNECTOR_STATE_DEACTIVATING', atMs);
    case STOPPED:
      return inState(record, 'CONNECTOR_STATE_STOPPED', atMs);
    case FAILED:
      return { ...inState(record, 'CONNECTOR_STATE_STOPPED', atMs), error: errorOf(data['errorDetails']) };
    default:
      return record;
  }
}

function applyCreated(
  connectorId: string,
  number: number,
  data: Record<string, unknown>,
  atMs: number,
): ConnectorRecord {
  return {
    connectorId,
    incarnation: number,
    name: textOf(data['name'], connectorId),
    settings: settingsOf(data['settings']),
    revision: 0,
    state: 'CONNECTOR_STATE_STOPPED',
    activation: null,
    error: null,
    createdMs: atMs,
    stateUpdatedMs: atMs,
    settingsUpdatedMs: atMs,
    updatedMs: atMs,
    deletedMs: null,
  };
}

/** The settings go with the connector. Once the stream has been truncated this is the first event there is. */
function applyDeleted(
  record: ConnectorRecord | null,
  connectorId: string,
  event: StoredEvent,
  atMs: number,
): ConnectorRecord {
  const metadata = objectOf(event.metadata) ?? {};
  const createdMs = record?.createdMs ?? timeOf(metadata['created'], atMs);
  return {
    connectorId,
    incarnation: record?.incarnation ?? -1,
    name: record?.name ?? textOf(metadata['name'], connectorId),
    settings: new Map(),
    revision: 0,
    state: 'CONNECTOR_STATE_STOPPED',
    activation: null,
    error: null,
    createdMs,
    stateUpdatedMs: atMs,
    settingsUpdatedMs: atMs,
    updatedMs: atMs,
    deletedMs: atMs,
  };
}

function inState(record: ConnectorRecord, state: ConnectorState, atMs: number): ConnectorRecord {
  return { ...record, state, stateUpdatedMs: atMs, updatedMs: atMs };
}

export function objectOf(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(decodeText(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function settingsOf(value: unknown): Settings {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

function errorOf(value: unknown): ConnectorError {
  const { code, message } = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  return { code: numberOf(code, 2), message: textOf(message, 'The connector failed.') };
}

function textOf(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}

/** A revision may have been written as a text, as JSON does with integers of 64 bits. */
function numberOf(value: unknown, otherwise: number): number {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : otherwise;
}

function timeOf(value: unknown, otherwise: number): number {
  const ms = typeof value === 'string' ? parseTimestamp(value) : Number.NaN;
  return Number.isNaN(ms) ? otherwise : ms;
}
