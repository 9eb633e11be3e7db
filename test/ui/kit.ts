import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import axe from 'axe-core';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest';
import { ClientCluster } from '../cluster/clients/members.ts';
import { Member } from '../cluster/processes/member.ts';
import { freePorts } from '../support/free-ports.ts';
import { bySize } from '../support/run-size.ts';
import { launched } from './chromium.ts';
import { LAYOUT_FAULTS } from './layout.ts';

/**
 * The page in a real browser, at a real node from the sources. A test says what a user sees and does; that nothing else
 * happens meanwhile is looked at after each.
 */

export const ADMIN = 'admin';
export const PASSWORD = 'a Password of tests 1';
/** What members of a cluster for tests are created with. */
const CLUSTER_PASSWORD = 'changeit';
/** What members have in common, so that each takes the logins of the others. */
const TOKEN = 'a token of these tests alone';

export const SIZES = {
  phone: { width: 360, height: 740 },
  desk: { width: 1280, height: 860 },
  wall: { width: 3840, height: 2160 },
} as const;
export type Size = keyof typeof SIZES;
export type Scheme = 'light' | 'dark';
/**
 * What axe finds on a phone it finds on a desk, but for what is wider than the window, which is looked for at each
 * size.
 */
const schemesOf = (size: Size): readonly Scheme[] => bySize(SCHEMES, size === 'phone' ? [] : SCHEMES, SCHEMES);
/**
 * What a view is looked at in: one that is not too wide for a phone, and reads on a desk, does so on a wall, where a
 * picture takes twice as long.
 */
export const SIZE_NAMES: readonly Size[] = bySize<readonly Size[]>(
  ['phone', 'desk'],
  ['phone', 'desk'],
  ['phone', 'desk', 'wall'],
);
const SCHEMES: readonly Scheme[] = ['light', 'dark'];

export interface PageOptions {
  readonly size?: Size;
  readonly scheme?: Scheme;
  /** As the browser names its language. */
  readonly locale?: string;
  /** Null: nobody has logged in. */
  readonly user?: string | null;
  readonly password?: string;
}

/** What went on in a page besides what the test asks for. */
interface Watched {
  readonly page: Page;
  readonly complaints: string[];
}

/** Policies that were violated end up here. The page can't know of it: it is set before anything of it runs. */
const VIOLATIONS = `
  window.__violations = [];
  document.addEventListener('securitypolicyviolation', (event) => window.__violations.push(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample));
`;
/**
 * The clock by which pages ask again: what is due in 2 s is due in 0.2 s, so that no test waits for what a user would
 * not notice. What only goes away by itself (a notice, after 6 s) stays as long as it does, and so does what is quicker
 * or slower than any question.
 */
const HURRIED = `
  const HURRY = 10, QUICK_MS = 2000, SLOW_MS = 60000, NOTICE_MS = 6000;
  for (const name of ['setTimeout', 'setInterval']) {
    const real = window[name];
    window[name] = (work, ms, ...more) => real(work, ms >= QUICK_MS && ms <= SLOW_MS && ms !== NOTICE_MS ? ms / HURRY : ms, ...more);
  }
`;
/**
 * Resolves when the page stands in the colours of a scheme: a browser tells it of the change a while after it was asked
 * to, paints it in a later picture, and colours on their way are none that anybody reads by.
 */
const RECOLOURED = `async (scheme) => {
  const asked = matchMedia('(prefers-color-scheme: ' + scheme + ')');
  if (!asked.matches) await new Promise((done) => asked.addEventListener('change', done, { once: true }));
  for (let pictures = 0; pictures < 2; pictures += 1) await new Promise((done) => requestAnimationFrame(done));
  await Promise.allSettled(document.getAnimations().filter((one) => one instanceof CSSTransition).map(({ finished }) => finished));
}`;
/** However slow the machine is, in milliseconds: only a test that fails waits so long for a page or a node. */
export const PATIENCE_MS = 300_000;
const LOOK_MS = 50;

export class Ui {
  /** Why there is no browser; then all tests are skipped, and say so. */
  reason: string | null = null;
  browser!: Browser;
  /** Where the page is. */
  url = '';
  readonly isTls: boolean;
  #contexts: BrowserContext[] = [];
  #watched: Watched[] = [];
  #allowed: RegExp[] = [];

  constructor(isTls: boolean) {
    this.isTls = isTls;
  }

  /**
   * A page of a browser that nobody has used, logged in as `admin` unless it is said otherwise. `path` is behind `/ui`.
   */
  async open(
    path = '',
    { size = 'desk', scheme = 'light', locale = 'en-US', user = ADMIN, password }: PageOptions = {},
  ): Promise<Page> {
    const context = await this.#context(size, scheme, false, locale);
    if (user !== null) await this.#logIn(context, user, password ?? (this.isTls ? CLUSTER_PASSWORD : PASSWORD));
    const page = await context.newPage();
    await this.#watch(page);
    await page.goto(`${this.url}/ui${path}`);
    return page;
  }

  /**
   * What is wrong with a view by axe (but on a phone, of which only `npm run test:all` asks it), in light and in dark,
   * and how it is laid out, once `ready` has come (and `prepare` was done). In a browser of its own,
   * whose policy lets axe in. The colours change while it is open, as they do in the evening: a page for each, with axe
   * in it, would take as long again.
   */
  async faults(
    path: string,
    ready: string,
    { size = 'desk', user = ADMIN, password }: Omit<PageOptions, 'scheme' | 'locale'> = {},
    prepare: (page: Page) => Promise<void> = async () => {},
  ): Promise<readonly string[]> {
    const context = await this.#context(size, 'light', true);
    if (user !== null) await this.#logIn(context, user, password ?? (this.isTls ? CLUSTER_PASSWORD : PASSWORD));
    const page = await context.newPage();
    await page.goto(`${this.url}/ui${path}`);
    await page.locator(ready).first().waitFor();
    await prepare(page);
    const over = (await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    )) as number;
    const faults = over > 0 ? [`The view is wider than the window by ${over} px, which would scroll sideways.`] : [];
    faults.push(...((await page.evaluate(LAYOUT_FAULTS)) as string[]));
    if (schemesOf(size).length > 0) await page.evaluate(axe.source);
    for (const scheme of schemesOf(size)) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.evaluate(`(${RECOLOURED})('${scheme}')`);
      const found = (await page.evaluate(
        `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html.slice(0, 200) + ' ' + failureSummary)))`,
      )) as string[];
      faults.push(...found.map((fault) => `in ${scheme}: ${fault}`));
    }
    // Closed now: browsers with many pages at this size are slow.
    await closed(context);
    this.#contexts.splice(this.#contexts.indexOf(context), 1);
    return faults;
  }

  /** Messages of the console that belong to what the test does, such as requests that a node refuses. */
  allow(...messages: readonly RegExp[]): void {
    this.#allowed.push(...messages);
  }

  /** A request to the node beside the page, as `admin`. */
  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: {
        authorization: `Basic ${Buffer.from(`${ADMIN}:${PASSWORD}`).toString('base64')}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  /** That pages did nothing that nobody asked them for; then they are closed. */
  async check(): Promise<void> {
    const [watched, contexts, allowed] = [this.#watched, this.#contexts, this.#allowed];
    this.#watched = [];
    this.#contexts = [];
    this.#allowed = [];
    const complaints: string[] = [];
    try {
      for (const { page, complaints: seen } of watched) {
        const violations = (await page.evaluate('window.__violations')) as readonly string[];
        complaints.push(...seen, ...violations.map((violation) => `policy: ${violation}`));
      }
    } finally {
      await Promise.all(contexts.map(closed));
    }
    expect(complaints.filter((complaint) => !allowed.some((message) => message.test(complaint)))).toEqual([]);
  }

  async #context(size: Size, scheme: Scheme, bypassCSP: boolean, locale = 'en-US'): Promise<BrowserContext> {
    const context = await this.browser.newContext({
      viewport: SIZES[size],
      colorScheme: scheme,
      locale,
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
      ignoreHTTPSErrors: this.isTls,
      bypassCSP,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    this.#contexts.push(context);
    return context;
  }

  async #logIn(context: BrowserContext, user: string, password: string): Promise<void> {
    const answer = await context.request.post(`${this.url}/ui/session`, {
      data: { user, password },
      headers: { 'x-requested-with': 'skua' },
    });
    if (!answer.ok()) throw new Error(`${user} can't log in: ${answer.status()} ${await answer.text()}`);
  }

  async #watch(page: Page): Promise<void> {
    const complaints: string[] = [];
    const { host } = new URL(this.url);
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => complaints.push(`error: ${error.stack ?? error.message}`));
    page.on('request', (request) => {
      const { protocol, host: asked } = new URL(request.url());
      if (protocol !== 'data:' && protocol !== 'blob:' && asked !== host) complaints.push(`request: ${request.url()}`);
    });
    await page.addInitScript(VIOLATIONS);
    await page.addInitScript(HURRIED);
    this.#watched.push({ page, complaints });
  }
}

/** A single node with users on the loopback, which can be stopped and started again at its port. */
export class UiNode {
  readonly ui = new Ui(false);
  readonly #words: readonly string[];
  #folder = '';
  #member: Member | null = null;

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  get isRunning(): boolean {
    return this.#member?.isRunning === true;
  }

  /** Its data directory; one whose log lies on object storage has none. */
  get data(): string {
    return path.join(this.#folder, 'data');
  }

  async begin(): Promise<void> {
    this.#folder = await mkdtemp(path.join(tmpdir(), 'skua-ui-'));
    const [port] = await freePorts(1);
    const security = this.#words.includes('--insecure') ? [] : ['--disable-tls'];
    this.#member = new Member({
      name: 'node',
      host: '127.0.0.1',
      port: port!,
      folder: this.#words.includes('--storage') ? '' : this.data,
      words: [
        ...security,
        '--chunk-size',
        '1MiB',
        '--stream-existence-filter-size',
        '10000',
        '--log',
        path.join(this.#folder, 'log'),
        ...this.#words,
      ],
      env: { SERVER_DEFAULT_ADMIN_PASSWORD: PASSWORD },
    });
    this.ui.url = this.#member.url;
    await this.start();
  }

  async start(): Promise<void> {
    await this.#member!.start();
    await ready(this.ui.url);
  }

  stop(): Promise<void> {
    return this.#member!.stop();
  }

  async end(): Promise<void> {
    await this.#member?.stop();
    if (this.#folder !== '') await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Resolves when effects have been, which come behind a picture, and what they draw in the one after that. */
export async function pictured(page: Page): Promise<void> {
  await page.evaluate(
    '(async () => { for (let n = 0; n < 4; n += 1) await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); })()',
  );
}

/** Resolves when the node can do all that it is there for. */
async function ready(url: string): Promise<void> {
  for (const untilMs = Date.now() + PATIENCE_MS; Date.now() < untilMs; await sleep(LOOK_MS)) {
    if ((await fetch(`${url}/health/ready`).catch(() => null))?.status === 200) return;
  }
  throw new Error('The node does not become ready.');
}

let browser: ReturnType<typeof launched> | null = null;

/** One for all files that share the process, with which it ends: a start takes as long as a test. */
async function browserOfProcess(): Promise<Browser | string> {
  const found = await (browser ??= launched());
  if (typeof found === 'string' || found.isConnected()) return found;
  return (browser = launched());
}

/** Tests of the page at one node, which is there for all of them. */
export function atNode(name: string, define: (ui: Ui, node: UiNode) => void, words: readonly string[] = []): void {
  const node = new UiNode(words);
  around(name, node.ui, { begin: () => node.begin(), end: () => node.end() }, () => define(node.ui, node));
}

/** Tests of the page at the leader of a cluster of three, with TLS, users, and logins that count at all members. */
export function atCluster(name: string, define: (ui: Ui, cluster: () => ClientCluster) => void): void {
  const ui = new Ui(true);
  let cluster: ClientCluster | null = null;
  around(
    name,
    ui,
    {
      begin: async () => {
        cluster = await ClientCluster.start(true, 3, { SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: TOKEN });
        ui.url = (await cluster.leader()).url.replace('http:', 'https:');
      },
      end: async () => cluster?.stop(),
    },
    () => define(ui, () => cluster!),
  );
}

interface Server {
  begin(): Promise<void>;
  end(): Promise<void>;
}

function around(name: string, ui: Ui, server: Server, define: () => void): void {
  describe(name, () => {
    beforeAll(async () => {
      const browser = await browserOfProcess();
      if (typeof browser === 'string') {
        ui.reason = browser;
        return;
      }
      ui.browser = browser;
      await server.begin();
    });
    afterAll(async () => {
      if (ui.reason !== null) return;
      await server.end();
    });
    beforeEach((context) => {
      if (ui.reason !== null) context.skip(ui.reason);
    });
    afterEach(async () => {
      if (ui.reason === null) await ui.check();
    });
    define();
  });
}

/**
 * Closes what a test has opened. A page that polls may be within a request that the test changes on its way: what its
 * handler does from then on concerns nobody, and would be told as an error outside of any test.
 */
async function closed(context: BrowserContext): Promise<void> {
  await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })));
  await context.close();
}

/** The text that is seen at a place of the page, once it holds what is wanted. */
export async function sees(page: Page, text: string | RegExp): Promise<void> {
  await page.getByText(text).filter({ visible: true }).first().waitFor();
}

/**
 * What a page shows while a run is under way has come; fails as soon as the run is over without it, so that a test can
 * try another one.
 */
export async function caught(what: Locator, isOver: () => Promise<boolean>): Promise<void> {
  let seen = false;
  await expect
    .poll(async () => {
      const over = await isOver();
      seen = await what.first().isVisible();
      return seen || over;
    })
    .toBe(true);
  expect(seen, 'It was over before the page had shown it.').toBe(true);
}

const MINUTE_MS = 60_000;
const STEPS = 300;
const OLDER = 200;

/** From here on the node says that it has kept these lines for 300 minutes: 7 700 at first, 3 300 in the last 100. */
export async function withPast(page: Page, path: string, names: readonly string[]): Promise<void> {
  const nowMs = Date.now();
  const times = Array.from({ length: STEPS }, (_, i) => nowMs - (STEPS - i) * MINUTE_MS);
  const line = times.map((_, i) => (i < OLDER ? 7_700 : 3_300));
  await page.route(path, async (route) => {
    const response = await route.fetch();
    const real = (await response.json()) as { values: object };
    const values = Object.fromEntries([...Object.keys(real.values), ...names].map((name) => [name, line]));
    await route.fulfill({ json: { ...real, since: new Date(times[0]!).toISOString(), times, values } });
  });
}

/** A chart by its title, as the table that people get who can't see lines. */
export function chartTable(page: Page, title: string): Locator {
  return page
    .getByRole('figure')
    .filter({ has: page.getByText(title, { exact: true }) })
    .getByRole('table');
}
