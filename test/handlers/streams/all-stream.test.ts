import { beforeEach, describe, expect, test } from 'vitest';
import { ATOM, harness, linksOf, numbered } from '../harness.ts';

const START = '0'.repeat(32);
const hex = (value: number): string => value.toString(16).toUpperCase().padStart(16, '0');
let h = harness();

beforeEach(async () => {
  h = harness();
  await h.fill('parcels', ...numbered(5));
  await h.fill('$sys', {});
  await h.fill('letters', ...numbered(3));
});

const titles = (feed: { entries: { title: string }[] }): string[] => feed.entries.map((entry) => entry.title);

describe('pages', () => {
  test.each(['/streams/$all', '/streams/%24all', '/streams/%24%61ll', '/streams/%24%61%6C%6c'])('%s', async (path) => {
    const feed = (await h.get(path, ATOM)).json();
    expect(feed).toMatchObject({ title: 'All events', streamId: null, selfUrl: null, eTag: null, headOfStream: false });
    expect(titles(feed)).toHaveLength(9);
    expect(titles(feed)[0]).toBe('2@letters');
  });

  test('following next from the head meets every event once, and previous leads back', async () => {
    const seen: string[] = [];
    let path: string | undefined = '/streams/$all/head/backward/4';
    let oldest = '';
    while (path !== undefined) {
      const feed = (await h.get(path, ATOM)).json();
      seen.push(...titles(feed));
      oldest = path;
      path = linksOf(feed)['next'];
    }
    expect(seen).toHaveLength(9);
    expect(new Set(seen).size).toBe(9);
    const back: string[] = [];
    for (path = oldest; ;) {
      const feed = (await h.get(path!, ATOM)).json();
      back.push(...titles(feed).toReversed());
      path = linksOf(feed)['previous'];
      if (path === undefined || feed.entries.length === 0) break;
    }
    expect(back).toEqual(seen.toReversed());
  });

  test('a reader that polls goes forward from the start to an empty page without previous', async () => {
    const seen: string[] = [];
    let path = `/streams/%24all/${START}/forward/4`;
    for (;;) {
      const links = linksOf((await h.get(path, ATOM)).json());
      seen.push(...titles((await h.get(path, ATOM)).json()).toReversed());
      if (links['previous'] === undefined) break;
      expect(links['previous']).toMatch(/\/[0-9A-F]{16}0{16}\/forward\/4$/);
      path = links['previous'];
    }
    expect(seen).toHaveLength(9);
    const end = (await h.get(path, ATOM)).json();
    expect(linksOf(end)['next']).toBe(`/streams/%24all/${hex(h.store.end)}7FFFFFFFFFFFFFFF/backward/4`);
    expect(titles((await h.get(linksOf(end)['next']!, ATOM)).json())).toHaveLength(4);
  });

  test('positions stand in the links', async () => {
    const newest = h.store.log.at(-1)!;
    const links = linksOf((await h.get('/streams/$all/head/backward/1', ATOM)).json());
    expect(links['previous']).toBe(`/streams/%24all/${hex(h.store.end).repeat(2)}/forward/1`);
    expect(links['next']).toBe(`/streams/%24all/${hex(newest.position).repeat(2)}/backward/1`);
    expect(links['last']).toBe(`/streams/%24all/${START}/forward/1`);
    expect(links['metadata']).toBe('/streams/%24all/metadata');
    expect(linksOf((await h.get(`/streams/$all/${START}/forward/2`, ATOM)).json())).not.toHaveProperty('last');
  });

  test.each([
    ['head/backward/2', false],
    [`${START}/forward/2`, true],
    [`${START}/forward/50`, false],
    [`${hex(Number.MAX_SAFE_INTEGER)}${hex(0)}/forward/2`, false],
  ])('caching of %s', async (page, isFixed) => {
    const reply = await h.get(`/streams/$all/${page}`, ATOM);
    expect(reply.headers.get('cache-control')).toBe(
      isFixed ? 'max-age=60, private' : 'max-age=0, no-cache, must-revalidate, private',
    );
    expect(reply.headers.get('etag')).toBe(isFixed ? null : `"${h.store.log.at(-1)!.position};1747451192"`);
  });

  test('304 on the head', async () => {
    const etag = (await h.get('/streams/$all', ATOM)).headers.get('etag')!;
    expect((await h.get('/streams/$all', ATOM, { 'if-none-match': etag })).status).toBe(304);
  });

  test.each([
    'head/forward/2',
    'xyz/backward/2',
    `${'F'.repeat(32)}/forward/2`,
    '0/forward/2',
    '12%2F12/forward/1',
    `${hex(1)}${hex(1)}/forward/2`,
  ])('%s is 400', async (page) => {
    const reply = await h.get(`/streams/$all/${page}`, ATOM);
    expect([reply.status, reply.json().code]).toEqual([400, 'invalid_position']);
  });
});

describe('filters', () => {
  test.each<[string, string[]]>([
    ['context=streamid&type=prefix&data=parc', ['4@parcels', '3@parcels', '2@parcels', '1@parcels', '0@parcels']],
    ['context=StreamId&type=Prefix&data=lett,$s', ['2@letters', '1@letters', '0@letters', '0@$sys']],
    ['context=streamid&type=regex&data=^l.*s$', ['2@letters', '1@letters', '0@letters']],
    ['context=eventtype&type=prefix&data=nothing', []],
  ])('%s', async (query, expected) => {
    const feed = (await h.get(`/streams/$all/filtered?${query}`, ATOM)).json();
    expect(titles(feed)).toEqual(expected);
    expect(linksOf(feed)).not.toHaveProperty('metadata');
    expect(linksOf(feed)['first']).toBe('/streams/%24all/filtered/head/backward/20');
  });

  test('pages in both directions', async () => {
    const query = '?context=streamid&type=prefix&data=letters';
    expect(titles((await h.get(`/streams/$all/filtered/${START}/forward/2${query}`, ATOM)).json())).toEqual([
      '1@letters',
      '0@letters',
    ]);
    expect(titles((await h.get(`/streams/$all/filtered/head/backward/1${query}`, ATOM)).json())).toEqual(['2@letters']);
    expect(titles((await h.get(`/streams/$all/filtered/head/1${query}`, ATOM)).json())).toEqual(['2@letters']);
  });

  test('system events can be left out', async () => {
    await h.send(
      'POST',
      '/streams/parcels/metadata',
      { 'content-type': 'application/json', 'es-eventid': h.id() },
      '{}',
    );
    const feed = (
      await h.get('/streams/$all/filtered?context=eventtype&type=regex&data=.&exclude-system-events=true', ATOM)
    ).json();
    expect(titles(feed).some((title) => title.includes('$$'))).toBe(false);
  });

  const noContext = 'Invalid context please provide one of the following: StreamId, EventType.';
  test.each([
    ['', noContext],
    ['context=x&type=prefix&data=a', noContext],
    ['context=streamid&data=a', 'Invalid type please provide one of the following: Prefix, Regex.'],
    [
      'context=streamid&type=prefix',
      'Invalid data please provide a comma-separated list of prefixes or a regular expression.',
    ],
    ['context=streamid&type=prefix&data=,', 'Invalid data please provide 1 to 1000 prefixes.'],
  ])('%s is 400', async (query, detail) => {
    const reply = await h.get(`/streams/$all/filtered?${query}`, ATOM);
    expect([reply.status, reply.json().detail]).toEqual([400, detail]);
  });

  const byRegex = (expression: string, context = 'streamid') =>
    h.get(`/streams/$all/filtered?context=${context}&type=regex&data=${encodeURIComponent(expression)}`, ATOM);

  test.each(['(?=a)', '(?!a)', '(?<=a)', '(?<!a)', '(?>a)', '(a)\\1', '(?<n>a)\\k<n>', '\\u{61}'])(
    'the expression %s, which RE2 does not have, is 400 and says so',
    async (expression) => {
      const reply = await byRegex(expression);
      expect([reply.status, reply.json().code]).toEqual([400, 'unsupported_expression']);
      expect(reply.json().detail).toContain('RE2');
    },
  );

  test.each([
    '^(?:a{1,99}){1,99}$',
    '(?:a{1000}){1000}',
    '((a{10}){10}){10}',
    `(?:${'a'.repeat(900)}){1000}`,
    'a{1000}'.repeat(140),
    '[]{1000}[a]]{1000}',
    '(?:\\pL{100}){10}',
    '[[:alpha:]]{501}',
    '\\Q((\\E{1000}',
    'a'.repeat(1_001),
  ])('the expression %s, which grows too large, is 400', async (expression) => {
    const { status, code } = (({ status, json }) => ({ status, code: json().code as string }))(
      await byRegex(expression),
    );
    expect([status, ['expression_too_large', 'invalid_expression'].includes(code)]).toEqual([400, true]);
  });

  test('what keeps an engine that backtracks busy for ever is answered', async () => {
    for (const expression of [
      '^(a+)+$',
      '^(\\x{61}+)+$',
      '(.*a){20}$',
      '(a?){60}a{60}$',
      '(a|b)*a(a|b){12}$',
      '(l*)*(e*)*(t*)*!$',
      `${'(a*'.repeat(40)}${')*'.repeat(40)}b`,
    ]) {
      expect((await byRegex(expression)).status, expression).toBe(200);
    }
  });

  test('more expressions than are kept compiled give the same answers again', async () => {
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 40; i++)
        expect(titles((await byRegex(`^let{2}er${i === 0 ? '' : `|^no${i}`}`)).json())).toEqual([
          '2@letters',
          '1@letters',
          '0@letters',
        ]);
    }
  });

  test('groups and classes are no look-around', async () => {
    for (const expression of ['(?:a|b)+', '(?<name>a)', '[\\d-]\\d', '\\p{L}', 'a=b!']) {
      expect(
        (await h.get(`/streams/$all/filtered?context=streamid&type=regex&data=${encodeURIComponent(expression)}`, ATOM))
          .status,
      ).toBe(200);
    }
  });

  test('an expression that is none, or too long, is 400', async () => {
    for (const [expression, code] of [
      ['(', 'invalid_expression'],
      ['a**', 'invalid_expression'],
      ['[z-a]', 'invalid_expression'],
      ['a'.repeat(1001), 'expression_too_large'],
    ] as const) {
      const reply = await byRegex(expression);
      expect([reply.status, reply.json().code]).toEqual([400, code]);
    }
  });
});
