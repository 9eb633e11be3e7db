import { expect, test } from 'vitest';
import { atCluster, atNode, LOOKS, sees } from './kit.ts';
import { json, soon } from './log-to-scavenge.ts';

interface Member { readonly node: string; readonly state: string; readonly result: string | null }
interface Status { readonly state: string; readonly schedule: string | null; readonly lastCycle: { readonly nodes: readonly Member[] } | null }
interface Times { readonly zone: string; readonly times: readonly string[] }

/** A schedule of every minute begins within one, and a cycle over members takes a few ticks more. */
const CYCLE_WAIT = { timeout: 300_000 };
const EVERY_MINUTE = '* * * * *';
/** Far enough not to come while the test runs. */
const SELDOM = '0 0 29 2 *';

atNode('auto-scavenge', (ui) => {
  const status = () => json<Status>(ui, '/auto-scavenge/status');

  test('a schedule is told in words and times as it is typed, refused at its field, and saved', async () => {
    ui.allow(/status of 400/);
    const page = await ui.open('/auto-scavenge');
    await sees(page, 'no schedule');
    await page.getByRole('textbox', { name: 'Schedule' }).fill('0 25 * * *');
    await sees(page, /'25' is no hour: give 0 to 23/);
    await page.getByRole('button', { name: 'Save the schedule' }).click();
    await page.locator('.field.wrong').waitFor();
    expect((await status()).schedule).toBeNull();

    await page.getByRole('button', { name: 'First of the month at 04:00' }).click();
    expect(await page.getByRole('textbox', { name: 'Schedule' }).inputValue()).toBe('0 4 1 * *');
    await sees(page, 'At 04:00 on the 1st of the month');
    await page.getByRole('textbox', { name: 'Schedule' }).fill(SELDOM);
    await sees(page, 'At 00:00 on the 29th of the month in February');
    const { zone, times } = await json<Times>(ui, `/auto-scavenge/times?count=5&schedule=${encodeURIComponent(SELDOM)}`);
    expect(times).toHaveLength(5);
    await sees(page, `in the zone ${zone}`);
    await soon(() => page.evaluate('Array.from(document.querySelectorAll(".times time"), (time) => time.dateTime)')).toEqual(times);
    await page.getByRole('button', { name: 'Save the schedule' }).click();
    await page.locator('.schedule-words').waitFor();
    expect(await status()).toMatchObject({ state: 'Waiting', schedule: SELDOM });
  });

  test('paused and resumed here and over HTTP; edited, and left as it was', async () => {
    const page = await ui.open('/auto-scavenge');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.locator('.badge', { hasText: 'paused' }).waitFor();
    expect((await status()).state).toBe('Paused');
    await sees(page, 'It is paused: these times pass without a cycle.');
    expect((await ui.ask('POST', '/auto-scavenge/resume')).status).toBe(200);
    await page.locator('.badge', { hasText: 'waiting' }).waitFor();
    expect((await ui.ask('POST', '/auto-scavenge/configure', { schedule: '0 3 1 1 *' })).status).toBe(200);
    await sees(page, 'At 03:00 on the 1st of the month in January');

    await page.getByRole('button', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit the schedule' });
    await dialog.getByRole('textbox', { name: 'Schedule' }).fill('0 5 * * *');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect((await status()).schedule).toBe('0 3 1 1 *');
    await page.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByRole('textbox', { name: 'Schedule' }).fill(SELDOM);
    await dialog.getByRole('button', { name: 'Save the schedule' }).click();
    await sees(page, 'At 00:00 on the 29th of the month in February');
    expect((await status()).schedule).toBe(SELDOM);
  });

  test.each(LOOKS)('nothing is wrong with it: %s, %s', async (size, scheme) => {
    expect(await ui.faults('/auto-scavenge', '.times li', { size, scheme })).toEqual([]);
    expect(await ui.faults('/auto-scavenge', '.times li', { size, scheme }, async (page) => {
      await page.getByRole('button', { name: 'Edit' }).click();
      await page.locator('dialog .times li').first().waitFor();
    })).toEqual([]);
  });

  test('who may only look at it sees no buttons', async () => {
    await ui.ask('POST', '/users', { loginName: 'reader', fullName: 'Reader', groups: [], password: 'a Password of tests 2' });
    const page = await ui.open('/auto-scavenge', { user: 'reader', password: 'a Password of tests 2' });
    await page.locator('.times li').first().waitFor();
    expect(await page.locator('main').getByRole('button').count()).toBe(0);
  });

  test('a cycle begins by itself, and how it went is told', async () => {
    const page = await ui.open('/auto-scavenge');
    await page.getByRole('button', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit the schedule' });
    await dialog.getByRole('textbox', { name: 'Schedule' }).fill(EVERY_MINUTE);
    await dialog.getByRole('button', { name: 'Save the schedule' }).click();
    const last = page.getByRole('table', { name: 'Members of the cycle that ended' });
    await last.getByRole('row', { name: /is done Success/ }).waitFor(CYCLE_WAIT);
    expect((await status()).lastCycle?.nodes).toMatchObject([{ state: 'completed', result: 'Success' }]);
  });
});

atNode('auto-scavenge that is switched off', (ui) => {
  test('says why, and what to do', async () => {
    const page = await ui.open('/auto-scavenge');
    await sees(page, 'Auto-scavenge is off on this node');
    await sees(page, 'The option AutoScavenge:Enabled is false.');
    await sees(page, /Take AutoScavenge:Enabled out of the configuration/);
    expect(await ui.faults('/auto-scavenge', '.empty')).toEqual([]);
  });
}, ['--auto-scavenge-enabled', 'false']);

atNode('auto-scavenge without a licence', (ui) => {
  test('says so, and what to do', async () => {
    const page = await ui.open('/auto-scavenge');
    await sees(page, /There is no licence key, and Licensing:UseBuiltIn is false/);
    await sees(page, /needs a licence that grants it/);
  });
}, ['--licensing-use-built-in', 'false']);

atCluster('auto-scavenge of a cluster', (ui) => {
  test('the cycle goes over all members, and the page tells of each', async () => {
    ui.allow(/status of 503/);
    const page = await ui.open('/auto-scavenge');
    await page.getByRole('textbox', { name: 'Schedule' }).fill(EVERY_MINUTE);
    await page.getByRole('button', { name: 'Save the schedule' }).click();
    await sees(page, 'Every minute every day');
    const last = page.getByRole('table', { name: 'Members of the cycle that ended' });
    await soon(() => last.getByRole('row', { name: /is done Success/ }).count()).toBe(3);
    expect(new Set(await last.locator('tbody tr strong').allInnerTexts()).size).toBe(3);
  });
});
