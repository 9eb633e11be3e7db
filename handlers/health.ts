import type { App, Handler } from './context.ts';
import { baseOf } from './links.ts';
import type { StartUpWork } from './node-control.ts';

const NOT_STORED = { 'cache-control': 'no-store' };
const JSON_HEADERS = { ...NOT_STORED, 'content-type': 'application/json; charset=utf-8' };
/** Seconds after which to look again while a node starts. */
const RETRY_AFTER = { 'retry-after': '5' };

/** `/health/live`: 204 once the node has initialised, until then 503; always empty (http-api.md section 4). */
export const live: Handler = (_call, app) => liveReply(workOf(app) === null);

export function liveReply(isReady: boolean): Response {
  if (isReady) return new Response(null, { status: 204, statusText: 'No Content', headers: NOT_STORED });
  return new Response(null, { status: 503, statusText: 'Server Is Not Ready', headers: { ...NOT_STORED, ...RETRY_AFTER, 'content-length': '0' } });
}

/** `/health/ready`: whether requests can be served, and if not, how far the start has come. */
export const ready: Handler = (call, app) => {
  const isStopping = app.node?.state === 'ShuttingDown';
  return readyReply(call.method, isStopping ? 'stopping' : null, workOf(app));
};

/** What `/health/ready` says; `ending` in place of `ready` for a node that goes away. */
export function readyReply(method: string, ending: 'stopping' | null, work: StartUpWork | null): Response {
  const isReady = ending === null && work === null;
  const body = isReady ? { status: 'ready' } : ending !== null ? { status: ending } : { status: 'starting', ...work };
  const text = method === 'HEAD' ? null : `${JSON.stringify(body, null, 2)}\n`;
  if (isReady) return new Response(text, { status: 200, statusText: 'OK', headers: JSON_HEADERS });
  return new Response(text, { status: 503, statusText: 'Server Is Not Ready', headers: { ...JSON_HEADERS, ...RETRY_AFTER } });
}

/** Without a node around them (in functions) the handlers are there when they are asked. */
function workOf(app: App): StartUpWork | null {
  return app.node?.startUpWork() ?? null;
}

/** `GET /`: where a newcomer finds things. */
export const welcome: Handler = (call, app) => {
  const base = baseOf(call);
  const { disableStatsOnHttp, disableGossipOnHttp, version } = app.options;
  const node = app.node === null ? {} : {
    ready: `${base}/health/ready`,
    info: `${base}/info`,
    ...(!disableStatsOnHttp && { stats: `${base}/stats`, metrics: `${base}/metrics` }),
    ...(!disableGossipOnHttp && { gossip: `${base}/gossip` }),
  };
  const body = {
    name: 'Skua',
    version,
    links: {
      all: `${base}/streams/%24all`,
      stream: `${base}/streams/{stream}`,
      events: `${base}/streams/{stream}/{event}/forward/{count}`,
      metadata: `${base}/streams/{stream}/metadata`,
      live: `${base}/health/live`,
      ...node,
      openapi: `${base}/openapi.json`,
    },
    hint: 'POST an array of events as application/vnd.eventstore.events+json to a stream to create it. GET with Accept: text/event-stream follows it.',
  };
  return new Response(`${JSON.stringify(body, null, 2)}\n`, { status: 200, statusText: 'OK', headers: { 'content-type': 'application/json; charset=utf-8' } });
};
