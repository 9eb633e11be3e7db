import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { atNode, SIZE_NAMES, sees } from './kit.ts';
import type { Ui } from './kit.ts';
import { filler } from './streams-filler.ts';

/** Names that would break a page which took them for anything else than text. */
const HOSTILE = [
  '<script>window.__hit = 1</script>',
  '<img src=x onerror="window.__hit=1">',
  'a/b/c',
  'a%2Fb',
  '..%2f..',
  '...',
  '../etc/passwd',
  'n'.repeat(1_000),
  'bird 🦜',
  'one?two#three&four',
  '\'"`--',
  'a+b c',
];
/** By how much a page is wider than its window. */
const SIDEWAYS = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
const RIGHT_TO_LEFT = 'evil\u202egnp.exe';

async function jump(page: Page, number: number): Promise<void> {
  await page.getByLabel('Go to event number').fill(String(number));
  await page.getByLabel('Go to event number').press('Enter');
}

function rows(page: Page, label: string | RegExp) {
  return page.getByRole('table', { name: label }).locator('tbody tr[aria-rowindex]');
}

async function numbers(page: Page, label: string | RegExp): Promise<string[]> {
  return rows(page, label).locator('td:first-child').allInnerTexts();
}

atNode('streams', (ui: Ui) => {
  const { append, appendRaw, setMetadata, createUser } = filler(ui);

  test('a node that holds no streams says what to do, and the first event leads to its stream', async () => {
    const page = await ui.open('/streams');
    await sees(page, 'There are no streams yet');
    // One button leads on, not two.
    expect(
      await page
        .getByRole('main')
        .getByRole('button', { name: /Append/ })
        .count(),
    ).toBe(1);
    await page.getByRole('button', { name: 'Append an event' }).click();
    const dialog = page.getByRole('dialog', { name: 'Append an event' });
    await dialog.getByLabel('Stream').fill('first/of all');
    await dialog.getByLabel('Event type').fill('begün');
    await dialog.getByLabel('Data', { exact: false }).last().fill('');
    await dialog.locator('textarea[name=data]').fill('{"n": 12345678901234567890}');
    await dialog.getByRole('button', { name: 'Append' }).click();
    await rows(page, 'Events of first/of all').getByText('begün').waitFor();
    expect(new URL(page.url()).pathname).toBe('/ui/streams/first%2Fof%20all');
    // Byte for byte.
    const stored = await ui.ask('GET', '/streams/first%2Fof%20all/0', undefined, {
      accept: 'application/octet-stream',
    });
    expect(await stored.text()).toBe('{"n": 12345678901234567890}');
  });

  test('what was written lately and created lately, what a name holds, and system streams when they are asked for', async () => {
    await append('billing-1', [{ n: 1 }]);
    await append('billing-2', [{ n: 1 }]);
    await append('billing-1', [{ n: 2 }]);
    const page = await ui.open('/streams');
    const names = () => rows(page, 'Streams').locator('td:first-child').allInnerTexts();
    await expect.poll(async () => (await names()).slice(0, 2)).toEqual(['billing-1', 'billing-2']);
    await page.getByRole('button', { name: 'Recently created' }).click();
    await expect.poll(async () => (await names()).slice(0, 2)).toEqual(['billing-2', 'billing-1']);
    await page.getByLabel('Search by name').fill('ING-2');
    await expect.poll(names).toEqual(['billing-2']);
    await sees(page, /1 stream\s*the whole log was searched/);
    await page.getByLabel('Search by name').fill('no such thing');
    await sees(page, 'No stream name matches');
    await page.getByLabel('Search by name').fill('$users');
    await sees(page, 'No stream name matches');
    await page.getByLabel('System streams').check();
    await expect.poll(async () => (await names()).some((name) => name.startsWith('$users'))).toBe(true);
    // What was written since is asked for.
    await page.goto(`${ui.url}/ui/streams`);
    await rows(page, 'Streams').first().waitFor();
    await append('billing-3', [{ n: 1 }]);
    await page.getByRole('button', { name: 'Check for new streams' }).click();
    await expect.poll(async () => (await names())[0]).toBe('billing-3');
    // One search, which opens the stream of the very name, too.
    expect(await page.getByRole('main').locator('input[type=search], input[type=text]').count()).toBe(1);
    await page.getByLabel('Search by name').fill('billing-2');
    await page.getByRole('link', { name: 'Open by this name' }).click();
    await page.getByRole('table', { name: 'Events of billing-2' }).waitFor();
  });

  test('a stream of an index, which HTTP does not have, is none that an append would create', async () => {
    ui.allow(/status of 404/);
    const page = await ui.open('/streams/%24idx-ce-billing');
    await sees(page, 'The streams of indexes are read over gRPC');
    expect(await page.getByRole('button', { name: 'Append', exact: true }).count()).toBe(0);
  });

  test('Go to finds the streams that the search finds', async () => {
    await append('invoices-north', [{ n: 1 }]);
    await append('invoices-south', [{ n: 1 }]);
    const page = await ui.open('/options');
    await page.getByRole('heading', { level: 1, name: 'Options' }).waitFor();
    await page.keyboard.press('Control+K');
    const palette = page.getByRole('dialog', { name: 'Go to' });
    await palette.getByRole('combobox').fill('OICES-S');
    await palette.getByRole('option', { name: 'invoices-south Stream' }).waitFor();
    expect(await palette.getByRole('option', { name: /north/ }).count()).toBe(0);
    await palette.getByRole('option', { name: 'Search in Streams' }).click();
    await expect
      .poll(() => rows(page, 'Streams').locator('td:first-child').allInnerTexts())
      .toEqual(['invoices-south']);
    await page.keyboard.press('Control+K');
    await palette.getByRole('combobox').fill('$us');
    await palette.getByRole('option', { name: '$users Stream' }).waitFor();
    await palette.getByRole('combobox').fill('invoices-north');
    await palette.getByRole('option', { name: 'invoices-north Stream' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('table', { name: 'Events of invoices-north' }).waitFor();
  });

  test('a stream is followed, paused, paged by number, and an event of it found', async () => {
    await append(
      'ticks',
      Array.from({ length: 130 }, (_, n) => ({ n })),
    );
    const page = await ui.open('/streams/ticks');
    const label = 'Events of ticks';
    await expect.poll(async () => (await numbers(page, label)).length).toBe(50);
    await sees(page, /^live$/);
    await append('ticks', [{ n: 'the newest' }]);
    await rows(page, label).getByText('the newest').waitFor();
    expect((await numbers(page, label))[0]).toBe('130');
    expect(await rows(page, label).first().getAttribute('class')).toContain('new');

    await page.getByRole('button', { name: 'Following' }).click();
    await page.getByRole('button', { name: 'Follow', exact: true }).waitFor();
    const other = await ui.open('/streams/ticks');
    await rows(other, label).getByText('the newest').waitFor();
    await append('ticks', [{ n: 'while paused' }]);
    await rows(other, label).getByText('while paused').waitFor();
    // Paused it stays as it is, while others see more; following goes on where it was.
    expect((await numbers(page, label))[0]).toBe('130');
    await page.getByRole('button', { name: 'Follow', exact: true }).click();
    await rows(page, label).getByText('while paused').waitFor();

    await page.getByRole('button', { name: 'Older', exact: true }).click();
    await expect.poll(async () => (await numbers(page, label))[0]).toBe('79');
    await page.getByRole('button', { name: 'Older', exact: true }).click();
    await expect.poll(() => numbers(page, label)).toEqual(Array.from({ length: 30 }, (_, i) => String(29 - i)));
    await page.getByRole('button', { name: 'Newer', exact: true }).click();
    await expect.poll(async () => (await numbers(page, label))[0]).toBe('79');
    await page.getByRole('button', { name: 'Oldest' }).click();
    await expect.poll(async () => (await numbers(page, label)).at(-1)).toBe('0');
    await jump(page, 42);
    await page.locator('tr.chosen').getByRole('link', { name: '42' }).waitFor();
    await jump(page, 9_000);
    await sees(page, 'There is no event 9,000: the one before it is 131.');
    await page.getByRole('button', { name: 'Newest' }).click();
    await expect.poll(async () => (await numbers(page, label))[0]).toBe('131');

    // Where older ones are past the retention no arrow leads to them.
    await setMetadata('ticks', '{"$maxCount":3}');
    const few = await ui.open('/streams/ticks');
    await expect.poll(() => numbers(few, label)).toEqual(['131', '130', '129']);
    expect(await few.getByRole('button', { name: 'Older', exact: true }).isDisabled()).toBe(true);
    await setMetadata('ticks', '{}');

    // By keyboard alone: down a row, in, and on to the next.
    await rows(page, label).first().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /Event 130/ }).waitFor();
    // What it shows is asked for when it listens to keys.
    await page.locator('h1 .type-mark').waitFor();
    await page.keyboard.press('ArrowLeft');
    await page.getByRole('heading', { name: /Event 129/ }).waitFor();
  });

  test('a stream that is not there yet appears with its first event', async () => {
    ui.allow(/status of 404/);
    const page = await ui.open('/streams/to-come');
    await sees(page, 'There is no such stream');
    await append('to-come', [{ here: true }]);
    await expect.poll(() => numbers(page, 'Events of to-come')).toEqual(['0']);
  });

  test('an event shows its data, metadata, what it links to, and what belongs together', async () => {
    // Whether a projection gathers what belongs together is asked for by its name.
    ui.allow(/status of 404/);
    const correlation = '11111111-2222-4333-8444-555555555555';
    const [cause] = await append('payments', [{ amount: 1 }], { metadata: { $correlationId: correlation } });
    await append('parcels', [{ sent: true }], { metadata: { $correlationId: correlation, $causationId: cause } });
    await appendRaw('gathered', '$>', '0@parcels');
    await appendRaw('gathered', '$>', '77@parcels');
    const page = await ui.open('/streams/parcels/0');
    await page.locator('.json').first().getByText('sent').waitFor();
    await page.getByRole('button', { name: 'Search all streams' }).click();
    const cited = page.getByRole('list', { name: 'Related events found' });
    await cited.getByText('cause').waitFor();
    await cited.getByRole('link').first().click();
    await page.getByRole('heading', { name: /Event 0/ }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/ui/streams/payments/0');

    await page.goto(`${ui.url}/ui/streams/gathered`);
    await rows(page, 'Events of gathered').getByText('its target is gone').waitFor();
    expect(await numbers(page, 'Events of gathered')).toEqual(['1', '0']);
    await rows(page, 'Events of gathered').getByRole('link', { name: '0@parcels' }).waitFor();
    await page.goto(`${ui.url}/ui/streams/gathered/0`);
    await sees(page, /^This is a link\. Shown is its target:/);
    await page.locator('.json').first().getByText('sent').waitFor();
    await page.getByRole('button', { name: 'Show the link' }).click();
    await sees(page, 'This is a link to');
    await page.getByRole('link', { name: 'event 0 of parcels' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/ui/streams/parcels/0');
  });

  test('an event is redacted by administrators alone, after a look at what would go', async () => {
    // Whether a projection gathers what belongs together is asked for by its name.
    ui.allow(/status of 404/);
    await append('cards', [{ card: 'of Ann' }], { metadata: { who: 'Ann', $correlationId: 'c-1', $causationId: 'x' } });
    await createUser('looker', ['$ops']);
    const page = await ui.open('/streams/cards/0');
    await page.getByRole('button', { name: 'Redact…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Redact the event' });
    await dialog.getByLabel('Reason').fill('request 4711');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText(/ of which \$correlationId, \$causationId stay\./).waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.getByLabel('Remove the metadata $causationId, too').check();
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText(/Event 0 of cards, ticked: .* of which \$correlationId stays\./).waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
    expect(await dialog.getByLabel('Reason').inputValue()).toBe('request 4711');
    expect(await (await ui.ask('GET', '/streams/cards/0', undefined, { accept: 'application/json' })).text()).toContain(
      'of Ann',
    );
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByRole('button', { name: 'Redact', exact: true }).click();
    await sees(page, 'The data was redacted.');
    await sees(page, /until the next scavenge/);
    expect(await page.getByRole('main').innerText()).toContain('c-1');
    expect(await page.getByRole('main').innerText()).not.toMatch(/Ann|causationId/);
    await append('cards', [{ card: 'of Bo' }]);
    const other = await ui.open('/streams/cards/1', { user: 'looker', password: 'a Password of tests 2' });
    await other.locator('.json').first().getByText('of Bo').waitFor();
    expect(await other.getByRole('button', { name: 'Redact…' }).count()).toBe(0);
    expect(await other.getByRole('button', { name: /^Redact/ }).count()).toBe(0);

    // In a list, on the row.
    const list = await ui.open('/streams/cards');
    const row = rows(list, 'Events of cards').filter({ hasText: 'of Bo' });
    await row.hover();
    await row.getByRole('button', { name: 'Redact event 1…' }).click();
    const asked = list.getByRole('dialog', { name: 'Redact the event' });
    await asked.getByLabel('Reason').fill('request 4712');
    await asked.getByRole('button', { name: 'Preview' }).click();
    await asked.getByText(/Event 1 of cards/).waitFor();
    await asked.getByRole('button', { name: 'Redact', exact: true }).click();
    await expect
      .poll(() =>
        rows(list, 'Events of cards').getByText('redacted', { exact: true }).filter({ visible: true }).count(),
      )
      .toBe(2);
    expect(
      await list
        .getByRole('table')
        .getByRole('button', { name: /^Redact/ })
        .count(),
    ).toBe(0);
    const looked = await ui.open('/streams/cards', { user: 'looker', password: 'a Password of tests 2' });
    await rows(looked, 'Events of cards').first().waitFor();
    expect(await looked.getByRole('button', { name: /^Redact/ }).count()).toBe(0);
    const marks = await ui.ask('GET', '/streams/%24redactions', undefined, { accept: 'application/x-ndjson' });
    expect(await marks.text()).toMatch(/request 4711.*causationId/);
  });

  test('an event is shown its cause by their correlation, all of whose events are one link away', async () => {
    const correlation = '99999999-2222-4333-8444-555555555555';
    const [cause] = await append('steps', [{ step: 1 }, { step: 2 }], { metadata: { $correlationId: correlation } });
    await append('steps', [{ step: 3 }], { metadata: { $correlationId: correlation, $causationId: cause } });
    const page = await ui.open('/streams/steps/2');
    await page.getByRole('list', { name: 'Related events found' }).getByText('cause').waitFor();
    await page.getByRole('link', { name: 'All its events' }).click();
    await expect.poll(() => numbers(page, 'Events of all streams')).toEqual(['2', '1', '0']);
    expect(new URL(page.url()).search).toBe(`?correlation=${correlation}`);
  });

  test('data are what they are: text, bytes, what claims to be JSON, and numbers with all of their digits', async () => {
    await appendRaw('odd', 'text', 'plain\ntext <b>bold</b>');
    await appendRaw('odd', 'bytes', Buffer.from([0, 255, 254, 65, 66]));
    await appendRaw('odd', 'broken', '{"a": 1, oops <script>window.__hit = 1</script>', 'application/json');
    await appendRaw(
      'odd',
      'numbers',
      '{"n":123456789012345678901234567890,"f":0.1000000000000000055511151231257827,"e":1e400}',
      'application/json',
    );
    await appendRaw('odd', 'deep', `${'['.repeat(10_000)}17${']'.repeat(10_000)}`, 'application/json');
    await appendRaw('odd', 'none', '', 'application/json');
    const page = await ui.open('/streams/odd/0');
    await page.locator('pre').getByText('text <b>bold</b>').waitFor();
    await page.getByRole('button', { name: 'Bytes' }).click();
    await page.locator('pre.hex').getByText('70 6c 61 69 6e').waitFor();
    await page.goto(`${ui.url}/ui/streams/odd/1`);
    await page.locator('pre.hex').getByText('000000 00 ff fe 41 42 ···AB').waitFor();
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Raw' }).click(),
    ]);
    expect([...(await readFile(await saved.path()))]).toEqual([0, 255, 254, 65, 66]);
    await page.goto(`${ui.url}/ui/streams/odd/2`);
    await sees(page, 'It was written as JSON but is not valid JSON.');
    await page.locator('pre').getByText('oops <script>').waitFor();
    await page.goto(`${ui.url}/ui/streams/odd/3`);
    for (const digits of ['123456789012345678901234567890', '0.1000000000000000055511151231257827', '1e400'])
      await page.locator('.json-number').getByText(digits, { exact: true }).waitFor();
    await page.goto(`${ui.url}/ui/streams/odd/4`);
    await page.locator('.json-fold').first().waitFor();
    for (let depth = 2; depth < 8; depth++) await page.locator('.json-fold[aria-expanded=false]').last().click();
    expect(await page.locator('.json-fold').count()).toBeGreaterThan(7);
    await page.goto(`${ui.url}/ui/streams/odd/5`);
    await sees(page, 'None.');
    await page.goto(`${ui.url}/ui/streams/odd/6`).catch(() => {});
    await sees(page, 'There is no such event');
    expect(await page.evaluate('window.__hit')).toBeUndefined();
  });

  test('metadata are changed in words, keys of others stay, and what somebody else wrote meanwhile is not overwritten', async () => {
    ui.allow(/status of 400/);
    await append(
      'kept',
      Array.from({ length: 60 }, (_, n) => ({ n })),
    );
    await setMetadata('kept', '{"owner":{"id":123456789012345678901},"$acl":{"$r":["kim","$ops"]}}');
    const page = await ui.open('/streams/kept?tab=metadata');
    await sees(page, 'It keeps all its events.');
    await page.getByLabel('Keep at most').fill('10');
    await page.getByLabel('Keep for').fill('7');
    await page.getByLabel('Unit').selectOption('hours');
    await page.getByLabel('Delete', { exact: true }).selectOption('Administrators only');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await sees(page, 'It keeps the last 10 events.');
    await sees(page, 'It keeps events for 7 hours.');
    const read = async () =>
      (await ui.ask('GET', '/streams/kept/metadata', undefined, { accept: 'application/octet-stream' })).text();
    const text = await read();
    expect(text).toContain('123456789012345678901');
    expect(JSON.parse(text)).toMatchObject({ $maxCount: 10, $maxAge: 25_200, $acl: { $r: ['kim', '$ops'], $d: [] } });
    await page.getByRole('button', { name: 'What will the next scavenge remove?' }).click();
    await sees(page, /The next scavenge removes 50 events/);
    await sees(page, /10 events stay/);

    await page.getByLabel('Keep at most').fill('20');
    await setMetadata('kept', '{"$maxCount":30}');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await sees(page, 'The metadata was changed by someone else');
    expect(JSON.parse(await read())).toEqual({ $maxCount: 30 });
    await page.getByRole('button', { name: 'Take theirs' }).click();
    await expect.poll(() => page.getByLabel('Keep at most').inputValue()).toBe('30');
    await page.getByLabel('Custom keys').fill('no object');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await sees(page, /Enter a JSON object/);
    await page.getByLabel('Custom keys').fill('');
    await page.getByLabel('Keep at most').fill('');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await sees(page, 'It keeps all its events.');
    expect(JSON.parse(await read())).toEqual({});
  });

  test('metadata of a deleted stream are changed, and it stays deleted', async () => {
    ui.allow(/status of 404/);
    await append('put away', [{ n: 0 }]);
    await ui.ask('DELETE', '/streams/put%20away');
    const page = await ui.open('/streams/put%20away?tab=metadata');
    await sees(page, /It was deleted: everything up to now is truncated/);
    await page.getByLabel('Keep at most').fill('5');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const read = async () =>
      (await ui.ask('GET', '/streams/put%20away/metadata', undefined, { accept: 'application/octet-stream' })).text();
    await expect.poll(read).toContain('"$maxCount": 5');
    expect(await read()).toContain('"$tb": 9223372036854775807');
    expect((await ui.ask('GET', '/streams/put%20away')).status).toBe(404);
  });

  test('an event is appended with metadata at an expected version, and a wrong one is told', async () => {
    ui.allow(/status of 400/);
    await append('orders', [{ n: 0 }]);
    const page = await ui.open('/streams/orders');
    await page.getByRole('button', { name: 'Append', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Append an event' });
    await dialog.getByLabel('Event type').fill('noted');
    await dialog.locator('textarea[name=data]').fill('{oops');
    await dialog.locator('textarea[name=metadata]').fill('{"by": "kim"}');
    await dialog.getByLabel('Expected version').selectOption('exact');
    await dialog.getByLabel('Last event number').fill('7');
    await dialog.getByRole('button', { name: 'Append' }).click();
    await sees(page, /This is not valid JSON\./);
    await dialog.locator('textarea[name=data]').fill('{"text": "<b>"}');
    await dialog.getByRole('button', { name: 'Append' }).click();
    await sees(page, /expected event 7 to be the last, but its last event is 0/);
    await dialog.getByLabel('Last event number').fill('0');
    await dialog.getByRole('button', { name: 'Append' }).click();
    await rows(page, 'Events of orders').getByText('noted').waitFor();
    // What is said in passing lies in front of the next dialog, and is closed without it.
    await page.getByRole('button', { name: 'Append', exact: true }).click();
    const messages = dialog.getByRole('log', { name: 'Messages' });
    await messages.getByText('Event 1 was appended').waitFor();
    await messages.getByRole('button', { name: 'Close' }).click();
    await messages.getByText('Event 1 was appended').waitFor({ state: 'detached' });
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    const stored = (await (
      await ui.ask('GET', '/streams/orders/1', undefined, { accept: 'application/vnd.eventstore.event+json' })
    ).json()) as Record<string, unknown>;
    expect(stored).toMatchObject({ eventType: 'noted', data: { text: '<b>' }, metadata: { by: 'kim' } });
  });

  test('both ways of deleting want the name, and differ as they say', async () => {
    ui.allow(/status of 4(04|10)/);
    for (const [stream, kind, status] of [
      ['away', 'Delete', 404],
      ['away for ever', 'Hard delete', 410],
    ] as const) {
      await append(stream, [{ n: 0 }]);
      const page = await ui.open(`/streams/${encodeURIComponent(stream)}`);
      await rows(page, `Events of ${stream}`).first().waitFor();
      await page.getByRole('button', { name: 'More for this stream' }).click();
      await page.getByRole('menuitem', { name: 'Delete…' }).click();
      const dialog = page.getByRole('dialog', { name: 'Delete the stream' });
      await dialog.getByRole('radio', { name: new RegExp(`^${kind}(?! for)`) }).check();
      await dialog.getByLabel('Type the name of the stream to confirm').fill('awa');
      await dialog.getByRole('button', { name: kind, exact: true }).click();
      await sees(page, 'This does not match the stream name.');
      expect((await ui.ask('GET', `/streams/${encodeURIComponent(stream)}`)).status).toBe(200);
      await dialog.getByLabel('Type the name of the stream to confirm').fill(stream);
      await dialog.getByRole('button', { name: kind, exact: true }).click();
      await sees(page, kind === 'Delete' ? 'This stream is deleted' : 'This stream is hard-deleted');
      const mark = page.getByRole('heading', { level: 1 }).getByText(/^(hard-)?deleted$/);
      await expect.poll(() => mark.allInnerTexts()).toEqual([kind === 'Delete' ? 'deleted' : 'hard-deleted']);
      expect((await ui.ask('GET', `/streams/${encodeURIComponent(stream)}`)).status).toBe(status);
      if (kind !== 'Delete') {
        // Nothing can be done about it any more.
        expect(await page.getByRole('button', { name: 'Append', exact: true }).count()).toBe(0);
        // The list says the same.
        await page.goto(`${ui.url}/ui/streams?q=${encodeURIComponent(stream)}`);
        await rows(page, 'Streams').getByText('hard-deleted', { exact: true }).waitFor();
        continue;
      }
      await append(stream, [{ n: 'again' }]);
      await rows(page, `Events of ${stream}`).getByText('again').waitFor();
      await expect.poll(() => mark.count()).toBe(0);
    }
  });

  test('names, types and data of any kind are text, and their streams open', async () => {
    for (const name of [...HOSTILE, RIGHT_TO_LEFT])
      await append(name, [{ '<img src=x onerror="window.__hit=1">': '</script><script>window.__hit=1</script>' }], {
        type: '<b onclick="window.__hit=1">type</b>',
      });
    const page = await ui.open('/streams');
    await expect
      .poll(() => rows(page, 'Streams').locator('td:first-child').allInnerTexts())
      .toEqual(expect.arrayContaining([HOSTILE[0], HOSTILE[1], 'a/b/c', 'a%2Fb', '..%2f..', '../etc/passwd']));
    // What can't be seen and turns the text around is shown by its number.
    await rows(page, 'Streams').filter({ hasText: 'U+202E' }).waitFor();
    expect(await page.evaluate(SIDEWAYS)).toBe(0);
    for (const name of HOSTILE) {
      await page.goto(`${ui.url}/ui/streams`);
      await rows(page, 'Streams')
        .locator('a')
        .filter({ hasText: name.slice(0, 150) })
        .first()
        .click();
      await page.getByRole('table', { name: `Events of ${name}` }).waitFor();
      expect(decodeURIComponent(new URL(page.url()).pathname.slice('/ui/streams/'.length))).toBe(name);
      await rows(page, `Events of ${name}`).first().getByRole('link', { name: '0' }).click();
      await page.getByText('<b onclick="window.__hit=1">type</b>').first().waitFor();
      expect(await page.evaluate(SIDEWAYS)).toBe(0);
    }
    expect(await page.evaluate('window.__hit')).toBeUndefined();
  });

  test('who may not read is told why, and who may not list opens by name', async () => {
    ui.allow(/status of 403/);
    await createUser('kim', []);
    await createUser('olive', ['$ops']);
    await append('secret', [{ n: 0 }]);
    await setMetadata('secret', '{"$acl":{"$r":["pat"],"$w":["pat"],"$mw":["pat"]}}');
    const page = await ui.open('/streams', { user: 'kim', password: 'a Password of tests 2' });
    await sees(page, 'You may not list streams');
    expect(await page.getByRole('heading', { level: 1 }).allInnerTexts()).toEqual(['Streams']);
    await page.getByLabel('Stream name').fill('secret');
    await page.getByRole('button', { name: 'Open' }).click();
    await sees(page, 'You may not read this stream');
    await sees(page, /Its access list allows pat\./);
    await page.getByRole('tab', { name: 'Metadata and access' }).click();
    await page.getByLabel('Keep at most').fill('3');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page
      .locator('.form-error')
      .getByText(/kim may not/)
      .waitFor();
    expect(await page.getByRole('button', { name: 'Append', exact: true }).count()).toBe(0);

    // Where the list can't be read, the node is asked.
    await append('sealed', [{ n: 0 }]);
    await setMetadata('sealed', '{"$acl":{"$r":["kim"],"$w":["pat"],"$mr":["pat"]}}');
    const sealed = await ui.open('/streams/sealed', { user: 'kim', password: 'a Password of tests 2' });
    await sealed.getByRole('button', { name: 'Append', exact: true }).click();
    await sealed.getByRole('dialog').getByLabel('Event type').fill('tried');
    await sealed.getByRole('dialog').getByRole('button', { name: 'Append' }).click();
    await sealed
      .getByRole('dialog')
      .getByText(/kim may not/)
      .waitFor();

    const all = await ui.open('/all', { user: 'olive', password: 'a Password of tests 2' });
    await sees(all, 'You may not read all events');
    await sees(all, /under “Metadata and access” of the stream \$all/);
  });

  test('all events: the newest of all streams as they come, those of a prefix, and back', async () => {
    await append(
      'every-0',
      Array.from({ length: 60 }, (_, n) => ({ n })),
    );
    await append('every-1', [{ n: 0 }], { type: 'began' });
    const page = await ui.open('/all');
    const label = 'Events of all streams';
    await expect
      .poll(async () => (await rows(page, label).locator('td:nth-child(2)').allInnerTexts())[0])
      .toBe('every-1');
    await sees(page, /^live$/);
    await append('every-2', [{ n: 0 }], { type: 'began' });
    await expect
      .poll(async () => (await rows(page, label).locator('td:nth-child(2)').allInnerTexts())[0])
      .toBe('every-2');
    await page.getByLabel('Streams starting with').fill('every-1');
    await expect.poll(() => rows(page, label).locator('td:nth-child(2)').allInnerTexts()).toEqual(['every-1']);
    await page.getByLabel('Filter by').selectOption('Types');
    await page.getByLabel('Types starting with').fill('beg');
    await expect
      .poll(async () => new Set(await rows(page, label).locator('td:nth-child(3)').allInnerTexts()).has('began'))
      .toBe(true);
    await page.getByLabel('Types starting with').fill('');
    await page.getByLabel('System events').check();
    await expect.poll(() => rows(page, label).count()).toBe(50);
    const first = await rows(page, label).first().innerText();
    await page.getByRole('button', { name: 'Older', exact: true }).click();
    await expect.poll(async () => (await rows(page, label).first().innerText()) === first).toBe(false);
    await page.getByRole('button', { name: 'Newest' }).click();
    await expect
      .poll(async () => (await rows(page, label).locator('td:nth-child(2)').allInnerTexts()).includes('every-2'))
      .toBe(true);
  });

  test('all events: by conditions, which stand in the address, and to which each event leads', async () => {
    await append('deal-1', [{ n: 0 }], { type: 'agreed', metadata: { $tags: ['ann', 'big one'] } });
    await append('deal-2', [{ n: 0 }], { type: 'agreed', metadata: { $tags: ['ann'] } });
    await append('deal-2', [{ n: 1 }], { type: 'broken', metadata: { $tags: ['ann'] } });
    await append('fair-1', [{ n: 0 }], { type: 'agreed', metadata: { $tags: ['ann'] } });
    const page = await ui.open('/all');
    const label = 'Events of all streams';
    const found = async () =>
      (await rows(page, label).all()).length === 0
        ? []
        : rows(page, label).evaluateAll((all) =>
            all.map((one) =>
              [...one.children]
                .slice(0, 2)
                .map((cell) => cell.textContent)
                .join('@'),
            ),
          );
    const add = async (kind: string, value: string) => {
      await page.getByLabel('Find by').selectOption(kind);
      await page.getByRole('search').getByLabel(kind, { exact: true }).fill(value);
      await page.getByRole('button', { name: 'Add condition' }).click();
    };
    await add('Category', 'deal');
    await expect.poll(found).toEqual(['1@deal-2', '0@deal-2', '0@deal-1']);
    await add('Type', 'agreed');
    await expect.poll(found).toEqual(['0@deal-2', '0@deal-1']);
    await append('deal-3', [{ n: 0 }], { type: 'agreed' });
    await append('fair-1', [{ n: 0 }], { type: 'agreed' });
    await expect.poll(found).toEqual(['0@deal-3', '0@deal-2', '0@deal-1']);
    await add('Type', 'broken');
    await add('Tag', 'ann');
    await expect.poll(found).toEqual(['1@deal-2', '0@deal-2', '0@deal-1']);
    expect(new URL(page.url()).search).toBe('?category=deal&eventType=agreed&eventType=broken&tag=ann');
    await page.reload();
    await expect.poll(found).toEqual(['1@deal-2', '0@deal-2', '0@deal-1']);
    await page.getByRole('button', { name: 'Remove type agreed' }).click();
    await expect.poll(found).toEqual(['1@deal-2']);

    await page.goto(`${ui.url}/ui/streams/deal-1/0`);
    await page.getByRole('link', { name: 'big one' }).click();
    await expect.poll(found).toEqual(['0@deal-1']);
    await page.goBack();
    await page.getByRole('link', { name: 'deal', exact: true }).click();
    await expect.poll(found).toEqual(['0@deal-3', '1@deal-2', '0@deal-2', '0@deal-1']);

    // Whoever may read the streams needs no right to all of them.
    await createUser('finder', []);
    const theirs = await ui.open('/all?category=fair', { user: 'finder', password: 'a Password of tests 2' });
    await expect.poll(() => rows(theirs, label).count()).toBe(2);
  });

  test('all events: a page is full, however little of the log the node looks at for one answer', async () => {
    await append(
      'many',
      Array.from({ length: 120 }, (_, n) => ({ n })),
    );
    const page = await ui.open('/options');
    const asked: string[] = [];
    await page.route('**/filtered/*/*/*', async (route) => {
      const url = route.request().url();
      if (route.request().headers()['accept'] !== 'application/x-ndjson') asked.push(url);
      await route.continue({
        url: url.replace(/(backward|forward)\/50\b/, '$1/7').replace(/(backward|forward)\/4\d\b/, '$1/9'),
      });
    });
    await page.goto(`${ui.url}/ui/all`);
    const label = 'Events of all streams';
    await expect.poll(() => rows(page, label).count()).toBe(50);
    expect(asked.length).toBeGreaterThan(1);
    await page.getByRole('button', { name: 'Older', exact: true }).click();
    await expect.poll(async () => (await numbers(page, label))[0]).toBe('69');
    expect(await rows(page, label).count()).toBe(50);
    await page.getByRole('button', { name: 'Newer', exact: true }).click();
    await expect.poll(async () => (await numbers(page, label))[0]).toBe('119');
    expect(await rows(page, label).count()).toBe(50);
  });

  test('the buttons of the append dialog are in sight, however long it is', async () => {
    const page = await ui.open('/streams');
    for (const size of [
      { width: 1_280, height: 800 },
      { width: 390, height: 600 },
    ]) {
      await page.setViewportSize(size);
      await page.getByRole('main').getByRole('button', { name: 'Append', exact: true }).click();
      const dialog = page.getByRole('dialog', { name: 'Append an event' });
      const button = dialog.getByRole('button', { name: 'Append' });
      const { y, height } = (await button.boundingBox())!;
      const whole = (await dialog.boundingBox())!;
      expect(y + height).toBeLessThan(Math.min(size.height, whole.y + whole.height));
      // Nothing lies over it.
      await button.click({ trial: true });
      await page.keyboard.press('Escape');
    }
  });

  test.each(SIZE_NAMES)('axe finds nothing on a %s', async (size) => {
    await append('looked-at', [{ n: 1, text: 'some' }], { metadata: { $correlationId: 'c-1', $causationId: 'c-2' } });
    await setMetadata('looked-at', '{"$maxCount":50,"$acl":{"$r":["kim","$ops"]}}');
    for (const [path, ready] of [
      ['/streams', 'tbody tr'],
      ['/streams/looked-at', 'tbody tr'],
      ['/streams/looked-at?tab=metadata', '.access-field'],
      ['/streams/looked-at/0', '.json'],
      ['/all?category=looked&eventType=ticked', 'tbody tr'],
    ] as const) {
      expect(await ui.faults(path, ready, { size })).toEqual([]);
    }
    expect(
      await ui.faults('/streams/looked-at', 'tbody tr', { size }, async (opened) => {
        await opened.getByRole('button', { name: 'More for this stream' }).click();
        await opened.getByRole('menuitem', { name: 'Delete…' }).click();
        await opened
          .getByRole('dialog')
          .getByLabel(/Type the name/)
          .waitFor();
      }),
    ).toEqual([]);
    expect(
      await ui.faults('/streams/looked-at', 'tbody tr', { size }, async (opened) => {
        await opened.getByRole('button', { name: 'Append', exact: true }).click();
        await opened.getByRole('dialog').getByLabel('Event type').waitFor();
      }),
    ).toEqual([]);
  });
});

// A chunk has to have room for what is written at once.
atNode(
  'large streams',
  (ui) => {
    const { append, appendRaw } = filler(ui);

    test('events of 4 MiB neither freeze the page nor fill it', async () => {
      const large = `{"list":[${Array.from({ length: 40_000 }, (_, i) => `{"i":${i},"text":"${'x'.repeat(80)}"}`).join(',')}]}`;
      for (let i = 0; i < 3; i++) await appendRaw('large', 'large', large, 'application/json');
      const page = await ui.open('/streams/large/0');
      await page.locator('.json-fold').getByText('40,000 elements').waitFor();
      await page.locator('.json-fold').last().click();
      await page.getByRole('button', { name: /Show more of 40,000/ }).waitFor();
      expect(await page.locator('.json-node').count()).toBeLessThan(300);
      await page.goto(`${ui.url}/ui/streams/large`);
      await expect.poll(async () => (await numbers(page, 'Events of large')).length).toBe(3);
    });

    test('a stream of 100 000 events, and as many rows as a page has, scroll within bounds', async () => {
      for (let i = 0; i < 100; i++)
        await append(
          'long',
          Array.from({ length: 1_000 }, (_, n) => ({ n: i * 1_000 + n })),
        );
      const page = await ui.open('/streams/long?count=1000');
      const label = 'Events of long';
      await expect.poll(async () => (await numbers(page, label))[0]).toBe('99,999');
      await expect
        .poll(async () => {
          await page.evaluate("document.querySelector('.table-scroller').scrollTop = 1e9");
          return (await numbers(page, label)).at(-1);
        })
        .toBe('99,000');
      expect(await rows(page, label).count()).toBeLessThan(100);
      await jump(page, 50_000);
      await page.locator('tr.chosen').getByRole('link', { name: '50,000' }).waitFor();
      for (let at = 49_000; at > 40_000; at -= 1_000) {
        await page.getByRole('button', { name: 'Older', exact: true }).click();
        await expect.poll(async () => (await numbers(page, label))[0]).toBe(at.toLocaleString('en-US'));
      }
      expect(await rows(page, label).count()).toBeLessThan(100);
    });

    test('streams in thousands are found as far as somebody looks, and scroll within bounds', async () => {
      for (let i = 0; i < 1_500; i += 100)
        await Promise.all(Array.from({ length: 100 }, (_, k) => append(`many-${i + k}`, [{}])));
      const page = await ui.open('/streams?q=many-');
      await sees(page, /50 streams.* of the log searched/);
      await page.getByRole('button', { name: 'Find 500 more' }).click();
      await sees(page, /550 streams/);
      await page.getByRole('button', { name: 'Search all' }).click();
      await sees(page, /1,500 streams\s*the whole log was searched/);
      expect(await rows(page, 'Streams').count()).toBeLessThan(100);
      await rows(page, 'Streams').first().focus();
      await page.keyboard.press('End');
      await expect
        .poll(() =>
          page.evaluate(
            "document.activeElement.getAttribute('aria-rowindex') ?? document.activeElement.outerHTML.slice(0, 200)",
          ),
        )
        .toBe('1501');
      expect(await rows(page, 'Streams').count()).toBeLessThan(200);
    });

    test('a flood is followed by its newest events alone', async () => {
      await append('flood', [{ n: 'first' }]);
      const page = await ui.open('/streams/flood');
      await sees(page, /^live$/);
      await append(
        'flood',
        Array.from({ length: 5_000 }, (_, n) => ({ n })),
      );
      await expect.poll(async () => (await numbers(page, 'Events of flood'))[0]).toBe('5,000');
      await sees(page, 'Events arrive faster than they can be shown.');
      expect(await rows(page, 'Events of flood').count()).toBe(50);
    });
  },
  ['--chunk-size', '16MiB'],
);
