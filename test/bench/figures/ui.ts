import { randomUUID } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { PAGE_BYTES_MAX } from '../../../local/ui/build.mjs';
import { packed } from '../../local/packed.ts';
import type { Packed } from '../../local/packed.ts';
import { launched } from '../../ui/chromium.ts';
import { median, row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import { startMeasured } from '../measured.ts';
import type { MeasuredServer } from '../measured.ts';

/**
 * What an open page may take of a core of the node, in percent; and the longest until its first view shows what it is
 * there for, in milliseconds.
 */
const CORE_PERCENT_MAX = 1;
const FIRST_VIEW_MS_MAX = 1_000;
/** The least that counts as something: windows of nothing differ by more. */
const PERCENT_MIN = 0.001;
/** A window holds some of the page's questions, which come every two seconds. */
const WINDOW_FACTOR = 6;
/** What comes with opening a view is over by then, in windows of other figures. */
const SETTLE_FACTOR = 1.5;
const EVENTS = 2_000;
const BATCH = 100;
const STREAMS = 20;
const ADMIN = { user: 'admin', password: 'changeit' };

/** The views that are left open, and what stands in them once they show something. */
const VIEWS: readonly (readonly [string, string, string])[] = [
  ['overview', '', '.stat-value'],
  ['metrics', '/metrics', 'main table'],
  ['streams', '/streams', 'main table tbody tr'],
  ['a stream, live', '/streams/orders-3', 'main table tbody tr'],
  ['chunk map', '/chunks', 'main canvas'],
  ['log', '/log', 'main h1'],
];

/** Hides the page from itself: browsers without a window show all their tabs. */
const HIDING = `
  let isHidden = false;
  Object.defineProperty(document, 'hidden', { get: () => isHidden });
  Object.defineProperty(document, 'visibilityState', { get: () => (isHidden ? 'hidden' : 'visible') });
  window.hide = (hides) => { isHidden = hides; document.dispatchEvent(new Event('visibilitychange')); };
`;

async function startNode({ installed }: Packed, folder: string): Promise<MeasuredServer> {
  return startMeasured([
    join(installed, 'node_modules/skua/dist/main.js'),
    'start',
    '--db',
    folder,
    '--node-port',
    '0',
    '--disable-tls',
  ]);
}

/** Some streams, so that views have something to show. */
async function fill(url: string): Promise<void> {
  for (let i = 0; i < EVENTS / BATCH; i++) {
    const events = Array.from({ length: BATCH }, (_, number) => ({
      eventId: randomUUID(),
      eventType: 'order-placed',
      data: { number, customer: 'Kim', items: [1, 2, 3] },
    }));
    const reply = await fetch(`${url}/streams/orders-${i % STREAMS}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/vnd.eventstore.events+json',
        authorization: `Basic ${btoa(`${ADMIN.user}:${ADMIN.password}`)}`,
      },
      body: JSON.stringify(events),
    });
    if (reply.status !== 201) throw new Error(`The events are answered ${reply.status}: ${await reply.text()}`);
  }
}

/** A page of a browser that has nothing of the node yet, but the session of a user. */
async function freshPage(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext({ locale: 'en-US', viewport: { width: 1_280, height: 860 } });
  await context.request.post(`${url}/ui/session`, { data: ADMIN, headers: { 'x-requested-with': 'skua' } });
  await context.addInitScript(HIDING);
  return context.newPage();
}

/**
 * Until the overview shows its numbers, and what the browser says of its own first sign of anything, in milliseconds.
 */
async function firstView(
  browser: Browser,
  url: string,
): Promise<{ readonly shownMs: number; readonly paintedMs: number }> {
  const page = await freshPage(browser, url);
  try {
    await page.addInitScript(
      `new MutationObserver((_, watcher) => { if (document.querySelector('.stat-value')) { watcher.disconnect(); window.shownMs = performance.now(); } }).observe(document, { childList: true, subtree: true });`,
    );
    await page.goto(`${url}/ui`);
    await page.locator('.stat-value').first().waitFor();
    // Told when it was painted, which may be a moment later, and behind the first paint of anything at all.
    return await page.evaluate(
      `new Promise((resolve) => { new PerformanceObserver((list, watcher) => { const [painted] = list.getEntriesByName('first-contentful-paint'); if (painted === undefined) return; watcher.disconnect(); resolve({ shownMs: window.shownMs, paintedMs: painted.startTime }); }).observe({ type: 'paint', buffered: true }); })`,
    );
  } finally {
    await page.context().close();
  }
}

/** Percent of a core that the node takes, and how often the page asks it, for a while. */
async function watched(
  node: MeasuredServer,
  page: Page,
  windowMs: number,
): Promise<{ readonly percent: number; readonly requests: number }> {
  let requests = 0;
  const count = () => {
    requests++;
  };
  page.on('request', count);
  const [before, begin] = [await node.usage(), performance.now()];
  await sleep(windowMs);
  const [after, end] = [await node.usage(), performance.now()];
  page.off('request', count);
  return { percent: (100 * (after.cpuMs - before.cpuMs)) / (end - begin), requests };
}

async function costs(
  browser: Browser,
  node: MeasuredServer,
  url: string,
  { windows, windowMs, say }: Settings,
): Promise<Row[]> {
  const page = await freshPage(browser, url);
  const states = ['no page', ...VIEWS.map(([name]) => name), 'overview, hidden'];
  const measured = new Map(states.map((name) => [name, [] as { percent: number; requests: number }[]]));
  for (let window = 0; window < windows; window++) {
    for (const name of states) {
      const view = VIEWS.find(([shown]) => shown === name) ?? VIEWS[0]!;
      if (name === 'no page') await page.goto('about:blank');
      else {
        await page.goto(`${url}/ui${view[1]}`);
        await page.locator(view[2]).first().waitFor();
        if (name === 'overview, hidden') await page.evaluate('hide(true)');
      }
      await sleep(SETTLE_FACTOR * windowMs);
      measured.get(name)!.push(await watched(node, page, WINDOW_FACTOR * windowMs));
    }
    say(`  window ${window + 1} of ${windows}`);
  }
  await page.context().close();
  const none = measured.get('no page')!.map(({ percent }) => percent);
  return states.slice(1).map((name) => {
    const seen = measured.get(name)!;
    const added = seen.map(({ percent }, i) => Math.max(PERCENT_MIN, percent - none[i]!));
    return row(
      `added by a page open on: ${name}`,
      '% of a core',
      { limit: [CORE_PERCENT_MAX], ours: added },
      { kind: 'below', value: 1 },
      [
        `${median(seen.map(({ percent }) => percent)).toFixed(2)} % in all, ${median(none).toFixed(2)} % without a page; ${median(seen.map(({ requests }) => requests))} requests in ${(WINDOW_FACTOR * windowMs) / 1_000} s`,
      ],
    );
  });
}

/** Of all files of the page as the package has them. */
async function sizeRow({ installed }: Packed): Promise<Row> {
  const folder = join(installed, 'node_modules/skua/dist/ui');
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.gz')).sort();
  const sizes = await Promise.all(
    names.map(async (name) => ({
      name: name.slice(0, -'.gz'.length),
      gzip: (await stat(join(folder, name))).size,
      brotli: (await stat(join(folder, name.replace(/gz$/, 'br')))).size,
    })),
  );
  return row(
    'files of the page, compressed by gzip',
    'bytes',
    { limit: [PAGE_BYTES_MAX], ours: [sizes.reduce((sum, { gzip }) => sum + gzip, 0)] },
    { kind: 'below', value: 1 },
    sizes.map(
      ({ name, gzip, brotli }) =>
        `${name.replace(/^assets\//, '').replace(/-[\w-]{8}(?=\.)/, '')}: ${gzip} bytes by gzip, ${brotli} by brotli`,
    ),
  );
}

export const ui: Figure = {
  name: 'ui',
  isLong: true,
  how: `The packed package, installed, with users and ${EVENTS} events, and Chromium as an administrator. Processor time of the node, all its threads together, in windows of nine seconds without a page, with a page open on one view after the other, and with one that is hidden; what counts is the difference to the window without a page of the same round, from 0.001 on. A page asks every two seconds, and one that is hidden not at all. The first view: from the navigation of a browser that has no file of the page to the numbers of the overview. The size is that of every file of the page.`,
  async run(settings) {
    const all = await packed();
    try {
      const rows = [await sizeRow(all)];
      const browser = await launched();
      if (typeof browser === 'string') {
        settings.say(`  ${browser}`);
        return rows;
      }
      const node = await startNode(all, join(settings.folder, 'ui'));
      try {
        const url = `http://127.0.0.1:${node.port}`;
        await fill(url);
        await firstView(browser, url);
        const views = [];
        for (let i = 0; i < settings.windows; i++) views.push(await firstView(browser, url));
        rows.push(
          row(
            'first view, nothing cached',
            'ms',
            { limit: [FIRST_VIEW_MS_MAX], ours: views.map(({ shownMs }) => shownMs) },
            { kind: 'below', value: 1 },
            [`something is seen after ${Math.round(median(views.map(({ paintedMs }) => paintedMs)))} ms`],
          ),
        );
        rows.push(...(await costs(browser, node, url, settings)));
      } finally {
        await browser.close();
        await node.stop();
      }
      return rows;
    } finally {
      await all.remove();
    }
  },
};
