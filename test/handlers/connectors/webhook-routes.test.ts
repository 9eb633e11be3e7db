import { beforeEach, describe, expect, test, vi } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { InboundCall, IngestAnswer, WebhookIngest } from '../../../core/webhook/api.ts';
import type { WebhookLimits } from '../../../handlers/http/context.ts';
import { AS, secured } from '../secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

class FakeIngest implements WebhookIngest {
  readonly calls: InboundCall[] = [];
  readonly refusals: unknown[][] = [];
  asked = 0;
  status: 200 | 201 | 202 | 204 | 400 | 401 | 404 | 500 | 503 | 504 = 202;
  text: string | null = null;
  signalOf: (() => AbortSignal) | null = null;
  isActive(connectorId: string): boolean | Promise<boolean> {
    this.asked++;
    return connectorId === 'parcels';
  }
  async receive(call: InboundCall, signalOf: () => AbortSignal): Promise<IngestAnswer> {
    this.calls.push(call);
    this.signalOf = signalOf;
    return this.text === null ? this.status : { status: this.status, text: this.text };
  }
  async refused(...refusal: unknown[]): Promise<void> {
    this.refusals.push([...refusal.slice(0, 3), [...(refusal[3] as Iterable<string>)]]);
  }
}

let ingest: FakeIngest;
let h: ReturnType<typeof secured>;

function open(limits: Partial<WebhookLimits> = {}, more: object = {}): void {
  ingest = new FakeIngest();
  h = secured({ webhooks: { connectors: null, ingest, limits }, ...more } as never);
}
beforeEach(() => open());

const post = (
  path = '/webhook/parcels',
  headers: Record<string, string> = JSON_TYPE,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream | null = '{"a":1}',
) => h.send('POST', path, headers, body);

/** A body of which nothing comes, or of which something came and nothing more. */
function slowBody(...parts: readonly string[]): ReadableStream {
  return new ReadableStream({
    start: (controller) => {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
    },
  });
}

describe('replies have no body', () => {
  test.each([200, 201, 202, 204, 400, 401, 404, 500, 503, 504] as const)('%i of the ingest', async (status) => {
    ingest.status = status;
    const reply = await post();
    expect(reply).toMatchObject({ status, text: '' });
    expect(reply.headers.get('retry-after')).toBe(status === 503 ? '1' : null);
    expect(ingest.calls.length).toBe(1);
  });

  test.each<[number, string, () => Promise<{ status: number; text: string; headers: Headers }>]>([
    [415, 'no content type', () => post('/webhook/parcels', {}, new Uint8Array([0x31]))],
    [415, 'another content type', () => post('/webhook/parcels', { 'content-type': 'text/plain' })],
    [415, 'another content type, unknown connector', () => post('/webhook/nobody', { 'content-type': 'text/plain' })],
    [415, 'something that begins like JSON', () => post('/webhook/parcels', { 'content-type': 'application/jsonx' })],
    [415, 'a suffix without a type', () => post('/webhook/parcels', { 'content-type': '+json' })],
    [404, 'unknown connector', () => post('/webhook/nobody')],
    [404, 'malformed escape', () => post('/webhook/%zz')],
    [404, 'no connector', () => post('/webhook/')],
    [404, 'a longer path', () => post('/webhook/parcels/more')],
    ...['GET', 'PUT', 'PATCH', 'DELETE'].map(
      (method): [number, string, () => Promise<{ status: number; text: string; headers: Headers }>] => [
        405,
        method,
        () => h.send(method, '/webhook/parcels', JSON_TYPE),
      ],
    ),
  ])('%i: %s', async (status, _name, call) => {
    const reply = await call();
    expect([reply.status, reply.text]).toEqual([status, '']);
    expect(reply.headers.get('allow')).toBe(status === 405 ? 'POST, OPTIONS' : null);
    expect(ingest.calls).toEqual([]);
    // A wrong type is refused whatever the connector.
    if (status === 415) expect(ingest.asked).toBe(0);
  });

  test('404 where connectors are switched off', async () => {
    h = secured({ webhooks: null } as never);
    expect(await post()).toMatchObject({ status: 404, text: '' });
  });

  test('503 when nobody can tell whether the connector runs', async () => {
    ingest.isActive = () => Promise.reject(new SkuaError('store_closed', 'Closed.'));
    expect(await post()).toMatchObject({ status: 503, text: '' });
  });
});

test('a sender that asks whether somebody is there is answered with its text, which no browser takes for a page', async () => {
  [ingest.status, ingest.text] = [200, '<script>ü</script>'];
  const reply = await post();
  expect(reply).toMatchObject({ status: 200, text: '<script>ü</script>' });
  expect([reply.headers.get('content-type'), reply.headers.get('x-content-type-options')]).toEqual([
    'text/plain; charset=utf-8',
    'nosniff',
  ]);
});

describe('another content type', () => {
  const FORM = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };

  test('a form, as GitHub sends it unless told otherwise, is told what to choose there, and so is who looks at the connector', async () => {
    const body = `payload=${encodeURIComponent('{"zen":"Keep it logically awesome."}')}`;
    for (const [path, noted] of [
      ['/webhook/parcels', true],
      ['/webhook/nobody', true],
      ['/webhook/%zz', false],
    ] as const) {
      ingest.refusals.length = 0;
      const reply = await post(path, { ...FORM, 'x-hub-signature-256': 'sha256=00' }, body);
      expect([reply.status, reply.headers.get('content-type')]).toEqual([
        415,
        'application/problem+json; charset=utf-8',
      ]);
      expect(reply.json()).toMatchObject({
        code: 'unsupported_media_type',
        detail: expect.stringMatching(
          /form-encoded.*application\/json.*GitHub.*Slack sends the events of its Events API as JSON/,
        ),
      });
      expect(reply.text).not.toContain('zen');
      expect(ingest.refusals).toEqual(
        noted ? [[path.slice(9), 415, expect.stringContaining('GitHub'), ['content-type', 'x-hub-signature-256']]] : [],
      );
    }
    expect(ingest.calls).toEqual([]);
  });

  test('any other is noted as well, and answered without a word', async () => {
    expect(await post('/webhook/parcels', { 'content-type': `text/${'x'.repeat(1_000)}` })).toMatchObject({
      status: 415,
      text: '',
    });
    expect(await post('/webhook/parcels', {}, new Uint8Array([0x31]))).toMatchObject({ status: 415, text: '' });
    expect(ingest.refusals).toEqual([
      ['parcels', 415, expect.stringMatching(/^The content type is 'text\/x{95}', /), ['content-type']],
      ['parcels', 415, expect.stringContaining('is missing'), []],
    ]);
    ingest.refused = () => Promise.reject(new SkuaError('store_closed', 'Closed.'));
    expect((await post('/webhook/parcels', FORM)).status).toBe(415);
  });
});

test.each([
  'application/json',
  'Application/JSON; charset=utf-8',
  'application/json;charset=latin1',
  'application/cloudevents+json',
  ' application/problem+json ; a=b',
])('%s is JSON', async (type) => {
  expect((await post('/webhook/parcels', { 'content-type': type })).status).toBe(202);
});

test('no role is needed, and credentials that are none of ours do no harm', async () => {
  for (const headers of [
    {},
    AS.plain,
    AS.wrong,
    { authorization: 'Bearer abc' },
    { authorization: 'Basic' },
    { authorization: 'Basic c2VuZGVy' },
    { authorization: 'Basic ***' },
  ])
    expect((await post('/webhook/parcels', { ...JSON_TYPE, ...headers })).status).toBe(202);
});

describe('the call that the ingest gets', () => {
  test('has path, headers, query, body and time', async () => {
    await post(
      '/webhook/parcels?b=1&a=x%20y&b=2&empty=&c=%2C',
      { ...JSON_TYPE, 'X-Kind': 'a', 'x-empty': '' },
      '{"a":1}',
    );
    const { arrivedMs, headers, query, body, ...call } = ingest.calls[0]!;
    expect(call).toEqual({ connectorId: 'parcels', path: '/webhook/parcels' });
    expect(Object.fromEntries(headers)).toEqual({ 'content-type': 'application/json', 'x-kind': 'a' });
    expect(Object.fromEntries(query)).toEqual({ b: '1,2', a: 'x y', c: ',' });
    expect(Buffer.from(body).toString()).toBe('{"a":1}');
    expect(arrivedMs).toBe(h.clock.nowMs());
    expect(ingest.signalOf?.().aborted).toBe(false);
  });

  test('has the headers as they arrived where the server can tell', async () => {
    open({}, { rawHeadersOf: () => ['X-Tag', 'a', 'x-tag', '', 'X-TAG', 'b, c', 'Set', ''] });
    await post();
    expect([...ingest.calls[0]!.headers]).toEqual([['x-tag', 'a,b, c']]);
  });

  test('names the connector unescaped', async () => {
    await post('/webhook/par%63els');
    expect(ingest.calls[0]!.connectorId).toBe('parcels');
  });
});

describe('the body', () => {
  test('may be as long as the limit and no longer', async () => {
    open({ bodyBytesMax: 10 });
    expect((await post('/webhook/parcels', JSON_TYPE, '0123456789')).status).toBe(202);
    const reply = await post('/webhook/parcels', JSON_TYPE, '01234567890');
    expect([reply.status, reply.text, reply.headers.get('connection')]).toEqual([413, '', 'close']);
    expect(ingest.calls.length).toBe(1);
    expect(ingest.refusals).toEqual([['parcels', 413, 'The body is too long.', ['content-type']]]);
  });

  test('is counted where no length is declared', async () => {
    open({ bodyBytesMax: 10 });
    expect((await post('/webhook/parcels', JSON_TYPE, slowBody('01234', '56789', '0'))).status).toBe(413);
  });

  test('needs no timer where it is here at once', async () => {
    open({ bodyReadMs: 5_000 });
    const sleep = vi.spyOn(h.clock, 'sleep');
    expect((await post()).status).toBe(202);
    expect(sleep.mock.calls.filter(([ms]) => ms === 5_000)).toEqual([]);
  });

  test('has to arrive in time', async () => {
    open({ bodyReadMs: 5_000 });
    const answer = post('/webhook/parcels', JSON_TYPE, slowBody('{'));
    await h.clock.advance(5_000);
    const reply = await answer;
    expect([reply.status, reply.text, reply.headers.get('connection')]).toEqual([408, '', 'close']);
    expect(ingest.refusals).toMatchObject([['parcels', 408, 'The body took too long to arrive.', ['content-type']]]);
    expect(h.clock.sleeping).toBe(0);
  });

  test("of a sender who goes away is nobody's rejection", async () => {
    const broken = new ReadableStream({ start: (controller) => controller.error(new Error('gone')) });
    expect((await post('/webhook/parcels', JSON_TYPE, broken)).status).toBe(503);
    expect(ingest.refusals).toEqual([]);
  });

  test('that lags makes room where too much has arrived, and is told 408', async () => {
    open({ bodyBytesMax: 1_000, bodyReadMs: 30_000, arrivingBytesMax: 1_500 });
    const slow = post('/webhook/parcels', JSON_TYPE, slowBody('x'.repeat(900)));
    await h.clock.advance(5_000);
    expect((await post('/webhook/parcels', JSON_TYPE, `"${'y'.repeat(798)}"`)).status).toBe(202);
    const reply = await slow;
    expect([reply.status, reply.text, reply.headers.get('connection'), reply.headers.get('retry-after')]).toEqual([
      408,
      '',
      'close',
      null,
    ]);
    expect(ingest.refusals).toEqual([['parcels', 408, 'The body took too long to arrive.', ['content-type']]]);
    expect(h.clock.sleeping).toBe(0);
  });

  test('is not waited for when all that are arriving are faster', async () => {
    open({ arrivingMax: 1, bodyReadMs: 5_000 });
    const brisk = post('/webhook/parcels', JSON_TYPE, slowBody('{'));
    await h.clock.advance(0);
    const reply = await post('/webhook/parcels', JSON_TYPE, slowBody('{'));
    expect([reply.status, reply.text, reply.headers.get('connection'), reply.headers.get('retry-after')]).toEqual([
      503,
      '',
      'close',
      '1',
    ]);
    expect(ingest.refusals).toEqual([['parcels', 503, 'Too many bodies are arriving at once.', ['content-type']]]);
    // What is declared holds no room, and what has ended holds none any more.
    await h.clock.advance(5_000);
    expect((await brisk).status).toBe(408);
    expect((await post('/webhook/parcels', { ...JSON_TYPE, 'content-length': '7' })).status).toBe(202);
  });

  test.each([
    ['a connector', { connectorArrivingMax: 2 }, '192.0.2.2'],
    ['an address', { addressArrivingMax: 2 }, '192.0.2.1'],
    ['the node', { arrivingMax: 2 }, '192.0.2.2'],
  ])('of whoever is silent goes when %s has too many', async (_, limits, genuine) => {
    let caller = '192.0.2.1';
    open({ ...limits, bodyReadMs: 30_000 }, { addressOf: () => caller });
    const first = post('/webhook/parcels', JSON_TYPE, slowBody());
    await h.clock.advance(2_000);
    void post('/webhook/parcels', JSON_TYPE, slowBody());
    await h.clock.advance(2_000);
    caller = genuine;
    expect((await post()).status).toBe(202);
    expect((await first).status).toBe(408);
    expect(ingest.refusals.length).toBe(1);
  });

  test('is not read for an unknown connector or a wrong type', async () => {
    let pulled = 0;
    // Nothing is pulled before somebody reads.
    const body = () =>
      new ReadableStream(
        {
          pull: () => {
            pulled++;
          },
        },
        { highWaterMark: 0 },
      );
    expect((await post('/webhook/nobody', JSON_TYPE, body())).status).toBe(404);
    expect((await post('/webhook/parcels', { 'content-type': 'text/xml' }, body())).status).toBe(415);
    expect(pulled).toBe(0);
  });

  test('that its sender breaks off reaches nobody', async () => {
    open({}, { readBody: () => Promise.reject(new SkuaError('aborted', 'Gone.')) });
    expect((await post()).status).toBe(503);
    expect([ingest.calls, ingest.refusals]).toEqual([[], []]);
  });
});
