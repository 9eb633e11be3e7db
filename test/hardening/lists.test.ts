import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPersistentSubscriptions } from '../../core/persistent/persistent.ts';
import { DEFAULT_SETTINGS, parkedStreamOf } from '../../core/persistent/api.ts';
import type { PersistentSubscriptionsEngine } from '../../core/persistent/api.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { NodeErasureChecks } from '../../core/scavenge/erasure-checks/erasure-checks.ts';
import { createSecurity } from '../../core/security/security.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { createApp } from '../../handlers/app.ts';
import { routesFor } from '../../handlers/routes.ts';
import { DEFAULT_OPTIONS } from '../../handlers/http/context.ts';
import { PersistentSubscriptionsService } from '../../handlers/grpc/messages/persistent-subscriptions.ts';
import { StreamsService } from '../../handlers/grpc/messages/streams.ts';
import { StreamsServiceService } from '../../handlers/grpc/messages/streams-v2.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { clientFor } from '../grpc/harness.ts';
import type { GrpcClient } from '../grpc/harness.ts';
import { ORIGIN } from '../handlers/harness.ts';
import { appendOf, base64, chunkOf, proposed, stream as named } from '../handlers/grpc/streams/kit.ts';
import { AS } from '../handlers/secured.ts';
import { contextOf } from '../support/app-context.ts';
import { fakeBackups, HOLD_ID } from '../support/backup/fake-backups.ts';
import { FakeAutoScavenge } from '../support/fake-auto-scavenge.ts';
import { fakeConnectors, fakeIngest } from '../support/fake-connectors.ts';
import { FakeNode } from '../support/fake-node.ts';
import { fakePage } from '../support/fake-page.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

/**
 * A user in `$ops` whom the lists of a stream deny everything gets nothing of it, and changes nothing about it, by any
 * operation over HTTP or method of gRPC: over a real store with real users, proofs of erasure and groups. Groups
 * themselves are for whoever has the role.
 */

/** What stands in the stream, in its metadata, and in its list: nothing of it may stand in an answer. */
const MARKS = ['wages-of-all', 'secret-type', 'kept-apart', 'paymaster'] as const;
const SECRET = 'payroll';
const GONE = 'laid-off';
/** Open to all, with a link to the secret stream. */
const LINKS = 'links';
const SECRET_ID = '50000000-0000-4000-8000-000000000001';
const LIST = { $r: 'paymaster', $w: 'paymaster', $d: 'paymaster', $mr: 'paymaster', $mw: 'paymaster' };

let opened: DirectoryStore;
let groups: PersistentSubscriptionsEngine;
let erasure: NodeErasureChecks;
let app: ReturnType<typeof createApp>;
let grpc: GrpcClient;
let made = 1;

function newId(): string {
  return `50000000-0000-4000-8000-${String(++made).padStart(12, '0')}`;
}

async function write(stream: string, type: string, value: unknown, id = newId(), isJson = true): Promise<void> {
  await opened.store.append(stream, ANY, [
    {
      id,
      type,
      isJson,
      data: encodeText(typeof value === 'string' ? value : JSON.stringify(value)),
      metadata: encodeText('{"note":"kept-apart"}'),
    },
  ]);
}

beforeAll(async () => {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(11);
  const storage = new MemoryStorage();
  opened = await openTestStore({ storage, clock, chunkSizeBytes: 262_144 });
  const { store, scavenger } = opened;
  const security = createSecurity(
    { store, keys: nodeKeys, clock, ids, log: silentLog, meter: silentMeter },
    {
      passwordFormat: 'compatible',
      allowAnonymousStreamAccess: false,
      adminPassword: 'changeit',
      opsPassword: 'changeit',
    },
  );
  await security.start();
  for (const [loginName, group] of [
    ['olga', '$ops'],
    ['ada', '$admins'],
  ] as const)
    await security.users.create({ loginName, fullName: null, groups: [group], password: `${loginName}-pass` });
  for (const stream of [SECRET, GONE])
    await write(`$$${stream}`, '$metadata', { $acl: LIST, $maxCount: 41, about: 'kept-apart' });
  await write(SECRET, 'secret-type', { text: 'wages-of-all' }, SECRET_ID);
  await write(SECRET, 'secret-type', { text: 'wages-of-all' });
  await write(GONE, 'secret-type', { text: 'wages-of-all' });
  await store.deleteStream(GONE, ANY, 'hard');
  groups = createPersistentSubscriptions({
    store,
    writes: store,
    ids,
    clock,
    log: silentLog,
    hasher: streamHasher,
    matcherOf: async () => ({ test: () => true, stepsPerCharacter: 1 }),
  });
  groups.start();
  for (const stream of [SECRET, LINKS, 'a::b'])
    await groups.create(
      stream,
      'clerks',
      { settings: { ...DEFAULT_SETTINGS, resolveLinks: true }, from: 'start' },
      'ada',
    );
  for (const stream of [LINKS, parkedStreamOf(LINKS, 'clerks'), parkedStreamOf(SECRET, 'clerks')])
    await opened.store.append(stream, ANY, [
      { id: newId(), type: '$>', isJson: false, data: encodeText(`0@${SECRET}`), metadata: new Uint8Array(0) },
    ]);
  await write(parkedStreamOf('a::b', 'clerks'), 'secret-type', { text: 'wages-of-all' });
  erasure = new NodeErasureChecks({
    scavenger,
    jobs: new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock }),
    clock,
    ids,
    log: silentLog,
  });
  const context = contextOf({
    store,
    scavenger,
    clock,
    ids,
    log: silentLog,
    meter: silentMeter,
    security,
    node: new FakeNode(),
    erasure,
    subscriptions: groups,
    page: fakePage(),
    autoScavenge: new FakeAutoScavenge(),
    backups: await fakeBackups(clock, { isHeld: true }),
    webhooks: { connectors: await fakeConnectors(), ingest: fakeIngest() },
  });
  app = createApp(context);
  grpc = clientFor(context);
});

afterAll(async () => {
  await groups.stop();
  await erasure.close();
  await opened.close();
});

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(
  method: string,
  path: string,
  who: Record<string, string> = AS.ops,
  body: unknown = null,
): Promise<Answer> {
  const isEvents = method === 'POST' && path.startsWith('/streams/');
  const headers = {
    ...who,
    ...(body !== null && { 'content-type': 'application/json' }),
    ...(isEvents && { 'es-eventtype': 'made', ...(!path.includes('/incoming/') && { 'es-eventid': newId() }) }),
  };
  const reply = await app(
    new Request(ORIGIN + path, { method, headers, body: body === null ? null : JSON.stringify(body) }),
  );
  return { status: reply.status, text: await reply.text() };
}

/** Begins a proof as an administrator, and waits for its end. */
async function proved(wanted: object): Promise<string> {
  const { status, text } = await ask('POST', '/admin/erasure', AS.admin, wanted);
  if (status !== 202) throw new Error(text);
  const { proofId } = JSON.parse(text) as { proofId: string };
  while (erasure.get(proofId).state === 'running')
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  return proofId;
}

function expectNothing(what: string, text: string): void {
  for (const mark of MARKS) if (text.includes(mark)) throw new Error(`${what} shows ${mark}: ${text.slice(0, 500)}`);
}

async function stateOf(stream: string): Promise<object> {
  const { lastEventNumber, metadataVersion, isTombstoned, isSoftDeleted } = await opened.store.streamInfo(stream);
  return { lastEventNumber, metadataVersion, isTombstoned, isSoftDeleted };
}

describe('what lists keep from an operator', () => {
  test.each([SECRET, `$$${SECRET}`])(
    'explain says nothing of %s, and everything to an administrator',
    async (stream) => {
      const at = `/admin/scavenge/explain/${encodeURIComponent(stream)}`;
      const refused = await ask('GET', at);
      expect([refused.status, JSON.parse(refused.text)]).toEqual([
        403,
        expect.objectContaining({ code: 'access_denied' }),
      ]);
      expect((await ask('GET', at, AS.admin)).status).toBe(200);
    },
  );

  test('explain shows nobody the metadata of a stream that is deleted for ever, whose list went with it', async () => {
    for (const stream of [GONE, `$$${GONE}`])
      for (const who of [AS.ops, AS.admin]) {
        const { status, text } = await ask('GET', `/admin/scavenge/explain/${encodeURIComponent(stream)}`, who);
        expect(status).toBe(200);
        expectNothing(stream, text);
        expect(text).not.toContain('41');
      }
  });

  test.each([
    ['read', { $r: 'ada' }, 403],
    ['metadata', { $mr: 'ada' }, 403],
    ['both', { $r: '$ops', $mr: ['x', '$ops'], $w: 'ada' }, 200],
  ] as const)('explain asks for both: %s', async (name, $acl, status) => {
    await write(`$$both-${name}`, '$metadata', { $acl });
    await write(`both-${name}`, 'made', {});
    expect((await ask('GET', `/admin/scavenge/explain/both-${name}`)).status).toBe(status);
  });

  test('proofs of erasure say nothing of its streams, whoever began them', async () => {
    for (const stream of [SECRET, `$$${SECRET}`]) {
      expect((await ask('POST', '/admin/erasure', AS.ops, { stream })).status).toBe(403);
      const proofId = await proved({ stream });
      expect((await ask('GET', `/admin/erasure/${proofId}`)).status).toBe(403);
      expect(JSON.parse((await ask('GET', `/admin/erasure/${proofId}`, AS.admin)).text)).toMatchObject({
        stream,
        report: { hidden: 0 },
      });
    }
    // That it is gone, and leaves nothing, is what everybody may be told.
    expect((await ask('POST', '/admin/erasure', AS.ops, { stream: GONE })).status).toBe(202);
    while (erasure.list().some(({ state }) => state === 'running'))
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    const ofId = await proved({ events: [SECRET_ID] });
    const listed = (await ask('GET', '/admin/erasure')).text;
    expect(listed).toContain(ofId);
    expect(listed).not.toContain(SECRET);
    const shown = JSON.parse((await ask('GET', `/admin/erasure/${ofId}`)).text) as {
      report: { traces: number; hidden: number; findings: unknown[] };
    };
    expect(shown.report).toMatchObject({ hidden: 1, findings: [] });
    expect(shown.report.traces).toBeGreaterThan(0);
    const whole = JSON.parse((await ask('GET', `/admin/erasure/${ofId}`, AS.admin)).text) as typeof shown;
    expect(whole.report).toMatchObject({ hidden: 0, findings: [{ what: expect.stringContaining(SECRET) }] });
  });

  test('names of streams are left out', async () => {
    const { text } = await ask('GET', `/admin/streams?search=${SECRET}&system=true`);
    expect(JSON.parse(text) as { streams: unknown[]; hidden: number }).toMatchObject({
      streams: [],
      hidden: expect.any(Number),
    });
  });

  const operations = routesFor(DEFAULT_OPTIONS).flatMap(({ path, operations: all }) =>
    Object.keys(all).map((method) => ({ method, path })),
  );
  const OF_ROLES = new Set(['/admin/shutdown', '/ui/session']);
  /** What ends a group comes last. */
  const inOrder = [
    ...operations.filter(({ method }) => method === 'GET'),
    ...operations.filter(({ method }) => method === 'POST'),
    ...operations.filter(({ method }) => method === 'PUT'),
    ...operations.filter(({ method }) => method === 'DELETE'),
  ].filter(({ path }) => !OF_ROLES.has(path));

  test.each([SECRET, `$$${SECRET}`, GONE, LINKS])(
    'no operation over HTTP shows anything of %s, or changes it',
    async (stream) => {
      const before = await Promise.all([stateOf(SECRET), stateOf(GONE)]);
      const proofId = await proved({ stream: SECRET });
      for (const { method, path } of inOrder) {
        // What names no stream in its path is asked once.
        if (!path.includes(':stream') && stream !== SECRET) continue;
        const values: Readonly<Record<string, string>> = {
          stream,
          event: '0',
          count: '20',
          position: path.includes('forward') ? '0'.repeat(32) : 'head',
          guid: newId(),
          group: 'clerks',
          id: newId(),
          proof: proofId,
          scavenge: newId(),
          login: 'olga',
          connector: 'parcels',
          hold: HOLD_ID,
          name: 'x',
          n: '0',
          'path+': 'proc',
        };
        const at = path.replace(/:(\w+\+?)/g, (_, name: string) => encodeURIComponent(values[name]!));
        const queries =
          method !== 'GET'
            ? ['']
            : path.includes('/filtered')
              ? [`?embed=body&context=streamid&type=prefix&data=${stream}`]
              : path.includes(':stream')
                ? ['?embed=body', '?embed=tryharder']
                : [`?search=${stream}&embed=body`];
        for (const query of queries)
          expectNothing(
            `${method} ${at}${query}`,
            (await ask(method, at + query, AS.ops, method === 'POST' || method === 'PUT' ? { stream } : null)).text,
          );
      }
      expect(await Promise.all([stateOf(SECRET), stateOf(GONE)])).toEqual(before);
      // For the next stream.
      await groups
        .create(stream, 'clerks', { settings: { ...DEFAULT_SETTINGS, resolveLinks: true }, from: 'start' }, 'ada')
        .catch(() => {});
    },
  );

  test('nor does a method of gRPC', async () => {
    const before = await stateOf(SECRET);
    const { Read, Append, BatchAppend, Delete, Tombstone } = StreamsService.methods;
    const { AppendSession, AppendRecords } = StreamsServiceService.methods;
    const { Read: Consume } = PersistentSubscriptionsService.methods;
    const record = { record_id: newId(), schema: { format: 1, name: 'made' }, data: base64('{}') };
    for (const stream of [SECRET, `$$${SECRET}`]) {
      const read = {
        options: {
          stream: { ...named(stream), start: {} },
          read_direction: 0,
          resolve_links: true,
          count: '10',
          no_filter: {},
          uuid_option: { string: {} },
        },
      };
      const of = { stream: named(stream), group_name: 'clerks' };
      for (const [path, requests] of [
        [Read.path, [read]],
        [Read.path, [{ options: { ...read.options, count: undefined, subscription: {} } }]],
        [Append.path, appendOf(stream, { any: {} }, proposed(900))],
        [Delete.path, [{ options: { ...named(stream), any: {} } }]],
        [Tombstone.path, [{ options: { ...named(stream), any: {} } }]],
        [AppendSession.path, [{ stream, records: [record] }]],
        [AppendRecords.path, [{ records: [{ ...record, stream }] }]],
        [
          AppendRecords.path,
          [{ records: [{ ...record, stream: 'open' }], checks: [{ stream_state: { stream, expected_state: '0' } }] }],
        ],
        [
          Consume.path,
          [{ options: { ...named(stream), group_name: of.group_name, buffer_size: 10, uuid_option: { string: {} } } }],
        ],
      ] as const) {
        const seen = await grpc.call(path, requests as never, AS.ops);
        expect([path, stream, seen.status]).toEqual([path, stream, 7]);
        expectNothing(path, JSON.stringify(seen));
      }
      const batch = await grpc.call(
        BatchAppend.path,
        [
          {
            options: {
              ...(named(stream).stream_identifier as object),
              stream_identifier: named(stream)['stream_identifier'],
              any: {},
            },
            ...chunkOf(1, [proposed(901)]),
          },
        ] as never,
        AS.ops,
      );
      expect(JSON.stringify(batch.received)).toContain('Access');
      expectNothing(BatchAppend.path, JSON.stringify(batch));
    }
    const links = await grpc.call(
      Read.path,
      {
        options: {
          stream: { ...named(LINKS), start: {} },
          read_direction: 0,
          resolve_links: true,
          count: '10',
          no_filter: {},
          uuid_option: { string: {} },
        },
      } as never,
      AS.ops,
    );
    expect(links.status).toBe(0);
    expectNothing(
      Read.path,
      JSON.stringify(links.received) +
        links.received.map((each) => Buffer.from(JSON.stringify(each), 'utf8').toString()).join(''),
    );
    expect(await stateOf(SECRET)).toEqual(before);
  });

  test('what group c of a::b has parked does not show as that of group b::c of a', async () => {
    const at = (stream: string, group: string, who: Record<string, string>) =>
      ask(
        'GET',
        `/subscriptions/viewparkedmessages/${encodeURIComponent(stream)}/${encodeURIComponent(group)}/head/backward/5?embed=body`,
        who,
      );
    const own = await at('a::b', 'clerks', AS.admin);
    expect([own.status, own.text.includes('wages-of-all')]).toEqual([200, true]);
    for (const who of [AS.ops, AS.admin]) {
      const other = await at('a', 'b::clerks', who);
      expect([other.status, (JSON.parse(other.text) as { code: string }).code]).toEqual([
        404,
        'persistent_subscription_not_found',
      ]);
    }
    expect((await ask('PUT', '/subscriptions/a/b%3A%3Aclerks', AS.ops, {})).text).toContain('a::b');
  });
});
