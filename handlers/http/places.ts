import { IttyRouter } from 'itty-router';
import type { IRequest, RouteEntry } from 'itty-router';
import type { Call } from './context.ts';
import type { Arrive, Place, Route } from './route.ts';
import { routedUrl, streamSegment } from './url.ts';

/** Where an operation is decided, and what its path takes. */
export interface Placed {
  readonly place: Place;
  readonly methods: string;
  readonly arrive?: Arrive;
}

/** Null for what no operation answers. */
export type PlacesOf = (call: Call) => Placed | null | Promise<Placed | null>;

/** Looks operations up before anybody is asked who calls. `append`: what is said of POST to a stream, the route that is called most. */
export function placesOf(routes: readonly Route[], append: Placed | null): PlacesOf {
  const router = IttyRouter<IRequest>({ routes: routes.flatMap(entriesOf) });
  return (call) => {
    if (append !== null && call.method === 'POST' && streamSegment(call.path) !== null) return append;
    const url = routedUrl(call);
    return url === null ? null : router.fetch({ method: call.method, url } as IRequest).then((placed: Placed | undefined) => placed ?? null);
  };
}

/** What the router has of each route, made once however many apps a process has. */
const ENTRIES = new WeakMap<Route, readonly RouteEntry[]>();

function entriesOf(route: Route): readonly RouteEntry[] {
  const known = ENTRIES.get(route);
  if (known !== undefined) return known;
  const { path, methods, operations } = route;
  const router = IttyRouter<IRequest>();
  for (const [method, { place, arrive }] of Object.entries(operations)) {
    const placed: Placed = { place, methods, ...(arrive !== undefined && { arrive }) };
    router[method.toLowerCase() as 'get'](path, () => placed);
  }
  ENTRIES.set(route, router.routes);
  return router.routes;
}
