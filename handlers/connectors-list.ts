import type { Violation } from '../core/webhook/active.ts';
import type { Connector, ConnectorState } from '../core/webhook/api.ts';
import { invalidConnector } from '../core/webhook/connector-validation.ts';
import type { Call } from './context.ts';

/** What a list of connectors can be asked for; http-api.md section 9.4. */

const PAGE_SIZE_MAX = 100;
/** States by their numbers. */
const STATES: readonly (ConnectorState | 'CONNECTOR_STATE_UNKNOWN')[] = ['CONNECTOR_STATE_UNKNOWN', 'CONNECTOR_STATE_ACTIVATING', 'CONNECTOR_STATE_RUNNING', 'CONNECTOR_STATE_DEACTIVATING', 'CONNECTOR_STATE_STOPPED'];

export interface ListQuery {
  readonly includeSettings: boolean;
  readonly includeConfiguration: boolean;
  /** Whether a connector is wanted. */
  readonly wants: (connector: Connector) => boolean;
  readonly page: number;
  readonly pageSize: number;
}

export function listQueryOf({ query }: Call): ListQuery {
  const asked = new Asked(query);
  const states = asked.all('state').map((text) => asked.state(text));
  const types = asked.all('instanceTypeName');
  const ids = asked.all('connectorId');
  const showDeleted = asked.boolean('showDeleted');
  const result: ListQuery = {
    includeSettings: asked.boolean('includeSettings'),
    includeConfiguration: asked.boolean('includeConfiguration'),
    wants: (connector) => (showDeleted || connector.deletedMs === null) && isAmong(states, connector.state) && isAmong(types, connector.instanceTypeName) && isAmong(ids, connector.connectorId),
    page: asked.integer('page', 1, Number.MAX_SAFE_INTEGER, 1),
    pageSize: asked.integer('pageSize', 1, PAGE_SIZE_MAX, PAGE_SIZE_MAX),
  };
  if (asked.violations.length > 0) throw invalidConnector(asked.violations);
  return result;
}

/** Nothing asked for is everything. */
function isAmong(wanted: readonly string[], value: string): boolean {
  return wanted.length === 0 || wanted.includes(value);
}

class Asked {
  readonly violations: Violation[] = [];
  readonly #query: Call['query'];

  constructor(query: Call['query']) {
    this.#query = query;
  }

  all(name: string): readonly string[] {
    const value = Object.hasOwn(this.#query, name) ? this.#query[name] : undefined;
    return (Array.isArray(value) ? value : [value]).filter((each) => each !== undefined && each !== '') as string[];
  }

  boolean(name: string): boolean {
    const text = this.all(name)[0]?.toLowerCase() ?? 'false';
    if (text !== 'true' && text !== 'false') this.violations.push({ field: name, description: `${name} must be true or false` });
    return text === 'true';
  }

  state(text: string): string {
    const state = STATES[/^\d$/.test(text) ? Number(text) : STATES.indexOf(text.toUpperCase() as ConnectorState)];
    if (state === undefined) this.violations.push({ field: 'state', description: `There is no such state. Use one of ${STATES.join(', ')}` });
    return state ?? '';
  }

  /** `page`, or nested as the wire contract has it: `paging.page`. */
  integer(name: string, min: number, max: number, otherwise: number): number {
    const text = this.all(name)[0] ?? this.all(`paging.${name}`)[0];
    if (text === undefined) return otherwise;
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) this.violations.push({ field: name, description: max === Number.MAX_SAFE_INTEGER ? `${name} must be at least ${min}` : `${name} must be between ${min} and ${max}` });
    return value;
  }
}
