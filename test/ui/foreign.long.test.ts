import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import { bySize } from '../support/run-size.ts';
import {
  CHANGES,
  EVENTS_TYPE,
  LAST_CHANGES,
  PRIVATE_PATHS,
  PUBLIC_PATHS,
  READER,
  SECRETS,
} from './foreign/attempts.ts';
import { ForeignSite } from './foreign/site.ts';
import { ADMIN, atNode, PASSWORD, PATIENCE_MS } from './kit.ts';
import type { Ui } from './kit.ts';

/**
 * Pages of others in the browser of somebody who is logged in: another port of the same host, which browsers take for
 * the same site and send the cookie to, and another host. At an address of this machine, to which browsers say who
 * sends a request, and by a name, where over plain HTTP they do not.
 */

const site = await ForeignSite.start();
afterAll(() => site.stop());

/**
 * Of the node, and of the other page. Names that end so are those of this machine for the browser of these tests
 * (`test/ui/chromium.ts`).
 */
const PLACES: readonly (readonly [string, string])[] = [
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.1', 'localhost'],
  ['node.test', 'node.test'],
  ['node.test', 'elsewhere.test'],
];
const NAMED = PLACES.map(([, host]) => site.origin(host));
/** Each place is tried once, with origins named or not; `npm run test:all` tries all in both ways. */
const placesFor = (isNamed: boolean) => PLACES.filter((_, i) => bySize(true, (i === 0 || i === 3) === isNamed, true));

interface Visit {
  readonly context: BrowserContext;
  /** Where the browser finds the node. */
  readonly node: string;
  /** The node's own page, logged in. */
  readonly own: Page;
  /** The page of somebody else. */
  readonly other: Page;
  /** What the node answered to what would change something, since it was last emptied. */
  readonly answers: { readonly what: string; readonly status: number }[];
}

interface Hostile {
  change(node: string, change: unknown): Promise<string[]>;
  look(node: string, path: string): Promise<string[]>;
  openWindow(url: string): boolean;
  reach(orders: readonly unknown[]): Promise<string[]>;
}

/** Calls a function of the page of somebody else. */
function call<Name extends keyof Hostile>(
  page: Page,
  name: Name,
  ...args: Parameters<Hostile[Name]>
): Promise<Awaited<ReturnType<Hostile[Name]>>> {
  return page.evaluate(`hostile.${name}(...${JSON.stringify(args)})`);
}

async function visited(ui: Ui, host: string, foreign: string): Promise<Visit> {
  const context = await ui.browser.newContext({ locale: 'en-US' });
  context.setDefaultTimeout(PATIENCE_MS);
  const node = ui.url.replace('127.0.0.1', host);
  const answers: Visit['answers'] = [];
  context.on('response', (response) => {
    const request = response.request();
    if (response.url().startsWith(node) && !['GET', 'HEAD', 'OPTIONS'].includes(request.method()))
      answers.push({ what: `${request.method()} ${response.url().slice(node.length)}`, status: response.status() });
  });
  const own = await context.newPage();
  await own.goto(`${node}/ui`);
  expect(await ask(own, 'POST', '/ui/session', { user: ADMIN, password: PASSWORD })).toMatchObject({ status: 200 });
  await own.reload();
  await own.getByText('Single node').waitFor();
  const other = await context.newPage();
  await other.goto(site.origin(foreign));
  await other.waitForFunction('window.hostile !== undefined');
  answers.length = 0;
  return { context, node, own, other, answers };
}

/** A request that the node's own page sends. */
function ask(
  page: Page,
  method: string,
  path: string,
  body?: unknown,
  type = 'application/json',
): Promise<{ readonly status: number; readonly text: string }> {
  const init = {
    method,
    headers: {
      'x-requested-with': 'skua',
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': type }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  };
  return page.evaluate(
    `fetch(${JSON.stringify(path)}, ${JSON.stringify(init)}).then(async (response) => ({ status: response.status, text: await response.text() }))`,
  );
}

/** All that the attempts would change. Whatever is written moves the end of the log. */
async function state(ui: Ui): Promise<unknown> {
  const [overview, log, users, connectors, last, proofs] = await Promise.all(
    [
      '/admin/overview',
      '/admin/log?count=1',
      '/users',
      '/connectors?includeSettings=true',
      '/admin/scavenge/last',
      '/admin/erasure',
    ].map(async (path) => (await ui.ask('GET', path)).json() as Promise<Record<string, unknown>>),
  );
  const {
    node: { startedAt },
  } = overview as unknown as { readonly node: { readonly startedAt: string } };
  // The overview may be a second old.
  const end = Number(
    /eventstore_checkpoints\{[^}]*name="writer"[^}]*\} (\d+)/.exec(await (await ui.ask('GET', '/metrics')).text())?.[1],
  );
  return { end, startedAt, level: log!['level'], users, connectors, last, proofs };
}

async function filled(ui: Ui): Promise<void> {
  await ui.ask('POST', '/users', READER);
  await ui.ask(
    'POST',
    '/streams/orders',
    [{ eventId: '3e5d7c9b-1a2f-4e6d-8c0b-a9f8e7d6c5b4', eventType: 'made', data: { about: 'classified' } }],
    { 'content-type': EVENTS_TYPE },
  );
  await ui.ask('PUT', '/subscriptions/orders/workers', {});
}

/** That nothing has changed, at the node and in the browser, since this was called. */
async function guarded(ui: Ui, { own, context, node }: Visit): Promise<() => Promise<void>> {
  const cookies = async () =>
    (await context.cookies(node))
      .filter(({ name, path }) => name === 'skua-session' && path === '/')
      .map(({ value }) => value);
  const before = [await state(ui), await cookies()];
  return async () => {
    expect([await state(ui), await cookies()]).toEqual(before);
    const { text } = await ask(own, 'GET', '/ui/session');
    expect(JSON.parse(text)).toMatchObject({ user: ADMIN, isAdministrator: true });
  };
}

function secretsIn(found: readonly string[]): readonly string[] {
  return found.filter((line) => SECRETS.some((secret) => line.includes(secret)));
}

describe.each([
  ['no origin is named', []],
  ['the origins of the others are named', ['--cors-origins', NAMED.join(',')]],
] as const)('where %s', (_, words) => {
  const isNamed = words.length > 0;

  atNode(
    'pages of others',
    (ui) => {
      test.each(placesFor(isNamed))('at %s and %s change nothing, whatever they send', async (host, foreign) => {
        await filled(ui);
        const visit = await visited(ui, host, foreign);
        const unchanged = await guarded(ui, visit);
        const tried = CHANGES.filter((_, i) =>
          bySize(true, i % 2 === Number(foreign === 'localhost' || foreign === 'elsewhere.test'), true),
        );
        for (const change of tried) {
          const found = await call(visit.other, 'change', visit.node, change);
          expect(secretsIn(found)).toEqual([]);
          // Only pages that are named get to see an answer at all.
          if (!isNamed) expect(found.filter((line) => /: (?:basic|cors|default|xhr) /.test(line))).toEqual([]);
        }
        await unchanged();
        // They have arrived, and each was refused.
        for (const { method, path } of tried.filter((change) => change.method === 'POST' || isNamed))
          expect(visit.answers.filter(({ what }) => what === `${method} ${path}`).length, path).toBeGreaterThan(2);
        expect(visit.answers.filter(({ status }) => status < 400)).toEqual([]);
        await visit.context.close();
      });

      // Each way of looking at each path takes its time: of one host as two ports, which browsers take for the same
      // site.
      test.each(placesFor(isNamed).filter(([node, other]) => bySize(true, node === other, true)))(
        'at %s and %s see nothing, wherever they look',
        async (host, foreign) => {
          await filled(ui);
          const visit = await visited(ui, host, foreign);
          const unchanged = await guarded(ui, visit);
          const found: string[] = [];
          for (const path of [...PRIVATE_PATHS.filter((_, i) => bySize(true, i % 3 === 0, true)), ...PUBLIC_PATHS])
            found.push(...(await call(visit.other, 'look', visit.node, path)));
          expect(secretsIn(found)).toEqual([]);
          const told = found.filter(
            (line) => !/: (?:refused: |nothing$|opaque 0 $)|refused: .*refused: |in the timings: 0 0 0$/.test(line),
          );
          if (isNamed) {
            // As nobody.
            const read = told.filter((line) => !PUBLIC_PATHS.some((path) => line.includes(`${visit.node}${path} `)));
            expect(read.filter((line) => !/: (?:cors|xhr) 401 /.test(line))).toEqual([]);
            expect(told.filter((line) => line.includes('/ui/session ') && !line.includes('"user":null'))).toEqual([]);
          } else expect(told).toEqual([]);
          await unchanged();
          await visit.context.close();
        },
      );

      test.each(placesFor(isNamed))(
        'at %s and %s get no hold of a window with the page in it',
        async (host, foreign) => {
          await filled(ui);
          const visit = await visited(ui, host, foreign);
          const unchanged = await guarded(ui, visit);
          const appears = visit.context.waitForEvent('page');
          await call(visit.other, 'openWindow', `${visit.node}/ui/streams/orders`);
          const opened = await appears;
          // It is the user's own page, and shows what it would without the other one.
          await opened.getByRole('heading', { level: 1, name: 'orders' }).waitFor();
          const found = await call(visit.other, 'reach', [
            { type: 'delete', stream: 'orders' },
            'logout',
            { method: 'DELETE', path: '/streams/orders' },
            '<img src=x onerror=alert(1)>',
          ]);
          expect(secretsIn(found)).toEqual([]);
          expect(found.filter((line) => !line.startsWith('refused: ') && line !== 'null')).toEqual([]);
          await unchanged();
          await visit.context.close();
        },
      );

      test('put cookies beside the session, which counts all the same', async () => {
        const visit = await visited(ui, '127.0.0.1', '127.0.0.1');
        await visit.other.goto(`${site.origin('127.0.0.1')}/cookies`);
        expect(
          (await visit.context.cookies(`${visit.node}/ui`)).filter(({ name }) => name === 'skua-session'),
        ).toHaveLength(2);
        expect(JSON.parse((await ask(visit.own, 'GET', '/ui/session')).text)).toMatchObject({ user: ADMIN });
        expect((await ask(visit.own, 'GET', '/streams/orders')).status).toBe(200);
        await visit.context.close();
      });

      test('lead into views by links, which do nothing by themselves', async () => {
        await filled(ui);
        const visit = await visited(ui, 'node.test', 'elsewhere.test');
        const unchanged = await guarded(ui, visit);
        for (const path of [
          '/streams/orders?delete=true',
          '/scavenge?start=true',
          '/scavenge?tab=explain&stream=orders',
          '/webhooks/planted?create=true',
          '/users?new=planted',
          '/streams/%3Cimg%20src=x%20onerror=alert(1)%3E',
          '//elsewhere.test/',
          '/auto-scavenge?schedule=*',
          '/log?level=debug',
        ]) {
          await visit.other.goto(site.origin('elsewhere.test'));
          const asked = visit.other.waitForResponse((response) => response.url() === `${visit.node}/admin/overview`);
          await visit.other.evaluate(
            `{ const link = Object.assign(document.createElement('a'), { href: ${JSON.stringify(`${visit.node}/ui${path}`)}, textContent: 'Win' }); document.body.append(link); link.click(); }`,
          );
          await visit.other.waitForURL(`${visit.node}/**`);
          await visit.other.locator('main h1').waitFor();
          await asked;
        }
        expect(visit.answers).toEqual([]);
        await unchanged();
        await visit.context.close();
      });

      test('would have done all of it, had they been the page itself', async () => {
        await filled(ui);
        const visit = await visited(ui, 'node.test', 'elsewhere.test');
        for (const path of PRIVATE_PATHS)
          expect([path, (await ask(visit.own, 'GET', path)).status]).toEqual([path, 200]);
        const before = (await state(ui)) as { readonly end: number };
        for (const { method, path, body, type } of CHANGES) {
          if (LAST_CHANGES.has(`${method} ${path}`)) continue;
          const { status, text } = await ask(visit.own, method, path, body, type);
          // That something runs already is no refusal.
          expect([method, path, status < 300 || status === 409 ? 'done' : `${status} ${text}`]).toEqual([
            method,
            path,
            'done',
          ]);
        }
        expect(((await state(ui)) as { readonly end: number }).end).toBeGreaterThan(before.end);
        await visit.context.close();
      });
    },
    words,
  );
});

// The user `ops` of these nodes has the default password.
atNode('a page whose name was pointed at the node', (ui) => {
  test('is the node to its browser, and reads and changes nothing', async () => {
    await filled(ui);
    const context = await ui.browser.newContext();
    const page = await context.newPage();
    expect((await page.goto(`${ui.url.replace('127.0.0.1', 'rebound.example.org')}/ui`))!.status()).toBe(421);
    const before = await state(ui);
    for (const path of [...PUBLIC_PATHS, ...PRIVATE_PATHS].filter((each) => !each.startsWith('/health/')))
      expect([path, (await ask(page, 'GET', path)).status]).toEqual([path, 421]);
    for (const { method, path, body, type } of CHANGES)
      expect([method, path, (await ask(page, method, path, body, type)).status]).toEqual([method, path, 421]);
    const login = await ask(page, 'POST', '/ui/session', { user: ADMIN, password: PASSWORD });
    expect([login.status, login.text]).toEqual([421, expect.stringContaining('"foreign_host"')]);
    expect(await state(ui)).toEqual(before);
    await context.close();
  });
});
