import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { atNode, chartTable, SIZE_NAMES, PASSWORD, sees, withPast } from './kit.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';
const SECRET = 'only we two know';

atNode(
  'webhooks',
  (ui) => {
    const settings = async (id: string) =>
      ((await (await ui.ask('GET', `/connectors/${id}/settings`)).json()) as { settings: Record<string, string> })
        .settings;
    const state = async (id: string) =>
      ((await (await ui.ask('GET', `/connectors/${id}`)).json()) as { state: string }).state;
    const streamOf = async (stream: string) =>
      (
        (await (await ui.ask('GET', `/streams/${stream}/head/backward/10?embed=body`)).json()) as {
          entries: { eventType: string; data: string }[];
        }
      ).entries;
    const make = async (id: string, script: string, more: Record<string, unknown> = {}) => {
      expect(
        (
          await ui.ask('POST', `/connectors/${id}`, {
            settings: {
              instanceTypeName: 'webhook-source',
              routingScript: Buffer.from(script).toString('base64'),
              ...more,
            },
          })
        ).status,
      ).toBe(200);
      expect((await ui.ask('POST', `/connectors/${id}/start`)).status).toBe(200);
    };
    /** As GitHub posts it. */
    const call = (id: string, body: string, secret: string, headers: Record<string, string> = {}) =>
      fetch(`${ui.url}/webhook/${id}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
          ...headers,
        },
        body,
      });

    test('a connector made in the page takes calls that are signed, and tells of others why they are refused', async () => {
      const page = await ui.open('/webhooks');
      await sees(page, 'No connectors yet');
      await page.getByRole('button', { name: 'New connector' }).first().click();
      await page.getByLabel('Id', { exact: true }).fill('no spaces');
      await type(
        page,
        'function route({ body, headers }) {\n  return { stream: "order-" + body.number, schema: headers["x-event"] };\n}',
      );
      await page.getByLabel('Signature').selectOption('GitHub');
      await page.getByRole('button', { name: 'Create connector' }).click();
      await page.getByText('Use 1 to 50 letters, digits, hyphens and underscores.').waitFor();
      await page.getByText('Enter the secret that the sender signs with.').waitFor();
      await page.getByLabel('Id', { exact: true }).fill('orders');
      await page.getByLabel('Name', { exact: false }).first().fill(HOSTILE);
      await page.getByLabel('Secret', { exact: true }).fill(SECRET);
      await page.getByLabel('Streams it may write to').fill('order-*');
      await page.getByRole('button', { name: 'Create connector' }).click();
      await page.getByRole('heading', { name: HOSTILE }).waitFor();
      await page.getByText(`${ui.url}/webhook/orders`, { exact: true }).first().waitFor();
      expect(await settings('orders')).toMatchObject({
        'signature:scheme': 'GitHub',
        'signature:secret': '********',
        'streams:0': 'order-*',
      });
      expect(await state('orders')).toBe('CONNECTOR_STATE_RUNNING');
      const list = await ui.open('/webhooks');
      await list
        .getByRole('row', { name: /orders/ })
        .getByText('0/s', { exact: true })
        .waitFor();

      expect((await call('orders', '{"number":7,"by":"Ann"}', SECRET, { 'x-event': 'order-placed' })).status).toBe(202);
      expect((await call('orders', '{"number":7}', 'another secret')).status).toBe(401);
      await expect
        .poll(async () => (await streamOf('order-7')).map(({ eventType }) => eventType))
        .toEqual(['order-placed']);
      const tile = (label: string) => page.locator('.stat').filter({ hasText: label });
      await expect.poll(() => tile('Accepted').locator('.stat-value').innerText()).toBe('1');
      await expect.poll(() => tile('Refused').locator('.stat-value').innerText()).toBe('1');
      await page.getByRole('tab', { name: 'Rejections' }).click();
      await page
        .getByRole('row', { name: /401.*signature-wrong.*Sender and connector have different secrets/ })
        .waitFor();
      // What comes while one looks.
      expect((await call('orders', 'no json', SECRET)).status).toBe(400);
      await page.getByRole('row', { name: /400.*The body is empty, not JSON/ }).click();
      await page.getByRole('dialog', { name: 'Refused call' }).getByText('x-hub-signature-256').waitFor();
    });

    test('the script is tried as it is typed: where the call would go, in which line it fails, on a payload of before; nothing is written', async () => {
      await make('tried', 'const route = ({ body }) => ({ stream: "tried-" + body.id });');
      await ui.ask('POST', '/webhook/tried', { id: 'before' });
      await expect.poll(async () => (await streamOf('tried-before')).length).toBe(1);
      const page = await ui.open('/webhooks/tried?tab=settings');
      await type(
        page,
        'function route({ body, headers }) {\n  return { stream: body.to.name, schema: headers["x-kind"] };\n}',
      );
      const result = page.locator('.trial-result');
      await result.getByText('Failed').waitFor();
      await result.getByText(/cannot read property 'name' of undefined \(line 2/).waitFor();
      expect(await page.locator('.script-gutter .marked').innerText()).toBe('2');
      await page.getByLabel('Payload', { exact: true }).fill(JSON.stringify({ to: { name: HOSTILE } }));
      await result.getByText('WebhookReceived').waitFor();
      await page.getByLabel('Headers').first().fill('X-Kind: letter');
      await page.getByRole('button', { name: 'Try the script' }).click();
      await result.getByText('Routed').waitFor();
      await result.getByText(HOSTILE).waitFor();
      await result.getByText('letter').waitFor();
      expect(await page.locator('.script-gutter .marked').count()).toBe(0);
      await page.getByLabel('Recent payload of a stream').fill('tried-before');
      await page.getByRole('button', { name: 'Take' }).click();
      await expect.poll(() => page.getByLabel('Payload', { exact: true }).inputValue()).toContain('"before"');
      await type(page, 'export function route({ body }: any) {\n  return { stream: "s", type: "t" };\n}');
      await result.getByText(/write function route\(request\) \{ … \} at its top level, without export/).waitFor();
      await type(page, 'function route({ body }) {\n  return { stream: "s", type: "t" };\n}');
      await result.getByText(/The script returns type, which means nothing/).waitFor();
      // What is only tried is neither saved nor written.
      expect(Buffer.from((await settings('tried'))['routingScript']!, 'base64').toString()).toContain('tried-');
      expect((await ui.ask('GET', `/streams/${encodeURIComponent(HOSTILE)}`)).status).toBe(404);
    });

    test('the editor indents by Tab, keeps the indent of a line, and lets go after Escape', async () => {
      // Half a script may be tried where it is typed slowly.
      ui.allow(/status of 400/);
      await make('typed', 'const route = () => null;');
      const page = await ui.open('/webhooks/typed?tab=settings');
      const editor = page.getByRole('textbox', { name: 'Routing script' });
      await editor.fill('');
      await editor.focus();
      await page.keyboard.type('function route() {\nreturn null;\n');
      expect(await editor.inputValue()).toBe('function route() {\n  return null;\n  ');
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.type('}');
      await page.keyboard.press('Control+A');
      await page.keyboard.press('Tab');
      expect(await editor.inputValue()).toBe('  function route() {\n    return null;\n  }');
      await page.keyboard.press('Shift+Tab');
      expect(await editor.inputValue()).toBe('function route() {\n  return null;\n}');
      expect(await page.locator('.script-gutter').innerText()).toBe('1\n2\n3');
      await page.keyboard.press('Escape');
      await page.keyboard.press('Tab');
      expect(await page.evaluate('document.activeElement.id')).toBe('trial-stream');
    });

    test('settings are changed, and secrets replaced or kept; what is wrong is said where it belongs', async () => {
      ui.allow(/status of 400/);
      await make('changed', 'const route = () => ({ stream: "changed" });', {
        signature: { scheme: 'GitHub', secret: SECRET },
        allowedHeaders: ['x-one'],
      });
      const page = await ui.open('/webhooks/changed?tab=settings');
      // By keys: the notice that something was saved lies over the button for a while.
      const save = () => page.getByRole('button', { name: 'Save settings' }).press('Enter');
      expect(await page.content()).not.toContain(SECRET);
      await page.getByLabel('Headers to keep').fill('x-one\nx-two');
      await page.getByRole('switch', { name: 'Answer when the event is durable' }).check();
      await page.getByLabel('Timeout').fill('5 seconds');
      await save();
      await page.getByText('Write it as hh:mm:ss, such as 00:00:30.').waitFor();
      await page.getByLabel('Timeout').fill('99:00:00');
      await save();
      await page.getByText('Give a time span from').waitFor();
      await page.getByLabel('Timeout').fill('00:00:01');
      await page.getByLabel('Answer to skipped calls').selectOption('204');
      await save();
      await expect
        .poll(() => settings('changed'))
        .toMatchObject({
          'allowedHeaders:1': 'x-two',
          waitForWrite: 'true',
          confirmationTimeout: '00:00:01',
          skippedStatus: '204',
          'signature:secret': '********',
        });
      // Restarted with it, and with the secret that it had.
      await expect.poll(async () => (await call('changed', '{}', SECRET)).status).toBe(201);

      await page.getByRole('button', { name: 'Replace: Secret' }).click();
      await page.getByLabel('Secret', { exact: true }).fill('a new one');
      await page.getByRole('button', { name: 'Add: Second secret' }).click();
      await page.getByLabel('Second secret', { exact: true }).fill(SECRET);
      await save();
      await expect.poll(async () => (await call('changed', '{"n":1}', 'a new one')).status).toBe(201);
      expect((await call('changed', '{"n":2}', SECRET)).status).toBe(201);
      await page.getByRole('button', { name: 'Remove: Second secret' }).click();
      await save();
      await expect.poll(async () => (await call('changed', '{"n":3}', SECRET)).status).toBe(401);
      expect((await call('changed', '{"n":4}', 'a new one')).status).toBe(201);
    });

    test('the chart of its calls begins with what the node kept, and goes on with what the page sees', async () => {
      await make('past', 'const route = () => null;');
      const page = await ui.open('/webhooks');
      await withPast(page, '**/admin/webhooks/history?connector=past', []);
      await page.goto(`${ui.url}/ui/webhooks/past`);
      const calls = () => chartTable(page, 'Calls').innerText();
      await expect.poll(calls).toMatch(/Skipped\s.*3\.3k\/s/i);
      expect(await calls()).not.toMatch(/7\.7k/i);
      // The page's own looks are the last ones.
      await expect.poll(calls).toMatch(/Skipped\s+0\/s\s+0\/s\s+3\.3k\/s/i);
      await page.getByRole('radio', { name: '24 hours' }).click();
      await expect.poll(calls).toMatch(/Refused\s+3\.3k\/s\s+3\.3k\/s\s+7\.7k\/s/i);
      await page.unrouteAll({ behavior: 'wait' });

      // Before the first call the node keeps no line, and knows all the same that there was none.
      const path = '**/admin/webhooks/history?connector=past';
      await page.route(path, async (route) => {
        const real = (await (await route.fetch()).json()) as { values: Record<string, unknown> };
        const times = Array.from({ length: 30 }, (_, i) => Date.now() - (30 - i) * 60_000);
        const unknown = Object.fromEntries(Object.keys(real.values).map((name) => [name, times.map(() => null)]));
        await route.fulfill({ json: { ...real, times, values: unknown } });
      });
      await page.reload();
      await expect.poll(calls).toMatch(/Refused\s+0\/s\s+0\/s\s+0\/s/i);
      const [, from, to] = /, (.+) to (.+)/.exec(await calls())!;
      const ms = (time: string) => Date.parse(`2031-01-01 ${time.replaceAll('\u202f', ' ')}`);
      expect((ms(to!) - ms(from!) + 86_400_000) % 86_400_000).toBe(29 * 60_000);
      await page.getByRole('radio', { name: 'Last hour' }).click();
      await page.unrouteAll({ behavior: 'wait' });
    });

    test('it is stopped, renamed, reset and deleted', async () => {
      // It may be asked for while it is being deleted.
      ui.allow(/status of 404/);
      await make('life', 'const route = () => null;');
      const page = await ui.open('/webhooks/life');
      const act = async (what: string) => {
        await page.getByRole('button', { name: 'More for this connector' }).click();
        await page.getByRole('menuitem', { name: what }).click();
      };
      await page.getByRole('button', { name: 'Stop' }).click();
      await expect.poll(() => state('life')).toBe('CONNECTOR_STATE_STOPPED');
      await act('Rename');
      await page.getByRole('dialog').getByLabel('Name').fill('Life of one');
      await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
      await page.getByRole('heading', { name: 'Life of one' }).waitFor();
      await act('Reset');
      await page.getByRole('dialog').getByRole('button', { name: 'Reset and start' }).click();
      await expect.poll(() => state('life')).toBe('CONNECTOR_STATE_RUNNING');
      // Stopped beside the page, it is seen to be.
      await ui.ask('POST', '/connectors/life/stop');
      await page.getByRole('button', { name: 'Start', exact: true }).waitFor();
      await act('Delete');
      await page.getByRole('dialog').getByRole('textbox').fill('life');
      await page.getByRole('dialog').getByRole('button', { name: 'Delete connector' }).click();
      await page.getByRole('heading', { name: 'Webhooks' }).waitFor();
      expect((await ui.ask('GET', '/connectors/life')).status).toBe(404);
    });

    test('it is for operators', async () => {
      await ui.ask('POST', '/users', { loginName: 'reader', fullName: 'Reader', groups: [], password: PASSWORD });
      await sees(await ui.open('/webhooks', { user: 'reader' }), "You don't have permission");
    });

    test('a rate that is still measured is none, and no dash', async () => {
      await make('measured', 'function route() { return null }');
      const page = await ui.open('/options');
      let isMeasuring = true;
      await page.route('**/admin/webhooks', async (route) => {
        const json = (await (await route.fetch()).json()) as object;
        await route.fulfill({ json: isMeasuring ? { ...json, windowSeconds: null } : json });
      });
      await page.getByRole('link', { name: 'Webhooks' }).click();
      const row = page.getByRole('row', { name: /measured/ });
      await row.getByText('Measuring').waitFor();
      expect(await page.locator('.stat').filter({ hasText: 'Calls' }).innerText()).not.toContain('–');
      isMeasuring = false;
      await row.getByRole('cell', { name: '0/s' }).waitFor();
      expect(await page.getByText('Measuring').count()).toBe(0);
    });

    test.each(SIZE_NAMES)('nothing is wrong with the views on a %s', async (size) => {
      const id = `looks-${size}`;
      await make(id, 'const route = () => { throw new Error("no"); };', {
        signature: { scheme: 'Generic', secret: SECRET, header: 'x-signature' },
      });
      await ui.ask('POST', `/webhook/${id}`, {});
      expect(await ui.faults('/webhooks', `text=${id}`, { size })).toEqual([]);
      expect(await ui.faults(`/webhooks/${id}`, 'text=Calls by outcome', { size })).toEqual([]);
      expect(await ui.faults(`/webhooks/${id}?tab=rejections`, 'text=signature-missing', { size })).toEqual([]);
      expect(
        await ui.faults(`/webhooks/${id}?tab=settings`, 'text=Repeated deliveries', { size }, async (page) => {
          await page.getByRole('button', { name: 'Try the script' }).click();
          await page.locator('.trial-result dl').waitFor();
        }),
      ).toEqual([]);
    });
  },
  ['--connectors-data-protection-token', 'a token for tests'],
);

/** Puts a script in the place of the one that is there. */
async function type(page: Page, script: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Routing script' }).fill(script);
}
