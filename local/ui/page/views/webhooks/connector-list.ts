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
