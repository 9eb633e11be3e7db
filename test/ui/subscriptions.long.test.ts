import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { ADMIN, atCluster, atNode, chartTable, SIZE_NAMES, PASSWORD, sees, withPast } from './kit.ts';
import type { Ui } from './kit.ts';

const ran = promisify(execFile);
const EVENTS = 'application/vnd.eventstore.events+json';
const HOSTILE = '<img src=x onerror=alert(1)>';

interface Info {
  readonly parkedMessageCount: number;
  readonly config: Readonly<Record<string, unknown>>;
}

atNode('subscriptions', (ui) => {
  const info = async (stream: string, group: string) =>
    (await (await ui.ask('GET', `${pathOf(stream, group)}/info`)).json()) as Info;
  const titles = async (stream: string, group: string) =>
    ((await (await ui.ask('GET', `${pathOf(stream, group)}/20`)).json()) as { entries: { title: string }[] }).entries
      .map(({ title }) => title)
      .toReversed();

  test('where there are none it says so; one made in the page is there, is changed there, and deleted by typing its name', async () => {
    ui.allow(/status of 404/);
    const page = await ui.open('/subscriptions');
    await sees(page, 'No groups yet');
    await page.getByRole('button', { name: 'New group' }).first().click();
    const made = page.getByRole('dialog', { name: 'New group' });
    await made.getByLabel('Stream', { exact: true }).fill('mails');
    await made.getByLabel('Name of the group').fill('mailers');
    await made.getByLabel('Page').fill('600');
    await made.getByRole('button', { name: 'Create group' }).click();
    await made.getByText('It must be larger than the page size.').waitFor();
    await made.getByLabel('Page').fill('30');
    await made.getByLabel('Start at').fill('end');
    await made.getByLabel('Strategy').selectOption('Pinned');
    await made.getByRole('button', { name: 'Create group' }).click();
    await page.getByRole('heading', { name: 'mailers' }).waitFor();
    expect((await info('mails', 'mailers')).config).toMatchObject({
      startPosition: '-1',
      readBatchSize: 30,
      namedConsumerStrategy: 'Pinned',
      maxRetryCount: 10,
    });

    await page.getByRole('button', { name: 'Settings' }).click();
    const edited = page.getByRole('dialog', { name: 'Settings of mailers' });
    await edited.getByLabel('Retries').fill('3');
    await edited.getByRole('switch', { name: 'Resolve links' }).check();
    await edited.getByRole('button', { name: 'Save' }).click();
    await edited.waitFor({ state: 'hidden' });
    expect((await info('mails', 'mailers')).config).toMatchObject({
      startPosition: '-1',
      maxRetryCount: 3,
      resolveLinktos: true,
      readBatchSize: 30,
    });

    await page.getByRole('button', { name: 'More for this group' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    const question = page.getByRole('dialog', { name: 'Delete this group' });
    await question.getByRole('button', { name: 'Delete group' }).click();
    await question.getByText('This does not match the name.').waitFor();
    await question.getByRole('textbox').fill('mailers');
    await question.getByRole('button', { name: 'Delete group' }).click();
    await sees(page, 'No groups yet');
    expect((await ui.ask('GET', `${pathOf('mails', 'mailers')}/info`)).status).toBe(404);
  });

  test('a group of $all is nothing that is made here: it says how, and that clients send no password to a node without TLS', async () => {
    expect((await ui.ask('PUT', pathOf('$all', 'everything'), {})).status).toBe(400);
    const page = await ui.open('/subscriptions');
    const made = await askedForAll(page, 'everything');
    await made.getByText('This node would refuse the call').waitFor();
    expect(await made.getByRole('button', { name: 'Create group' }).count()).toBe(0);
    await made.getByLabel('Stream', { exact: true }).fill('orders');
    await made.getByRole('button', { name: 'Create group' }).waitFor();
    expect(await made.getByLabel('Name of the group').inputValue()).toBe('everything');
  });

  test('what consumers have parked is looked at, and replayed up to a number, and all of it', async () => {
    await parked(ui, 'jobs', 'workers', 5, 3);
    const page = await ui.open('/subscriptions');
    await page.getByRole('row', { name: /workers.*jobs.*3$/ }).waitFor();
    await page.getByRole('link', { name: 'workers' }).click();
    await page.getByRole('tab', { name: 'Parked (3)' }).click();
    const rows = page.getByRole('table', { name: 'Parked messages' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(4);
    await rows.nth(1).click();
    const message = page.getByRole('dialog', { name: 'Parked message 2' });
    await message.getByText("Client explicitly NAK'ed message.").waitFor();
    await message.getByText('job-made').waitFor();
    // A number that no double holds, and text that is no markup.
    await message.getByText('12345678901234567890').waitFor();
    await message.getByText(HOSTILE).waitFor();
    await page.keyboard.press('Escape');

    await page.getByRole('button', { name: 'Replay parked' }).click();
    const replay = page.getByRole('dialog', { name: 'Replay parked messages' });
    await replay.getByLabel('Which').selectOption('some');
    await replay.getByLabel('Below number').fill('2');
    await replay.getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('tab', { name: 'Parked (1)' }).waitFor();
    expect((await info('jobs', 'workers')).parkedMessageCount).toBe(1);
    // They are sent again, and go from the list when a consumer is done with them.
    await expect.poll(() => page.getByText('being sent again').count()).toBe(2);
    expect(await done(ui, 'jobs', 'workers', 2)).toEqual(['job-made', 'job-made']);
    await expect.poll(() => rows.count()).toBe(2);

    await page.getByRole('button', { name: 'Replay parked' }).click();
    await replay.getByLabel('Which').selectOption('all');
    await replay.getByRole('button', { name: 'Replay' }).click();
    await expect.poll(async () => (await info('jobs', 'workers')).parkedMessageCount).toBe(0);
    expect(await done(ui, 'jobs', 'workers', 1)).toEqual(['job-made']);
    await sees(page, 'Nothing is parked');
  });

  test('of many parked messages each is listed once, the newest first and older ones when they are asked for', async () => {
    await parked(ui, 'heaps', 'sorters', 53, 53);
    const page = await ui.open('/subscriptions/heaps/sorters?tab=parked');
    const numbers = () =>
      page.getByRole('table', { name: 'Parked messages' }).locator('tbody td:first-child').allInnerTexts();
    await expect.poll(numbers).toHaveLength(50);
    await page.getByRole('button', { name: 'Older than number 3' }).click();
    await expect.poll(numbers).toEqual(Array.from({ length: 53 }, (_, n) => String(52 - n)));
    expect(await page.getByRole('button', { name: /^Older than/ }).count()).toBe(0);
  });

  test('a group is reset in the page, and its consumers get all again', async () => {
    await parked(ui, 'letters', 'readers', 3, 0);
    await expect.poll(() => titles('letters', 'readers')).toEqual([]);
    const page = await ui.open('/subscriptions/letters/readers');
    await page.getByRole('button', { name: 'More for this group' }).click();
    await page.getByRole('menuitem', { name: 'Reset' }).click();
    const reset = page.getByRole('dialog', { name: 'Reset readers' });
    await reset.getByLabel('Start at').selectOption('place');
    await reset.getByLabel('Event number').fill('1');
    await reset.getByRole('button', { name: 'Reset' }).click();
    await reset.waitFor({ state: 'hidden' });
    await expect.poll(() => titles('letters', 'readers')).toEqual(['1@letters', '2@letters']);
  });

  test('a group that comes and goes beside the page is seen to; names are text, whatever they hold', async () => {
    ui.allow(/status of 404/);
    const page = await ui.open('/subscriptions');
    await page.getByRole('table', { name: 'Groups' }).waitFor();
    expect((await ui.ask('PUT', pathOf('a/b %41', HOSTILE), {})).status).toBe(201);
    await page.getByRole('link', { name: HOSTILE }).click();
    await page.getByRole('heading', { name: HOSTILE }).waitFor();
    await ui.ask('DELETE', pathOf('a/b %41', HOSTILE));
    await sees(page, 'There is no such group');
  });

  test('the chart of a group begins with what the node kept, for everybody who may see the group', async () => {
    await ui.ask('POST', '/users', { loginName: 'looker', fullName: 'Looker', groups: [], password: PASSWORD });
    await ui.ask('PUT', pathOf('past/of', 'a group'), {});
    const page = await ui.open('/subscriptions', { user: 'looker' });
    await withPast(page, `**${pathOf('past/of', 'a group')}/history`, []);
    await page.goto(`${ui.url}/ui${pathOf('past/of', 'a group')}`);
    const sent = () => chartTable(page, 'Messages sent').innerText();
    await expect.poll(sent).toMatch(/Sent\s.*3\.3k\/s/i);
    expect(await sent()).not.toMatch(/7\.7k/i);
    await page.getByRole('radio', { name: '24 hours' }).click();
    await expect.poll(sent).toMatch(/Sent\s+3\.3k\/s\s+3\.3k\/s\s+7\.7k\/s/i);
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('who may read but not change finds no way to', async () => {
    await ui.ask('POST', '/users', { loginName: 'reader', fullName: 'Reader', groups: [], password: PASSWORD });
    await ui.ask('PUT', pathOf('seen', 'by-reader'), {});
    const page = await ui.open('/subscriptions/seen/by-reader', { user: 'reader' });
    await page.getByRole('heading', { name: 'by-reader' }).waitFor();
    await sees(page, 'No consumers connected');
    expect(await page.getByRole('button', { name: /settings|Replay|More for/ }).count()).toBe(0);
  });

  test.each(SIZE_NAMES)('nothing is wrong with the views on a %s', async (size) => {
    await parked(ui, 'looks', 'lookers', 3, 2);
    expect(await ui.faults('/subscriptions', 'text=lookers', { size })).toEqual([]);
    expect(
      await ui.faults('/subscriptions?new', 'dialog', { size }, (page) =>
        page
          .getByLabel('Stream', { exact: true })
          .fill('$all')
          .then(() => page.getByLabel('make-group.mjs', { exact: true }).waitFor()),
      ),
    ).toEqual([]);
    expect(await ui.faults(pathOf('looks', 'lookers'), 'text=Checkpoint', { size })).toEqual([]);
    expect(await ui.faults(`${pathOf('looks', 'lookers')}?tab=parked`, 'text=job-made', { size })).toEqual([]);
    expect(
      await ui.faults(pathOf('looks', 'lookers'), 'text=Checkpoint', { size }, (page) => dialog(page, 'Edit settings')),
    ).toEqual([]);
  });
});

atNode(
  'subscriptions of a node without security',
  (ui) => {
    test('the program that is shown makes a group of $all, which is deleted in the page', () =>
      withAllGroup(ui, 'every "event"', null, async (program) => {
        await ran(process.execPath, ['--input-type=module', '--eval', program]);
      }));
  },
  ['--insecure'],
);

atCluster('subscriptions of a cluster', (ui, cluster) => {
  test('a member that does not lead has the history of a group from the leader', async () => {
    const follower = cluster().members.find(({ url }) => new URL(url).port !== new URL(ui.url).port)!;
    const { request } = await ui.open('/subscriptions', { user: ADMIN });
    const headers = { authorization: `Basic ${Buffer.from('admin:changeit').toString('base64')}` };
    const path = pathOf('led', 'elsewhere');
    expect((await request.put(ui.url + path, { headers, data: {} })).status()).toBe(201);
    const sinceAt = async (url: string) =>
      (
        (await (await request.get(`${url.replace('http:', 'https:')}${path}/history`, { headers })).json()) as {
          since: string;
        }
      ).since;
    // Each member has begun at a moment of its own.
    expect(await sinceAt(follower.url)).toBe(await sinceAt(ui.url));
    expect((await request.delete(ui.url + path, { headers })).status()).toBe(200);
  });

  test('the program that is shown makes a group of $all, with TLS and a password', () =>
    withAllGroup(ui, 'everything', ADMIN, async (program) => {
      const [, authority] = /(tlsCaFile=[^&]+)/.exec(cluster().connectionString('kurrentdb', 'leader', false))!;
      const { host } = new URL(ui.url);
      await ran(process.execPath, [
        '--input-type=module',
        '--eval',
        program.replace(`admin:PASSWORD@${host}`, `admin:changeit@${host}?${authority}`),
      ]);
    }));
});

/** Makes a group of `$all` by the program that the page shows, and deletes it in the page. */
async function withAllGroup(
  ui: Ui,
  name: string,
  user: string | null,
  run: (program: string) => Promise<void>,
): Promise<void> {
  // A group may be asked for while it is being deleted.
  ui.allow(/status of 404/);
  const page = await ui.open('/subscriptions', { user });
  const made = await askedForAll(page, name);
  expect(await made.getByText('This node would refuse the call').count()).toBe(0);
  await run(await made.getByLabel('make-group.mjs', { exact: true }).innerText());
  await made.getByRole('button', { name: 'Close' }).last().click();
  await page.getByRole('link', { name }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await sees(page, 'the whole log');
  await page.getByRole('button', { name: 'More for this group' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  const question = page.getByRole('dialog', { name: 'Delete this group' });
  await question.getByRole('textbox').fill(name);
  await question.getByRole('button', { name: 'Delete group' }).click();
  await sees(page, 'No groups yet');
}

/** The dialog for a new group, with `$all` as its stream. */
async function askedForAll(page: Page, name: string): Promise<Locator> {
  await page.getByRole('button', { name: 'New group' }).first().click();
  const made = page.getByRole('dialog', { name: 'New group' });
  await made.getByLabel('Stream', { exact: true }).fill('$all');
  await made.getByLabel('Name of the group').fill(name);
  await made.getByText('A group of $all is created over gRPC').waitFor();
  return made;
}

async function dialog(page: Page, button: string): Promise<void> {
  await page.getByRole('button', { name: button, exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).waitFor();
}

function pathOf(stream: string, group: string): string {
  return `/subscriptions/${encodeURIComponent(stream)}/${encodeURIComponent(group)}`;
}

/** Takes so many messages as a consumer, and acknowledges them; their types. */
async function done(ui: Ui, stream: string, group: string, count: number): Promise<readonly string[]> {
  const taken = await takenOf(ui, stream, group, count);
  await ui.ask('POST', `${pathOf(stream, group)}/ack?ids=${taken.map(({ id }) => id).join(',')}`);
  return taken.map(({ type }) => type);
}

interface Message {
  /** By which it is answered: not that of its event where it was replayed. */
  readonly id: string;
  readonly type: string;
}

async function takenOf(ui: Ui, stream: string, group: string, count: number): Promise<readonly Message[]> {
  const taken: Message[] = [];
  await expect
    .poll(async () => {
      const { entries } = (await (await ui.ask('GET', `${pathOf(stream, group)}/20?embed=rich`)).json()) as {
        entries: { eventType: string; links: { uri: string; relation: string }[] }[];
      };
      return taken.push(
        ...entries.map(({ eventType, links }) => ({
          id: links
            .find(({ relation }) => relation === 'ack')!
            .uri.split('/')
            .at(-1)!,
          type: eventType,
        })),
      );
    })
    .toBe(count);
  return taken;
}

/** A group over a stream with so many events, of which a consumer has parked some and acknowledged the others. */
async function parked(ui: Ui, stream: string, group: string, events: number, count: number): Promise<void> {
  if ((await ui.ask('PUT', pathOf(stream, group), { minCheckPointCount: 1, maxCheckPointCount: 1 })).status !== 201)
    return;
  const body = Array.from({ length: events }, () => ({
    eventId: crypto.randomUUID(),
    eventType: 'job-made',
    data: { text: HOSTILE, exact: 0 },
  }));
  // Written as text: the number is to arrive with all its digits.
  const text = JSON.stringify(body).replaceAll('"exact":0', '"exact":12345678901234567890');
  await fetch(`${ui.url}/streams/${stream}`, {
    method: 'POST',
    headers: { 'content-type': EVENTS, authorization: `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}` },
    body: text,
  });
  const ids = (await takenOf(ui, stream, group, events)).map(({ id }) => id);
  if (count > 0) await ui.ask('POST', `${pathOf(stream, group)}/nack?action=park&ids=${ids.slice(0, count).join(',')}`);
  if (count < events) await ui.ask('POST', `${pathOf(stream, group)}/ack?ids=${ids.slice(count).join(',')}`);
  await expect
    .poll(
      async () => ((await (await ui.ask('GET', `${pathOf(stream, group)}/info`)).json()) as Info).parkedMessageCount,
    )
    .toBe(count);
}
