import { useEffect, useState } from 'preact/hooks';
import { usePolled } from '../../api/polled.ts';
import type { Polled } from '../../api/polled.ts';
import type { Tone } from '../../parts/badge.tsx';
import type { ApiError } from '../../api/problem-text.ts';
import type { ConnectorDocument } from '../../../../../handlers/documents/connectors.ts';
import type { WebhooksView } from '../../../../../handlers/documents/node.ts';
import { PREFIX } from '../../api/prefix.ts';

/** As the page asks for it: with its settings. */
export type Connector = ConnectorDocument & Pick<Required<ConnectorDocument>, 'settings'>;

export interface ConnectorList {
  readonly items: readonly Connector[];
}

/** The calls of one connector since the start of the node. */
export interface Calls extends Omit<WebhooksView['connectors'][number], 'callsPerSecond'> {
  /** Null where nothing is counted; undefined until two questions lie far enough apart for a rate. */
  readonly callsPerSecond: number | null | undefined;
}
export type AllCalls = Pick<WebhooksView, 'connectors' | 'windowSeconds'>;

/** Of nodes that count none, and where there were none yet. */
export const NO_CALLS: AllCalls = { connectors: [], windowSeconds: 0 };

const CALLS_EVERY_MS = 2_000;
/** Until there are rates: the least time between two looks of which the node makes one. */
const FIRST_CALLS_MS = 1_000;

/** The calls of all connectors. */
export function useCalls(): Polled<AllCalls> {
  const [everyMs, setEveryMs] = useState(FIRST_CALLS_MS);
  const calls = usePolled<AllCalls>('/admin/webhooks', everyMs, { missing: NO_CALLS });
  const hasRates = calls.data.value !== null && calls.data.value.windowSeconds !== null;
  useEffect(() => setEveryMs(hasRates ? CALLS_EVERY_MS : FIRST_CALLS_MS), [hasRates]);
  return calls;
}

export function connectorPath(id: string): string {
  return `/connectors/${encodeURIComponent(id)}`;
}

/** Where senders deliver to: at the address by which the page has reached the node. */
export function publicUrl(id: string): string {
  return `${location.origin}${PREFIX}/webhook/${encodeURIComponent(id)}`;
}

export interface State {
  readonly word: string;
  readonly tone: Tone;
  readonly isRunning: boolean;
}

export function stateOf({ state, errorDetails }: Connector): State {
  switch (state) {
    case 'CONNECTOR_STATE_RUNNING':
      return { word: 'Running', tone: 'ok', isRunning: true };
    case 'CONNECTOR_STATE_ACTIVATING':
      return { word: 'Starting', tone: 'info', isRunning: true };
    case 'CONNECTOR_STATE_DEACTIVATING':
      return { word: 'Stopping', tone: 'info', isRunning: true };
    default:
      return errorDetails === undefined
        ? { word: 'Stopped', tone: 'plain', isRunning: false }
        : { word: 'Failed', tone: 'bad', isRunning: false };
  }
}

/** What became of calls: in which of three sorts it is counted, and in words. */
export interface Outcome {
  readonly sort: 'taken' | 'skipped' | 'refused';
  readonly text: string;
}

/** How the sorts are called, wherever they are shown. */
export const SORTS: Readonly<Record<Outcome['sort'], string>> = {
  taken: 'Accepted',
  skipped: 'Skipped',
  refused: 'Refused',
};

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  accepted: { sort: 'taken', text: 'Accepted, to be written after the answer' },
  written: { sort: 'taken', text: 'Accepted and written' },
  duplicate: { sort: 'taken', text: 'Accepted as a repeat, not written again' },
  challenge: { sort: 'taken', text: 'Accepted as a check of the address' },
  skipped: { sort: 'skipped', text: 'Skipped by the script' },
  'refused-type': { sort: 'refused', text: 'Content type is not JSON' },
  'refused-body': { sort: 'refused', text: 'Body too long, or too slow' },
  'refused-signature': { sort: 'refused', text: 'Signature missing or wrong' },
  'refused-json': { sort: 'refused', text: 'Body is not JSON' },
  'script-failed': { sort: 'refused', text: 'The script failed' },
  'script-timed-out': { sort: 'refused', text: 'The script took too long' },
  'script-unavailable': { sort: 'refused', text: 'No capacity to run the script' },
  'refused-route': { sort: 'refused', text: 'The script named an invalid stream or type' },
  'refused-stream': { sort: 'refused', text: 'The script named a stream that is not allowed' },
  'stream-deleted': { sort: 'refused', text: 'The script named a stream that is deleted for ever' },
  full: { sort: 'refused', text: 'Too many accepted calls waited to be written' },
  stopping: { sort: 'refused', text: 'The connector was stopping' },
  'write-failed': { sort: 'refused', text: 'The event could not be written' },
  'write-timed-out': { sort: 'refused', text: 'Not written in time' },
  'client-gone': { sort: 'refused', text: 'The sender disconnected before the answer' },
  'not-active': { sort: 'refused', text: 'The connector was not running' },
  failed: { sort: 'refused', text: 'Failed inside the node' },
};

export function outcomeOf(name: string): Outcome {
  return OUTCOMES[name] ?? { sort: 'refused', text: name };
}

/** The calls of one. Those that had none since the node started are not among what it counted. */
export function callsOf(calls: AllCalls | null, connectorId: string): Calls {
  const found = calls?.connectors.find((each) => each.connectorId === connectorId);
  const isComing = calls === null || calls.windowSeconds === null;
  if (found !== undefined) return isComing ? { ...found, callsPerSecond: undefined } : found;
  const callsPerSecond = isComing ? undefined : calls.windowSeconds === 0 ? null : 0;
  return { connectorId, calls: 0, outcomes: {}, callsPerSecond, outcomesPerSecond: null, p99Seconds: null };
}

/** The calls of all. */
export function perSecondOf(calls: AllCalls | null): Calls['callsPerSecond'] {
  if (calls === null || calls.windowSeconds === null) return undefined;
  return calls.windowSeconds === 0
    ? null
    : calls.connectors.reduce((sum, { callsPerSecond }) => sum + (callsPerSecond ?? 0), 0);
}

export function countOf({ outcomes }: Pick<Calls, 'outcomes'>, sort: Outcome['sort']): number {
  let count = 0;
  for (const [name, value] of Object.entries(outcomes)) if (outcomeOf(name).sort === sort) count += value;
  return count;
}

interface Violation {
  readonly field: string;
  readonly description: string;
}

/** What the node has against single settings. */
export function violationsOf(error: ApiError): readonly Violation[] {
  const { details } = error.data;
  if (!Array.isArray(details)) return [];
  return details.flatMap((detail: { readonly fieldViolations?: readonly Violation[] }) => detail.fieldViolations ?? []);
}
