import type { Handler } from './context.ts';
import { baseOf } from './links.ts';

/** `/health/live`: the process answers. It says nothing about whether requests can be served (http-api.md 1.2). */
export const live: Handler = () => new Response(null, { status: 204, statusText: 'No Content', headers: { 'cache-control': 'no-store' } });

/** `GET /`: where a newcomer finds things. */
export const welcome: Handler = (call, app) => {
  const base = baseOf(call);
  const body = {
    name: 'Skua',
    version: app.options.version,
    links: {
      all: `${base}/streams/%24all`,
      stream: `${base}/streams/{stream}`,
      events: `${base}/streams/{stream}/{event}/forward/{count}`,
      metadata: `${base}/streams/{stream}/metadata`,
      live: `${base}/health/live`,
    },
    hint: 'POST an array of events as application/vnd.eventstore.events+json to a stream to create it. GET with Accept: text/event-stream follows it.',
  };
  return new Response(`${JSON.stringify(body, null, 2)}\n`, { status: 200, statusText: 'OK', headers: { 'content-type': 'application/json; charset=utf-8' } });
};
