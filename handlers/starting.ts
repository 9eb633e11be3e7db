import type { Reply, ServerSide } from './http/context.ts';
import { OwnHosts } from './http/own-hosts.ts';
import { commonHeaders, headOf, webResponse, withoutBody } from './http/reply.ts';
import { liveReply, readyReply } from './node/information.ts';
import type { StartUpWork } from './documents/node.ts';
import type { NodeControl } from './http/node-control.ts';
import { pathOf, pathStart } from './http/url.ts';
import { branchAt } from './routes.ts';

const RETRY_AFTER_SECONDS = 5;

export interface StartingParts {
  /** How far the start is; null for a moment before the first word of it, and after the last. */
  readonly startUpWork: () => StartUpWork | null;
  readonly metrics: NodeControl['metrics'];
  /** Whether the anonymous caller may see metrics: users can't be read yet, so no caller can log in. */
  readonly allowAnonymousMetrics: boolean;
  readonly disableStatsOnHttp: boolean;
  /** As for the handlers of a node that has started: under another host nothing is revealed. */
  readonly allowedHosts?: readonly string[];
  readonly plainHostOf?: ServerSide['plainHostOf'];
  readonly toResponse?: ServerSide['toResponse'];
}

/**
 * What a node answers while its store is being opened: health with progress, metrics, and `not_ready` for everything
 * else. It never rejects.
 */
export function createStartingApp(parts: StartingParts): (request: Request) => Promise<Response> {
  const { toResponse = webResponse, allowedHosts = [], plainHostOf } = parts;
  const hosts = new OwnHosts(allowedHosts);
  const isOwn = (request: Request) => {
    const host = plainHostOf?.(request) ?? null;
    return host === null || hosts.has(host);
  };
  return async (request) => {
    const reply = await answer(request, parts, isOwn);
    return toResponse(request.method === 'HEAD' ? headOf(reply) : reply);
  };
}

function answer(request: Request, parts: StartingParts, isOwn: (request: Request) => boolean): Reply | Promise<Reply> {
  const { method, url } = request;
  const path = pathOf(url, pathStart(url));
  const isRead = method === 'GET' || method === 'HEAD';
  if (path === '/health/live' && isRead) return liveReply(false);
  if (path === '/health/ready' && isRead) return readyReply(null, parts.startUpWork() ?? BEGINNING);
  if (path === '/metrics' && isRead && parts.allowAnonymousMetrics && !parts.disableStatsOnHttp && isOwn(request))
    return metricsReply(request, parts);
  const reply = notReady(parts.startUpWork());
  return branchAt(path).isForSenders ? withoutBody(reply) : reply;
}

const BEGINNING: StartUpWork = {
  phase: 'opening',
  bytesDone: 0,
  bytesTotal: 0,
  elapsedSeconds: 0,
  remainingSeconds: null,
};

async function metricsReply(request: Request, { metrics }: StartingParts): Promise<Reply> {
  try {
    const { contentType, body } = await metrics(request.headers.get('accept'));
    return {
      status: 200,
      statusText: 'OK',
      headers: { ...commonHeaders(''), 'content-type': contentType, 'cache-control': 'no-store' },
      body,
    };
  } catch {
    return notReady(null);
  }
}

function notReady(work: StartUpWork | null): Reply {
  const seconds = Math.max(RETRY_AFTER_SECONDS, Math.min(60, Math.ceil(work?.remainingSeconds ?? 0)));
  const detail = `The node is starting${work === null ? '' : ` (${work.phase})`}. Try again in ${seconds} seconds; GET /health/ready shows its progress.`;
  return {
    status: 503,
    statusText: 'Server Is Not Ready',
    headers: {
      ...commonHeaders(''),
      'content-type': 'application/problem+json; charset=utf-8',
      'cache-control': 'no-store',
      'retry-after': String(seconds),
    },
    body: JSON.stringify({ code: 'not_ready', title: 'Server Is Not Ready', detail }),
  };
}
