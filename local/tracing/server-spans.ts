import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, Tracer } from '@opentelemetry/api';
import { METHODS } from '../metrics/http-metrics.ts';
import type { Fetch } from '../server.ts';
import { routeNamer } from './route-name.ts';
import { contextOf } from './trace-context.ts';
import type { TracingOptions } from './tracing.ts';

/** A server span a request, with the attributes of the HTTP semantic conventions. Queries may hold anything and are left out. */
export function traceRequests(fetch: Fetch, tracer: Tracer, { routes, addressOf }: Pick<TracingOptions, 'routes' | 'addressOf'>): Fetch {
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
      if (response.status >= 500) span.setAttribute('error.type', String(response.status)).setStatus({ code: SpanStatusCode.ERROR });
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
    'url.path': url.pathname,
    'server.address': url.hostname,
    'network.protocol.name': 'http',
  };
  if (url.port !== '') attributes['server.port'] = Number(url.port);
  if (agent !== null) attributes['user_agent.original'] = agent;
  if (address !== null) attributes['client.address'] = address;
  return attributes;
}
