import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { createSecurity } from '../../core/security/security.ts';
import type { RunningSecurity } from '../../core/security/security.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { encodeText } from '../../core/base/text.ts';
import { createApp } from '../../handlers/app.ts';
import { routesFor } from '../../handlers/routes.ts';
import { DEFAULT_OPTIONS } from '../../handlers/http/context.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { fakeBackups, HOLD_ID } from '../support/backup/fake-backups.ts';
import { FakeAutoScavenge } from '../support/fake-auto-scavenge.ts';
import { CLUSTER_SECRET, fakeCluster } from '../support/fake-cluster.ts';
import { fakeConnectors, fakeIngest } from '../support/fake-connectors.ts';
import { fakePage } from '../support/fake-page.ts';
import { fakeErasure, PROOF_ID } from '../support/fake-erasure.ts';
import { fakeGroups } from '../support/fake-subscriptions.ts';
import { FakeNode } from '../support/fake-node.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import {
  ADMITTED,
  ADMITTED_TO_STREAM,
  CALLERS,
  EXPECTATIONS,
  foreignOriginStatus,
  NAMED,
  refusedStatus,
  SCAVENGE_ID,
  STREAM_KINDS,
} from './access-table.ts';
import type { Caller, Expectation, OperationExpectation, StreamExpectation, StreamKind } from './access-table.ts';
import { ORIGIN } from './harness.ts';
import { AS, basic } from './secured.ts';
import { contextOf } from '../support/app-context.ts';
import { bySize } from '../support/run-size.ts';

/**
 * Every operation of the route table, called by everyone, over a real store and real security. The requests are made
 * from the route table; `access-table.ts` says what is expected of each.
 */

const OPERATIONS = routesFor(DEFAULT_OPTIONS).flatMap(({ path, operations }) =>
  Object.entries(operations).map(([method, { access }]) => ({ key: `${method} ${path}`, method, path, access })),
);
const clock = new ManualClock(TEST_NOW_MS, 'microtask');
const ids = new SeededIds(7);
let opened: DirectoryStore;
let security: RunningSecurity;
let made = 0;

beforeAll(async () => {
  opened = await openTestStore({ storage: new MemoryStorage(), clock });
  security = createSecurity(
    {
      store: opened.store,
      keys: nodeKeys,
      clock,
      ids,
      log: silentLog,
      meter: silentMeter,
      sessions: { secrets: async () => ['token'] },
    },
    {
      passwordFormat: 'compatible',
      allowAnonymousStreamAccess: false,
      adminPassword: 'changeit',
      opsPassword: 'changeit',
    },
  );
  await security.start();
  await security.users.create({ loginName: 'kim', fullName: null, groups: ['pickers'], password: 'kim:pass' });
  await security.users.create({ loginName: 'olga', fullName: null, groups: ['$ops'], password: 'olga-pass' });
  await security.users.create({ loginName: 'bo', fullName: null, groups: ['$backup'], password: 'bo-pass' });
  await security.users.create({ loginName: 'ada', fullName: null, groups: ['$admins'], password: 'ada-pass' });
});

afterAll(() => opened.close());

function nextId(): string {
  return `20000000-0000-4000-8000-${String(++made).padStart(12, '0')}`;
}

async function write(stream: string, type: string, value: unknown): Promise<void> {
  await opened.store.append(stream, -2, [
    { id: nextId(), type, isJson: true, data: encodeText(JSON.stringify(value)), metadata: new Uint8Array(0) },
  ]);
}

const LISTS: Readonly<Record<string, unknown>> = {
  guarded: { $r: '$ops', $d: ['$ops'], $mr: ['nobody', '$ops'], $mw: '$ops' },
  closed: { $r: [], $w: [], $d: [], $mr: [], $mw: [] },
  scavenges: { $r: '$ops', $w: [], $d: [], $mr: [], $mw: [] },
};

/** A stream of a kind as nobody has touched it yet. Its name as it stands in a path. */
async function streamOf(kind: StreamKind): Promise<string> {
  if (kind === 'all') {
    await write('$$$all', '$metadata', {});
    return '$all';
  }
  const name = kind === 'scavenges' ? '$scavenges' : `${kind === 'system' ? '$' : ''}${kind}-${++made}`;
  // Twice for the history of a run, which the same list guards.
  for (const each of kind === 'scavenges' ? [name, `${name}-${SCAVENGE_ID}`] : [name]) {
    await write(`$$${each}`, '$metadata', LISTS[kind] === undefined ? {} : { $acl: LISTS[kind] });
    await write(each, 'made', { n: 1 });
  }
  return kind === 'metastream' ? `$$${name}` : name;
}

/** A scavenger with one run and one dry run; for the start of a run, without any. */
async function scavengerFor(key: string): Promise<FakeScavenger> {
  const scavenger = new FakeScavenger();
  if (key !== 'POST /admin/scavenge') await scavenger.start();
  scavenger.progressNow = {
    phase: 'Calculation',
    chunksDone: 0,
    chunksTotal: 1,
    bytesDone: 0,
    bytesTotal: 1,
    bytesReclaimed: 0,
    startedAtMs: TEST_NOW_MS,
    elapsedSeconds: 1,
    remainingSeconds: null,
  };
  scavenger.reports.set(SCAVENGE_ID, null);
  scavenger.explanations.set('explained', {
    stream: 'explained',
    lastEventNumber: 0,
    metadata: {},
    rules: [],
    removed: [],
    kept: [],
  });
  return scavenger;
}

/** Backups with one hold, and one backup under way but for the start of one. */
async function backupsFor(key: string) {
  const backups = await fakeBackups(clock, { isHeld: true });
  if (key !== 'POST /admin/backup') await backups.node.start();
  if (key === 'DELETE /admin/backup/check') backups.checks.start({ kind: 'verify', subset: 1 });
  return backups;
}

/** With one under way but for the start of one. */
function erasureFor(key: string) {
  const erasure = fakeErasure(clock);
  if (key !== 'POST /admin/erasure') erasure.start({ stream: 'orders', events: [] });
  return erasure;
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

/** The handlers for an operation, and whose request they answer. */
interface Handlers {
  readonly key: string;
  readonly app: ReturnType<typeof createApp>;
  caller: Caller | keyof typeof NAMED;
}

const CHANGES_NOTHING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const REFUSED: ReadonlySet<number> = new Set([401, 403, 405]);
let last: Handlers | null = null;

/** Handlers with everything as the operation needs it: those of the request before, where it has changed nothing. */
async function handlersFor(key: string, caller: Caller | keyof typeof NAMED): Promise<Handlers> {
  if (last?.key === key) {
    last.caller = caller;
    return last;
  }
  const handlers: Handlers = {
    key,
    caller,
    app: createApp(
      contextOf({
        store: opened.store,
        scavenger: await scavengerFor(key),
        clock,
        ids,
        log: silentLog,
        meter: silentMeter,
        security,
        node: new FakeNode(),
        webhooks: { connectors: await fakeConnectors(), ingest: fakeIngest() },
        autoScavenge: new FakeAutoScavenge(),
        backups: await backupsFor(key),
        cluster: fakeCluster(),
        subscriptions: await fakeGroups('shared'),
        erasure: erasureFor(key),
        page: fakePage(),
        // Each comes from another address: failures of one are not to bar the next.
        addressOf: () => `192.0.2.${++made}`,
        isTrustedProxy: () => handlers.caller === 'proxied',
        options: { ...DEFAULT_OPTIONS, trustedAuthHeader: 'ES-TrustedAuth' },
      }),
    ),
  };
  return (last = handlers);
}

/** What the handlers answer to one request. */
async function statusOf(
  key: string,
  caller: Caller | keyof typeof NAMED,
  { method, path, headers, body }: Sent,
): Promise<{ readonly status: number; readonly challenge: string | null; readonly text: string }> {
  const { app } = await handlersFor(key, caller);
  const response = await app(
    new Request(ORIGIN + path, {
      method,
      headers: { ...headers, ...(isNamed(caller) ? { 'es-trustedauth': 'olga; $ops' } : AS[caller]) },
      body,
    }),
  );
  if (!CHANGES_NOTHING.has(method) && !REFUSED.has(response.status)) last = null;
  return { status: response.status, challenge: response.headers.get('www-authenticate'), text: await response.text() };
}

function isNamed(caller: Caller | keyof typeof NAMED): caller is keyof typeof NAMED {
  return caller in NAMED;
}

function filled(path: string, params: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+\+?)/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined) throw new Error(`No value for ${name} of ${path}.`);
    return encodeURIComponent(value);
  });
}

async function streamRequest(
  method: string,
  path: string,
  expected: StreamExpectation,
  kind: StreamKind,
): Promise<Sent> {
  const stream = await streamOf(kind);
  const params: Record<string, string> = { stream, guid: nextId(), ...expected.params };
  if (params['event'] === 'metadataNumber')
    params['event'] = String((await opened.store.streamInfo(stream)).metadataVersion);
  const query = path.includes('/filtered') ? '?context=eventtype&type=prefix&data=made' : '';
  const headers: Record<string, string> =
    method !== 'POST'
      ? {}
      : {
          'content-type': 'application/json',
          ...(!path.includes('/incoming/') && { 'es-eventid': nextId() }),
          ...(!path.endsWith('/metadata') && { 'es-eventtype': 'made' }),
        };
  return {
    method,
    path: filled(path, params) + query,
    headers,
    body: method === 'POST' ? JSON.stringify(expected.bodyFor?.(stream) ?? expected.body ?? {}) : null,
  };
}

async function operationRequest(method: string, path: string, expected: OperationExpectation): Promise<Sent> {
  if (path.startsWith('/users')) {
    for (const loginName of ['victim', 'newcomer']) await security.users.delete(loginName).catch(() => {});
    await security.users.create({ loginName: 'victim', fullName: null, groups: [], password: 'x' });
  }
  const hasBody = expected.body !== undefined;
  return {
    method,
    path: `${filled(path, expected.params ?? {})}${expected.query === undefined ? '' : `?${expected.query}`}`,
    headers: hasBody ? { 'content-type': 'application/json' } : {},
    body: hasBody ? JSON.stringify(expected.body) : null,
  };
}

async function check(
  key: string,
  caller: Caller | keyof typeof NAMED,
  request: Sent,
  admitted: readonly Caller[],
  status: number,
): Promise<void> {
  const reply = await statusOf(key, caller, request);
  const counted = isNamed(caller) ? NAMED[caller] : caller;
  const wanted = admitted.includes(counted) ? status : refusedStatus(counted);
  expect([caller, request.path, reply.status, reply.text.slice(0, 300)]).toEqual([
    caller,
    request.path,
    wanted,
    expect.anything(),
  ]);
  expect(reply.challenge).toBe(wanted === 401 ? 'Basic realm="Skua", charset="UTF-8"' : null);
}

const EVERYBODY = [...CALLERS, ...(Object.keys(NAMED) as (keyof typeof NAMED)[])];

/** The column of foreign origins: `make` gives a fresh request for each. */
async function checkForeign(
  key: string,
  make: () => Promise<Sent>,
  isAdmitted: boolean,
  status: number,
): Promise<void> {
  for (const page of [
    { origin: 'https://elsewhere.test' },
    { origin: 'https://elsewhere.test', 'sec-fetch-site': 'cross-site' },
    { origin: 'https://other.node.test', 'sec-fetch-site': 'same-site' },
  ] as Record<string, string>[]) {
    const sent = await make();
    const refused = foreignOriginStatus(sent.method);
    const reply = await statusOf(key, 'admin', { ...sent, headers: { ...sent.headers, ...page } });
    expect([page, sent.method, sent.path, reply.status]).toEqual([
      page,
      sent.method,
      sent.path,
      refused ?? (isAdmitted ? status : refusedStatus('admin')),
    ]);
    if (refused !== null && !sent.path.startsWith('/webhook/'))
      expect(reply.text).toContain(
        sent.path.startsWith('/connectors') ? 'Pages of other origins' : '"code":"foreign_origin"',
      );
  }
}

test('every operation has an expectation, of the access that it has, and every expectation an operation', () => {
  expect(OPERATIONS.filter(({ key, access }) => EXPECTATIONS[key]?.access !== access).map(({ key }) => key)).toEqual(
    [],
  );
  expect(Object.keys(EXPECTATIONS).filter((key) => !OPERATIONS.some((operation) => operation.key === key))).toEqual([]);
  expect(new Set(OPERATIONS.map(({ key }) => key)).size).toBe(OPERATIONS.length);
});

describe('operations', () => {
  test.each(OPERATIONS.filter(({ access }) => access !== 'stream'))('$key', async ({ key, method, path }) => {
    const expected = EXPECTATIONS[key] as OperationExpectation;
    const admitted = expected.access === 'self' ? expected.admitted! : ADMITTED[expected.access];
    const make = () => operationRequest(method, path, expected);
    for (const caller of EVERYBODY) await check(key, caller, await make(), admitted, expected.status);
    await checkForeign(key, make, admitted.includes('admin'), expected.status);
  });
});

describe('a member of the cluster', () => {
  test.each(OPERATIONS.filter(({ access }) => access === 'members'))(
    '$key is for it',
    async ({ key, method, path }) => {
      const expected = EXPECTATIONS[key] as OperationExpectation;
      const sent = await operationRequest(method, path, expected);
      const reply = await statusOf(key, 'anonymous', {
        ...sent,
        headers: { ...sent.headers, authorization: `Cluster ${CLUSTER_SECRET}` },
      });
      expect([reply.status, reply.text]).toEqual([expected.status, expect.anything()]);
      expect(
        (await statusOf(key, 'anonymous', { ...sent, headers: { ...sent.headers, authorization: 'Cluster guessed' } }))
          .status,
      ).toBe(401);
    },
  );
});

describe('HEAD', () => {
  test.each(OPERATIONS.filter(({ key }) => key.startsWith('GET ')).filter((_, i) => i % bySize(5, 1) === 0))(
    'is answered as $key',
    async ({ key, method, path, access }) => {
      const expected = EXPECTATIONS[key]!;
      for (const caller of ['admin', 'plain', 'anonymous', 'wrong'] as const) {
        const sent =
          expected.access === 'stream'
            ? await streamRequest(method, path, expected, expected.kind ?? 'guarded')
            : await operationRequest(method, path, expected);
        const get = await statusOf(key, caller, sent);
        expect([access, caller, await statusOf(key, caller, { ...sent, method: 'HEAD' })]).toEqual([
          access,
          caller,
          { ...get, text: '' },
        ]);
      }
    },
  );
});

describe('streams', () => {
  const rows = OPERATIONS.filter(({ access }) => access === 'stream').flatMap((operation) =>
    kindsOf(EXPECTATIONS[operation.key]).map((kind) => ({ ...operation, kind })),
  );

  test.each(rows)('$key, $kind', async ({ key, method, path, kind }) => {
    const expected = EXPECTATIONS[key] as StreamExpectation;
    const admitted = ADMITTED_TO_STREAM[kind][expected.action];
    const make = () => streamRequest(method, path, expected, kind);
    for (const caller of EVERYBODY) await check(key, caller, await make(), admitted, expected.status);
    await checkForeign(key, make, admitted.includes('admin'), expected.status);
  });
});

function kindsOf(expected: Expectation | undefined): readonly StreamKind[] {
  if (expected?.access !== 'stream') return [];
  return expected.kind !== undefined ? [expected.kind] : STREAM_KINDS;
}

describe('everything else', () => {
  test.each(['/nothing', '/admin', '/users/kim/command/promote'])(
    '%s is 404 for all whose credentials are not wrong',
    async (path) => {
      for (const caller of CALLERS)
        expect((await statusOf('', caller, { method: 'GET', path, headers: {}, body: null })).status).toBe(
          caller === 'wrong' ? 401 : 404,
        );
    },
  );

  test.each(OPERATIONS.filter(({ access }) => access !== 'probe' && access !== 'sender').map(({ path }) => path))(
    'OPTIONS and an unknown method on %s need no user',
    async (path) => {
      const some = filled(path, {
        stream: 's',
        guid: nextId(),
        event: '0',
        count: '1',
        position: 'head',
        scavenge: SCAVENGE_ID,
        login: 'kim',
        connector: 'parcels',
        n: '1',
        'path+': 'proc',
        hold: HOLD_ID,
        proof: PROOF_ID,
        group: 'workers',
        id: nextId(),
        name: 'x',
      });
      for (const caller of CALLERS) {
        expect((await statusOf('', caller, { method: 'OPTIONS', path: some, headers: {}, body: null })).status).toBe(
          caller === 'wrong' ? 401 : 200,
        );
        expect((await statusOf('', caller, { method: 'PATCH', path: some, headers: {}, body: null })).status).toBe(
          caller === 'wrong' ? 401 : 405,
        );
        expect(
          (
            await statusOf('', caller, {
              method: 'PATCH',
              path: some,
              headers: { origin: 'https://elsewhere.test' },
              body: null,
            })
          ).status,
        ).toBe(403);
      }
    },
  );

  test.each([
    '',
    '..',
    'a/b',
    '../../etc/passwd',
    'a\0b',
    '\u007f',
    '$all',
    '$$x',
    '%2e%2e',
    'x'.repeat(3_000),
    '\u202eada',
    'constructor',
  ])('%j as a user is harmless in every place', async (name) => {
    const password = 'pass\0word:%';
    const segment = encodeURIComponent(name);
    const sends: readonly Sent[] = [
      { method: 'GET', path: `/users/${segment}`, headers: {}, body: null },
      { method: 'DELETE', path: `/users/${segment}`, headers: {}, body: null },
      { method: 'POST', path: `/users/${segment}/command/enable`, headers: {}, body: null },
      {
        method: 'POST',
        path: '/users',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ loginName: name, password }),
      },
    ];
    for (const sent of sends) expect((await statusOf('', 'admin', sent)).status).toBeLessThan(500);
    const isThere = await security.users.get(name).then(
      () => true,
      () => false,
    );
    const app = createApp(
      contextOf({
        store: opened.store,
        scavenger: new FakeScavenger(),
        clock,
        ids,
        log: silentLog,
        meter: silentMeter,
        security,
        node: null,
      }),
    );
    const login = async (each: string): Promise<number> =>
      (await app(new Request(`${ORIGIN}/`, { headers: { authorization: basic(name, each) } }))).status;
    expect([await login('wrong'), await login(password)]).toEqual([401, isThere ? 200 : 401]);
  });
});
