import type { Branch } from './context.ts';
import { failure } from './problem-document.ts';
import type { Route } from './route.ts';

/** A branch of which nothing is said. */
export const PLAIN: Branch = {
  fail: failure,
  isForSenders: false,
  probes: null,
  heedsRequiresLeader: false,
  hasReadsOfLeader: false,
};

/** Looks the branch of a path up, by what all routes say of themselves. */
export function branchesOf(routes: readonly Route[]): (path: string) => Branch {
  const byFirst = Map.groupBy(routes, ({ path }) => firstSegment(path));
  const branches = [...byFirst]
    .map(([first, own]) => ({
      start: `/${first}`,
      hasRoot: own.some(({ path }) => path === `/${first}`),
      branch: branchOf(own),
    }))
    .filter((each): each is Start => each.branch !== null);
  return (path) => {
    for (let i = 0; i < branches.length; i++) if (isOf(path, branches[i]!)) return branches[i]!.branch;
    return PLAIN;
  };
}

interface Start {
  /** The first segment of its paths. */
  readonly start: string;
  /** Whether the segment alone is a path. */
  readonly hasRoot: boolean;
  readonly branch: Branch;
}

function isOf(path: string, { start, hasRoot }: Start): boolean {
  const { length } = start;
  return path.startsWith(start) && (path.length === length ? hasRoot : path.charCodeAt(length) === SLASH);
}

const SLASH = 47;

/** Null where the routes say nothing. */
function branchOf(routes: readonly Route[]): Branch | null {
  const operations = routes.flatMap(({ path, operations: own }) =>
    Object.entries(own).map(([method, { access, place }]) => ({ path, method, access, place })),
  );
  const probes = operations.filter(({ access }) => access === 'probe').map(({ path }) => path);
  const branch: Branch = {
    fail: routes[0]!.failures?.reply ?? failure,
    isForSenders: operations.some(({ access }) => access === 'sender'),
    probes: probes.length === 0 ? null : new Set(probes),
    heedsRequiresLeader: routes.some((route) => route.heedsRequiresLeader),
    hasReadsOfLeader: operations.some(({ method, place }) => method === 'GET' && place === 'leader'),
  };
  const isPlain = (Object.keys(PLAIN) as (keyof Branch)[]).every((name) => branch[name] === PLAIN[name]);
  return isPlain ? null : branch;
}

/** A route's is never a variable. */
export function firstSegment(path: string): string {
  const end = path.indexOf('/', 1);
  return end < 0 ? path.slice(1) : path.slice(1, end);
}
