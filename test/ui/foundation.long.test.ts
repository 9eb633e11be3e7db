import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { atNode, SIZE_NAMES, sees } from './kit.ts';

const title = (page: Page, text: string) => page.getByRole('heading', { level: 1, name: text }).waitFor();
const focused = (page: Page) =>
  page.evaluate(
    'document.activeElement.tagName + " " + (document.activeElement.getAttribute("aria-label") ?? document.activeElement.id)',
  ) as Promise<string>;

atNode('the frame of the page', (ui, node) => {
  test.each(SIZE_NAMES)('nothing is wrong with it on a %s', async (size) => {
    expect(await ui.faults('/nothing-here', 'main h1', { size })).toEqual([]);
  });

  test('its colours are those that the system asks for, also when that changes', async () => {
    const page = await ui.open('/options', { scheme: 'dark' });
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    await title(page, 'Options');
    await expect.poll(background).toBe('rgb(13, 18, 22)');
    await page.emulateMedia({ colorScheme: 'light' });
    await expect.poll(background).toBe('rgb(246, 247, 248)');
  });

  test('the way between views: links, back and forward, titles, and where the focus is', async () => {
    const page = await ui.open('/options');
    await title(page, 'Options');
    expect(await page.title()).toBe('Options · Skua');
    await page.getByRole('navigation').getByRole('link', { name: 'Users' }).click();
    await title(page, 'Users');
    expect([await page.title(), new URL(page.url()).pathname, await focused(page)]).toEqual([
      'Users · Skua',
      '/ui/users',
      'MAIN main',
    ]);
    expect(await page.getByRole('navigation').getByRole('link', { name: 'Users' }).getAttribute('aria-current')).toBe(
      'page',
    );
    await page.goBack();
    await title(page, 'Options');
    await page.goForward();
    await title(page, 'Users');
    await page.goto(`${ui.url}/ui/no/such/view`);
    await sees(page, 'Page not found');
  });

  test.each([
    ['/nothing-here', 'Page not found'],
    ['/webhooks/nobody', 'There is no such connector'],
    ['/subscriptions/nobody/nowhere', 'There is no such group'],
    ['/streams/nobody/first', 'This is not an event number'],
    ['/streams/nobody', 'nobody'],
    ['/streams/nobody/0', 'Event 0'],
  ])('what is not there has a heading as well, at %s', async (path, heading) => {
    ui.allow(/status of 404/);
    // Only once the answer is there, before which the view has the heading of what is looked for.
    const page = await ui.open(path);
    await page.locator('.empty-title').waitFor();
    await title(page, heading);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
  });

  test('the keyboard alone goes anywhere: the skip link, the palette, the menu of colours', async () => {
    const page = await ui.open('/options');
    await title(page, 'Options');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to content');
    await page.keyboard.press('Enter');
    expect(await focused(page)).toBe('MAIN main');

    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').waitFor();
    await page.keyboard.type('metr');
    await page.keyboard.press('Enter');
    await title(page, 'Metrics');

    await page.getByRole('button', { name: /^Colours/ }).press('Enter');
    await page.getByRole('menu').waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
    await page.reload();
    await title(page, 'Metrics');
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(13, 18, 22)');
  });

  test('a browser whose language is none, as in containers, shows every view', async () => {
    const page = await ui.open('', { locale: 'en-US@posix' });
    await title(page, 'Overview');
    await sees(page, 'Append latency, p99');
    await page.goto(`${ui.url}/ui/metrics`);
    await sees(page, 'All metrics');
    expect(await page.getByText('This view failed').count()).toBe(0);
  });

  test('on a phone the menu opens over the view, and is gone once a view was chosen', async () => {
    const page = await ui.open('/options', { size: 'phone' });
    await title(page, 'Options');
    const link = page.getByRole('navigation').getByRole('link', { name: 'Users' });
    expect(await link.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await link.click();
    await title(page, 'Users');
    await link.waitFor({ state: 'hidden' });
  });

  test('a node that goes away is told of, and when it is back the page goes on by itself', async () => {
    ui.allow(/ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET|status of 503/);
    const page = await ui.open('/metrics');
    await sees(page, 'All metrics');
    await node.stop();
    await sees(page, 'The node is not responding; retrying.');
    // What was known stays.
    await sees(page, 'All metrics');
    const answered = page.waitForResponse(
      (response) => response.url().endsWith('/metrics') && response.status() === 200,
    );
    await node.start();
    await page.getByText('The node is not responding; retrying.').waitFor({ state: 'hidden' });
    await answered;
  });

  test('all of it is small: what the first view loads has less than 150 kB', async () => {
    const page = await ui.open('/options');
    await title(page, 'Options');
    const bytes = (await page.evaluate(
      'performance.getEntries().filter(({ entryType, name }) => entryType === "navigation" || (entryType === "resource" && name.includes("/ui/"))).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)',
    )) as number;
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(150_000);
  });
});
