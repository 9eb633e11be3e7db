import type { Clock } from '../../core/ports/clock.ts';
import type { Meter, MeterLabels } from '../../core/ports/meter.ts';
import type { Fetch } from '../http/server.ts';

/** A request that took longer than this may have been a long poll, whose waiting is no latency. */
const LONG_MS = 1_000;

/** Methods by their own name; others count together. */
export const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']);
/** First segments of the paths of ours; others count as `other`. */
const AREAS: ReadonlySet<string> = new Set([
  'streams',
  'admin',
  'users',
  'info',
  'stats',
  'metrics',
  'gossip',
  'ping',
  'health',
  'sys',
  'openapi.json',
  'connectors',
  'webhook',
  'auto-scavenge',
]);

interface Meters {
  readonly meter: Meter;
  readonly clock: Clock;
}

/** Counts the requests that go through, and how long they take. */
export function meterRequests(fetch: Fetch, { meter, clock }: Meters): Fetch {
  const labels = new Labels();
  let underWay = 0;
  const ended = (request: Request, startMs: number, status: number) => {
    meter.gauge('eventstore_http_requests_under_way', --underWay);
    const ms = clock.monotonicMs() - startMs;
    const area = areaOf(request.url);
    const method = METHODS.has(request.method) ? request.method : 'other';
    meter.count('eventstore_http_requests_total', 1, labels.ofReply(method, `${Math.floor(status / 100)}xx`, area));
    if (ms < LONG_MS || !isLongPoll(request))
      meter.observe('eventstore_http_request_duration_seconds', ms / 1_000, labels.ofTime(method, area));
  };
  return (request) => {
    const startMs = clock.monotonicMs();
    meter.gauge('eventstore_http_requests_under_way', ++underWay);
    let reply: Response | Promise<Response>;
    try {
      reply = fetch(request);
    } catch (error) {
      ended(request, startMs, 500);
      throw error;
    }
    if (!(reply instanceof Promise)) {
      ended(request, startMs, reply.status);
      return reply;
    }
    return reply.then(
      (response) => {
        ended(request, startMs, response.status);
        return response;
      },
      (error: unknown) => {
        ended(request, startMs, 500);
        throw error;
      },
    );
  };
}

function isLongPoll(request: Request): boolean {
  return request.headers.has('es-longpoll') || request.headers.has('kurrent-longpoll');
}

/** The part of the interface that a URL belongs to: `streams`, `scavenge`, `users`, …; `root` and `other`. */
export function areaOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3) + 1;
  if (start === 0) return 'root';
  let end = start;
  while (end < url.length && url[end] !== '/' && url[end] !== '?') end++;
  if (end === start) return 'root';
  const first = url.slice(start, end);
  if (first === 'admin' && url.startsWith('/scavenge', end)) return 'scavenge';
  return AREAS.has(first) ? first : 'other';
}

/** Label objects, made once: methods, status classes and areas are few. */
class Labels {
  readonly #known = new Map<string, MeterLabels>();

  ofReply(method: string, status: string, area: string): MeterLabels {
    const key = `${method} ${status} ${area}`;
    let labels = this.#known.get(key);
    if (labels === undefined) this.#known.set(key, (labels = { method, status, area }));
    return labels;
  }

  ofTime(method: string, area: string): MeterLabels {
    const key = `${method} ${area}`;
    let labels = this.#known.get(key);
    if (labels === undefined) this.#known.set(key, (labels = { method, area }));
    return labels;
  }
}
