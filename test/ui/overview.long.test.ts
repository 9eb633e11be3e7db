import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { atCluster, atNode, chartTable, SIZE_NAMES, sees, withPast } from './kit.ts';

const tile = (page: Page, label: string) =>
  page
    .locator('.stat')
    .filter({ has: page.getByText(label, { exact: true }) })
    .locator('.stat-value');
const card = (page: Page, name: string) => page.getByRole('region', { name });

/**
 * Keeps the labels that charts write, with how far each begins within its canvas on the left, and ends beyond it on the
 * right. A canvas has no text that could be read otherwise.
 */
const LABELS = `
  window.__labels = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { width } = this.measureText(text);
    const left = this.textAlign === 'right' ? x - width : this.textAlign === 'center' ? x - width / 2 : x;
    if (text !== '') window.__labels.push({ text, left, right: left + width - this.canvas.width });
    write.call(this, text, x, y);
  };
`;

atNode('the overview of a node', (ui, node) => {
  test('says what the node is, where its log ends, and what the disk holds', async () => {
    const page = await ui.open();
    await sees(page, 'Single node');
    expect([await page.title(), await page.locator('.node-name').innerText()]).toEqual([
      'Overview · Skua',
      expect.stringContaining('127.0.0.1:'),
    ]);
    const { log, disk, licence } = (await (await ui.ask('GET', '/admin/overview')).json()) as {
      log: { chunks: number };
      disk: { folder: string };
      licence: { source: string };
    };
    await card(page, 'Disk').getByText(disk.folder).waitFor();
    expect(await tile(page, 'Log on disk').innerText()).toMatch(/B$/);
    expect(log.chunks).toBe(1);
    expect(await card(page, 'Certificates').innerText()).toContain('without TLS');
    expect(await card(page, 'Licence').innerText()).toContain(licence.source === 'none' ? 'None' : 'Built in');
  });

  test('a warning leads to a view where the user may see that one', async () => {
    for (const [options, links] of [
      [{}, 1],
      [{ user: 'ops', password: 'changeit' }, 0],
    ] as const) {
      const warning = (await ui.open('', options))
        .getByRole('list', { name: 'Warnings' })
        .getByRole('listitem')
        .filter({ hasText: 'default password' });
      await warning.waitFor();
      expect(await warning.getByRole('link', { name: 'Users' }).count()).toBe(links);
    }
  });

  test('what is written appears without a touch: the end of the log goes on, and so do the charts', async () => {
    const page = await ui.open();
    const end = async () =>
      Number(
        (
          await card(page, 'Log and index').getByText('End of the log').locator('..').locator('dd').innerText()
        ).replaceAll(',', ''),
      );
    await card(page, 'Log and index').waitFor();
    const before = await end();
    await ui.ask(
      'POST',
      '/streams/orders',
      Array.from({ length: 100 }, () => ({
        eventId: randomUUID(),
        eventType: 'made',
        data: { text: 'x'.repeat(100) },
      })),
      { 'content-type': 'application/vnd.eventstore.events+json' },
    );
    await expect.poll(end).toBeGreaterThan(before + 10_000);
    await expect
      .poll(() =>
        page
          .getByRole('figure')
          .filter({ has: page.getByText('Events', { exact: true }) })
          .getByRole('table')
          .innerText(),
      )
      .toMatch(/written\s+[\d.]+\/s/);
  });

  test('charts begin with what the node kept, of the last hour or of 24, and say since when', async () => {
    const page = await ui.open('/options');
    await withPast(page, '**/admin/overview/history', []);
    await page.goto(`${ui.url}/ui`);
    const written = () => chartTable(page, 'Events').innerText();
    await expect.poll(written).toMatch(/written\s.*3\.3k\/s/i);
    expect(await written()).not.toMatch(/7\.7k/i);
    await page.getByRole('radio', { name: '24 hours' }).click();
    await expect.poll(written).toMatch(/written\s+3\.3k\/s\s+3\.3k\/s\s+7\.7k\/s/i);
    await sees(page, 'Kept by the node since');
    // The range stays between visits.
    await page.reload();
    await expect.poll(written).toMatch(/7\.7k/i);
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('charts that are empty yet say so and have no labels, until there is a line', async () => {
    const page = await ui.open('/options');
    await page.addInitScript(LABELS);
    const labels = () => page.evaluate('window.__labels') as Promise<{ text: string; left: number; right: number }[]>;
    const { promise: more, resolve: goOn } = Promise.withResolvers<void>();
    let asked = 0;
    // Of the node nothing but its first answer to this view, until what is empty has been looked at.
    await page.route('**/admin/overview', async (route, request) => {
      if (request.frame().url() === `${ui.url}/ui` && asked++ > 0) await more;
      await route.continue();
    });
    await page.goto(`${ui.url}/ui`);
    const empty = page.getByRole('figure').getByText('Not enough data yet.');
    await card(page, 'Process').waitFor();
    await expect.poll(() => empty.count()).toBe(4);
    expect(await empty.first().isVisible()).toBe(true);
    expect(await labels()).toEqual([]);
    goOn();
    await expect.poll(() => empty.count()).toBe(0);
    await expect.poll(async () => (await labels()).length).toBeGreaterThan(8);
    expect((await labels()).filter(({ left, right }) => left < 0 || right > 0)).toEqual([]);
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('it goes on by itself when the node was started again', async () => {
    ui.allow(/ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET|status of 503/);
    const page = await ui.open();
    await card(page, 'Process').waitFor();
    await node.stop();
    await sees(page, 'The node is not responding; retrying.');
    await node.start();
    const {
      node: { instanceId, startedAt },
    } = (await (await ui.ask('GET', '/admin/overview')).json()) as { node: { instanceId: string; startedAt: string } };
    await expect.poll(() => card(page, 'Process').locator('time').getAttribute('datetime')).toBe(startedAt);
    await card(page, 'Process').getByText(instanceId).waitFor();
  });

  test.each(SIZE_NAMES)('nothing is wrong with it on a %s', async (size) => {
    expect(await ui.faults('', 'canvas', { size })).toEqual([]);
  });
});

atCluster('the overview of a cluster', (ui, cluster) => {
  test('shows the members and their roles, and certificates with their days; a member that goes away is told of', async () => {
    const page = await ui.open();
    const rows = page.getByRole('table', { name: 'Members of the cluster' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(4);
    const text = async () =>
      (await rows.allInnerTexts())
        .slice(1)
        .map((row) => /Leader|Follower|Not reachable/.exec(row)?.[0])
        .sort();
    await expect.poll(text).toEqual(['Follower', 'Follower', 'Leader']);
    expect(await rows.filter({ hasText: 'this one' }).count()).toBe(1);
    expect(await card(page, 'Certificates').innerText()).toMatch(/CN=localhost[^]*\sd left/);

    const follower = cluster().members.find(({ url }) => new URL(url).port !== new URL(ui.url).port)!;
    await follower.stop();
    await expect.poll(text).toContain('Not reachable');
  });

  test('nothing is wrong with it', async () => {
    expect(await ui.faults('', 'table[aria-label="Members of the cluster"]')).toEqual([]);
  });
});
