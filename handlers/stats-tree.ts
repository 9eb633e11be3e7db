import type { StatsTree } from './node-control.ts';

export type StatsValue = string | number;

/** What `metadata=true` says of a value. */
export interface DescribedValue {
  readonly value: StatsValue;
  readonly category: string;
  readonly title: string;
  readonly drawChart: boolean;
}

/** Category by first key. */
const CATEGORIES: Readonly<Record<string, string>> = { proc: 'Process', sys: 'System', es: 'Database' };
const UNDRAWN: ReadonlySet<string> = new Set(['id', 'startTime']);

/** The branch at the end of these keys; undefined when there is none or it is a single value. */
export function branchOf(tree: StatsTree, keys: readonly string[]): StatsTree | undefined {
  let branch: StatsTree = tree;
  for (const key of keys) {
    const next = Object.hasOwn(branch, key) ? branch[key] : undefined;
    if (next === undefined || typeof next !== 'object') return undefined;
    branch = next;
  }
  return branch;
}

/** All values with their keys put together: `{ 'proc-mem': 1 }`. */
export function flatten(tree: StatsTree, prefix = '', into: Record<string, StatsValue> = {}): Record<string, StatsValue> {
  for (const [key, value] of Object.entries(tree)) {
    const name = prefix === '' ? key : `${prefix}-${key}`;
    if (typeof value === 'object') flatten(value, name, into);
    else into[name] = value;
  }
  return into;
}

/** A tree in which each value is described; `keys` lead to it. */
export function described(tree: StatsTree, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => (
    [key, typeof value === 'object' ? described(value, [...keys, key]) : describe(value, [...keys, key])])));
}

/** A flat set in which each value is described. */
export function describedFlat(tree: StatsTree): Record<string, DescribedValue> {
  return Object.fromEntries(Object.entries(flatten(tree)).map(([name, value]) => [name, describe(value, name.split('-'))]));
}

function describe(value: StatsValue, keys: readonly string[]): DescribedValue {
  const [first = '', ...rest] = keys;
  return { value, category: CATEGORIES[first] ?? first, title: rest.map(words).join(', '), drawChart: typeof value === 'number' && !UNDRAWN.has(rest.at(-1) ?? '') };
}

/** `lastFlushSize` as `last flush size`. */
function words(key: string): string {
  return key.replace(/([a-z])([A-Z])/g, (_, before: string, letter: string) => `${before} ${letter.toLowerCase()}`);
}
