import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { fakePage, PAGE_HTML, SCRIPT, SCRIPT_NAME } from '../../support/fake-page.ts';
import { harness, ORIGIN } from '../harness.ts';
import { AS, secured } from '../secured.ts';

const ASSET = `/ui/assets/${SCRIPT_NAME}`;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** The page without the way from its address to its files. */
function withoutAddresses(html: string): string {
  return html.replace(/="[./]*(?:ui\/)?assets\//g, '="');
}

const h = harness({ page: fakePage() });

describe('the page', () => {
  test.each([
    '/ui',
    '/ui/',
    '/ui/streams',
    '/ui/streams/',
    '/ui/streams/%24all/12?x=1',
    '/ui/assets',
    '/ui/a/b/c/d',
    '/ui/streams/a%2Fb',
  ])('is at %s', async (path) => {
    const reply = await h.get(path, 'text/html');
    expect([
      reply.status,
      withoutAddresses(reply.text),
      reply.headers.get('content-type'),
      reply.headers.get('cache-control'),
    ]).toEqual([200, withoutAddresses(PAGE_HTML), 'text/html; charset=utf-8', 'no-cache']);
    for (const before of ['', '/db', '/a/b'])
      expect(new URL(/src="([^"]+)"/.exec(reply.text)![1]!, `${ORIGIN}${before}${path}`).href).toBe(
        `${ORIGIN}${before}${ASSET}`,
      );
  });

  test('its files are kept for ever, and others are not there', async () => {
    const reply = await h.get(ASSET);
    expect([reply.status, reply.text, reply.headers.get('content-type'), reply.headers.get('cache-control')]).toEqual([
      200,
      SCRIPT,
      'text/javascript; charset=utf-8',
      'public, max-age=31536000, immutable',
    ]);
    for (const path of [
      '/ui/assets/main-OTHER.js',
      '/ui/assets/..%2Findex.html',
      '/ui/assets/%5C',
      '/ui/assets/constructor',
    ])
      expect((await h.get(path)).json()).toMatchObject({ code: 'not_found' });
  });

  test.each(['/ui', '/ui/streams', ASSET])('%s says what a browser may do with it', async (path) => {
    const { headers } = await h.get(path);
    expect(
      Object.fromEntries(
        [
          'content-security-policy',
          'x-content-type-options',
          'referrer-policy',
          'cross-origin-opener-policy',
          'cross-origin-resource-policy',
          'access-control-allow-origin',
        ].map((name) => [name, headers.get(name)]),
      ),
    ).toEqual({
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'access-control-allow-origin': null,
    });
    expect(headers.get('permissions-policy')).toContain('camera=()');
  });

  test('comes compressed as the browser likes it, each form with a tag of its own', async () => {
    const answered = async (accept: string) => {
      const response = await h.raw('GET', ASSET, { 'accept-encoding': accept });
      return {
        coding: response.headers.get('content-encoding'),
        etag: response.headers.get('etag'),
        vary: response.headers.get('vary'),
        bytes: new Uint8Array(await response.arrayBuffer()),
      };
    };
    const br = await answered('gzip, deflate, br, zstd');
    const gzip = await answered('gzip, deflate');
    expect([br.coding, gzip.coding, br.vary]).toEqual(['br', 'gzip', 'Accept-Encoding']);
    expect([brotliDecompressSync(br.bytes).toString(), gunzipSync(gzip.bytes).toString()]).toEqual([SCRIPT, SCRIPT]);
    const plain = await answered('identity');
    expect([plain.coding, new Set([br.etag, gzip.etag, plain.etag]).size]).toEqual([null, 3]);
    for (const etag of [br.etag!, gzip.etag!, plain.etag!]) {
      const unchanged = await h.send('GET', ASSET, { 'accept-encoding': 'br', 'if-none-match': etag });
      expect([
        unchanged.status,
        unchanged.text,
        unchanged.headers.get('etag'),
        unchanged.headers.get('content-security-policy'),
      ]).toEqual([304, '', br.etag, POLICY]);
    }
    expect((await h.send('GET', ASSET, { 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('HEAD is as GET, and nothing else is possible', async () => {
    const reply = await h.send('HEAD', '/ui/streams');
    expect([
      reply.status,
      reply.text,
      reply.headers.get('content-length'),
      reply.headers.get('content-security-policy'),
    ]).toEqual([200, '', String((await h.get('/ui/streams')).text.length), POLICY]);
    for (const path of ['/ui', '/ui/x', ASSET])
      for (const method of ['POST', 'PUT', 'DELETE']) expect((await h.send(method, path)).status).toBe(405);
  });

  test('is shown before anybody has logged in', async () => {
    expect((await secured({ page: fakePage() }).get('/ui', undefined, AS.anonymous)).status).toBe(200);
  });

  test('one that can not be loaded is a failure that says why', async () => {
    const broken = harness({
      page: {
        page: async () => {
          throw new SkuaError('page_unavailable', 'The web page could not be loaded: main.tsx is gone.');
        },
        asset: async () => null,
      },
    });
    const reply = await broken.get('/ui');
    expect([reply.status, reply.json()]).toMatchObject([
      500,
      { code: 'page_unavailable', detail: 'The web page could not be loaded: main.tsx is gone.' },
    ]);
  });
});

describe('without a page', () => {
  test.each([{ options: { disableAdminUi: true }, page: fakePage() }, { page: null }, {}])(
    'there is nothing at /ui: %j',
    async (context) => {
      const none = harness(context);
      for (const path of ['/ui', '/ui/', '/ui/streams', ASSET])
        expect([(await none.get(path)).status, (await none.get(path)).json().code]).toEqual([404, 'not_here']);
    },
  );

  test('DisableAdminUi takes / away too; without a page / tells everybody the addresses', async () => {
    expect((await harness({ options: { disableAdminUi: true }, page: fakePage() }).get('/', 'text/html')).status).toBe(
      404,
    );
    expect((await harness().get('/', 'text/html')).json().name).toBe('Skua');
  });
});

describe('/', () => {
  test.each<[string, Record<string, string>]>([
    [
      'a browser on a connection that it trusts',
      { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'sec-fetch-mode': 'navigate' },
    ],
    ['a browser on another one', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }],
  ])('%s is led to the page', async (_, headers) => {
    const reply = await h.send('GET', '/', headers);
    expect([reply.status, reply.headers.get('location'), reply.headers.get('cache-control')]).toEqual([
      307,
      `${ORIGIN}/ui`,
      'no-store',
    ]);
  });

  test.each<[string, Record<string, string>]>([
    ['curl', { accept: '*/*' }],
    ['a program that says nothing', {}],
    ['a program that wants JSON', { accept: 'application/json' }],
    ['a page that fetches', { accept: 'text/html, */*', 'sec-fetch-mode': 'cors' }],
  ])('%s is told the addresses', async (_, headers) => {
    expect((await h.send('GET', '/', headers)).json()).toMatchObject({
      name: 'Skua',
      links: { all: `${ORIGIN}/streams/%24all` },
    });
  });
});
