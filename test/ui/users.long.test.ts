import { expect, test } from 'vitest';
import { atNode, SIZE_NAMES, sees } from './kit.ts';

atNode('users', (ui) => {
  const user = async (login: string) =>
    ((await (await ui.ask('GET', `/users/${login}`)).json()) as { data: Record<string, unknown> }).data;

  test('a list that can no longer be read says that it may be out of date, and why', async () => {
    ui.allow(/status of 503/);
    const page = await ui.open('/users');
    await page.getByRole('cell', { name: 'admin you' }).waitFor();
    await page.route('**/users', (route) =>
      route.fulfill({ status: 503, json: { code: 'storage_unreachable', detail: 'The disk is away' } }),
    );
    await sees(page, 'The users may be out of date');
    await sees(page, 'The disk is away.');
    await page.getByRole('cell', { name: 'admin you' }).waitFor();
  });

  test('the whole life of one: created, changed, disabled, enabled, given another password, deleted', async () => {
    ui.allow(/status of 409/);
    const page = await ui.open('/users');
    const act = async (what: string) => {
      await page.getByRole('button', { name: 'Actions for anna' }).click();
      await page.getByRole('menuitem', { name: what, exact: true }).click();
    };
    await page.getByRole('button', { name: 'New user' }).click();
    const made = page.getByRole('dialog', { name: 'New user' });
    await made.getByLabel('User name').fill('admin');
    await made.getByLabel('Password', { exact: true }).fill('one Password 1');
    await made.getByLabel('Repeat password').fill('another');
    await made.getByRole('button', { name: 'Create user' }).click();
    await made.getByText('The passwords do not match.').waitFor();
    await made.getByLabel('Repeat password').fill('one Password 1');
    await made.getByRole('button', { name: 'Create user' }).click();
    // What the node refuses stands at the field.
    await expect.poll(() => made.locator('.field.wrong label').allInnerTexts()).toEqual(['User name']);
    await made.getByLabel('User name').fill('anna');
    await made.getByLabel('Full name').fill('Anna <b>B</b>');
    await made.getByRole('switch', { name: '$ops' }).check();
    await made.getByLabel('Other groups').fill('team-a, team-b');
    await made.getByRole('button', { name: 'Create user' }).click();
    await page.getByRole('row', { name: /anna.*Anna <b>B<\/b>.*\$ops.*team-a.*team-b/ }).waitFor();
    expect(await user('anna')).toMatchObject({
      fullName: 'Anna <b>B</b>',
      groups: ['$ops', 'team-a', 'team-b'],
      disabled: false,
    });

    await act('Edit');
    const edited = page.getByRole('dialog', { name: 'Edit anna' });
    expect(await edited.getByRole('switch', { name: '$ops' }).isChecked()).toBe(true);
    await edited.getByRole('switch', { name: '$ops' }).uncheck();
    await edited.getByLabel('Other groups').fill('team-a');
    await edited.getByRole('button', { name: 'Save' }).click();
    await edited.waitFor({ state: 'hidden' });
    expect(await user('anna')).toMatchObject({ fullName: 'Anna <b>B</b>', groups: ['team-a'] });

    await act('Disable');
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('row', { name: /anna.*Disabled/ }).waitFor();
    expect(await user('anna')).toMatchObject({ disabled: true });
    await act('Enable');
    await sees(page, 'anna may log in again.');
    expect(await user('anna')).toMatchObject({ disabled: false });

    await act('Reset password');
    const reset = page.getByRole('dialog', { name: 'Reset password' });
    await reset.getByRole('button', { name: 'Generate one' }).click();
    const password = await reset.getByLabel('New password', { exact: true }).inputValue();
    expect(password).toMatch(/^[A-Za-z2-9]{20}$/);
    await reset.getByRole('button', { name: 'Set password' }).click();
    await reset.waitFor({ state: 'hidden' });
    const own = `Basic ${Buffer.from(`anna:${password}`).toString('base64')}`;
    expect((await ui.ask('GET', '/users/anna', undefined, { authorization: own })).status).toBe(200);

    await act('Delete');
    const deleted = page.getByRole('dialog', { name: 'Delete user' });
    await deleted.getByLabel('Type this name to confirm').fill('ann');
    await deleted.getByRole('button', { name: 'Delete user' }).click();
    await deleted.getByText('This does not match the name.').waitFor();
    await deleted.getByLabel('Type this name to confirm').fill('anna');
    await deleted.getByRole('button', { name: 'Delete user' }).click();
    await page.getByRole('row', { name: /anna/ }).waitFor({ state: 'detached' });
    expect((await ui.ask('GET', '/users/anna')).status).toBe(404);
  });

  test('the rows are walked with arrows, and Enter opens one', async () => {
    const page = await ui.open('/users');
    await page.getByRole('row', { name: /admin/ }).focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Edit ops' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Edit ops' }).waitFor({ state: 'hidden' });
  });

  test('a hundred thousand of them are walked, sorted and narrowed as a few are: only those in sight are there', async () => {
    const page = await ui.open('/options');
    const data = Array.from({ length: 100_000 }, (_, i) => ({
      loginName: `user${i}`,
      fullName: `Name ${99_999 - i}`,
      groups: [],
      disabled: false,
    }));
    await page.route('**/users', (route) =>
      route.request().resourceType() === 'fetch' ? route.fulfill({ json: { data } }) : route.fallback(),
    );
    await page.getByRole('navigation').getByRole('link', { name: 'Users' }).click();
    const first = page.getByRole('row', { name: /^user0 / });
    await first.focus();
    expect(await page.getByRole('table').getAttribute('aria-rowcount')).toBe('100001');
    expect(await page.locator('tbody tr').count()).toBeLessThan(150);
    await page.keyboard.press('End');
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toMatch(/^user99999\s/);
    await page.keyboard.press('ArrowUp');
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toMatch(/^user99998\s/);
    expect(await page.locator('tbody tr').count()).toBeLessThan(150);
    await page.getByRole('button', { name: 'Full name' }).click();
    await page.evaluate('document.querySelector(".table-scroller").scrollTop = 36 * 50000');
    await page.getByText('Name 50000', { exact: true }).waitFor();
    await page.getByRole('searchbox', { name: 'Find users' }).fill('user4242 n');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
  });

  test.each(SIZE_NAMES)('nothing is wrong with it on a %s, in the list and in the dialog', async (size) => {
    expect(await ui.faults('/users', 'tbody tr', { size })).toEqual([]);
    expect(
      await ui.faults('/users', 'tbody tr', { size }, async (opened) => {
        await opened.getByRole('button', { name: 'New user' }).click();
        await opened.getByRole('dialog').getByLabel('User name').waitFor();
      }),
    ).toEqual([]);
  });
});
