import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { ErrorCode } from '../../../core/base/errors.ts';
import { AUTO_SCAVENGE_ROUTES, SCHEDULE_BODY_BYTES_MAX } from '../../../handlers/scavenging/auto-scavenge-routes.ts';
import type { FlatContext } from '../../support/app-context.ts';
import { FakeAutoScavenge, STATUSES } from '../../support/fake-auto-scavenge.ts';
import { AS, LogLines, secured } from '../secured.ts';

/** Auto-scavenge over HTTP; the numbers are those of the scenarios of auto-scavenge. */

const JSON_TYPE = { 'content-type': 'application/json' };
const JSON_REPLY = 'application/json; charset=utf-8';
const PROBLEM = 'application/problem+json; charset=utf-8';
const SCHEDULE = '{"schedule":"0 * * * *"}';
const LEADER = '10.0.0.9:2113';

function world(more: Partial<FlatContext> = {}) {
  const autoScavenge = new FakeAutoScavenge();
  const h = secured({ autoScavenge, ...more });
  const send = (method: string, path: string, body: string | null = null, headers: Record<string, string> = AS.ops) =>
    h.send(method, `/auto-scavenge/${path}`, { ...headers, ...(path === 'configure' && JSON_TYPE) }, body);
  /** The status of a configure with a body of this type. */
  const configured = async (type: string, body: string | Uint8Array<ArrayBuffer>) =>
    (await h.send('POST', '/auto-scavenge/configure', { ...AS.ops, 'content-type': type }, body)).status;
  return { ...h, autoScavenge, send, configured };
}

const OPERATIONS = [
  ['GET', 'enabled'],
  ['GET', 'status'],
  ['POST', 'pause'],
  ['POST', 'resume'],
  ['POST', 'configure'],
] as const;
const COMMANDS = OPERATIONS.filter(([, path]) => path !== 'enabled');

describe('who may call, and in which order things are checked', () => {
  const admitted: Readonly<Record<string, readonly string[]>> = {
    GET: ['plain', 'ops', 'admin'],
    POST: ['ops', 'admin'],
  };

  test.each(
    OPERATIONS.flatMap(([method, path]) => (['on', 'off'] as const).map((state) => [method, path, state] as const)),
  )('75 76 77 87 88 93: %s %s, %s', async (method, path, state) => {
    for (const caller of ['anonymous', 'wrong', 'plain', 'ops', 'admin'] as const) {
      const { send, autoScavenge } = world();
      autoScavenge.off = state === 'off' ? 'There is no licence.' : null;
      const isRefused = !admitted[method]!.includes(caller);
      const refused = caller === 'anonymous' || caller === 'wrong' ? 401 : 403;
      const answered = state === 'off' && path !== 'enabled' ? 503 : 200;
      expect([caller, (await send(method, path, method === 'POST' ? SCHEDULE : null, AS[caller])).status]).toEqual([
        caller,
        isRefused ? refused : answered,
      ]);
      expect(autoScavenge.calls.length).toBe(isRefused || state === 'off' || path === 'enabled' ? 0 : 1);
    }
  });

  test('that it is off comes before what is sent', async () => {
    const { send, autoScavenge } = world();
    autoScavenge.off = 'Because.';
    expect((await send('POST', 'configure', '{')).status).toBe(503);
    expect((await send('GET', 'status', null, { ...AS.ops, accept: 'text/html' })).status).toBe(503);
  });

  test('where nothing is scheduled there is nothing: 404', async () => {
    const { send } = world({ autoScavenge: null });
    for (const [method, path] of OPERATIONS)
      expect((await send(method, path, null, AS.admin)).json()).toMatchObject({ code: 'not_found' });
  });

  test('methods', async () => {
    const { send } = world();
    for (const { path, methods } of AUTO_SCAVENGE_ROUTES)
      expect((await send('PATCH', path.slice('/auto-scavenge/'.length))).headers.get('allow')).toBe(methods);
  });
});

describe('enabled', () => {
  test('77 87: on, and off with the reason, always 200', async () => {
    const { send, autoScavenge } = world();
    expect(await send('GET', 'enabled', null, AS.plain)).toMatchObject({ status: 200, text: '{"enabled":true}' });
    autoScavenge.off = 'There is no licence key.';
    const reply = await send('GET', 'enabled', null, AS.plain);
    expect([reply.status, reply.text, reply.headers.get('content-type')]).toEqual([
      200,
      '{"enabled":false,"reason":"There is no licence key."}',
      JSON_REPLY,
    ]);
  });
});

describe('status', () => {
  test('documented members first and in their order', async () => {
    const { send, autoScavenge } = world();
    const statusOf = async () => (await send('GET', 'status', null, AS.plain)).text;
    expect(await statusOf()).toBe(
      '{"state":"NotConfigured","schedule":null,"timeUntilNextCycle":null,"cycle":null,"lastCycle":null}',
    );
    autoScavenge.statusNow = STATUSES.Waiting;
    expect(await statusOf()).toMatch(
      /^\{"state":"Waiting","schedule":"30 2 \* \* 0","timeUntilNextCycle":"2\.03:45:10\.0250000","cycle":null,"lastCycle":\{/,
    );
  });

  test.each([
    [0, '00:00:00'],
    [3_300_000, '00:55:00'],
    [3_600_000, '01:00:00'],
    [2_592_000_000, '30.00:00:00'],
    [1_500, '00:00:01.5000000'],
  ])('%i ms is %s', async (untilNextCycleMs, text) => {
    const { send, autoScavenge } = world();
    autoScavenge.statusNow = { ...STATUSES.Paused, untilNextCycleMs };
    expect((await send('GET', 'status')).json()).toMatchObject({ timeUntilNextCycle: text });
  });

  test('what is ours: the nodes of the cycle, and how the last one ended', async () => {
    const { send, autoScavenge } = world();
    autoScavenge.statusNow = { ...STATUSES.InProgress, lastCycle: STATUSES.Waiting.lastCycle };
    const { cycle, lastCycle } = (await send('GET', 'status')).json();
    expect(cycle).toEqual({
      clusterScavengeId: STATUSES.InProgress.cycle.clusterScavengeId,
      startedAt: '2031-04-02T09:15:00Z',
      nodes: STATUSES.InProgress.cycle.nodes,
    });
    expect(lastCycle).toEqual({
      clusterScavengeId: STATUSES.Waiting.lastCycle.clusterScavengeId,
      completedAt: '2031-03-31T02:40:01.5Z',
      nodes: STATUSES.Waiting.lastCycle.nodes,
    });
  });

  test('in JSON only', async () => {
    expect((await world().send('GET', 'status', null, { ...AS.ops, accept: 'text/plain' })).status).toBe(406);
  });
});

describe('commands', () => {
  test('79 90 95: pause answers 200 or 202, resume 200; bodies are ignored', async () => {
    const { send, autoScavenge } = world();
    const paused = await send('POST', 'pause', 'anything');
    expect([paused.status, paused.text, paused.headers.get('content-type')]).toEqual([200, '{}', JSON_REPLY]);
    autoScavenge.pausesAtOnce = false;
    const pausing = await send('POST', 'pause', '{"schedule":1}');
    expect([pausing.status, pausing.text, pausing.headers.get('location')]).toEqual([202, '', null]);
    const resumed = await send('POST', 'resume', 'anything');
    expect([resumed.status, resumed.text, resumed.headers.get('content-type')]).toEqual([200, '{}', JSON_REPLY]);
    expect(autoScavenge.calls).toEqual(['pause', 'pause', 'resume']);
  });

  test.each(['application/json', 'Application/JSON; charset=utf-8', 'application/json;charset="UTF-8"'])(
    'configure takes %s',
    async (type) => {
      const { configured, autoScavenge } = world();
      expect(await configured(type, SCHEDULE)).toBe(200);
      expect(autoScavenge.calls).toEqual(['configure 0 * * * *']);
    },
  );

  test.each([
    ['null', 'bad_json', 'Invalid payload'],
    ['{}', 'bad_json', /member schedule, spelt exactly so/],
    ['{"Schedule":"* * * * *"}', 'bad_json', /member schedule/],
    ['[]', 'bad_json', /member schedule/],
    ['"x"', 'bad_json', /member schedule/],
    ['', 'bad_json', /not valid JSON/],
    ['{"schedule":', 'bad_json', /not valid JSON/],
    ...['5', 'true', '{}', '[]', 'null'].map(
      (value) => [`{"schedule":${value}}`, 'invalid_schedule', 'CRON expression can only be a string'] as const,
    ),
  ] as readonly (readonly [string, string, string | RegExp])[])(
    '17: configure with %j is 400',
    async (body, code, detail) => {
      const { send, autoScavenge } = world();
      const reply = await send('POST', 'configure', body);
      expect([reply.status, reply.headers.get('content-type')]).toEqual([400, PROBLEM]);
      expect(reply.json()).toMatchObject({
        code,
        detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
      });
      expect(autoScavenge.calls).toEqual([]);
    },
  );

  test('configure with another media type is 415, with bytes that are no text 400, and with too many 413', async () => {
    const { configured, autoScavenge } = world();
    for (const type of ['text/plain', 'application/json; charset=latin1', 'application/x-www-form-urlencoded', ''])
      expect(await configured(type, SCHEDULE)).toBe(415);
    expect(await configured('application/json', Uint8Array.of(0x22, 0xff, 0x22))).toBe(400);
    expect(await configured('application/json', ' '.repeat(SCHEDULE_BODY_BYTES_MAX + 1))).toBe(413);
    expect(autoScavenge.calls).toEqual([]);
  });
});

describe('what commands can end with', () => {
  const hint = 'Give five fields.';
  const rows: readonly (readonly [string, SkuaError, number, object])[] = [
    [
      '16',
      new SkuaError('invalid_schedule', hint),
      400,
      { code: 'invalid_schedule', detail: 'Invalid CRON expression', hint },
    ],
    [
      '16',
      new SkuaError('invalid_schedule', 'Invalid CRON expression', { hint }),
      400,
      { code: 'invalid_schedule', detail: 'Invalid CRON expression', hint },
    ],
    [
      '49 91',
      new SkuaError('auto_scavenge_pausing', 'It is pausing.'),
      400,
      { code: 'auto_scavenge_pausing', detail: 'Auto scavenge process is currently pausing' },
    ],
    [
      '94',
      new SkuaError('auto_scavenge_busy', 'Too many wait.'),
      503,
      { code: 'auto_scavenge_busy', detail: 'AutoScavenge queue is full' },
    ],
    [
      '28',
      new SkuaError('not_leader', 'Not here.', { leader: null }),
      503,
      { code: 'no_leader', detail: 'No leader node was found in the cluster' },
    ],
    [
      '28',
      new SkuaError('not_leader', 'Not here.', { leader: LEADER }),
      503,
      { code: 'not_leader', detail: 'Node is not the leader', hint: expect.stringContaining(LEADER) },
    ],
    [
      '41',
      new SkuaError('auto_scavenge_off', 'Off.', { reason: 'It has expired.' }),
      503,
      { code: 'auto_scavenge_off', detail: 'AutoScavenge is not enabled', hint: 'It has expired.' },
    ],
    ['80', new SkuaError('writer_stopped' satisfies ErrorCode, 'The writer stopped.'), 503, { code: 'writer_stopped' }],
  ];

  test.each(rows)('%s: %s', async (_, error, status, problem) => {
    for (const [method, path] of COMMANDS) {
      const { send, autoScavenge } = world();
      autoScavenge.error = error;
      const reply = await send(method, path, path === 'configure' ? SCHEDULE : null);
      expect([reply.status, reply.headers.get('content-type')]).toEqual([status, PROBLEM]);
      expect(reply.json()).toMatchObject(problem);
      if (['auto_scavenge_busy', 'not_leader', 'no_leader'].includes(reply.json().code as string))
        expect(reply.headers.get('retry-after')).toMatch(/^[15]$/);
    }
  });

  test('80: anything else is 500, and only the log says what', async () => {
    const log = new LogLines();
    const { send, autoScavenge } = world({ log });
    autoScavenge.error = new Error('secret');
    const reply = await send('GET', 'status');
    expect([reply.status, reply.text.includes('secret')]).toEqual([500, false]);
    expect(log.lines).toMatchObject([{ level: 'error', message: 'request failed' }]);
  });
});

describe('times of an expression', () => {
  test('are told to whoever has logged in, also while all is off', async () => {
    const { send, autoScavenge } = world();
    autoScavenge.off = 'There is no licence.';
    const reply = await send('GET', 'times?schedule=30%202%20*%20*%200&count=2', null, AS.plain);
    expect(reply.json()).toEqual({
      schedule: '30 2 * * 0',
      zone: 'UTC',
      times: ['2031-04-06T02:30:00Z', '2031-04-13T02:30:00Z'],
    });
    expect(
      (await send('GET', 'times?schedule=30%202%20*%20*%200&zone=Europe/Oslo', null, AS.plain)).json().times,
    ).toHaveLength(5);
    expect(autoScavenge.calls).toEqual(['times 30 2 * * 0 2 UTC', 'times 30 2 * * 0 5 Europe/Oslo']);
    expect((await send('GET', 'times?schedule=x', null, AS.anonymous)).status).toBe(401);
  });

  test.each([
    '',
    '?schedule=',
    '?schedule=x&count=0',
    '?schedule=x&count=21',
    '?schedule=x&count=-1',
    '?schedule=x&zone=',
    '?schedule=x&zone=Nowhere/Land',
    `?schedule=x&zone=${'A'.repeat(100)}`,
    '?schedule=x&zone=../etc',
  ])('are refused for %j', async (query) => {
    const { send, autoScavenge } = world();
    expect((await send('GET', `times${query}`)).json()).toMatchObject({ code: 'bad_request' });
    expect(autoScavenge.calls).toEqual([]);
  });

  test('of what is none say what is wrong', async () => {
    const { send, autoScavenge } = world();
    autoScavenge.error = new SkuaError('invalid_schedule', 'Invalid CRON expression', { hint: 'Give five fields.' });
    expect((await send('GET', 'times?schedule=x')).json()).toMatchObject({
      code: 'invalid_schedule',
      detail: 'Invalid CRON expression',
      hint: 'Give five fields.',
    });
  });
});
