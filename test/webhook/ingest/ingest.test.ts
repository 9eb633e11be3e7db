import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { SignatureSettings } from '../../../core/webhook/api.ts';
import { deliveryEventId } from '../../../core/webhook/ingest/delivery.ts';
import { signCall } from '../../../core/webhook/signatures/signatures.ts';
import { encodeText } from '../../../core/base/text.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { TEST_NOW_MS } from '../../support/test-store.ts';
import { callOf, dataOf, noteAsBefore, openRig, REJECTIONS, until } from './kit.ts';
import type { Rig } from './kit.ts';

const GITHUB: SignatureSettings = {
  scheme: 'GitHub',
  timestampToleranceMs: 300_000,
  header: null,
  prefix: null,
  encoding: null,
  hash: null,
};
const SLACK: SignatureSettings = { ...GITHUB, scheme: 'Slack' };

function signature(
  settings: SignatureSettings,
  secret: string,
  body: string,
  timestampS = TEST_NOW_MS / 1_000,
): Record<string, string> {
  return Object.fromEntries(
    signCall(nodeKeys, settings, secret, { body: encodeText(body), timestampS, id: null }).map(([name, value]) => [
      name.toLowerCase(),
      value,
    ]),
  );
}

const BODY = '{"stream":"a","schema":"made"}';
const busy = (code: 'disk_full' | 'stream_deleted' | 'writer_stopped') => () => new SkuaError(code, 'No.');

interface Row {
  readonly name: string;
  readonly status: number;
  readonly outcome: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Record<string, string>;
  readonly settings?: Parameters<Rig['active']['start']>[1];
  readonly secrets?: readonly string[];
  readonly prepare?: (rig: Rig) => unknown;
  /** Runs while the call is under way. */
  readonly meanwhile?: (rig: Rig) => Promise<unknown>;
  /** Events in `a` afterwards. */
  readonly written?: number;
  /** Rejections afterwards. */
  readonly rejected?: number;
}

const deep = (depth: number) => `{"stream":"a","x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
let open = () => {};
const hold = (rig: Rig) => {
  rig.gated.gate = (stream) =>
    stream === 'a'
      ? new Promise((resolve) => {
          open = resolve;
        })
      : null;
};
/** Stops the connector once a call waits for its write, and lets that through then. */
const letThrough = async (rig: Rig) => {
  await rig.asleep();
  const stopped = rig.active.stop('parcels');
  open();
  await stopped;
};
const refuse = (code: 'disk_full' | 'stream_deleted' | 'writer_stopped') => (rig: Rig) => {
  rig.gated.refuse = (stream) => (stream === 'a' ? busy(code)() : null);
};
const WAIT = { waitForWrite: true };
const advance = (ms: number) => async (rig: Rig) => {
  await rig.asleep();
  await rig.clock.advance(ms);
};

const ROWS: readonly Row[] = [
  { name: 'accepted', status: 202, outcome: 'accepted', written: 1, rejected: 0 },
  { name: 'written', status: 201, outcome: 'written', settings: WAIT, written: 1, rejected: 0 },
  {
    name: 'a signature that counts',
    status: 202,
    outcome: 'accepted',
    settings: { signature: GITHUB },
    secrets: ['old', 'new'],
    headers: signature(GITHUB, 'new', BODY),
    written: 1,
    rejected: 0,
  },
  { name: 'no signature', status: 401, outcome: 'refused-signature', settings: { signature: GITHUB }, secrets: ['s'] },
  {
    name: 'a signature of something else',
    status: 401,
    outcome: 'refused-signature',
    settings: { signature: GITHUB },
    secrets: ['s'],
    headers: signature(GITHUB, 's', `${BODY} `),
  },
  {
    name: 'an old timestamp',
    status: 401,
    outcome: 'refused-signature',
    settings: { signature: SLACK },
    secrets: ['s'],
    headers: signature(SLACK, 's', BODY, TEST_NOW_MS / 1_000 - 301),
  },
  {
    name: 'a signature comes before JSON',
    status: 401,
    outcome: 'refused-signature',
    settings: { signature: GITHUB },
    secrets: ['s'],
    body: '{',
  },
  { name: 'an empty body', status: 400, outcome: 'refused-json', body: '' },
  { name: 'white space', status: 400, outcome: 'refused-json', body: ' \n' },
  { name: 'no JSON', status: 400, outcome: 'refused-json', body: '{"stream":"a",}' },
  { name: 'a byte order mark', status: 400, outcome: 'refused-json', body: `\uFEFF${BODY}` },
  { name: 'no UTF-8', status: 400, outcome: 'refused-json', body: new Uint8Array([0x22, 0xff, 0x22]) },
  { name: 'nested too deep', status: 400, outcome: 'refused-json', body: deep(65) },
  { name: 'nested as deep as may be', status: 202, outcome: 'accepted', body: deep(64), written: 1, rejected: 0 },
  { name: 'the script skips', status: 400, outcome: 'skipped', body: '{}', rejected: 0 },
  ...([200, 202, 204, 400] as const).map((skippedStatus): Row => ({
    name: `the script skips, and the connector answers ${skippedStatus}`,
    status: skippedStatus,
    outcome: 'skipped',
    settings: { skippedStatus },
    body: '{}',
    rejected: 0,
  })),
  {
    name: 'the script skips, and the connector waits for its writes',
    status: 202,
    outcome: 'skipped',
    settings: { ...WAIT, skippedStatus: 202 },
    body: '{}',
    rejected: 0,
  },
  {
    name: 'the script skips, and deliveries are not told apart',
    status: 204,
    outcome: 'skipped',
    settings: { skippedStatus: 204, deduplication: { enabled: false, header: null, maxAgeMs: 1_000, maxCount: 1 } },
    body: '{}',
    headers: { 'webhook-id': 'd-1' },
    rejected: 0,
  },
  {
    name: 'the script throws',
    status: 500,
    outcome: 'script-failed',
    settings: { script: 'const route = () => { throw new Error("no"); };' },
  },
  {
    name: 'the script takes too long',
    status: 500,
    outcome: 'script-timed-out',
    prepare: (rig) => {
      rig.sandbox.answer = { kind: 'timed-out', reason: 'It took too long.' };
    },
  },
  {
    name: 'the sandbox has no room',
    status: 503,
    outcome: 'script-unavailable',
    prepare: (rig) => {
      rig.sandbox.answer = { kind: 'unavailable', reason: 'Full.', retryAfterMs: 1_000 };
    },
  },
  {
    name: 'the sandbox is closed',
    status: 503,
    outcome: 'failed',
    prepare: (rig) => {
      rig.sandbox.route = () => Promise.reject(new SkuaError('aborted', 'Closed.'));
    },
  },
  {
    name: 'the sandbox is broken',
    status: 500,
    outcome: 'failed',
    prepare: (rig) => {
      rig.sandbox.route = () => Promise.reject(new TypeError('Oh.'));
    },
  },
  {
    name: 'an empty stream',
    status: 500,
    outcome: 'refused-route',
    prepare: (rig) => {
      rig.sandbox.answer = { kind: 'routed', stream: '', schema: null, cpuMs: 1 };
    },
  },
  { name: 'a system stream', status: 500, outcome: 'refused-route', body: '{"stream":"$all"}' },
  { name: 'the metadata of a stream', status: 500, outcome: 'refused-route', body: '{"stream":"$$a"}' },
  { name: 'a stream that no URL reaches', status: 500, outcome: 'refused-route', body: '{"stream":".."}' },
  { name: 'a stream with a lone surrogate', status: 500, outcome: 'refused-route', body: '{"stream":"a\\ud800"}' },
  {
    name: 'a stream with a long name',
    status: 500,
    outcome: 'refused-route',
    body: JSON.stringify({ stream: 'a'.repeat(1_025) }),
  },
  {
    name: 'a stream that the connector may not write to',
    status: 500,
    outcome: 'refused-stream',
    settings: { streams: ['orders-*', 'returns'] },
    body: '{"stream":"returns-1"}',
  },
  { name: 'an empty schema', status: 500, outcome: 'refused-route', body: '{"stream":"a","schema":""}' },
  {
    name: 'a long schema',
    status: 500,
    outcome: 'refused-route',
    body: JSON.stringify({ stream: 'a', schema: 'x'.repeat(1_025) }),
  },
  {
    name: 'an event that is too large',
    status: 500,
    outcome: 'refused-route',
    body: JSON.stringify({ stream: 'a', x: 'x'.repeat(4_194_304) }),
  },
  {
    name: 'too many calls wait',
    status: 503,
    outcome: 'full',
    prepare: async (rig) => {
      hold(rig);
      for (let i = 0; i < 3; i++) await rig.send(BODY);
    },
  },
  {
    name: 'too many bytes wait',
    status: 503,
    outcome: 'full',
    body: JSON.stringify({ stream: 'a', x: 'x'.repeat(70_000) }),
  },
  {
    name: 'the connector has stopped',
    status: 404,
    outcome: 'not-active',
    prepare: (rig) => rig.active.stop('parcels'),
    rejected: 0,
  },
  { name: 'the node is stopping', status: 503, outcome: 'stopping', prepare: (rig) => rig.ingest.close() },
  {
    name: 'not written in time',
    status: 504,
    outcome: 'write-timed-out',
    settings: { ...WAIT, confirmationTimeoutMs: 5_000 },
    prepare: hold,
    meanwhile: advance(5_000),
  },
  {
    name: 'the connector stops meanwhile',
    status: 503,
    outcome: 'stopping',
    settings: WAIT,
    prepare: hold,
    meanwhile: async (rig) => {
      await rig.asleep();
      const stopped = rig.active.stop('parcels');
      await advance(10_000)(rig);
      await stopped;
    },
  },
  {
    name: 'the connector stops meanwhile and has written',
    status: 201,
    outcome: 'written',
    settings: WAIT,
    prepare: hold,
    meanwhile: letThrough,
    written: 1,
    rejected: 0,
  },
  {
    name: 'the disk is full for long',
    status: 503,
    outcome: 'write-failed',
    settings: WAIT,
    prepare: refuse('disk_full'),
    meanwhile: advance(3_000),
  },
  {
    name: 'the disk is full for a moment',
    status: 201,
    outcome: 'written',
    settings: WAIT,
    prepare: (rig) => {
      let tries = 0;
      rig.gated.refuse = (stream) => (stream === 'a' && ++tries < 3 ? busy('disk_full')() : null);
    },
    meanwhile: advance(200),
    written: 1,
    rejected: 0,
  },
  {
    name: 'the writer has stopped',
    status: 503,
    outcome: 'write-failed',
    settings: WAIT,
    prepare: refuse('writer_stopped'),
  },
  {
    name: 'the stream is deleted for ever',
    status: 422,
    outcome: 'stream-deleted',
    settings: WAIT,
    prepare: (rig) => rig.opened.store.deleteStream('a', -2, 'hard'),
  },
  { name: 'accepted and lost', status: 202, outcome: 'accepted', prepare: refuse('stream_deleted'), rejected: 1 },
];

describe('statuses and what was written', () => {
  test.each(ROWS)(
    '$name: $status',
    async ({
      status,
      outcome,
      body = BODY,
      headers = {},
      settings,
      secrets = [],
      prepare,
      meanwhile,
      written = 0,
      rejected = 1,
    }) => {
      const rig = await openRig({ limits: { callsMax: 3, bytesMax: 70_000, drainMs: 8_000 } });
      rig.active.start('parcels', settings, secrets);
      await prepare?.(rig);
      const answer = rig.send(body, { headers });
      await meanwhile?.(rig);
      expect(await answer).toBe(status);
      expect(
        rig.meter.counts.get(
          `eventstore_webhook_calls_total ${outcome === 'not-active' || (outcome === 'stopping' && name(rig) === 0) ? '' : 'parcels'} ${outcome}`,
        ),
      ).toBe(1);
      if (written > 0) await until(async () => (await rig.read('a')).length === written);
      expect((await rig.read('a').catch(() => [])).length).toBe(written);
      if (rejected > 0 && outcome !== 'stopping')
        await until(async () => (await rig.read(REJECTIONS)).length === rejected);
      const noted = (await rig.read(REJECTIONS)).map(dataOf);
      if (outcome !== 'stopping') expect(noted.length).toBe(rejected);
      for (const each of noted)
        expect(each).toMatchObject({
          status,
          time: expect.stringMatching(/^2026-11-22T/),
          reason: expect.any(String),
          headers: ['content-type', ...Object.keys(headers)],
        });
    },
  );

  const question = (challenge: unknown, more: object = {}) =>
    JSON.stringify({ token: 't', challenge, type: 'url_verification', stream: 'a', ...more });

  test.each(['Slack', 'ProviderC'])(
    '%s: whether somebody is there is answered with its challenge once it is signed, and nothing is run or written',
    async (scheme) => {
      const settings = { ...SLACK, scheme };
      const rig = await openRig();
      rig.active.start('parcels', { signature: settings, waitForWrite: true, skippedStatus: 202 }, ['old', 's']);
      const ask = (body: string, headers = signature(settings, 's', body)) =>
        rig.ingest.receive(callOf(body, rig.clock, { headers }), () => new AbortController().signal);
      const longest = 'ü'.repeat(512);
      for (const challenge of [
        '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P',
        '<script>alert(1)</script>',
        longest,
      ])
        expect(await ask(question(challenge))).toEqual({ status: 200, text: challenge });
      expect(await ask(question('x'), {})).toBe(401);
      expect(await ask(question('x'), signature(settings, 'x', question('x')))).toBe(401);
      expect(await ask(question('x'), signature(settings, 's', question('x'), TEST_NOW_MS / 1_000 - 301))).toBe(401);
      expect(rig.sandbox.calls).toEqual([]);
      expect(await rig.read('a')).toEqual([]);
      expect(await rig.read('$webhook-parcels-deliveries')).toEqual([]);
      expect(rig.meter.counts.get('eventstore_webhook_calls_total parcels challenge')).toBe(3);
      // What asks nothing that can be answered is a call like any other.
      let written = 0;
      for (const body of [
        question(`${longest}x`),
        question(7),
        question(''),
        question('\ud800'),
        question('x', { type: 'event_callback', of: 'url_verification' }),
      ]) {
        expect(await ask(body)).toBe(201);
        expect((await rig.read('a')).length).toBe(++written);
      }
    },
  );

  test('whether somebody is there is a call like any other where the scheme asks nothing of the kind', async () => {
    const body = question('x');
    for (const [settings, headers] of [
      [{}, {}],
      [{ signature: GITHUB }, signature(GITHUB, 's', body)],
    ] as const) {
      const rig = await openRig();
      rig.active.start('parcels', { ...settings, waitForWrite: true }, ['s']);
      expect(await rig.send(body, { headers })).toBe(201);
      expect((await rig.read('a')).length).toBe(1);
    }
  });

  test('an integer beyond 2^53 is told once in the log, wherever it stands but in a text; a script gets the text of the body', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    const fine = [
      '9007199254740991',
      '-9007199254740991',
      '"9007199254740993"',
      '1234567890123456.7',
      '1e30',
      '{"9007199254740993":"\\"9007199254740993,"}',
      '12345678901234567.0e-3',
    ];
    for (const x of fine) expect(await rig.send(`{"stream":"a","x":${x}}`)).toBe(201);
    expect(rig.log.lines).toEqual([]);
    for (const x of ['9007199254740993', '[-9007199254740992]', '{"y":[{},18446744073709551615 ]}']) {
      await rig.active.stop('parcels');
      rig.active.start('parcels', { waitForWrite: true });
      rig.log.lines.length = 0;
      for (let n = 0; n < 2; n++) expect(await rig.send(`{"stream":"a", "x":${x}}`)).toBe(201);
      expect([x, rig.log.lines]).toMatchObject([
        x,
        [{ level: 'warn', fields: { connectorId: 'parcels', warning: expect.stringContaining('request.text') } }],
      ]);
    }
    const { requestJson, bodyLength } = rig.sandbox.calls.at(-1)!;
    expect(requestJson.slice(8, 8 + bodyLength!)).toBe('{"stream":"a", "x":{"y":[{},18446744073709551615 ]}}');
    expect(dataOf((await rig.read('a')).at(-1)!)).toMatchObject({ stream: 'a' });
  });

  test('a script that returns type, and no schema, is told once in the log, and its calls go on', async () => {
    const rig = await openRig();
    const script = 'const route = () => ({ stream: "a", type: "placed" });';
    rig.active.start('parcels', { script, waitForWrite: true });
    for (let n = 0; n < 3; n++) expect(await rig.send(`{"n":${n}}`)).toBe(201);
    expect((await rig.read('a')).map(({ type }) => type)).toEqual([
      'WebhookReceived',
      'WebhookReceived',
      'WebhookReceived',
    ]);
    expect(rig.log.lines).toMatchObject([
      { level: 'warn', fields: { connectorId: 'parcels', warning: expect.stringContaining('as schema') } },
    ]);
    await rig.active.stop('parcels');
    rig.active.start('parcels', { script, waitForWrite: true });
    expect(await rig.send('{"n":4}')).toBe(201);
    expect(rig.log.lines).toHaveLength(2);
  });

  /** Calls that are counted for the connector. */
  function name(rig: Rig): number {
    return [...rig.meter.counts.keys()].filter((key) => key.startsWith('eventstore_webhook_calls_total parcels'))
      .length;
  }

  test.each([
    ['returns', 202],
    ['orders-1742', 202],
    ['orders-', 202],
    ['orders', 500],
    ['returns-1', 500],
    ['Returns', 500],
    ['anything', 500],
  ])('a connector with streams may write to %s: %i', async (stream, status) => {
    const rig = await openRig();
    rig.active.start('parcels', { streams: ['orders-*', 'returns'] });
    expect(await rig.send({ stream })).toBe(status);
    if (status === 202) return until(async () => (await rig.read(stream)).length === 1);
    await until(async () => (await rig.read(REJECTIONS)).length === 1);
    expect(await rig.read(stream)).toEqual([]);
    const reason = expect.stringContaining(`may not write to the stream "${stream}"`);
    expect((await rig.read(REJECTIONS)).map(dataOf)).toMatchObject([{ status: 500, reason }]);
    expect(rig.log.lines).toMatchObject([
      { level: 'warn', message: 'a webhook call was refused', fields: { connectorId: 'parcels', status: 500, reason } },
    ]);
    expect(rig.meter.counts.get('eventstore_webhook_calls_total parcels refused-stream')).toBe(1);
  });

  test('what was skipped is no rejection and no duplicate: it is counted by itself, each time it comes, and routed once the script wants it', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { skippedStatus: 200 });
    const headers = { 'webhook-id': 'd-1' };
    expect(await Promise.all([rig.send('{}', { headers }), rig.send('{}', { headers })])).toEqual([200, 200]);
    expect(await rig.send('{}', { headers })).toBe(200);
    expect(rig.meter.counts.get('eventstore_webhook_calls_total parcels skipped')).toBe(3);
    expect([await rig.read(REJECTIONS), await rig.read('$webhook-parcels-deliveries')]).toEqual([[], []]);
    expect(rig.log.lines.filter(({ level }) => level !== 'debug')).toEqual([]);
    expect(await rig.send('{"stream":"a"}', { headers })).toBe(202);
    await until(async () => (await rig.read('a')).length === 1);
  });

  test('a delivery that an earlier version noted for a stream is refused where the connector may not write', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true, streams: ['orders-*'] });
    await noteAsBefore(rig, 'd-1', 'returns');
    expect(await rig.send({ stream: 'orders-1' }, { headers: { 'webhook-id': 'd-1' } })).toBe(500);
    expect([await rig.read('returns'), await rig.read('orders-1')]).toEqual([[], []]);
  });

  test('a client is watched only by a call that waits', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    let asked = 0;
    const signalOf = () => {
      asked++;
      return new AbortController().signal;
    };
    expect(await rig.ingest.receive(callOf(BODY, rig.clock), signalOf)).toBe(202);
    expect(asked).toBe(0);
    rig.active.start('waiting', WAIT);
    expect(await rig.ingest.receive(callOf(BODY, rig.clock, { connectorId: 'waiting' }), signalOf)).toBe(201);
    expect(asked).toBe(1);
  });

  test('a client that goes away ends its wait only', async () => {
    const rig = await openRig();
    rig.active.start('parcels', WAIT);
    hold(rig);
    const gone = new AbortController();
    const answer = rig.send(BODY, { signal: gone.signal });
    await rig.asleep();
    gone.abort();
    expect(await answer).toBe(503);
    open();
    await until(async () => (await rig.read('a')).length === 1);
    expect(await rig.read(REJECTIONS)).toEqual([]);
    expect(await rig.send(BODY, { signal: AbortSignal.abort() })).toBe(503);
  });

  test('a call of another type is noted and counted as one', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    await rig.ingest.refused('parcels', 415, 'Form-encoded.', ['content-type']);
    await until(async () => (await rig.read(REJECTIONS)).length === 1);
    expect((await rig.read(REJECTIONS)).map(dataOf)).toMatchObject([
      { status: 415, reason: 'Form-encoded.', headers: ['content-type'] },
    ]);
    expect([...rig.meter.counts]).toEqual([['eventstore_webhook_calls_total parcels refused-type', 1]]);
  });

  test('an unknown connector is no label', async () => {
    const rig = await openRig();
    expect(await rig.send(BODY, { connectorId: 'nobody' })).toBe(404);
    expect([...rig.meter.counts]).toEqual([['eventstore_webhook_calls_total  not-active', 1]]);
    expect(await rig.ingest.isActive('nobody')).toBe(false);
  });
});

describe('the written event', () => {
  test('has the bytes as received, the schema as type, and the allowed headers', async () => {
    const rig = await openRig();
    const connector = rig.active.start('parcels', { ...WAIT, allowedHeaders: ['content-type', 'x-kind', 'x-absent'] });
    const body = '{ "stream":"a",\n "n": 1.0, "s":"\\u0061", "n": 12345678901234567890 }';
    await rig.send(body, {
      headers: { 'x-kind': 'gr\u00fc\u00df', authorization: 'secret', 'webhook-id': 'd-1' },
      query: { a: '1,2' },
    });
    await rig.send('{"stream":"a","schema":"made"}');
    const [first, second] = await rig.read('a');
    expect(Buffer.from(first!.data).toString()).toBe(body);
    expect(JSON.parse(Buffer.from(first!.metadata).toString())).toEqual({
      'content-type': 'application/json',
      'x-kind': 'gr\u00fc\u00df',
    });
    expect([first!.type, first!.isJson, first!.id]).toEqual([
      'WebhookReceived',
      true,
      deliveryEventId(nodeKeys, connector, 'd-1'),
    ]);
    expect([second!.type, second!.id[14]]).toEqual(['made', '4']);
    expect(JSON.parse(rig.sandbox.calls[0]!.requestJson)).toEqual({
      body: JSON.parse(body),
      path: '/webhook/parcels',
      query: { a: '1,2' },
      headers: {
        'content-type': 'application/json',
        'x-kind': 'gr\u00fc\u00df',
        authorization: 'secret',
        'webhook-id': 'd-1',
      },
    });
    expect(rig.sandbox.calls[0]).toMatchObject({ connectorId: 'parcels', nowMs: TEST_NOW_MS });
    expect(rig.sandbox.calls[0]!.seed).not.toBe(rig.sandbox.calls[1]!.seed);
  });

  test.each<[string, Partial<SignatureSettings> | null, string | null, Record<string, string>, string, string | null]>([
    ['GitHub', { scheme: 'github' }, null, { 'x-github-delivery': 'g', 'webhook-id': 'w' }, '{}', 'g'],
    ['a neutral scheme', { scheme: 'ProviderA' }, null, { 'x-github-delivery': 'g' }, '{}', 'g'],
    [
      'Standard Webhooks',
      { scheme: 'StandardWebhooks' },
      null,
      { 'x-github-delivery': 'g', 'webhook-id': 'w' },
      '{}',
      'w',
    ],
    [
      'Standard Webhooks of Svix',
      { scheme: 'StandardWebhooks' },
      null,
      { 'svix-signature': 'v1,x', 'svix-id': 's', 'webhook-id': 'w' },
      '{}',
      's',
    ],
    [
      'Standard Webhooks of both',
      { scheme: 'StandardWebhooks' },
      null,
      { 'webhook-signature': 'v1,x', 'svix-signature': 'v1,x', 'svix-id': 's', 'webhook-id': 'w' },
      '{}',
      'w',
    ],
    ['no scheme, as Svix names it', null, null, { 'svix-id': 's' }, '{}', 's'],
    ['Stripe', { scheme: 'Stripe' }, null, { 'webhook-id': 'w' }, '{"id":"evt_1"}', 'evt_1'],
    ['Stripe without an id', { scheme: 'Stripe' }, null, { 'webhook-id': 'w' }, '{"id":7}', null],
    ['Slack', { scheme: 'Slack' }, null, {}, '{"id":"x","event_id":"Ev1"}', 'Ev1'],
    ['ProviderC', { scheme: 'ProviderC' }, null, {}, '{"event_id":"Ev2"}', 'Ev2'],
    ['Slack without an id', { scheme: 'Slack' }, null, {}, '{"id":"x"}', null],
    ['Stripe, no object', { scheme: 'Stripe' }, null, {}, 'null', null],
    ['no signature', null, null, { 'webhook-id': 'w' }, '{"id":"evt_1"}', 'w'],
    ['a configured header', { scheme: 'GitHub' }, 'x-mine', { 'x-github-delivery': 'g', 'x-mine': 'm' }, '{}', 'm'],
    ['a configured header that is absent', { scheme: 'GitHub' }, 'x-mine', { 'x-github-delivery': 'g' }, '{}', null],
    ['an id that is too long', null, null, { 'webhook-id': 'w'.repeat(513) }, '{}', null],
  ])('is told apart by the id of %s', async (_name, scheme, header, headers, body, expected) => {
    const { deliveryIdOf } = await import('../../../core/webhook/ingest/delivery.ts');
    const rig = await openRig();
    const connector = rig.active.start(
      'parcels',
      {
        signature: scheme === null ? null : { ...GITHUB, ...scheme },
        deduplication: { enabled: true, header, maxAgeMs: 1_000, maxCount: 10 },
      },
      ['whsec_c2VjcmV0'],
    );
    expect(deliveryIdOf(connector)!(new Map(Object.entries(headers)), body)).toBe(expected);
  });
});

describe('stopping', () => {
  test('writes what was accepted and lets go of the sandbox', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    for (let n = 0; n < 50; n++)
      expect(await rig.send({ stream: 'a', n }, { headers: { 'webhook-id': `d-${n}` } })).toBe(202);
    await rig.active.stop('parcels');
    expect((await rig.read('a')).map((event) => dataOf(event)['n'])).toEqual(Array.from({ length: 50 }, (_, n) => n));
    expect(rig.sandbox.released).toEqual(['parcels']);
    rig.active.start('parcels');
    expect(await rig.send({ stream: 'a' })).toBe(202);
    await rig.ingest.close();
    expect((await rig.read('a')).length).toBe(51);
  });

  test('notes every loss with its delivery id, within its limit', async () => {
    const rig = await openRig({ limits: { drainMs: 5_000 } });
    rig.active.start('parcels');
    rig.gated.gate = (stream) => (stream === 'a' ? new Promise(() => {}) : null);
    for (let n = 0; n < 30; n++) await rig.send({ stream: 'a', n }, { headers: { 'webhook-id': `d-${n}` } });
    const stopped = rig.active.stop('parcels');
    await rig.asleep();
    await rig.clock.advance(5_000);
    await stopped;
    expect((await rig.read(REJECTIONS)).map((event) => dataOf(event)['deliveryId'])).toEqual(
      Array.from({ length: 30 }, (_, n) => `d-${n}`),
    );
    expect(rig.meter.counts.get('eventstore_webhook_losses_total parcels')).toBe(30);
  });

  test('ends although nothing can be noted', async () => {
    const rig = await openRig({ limits: { drainMs: 5_000 } });
    rig.active.start('parcels');
    rig.gated.gate = () => new Promise(() => {});
    await rig.send({ stream: 'a' });
    const closed = rig.ingest.close();
    for (let i = 0; i < 2; i++) {
      await rig.asleep();
      await rig.clock.advance(5_000);
    }
    await closed;
  });

  test('of one activation leaves the next one alone', async () => {
    const rig = await openRig();
    const first = rig.active.start('parcels');
    await rig.send({ stream: 'a' });
    // Started anew by another instance before this one has heard of the stop.
    rig.active.start('parcels');
    expect(await rig.send({ stream: 'a' })).toBe(202);
    expect(first.activation).toBe(1);
    await rig.ingest.close();
    expect((await rig.read('a')).length).toBe(2);
  });
});

test('which secret a signature was made with is counted', async () => {
  const rig = await openRig();
  rig.active.start('parcels', { signature: GITHUB }, ['one', 'two', 'three']);
  for (const secret of ['two', 'three', 'two']) await rig.send(BODY, { headers: signature(GITHUB, secret, BODY) });
  expect([...rig.meter.counts].filter(([key]) => key.includes('secret'))).toEqual([
    ['eventstore_webhook_secret_matches_total parcels 1', 2],
    ['eventstore_webhook_secret_matches_total parcels 2', 1],
  ]);
  expect(rig.meter.observed.filter((name) => name === 'eventstore_webhook_call_duration_seconds').length).toBe(3);
});
