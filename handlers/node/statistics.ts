import { SkuaError } from '../../core/base/errors.ts';
import { queryOf } from '../http/context.ts';
import type { Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import type { StatsTree } from '../http/node-control.ts';
import { nodeOf } from '../http/presence.ts';
import { document } from '../http/reply.ts';

const CACHING = { cacheControl: 'max-age=1, private', etag: null } as const;
/** Deeper than any branch. */
const DEPTH_MAX = 16;

/** GET `/stats` and `/stats/{path…}`. */
export const stats: Handler = (call, app) => {
  const { contentType } = negotiate(call, JSON_ONLY);
  const isGrouped = booleanOf(call, 'group', true);
  const isDescribed = booleanOf(call, 'metadata', false);
  const keys = keysOf(call);
  if (keys.length > 0 && !isGrouped)
    throw new SkuaError('bad_request', 'Dynamic stats selection works only with grouping enabled');
  const branch = branchOf(nodeOf(call, app).stats(), keys);
  if (branch === undefined)
    throw new SkuaError(
      'not_found',
      `There are no statistics '${keys.join('/')}', or they are a single value. GET /stats shows all.`,
    );
  const shown = isGrouped
    ? isDescribed
      ? described(branch, keys)
      : branch
    : isDescribed
      ? describedFlat(branch)
      : flatten(branch);
  return document(call, JSON.stringify(shown, null, 2), contentType, CACHING);
};

/**
 * GET `/stats/replication` and `/stats/tcp`: a single node has no replicas, and nothing here speaks the TCP protocol.
 */
export const noConnections: Handler = (call, app) => {
  const { contentType } = negotiate(call, JSON_ONLY);
  nodeOf(call, app);
  return document(call, '[]', contentType, CACHING);
};

function booleanOf(call: Call, name: string, otherwise: boolean): boolean {
  const text = queryOf(call, name)?.toLowerCase();
  if (text === undefined) return otherwise;
  if (text === 'true' || text === 'false') return text === 'true';
  throw new SkuaError('bad_request', `${name} is '${text}'; it must be true or false.`);
}

/** The keys behind `/stats/`, each decoded by itself: a drive's name may hold slashes. */
function keysOf(call: Call): string[] {
  const path = call.params['path'];
  if (path === undefined) return [];
  const segments = path.split('/');
  if (segments.length > DEPTH_MAX)
    throw new SkuaError('not_found', 'There are no statistics at that depth. GET /stats shows all.');
  return segments.map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      throw new SkuaError(
        'bad_request',
        `The path has malformed percent-encoding: '${segment}'. Encode names as UTF-8.`,
      );
    }
  });
}

export type StatsValue = string | number;

/** What `metadata=true` says of a value. */
interface DescribedValue {
  readonly value: StatsValue;
  readonly category: string;
  readonly title: string;
  readonly drawChart: boolean;
}

/** Category by first key. */
const CATEGORIES: Readonly<Record<string, string>> = { proc: 'Process', sys: 'System', es: 'Database' };
const UNDRAWN: ReadonlySet<string> = new Set(['id', 'startTime']);

/** The branch at the end of these keys; undefined when there is none or it is a single value. */
function branchOf(tree: StatsTree, keys: readonly string[]): StatsTree | undefined {
  let branch: StatsTree = tree;
  for (const key of keys) {
    const next = Object.hasOwn(branch, key) ? branch[key] : undefined;
    if (next === undefined || typeof next !== 'object') return undefined;
    branch = next;
  }
  return branch;
}

/** All values with their keys put together: `{ 'proc-mem': 1 }`. */
export function flatten(
  tree: StatsTree,
  prefix = '',
  into: Record<string, StatsValue> = {},
): Record<string, StatsValue> {
  for (const [key, value] of Object.entries(tree)) {
    const name = prefix === '' ? key : `${prefix}-${key}`;
    if (typeof value === 'object') flatten(value, name, into);
    else into[name] = value;
  }
  return into;
}

/** A tree in which each value is described; `keys` lead to it. */
function described(tree: StatsTree, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(tree).map(([key, value]) => [
      key,
      typeof value === 'object' ? described(value, [...keys, key]) : describe(value, [...keys, key]),
    ]),
  );
}

/** A flat set in which each value is described. */
function describedFlat(tree: StatsTree): Record<string, DescribedValue> {
  return Object.fromEntries(
    Object.entries(flatten(tree)).map(([name, value]) => [name, describe(value, name.split('-'))]),
  );
}

function describe(value: StatsValue, keys: readonly string[]): DescribedValue {
  const [first = '', ...rest] = keys;
  return {
    value,
    category: CATEGORIES[first] ?? first,
    title: rest.map(words).join(', '),
    drawChart: typeof value === 'number' && !UNDRAWN.has(rest.at(-1) ?? ''),
  };
}

/** `lastFlushSize` as `last flush size`. */
function words(key: string): string {
  return key.replace(/([a-z])([A-Z])/g, (_, before: string, letter: string) => `${before} ${letter.toLowerCase()}`);
}
