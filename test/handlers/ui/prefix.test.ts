import { describe, expect, test } from 'vitest';
import { fakePage } from '../../support/fake-page.ts';
import { harness, ORIGIN } from '../harness.ts';
import { AS, secured } from '../secured.ts';

/** A proxy takes `/db` off the paths of requests, and says so. */
const BEHIND = { 'x-forwarded-prefix': '/db' };
const JSON_TYPE = { accept: 'application/json' };
const DESCRIPTION = 'application/vnd.eventstore.streamdesc+json';
/** A request of the page itself. */
const OURS = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };

describe.each([
  [true, '/db'],
  [false, ''],
] as const)('below the prefix of a proxy that is trusted: %s', (isTrusted, prefix) => {
  const h = harness({ page: fakePage(), isTrustedProxy: () => isTrusted });

  test('addresses begin with it', async () => {
    await h.fill('orders', 1);
    expect((await h.get('/', 'text/html', BEHIND)).headers.get('location')).toBe(`${ORIGIN}${prefix}/ui`);
    expect((await h.get('/streams/orders/', undefined, BEHIND)).headers.get('location')).toBe(
      `${ORIGIN}${prefix}/streams/orders`,
    );
    expect((await h.get('/streams/orders', 'application/vnd.eventstore.atom+json', BEHIND)).json().links[0].uri).toBe(
      `${ORIGIN}${prefix}/streams/orders`,
    );
    const { _links: links } = (await h.get('/streams/orders', DESCRIPTION, BEHIND)).json();
    for (const { href } of [links.self, links.stream].flat()) expect(href).toBe(`${prefix}/streams/orders`);
    const { scavengeId } = (await h.send('POST', '/admin/scavenge', { ...JSON_TYPE, ...BEHIND })).json();
    for (const path of ['/admin/scavenge/current', '/admin/scavenge/last'])
      expect((await h.get(path, 'application/json', BEHIND)).json().scavengeLink, path).toBe(
        `${prefix}/admin/scavenge/${scavengeId}`,
      );
  });

  test('the description of the interface names it as where the node is, and is kept by nobody else', async () => {
    const reply = await h.get('/openapi.json', undefined, BEHIND);
    expect([reply.json().servers[0].url, reply.headers.get('cache-control')]).toEqual([
      prefix || '/',
      isTrusted ? 'max-age=300, private' : 'max-age=300, public',
    ]);
    const plain = await h.get('/openapi.json');
    expect([plain.json().servers[0].url, plain.headers.get('cache-control')]).toEqual(['/', 'max-age=300, public']);
    expect({ ...reply.json(), servers: null }).toEqual({ ...plain.json(), servers: null });
  });

  test.each([
    ['http', 'skua-session', 'skua-session'],
    ['https', '__Secure-skua-session', '__Host-skua-session'],
  ])('over %s a session is for it alone', async (proto, below, atRoot) => {
    const users = secured({ page: fakePage(), isTrustedProxy: () => isTrusted });
    const headers = { ...OURS, ...BEHIND, 'x-forwarded-proto': proto };
    const { headers: answered } = await users.send(
      'POST',
      '/ui/session',
      headers,
      JSON.stringify({ user: 'kim', password: 'kim:pass' }),
    );
    const cookie = answered.get('set-cookie')!;
    const isSecure = isTrusted && proto === 'https';
    const name = isTrusted ? below : 'skua-session';
    expect(cookie).toMatch(
      new RegExp(
        `^${name}=[\\w.-]+; Path=${prefix || '/'}; Max-Age=\\d+; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}$`,
      ),
    );
    const value = cookie.split(';', 1)[0]!.slice(name.length + 1);
    const who = async (named: string, more: Record<string, string>) =>
      (
        await users.get('/ui/session', undefined, {
          'sec-fetch-site': 'same-origin',
          'x-forwarded-proto': proto,
          ...more,
          ...AS.anonymous,
          cookie: `${named}=${value}`,
        })
      ).json().user;
    expect(await who(name, BEHIND)).toBe('kim');
    // Without the prefix it has the name that says more of it.
    expect(await who(isTrusted ? atRoot : 'skua-session', {})).toBe('kim');
    if (isSecure) expect([await who(name, {}), await who(atRoot, BEHIND)]).toEqual([null, null]);
    expect(
      (await users.send('DELETE', '/ui/session', { ...headers, cookie: `${name}=${value}` })).headers.get('set-cookie'),
    ).toBe(`${name}=; Path=${prefix || '/'}; Max-Age=0; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`);
  });
});

test('what can not stand in an address is no prefix', async () => {
  const h = harness({ page: fakePage() });
  for (const bad of ['/<x>', '/a;b', '/a b', '"', `/${'a'.repeat(200)}`, 'https://evil.test']) {
    expect((await h.get('/openapi.json', undefined, { 'x-forwarded-prefix': bad })).json().servers[0].url, bad).toBe(
      '/',
    );
    if (bad !== '"')
      expect((await h.get('/ui', 'text/html', { 'x-forwarded-prefix': bad })).text, bad).not.toContain(bad);
  }
});
