import { expect, test } from 'vitest';
import { atNode } from './kit.ts';
import { filler } from './streams-filler.ts';

const PHONE = { width: 390, height: 844 };
const STREAM = 'customer-subscriptions-eu-central-1234567';
const TYPES = ['OrderPaymentAuthorisationRequested', 'customer-subscription-renewal-reminder-sent'];
/** Rows beyond which a table draws only those in sight, all of them as high. */
const LONG_ROWS = 160;
const LONG = 'customer-account-ledger-of-a-very-long-winded-organisation'.padEnd(200, 'x');
const LONG_GROUP = 'group-of-many-words'.padEnd(180, 'z');

/** What is wider than its place, and cut there. */
const CUT = `[...document.querySelectorAll('main :is(.stat, .stat *, .table-scroller, td, td *)')]
  .filter((one) => one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible' && !one.matches('.hidden-visually'))
  .map((one) => one.className + ': ' + one.textContent.slice(0, 60))`;

/** Tables that are wider than what they scroll in. */
const WIDER = `[...document.querySelectorAll('.table-scroller')].filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.querySelector('table').getAttribute('aria-label'))`;

/** What a dialog has more of than its width has room for. */
const WIDE_DIALOG = `[...document.querySelectorAll('dialog[open] :is(.dialog-head, .dialog-body)')]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.className)`;

/** Of each item of a menu: whether all of it is in sight, and in one line. */
const MENU_ITEMS = `[...document.querySelectorAll('[role=menu] button')].map((item) => {
  const { left, right, top, bottom, height } = item.getBoundingClientRect();
  const isSeen = (x, y) => item.contains(document.elementFromPoint(x, y));
  return { isWhole: isSeen(left + 8, top + 8) && isSeen(right - 8, bottom - 8), isOneLine: height < 40 };
})`;

const LINE_ABOVE_BUTTONS = `getComputedStyle(document.querySelector('dialog[open] .form-buttons'), '::before').opacity`;

atNode('a window as wide as a phone', (ui) => {
  test('tables, event types and tiles are whole', async () => {
    const { append } = filler(ui);
    for (const type of TYPES) await append(STREAM, [{ n: 1 }], { type });
    const script = Buffer.from('function route() { return null }').toString('base64');
    for (const id of ['github-repository-events-production', 'shopify']) {
      await ui.ask('POST', `/connectors/${id}`, {
        settings: { instanceTypeName: 'webhook-source', routingScript: script },
      });
      await ui.ask('POST', `/connectors/${id}/start`);
    }
    await fetch(`${ui.url}/webhook/shopify`, { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } });
    const page = await ui.open('/options');
    await page.setViewportSize(PHONE);
    for (const [path, ready] of [
      ['', '.stat'],
      ['/webhooks', 'tbody tr'],
      ['/webhooks/shopify', '.stat'],
      ['/all', 'tbody tr'],
      [`/streams/${STREAM}`, 'tbody tr'],
      ['/streams', 'tbody tr'],
      ['/chunks', '.stat'],
    ] as const) {
      await page.goto(`${ui.url}/ui${path}`);
      await page.locator(ready).first().waitFor();
      expect([path, await page.evaluate(CUT)]).toEqual([path, []]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
    }
    // What lists are ordered by, what is to be looked after, and what a line of the log is about.
    for (const [path, seen] of [
      ['/streams', page.getByRole('columnheader', { name: 'Written' })],
      ['/webhooks', page.getByRole('cell').getByText('1 refused')],
      ['/log', page.locator('.log-fields').filter({ hasText: '=' }).first()],
    ] as const) {
      await page.goto(`${ui.url}/ui${path}`);
      await seen.waitFor();
    }
    // The stream stands there, too, below the type.
    await page.goto(`${ui.url}/ui/all`);
    for (const type of TYPES) await page.getByRole('cell', { name: new RegExp(`^${type}\\s*${STREAM}`) }).waitFor();
  });

  test('long names give way: no column leaves the window, and short names are whole', async () => {
    const { append, createUser } = filler(ui);
    await append(LONG, [{ n: 1 }], { type: 'a-type'.padEnd(180, 'y') });
    await ui.ask('PUT', `/subscriptions/${LONG}/${LONG_GROUP}`, {});
    await ui.ask('PUT', `/subscriptions/${STREAM}/builders`, {});
    await createUser('someone.with.a.long.name@organisation.example.org', ['a-group-with-a-long-name', '$ops']);
    await createUser('auditor', []);
    const page = await ui.open('/options');
    for (const width of [PHONE.width, 1_280]) {
      await page.setViewportSize({ width, height: PHONE.height });
      for (const path of ['/subscriptions', '/users', '/streams', `/streams/${LONG}`, '/all']) {
        await page.goto(`${ui.url}/ui${path}`);
        await page.locator('tbody tr').first().waitFor();
        expect([width, path, await page.evaluate(WIDER)]).toEqual([width, path, []]);
      }
    }
    // One line each: a word that is broken takes two.
    await page.setViewportSize(PHONE);
    for (const [path, name] of [
      ['/users', 'admin'],
      ['/users', 'auditor'],
      ['/subscriptions', 'builders'],
    ] as const) {
      await page.goto(`${ui.url}/ui${path}`);
      const box = await page.locator('td').getByText(name, { exact: true }).filter({ visible: true }).boundingBox();
      expect([name, box!.height < 30]).toEqual([name, true]);
    }
  });

  test('dialogs about long names are as wide as they have room, and their cross stays in sight', async () => {
    await ui.ask('PUT', `/subscriptions/${LONG}/${LONG_GROUP}`, {});
    const page = await ui.open(`/subscriptions/${LONG}/${LONG_GROUP}`);
    await page.setViewportSize(PHONE);
    const dialog = page.getByRole('dialog');
    for (const open of [
      () => page.getByRole('button', { name: 'Settings' }).click(),
      async () => {
        await page.locator('main .menu button').first().click();
        await page.getByRole('menuitem', { name: 'Delete' }).click();
      },
    ]) {
      await open();
      const cross = await dialog.getByRole('button', { name: 'Close' }).boundingBox();
      expect(cross!.x).toBeGreaterThan(0);
      expect(cross!.x + cross!.width).toBeLessThan(PHONE.width);
      expect(await page.evaluate(WIDE_DIALOG)).toEqual([]);
      // A line above the buttons tells that something lies behind them; at the end there is none.
      const body = page.locator('dialog[open] .dialog-body');
      const isLong = await body.evaluate(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight);
      await expect.poll(() => page.evaluate(LINE_ABOVE_BUTTONS)).toBe(isLong ? '1' : '0');
      await body.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      await expect.poll(() => page.evaluate(LINE_ABOVE_BUTTONS)).toBe('0');
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
    }
  });

  test('menus open within the window, in front of what would cut them', async () => {
    const { append, createUser } = filler(ui);
    await append(LONG, [{ n: 1 }]);
    await createUser('zoe', []);
    const page = await ui.open(`/streams/${LONG}`);
    for (const width of [PHONE.width, 1_280]) {
      await page.setViewportSize({ width, height: PHONE.height });
      for (const [path, name] of [
        [`/streams/${LONG}`, 'More for this stream'],
        ['/users', 'Actions for zoe'],
        ['/users', /^Colours/],
      ] as const) {
        await page.goto(`${ui.url}/ui${path}`);
        await page.getByRole('button', { name }).click();
        await page.getByRole('menu').waitFor();
        const items = (await page.evaluate(MENU_ITEMS)) as unknown[];
        expect([width, name, items]).toEqual([width, name, items.map(() => ({ isWhole: true, isOneLine: true }))]);
      }
    }
  });

  test('of each time it says how long ago it was, and when', async () => {
    const { append } = filler(ui);
    await append('timed', [{ n: 1 }]);
    const page = await ui.open('/streams/timed');
    const time = page.getByRole('cell').locator('time').first();
    await time.waitFor();
    const at = new Date((await time.getAttribute('datetime'))!);
    const clock = at.toISOString().slice(14, 19);
    expect(await time.innerText()).toMatch(
      new RegExp(`(ago|just now)\\s+\\w{3} ${at.getUTCDate()}, \\d+:${clock} [AP]M$`),
    );
  });

  test('a stream that grows while it is looked at has rows of one height', async () => {
    const { append } = filler(ui);
    await append('growing', [{ n: 0 }]);
    const page = await ui.open('/all');
    await page.setViewportSize(PHONE);
    await page.getByRole('table').waitFor();
    for (let sent = 0; sent < LONG_ROWS; sent += LONG_ROWS / 8) {
      await append(
        'growing',
        Array.from({ length: LONG_ROWS / 8 }, (_, n) => ({ n })),
        { type: TYPES[0]! },
      );
      await expect
        .poll(async () => Number(await page.getByRole('table').getAttribute('aria-rowcount')))
        .toBeGreaterThan(sent + LONG_ROWS / 8);
    }
    await page.locator('.table-scroller.virtual').waitFor();
    const heights = (await page.evaluate(
      `[...document.querySelectorAll('.virtual tbody tr:not(.spacer)')].map((row) => row.getBoundingClientRect().height)`,
    )) as number[];
    expect([...new Set(heights)]).toEqual([36]);
  });
});
