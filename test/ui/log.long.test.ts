import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { atNode, pictured, SIZE_NAMES, PASSWORD, sees } from './kit.ts';
import type { Ui } from './kit.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

atNode('the log', (ui) => {
  test('what somebody does is logged, and seen as it comes: with its fields when it is opened, and what was thrown in lines', async () => {
    const page = await ui.open('/log');
    await sees(page, 'listening');
    await refused(ui, 'seen');
    const line = page.getByRole('button', { name: /a webhook call was refused.*connectorId=seen/ });
    await line.waitFor();
    await line.click();
    await page.getByText(`Error: ${HOSTILE} (line 1, column`, { exact: false }).first().waitFor();
    // By the keys: up to the line before, and opened.
    await page.locator('.log-head[aria-expanded="true"]').focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.log-head[aria-expanded="true"]').count()).toBe(2);
  });

  test('lines are narrowed by level and words, and what is left is saved', async () => {
    await refused(ui, 'narrowed');
    const page = await ui.open('/log');
    const lines = page.locator('.log-line');
    await page.getByRole('button', { name: 'Warnings' }).click();
    await expect.poll(() => page.locator('.log-line.info').count()).toBe(0);
    await page.getByRole('searchbox', { name: 'Search the lines' }).fill('REFUSED narrowed');
    await expect.poll(() => lines.count()).toBe(1);
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save the lines shown' }).click(),
    ]);
    expect(saved.suggestedFilename()).toBe('skua-log.ndjson');
    const text = await readFile(await saved.path(), 'utf8');
    expect(JSON.parse(text)).toMatchObject({
      level: 'warn',
      message: 'a webhook call was refused',
      fields: { connectorId: 'narrowed', status: 500 },
    });
    await page.getByRole('searchbox', { name: 'Search the lines' }).fill('nothing has this');
    await sees(page, 'No lines match');
    // The address holds what was asked for.
    await page.reload();
    await sees(page, 'No lines match');
  });

  test('the level is changed in the page, and what is changed beside it is seen there', async () => {
    const page = await ui.open('/log');
    const level = page.getByLabel('Node logs');
    const here = async () => ((await (await ui.ask('GET', '/admin/log?count=1')).json()) as { level: string }).level;
    await expect.poll(() => level.inputValue()).toBe('info');
    await level.selectOption('debug');
    await expect.poll(here).toBe('debug');
    await sees(page, 'The node logs everything until it restarts');
    await ui.ask('PUT', '/admin/log/level', { level: 'warn' });
    await expect.poll(() => level.inputValue()).toBe('warn');
    await ui.ask('PUT', '/admin/log/level', { level: 'info' });
  });

  test.each(['phone', 'desk'] as const)('it opens at its end on a %s, and follows what comes', async (size) => {
    // Lines that take more room than one that was not drawn yet.
    for (let i = 0; i < 60; i++) await refused(ui, `end-${i}-${'x'.repeat(20)}`);
    const page = await ui.open('/log', { size });
    const last = page.locator('.log-line').last();
    await last.waitFor();
    for (let i = 0; i < 2; i++) {
      const text = (await last.innerText()).slice(0, 40);
      await pictured(page);
      const { y, height } = (await last.boundingBox())!;
      expect([y >= 0, y + height <= page.viewportSize()!.height, await page.locator('.log-end').count()]).toEqual([
        true,
        true,
        0,
      ]);
      if (i > 0) break;
      await refused(ui, 'follows');
      await expect.poll(async () => (await last.innerText()).slice(0, 40)).not.toBe(text);
    }
    await page.locator('.log-scroller').hover();
    await page.mouse.wheel(0, -600);
    await page.getByRole('button', { name: 'Jump to the end' }).click();
    await expect.poll(() => page.locator('.log-end').count()).toBe(0);
  });

  test('while it is paused nothing comes; then all of it', async () => {
    const page = await ui.open('/log');
    await sees(page, 'listening');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused', { exact: true }).waitFor();
    await pictured(page);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await refused(ui, 'paused');
    // A round in which others are asked, and the log is not.
    await page.waitForRequest((request) => !request.url().includes('/admin/log'));
    expect(asked.filter((url) => url.includes('/admin/log'))).toEqual([]);
    expect(await page.getByText('connectorId=paused').count()).toBe(0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('connectorId=paused').first().waitFor();
  });

  test('it is for operators', async () => {
    await ui.ask('POST', '/users', { loginName: 'reader', fullName: 'Reader', groups: [], password: PASSWORD });
    const page = await ui.open('/log', { user: 'reader' });
    await sees(page, "You don't have permission");
  });

  test.each(SIZE_NAMES)('nothing is wrong with it on a %s', async (size) => {
    await refused(ui, 'looks');
    expect(
      await ui.faults('/log', 'text=listening', { size }, async (page) => {
        await page.locator('.log-line.warn .log-head').last().click();
        await page.locator('.log-inside').waitFor();
      }),
    ).toEqual([]);
  });
});

/** A call that a connector refuses, since its script throws; the node logs it. */
async function refused(ui: Ui, id: string): Promise<void> {
  const script = `function route() { throw new Error(${JSON.stringify(HOSTILE)}) }`;
  await ui.ask('POST', `/connectors/${id}`, {
    settings: { instanceTypeName: 'webhook-source', routingScript: Buffer.from(script).toString('base64') },
  });
  await ui.ask('POST', `/connectors/${id}/start`);
  expect((await ui.ask('POST', `/webhook/${id}`, {})).status).toBe(500);
}
