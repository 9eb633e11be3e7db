import { SECRETS_MAX } from '../api.ts';
import type { Violation, Settings } from '../api.ts';

/**
 * Settings as people write them, nested or flat or both, as one map of texts. Lists become `name:0`, `name:1`; an
 * empty list is the empty text, so that it says something else than nothing at all.
 */

export const SETTINGS_MAX = 200;
export const SETTING_NAME_LENGTH_MAX = 200;
/** UTF-16 code units of one value: the script is the only long one. */
export const SETTING_VALUE_LENGTH_MAX = 262_144;
/** UTF-16 code units of all names and values together. */
const SETTINGS_LENGTH_MAX = 524_288;
const DEPTH_MAX = 8;

interface Flattened {
  readonly settings: Settings;
  readonly violations: readonly Violation[];
}

/** The flat map of a JSON value. Nulls are left out; what is no object, or too much, is a violation. */
export function flattenSettings(value: unknown, field = 'settings'): Flattened {
  const out = new Flattening();
  if (isObject(value)) out.add('', value, 0);
  else out.violate(field, `${field} must be a JSON object.`);
  return { settings: out.settings, violations: out.violations };
}

class Flattening {
  readonly settings = new Map<string, string>();
  readonly violations: Violation[] = [];
  readonly #seen = new Set<string>();
  #length = 0;
  #isFull = false;

  violate(field: string, description: string): void {
    this.violations.push({ field, description });
  }

  add(name: string, value: unknown, depth: number): void {
    if (this.#isFull || value === null || value === undefined) return;
    if (typeof value === 'object') this.#addMembers(name, value, depth);
    else this.#put(name, textOf(value));
  }

  #addMembers(name: string, value: object, depth: number): void {
    if (depth === DEPTH_MAX) return this.violate(shown(name), `Nested more than ${DEPTH_MAX} deep.`);
    const members = Object.entries(value);
    if (members.length === 0 && Array.isArray(value)) return this.#put(name, '');
    for (const [key, member] of members) {
      if (key === '') this.violate(shown(name) || 'settings', 'A setting needs a name.');
      else this.add(name === '' ? key : `${name}:${key}`, member, depth + 1);
    }
  }

  #put(name: string, text: string): void {
    const folded = name.toLowerCase();
    if (this.#seen.has(folded))
      return this.violate(shown(name), 'Given more than once: names are case-insensitive, however they are nested.');
    if (name.length > SETTING_NAME_LENGTH_MAX)
      return this.violate(shown(name), `The name is longer than ${SETTING_NAME_LENGTH_MAX} characters.`);
    if (text.length > SETTING_VALUE_LENGTH_MAX)
      return this.violate(name, `The value is longer than ${SETTING_VALUE_LENGTH_MAX} characters.`);
    this.#length += name.length + text.length;
    if (this.settings.size >= SETTINGS_MAX || this.#length > SETTINGS_LENGTH_MAX) {
      this.#isFull = true;
      return this.violate(
        'settings',
        `At most ${SETTINGS_MAX} settings with ${SETTINGS_LENGTH_MAX} characters in total are allowed.`,
      );
    }
    this.#seen.add(folded);
    this.settings.set(name, text);
  }
}

/** Numbers as JavaScript and JSON write them, whatever the language of the machine. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : String(value);
}

/** The start of a name, short enough for a message. */
export function shown(name: string): string {
  return name.length > 100 ? `${name.slice(0, 100)}…` : name;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Node = Map<string, Node | string>;

/**
 * The same settings nested: names taken apart at their colons, and lists where all the names of a level are 0, 1 and
 * on.
 */
export function nestSettings(settings: Settings): Record<string, unknown> {
  const root: Node = new Map();
  // Names with fewer parts first: where a name is a setting and a level too, the level's names stay flat, whatever the
  // order.
  const names = [...settings.keys()].map((name) => name.split(':')).sort((a, b) => a.length - b.length);
  for (const parts of names) insert(root, parts, settings.get(parts.join(':'))!);
  return Object.fromEntries([...root].map(([name, node]) => [name, plain(node)]));
}

function insert(root: Node, parts: readonly string[], value: string): void {
  let level = root;
  for (let i = 0; i < parts.length - 1; i++) {
    const next = level.get(parts[i]!);
    // An empty name can't be flattened again; no setting has one.
    if (typeof next === 'string' || parts[i] === '' || parts[i + 1] === '')
      return void level.set(parts.slice(i).join(':'), value);
    const deeper: Node = next ?? new Map();
    level.set(parts[i]!, deeper);
    level = deeper;
  }
  level.set(parts.at(-1)!, value);
}

function plain(node: Node | string): unknown {
  if (typeof node === 'string') return node;
  const isList = [...node.keys()].every((key) => /^(0|[1-9]\d{0,3})$/.test(key) && Number(key) < node.size);
  if (isList) return Array.from({ length: node.size }, (_, i) => plain(node.get(String(i))!));
  return Object.fromEntries([...node].map(([name, member]) => [name, plain(member)]));
}

/** The names of settings, as they are spelt when shown. */

const ALLOWED_HEADERS_MAX = 100;
const STREAMS_MAX = 100;

/** A `#` stands for the index of a list. */
const NAMES: readonly string[] = [
  'instanceTypeName',
  'routingScript',
  'skippedStatus',
  'waitForWrite',
  'confirmationTimeout',
  'allowedHeaders',
  'allowedHeaders:#',
  'streams',
  'streams:#',
  'logging:enabled',
  'signature:scheme',
  'signature:secret',
  'signature:secrets',
  'signature:secrets:#',
  'signature:timestampTolerance',
  'signature:header',
  'signature:prefix',
  'signature:encoding',
  'signature:hash',
  'deduplication:enabled',
  'deduplication:header',
  'deduplication:maxAge',
  'deduplication:maxCount',
];
const SPELLINGS: ReadonlyMap<string, string> = new Map(NAMES.map((name) => [name.toLowerCase(), name]));
const INDEX_MAX: Readonly<Record<string, number>> = {
  'allowedHeaders:#': ALLOWED_HEADERS_MAX - 1,
  'streams:#': STREAMS_MAX - 1,
  'signature:secrets:#': SECRETS_MAX - 1,
};
const INDEX = /:(\d{1,9})$/;

export function isSecretName(name: string): boolean {
  return name === 'signature:secret' || name.startsWith('signature:secrets:');
}

interface Spelled {
  readonly settings: Settings;
  readonly violations: readonly Violation[];
}

/** The settings under the names that are shown. Unknown names, and names given twice, are violations. */
export function spellNames(given: Settings): Spelled {
  const settings = new Map<string, string>();
  const violations: Violation[] = [];
  for (const [name, value] of given) {
    const spelled = spellingOf(name);
    if (typeof spelled !== 'string') violations.push(spelled);
    else if (settings.has(spelled))
      violations.push({ field: spelled, description: 'Given more than once: names are case-insensitive.' });
    else settings.set(spelled, value);
  }
  for (const list of ['allowedHeaders', 'streams', 'signature:secrets']) {
    if (settings.has(list) && [...settings.keys()].some((name) => name.startsWith(`${list}:`)))
      violations.push({ field: list, description: `Give either the list or ${list}, not both.` });
  }
  return { settings, violations };
}

function spellingOf(name: string): string | Violation {
  const index = INDEX.exec(name)?.[1];
  const pattern = SPELLINGS.get((index === undefined ? name : name.slice(0, -index.length) + '#').toLowerCase());
  if (pattern === undefined || name.endsWith('#'))
    return {
      field: shown(name),
      description: `There is no setting '${shown(name)}'. Did you mean '${nearest(name)}'?`,
    };
  if (index === undefined) return pattern;
  const indexMax = INDEX_MAX[pattern]!;
  if (Number(index) > indexMax) return { field: shown(name), description: `The list ends at index ${indexMax}.` };
  return pattern.slice(0, -1) + String(Number(index));
}

/** The known name with the fewest letters to change, whatever the index of a list. */
function nearest(name: string): string {
  const folded = name.toLowerCase().slice(0, 60).replace(INDEX, ':0');
  let best = NAMES[0]!;
  let least = Number.POSITIVE_INFINITY;
  for (const known of NAMES) {
    if (known === 'signature:secrets') continue;
    const written = known.replace('#', '0');
    const changes = distance(folded, written.toLowerCase());
    if (changes < least) [best, least] = [written, changes];
  }
  return best;
}

/** Levenshtein's distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** The values of a list, in the order of their indexes, which may have gaps. */
export function listOf(settings: Settings, name: string): readonly { readonly name: string; readonly value: string }[] {
  const prefix = `${name}:`;
  const indexed = [...settings]
    .filter(([each]) => each.startsWith(prefix))
    .map(([each, value]) => ({ index: Number(each.slice(prefix.length)), name: each, value }));
  return indexed.sort((a, b) => a.index - b.index);
}
