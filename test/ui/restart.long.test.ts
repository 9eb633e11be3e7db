import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ADMIN, atNode, sees } from './kit.ts';
import type { Ui } from './kit.ts';

const GONE = 'The node is not responding; retrying.';
/** Whether nothing lies over the alert of the dialog. */
const SEEN_ALERT = `(() => {
  const alert = document.querySelector('dialog[open] [role=alert]');
  const { x, y, width, height } = alert.getBoundingClientRect();
  return alert.contains(document.elementFromPoint(x + width / 2, y + height / 2));
})()`;

const append = (ui: Ui, stream: string, type: string) =>
  ui.ask('POST', `/streams/${stream}`, [{ eventId: randomUUID(), eventType: type, data: {} }], {
    'content-type': 'application/vnd.eventstore.events+json',
  });

interface Seen {
  readonly path: string;
  /** What is there before, and while the node is away. */
  before(page: Page): Promise<void>;
  /** What only a node can have told that is back. */
  after(page: Page): Promise<void>;
}

/** The times of the lines of the log that are shown; of the newest one while the node was away. */
const latest = async (page: Page) =>
  (await page.getByRole('main').innerText())
    .match(/\d\d:\d\d:\d\d\.\d{3}/g)!
    .toSorted()
    .at(-1)!;
let lastLine = '';

/** Views, and what happens in them once something has happened at the node. */
const VIEWS: readonly Seen[] = [
  {
    path: '/streams/orders',
    before: (page) => page.getByRole('table').getByText('before').first().waitFor(),
    after: (page) => page.getByRole('table').getByText('after').first().waitFor(),
  },
  {
    path: '/all',
    before: (page) => page.getByRole('table').getByText('before').first().waitFor(),
    after: (page) => page.getByRole('table').getByText('after').first().waitFor(),
  },
  {
    path: '/streams',
    before: (page) => page.getByText('orders', { exact: true }).first().waitFor(),
    after: (page) => page.getByText('new-ones', { exact: true }).first().waitFor(),
  },
  {
    path: '/users',
    before: (page) => page.getByRole('cell', { name: 'admin you' }).waitFor(),
    after: (page) => page.getByRole('cell', { name: 'later', exact: true }).waitFor(),
  },
  {
    path: '/log',
    before: async (page) => {
      await page.getByText('listening').first().waitFor();
      lastLine = await latest(page);
    },
    after: (page) => expect.poll(() => latest(page)).not.toBe(lastLine),
  },
];

atNode('a node that is started again', (ui, node) => {
  test('views that are open go on by themselves, live ones with what was written meanwhile, and nobody has to log in again', async () => {
    ui.allow(/ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET|ERR_INCOMPLETE|ERR_NETWORK|status of 503/);
    await append(ui, 'orders', 'before');
    // It is there before the node goes, so that an answer that comes right behind the start is no "not found".
    await append(ui, 'orders', 'before');
    const pages = await Promise.all(VIEWS.map(({ path }) => ui.open(path)));
    await Promise.all(VIEWS.map(({ before }, i) => before(pages[i]!)));
    // One of them asks for something only now: it is asked for again without a hand.
    const late = await ui.open('/streams/orders/0');
    await late.locator('.json').first().waitFor();
    await node.stop();
    await Promise.all(pages.map((page) => sees(page, GONE)));
    await late.evaluate(
      `history.pushState(null, '', '/ui/streams/orders/1'); dispatchEvent(new PopStateEvent('popstate'))`,
    );
    await sees(late, "The event can't be shown");
    // What was known stays to be seen.
    await Promise.all(VIEWS.map(({ before }, i) => before(pages[i]!)));

    await node.start();
    await append(ui, 'orders', 'after');
    await append(ui, 'new-ones', 'after');
    await ui.ask('POST', '/users', { loginName: 'later', fullName: 'Later', groups: [], password: 'a Password 4' });
    await Promise.all(pages.map((page) => page.getByText(GONE).waitFor({ state: 'hidden' })));
    await Promise.all(VIEWS.map(({ after }, i) => after(pages[i]!)));
    await late.getByRole('heading', { name: 'Event 1' }).waitFor();
    await late.locator('.json').first().waitFor();
    for (const page of pages) {
      expect(await page.getByRole('dialog', { name: 'Log in' }).count()).toBe(0);
      expect(await (await page.request.get(`${ui.url}/ui/session`)).json()).toMatchObject({ user: ADMIN });
    }
    // And on.
    await append(ui, 'orders', 'much-later');
    await pages[0]!.getByRole('table').getByText('much-later').first().waitFor();
  });

  test('what is done while the node is away is told, and can be done once it is back', async () => {
    ui.allow(/ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET|ERR_INCOMPLETE|ERR_NETWORK|status of 503/);
    const page = await ui.open('/users');
    await page.getByRole('cell', { name: 'admin you' }).waitFor();
    await page.getByRole('button', { name: 'New user' }).click();
    const dialog = page.getByRole('dialog', { name: 'New user' });
    await page.setViewportSize({ width: 1_280, height: 640 });
    await dialog.getByLabel('User name').fill('patient');
    await dialog.getByLabel('Password', { exact: true }).fill('a Password 5');
    await dialog.getByLabel('Repeat password').fill('a Password 5');
    await node.stop();
    await dialog.getByRole('button', { name: 'Create user' }).click();
    await dialog.getByRole('alert').waitFor();
    // In sight, although the dialog is longer than the window.
    expect(await page.evaluate(SEEN_ALERT)).toBe(true);
    await node.start();
    await page.getByText(GONE).waitFor({ state: 'hidden' });
    // What was typed is still there, and no word that the node is away.
    await dialog.getByText(/not responding/).waitFor({ state: 'hidden' });
    await dialog.getByRole('button', { name: 'Create user' }).click();
    await page.getByRole('cell', { name: 'patient', exact: true }).waitFor();
  });
});
