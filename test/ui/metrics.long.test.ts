import { expect, test } from 'vitest';
import { atNode, chartTable, sees, SIZE_NAMES, withPast } from './kit.ts';

atNode('metrics', (ui) => {
  test('all that /metrics has can be chosen and found; what was chosen stays', async () => {
    for (const group of ['one', 'other']) await ui.ask('PUT', `/subscriptions/letters/${group}`, {});
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
    // Memory of several kinds, one of which is part of another, is no sum.
    await page.getByRole('checkbox', { name: /^proc_mem_bytes\s+\d+ series$/ }).waitFor();
    // A number of times is no time, and a sum of seconds is one.
    await page.getByRole('checkbox', { name: /^http_request_duration_seconds\s+[\d,]+ times$/ }).waitFor();
    await page.getByRole('checkbox', { name: /^proc_cpu_seconds_total\s+[\d.]+\s(ms|s|min\b.*)$/ }).waitFor();
    // Whichever came first at this node.
    expect(await chart('io_events_total').locator('.legend .truncate').allInnerTexts()).toEqual(['read', 'written']);
    // Parked messages of all groups together are a number of messages, too.
    await page.getByRole('checkbox', { name: /^persistent_sub_parked_messages\s+0$/ }).waitFor();
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

  test('charts begin with what the node kept; what it keeps nothing of, and all without a history, with the page', async () => {
    const page = await ui.open('/options');
    const line = 'eventstore_io_events_total{activity="written"}';
    await withPast(page, '**/metrics/history', [
      line,
      'eventstore_append_duration_seconds{quantile="0.99"}',
      'eventstore_http_requests_total{method="GET", status="200", area="info"}',
    ]);
    await page.goto(
      `${ui.url}/ui/metrics?show=eventstore_io_events_total,eventstore_append_duration_seconds,eventstore_log_chunks`,
    );
    const text = (name: string) => chartTable(page, name).innerText();
    await expect.poll(() => text('io_events_total')).toMatch(/written\s.*3\.3k\/s/i);
    expect(await text('io_events_total')).not.toMatch(/7\.7k/i);
    // Seconds, of which charts are in milliseconds.
    await expect.poll(() => text('append_duration_seconds')).toMatch(/p99\s.*55.min/);
    const shownAt = page.getByRole('figure').first().locator('.chart-title + output');
    expect(await shownAt.innerText()).toBe('');
    await page.getByRole('radio', { name: '24 hours' }).click();
    await expect.poll(() => text('io_events_total')).toMatch(/written\s+3\.3k\/s\s+3\.3k\/s\s+7\.7k\/s/i);
    await expect.poll(() => text('log_chunks')).toMatch(/value\s+1\s+1\s+1/);
    // All begin where the data do, also what is known of now alone; figures that are not those of now have their time.
    const began = async (name: string) => /, (.+) to /.exec(await text(name))?.[1];
    expect(await began('log_chunks')).toBe(await began('io_events_total'));
    expect(await shownAt.innerText()).toMatch(/^\d+:\d\d/);
    await sees(page, 'Kept by the node since');
    await page.getByRole('radio', { name: 'Last hour' }).click();
    await page.unrouteAll({ behavior: 'wait' });

    ui.allow(/status of 404/);
    await page.route('**/metrics/history', (route) => route.fulfill({ status: 404, json: { code: 'not_found' } }));
    await page.reload();
    await expect.poll(() => text('log_chunks')).toMatch(/value\s+1\s+1\s+1/);
    await expect.poll(() => text('io_events_total')).toMatch(/written\s+[\d.]+\/s/);
    expect(await page.getByText('Kept by the node since').count()).toBe(0);
    await page.unrouteAll({ behavior: 'wait' });
  });

  test.each(SIZE_NAMES)('nothing is wrong with it on a %s', async (size) => {
    expect(await ui.faults('/metrics', 'canvas', { size })).toEqual([]);
  });
});
