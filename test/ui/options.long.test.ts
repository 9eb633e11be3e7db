import { expect, test } from 'vitest';
import { atNode, SIZE_NAMES } from './kit.ts';

atNode('options', (ui) => {
  test('each has its value, where that comes from, and what it does; a filter narrows them, and stays in the address', async () => {
    const page = await ui.open('/options');
    const option = (name: string) =>
      page.locator('.options li').filter({ has: page.locator('.option-name code').getByText(name, { exact: true }) });
    expect(await option('ChunkSize').innerText()).toMatch(/1048576[^]*from the command line[^]*default 256 MiB/);
    expect(await option('DefaultAdminPassword').innerText()).toMatch(/••••••••[^]*from the environment/);
    expect(await option('DisableTls').innerText()).toMatch(/true[^]*from the command line[^]*No TLS/);
    const all = await page.locator('.options li').count();
    await page.getByRole('searchbox', { name: 'Find options' }).fill('chunk-si');
    await expect.poll(() => page.locator('.options li').count()).toBe(1);
    expect(new URL(page.url()).search).toBe('?q=chunk-si');
    await page.reload();
    await option('ChunkSize').waitFor();
    expect(await page.locator('.options li').count()).toBe(1);
    await page.getByRole('searchbox', { name: 'Find options' }).fill('no such thing');
    await page.getByRole('button', { name: 'Show all' }).click();
    await expect.poll(() => page.locator('.options li').count()).toBe(all);
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await expect.poll(() => page.locator('.options li').count()).toBeLessThan(20);
  });

  test('attribute indexes are switched on and off', async () => {
    const page = await ui.open('/options');
    const row = (name: string) =>
      page.getByRole('table', { name: 'Attribute indexes' }).locator('tr').filter({ hasText: name });
    await row('Categories').getByText('live').waitFor();
    await row('Tags').getByText('off', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Switch on tags' }).click();
    await row('Tags').getByText('live').waitFor();
    await page.getByRole('button', { name: 'Switch off tags' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Switch off' }).click();
    await row('Tags').getByText('off', { exact: true }).waitFor();
    const { setting } = (await (await ui.ask('GET', '/admin/indexes')).json()) as { setting: object };
    expect(setting).toEqual({ names: true, correlations: false, tags: false });
  });

  test('an index that does not get on is not shown as one that is being built, and says why', async () => {
    const page = await ui.open('/streams');
    await page.route('**/admin/indexes', async (route) => {
      const real = (await (await route.fetch()).json()) as { indexes: readonly object[] };
      const indexes = real.indexes.map((index) => ({ ...index, state: 'building', coveredTo: 0, error: 'No space.' }));
      await route.fulfill({ json: { ...real, indexes } });
    });
    await page.getByRole('navigation').getByRole('link', { name: 'Options' }).click();
    const row = page.getByRole('table', { name: 'Attribute indexes' }).locator('tr').filter({ hasText: 'Categories' });
    await row.getByText('stuck at 0').waitFor();
    await row.getByText('No space.').waitFor();
    expect(await row.getByText('building').count()).toBe(0);
  });

  test('an operator is told of attribute indexes who sees them', async () => {
    const page = await ui.open('/options', { user: 'ops', password: 'changeit' });
    await page.locator('.options li').first().waitFor();
    await page.getByRole('region', { name: 'Attribute indexes' }).getByText('Administrators alone').waitFor();
  });

  test.each(SIZE_NAMES)('nothing is wrong with it on a %s', async (size) => {
    expect(await ui.faults('/options', '.options li', { size })).toEqual([]);
  });
});
