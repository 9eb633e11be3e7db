import { expect, test } from 'vitest';
import { bySize } from '../support/run-size.ts';
import { looksAt, orderOf, watchCycles } from './cycles-seen.ts';
import { atCluster, atNode, SIZE_NAMES, sees } from './kit.ts';
import { json, soon } from './log-to-scavenge.ts';

interface Member {
  readonly node: string;
  readonly state: string;
  readonly result: string | null;
}
interface Status {
  readonly state: string;
  readonly schedule: string | null;
  readonly cycle: { readonly clusterScavengeId: string; readonly nodes: readonly Member[] } | null;
  readonly lastCycle: { readonly nodes: readonly Member[] } | null;
}
interface Times {
  readonly zone: string;
  readonly times: readonly string[];
}

/** As many as a busy machine needs to show one whole. Each look asks all members who leads. */
const SEVERAL_CYCLES = { timeout: 1_200_000, interval: 500 };
const EVERY_MINUTE = '* * * * *';
/** Far enough not to come while the test runs. */
const SELDOM = '0 0 29 2 *';

atNode('auto-scavenge', (ui) => {
  const status = () => json<Status>(ui, '/auto-scavenge/status');

  test('the next times of a schedule are told as it is typed, refused at its field, and saved', async () => {
    ui.allow(/status of 400/);
    const page = await ui.open('/auto-scavenge');
    await sees(page, 'no schedule');
    await page.getByRole('textbox', { name: 'Schedule' }).fill('0 25 * * *');
    await sees(page, /'25' is not a valid hour: give 0 to 23/);
    await page.getByRole('button', { name: 'Save the schedule' }).click();
    await page.locator('.field.wrong').waitFor();
    expect((await status()).schedule).toBeNull();

    await page.getByRole('button', { name: 'First of the month at 4:00 AM' }).click();
    expect(await page.getByRole('textbox', { name: 'Schedule' }).inputValue()).toBe('0 4 1 * *');
    await page.getByRole('textbox', { name: 'Schedule' }).fill(SELDOM);
    const { zone, times } = await json<Times>(
      ui,
      `/auto-scavenge/times?count=5&schedule=${encodeURIComponent(SELDOM)}`,
    );
    expect(times).toHaveLength(5);
    await sees(page, `in time zone ${zone}`);
    await soon(() =>
      page.evaluate('Array.from(document.querySelectorAll(".times time"), (time) => time.dateTime)'),
    ).toEqual(times);
    await page.getByRole('button', { name: 'Save the schedule' }).click();
    await page.locator('.schedule').waitFor();
    expect(await status()).toMatchObject({ state: 'Waiting', schedule: SELDOM });
  });

  test('paused and resumed here and over HTTP; edited, and left as it was', async () => {
    const page = await ui.open('/auto-scavenge');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.locator('.badge', { hasText: 'paused' }).waitFor();
    expect((await status()).state).toBe('Paused');
    await sees(page, 'Paused: no cycle starts at these times.');
    expect((await ui.ask('POST', '/auto-scavenge/resume')).status).toBe(200);
    await page.locator('.badge', { hasText: 'waiting' }).waitFor();
    expect((await ui.ask('POST', '/auto-scavenge/pause')).status).toBe(200);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.locator('.badge', { hasText: 'waiting' }).waitFor();
    expect((await status()).state).toBe('Waiting');
    expect((await ui.ask('POST', '/auto-scavenge/configure', { schedule: '0 3 1 1 *' })).status).toBe(200);
    await page.locator('.schedule', { hasText: '0 3 1 1 *' }).waitFor();

    await page.getByRole('button', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit the schedule' });
    await dialog.getByRole('textbox', { name: 'Schedule' }).fill('0 5 * * *');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect((await status()).schedule).toBe('0 3 1 1 *');
    await page.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByRole('textbox', { name: 'Schedule' }).fill(SELDOM);
    await dialog.getByRole('button', { name: 'Save the schedule' }).click();
    await page.locator('.schedule', { hasText: SELDOM }).waitFor();
    expect((await status()).schedule).toBe(SELDOM);
  });

  test.each(SIZE_NAMES)('nothing is wrong with it: %s', async (size) => {
    expect(await ui.faults('/auto-scavenge', '.times li', { size })).toEqual([]);
    expect(
      await ui.faults('/auto-scavenge', '.times li', { size }, async (page) => {
        await page.getByRole('button', { name: 'Edit' }).click();
        await page.locator('dialog .times li').first().waitFor();
      }),
    ).toEqual([]);
  });

  test('a cycle that waits for a member that is away says so', async () => {
    const page = await ui.open('/auto-scavenge', { size: 'phone' });
    const nodes = ['waiting', 'completed'].map((state, i) => ({
      node: `127.0.0.1:${i + 1}`,
      state,
      scavengeId: null,
      result: state === 'completed' ? 'Success' : null,
    }));
    const cycle = { clusterScavengeId: crypto.randomUUID(), startedAt: new Date().toISOString(), nodes };
    await page.route('**/auto-scavenge/status', (route) =>
      route.fulfill({
        json: { state: 'InProgress', schedule: SELDOM, timeUntilNextCycle: null, cycle, lastCycle: null },
      }),
    );
    const members = nodes.map((_, i) => ({ httpEndPointIp: '127.0.0.1', httpEndPointPort: i + 1, isAlive: false }));
    await page.route('**/gossip', (route) => route.fulfill({ json: { members } }));
    await page.getByRole('row', { name: '127.0.0.1:1 not reachable' }).waitFor();
    await page.getByRole('row', { name: '127.0.0.1:2 done Success' }).waitFor();
    await sees(page, "A member can't be reached");
  });

  test('who may only look at it sees no buttons', async () => {
    await ui.ask('POST', '/users', {
      loginName: 'reader',
      fullName: 'Reader',
      groups: [],
      password: 'a Password of tests 2',
    });
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
    await last.getByRole('row', { name: /done Success/ }).waitFor();
    expect((await status()).lastCycle?.nodes).toMatchObject([{ state: 'completed', result: 'Success' }]);
  });
});

atNode(
  'auto-scavenge that is switched off',
  (ui) => {
    test('says why, and what to do', async () => {
      const page = await ui.open('/auto-scavenge');
      await sees(page, 'Auto-scavenge is off on this node');
      await sees(page, 'The option AutoScavenge:Enabled is false.');
      await sees(page, /Remove AutoScavenge:Enabled from the configuration/);
      expect(await ui.faults('/auto-scavenge', '.empty')).toEqual([]);
    });
  },
  ['--auto-scavenge-enabled', 'false'],
);

atNode(
  'auto-scavenge without a licence',
  (ui) => {
    test('says so, and what to do', async () => {
      const page = await ui.open('/auto-scavenge');
      await sees(page, /There is no licence key, and Licensing:UseBuiltIn is false/);
      await sees(page, /needs a licence that includes it/);
    });
  },
  ['--licensing-use-built-in', 'false'],
);

// A cycle begins with a minute, and one has to be seen whole: `npm run test:all` waits for it.
if (bySize(false, false, true))
  atCluster('auto-scavenge of a cluster', (ui, cluster) => {
    test('pages at two members show a cycle as it goes from one member to the next, the leader last, and how it went in the end', async () => {
      // The second page is that of another member.
      ui.allow(/status of 503/, /^request: https:\/\/127\.0\.0\.1:\d+\//);
      const hosts = cluster().members.map(({ url }) => new URL(url).host);
      const pages = [await ui.open('/auto-scavenge'), await ui.open()] as const;
      const [page, other] = pages;
      await other.goto(`https://${hosts.find((host) => !ui.url.endsWith(host))!}/ui/auto-scavenge`);
      await other.getByRole('button', { name: 'Save the schedule' }).waitFor();
      await Promise.all(pages.map(watchCycles));
      await page.getByRole('textbox', { name: 'Schedule' }).fill(EVERY_MINUTE);
      await page.getByRole('button', { name: 'Save the schedule' }).click();
      await Promise.all(pages.map((each) => sees(each, 'Every minute every day')));

      // A page looks every two seconds: what was over sooner it may miss, and a cycle in which somebody else begins to
      // lead says nothing of who comes last. Then the next cycle is watched.
      const leaders = new Map<string, Set<string>>();
      let whole: { readonly id: string; readonly order: readonly string[] } | undefined;
      await expect
        .poll(async () => {
          const { host } = new URL((await cluster().leader()).url);
          const reply = await page.request.get(`${ui.url}/auto-scavenge/status`);
          const cycle = reply.ok() ? ((await reply.json()) as Status).cycle : null;
          if (cycle !== null && cycle.nodes.filter(({ state }) => state === 'completed').length < 2)
            leaders.set(cycle.clusterScavengeId, (leaders.get(cycle.clusterScavengeId) ?? new Set()).add(host));
          const looks = await looksAt(pages);
          whole = [...leaders]
            .filter(([, all]) => all.size === 1)
            .map(([id]) => ({ id, order: orderOf(looks, id, 3) }))
            .find(({ order }) => order.length > 0);
          return whole?.order.toSorted();
        }, SEVERAL_CYCLES)
        .toEqual(hosts.toSorted());
      const { id, order } = whole!;
      expect(order.at(-1)).toBe([...leaders.get(id)!][0]);
      for (const { running, done, waiting } of (await looksAt(pages)).filter((look) => look.id === id)) {
        expect(done.toSorted()).toEqual(order.slice(0, done.length).toSorted());
        expect(running).toEqual(running.length === 0 ? [] : [order[done.length]]);
        expect(waiting).toHaveLength(3 - done.length - running.length);
      }
      for (const each of pages) {
        const last = each.getByRole('table', { name: 'Members of the cycle that ended' });
        await soon(() => last.getByRole('row', { name: /done Success/ }).count()).toBe(3);
        expect((await last.locator('tbody tr strong').allInnerTexts()).toSorted()).toEqual(hosts.toSorted());
      }
    });
  });
