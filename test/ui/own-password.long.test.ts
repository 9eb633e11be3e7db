import { expect, test } from 'vitest';
import { atNode, sees } from './kit.ts';

const OPS = 'ops';
const DEFAULT = 'changeit';
const CHOSEN = 'a Password of ops 1';

atNode('the own password', (ui) => {
  test('is changed by who knows the present one; then all sessions of the user end, and nothing is said of default passwords any more', async () => {
    ui.allow(/status of 401/);
    const page = await ui.open('', { user: OPS, password: DEFAULT });
    const elsewhere = await ui.open('', { user: OPS, password: DEFAULT });
    await sees(page, /ops has the default password/);

    await page.getByRole('button', { name: 'ops, Operator' }).click();
    await page.getByRole('menuitem', { name: 'Change password' }).click();
    const dialog = page.getByRole('dialog', { name: 'Change password' });
    const change = dialog.getByRole('button', { name: 'Change password' });
    await change.click();
    expect(await dialog.getByText('This field is required.').count()).toBe(3);
    await dialog.getByLabel('Current password').fill('another one');
    await dialog.getByLabel('New password', { exact: true }).fill(CHOSEN);
    await dialog.getByLabel('Repeat password').fill('something else');
    await change.click();
    await dialog.getByText('The passwords do not match.').waitFor();
    await dialog.getByLabel('Repeat password').fill(CHOSEN);
    await change.click();
    // Nobody is asked for a login by it, and the session goes on.
    await dialog.getByText('The current password is wrong.').waitFor();
    expect(await page.getByRole('dialog', { name: 'Log in' }).count()).toBe(0);
    await dialog.getByLabel('Current password').fill(DEFAULT);
    await change.click();

    await page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
    const login = page.getByRole('main');
    expect((await page.request.get(`${ui.url}/info/options`)).status()).toBe(401);
    await elsewhere.getByRole('dialog', { name: 'Log in' }).waitFor();
    await login.getByLabel('User name').fill(OPS);
    await login.getByLabel('Password').fill(DEFAULT);
    await page.keyboard.press('Enter');
    await login.getByText('User name or password is wrong.').waitFor();
    await login.getByLabel('Password').fill(CHOSEN);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'ops, Operator' }).waitFor();
    await expect.poll(() => page.getByText(/has the default password/).count()).toBe(0);
  });

  test('the dialog has no faults', async () => {
    const prepare = async (page: Parameters<NonNullable<Parameters<typeof ui.faults>[3]>>[0]) => {
      await page.getByRole('button', { name: 'admin, Administrator' }).click();
      await page.getByRole('menuitem', { name: 'Change password' }).click();
      await page.getByRole('dialog', { name: 'Change password' }).waitFor();
    };
    for (const size of ['phone', 'desk'] as const) expect(await ui.faults('', 'h1', { size }, prepare)).toEqual([]);
  });
});
