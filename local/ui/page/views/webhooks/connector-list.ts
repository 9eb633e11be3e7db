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

/** The calls of one connector since the start of the node; rates are null until two questions lie far enough apart. */
export type Calls = WebhooksView['connectors'][number];
export type AllCalls = Pick<WebhooksView, 'connectors'>;

/** Of nodes that count none, and where there were none yet. */
export const NO_CALLS: AllCalls = { connectors: [] };

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

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  accepted: { sort: 'taken', text: 'Accepted, written after the answer' },
  written: { sort: 'taken', text: 'Written' },
  duplicate: { sort: 'taken', text: 'Repeated delivery, not written again' },
  challenge: { sort: 'taken', text: 'Answered the sender that somebody is there' },
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

export function countOf({ outcomes }: Calls, sort: Outcome['sort']): number {
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
