import { createTraceState, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Tracer } from '@opentelemetry/api';
import type { Log } from '../../core/ports/log.ts';
import type { Route } from '../../handlers/http/route.ts';
import { pathOf, pathStart } from '../../handlers/http/url.ts';
import { METHODS } from '../metrics/http-metrics.ts';
import type { Fetch } from '../http/server.ts';

/**
 * A server span a request, with the attributes of the HTTP semantic conventions. Queries may hold anything and are left
 * out.
 */
export function traceRequests(
  fetch: Fetch,
  tracer: Tracer,
  { routes, addressOf }: Pick<TracingOptions, 'routes' | 'addressOf'>,
): Fetch {
  const nameOf = routeNamer(routes);
  return async (request) => {
    const attributes = attributesOf(request, addressOf?.(request) ?? null);
    const route = nameOf(String(attributes['url.path']));
    const method = String(attributes['http.request.method']);
    if (route !== null) attributes['http.route'] = route;
    const name = `${method === '_OTHER' ? 'HTTP' : method}${route === null ? '' : ` ${route}`}`;
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, contextOf(request.headers));
    try {
      const response = await fetch(request);
      span.setAttribute('http.response.status_code', response.status);
      if (response.status >= 500)
        span.setAttribute('error.type', String(response.status)).setStatus({ code: SpanStatusCode.ERROR });
      return response;
    } catch (error) {
      span.recordException(error instanceof Error ? error : String(error));
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  };
}

function attributesOf(request: Request, address: string | null): Attributes {
  const url = new URL(request.url);
  const agent = request.headers.get('user-agent');
  const attributes: Attributes = {
    'http.request.method': METHODS.has(request.method) ? request.method : '_OTHER',
    'url.scheme': url.protocol.slice(0, -1),
    'url.path': pathOf(request.url, pathStart(request.url)),
    'server.address': url.hostname,
    'network.protocol.name': 'http',
  };
  if (url.port !== '') attributes['server.port'] = Number(url.port);
  if (agent !== null) attributes['user_agent.original'] = agent;
  if (address !== null) attributes['client.address'] = address;
  return attributes;
}

/** Finds the template of a path, such as `/streams/{stream}`, so that spans of one route have one name. */
export function routeNamer(routes: readonly Pick<Route, 'path'>[]): (path: string) => string | null {
  const known = routes.map(({ path }) => ({
    segments: path.split('/'),
    name: path.replaceAll('%24', '$').replace(/:(\w+)\+?/g, '{$1}'),
  }));
  return (path) => {
    const segments = path.replace(/^\/streams\/(?:%24|\$)/i, '/streams/%24').split('/', SEGMENTS_MAX);
    return known.find((route) => isOf(segments, route.segments))?.name ?? null;
  };
}

/** No route names as many segments; of a longer path only the last parameter has more. */
const SEGMENTS_MAX = 16;

/** Whether a path is of a route; `:name` stands for a segment, and `:name+` at the end for one or more. */
function isOf(segments: readonly string[], route: readonly string[]): boolean {
  if (route.at(-1)!.endsWith('+') ? segments.length < route.length : segments.length !== route.length) return false;
  return route.every((expected, i) =>
    expected.startsWith(':')
      ? segments[i] !== '' || (expected.endsWith('+') && segments.length > route.length)
      : segments[i] === expected,
  );
}

/** `traceparent` of W3C Trace Context, level 1; later versions may have more behind it. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const LENGTH_MAX = 512;

/** The trace that a request belongs to by its headers; a new one without them, and where they are malformed. */
export function contextOf(headers: Pick<Headers, 'get'>): Context {
  const parent = headers.get('traceparent');
  if (parent === null || parent.length > LENGTH_MAX) return ROOT_CONTEXT;
  const match = TRACEPARENT.exec(parent.trim());
  if (match === null || (match[1] === '00' && parent.trim().length !== 55)) return ROOT_CONTEXT;
  const state = headers.get('tracestate');
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: match[2]!,
    spanId: match[3]!,
    traceFlags: Number.parseInt(match[4]!, 16) & 1,
    isRemote: true,
    ...(state !== null && state.length <= LENGTH_MAX && { traceState: createTraceState(state) }),
  });
}

export interface TracingOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  readonly instanceId: string;
  readonly log: Log;
  readonly routes: readonly Pick<Route, 'path'>[];
  readonly addressOf?: (request: Request) => string | null;
}
