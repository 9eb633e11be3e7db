import { IttyRouter } from 'itty-router';
import type { IRequest, RouteEntry } from 'itty-router';
import { SkuaError } from '../core/base/errors.ts';
import { ANONYMOUS } from '../core/base/principal.ts';
import { countRefusal, enter } from './admission.ts';
import { RequestAudit } from './audit-handler.ts';
import { authenticate } from './authentication.ts';
import { nothingAt } from './http/absent.ts';
import { firstSegment } from './http/branches.ts';
import { foreignHost, isChange, refuseForeign, withHsts, withOrigin } from './http/browsers.ts';
import { appOf, goneOf, writerOf } from './http/context.ts';
import { behindMembers, forwardedOf, LOG_END_HEADER, refuseUnheard } from './http/forwarded.ts';
import { failedFor, Forwarding, notLeaderReply } from './forward.ts';
import type { Passing } from './forward.ts';
import { decisionsOf } from './http/decided-by.ts';
import type { Decided } from './http/decided-by.ts';
import { encoded } from './http/encoding.ts';
import type { App, AppContext, Call, Reply } from './http/context.ts';
import { isPresent } from './http/presence.ts';
import { failure } from './http/problem-document.ts';
import { empty, headOf, redirect, webResponse, withVary } from './http/reply.ts';
import type { Route } from './http/route.ts';
import {
  baseOf,
  decodeSegment,
  hasDotSegment,
  isSlashRedirect,
  pathOf,
  routedUrl,
  pathStart,
  streamSegment,
  SLASH_HINT,
} from './http/url.ts';
import { branchAt, routesFor } from './routes.ts';
import { appendTo } from './streams/append-events.ts';

export type { AppContext, AppOptions } from './http/context.ts';

type Router = { fetch(call: Call, app: App): Promise<Reply | undefined> };

const APPEND_METHODS = 'POST, DELETE, GET, OPTIONS';
const APPEND: Decided = { place: 'writes', methods: APPEND_METHODS, access: 'stream' };

/** The whole HTTP interface as one function. It never rejects: every failure is a reply. */
export function createApp(context: AppContext): (request: Request) => Promise<Response> {
  const { server } = context;
  const app = appOf(
    server === undefined || context.features?.cluster == null ? context : { ...context, server: behindMembers(server) },
  );
  const edge: Edge = {
    app,
    router: createRouter(app),
    audit: app.audit === null ? null : new RequestAudit(app, app.audit),
    forwarding:
      app.features.cluster == null
        ? null
        : new Forwarding(
            app,
            app.features.cluster,
            decisionsOf(routesOf(app), app.options.disableAtomPub ? null : APPEND),
          ),
  };
  const {
    server: { toResponse = webResponse },
    options: { hstsSeconds },
  } = app;
  return async (request) => {
    const call = callOf(request, app);
    const refused = refusedHost(call, app);
    const reply =
      (refused === null ? null : await refused) ??
      (call.forwarded === null ? await answer(call, edge) : await answerForwarded(call, edge, call.forwarded.epoch));
    if (!call.isLong) app.turns.answered();
    const named = call.session === null ? reply : withVary(reply, 'Cookie');
    const own = hstsSeconds === 0 ? named : withHsts(named, call, hstsSeconds);
    const sent = encoded(app.origins === null ? own : withOrigin(own, call, app.origins), call, app);
    const whole = sent instanceof Promise ? await sent : sent;
    return toResponse(request.method === 'HEAD' ? headOf(whole) : whole);
  };
}

interface Edge {
  readonly app: App;
  readonly router: Router;
  readonly audit: RequestAudit | null;
  /** Null where the node is no member of a cluster. */
  readonly forwarding: Forwarding | null;
}

/**
 * The refusal of a request for a host that is not the node's; null for any other. Its text is for senders of webhooks,
 * too: a person who set one up can learn in no other way what to change.
 */
function refusedHost(call: Call, app: App): Reply | null | Promise<Reply | null> {
  const found = foreignHost(call, app);
  if (found === null) return null;
  const refused = (error: unknown): Reply | null => {
    if (error === null) return null;
    countRefusal(app, error);
    return call.branch.isForSenders ? failure(error, call, app) : call.branch.fail(error, call, app);
  };
  return found.then(refused, refused);
}

/** A request that another member has passed on to this one, as the leader of an epoch. */
async function answerForwarded(call: Call, edge: Edge, epoch: number): Promise<Reply> {
  const { fence, log, patience } = edge.app.features.cluster!;
  const held = patience.beginPassedOn(call.forwarded!.atMs ?? null, goneOf(call, edge.app));
  const reply = await fence.run(epoch, held, async (guard) => {
    call.guard = guard;
    if (!guard.isOpen) return notLeaderReply();
    return answer(call, edge);
  });
  return { ...reply, headers: { ...reply.headers, [LOG_END_HEADER]: String(log.end) } };
}

/** What a member's client changes is decided by the leader, where its handler writes it (`Fence.own`). */
function answer(call: Call, edge: Edge): Promise<Reply> {
  const { app } = edge;
  const { cluster } = app.features;
  return cluster == null || call.forwarded !== null || call.method === 'GET'
    ? answerHere(call, edge)
    : cluster.fence.own(
        () => writerOf(call, app),
        goneOf(call, app),
        () => answerHere(call, edge),
      );
}

async function answerHere(call: Call, { app, router, audit, forwarding }: Edge): Promise<Reply> {
  let isKnown = false;
  let passing: Passing | null = null;
  let held: Passing['held'] = null;
  try {
    // Those that come by way of a member were judged there.
    if (isChange(call.method) && call.forwarded === null) refuseForeign(call, app);
    if (forwarding !== null) {
      refuseUnheard(call);
      if (forwarding.mayPassOn(call)) {
        passing = { isKnown: false, held: null };
        const answered = await forwarding.answer(call, passing);
        if (answered !== null) return answered;
        held = passing.held;
        passing = null;
      }
    }
    const caller = authenticate(call, app);
    const known = (call.principal = caller instanceof Promise ? await caller : caller);
    isKnown = true;
    audit?.loggedIn(call);
    const reply = await (held === null
      ? answerKnown(call, app, router)
      : forwarding!.here(held, () => answerKnown(call, app, router)));
    if (call.principal !== known) audit?.loggedIn(call);
    audit?.done(call, reply.status);
    return reply;
  } catch (thrown) {
    const failed = failedFor(call.guard, thrown);
    if (failed === null) return notLeaderReply();
    const { error } = failed;
    countRefusal(app, error);
    const reply = call.branch.fail(error, call, app);
    if (isKnown || passing?.isKnown === true) audit?.failed(call, reply.status, error);
    else audit?.notLoggedIn(call, reply.status, error);
    return reply;
  }
}

function answerKnown(call: Call, app: App, router: Router): Reply | Promise<Reply> {
  if (call.method === 'POST' && !app.options.disableAtomPub) {
    const segment = streamSegment(call.path);
    if (segment !== null) {
      call.methods = APPEND_METHODS;
      call.entered = 'stream';
      return appendTo(call, app, segment);
    }
  }
  return route(router, call, app);
}

function callOf(request: Request, app: App): Call {
  const url = request.url;
  const start = pathStart(url);
  const origin = url.slice(0, start);
  const path = pathOf(url, start);
  const { isTrustedProxy } = app.server;
  const forwarded = app.features.cluster == null ? null : forwardedOf(request, app);
  return {
    // HEAD is answered wherever GET is, and as GET is (RFC 9110 section 9.3.2), up to the body.
    request,
    method: request.method === 'HEAD' ? 'GET' : request.method,
    url,
    origin,
    path,
    branch: branchAt(path),
    params: {},
    query: {},
    methods: '',
    principal: ANONYMOUS,
    countedAs: null,
    session: null,
    entered: null,
    base: forwarded?.base ?? (isTrustedProxy === undefined || isTrustedProxy(request) ? null : origin),
    audited: null,
    forwarded,
    guard: null,
    isLong: false,
    body: null,
  };
}

async function route(router: Router, call: Call, app: App): Promise<Reply> {
  const url = routedUrl(call);
  if (url === null) return unroutable(call);
  const reply = await router.fetch(url === call.url ? call : Object.assign(call, { url }), app);
  if (reply !== undefined) return reply;
  throw nothingAt(call.path);
}

function unroutable(call: Call): Reply {
  if (!hasDotSegment(call.path)) return slashRedirect(call);
  const segment = streamSegment(call.path);
  if (segment !== null) decodeSegment(segment);
  throw new SkuaError(
    'not_found',
    `There is nothing at ${call.path}. Paths are not normalised: resolve . and .. first.`,
  );
}

/** The router tolerates trailing slashes; here most are unknown paths, and those of streams are redirected. */
function slashRedirect(call: Call): Reply {
  if (!isSlashRedirect(call.path)) throw nothingAt(call.path, ' Leave out the trailing slash.');
  call.methods = APPEND_METHODS;
  const query = call.url.slice(call.origin.length + call.path.length);
  const base = baseOf(call);
  // Caches tell replies apart by host and path, not by forwarding headers: what these led to is for this client alone.
  return redirect(
    call,
    `${base}${call.path.slice(0, -1)}${query}`,
    'Moved Permanently',
    base === call.origin ? 'max-age=31536000, public' : 'no-store',
  );
}

function routesOf(app: App): readonly Route[] {
  return routesFor(app.options).filter((route) => isPresent(app, route));
}

/**
 * Every route. Paths that begin alike have a router of their own: one for all would try a hundred expressions on most
 * of them.
 */
function createRouter(app: App): Router {
  const byFirst = Map.groupBy(routesOf(app), ({ path }) => firstSegment(path));
  const routers = new Map(
    [...byFirst].map(([first, routes]) => [
      first,
      IttyRouter({ routes: routes.flatMap(entriesOf) }) as unknown as Router,
    ]),
  );
  return { fetch: async (call, app) => routers.get(firstSegment(call.path))?.fetch(call, app) };
}

/**
 * What the router has of each route, made when the route is first part of an app: it knows nothing of the app, of which
 * a process may have many.
 */
const ENTRIES = new WeakMap<Route, readonly RouteEntry[]>();

/** A route, and behind its methods the answers that need to know the path: OPTIONS and 405. */
function entriesOf(route: Route): readonly RouteEntry[] {
  const known = ENTRIES.get(route);
  if (known !== undefined) return known;
  const { path, methods, operations } = route;
  const router = IttyRouter<IRequest & Call, [App]>();
  for (const [method, operation] of Object.entries(operations)) {
    const { handler } = operation;
    const register = router[method.toLowerCase() as 'get'];
    register<IRequest & Call, [App]>(path, (call, app) => {
      call.methods = methods;
      const entering = enter(call, app, operation);
      return entering === undefined ? handler(call, app) : entering.then(() => handler(call, app));
    });
  }
  router.all<IRequest & Call, [App]>(path, (call) => {
    call.methods = methods;
    if (call.method === 'OPTIONS') return empty(call, 200, 'OK');
    throw new SkuaError(
      'method_not_allowed',
      `${call.request.method} is not supported here. Use ${methods}.`,
      path.startsWith('/streams/:stream/:') ? { hint: SLASH_HINT } : {},
    );
  });
  ENTRIES.set(route, router.routes);
  return router.routes;
}
