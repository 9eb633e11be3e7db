import { createApp } from '../../handlers/app.ts';
import { contextOf } from '../support/app-context.ts';
import type { FlatContext } from '../support/app-context.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ModelStore } from '../support/model-store.ts';
import { SeededIds } from '../support/seeded-ids.ts';

export const ORIGIN = 'http://127.0.0.1:2113';
export const ATOM = 'application/vnd.eventstore.atom+json';
export const EVENTS = 'application/vnd.eventstore.events+json';

export interface Reply {
  readonly status: number;
  readonly reason: string;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON. */
  json(): any;
}

/** The handlers over a model of the store, with time and ids driven by the test. */
export function harness(context: Partial<FlatContext> = {}) {
  const clock = new ManualClock(Date.UTC(2031, 3, 2, 9, 15, 30));
  const ids = new SeededIds();
  const store = new ModelStore(clock, ids);
  const scavenger = new FakeScavenger();
  const whole = contextOf({
    store,
    scavenger,
    clock,
    ids,
    log: silentLog,
    meter: silentMeter,
    security: null,
    node: null,
    ...context,
  });
  const app = createApp(whole);
  let nextId = 0;

  const raw = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body: BodyInitLike = null,
    signal?: AbortSignal,
  ): Promise<Response> =>
    app(
      new Request(ORIGIN + path, {
        method,
        headers,
        body,
        ...(body instanceof ReadableStream && { duplex: 'half' }),
        ...(signal && { signal }),
      } as RequestInit),
    );

  const send = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body: BodyInitLike = null,
  ): Promise<Reply> => {
    const response = await raw(method, path, headers, body);
    const text = await response.text();
    return {
      status: response.status,
      reason: response.statusText,
      headers: response.headers,
      text,
      json: () => JSON.parse(text),
    };
  };
  const get = (path: string, accept?: string, headers: Record<string, string> = {}) =>
    send('GET', path, { ...(accept === undefined ? {} : { accept }), ...headers });
  const id = (): string => `00000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`;
  /** Appends events of type `made` with these data objects. */
  const fill = (stream: string, ...data: unknown[]) =>
    send(
      'POST',
      `/streams/${encodeURIComponent(stream)}`,
      { 'content-type': EVENTS },
      JSON.stringify(data.map((value) => ({ eventId: id(), eventType: 'made', data: value }))),
    );
  return { app, context: whole, store, scavenger, clock, raw, send, get, fill, id };
}

type BodyInitLike = string | Uint8Array<ArrayBuffer> | ReadableStream | null;

/** `{n: 0}` to `{n: count - 1}`. */
export function numbered(count: number): { readonly n: number }[] {
  return Array.from({ length: count }, (_, n) => ({ n }));
}

/** Pairs of relation and path of a feed's links. */
export function linksOf(feed: { links: { relation: string; uri: string }[] }): Record<string, string> {
  return Object.fromEntries(feed.links.map(({ relation, uri }) => [relation, uri.replace(ORIGIN, '')]));
}
