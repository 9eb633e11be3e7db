import { describe, expect, test } from 'vitest';
import { ATOM, harness, ORIGIN } from './harness.ts';

describe('methods', () => {
  test.each([
    ['/streams/s', 'POST, DELETE, GET, OPTIONS'],
    ['/streams/s/0', 'GET, OPTIONS'],
    ['/streams/s/metadata', 'GET, POST, GET, OPTIONS'],
    ['/streams/s/0/forward/2', 'GET, OPTIONS'],
    ['/streams/$all', 'POST, DELETE, GET, GET, OPTIONS'],
    ['/streams/%24all/head/backward/2', 'GET, GET, OPTIONS'],
  ])('%s', async (path, methods) => {
    const h = harness();
    for (const method of ['OPTIONS', 'PUT', 'PATCH']) {
      const reply = await h.send(method, path);
      expect(reply.status).toBe(method === 'OPTIONS' ? 200 : 405);
      expect(reply.headers.get('access-control-allow-methods')).toBe(methods);
      // Only where an option names the origin.
      expect(reply.headers.get('access-control-allow-origin')).toBeNull();
      expect(reply.headers.get('access-control-allow-headers')).toMatch(
        /^Content-Type, .*ES-LongPoll.*Kurrent-EventId/,
      );
      expect(reply.headers.get('access-control-expose-headers')).toContain('ES-CurrentVersion');
      expect(reply.headers.get('allow')).toBe(method === 'OPTIONS' ? null : methods);
    }
  });
});

describe('paths', () => {
  test.each([
    '/nothing',
    '/streams/',
    '/streams//x',
    '/streams/s/0/',
    '/streams/s/0/forward/2/',
    '/streams/s/0/sideways/2',
    '/streams/s/0/forward/2/3',
    '/health/live/',
    '//',
  ])('%s is 404', async (path) => {
    const reply = await harness().get(path, ATOM);
    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([404, null]);
  });

  test.each([
    ['/streams/s/', '/streams/s'],
    ['/streams/a%20b/metadata/', '/streams/a%20b/metadata'],
    ['/streams/$all/', '/streams/$all'],
    ['/streams/s/?embed=body', '/streams/s?embed=body'],
  ])('%s is redirected', async (path, target) => {
    for (const method of ['GET', 'POST']) {
      const reply = await harness().send(method, path);
      expect(reply).toMatchObject({ status: 307, reason: 'Temporary Redirect', text: 'Moved Permanently' });
      expect(reply.headers.get('location')).toBe(ORIGIN + target);
      expect(reply.headers.get('cache-control')).toBe('max-age=31536000, public');
    }
  });

  test('a redirect to where a forwarding header points is kept by no cache: other clients would be sent there', async () => {
    const { get } = harness();
    for (const [name, value] of [
      ['host', 'evil.test'],
      ['proto', 'https'],
      ['port', '81'],
      ['prefix', '/x'],
    ]) {
      expect(
        (await get('/streams/s/', undefined, { [`x-forwarded-${name}`]: value! })).headers.get('cache-control'),
      ).toBe('no-store');
    }
    // As the reference: who says nothing about proxies gets links to where the caller says it is.
    expect((await get('/streams/s/', undefined, { 'x-forwarded-host': 'evil.test' })).headers.get('location')).toBe(
      'http://evil.test/streams/s',
    );
    expect((await get('/streams/s/', undefined, { 'x-forwarded-host': '<' })).headers.get('cache-control')).toBe(
      'max-age=31536000, public',
    );
  });

  test('where proxies were named, only what comes from them says how links begin', async () => {
    const headers = { 'x-forwarded-host': 'events.test', 'x-forwarded-proto': 'https', 'x-forwarded-prefix': 'db' };
    for (const [isTrusted, location] of [
      [true, 'https://events.test/db/streams/s'],
      [false, `${ORIGIN}/streams/s`],
    ] as const) {
      const reply = await harness({ isTrustedProxy: () => isTrusted }).get('/streams/s/', undefined, headers);
      expect(reply.headers.get('location')).toBe(location);
      expect(reply.headers.get('cache-control')).toBe(isTrusted ? 'no-store' : 'max-age=31536000, public');
    }
  });

  test.each(['/streams/%zz', '/streams/%E0%A4%A', '/streams/a%/metadata'])('%s is 400', async (path) => {
    expect((await harness().get(path)).status).toBe(400);
  });

  test('. and .. are no names, however a client gets them through', async () => {
    const h = harness();
    // URL parsers resolve the plain forms; a server that passes raw targets on must refuse them too.
    for (const name of ['.', '..', '%2e', '%2E%2e']) {
      const request = {
        url: `${ORIGIN}/streams/${name}`,
        method: 'POST',
        headers: new Headers({ 'content-type': 'application/json', 'es-eventtype': 'x', 'es-eventid': h.id() }),
      };
      expect((await h.app(request as Request)).status).toBe(400);
    }
  });
});

describe('what the reference has and we have not', () => {
  test.each([
    ['/projections', 'Projections'],
    ['/projections/any', 'Projections'],
    ['/projections/onetime?name=x', 'Projections'],
    ['/projection/$by_category/statistics', 'Projections'],
    ['/projections/', 'Projections'],
    ['/subscriptions', 'Persistent subscriptions.*in functions, and on a node over object storage'],
    ['/subscriptions/s/group/info', 'Persistent subscriptions'],
    ['/web', 'web page'],
    ['/web/index.html', 'web page'],
    ['/ui/cluster', 'web page'],
    ['/histogram/x', 'Histograms'],
    ['/event_store.client.streams.Streams/Read', 'gRPC'],
    ['/kurrentdb.protocol.v2.streams.StreamsService/Append', 'gRPC'],
  ])('%s is 404, as any other path, and says so', async (path, named) => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
      const reply = await harness().send(method, path);
      expect([reply.status, reply.headers.get('access-control-allow-methods')]).toEqual([404, null]);
      expect(reply.json()).toMatchObject({
        code: 'not_here',
        detail: expect.stringMatching(new RegExp(`${named}.*guide`)),
      });
    }
  });

  test.each(['/projectionsx', '/webx', '/subscription', '/event_store', '/histograms'])(
    '%s is nothing',
    async (path) => {
      expect((await harness().get(path)).json().code).toBe('not_found');
    },
  );

  test('XML is named where it is asked for or sent', async () => {
    const h = harness();
    await h.fill('s', { n: 1 });
    for (const accept of [
      'application/atom+xml',
      'text/xml',
      'application/vnd.eventstore.event+xml',
      'application/xml;q=0.9, text/html',
    ]) {
      for (const path of ['/streams/s', '/streams/s/0', '/streams/$all', '/info'])
        expect((await h.get(path, accept)).json()).toMatchObject({
          code: expect.stringMatching(/^not_/),
          detail: expect.stringMatching(/^XML is not supported/),
        });
    }
    for (const format of ['xml', 'atom', 'ATOM', 'atomsvc'])
      expect((await h.get(`/streams/s?format=${format}`)).json()).toMatchObject({
        code: 'not_acceptable',
        detail: expect.stringMatching(/^XML is not supported/),
      });
    expect((await h.get('/streams/s', 'image/png')).json().detail).toMatch(/^This is available as/);
    for (const type of ['application/vnd.eventstore.events+xml', 'text/xml', 'application/xml; charset=utf-8']) {
      expect(await h.send('POST', '/streams/s', { 'content-type': type, 'es-eventtype': 'x' }, '<a/>')).toMatchObject({
        status: 415,
        text: expect.stringContaining('XML is not supported'),
      });
    }
    expect((await h.send('POST', '/streams/s', { 'content-type': 'image/png' }, 'x')).json().detail).toMatch(
      /^Content-Type/,
    );
  });
});

test('HEAD of what has no GET is refused by its name', async () => {
  const reply = await harness().send('HEAD', '/streams/s/incoming/6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11');
  expect([reply.status, reply.headers.get('allow'), reply.text]).toEqual([405, 'POST, GET, OPTIONS', '']);
});

test('/health/live answers at once', async () => {
  for (const method of ['GET', 'HEAD'])
    expect(await harness().send(method, '/health/live')).toMatchObject({ status: 204, text: '' });
  expect((await harness().send('POST', '/health/live')).status).toBe(405);
});

test('/ shows a newcomer around', async () => {
  const reply = await harness({ options: { version: '9.9.9' } }).get('/');
  expect(reply.json()).toMatchObject({ name: 'Skua', version: '9.9.9', links: { all: `${ORIGIN}/streams/%24all` } });
});
