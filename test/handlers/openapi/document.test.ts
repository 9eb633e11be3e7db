import { parkedStreamOf } from '../../../core/persistent/api.ts';
import { describe, expect, test } from 'vitest';
import { ScavengeOrders } from '../../../core/auto-scavenge/orders/orders.ts';
import { HOLD_MS } from '../../../core/store/hold/hold.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { decodeText } from '../../../core/base/text.ts';
import { createApp } from '../../../handlers/app.ts';
import { ROUTES, routesFor } from '../../../handlers/routes.ts';
import { contextOf } from '../../support/app-context.ts';
import type { FlatContext } from '../../support/app-context.ts';
import { DEFAULT_OPTIONS } from '../../../handlers/http/context.ts';
import { openApiDocument, openApiRoute, pathTemplate } from '../../../handlers/openapi/document.ts';
import type { OperationDoc } from '../../../handlers/http/route.ts';
import { expectDocumented, requestOf, resolved } from '../../support/api-walk.ts';
import type { Asked, OperationObject, ParameterObject } from '../../support/api-walk.ts';
import { fakeBackups } from '../../support/backup/fake-backups.ts';
import { SCAVENGE_ID } from '../access-table.ts';
import { FakeAutoScavenge, STATUSES } from '../../support/fake-auto-scavenge.ts';
import { CLUSTER_SECRET, fakeCluster } from '../../support/fake-cluster.ts';
import { fakeConnectors, fakeIngest } from '../../support/fake-connectors.ts';
import { fakePage } from '../../support/fake-page.ts';
import { fakeErasure } from '../../support/fake-erasure.ts';
import { fakeGroups } from '../../support/fake-subscriptions.ts';
import { FakeNode } from '../../support/fake-node.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { FakeSecurity } from '../../support/fake-security.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openApiErrors } from '../../support/openapi-check.ts';
import { schemaErrors } from '../../support/json-schema.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../../support/test-store.ts';
import { EVENTS, ORIGIN } from '../harness.ts';
import { IS_LONG_RUN, RUNS_FIXED } from '../../support/run-size.ts';

const document = openApiDocument(ROUTES, { version: '9.9.9', isSecured: true });
const paths = document.paths as Record<string, Record<string, OperationObject>>;

if (RUNS_FIXED)
  describe('the document', () => {
    test('follows the rules of OpenAPI 3.1', async () => {
      expect(await openApiErrors(document)).toEqual([]);
    });

    /** A copy of the document with something wrong in it. */
    type Wrong = (copy: Copy) => void;
    interface Copy {
      openapi: string;
      info: Record<string, unknown>;
      paths: Record<string, Record<string, Record<string, any>>>;
      components: Record<string, Record<string, any>>;
      tags: { name: string }[];
    }
    const inGet =
      (change: (operation: Record<string, any>) => void): Wrong =>
      ({ paths }) =>
        change(paths['/streams/{stream}']!['get']!);

    test.each<[string, Wrong, RegExp]>([
      [
        'a version that is none',
        (copy) => {
          copy.openapi = '4.0.0';
        },
        /version/,
      ],
      [
        'no title',
        ({ info }) => {
          delete info['title'];
        },
        /title/,
      ],
      [
        'a member that means nothing',
        inGet((operation) => {
          operation['returns'] = 'much';
        }),
        /returns/,
      ],
      [
        'a status that is none',
        inGet((operation) => {
          operation['responses']['99'] = { description: 'x' };
        }),
        /99/,
      ],
      [
        'a response without a description',
        inGet((operation) => {
          operation['responses']['200'] = {};
        }),
        /description/,
      ],
      [
        'a parameter in no place',
        inGet((operation) => {
          operation['parameters'] = [{ name: 'x', in: 'body', schema: {} }];
        }),
        /must be equal to one of the allowed values/,
      ],
      [
        'a path parameter that is not required',
        inGet((operation) => {
          operation['parameters'] = [{ name: 'stream', in: 'path', schema: {} }];
        }),
        /required/,
      ],
      [
        'a component whose name is none',
        ({ components }) => {
          components['schemas']!['a b'] = {};
        },
        /a b/,
      ],
      [
        'a reference that leads nowhere',
        inGet((operation) => {
          operation['responses']['200'] = { $ref: '#/components/responses/Unheard' };
        }),
        /Can't resolve #\/components\/responses\/Unheard/,
      ],
      [
        'a path variable that nobody describes',
        inGet((operation) => {
          operation['parameters'] = [];
        }),
        /has the path parameters/,
      ],
      [
        'a parameter twice',
        inGet((operation) => {
          operation['parameters'].push(...operation['parameters']);
        }),
        /has a parameter twice/,
      ],
      [
        'a header parameter that is ignored',
        inGet((operation) => {
          operation['parameters'].push({ name: 'Accept', in: 'header', schema: {} });
        }),
        /is ignored/,
      ],
      [
        'an operationId twice',
        ({ paths }) => {
          paths['/ping']!['get']!['operationId'] = paths['/info']!['get']!['operationId'];
        },
        /of another/,
      ],
      [
        'a tag that is not declared',
        inGet((operation) => {
          operation['tags'] = ['Unheard'];
        }),
        /tag that is not declared/,
      ],
      [
        'a security scheme that is not declared',
        inGet((operation) => {
          operation['security'] = [{ key: [] }];
        }),
        /security scheme/,
      ],
      [
        'a body of GET',
        inGet((operation) => {
          operation['requestBody'] = { content: { 'text/plain': {} } };
        }),
        /has a body/,
      ],
      [
        'an operation that never succeeds',
        inGet((operation) => {
          operation['responses'] = { 404: { description: 'x' } };
        }),
        /never succeeds/,
      ],
      [
        'two paths that are one',
        ({ paths }) => {
          paths['/streams/{other}'] = {};
        },
        /differ in the names/,
      ],
      [
        'a tag without operations',
        ({ tags }) => {
          tags.push({ name: 'Nothing' });
        },
        /Nothing is used by nobody/,
      ],
      [
        'a component that nobody uses',
        ({ components }) => {
          components['schemas']!['Unheard'] = {};
        },
        /Unheard is used by nobody/,
      ],
    ])('would be refused with %s', async (_, wrong, message) => {
      const copy = JSON.parse(JSON.stringify(document)) as Copy;
      wrong(copy);
      expect((await openApiErrors(copy)).join('\n')).toMatch(message);
    });

    test.each<[string, unknown, object, RegExp]>([
      ['another type', 1, { type: 'string' }, /must be string/],
      ['no whole number', 1.5, { type: 'integer' }, /must be integer/],
      ['none of a list', 'c', { enum: ['a', 'b'] }, /allowed values/],
      ['no UUID', 'x', { type: 'string', format: 'uuid' }, /format "uuid"/],
      ['no time', '2031-04-02', { type: 'string', format: 'date-time' }, /format "date-time"/],
      ['another pattern', 'B', { type: 'string', pattern: '^[a-z]$' }, /pattern/],
      ['too little', 0, { type: 'integer', minimum: 1 }, />= 1/],
      ['a member that lacks', {}, { type: 'object', properties: { a: {} }, required: ['a'] }, /required property 'a'/],
      [
        'a member too much',
        { b: 1 },
        { type: 'object', properties: { a: {} }, additionalProperties: false },
        /additional properties/,
      ],
      ['a wrong item', ['a'], { type: 'array', items: { type: 'number' } }, /\$\/0: must be number/],
      ['what is wrong by reference', { detail: 1 }, { $ref: '#/components/schemas/Problem' }, /must be string/],
    ])('a value that is %s does not fit', (_, value, schema, message) => {
      expect(schemaErrors(value, schema, document).join('\n')).toMatch(message);
    });

    test.each<[string, object]>([
      ['keyword', { types: 'string' }],
      ['format', { type: 'string', format: 'colour' }],
      ['reference', { $ref: '#/components/schemas/Unheard' }],
      ['required member', { type: 'object', required: ['a'] }],
    ])('a schema with a %s that means nothing is a defect', (_, schema) => {
      expect(() => schemaErrors('x', schema, document)).toThrow();
    });

    test('has every route and method of the table, and nothing else', () => {
      const table = ROUTES.flatMap(({ path, operations }) =>
        Object.keys(operations).map((method) => `${method} ${pathTemplate(path)}`),
      );
      const documented = Object.entries(paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
      );
      expect(documented.toSorted()).toEqual(table.toSorted());
      expect(new Set(table).size).toBe(table.length);
    });

    test('every example fits its schema', () => {
      for (const [path, methods] of Object.entries(paths)) {
        for (const [method, operation] of Object.entries(methods)) {
          for (const parameter of operation.parameters) {
            const { name, example, schema } = resolved<ParameterObject>(parameter, document);
            expect(
              schemaErrors(
                schema['type'] === 'string' ? String(example) : example,
                schema,
                document,
                `${method} ${path} ${name}`,
              ),
            ).toEqual([]);
          }
          for (const [type, { example, schema }] of Object.entries(operation.requestBody?.content ?? {})) {
            if (example !== undefined)
              expect(schemaErrors(example, schema ?? {}, document, `${method} ${path} ${type}`)).toEqual([]);
          }
        }
      }
    });

    test('wants credentials where the route does', () => {
      const securityOf = (path: string, method: string) => paths[path]![method]!.security;
      expect(securityOf('/health/live', 'get')).toEqual([]);
      expect(securityOf('/', 'get')).toEqual([{}, { basic: [] }]);
      expect(securityOf('/admin/scavenge', 'post')).toEqual([{ basic: [] }]);
      const statuses = (path: string, method: string) =>
        Object.keys(paths[path]![method]!.responses).filter((status) => status === '401' || status === '403');
      expect([statuses('/', 'get'), statuses('/admin/scavenge', 'post'), statuses('/admin/login', 'get')]).toEqual([
        ['401'],
        ['401', '403'],
        ['401'],
      ]);
    });

    test('speaks of no credentials where the node asks for none, and has no users then', async () => {
      const open = openApiDocument(ROUTES, { version: '1', isSecured: false });
      expect((await openApiErrors(open)).filter((error) => !error.endsWith('is used by nobody'))).toEqual([]);
      const { '/webhook/{connector}': webhook, ...others } = open.paths as Record<string, unknown>;
      // Senders are asked for a signature all the same.
      expect(JSON.stringify(webhook)).toContain('"401"');
      expect(JSON.stringify(others).includes('"401"')).toBe(false);
      expect(Object.keys(open.paths).filter((path) => path.startsWith('/users'))).toEqual([]);
    });

    test('leaves out what the options switch off', () => {
      const options = { ...DEFAULT_OPTIONS, disableAdminUi: true, disableAtomPub: true };
      const left = Object.keys(openApiDocument(routesFor(options), { version: '1', isSecured: true }).paths);
      expect(left.filter((path) => path.startsWith('/admin') || path === '/streams/{stream}')).toEqual([]);
    });

    test('a route whose path has a parameter that nobody described is a defect', () => {
      const route = { ...ROUTES[0]!, path: '/nothing/:unheard' };
      expect(() => openApiDocument([route], { version: '1', isSecured: true })).toThrow(/unheard/);
    });

    test('is served to anyone, built once', async () => {
      let built = 0;
      const route = openApiRoute((options) => {
        built++;
        return routesFor(options);
      });
      const app = {
        options: { ...DEFAULT_OPTIONS, version: '7.7.7' },
        security: null,
        features: {
          webhooks: {},
          autoScavenge: {},
          backups: {},
          cluster: {},
          subscriptions: {},
          erasure: {},
          page: {},
        },
      } as never;
      const call = { methods: route.methods, base: 'http://127.0.0.1:2113' } as never;
      expect([route.path, route.operations['GET']!.access]).toEqual(['/openapi.json', 'anyone']);
      for (let i = 0; i < 2; i++) {
        const response = await route.operations['GET']!.handler(call, app);
        expect([response.status, response.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
        expect(JSON.parse(decodeText(response.body as Uint8Array))).toEqual(
          JSON.parse(JSON.stringify(openApiDocument(ROUTES, { version: '7.7.7', isSecured: false }))),
        );
      }
      expect(built).toBe(1);
    });
  });

/** Who calls, by what they may do. */
const CALLERS = { admin: 'admin:a', ops: 'ops:o', kim: 'kim:secret1!' } as const;
const basic = (credentials: string): Record<string, string> => ({ authorization: `Basic ${btoa(credentials)}` });

function addUsers(security: FakeSecurity): void {
  security.add('admin', 'a', ['$admins']);
  security.add('ops', 'o', ['$ops']);
  security.add('kim', 'secret1!', []);
}

/** A node with a little of everything in it. */
async function world(more: Partial<FlatContext> = {}) {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(5);
  const open = await openTestStore({ storage: new MemoryStorage(), clock, ids });
  const security = new FakeSecurity(open.store);
  addUsers(security);
  const node = new FakeNode();
  const autoScavenge = new FakeAutoScavenge();
  const backups = await fakeBackups(clock, { isHeld: true });
  const cluster = fakeCluster();
  const erasure = fakeErasure(clock);
  const scavengeOrders = new ScavengeOrders({
    scavenger: open.scavenger,
    store: open.store,
    clock,
    log: silentLog,
    leadsOthers: () => false,
    leaseMs: null,
  });
  // Whatever the document's example orders comes late.
  await scavengeOrders
    .stop({ clusterScavengeId: '7d1f0c9e-5b2a-4a63-8c1d-90b1b7c3a001', attempt: 100 }, null)
    .catch(() => {});
  const context = contextOf({
    store: open.store,
    scavenger: open.scavenger,
    clock,
    ids,
    log: silentLog,
    meter: silentMeter,
    security,
    node,
    webhooks: { connectors: await fakeConnectors(), ingest: fakeIngest([202, 201, 200, 204, 400, 401, 500, 503, 504]) },
    autoScavenge,
    scavengeOrders,
    backups,
    cluster,
    subscriptions: await fakeGroups('orders-42'),
    erasure,
    page: fakePage(),
    isTrustedProxy: () => true,
    options: { trustedAuthHeader: 'ES-TrustedAuth' },
    ...more,
  });
  const app = createApp(context);
  const send = async (method: string, path: string, headers: Record<string, string> = {}, body: string | null = null) =>
    app(new Request(ORIGIN + path, { method, headers: { ...basic(CALLERS.admin), ...headers }, body }));
  let id = 0;
  const batch = (...events: readonly object[]) =>
    JSON.stringify(
      events.map((event) => ({
        eventId: `00000000-0000-4000-8000-${String(++id).padStart(12, '0')}`,
        eventType: 'placed',
        ...event,
      })),
    );
  for (const stream of ['orders-42', 'gone'])
    await send(
      'POST',
      `/streams/${stream}`,
      { 'content-type': EVENTS },
      batch({ data: { n: 0 }, metadata: { by: 'kim' } }, { data: { n: 1 } }, { data: 'text' }),
    );
  await send(
    'POST',
    '/streams/orders-42',
    { 'content-type': EVENTS },
    batch({ eventType: '$>', data: '0@orders-42' }, { eventType: '$>', data: '7@nowhere' }),
  );
  await send(
    'POST',
    '/streams/orders-42/metadata',
    { 'content-type': EVENTS },
    batch({ eventType: '$metadata', data: { $maxCount: 50, $acl: { $r: '$ops', $w: ['$ops'] } } }),
  );
  await send(
    'POST',
    `/streams/${encodeURIComponent(parkedStreamOf('orders-42', 'workers'))}`,
    { 'content-type': EVENTS },
    batch({ eventType: '$>', data: '0@orders-42' }, { eventType: '$>', data: '1@orders-42' }),
  );
  await send('DELETE', '/streams/gone', { 'es-harddelete': 'true' });
  const { scavengeId: scavenge } = (await (await send('POST', '/admin/scavenge')).json()) as { scavengeId: string };
  await open.scavenger.idle();
  const { scavengeId: dryRun } = (await (await send('POST', '/admin/scavenge?dryRun=true')).json()) as {
    scavengeId: string;
  };
  await open.scavenger.idle();
  return {
    app,
    clock,
    open,
    security,
    erasure,
    node,
    autoScavenge,
    cluster,
    backups: backups.node,
    checks: backups.checks,
    send,
    scavenge,
    dryRun,
    context,
  };
}

type World = Awaited<ReturnType<typeof world>>;

/** A call to make, and what to change in the world before it. */
interface Case {
  readonly what: string;
  readonly asked: Asked;
  readonly before?: (made: World) => void | Promise<void>;
}

const WRONG_SEGMENTS: Readonly<Record<string, readonly string[]>> = {
  stream: ['missing', 'gone', '$$other'],
  event: ['x', '999', 'head'],
  count: ['0', '9999'],
  position: ['x', '7'.repeat(32)],
  guid: ['x'],
  scavenge: ['missing'],
  login: ['nobody'],
  connector: ['nobody', 'x', 'unused'],
  group: ['nobody'],
  name: ['nothing'],
  id: ['x'],
  n: ['x', '99999999999'],
  path: ['nothing'],
  hold: ['missing'],
  proof: ['missing'],
};

/** The calls of one operation: its examples, each alone and in each format, and what can be wrong with a call. */
function casesOf(method: string, template: string, operation: OperationObject, { scavenge, dryRun }: World): Case[] {
  const parameters = operation.parameters.map((parameter) => resolved<ParameterObject>(parameter, document));
  const isMembers = template.startsWith('/cluster/');
  const caller: Record<string, string> = isMembers
    ? { authorization: `Cluster ${CLUSTER_SECRET}` }
    : basic(template.endsWith('change-password') ? CALLERS.kim : CALLERS.admin);
  const valueOf = ({ name, example }: ParameterObject) =>
    name === 'scavenge' ? (template.includes('dry-run') ? dryRun : scavenge) : String(example);
  const given = (place: string, which: (parameter: ParameterObject) => boolean) =>
    Object.fromEntries(
      parameters
        .filter((parameter) => parameter.in === place && which(parameter))
        .map((parameter) => [parameter.name, valueOf(parameter)]),
    );
  const isRequired = ({ required }: ParameterObject) => required === true;
  const bodies = Object.entries(operation.requestBody?.content ?? { '': {} });
  const [type, { example }] = bodies[0]!;
  const typed: Record<string, string> = type === '' ? {} : { 'content-type': type };
  const base: Asked = {
    method,
    template,
    path: given('path', () => true),
    query: given('query', isRequired),
    headers: { ...caller, ...given('header', isRequired), ...typed },
    ...(type !== '' && { body: JSON.stringify(example) }),
  };
  const withHeaders = (headers: Record<string, string>): Asked => ({
    ...base,
    headers: { ...base.headers, ...headers },
  });
  const cases: Case[] = [];
  const add = (what: string, asked: Asked, before?: Case['before']) =>
    cases.push({ what, asked, ...(before && { before }) });

  const ok = Object.entries(operation.responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, response]) => resolved(response, document).content ?? {});
  const accepts = [...new Set(ok.flatMap((content) => Object.keys(content)))];
  for (const accept of ['', ...accepts]) {
    const asking: Record<string, string> = accept === '' ? {} : { accept };
    add(`Accept: ${accept}`, withHeaders(asking));
    if (accept !== '' && accept !== 'application/x-ndjson' && accept !== 'text/event-stream') continue;
    for (const parameter of parameters.filter((each) => !isRequired(each) && each.in !== 'path')) {
      const value = { [parameter.name]: valueOf(parameter) };
      add(
        `${accept} ${parameter.name}`,
        parameter.in === 'query'
          ? { ...withHeaders(asking), query: { ...base.query, ...value } }
          : withHeaders({ ...asking, ...value }),
      );
      if (parameter.in === 'header') add(`${parameter.name}: !`, withHeaders({ ...asking, [parameter.name]: '!' }));
      else add(`${parameter.name}=!`, { ...withHeaders(asking), query: { ...base.query, [parameter.name]: '!' } });
    }
  }
  add('every parameter of the query', { ...base, query: given('query', () => true) });
  for (const [mediaType, media] of bodies) {
    if (mediaType === '') continue;
    const body = media.example === undefined ? new Uint8Array([0, 1, 255]) : JSON.stringify(media.example);
    const extras: Record<string, string>[] = [
      {},
      { 'es-eventtype': 'placed', 'es-eventid': '5b3f8a52-4c1d-4e2a-9b7f-0d1c2b3a4958' },
      { 'es-eventtype': 'placed' },
    ];
    for (const extra of extras) {
      add(`${mediaType} ${JSON.stringify(extra)}`, { ...withHeaders({ 'content-type': mediaType, ...extra }), body });
    }
    add(`${mediaType} broken`, { ...withHeaders({ 'content-type': mediaType }), body: '[{' });
    add(`${mediaType} too large`, {
      ...withHeaders({
        'content-type': mediaType,
        'es-eventtype': 'placed',
        'es-eventid': '5b3f8a52-4c1d-4e2a-9b7f-0d1c2b3a4959',
      }),
      body: 'x'.repeat(80_000),
    });
  }
  if (type !== '') add('another media type', withHeaders({ 'content-type': 'image/png' }));
  add('another user exists', {
    ...base,
    ...(type === 'application/json' && {
      body: '{"loginName":"kim","password":"other","newPassword":"n","currentPassword":"wrong"}',
    }),
  });
  for (const [name, values] of Object.entries(WRONG_SEGMENTS)) {
    if (!(name in base.path)) continue;
    for (const value of values) add(`${name} ${value}`, { ...base, path: { ...base.path, [name]: value } });
  }
  for (const parameter of parameters.filter(({ in: place, required }) => place === 'query' && required === true))
    add(`without ${parameter.name}`, { ...base, query: { ...base.query, [parameter.name]: '' } });
  add('XML', withHeaders({ accept: 'application/xml' }));
  if (template === '/') add('in a browser', withHeaders({ accept: 'text/html' }));
  add('unknown format', { ...base, query: { ...base.query, format: 'nothing' } });
  add('conflict', withHeaders({ 'es-expectedversion': '77' }));
  add('anonymous', {
    ...base,
    headers: Object.fromEntries(Object.entries(base.headers!).filter(([name]) => name !== 'authorization')),
  });
  add('wrong password', withHeaders(basic('kim:wrong')));
  add('kim', withHeaders(basic(CALLERS.kim)));
  add('ops', withHeaders(basic(CALLERS.ops)));
  add('a page of another origin', withHeaders({ origin: 'https://elsewhere.test' }));
  add('a user the node does not know', {
    ...base,
    path: { ...base.path, ...('login' in base.path && { login: 'ghost' }) },
    headers: { ...base.headers, authorization: 'none', 'es-trustedauth': 'ghost' },
  });
  for (const code of ['not_ready', 'too_many_failures', 'io_error'] as const)
    add(code, isMembers ? withHeaders(basic(CALLERS.admin)) : base, ({ security }) => {
      security.loginError = new SkuaError(code, 'Because.', { retryAfterSeconds: 3 });
    });
  add('again', base, ({ security }) => {
    security.loginError = null;
  });
  if (template.startsWith('/users/'))
    add('the last administrator', base, ({ security }) => {
      security.isLastAdministrator = true;
    });
  if (template.startsWith('/auto-scavenge/')) {
    for (const statusNow of Object.values(STATUSES))
      add(statusNow.state, base, ({ autoScavenge }) => {
        autoScavenge.statusNow = statusNow;
        autoScavenge.pausesAtOnce = false;
      });
    for (const code of ['invalid_schedule', 'not_leader', 'auto_scavenge_busy'] as const)
      add(code, base, ({ autoScavenge }) => {
        autoScavenge.error = new SkuaError(code, 'Because.');
      });
    add('off', base, ({ autoScavenge }) => {
      autoScavenge.off = 'Because.';
    });
  }
  if (isMembers) {
    if (type !== '') add('too large', { ...base, body: ' '.repeat(300_000) });
    add('a commit', base, ({ cluster }) => {
      cluster.membership.feed = async () => ({ kind: 'commits', bytes: new Uint8Array(90) });
    });
    add('commits that are not at hand', base, ({ cluster }) => {
      cluster.membership.feed = async () => ({ kind: 'gone' });
    });
    add('another log', base, ({ cluster }) => {
      cluster.membership.error = new SkuaError('other_log', 'Because.');
    });
  }
  if (template.startsWith('/admin/erasure')) {
    if (method === 'post') add('nothing to look for', { ...base, body: '{}' });
    else
      add('one is under way', base, ({ erasure }) => {
        if (erasure.list().every(({ state }) => state !== 'running')) erasure.start({ stream: 'orders', events: [] });
      });
  }
  if (template === '/checkpoint')
    add('behind the end', {
      ...base,
      query: { options: JSON.stringify({ position: { commit: 1e12, prepare: 1e12 } }) },
    });
  if (template === '/streams')
    for (const [what, stream, expected] of [
      ['of another version', 'orders', 77],
      ['to a stream that is gone', 'gone', 'any'],
    ] as const)
      add(what, { ...base, body: JSON.stringify({ appends: [{ stream, expected, events: [{ type: 'a' }] }] }) });
  if (template === '/dcb/append')
    add('behind the end', {
      ...base,
      body: JSON.stringify({ events: [{ type: 'a' }], condition: { failIfEventsMatch: {}, after: 1e12 } }),
    });
  if (template === '/admin/redact')
    for (const [what, stream] of [
      ['of no stream', 'missing'],
      ['of a stream of the store', '$settings'],
      ['of a stream that is gone', 'gone'],
    ] as const)
      add(what, { ...base, body: JSON.stringify({ stream, events: [0], reason: 'request 4711' }) });
  if (template.startsWith('/admin/backup')) {
    if (template.endsWith('/check'))
      add('a check is under way', base, ({ checks }) => {
        if (checks.list().every(({ state }) => state !== 'running')) checks.start({ kind: 'verify', subset: 1 });
      });
    if (template.includes('/files/')) add('beyond its end', { ...base, query: { ...base.query, from: '999999' } });
    if (template.includes('/files')) add('another hold', { ...base, query: { ...base.query, hold: 'missing' } });
    if (method !== 'post')
      add('one is made', base, async ({ backups }) => {
        await backups.start();
      });
    const codes =
      template === '/admin/backups'
        ? (['repository_damaged', 'storage_unreachable', 'backup_off'] as const)
        : (['repository_damaged', 'storage_unreachable', 'scavenge_in_progress'] as const);
    for (const code of codes)
      add(code, base, async ({ backups, clock }) => {
        await clock.advance(HOLD_MS);
        backups.error = new SkuaError(code, 'Because.', { scavengeId: SCAVENGE_ID });
      });
  }
  return cases;
}

/** Statuses that were seen, by what documents them: several paths may have the same. */
const seen = new Map<OperationDoc, Set<number>>();
/** Possible, but not in this world. */
const UNREACHED: Readonly<Record<string, readonly number[]>> = {
  // The stream of a run that was hard-deleted by hand.
  'get /streams/%24scavenges/{scavenge}/{event}/{count}': [410],
  // Of a stream of this name; seen in test/handlers/persistent/routes.test.ts.
  'get /subscriptions/restart': [200],
  // What is parked is hard-deleted by hand.
  'get /subscriptions/viewparkedmessages/{stream}/{group}/{event}/backward/{count}': [410],
  'get /subscriptions/viewparkedmessages/{stream}/{group}/{event}/forward/{count}': [410],
  // Seen in test/cluster/forward/writes.test.ts and in test/local/cluster/member-calls.test.ts.
  'post /cluster/append': [200, 410, 413],
  // Seen in test/handlers/connectors/webhook-routes.test.ts, with bodies that are slow or long; and, of a
  // stream that is gone, in test/webhook/ingest/deduplication.test.ts.
  'post /webhook/{connector}': [408, 413, 422],
  // Of a node that starts; seen in test/handlers/node/health.test.ts.
  'get /health/live': [503],
  // Of a search that is too long; seen in test/streams/conditions.test.ts.
  'post /dcb/append': [422],
  // The same, and a full disk, as other appends have it.
  'post /streams': [422, 507],
  // Known users may ask; what they learn goes by the lists of streams.
  'get /checkpoint': [403],
  // Of a full disk, as appends have it.
  'post /admin/redact': [507],
  // For sinks, of which there are none.
  'post /connectors/{connector}/start/{position}': [200],
  'post /connectors/{connector}/reset/{position}': [200],
};

describe('a running node answers as documented', () => {
  const operations = ROUTES.flatMap((route) =>
    Object.entries(route.operations).map(([method, { doc }]) => ({
      method: method.toLowerCase(),
      template: pathTemplate(route.path),
      doc,
    })),
  );

  /** Returns the tag of the answer. */
  const ask = async (
    app: World['app'],
    asked: Asked,
    operation: OperationObject,
    doc: OperationDoc,
    what: string,
  ): Promise<string | null> => {
    const response = await app(requestOf(asked, ORIGIN));
    seen.set(doc, (seen.get(doc) ?? new Set()).add(response.status));
    await expectDocumented(response, operation, document, `${asked.method} ${asked.template} (${what})`);
    return response.headers.get('etag');
  };

  test.each(operations)('$method $template', async ({ method, template, doc }) => {
    const operation = paths[template]![method]!;
    const made = await world();
    for (const { what, asked, before } of casesOf(method, template, operation, made)) {
      addUsers(made.security);
      await before?.(made);
      const etag = await ask(made.app, asked, operation, doc, what);
      if (etag !== null)
        await ask(
          made.app,
          { ...asked, headers: { ...asked.headers, 'if-none-match': etag } },
          operation,
          doc,
          `${what}, unchanged`,
        );
    }
    await made.open.close();
  });

  if (IS_LONG_RUN)
    test('also when the disk is full, limits are small, reloads fail, scavenges run, and it is starting', async () => {
      const fails = async (): Promise<never> => {
        throw new SkuaError('disk_full', 'No space.');
      };
      const shared = await world();
      for (const { method, template, doc } of operations) {
        const operation = paths[template]![method]!;
        const made = method === 'get' ? shared : await world();
        const [{ asked }] = casesOf(method, template, operation, made) as [Case];
        made.node.reloadError = new SkuaError('reload_failed', 'No.', { file: 'node.crt', reason: 'It is broken.' });
        const store = Object.assign(Object.create(made.open.store) as EventStore, {
          append: fails,
          deleteStream: fails,
        });
        const full = createApp({ ...made.context, store, options: { bodyBytesMax: 1_000 } });
        await ask(full, asked, operation, doc, 'disk full');
        if (asked.body !== undefined)
          await ask(full, { ...asked, body: 'x'.repeat(1_100) }, operation, doc, 'too large');
        const busy = { scavenger: new FakeScavenger() };
        busy.scavenger.waitingNow = {
          why: 'unfinished',
          point: { position: 5, eventNumber: 0, effectiveNowMs: 7, threshold: 0 },
        };
        await busy.scavenger.start();
        busy.scavenger.progressNow = {
          phase: 'Cleaning',
          chunksDone: 1,
          chunksTotal: 1,
          bytesDone: 0,
          bytesTotal: 0,
          bytesReclaimed: -5,
          startedAtMs: 0,
          elapsedSeconds: 0.5,
          remainingSeconds: null,
          phaseShare: 0.25,
          olderPoint: busy.scavenger.waitingNow,
        };
        made.node.work = {
          phase: 'rebuilding-index',
          bytesDone: 1,
          bytesTotal: 2,
          elapsedSeconds: 3,
          remainingSeconds: null,
        };
        busy.scavenger.reports.set(made.dryRun, null);
        await ask(createApp({ ...made.context, scavenger: busy.scavenger }), asked, operation, doc, 'scavenging');
        if (made !== shared) await made.open.close();
      }
      await shared.open.close();
    });

  if (IS_LONG_RUN)
    test('without security, too', async () => {
      const open = openApiDocument(ROUTES, { version: '1', isSecured: false });
      const shared = await world();
      for (const [template, methods] of Object.entries(open.paths as typeof paths)) {
        for (const [method, operation] of Object.entries(methods)) {
          const made = method === 'get' ? shared : await world();
          const app = createApp({ ...made.context, security: null });
          for (const { what, asked } of casesOf(method, template, operation, made).filter(({ what: each }) =>
            each.startsWith('Accept'),
          )) {
            await expectDocumented(
              await app(requestOf(asked, ORIGIN)),
              operation,
              open,
              `${method} ${template} (${what}, open)`,
            );
          }
          if (made !== shared) await made.open.close();
        }
      }
      await shared.open.close();
    });

  if (IS_LONG_RUN)
    test('every documented status was seen', () => {
      const missing = operations.flatMap(({ method, template, doc }) => {
        const statuses = Object.keys(paths[template]![method]!.responses).map(Number);
        const left = statuses.filter(
          (status) => !seen.get(doc)!.has(status) && !(UNREACHED[`${method} ${template}`] ?? []).includes(status),
        );
        return left.length === 0 ? [] : [`${method} ${template}: ${left.join(', ')}`];
      });
      expect(missing).toEqual([]);
    });
});
