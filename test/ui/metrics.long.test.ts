import { expect, test } from 'vitest';
import { atNode, SIZE_NAMES } from './kit.ts';

atNode('metrics', (ui) => {
  test('all that /metrics has can be chosen and found; what was chosen stays', async () => {
    const page = await ui.open('/metrics');
    const text = await (await ui.ask('GET', '/metrics')).text();
    const chart = (name: string) => page.getByRole('figure').filter({ has: page.getByText(name, { exact: true }) });
    await chart('io_events_total').locator('canvas').waitFor();
    const families = new Set(
      [...text.matchAll(/^([a-z_]+?)(?:_bucket|_sum|_count)?(?:\{| )/gm)].map(([, name]) => name),
    );
    expect(families.size).toBeGreaterThan(40);
    await expect.poll(() => page.locator('.metric-areas label').count()).toBeGreaterThanOrEqual(families.size - 5);

    await page.getByRole('checkbox', { name: /^log_chunks/ }).check();
    await chart('log_chunks').waitFor();
    // Who can't see lines has the same in a table.
    await expect.poll(() => chart('log_chunks').getByRole('table').innerText()).toMatch(/value\s+1\s+1\s+1/);
    await page.goto(`${ui.url}/ui/metrics`);
    await chart('log_chunks').waitFor();
    await page.getByRole('button', { name: 'Remove eventstore_log_chunks' }).click();
    await chart('log_chunks').waitFor({ state: 'detached' });

    await page.getByRole('searchbox', { name: 'Find metrics' }).fill('chunk files in use');
    await chart('log_chunks').waitFor();
    expect(await page.getByRole('figure').count()).toBe(1);
  });

  test.each(SIZE_NAMES)('nothing is wrong with it on a %s', async (size) => {
    expect(await ui.faults('/metrics', 'canvas', { size })).toEqual([]);
  });
});
