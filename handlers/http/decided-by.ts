import { IttyRouter } from 'itty-router';
import type { IRequest, RouteEntry } from 'itty-router';
import type { Call } from './context.ts';
import type { Arrive, Operation, DecidedBy, Route } from './route.ts';
import { routedUrl, streamSegment } from './url.ts';

/** Where an operation is decided, what its path takes, and what is asked of the caller. */
export interface Decided extends Pick<Operation, 'access' | 'audit'> {
  readonly place: DecidedBy;
  readonly methods: string;
  readonly arrive?: Arrive;
}

/** Null for what no operation answers. */
export type DecisionsOf = (call: Call) => Decided | null | Promise<Decided | null>;

/**
 * Looks operations up before anything is read. `append`: what is said of POST to a stream, the route that is called
 * most.
 */
export function decisionsOf(routes: readonly Route[], append: Decided | null): DecisionsOf {
  const router = IttyRouter<IRequest>({ routes: routes.flatMap(entriesOf) });
  return (call) => {
    if (append !== null && call.method === 'POST' && streamSegment(call.path) !== null) return append;
    const url = routedUrl(call);
    if (url === null) return null;
    const request = { method: call.method, url } as IRequest;
    return router.fetch(request).then((placed: Decided | undefined) => {
      if (placed === undefined) return null;
      call.params = request.params;
      return placed;
    });
  };
}

/** What the router has of each route, made once however many apps a process has. */
const ENTRIES = new WeakMap<Route, readonly RouteEntry[]>();

function entriesOf(route: Route): readonly RouteEntry[] {
  const known = ENTRIES.get(route);
  if (known !== undefined) return known;
  const { path, methods, operations } = route;
  const router = IttyRouter<IRequest>();
  for (const [method, { place, access, audit, arrive }] of Object.entries(operations)) {
    const placed: Decided = {
      place,
      methods,
      access,
      ...(audit !== undefined && { audit }),
      ...(arrive !== undefined && { arrive }),
    };
    router[method.toLowerCase() as 'get'](path, () => placed);
  }
  ENTRIES.set(route, router.routes);
  return router.routes;
}
