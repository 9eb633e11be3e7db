import { SkuaError } from '../../core/base/errors.ts';
import { isNestedAtMost, jsonMembers } from '../../core/base/json-scanner.ts';
import type { Violation, Connector, ConnectorState, Settings, TestInput } from '../../core/webhook/api.ts';
import { flattenSettings, SETTING_NAME_LENGTH_MAX } from '../../core/webhook/format/settings-shape.ts';
import { invalidConnector } from '../../core/webhook/api.ts';
import { readJson, readJsonText } from '../http/body.ts';
import type { App, Call } from '../http/context.ts';

/** Bodies of connector routes. Their own members are found in any case; those that mean nothing are ignored. */

/** Largest body: a script with room for its escapes, and a payload to test it with. */
export const CONNECTOR_BODY_BYTES_MAX = 1_048_576;

type Members = ReadonlyMap<string, unknown>;

interface GivenConnector {
  readonly name: string | null;
  readonly settings: Settings;
}

/**
 * A connector as GET gives it, or the part of it that a caller can choose: `name` and `settings`, or `configuration`.
 */
export async function connectorOf(call: Call, app: App): Promise<GivenConnector> {
  const members = membersOf(await jsonOf(call, app));
  const name = members.get('name') ?? null;
  if (name !== null && typeof name !== 'string')
    throw invalidConnector([{ field: 'name', description: 'name must be a string' }]);
  return { name, settings: wrappedSettings(members) };
}

function wrappedSettings(members: Members): Settings {
  const configuration = members.get('configuration') ?? {};
  const isConfigured = typeof configuration !== 'object' || Object.keys(configuration).length > 0;
  return isConfigured
    ? settingsOf(configuration, 'configuration')
    : settingsOf(members.get('settings') ?? {}, 'settings');
}

/**
 * What stands beside `settings` or `configuration` where a connector, or its settings, are given as GET gives them;
 * lower-cased.
 */
const SHOWN_MEMBERS: ReadonlySet<string> = new Set([
  'connectorid',
  'instancetypename',
  'name',
  'state',
  'stateupdatetime',
  'settings',
  'settingsupdatetime',
  'configuration',
  'configurationupdatetime',
  'createtime',
  'updatetime',
  'deletetime',
  'errordetails',
]);

/** The settings themselves, or in `settings` or `configuration`, as GET gives them. */
export async function newSettingsOf(call: Call, app: App): Promise<Settings> {
  const value = await jsonOf(call, app);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return settingsOf(value, 'settings');
  const names = Object.keys(value);
  // No setting has these names.
  if (!names.some((name) => /^(?:settings|configuration)$/i.test(name))) return settingsOf(value, 'settings');
  const stray = names.filter((name) => !SHOWN_MEMBERS.has(name.toLowerCase()));
  if (stray.length > 0)
    throw invalidConnector(
      stray.slice(0, STRAY_MAX).map((name) => ({
        field: name.slice(0, SETTING_NAME_LENGTH_MAX),
        description: 'Given outside settings. Give all of them inside settings, or none.',
      })),
    );
  return wrappedSettings(membersOf(value));
}

/** Most members of a body that an answer names. */
const STRAY_MAX = 20;

export async function newNameOf(call: Call, app: App): Promise<string> {
  const name = membersOf(await jsonOf(call, app)).get('name');
  if (typeof name !== 'string') throw invalidConnector([{ field: 'name', description: 'name must be a string' }]);
  return name;
}

interface Trial {
  readonly input: TestInput;
  /** To be tried instead of what is stored. */
  readonly settings?: Settings;
}

/** A body that is a string is the payload's text, to the byte; any other is the payload itself. */
export async function trialOf(call: Call, app: App): Promise<Trial> {
  const { value, text } = await readJsonText(call, app, Math.min(CONNECTOR_BODY_BYTES_MAX, app.options.bodyBytesMax));
  const members = membersOf(value);
  const body = members.get('body');
  if (body === undefined) throw invalidConnector([{ field: 'body', description: 'Missing. Give the payload.' }]);
  const settings = members.get('settings') ?? null;
  return {
    input: {
      body: typeof body === 'string' ? body : payloadText(text),
      headers: textsOf(members, 'headers'),
      query: textsOf(members, 'query'),
    },
    ...(settings !== null && { settings: settingsOf(settings, 'settings') }),
  };
}

/**
 * Nesting of a payload that is tried; what is nested deeper than a call may be, and less than that, is tried in vain.
 */
const PAYLOAD_DEPTH_MAX = 1_000;

/** As it is written, since a value would not hold every integer. */
function payloadText(text: string): string {
  const { raw } = jsonMembers(text)!.findLast(({ key }) => key.toLowerCase() === 'body')!;
  if (!isNestedAtMost(raw, PAYLOAD_DEPTH_MAX))
    throw invalidConnector([{ field: 'body', description: 'Nested too deeply.' }]);
  return raw;
}

function textsOf(members: Members, field: string): Record<string, string> {
  const value = members.get(field) ?? {};
  const isTexts =
    typeof value === 'object' &&
    !Array.isArray(value) &&
    Object.values(value).every((each) => typeof each === 'string');
  if (!isTexts) throw invalidConnector([{ field, description: `${field} must be an object of strings.` }]);
  return value as Record<string, string>;
}

function settingsOf(value: unknown, field: string): Settings {
  const { settings, violations } = flattenSettings(value, field);
  if (violations.length > 0) throw invalidConnector(violations);
  return settings;
}

function membersOf(value: unknown): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SkuaError('bad_json', 'The body must be a JSON object.');
  return new Map(Object.entries(value).map(([name, member]) => [name.toLowerCase(), member]));
}

function jsonOf(call: Call, app: App): Promise<unknown> {
  return readJson(call, app, Math.min(CONNECTOR_BODY_BYTES_MAX, app.options.bodyBytesMax));
}

/** What a list of connectors can be asked for. */

const PAGE_SIZE_MAX = 100;
/** States by their numbers. */
const STATES: readonly (ConnectorState | 'CONNECTOR_STATE_UNKNOWN')[] = [
  'CONNECTOR_STATE_UNKNOWN',
  'CONNECTOR_STATE_ACTIVATING',
  'CONNECTOR_STATE_RUNNING',
  'CONNECTOR_STATE_DEACTIVATING',
  'CONNECTOR_STATE_STOPPED',
];

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
    wants: (connector) =>
      (showDeleted || connector.deletedMs === null) &&
      isAmong(states, connector.state) &&
      isAmong(types, connector.instanceTypeName) &&
      isAmong(ids, connector.connectorId),
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
    if (text !== 'true' && text !== 'false')
      this.violations.push({ field: name, description: `${name} must be true or false` });
    return text === 'true';
  }

  state(text: string): string {
    const state = STATES[/^\d$/.test(text) ? Number(text) : STATES.indexOf(text.toUpperCase() as ConnectorState)];
    if (state === undefined)
      this.violations.push({ field: 'state', description: `There is no such state. Use one of ${STATES.join(', ')}` });
    return state ?? '';
  }

  /** `page`, or nested as the wire contract has it: `paging.page`. */
  integer(name: string, min: number, max: number, otherwise: number): number {
    const text = this.all(name)[0] ?? this.all(`paging.${name}`)[0];
    if (text === undefined) return otherwise;
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max))
      this.violations.push({
        field: name,
        description:
          max === Number.MAX_SAFE_INTEGER
            ? `${name} must be at least ${min}`
            : `${name} must be between ${min} and ${max}`,
      });
    return value;
  }
}
