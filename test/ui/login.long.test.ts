import type { Route } from 'playwright-core';
import { expect, test } from 'vitest';
import { ADMIN, atNode, pictured, SIZE_NAMES, PASSWORD, sees } from './kit.ts';

atNode('logging in', (ui) => {
  test('who is nobody sees the login alone, and nothing before it; a wrong password is told; the right one shows the view, and logging out hides it', async () => {
    ui.allow(/status of 401/);
    const page = await ui.open('/options', { user: null });
    await page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
    expect(await page.getByRole('navigation').count()).toBe(0);
    const dialog = page.getByRole('main');
    await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('user');

    await dialog.getByRole('button', { name: 'Log in' }).click();
    expect(await dialog.getByText('This field is required.').count()).toBe(2);
    await page.keyboard.type(ADMIN);
    await dialog.getByLabel('Password').fill('wrong');
    await page.keyboard.press('Enter');
    await dialog.getByText('User name or password is wrong.').waitFor();
    await dialog.getByLabel('Password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Options' }).waitFor();

    await page.getByRole('button', { name: 'admin, Administrator' }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
    expect((await page.request.get(`${ui.url}/info/options`)).status()).toBe(401);
  });

  test('nothing is shown while it is not known whether a login is needed', async () => {
    const page = await ui.open('/options');
    await page.getByRole('heading', { level: 1, name: 'Options' }).waitFor();
    let answer = () => {};
    const held = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/ui/session', async (route) => {
      await held;
      await route.continue();
    });
    const asked = page.waitForRequest('**/ui/session');
    await page.reload();
    await asked;
    await pictured(page);
    expect(await page.locator('main').innerText()).toBe('Loading');
    expect(await page.getByRole('navigation').count()).toBe(0);
    answer();
    await page.getByRole('heading', { level: 1, name: 'Options' }).waitFor();
  });

  test('a session that has ended asks for a login, and goes on with what it was doing', async () => {
    ui.allow(/status of 401/);
    const page = await ui.open('/users');
    await page.getByRole('cell', { name: 'admin you' }).waitFor();
    await page.getByRole('button', { name: 'New user' }).click();
    const dialog = page.getByRole('dialog', { name: 'New user' });
    await dialog.getByLabel('User name').fill('late');
    await dialog.getByLabel('Password', { exact: true }).fill('a Password 1');
    await dialog.getByLabel('Repeat password').fill('a Password 1');
    // What the page asks by itself waits, so that this request is the first to be refused.
    const held: Route[] = [];
    await page.route('**/*', (route) => (route.request().method() === 'GET' ? held.push(route) : route.continue()));
    await page.context().clearCookies();
    await dialog.getByRole('button', { name: 'Create user' }).click();
    const login = page.getByRole('dialog', { name: 'Log in' });
    await login.waitFor();
    // One that was caught just as the route went has gone on by itself.
    await page.unroute('**/*');
    for (const route of held) await route.continue().catch(() => {});
    await login.getByLabel('User name').fill(ADMIN);
    await login.getByLabel('Password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('cell', { name: 'late', exact: true }).waitFor();
  });

  test('whose passwords were wrong too often is told until when to wait, which does not go stale', async () => {
    ui.allow(/status of 4(01|29)/);
    const page = await ui.open('/options', { user: null });
    const dialog = page.getByRole('main');
    await page.route('**/ui/session', (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({ status: 429, headers: { 'retry-after': '40' }, json: { code: 'too_many_failures' } })
        : route.fallback(),
    );
    await dialog.getByLabel('User name').fill(ADMIN);
    await dialog.getByLabel('Password').fill('wrong');
    const before = Date.now();
    await page.keyboard.press('Enter');
    const text = await dialog.getByText('Too many failed attempts').innerText();
    const [, until] = /^Too many failed attempts\. Try again after (\d+:\d\d:\d\d [AP]M)\.$/.exec(
      text.replaceAll('\u202f', ' '),
    )!;
    const day = new Date(before).toISOString().slice(0, 10);
    const waitMs = (Date.parse(`${day} ${until} UTC`) - before + 86_400_000) % 86_400_000;
    expect(waitMs).toBeGreaterThan(38_000);
    expect(waitMs).toBeLessThan(40_000 + Date.now() - before + 1_000);
  });

  test('a user without the role is told which one is lacking', async () => {
    await ui.ask('POST', '/users', {
      loginName: 'reader',
      fullName: 'A Reader',
      groups: ['readers'],
      password: 'a Password 2',
    });
    const page = await ui.open('/users', { user: 'reader', password: 'a Password 2' });
    await sees(page, "You don't have permission");
    await sees(page, /for members of \$admins.*logged in as reader, a member of readers/);
    await page.getByRole('navigation').getByRole('link', { name: 'Options , locked' }).waitFor();
  });

  test.each(SIZE_NAMES)('nothing is wrong with it on a %s', async (size) => {
    expect(
      await ui.faults('/options', 'main button', { user: null, size }, async (page) => {
        await page.getByRole('main').getByRole('button', { name: 'Log in' }).click();
        await page.getByText('This field is required.').first().waitFor();
      }),
    ).toEqual([]);
  });
});

atNode(
  'a node without users',
  (ui) => {
    test('shows everything to everybody, and says that it does', async () => {
      const page = await ui.open('/options', { user: null });
      await page.getByRole('heading', { level: 1, name: 'Options' }).waitFor();
      await sees(page, /No security/);
      // On a phone by its sign alone, beside which an address has room.
      await page.setViewportSize({ width: 390, height: 844 });
      await expect.poll(async () => (await page.locator('.header .badge').boundingBox())!.width).toBeLessThan(40);
      await page.setViewportSize({ width: 1_280, height: 800 });
      await page.getByRole('navigation').getByRole('link', { name: 'Users' }).click();
      await sees(page, 'This node runs without security');
    });
  },
  ['--insecure'],
);
