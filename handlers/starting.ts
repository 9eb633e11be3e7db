import { liveReply, readyReply } from './node/information.ts';
import type { NodeControl, StartUpWork } from './http/node-control.ts';
import { pathOf, pathStart } from './http/url.ts';

const RETRY_AFTER_SECONDS = 5;

export interface StartingParts {
  /** How far the start is; null for a moment before the first word of it, and after the last. */
  readonly startUpWork: () => StartUpWork | null;
  readonly metrics: NodeControl['metrics'];
  /** Whether the anonymous caller may see metrics: users can't be read yet, so nobody can prove to be another. */
  readonly allowAnonymousMetrics: boolean;
  readonly disableStatsOnHttp: boolean;
}

/**
 * What a node answers while its store is being opened: health with progress, metrics, and `not_ready` for everything
 * else. It never rejects.
 */
export function createStartingApp(parts: StartingParts): (request: Request) => Response | Promise<Response> {
  return (request) => {
    const { method, url } = request;
    const path = pathOf(url, pathStart(url));
    const isRead = method === 'GET' || method === 'HEAD';
    if (path === '/health/live' && isRead) return liveReply(false);
    if (path === '/health/ready' && isRead) return readyReply(method, null, parts.startUpWork() ?? BEGINNING);
    if (path === '/metrics' && method === 'GET' && parts.allowAnonymousMetrics && !parts.disableStatsOnHttp) return metricsReply(request, parts);
    return notReady(parts.startUpWork());
  };
}

const BEGINNING: StartUpWork = { phase: 'opening', bytesDone: 0, bytesTotal: 0, elapsedSeconds: 0, remainingSeconds: null };

async function metricsReply(request: Request, { metrics }: StartingParts): Promise<Response> {
  try {
    const { contentType, body } = await metrics(request.headers.get('accept'));
    return new Response(body, { status: 200, statusText: 'OK', headers: { 'content-type': contentType, 'cache-control': 'no-store' } });
  } catch {
    return notReady(null);
  }
}

function notReady(work: StartUpWork | null): Response {
  const seconds = Math.max(RETRY_AFTER_SECONDS, Math.min(60, Math.ceil(work?.remainingSeconds ?? 0)));
  const detail = `The node is starting${work === null ? '' : ` (${work.phase})`}. Try again in ${seconds} seconds; GET /health/ready shows how far it is.`;
  return new Response(JSON.stringify({ code: 'not_ready', title: 'Server Is Not Ready', detail }), {
    status: 503, statusText: 'Server Is Not Ready', headers: { 'content-type': 'application/problem+json; charset=utf-8', 'cache-control': 'no-store', 'retry-after': String(seconds) },
  });
}
