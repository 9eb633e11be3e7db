import type { Violation } from './active.ts';
import type { Settings } from './api.ts';

/**
 * Settings as people write them, nested or flat or both, as one map of texts; http-api.md section 9.2. Lists become
 * `name:0`, `name:1`; an empty list is the empty text, so that it says something else than nothing at all.
 */

export const SETTINGS_MAX = 200;
export const SETTING_NAME_LENGTH_MAX = 200;
/** UTF-16 code units of one value: the script is the only long one. */
export const SETTING_VALUE_LENGTH_MAX = 262_144;
/** UTF-16 code units of all names and values together. */
export const SETTINGS_LENGTH_MAX = 524_288;
const DEPTH_MAX = 8;

export interface Flattened {
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
    if (this.#seen.has(folded)) return this.violate(shown(name), 'Given more than once: names compare without regard to case, however they are nested.');
    if (name.length > SETTING_NAME_LENGTH_MAX) return this.violate(shown(name), `The name is longer than ${SETTING_NAME_LENGTH_MAX} characters.`);
    if (text.length > SETTING_VALUE_LENGTH_MAX) return this.violate(name, `The value is longer than ${SETTING_VALUE_LENGTH_MAX} characters.`);
    this.#length += name.length + text.length;
    if (this.settings.size >= SETTINGS_MAX || this.#length > SETTINGS_LENGTH_MAX) {
      this.#isFull = true;
      return this.violate('settings', `At most ${SETTINGS_MAX} settings of ${SETTINGS_LENGTH_MAX} characters in all are possible.`);
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

/** The same settings nested: names taken apart at their colons, and lists where all the names of a level are 0, 1 and on. */
export function nestSettings(settings: Settings): Record<string, unknown> {
  const root: Node = new Map();
  // Those with fewer parts first: where a name is a setting and a level too, the level's names stay flat, whatever the order.
  const names = [...settings.keys()].map((name) => name.split(':')).sort((a, b) => a.length - b.length);
  for (const parts of names) insert(root, parts, settings.get(parts.join(':'))!);
  return Object.fromEntries([...root].map(([name, node]) => [name, plain(node)]));
}

function insert(root: Node, parts: readonly string[], value: string): void {
  let level = root;
  for (let i = 0; i < parts.length - 1; i++) {
    const next = level.get(parts[i]!);
    // An empty name can't be flattened again; no setting has one.
    if (typeof next === 'string' || parts[i] === '' || parts[i + 1] === '') return void level.set(parts.slice(i).join(':'), value);
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
