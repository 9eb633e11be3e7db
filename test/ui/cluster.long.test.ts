import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { atCluster, sees } from './kit.ts';
import type { Ui } from './kit.ts';
import type { ClientCluster } from '../cluster/clients/members.ts';
import type { Member } from '../cluster/processes/member.ts';

const addressOf = ({ url }: Member) => new URL(url).host;
const at = (member: Member, path = '') => `https://${addressOf(member)}/ui${path}`;
/** What the table of members says of one. */
const rowOf = (page: Page, member: Member) =>
  page
    .getByRole('table', { name: 'Members of the cluster' })
    .getByRole('row')
    .filter({ hasText: addressOf(member) });

atCluster('the page at a cluster', (ui, cluster) => {
  test('a login at one member counts at all, and each shows all of them: who leads, which it is itself, their epoch, and that nobody lags', async () => {
    const page = await opened(ui);
    const leader = await cluster().leader();
    for (const member of cluster().members) {
      await page.goto(at(member));
      await rowOf(page, member).getByText('this one').waitFor();
      expect(await page.getByText('this one').count()).toBe(1);
      for (const other of cluster().members) {
        await rowOf(page, other)
          .getByText(other === leader ? 'Leader' : 'Follower', { exact: true })
          .waitFor();
        const { members } = (await (await page.request.get(at(member).replace('/ui', '/gossip'))).json()) as {
          members: { httpEndPointPort: number; epochNumber: number }[];
        };
        expect(await rowOf(page, other).getByRole('cell').nth(4).innerText()).toBe(
          String(
            members.find(({ httpEndPointPort }) => addressOf(other).endsWith(`:${httpEndPointPort}`))!.epochNumber,
          ),
        );
        await expect
          .poll(() => rowOf(page, other).getByRole('cell').nth(2).innerText())
          .toBe(other === leader ? '–' : 'nothing');
      }
      await sees(page, '3 of 3 reachable');
    }
  });

  test('roles of many words leave the addresses their room on a phone', async () => {
    const leader = await cluster().leader();
    const faults = await ui.faults('', 'table', { size: 'phone' }, async (page) => {
      await page.route('**/gossip', async (route) => {
        const known = (await (await route.fetch()).json()) as { members: object[] };
        const members = known.members.map((one) => ({ ...one, state: 'ReadOnlyReplica', scavengeId: 'a-run' }));
        await route.fulfill({ json: { ...known, members } });
      });
      await page.getByText('Read-only replica, scavenging').first().waitFor();
      await rowOf(page, leader).getByText(addressOf(leader)).waitFor();
    });
    expect(faults).toEqual([]);
  });

  test('a follower says that calls of webhooks are counted by the member that leads', async () => {
    const page = await opened(ui);
    const leader = await cluster().leader();
    const settings = {
      instanceTypeName: 'webhook-source',
      routingScript: Buffer.from('const route = () => null;').toString('base64'),
    };
    const made = await page.request.post(`${at(leader).replace('/ui', '')}/connectors/counted`, {
      data: { settings },
      headers: { 'x-requested-with': 'skua', origin: new URL(at(leader)).origin },
    });
    expect(made.status(), await made.text()).toBe(200);
    for (const member of cluster().members)
      for (const path of ['/webhooks', '/webhooks/counted']) {
        await page.goto(at(member, path));
        await page.getByText('Refused', { exact: true }).first().waitFor();
        await page
          .getByText('This member does not lead')
          .waitFor({ state: member === leader ? 'detached' : 'visible' });
      }
  });

  test('an event that is appended in the page of a follower is at the leader', async () => {
    const page = await opened(ui);
    const leader = await cluster().leader();
    const follower = cluster().members.find((member) => member !== leader)!;
    await page.goto(at(follower, '/streams'));
    await append(page, 'from-a-follower', 'noted');
    await page.getByRole('table', { name: 'Events of from-a-follower' }).getByText('noted').waitFor();
    const stored = await page.request.get(`${at(leader).replace('/ui', '')}/streams/from-a-follower/0`, {
      headers: { accept: 'application/vnd.eventstore.event+json' },
    });
    expect([stored.status(), await stored.json()]).toMatchObject([200, { eventType: 'noted', eventNumber: 0 }]);
  });

  test('when the leader is killed its page says so and goes on once it is back, and others show who leads now, and take what is appended', async () => {
    ui.allow(/ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET|ERR_TIMED_OUT|status of 50[234]/);
    const leader = await cluster().leader();
    const follower = cluster().members.find((member) => member !== leader)!;
    const [atLeader, atFollower, live] = [await opened(ui), await opened(ui), await opened(ui)];
    await atLeader.goto(at(leader));
    await atFollower.goto(at(follower));
    await live.goto(at(follower, '/streams/from-a-follower'));
    await rowOf(atLeader, leader).getByText('Leader', { exact: true }).waitFor();
    await rowOf(atFollower, leader).getByText('Leader', { exact: true }).waitFor();
    await live.getByText('live', { exact: true }).waitFor();
    const epoch = async (page: Page, member: Member) =>
      Number(await rowOf(page, member).getByRole('cell').nth(4).innerText());
    const before = await epoch(atFollower, leader);

    await leader.kill();
    await sees(atLeader, 'The node is not responding; retrying.');
    await rowOf(atFollower, leader).getByText('Not reachable').waitFor();
    const next = await led(cluster(), leader);
    await rowOf(atFollower, next).getByText('Leader', { exact: true }).waitFor();
    await expect.poll(() => epoch(atFollower, next)).toBeGreaterThan(before);
    // The session of the other member counts on, and its live page goes on.
    await atFollower.goto(at(next, '/streams'));
    await append(atFollower, 'from-a-follower', 'noted-later');
    await live.getByRole('table', { name: 'Events of from-a-follower' }).getByText('noted-later').waitFor();

    await leader.start();
    await atLeader.getByText('The node is not responding; retrying.').waitFor({ state: 'hidden' });
    await rowOf(atLeader, leader).getByText('Follower', { exact: true }).waitFor();
    await rowOf(atLeader, next).getByText('Leader', { exact: true }).waitFor();
    await rowOf(atLeader, leader).getByText('this one').waitFor();
    expect(await atLeader.getByRole('dialog', { name: 'Log in' }).count()).toBe(0);
  });
});

/** Logged in at the member that led first; others of the host are no strangers here. */
async function opened(ui: Ui): Promise<Page> {
  ui.allow(/^request: https:\/\/127\.0\.0\.1:\d+\//);
  return ui.open();
}

async function append(page: Page, stream: string, type: string): Promise<void> {
  await page
    .getByRole('button', { name: /^Append/ })
    .first()
    .click();
  const dialog = page.getByRole('dialog', { name: 'Append an event' });
  await dialog.getByLabel('Stream').fill(stream);
  await dialog.getByLabel('Event type').fill(type);
  await dialog.locator('textarea[name=data]').fill('{}');
  await dialog.getByRole('button', { name: 'Append' }).click();
  await dialog.waitFor({ state: 'hidden' });
}

/** Who leads now that somebody else does not. */
async function led(cluster: ClientCluster, former: Member): Promise<Member> {
  await expect
    .poll(async () =>
      cluster.leader().then(
        (member) => member !== former,
        () => false,
      ),
    )
    .toBe(true);
  return cluster.leader();
}
