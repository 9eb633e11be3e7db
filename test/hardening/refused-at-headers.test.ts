import { beforeAll, describe, expect, test } from 'vitest';
import { silentMeter } from '../../core/ports/meter.ts';
import type { Meter } from '../../core/ports/meter.ts';
import { createApp } from '../../handlers/app.ts';
import { ROUTES } from '../../handlers/routes.ts';
import { createGrpc, servicesOf } from '../../handlers/grpc.ts';
import { appOf } from '../../handlers/http/context.ts';
import type { Access } from '../../handlers/http/context.ts';
import { ORIGIN } from '../handlers/harness.ts';
import { AS, secured } from '../handlers/secured.ts';
import { fakeBackups } from '../support/backup/fake-backups.ts';
import { FakeAutoScavenge } from '../support/fake-auto-scavenge.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { fakeConnectors, fakeIngest } from '../support/fake-connectors.ts';
import { fakeErasure } from '../support/fake-erasure.ts';
import { FakeNode } from '../support/fake-node.ts';
import { fakePage } from '../support/fake-page.ts';
import { fakeGroups } from '../support/fake-subscriptions.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';

/**
 * Every operation of the route table and every method of gRPC, at a node alone and at a member that does not lead,
 * called by who may do nothing, with a body that never arrives: each has to be refused by its headers alone, without a
 * look at the body.
 */

/** What the anonymous caller may not do, and what needs a group, or to be the user in the path. */
const NEEDS_LOGIN: ReadonlySet<Access> = new Set<Access>([
  'statistics',
  'authenticated',
  'self',
  'operators',
  'backup',
  'administrators',
  'members',
  'stream',
]);
const NEEDS_ROLE: ReadonlySet<Access> = new Set<Access>(['self', 'operators', 'backup', 'administrators', 'members']);

interface Place {
  readonly app: ReturnType<typeof createApp>;
  readonly grpc: ReturnType<typeof createGrpc>;
  readonly methods: ReturnType<typeof servicesOf>[number]['methods'];
  /** Refusals by kind. */
  readonly counted: Map<unknown, number>;
}

const places = new Map<string, Place>();
let onRead: (none: -1) => void = () => {};

/** A body, or a message, that never comes. */
function neverRead(): Promise<never> {
  onRead(-1);
  return new Promise<never>(() => {});
}

/** The rest of a transport of which nothing is read. */
const untouched = {
  read: neverRead,
  memory: (bytes: number) => new Uint8Array(bytes),
  send: () => null,
  guarded: () => {},
};

/** What a request is answered by its headers, or -1 where its body was to be read first. */
function byHeaders<T>(answer: () => Promise<T>): Promise<T | -1> {
  const read = new Promise<-1>((resolve) => {
    onRead = resolve;
  });
  return Promise.race([answer(), read]);
}

beforeAll(async () => {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const features = {
    node: new FakeNode(),
    webhooks: { connectors: await fakeConnectors(), ingest: fakeIngest() },
    autoScavenge: new FakeAutoScavenge(),
    backups: await fakeBackups(clock),
    subscriptions: await fakeGroups('shared'),
    erasure: fakeErasure(clock),
    page: fakePage(),
  };
  const follower = fakeCluster();
  Object.assign(follower.membership, { isLeader: false, index: 1 });
  let callers = 0;
  for (const [name, cluster] of [
    ['a node alone', null],
    ['a member that does not lead', follower],
  ] as const) {
    // Each comes from another address: failures of one are not to bar the next.
    const counted = new Map<unknown, number>();
    const meter: Meter = {
      ...silentMeter,
      count: (metric, value = 1, labels = {}) => {
        if (metric === 'eventstore_requests_refused_total')
          counted.set(labels['kind'], (counted.get(labels['kind']) ?? 0) + value);
      },
    };
    const h = secured({ ...features, meter, cluster, readBody: neverRead, addressOf: () => `192.0.2.${++callers}` });
    places.set(name, {
      app: h.app,
      grpc: createGrpc(h.context),
      methods: servicesOf(appOf(h.context)).flatMap(({ methods }) => methods),
      counted,
    });
  }
});

const OPERATIONS = ROUTES.flatMap(({ path, operations }) =>
  Object.entries(operations).map(([method, { access }]) => ({
    key: `${method} ${path}`,
    method,
    path: path.replace(/:(?:count|position)\b/g, '1').replace(/:\w+\+?/g, 'ada'),
    access,
  })),
);
const CALLERS = [
  ['nobody', AS.anonymous, (access: Access) => (NEEDS_LOGIN.has(access) ? 401 : null)],
  ['a wrong password', AS.wrong, (access: Access) => (access === 'probe' || access === 'sender' ? null : 401)],
  ['a user without the role', AS.plain, (access: Access) => (NEEDS_ROLE.has(access) ? 403 : null)],
] as const;

describe.each(['a node alone', 'a member that does not lead'])('at %s', (place) => {
  test.each(CALLERS)('every operation refuses %s before the body', async (_, headers, statusFor) => {
    const { app } = places.get(place)!;
    const seen: Record<string, number> = {};
    const wanted: Record<string, number> = {};
    for (const { key, method, path, access } of OPERATIONS) {
      const status = statusFor(access);
      if (status === null || (place === 'a node alone' && access === 'members')) continue;
      wanted[key] = status;
      const request = new Request(ORIGIN + path, {
        method,
        headers: {
          'content-type': 'application/json',
          'es-eventtype': 't',
          'es-eventid': '00000000-0000-4000-8000-000000000001',
          ...headers,
        },
      });
      seen[key] = await byHeaders(async () => (await app(request)).status);
    }
    expect(seen).toEqual(wanted);
    expect(Object.keys(seen).length).toBeGreaterThan(50);
  });

  test.each(CALLERS)('every method of gRPC refuses %s before the first message', async (_, headers, statusFor) => {
    const { grpc, methods } = places.get(place)!;
    const seen: Record<string, unknown> = {};
    const wanted: Record<string, unknown> = {};
    for (const { path, access } of methods) {
      const status = statusFor(access);
      if (status === null) continue;
      // Without a login, and without the role, the call is known and may not be made; a wrong login is none.
      wanted[path] = headers === AS.wrong ? 16 : 7;
      const request = new Request(ORIGIN + path, {
        method: 'POST',
        headers: { 'content-type': 'application/grpc', ...headers },
      });
      seen[path] = await byHeaders(async () => {
        const ending = await grpc({ ...untouched, path, request });
        return 'status' in ending ? ending.status : ending.httpStatus;
      });
    }
    expect(seen).toEqual(wanted);
    expect(Object.keys(seen).length).toBeGreaterThan(10);
  });

  test('a call for no connector is 404 before its body', async () => {
    const request = new Request(`${ORIGIN}/webhook/letters`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    expect(await byHeaders(async () => (await places.get(place)!.app(request)).status)).toBe(404);
  });

  test('refusals are counted by kind', async () => {
    const { app, grpc, counted } = places.get(place)!;
    counted.clear();
    for (const headers of [AS.anonymous, AS.wrong, AS.plain]) {
      await app(new Request(`${ORIGIN}/users`, { method: 'POST', headers }));
      const path = '/event_store.client.users.Users/Create';
      await grpc({
        path,
        request: new Request(ORIGIN + path, { method: 'POST', headers }),
        ...untouched,
      });
    }
    expect([...counted]).toEqual([
      ['not_authenticated', 4],
      ['access_denied', 2],
    ]);
  });

  test('BatchAppend without a login ends as a call', async () => {
    const path = '/event_store.client.streams.Streams/BatchAppend';
    const request = new Request(ORIGIN + path, { method: 'POST', headers: { 'content-type': 'application/grpc' } });
    expect(await byHeaders(() => places.get(place)!.grpc({ ...untouched, path, request }))).toMatchObject({
      status: 7,
      trailers: { exception: 'access-denied' },
    });
  });
});
