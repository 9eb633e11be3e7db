import { IttyRouter } from 'itty-router';
import type { IRequest } from 'itty-router';
import { SkuaError } from '../core/errors.ts';
import { ANONYMOUS } from '../core/security/principal.ts';
import { authenticate } from './authentication.ts';
import { requireAccess } from './authorization.ts';
import { isPresent } from './present.ts';
import { connectorFailure } from './connectors-errors.ts';
import { DEFAULT_OPTIONS } from './context.ts';
import type { App, AppContext, Call } from './context.ts';
import { baseOf } from './links.ts';
import { isSlashRedirect, normaliseLiterals, pathOf, pathStart, streamSegment } from './path.ts';
import { failure } from './problem.ts';
import { empty, redirect } from './reply.ts';
import type { Route } from './route.ts';
import { routesFor } from './routes.ts';
import { appendTo } from './streams-append.ts';
import { isIngestPath, webhookFailure } from './webhook.ts';
import { isConnectorPath } from './webhooks.ts';

export type { AppContext, AppOptions } from './context.ts';

type Router = { fetch(call: Call, app: App): Promise<Response | undefined> };

const APPEND_METHODS = 'POST, DELETE, GET, OPTIONS';

/** The whole HTTP interface as one function. It never rejects: every failure is a reply. */
export function createApp(context: AppContext): (request: Request) => Response | Promise<Response> {
  const app: App = { ...context, options: { ...DEFAULT_OPTIONS, ...context.options }, logins: new WeakMap() };
  const router = createRouter(app);
  return async (request) => {
    const call = callOf(request);
    try {
      const caller = authenticate(call, app);
      call.principal = caller instanceof Promise ? await caller : caller;
      if (call.method === 'POST' && !app.options.disableAtomPub) {
        const segment = streamSegment(call.path);
        if (segment !== null) {
          call.methods = APPEND_METHODS;
          return await appendTo(call, app, segment);
        }
      }
      return await route(router, call, app);
    } catch (error) {
      if (isIngestPath(call.path)) return webhookFailure(error, call, app);
      return isConnectorPath(call.path) ? connectorFailure(error, call, app) : failure(error, call, app);
    }
  };
}

function callOf(request: Request): Call {
  const url = request.url;
  const start = pathStart(url);
  return {
    request, method: request.method, url, origin: url.slice(0, start), path: pathOf(url, start),
    params: {}, query: {}, methods: '', principal: ANONYMOUS, base: null,
  };
}

async function route(router: Router, call: Call, app: App): Promise<Response> {
  const path = normaliseLiterals(call.path);
  if (path.length > 1 && path.endsWith('/')) return slashRedirect(call);
  const routed = path === call.path ? call : Object.assign(call, { url: call.origin + path + call.url.slice(call.origin.length + call.path.length) });
  const response = await router.fetch(routed, app);
  if (response !== undefined) return response;
  throw new SkuaError('not_found', `There is nothing at ${call.path}.`);
}

/** The router tolerates trailing slashes; here most are unknown paths, and those of streams are redirected. */
function slashRedirect(call: Call): Response {
  if (!isSlashRedirect(call.path)) throw new SkuaError('not_found', `There is nothing at ${call.path}. Leave the trailing slash out.`);
  call.methods = APPEND_METHODS;
  const query = call.url.slice(call.origin.length + call.path.length);
  return redirect(call, `${baseOf(call)}${call.path.slice(0, -1)}${query}`, 'Moved Permanently', 'max-age=31536000, public');
}

/** Users can't be managed while security is off. */
function routesOf(app: App): readonly Route[] {
  return routesFor(app.options).filter(({ path }) => (app.security !== null || !path.startsWith('/users')) && isPresent(app, path));
}

/** Every route, and behind its methods the answers that need to know the path: OPTIONS and 405. */
function createRouter(app: App): Router {
  const router = IttyRouter<IRequest & Call, [App]>();
  for (const { path, methods, operations } of routesOf(app)) {
    for (const [method, { access, handler }] of Object.entries(operations)) {
      const register = router[method.toLowerCase() as 'get'];
      register<IRequest & Call, [App]>(path, (call, app) => {
        call.methods = methods;
        requireAccess(call, app, access);
        return handler(call, app);
      });
    }
    router.all<IRequest & Call, [App]>(path, (call) => {
      call.methods = methods;
      if (call.method === 'OPTIONS') return empty(call, 200, 'OK');
      throw new SkuaError('method_not_allowed', `${call.method} is not possible here. Use ${methods}.`);
    });
  }
  return router as unknown as Router;
}
