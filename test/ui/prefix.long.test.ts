import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ADMIN, atNode, PASSWORD, sees } from './kit.ts';

const PREFIX = '/events/db';

/**
 * A proxy that has the node below a path, as nginx with `proxy_pass http://node/`; `says` it in its forwarding header.
 * It is there until the pages of the test are closed.
 */
async function proxied(to: string, says: boolean): Promise<string> {
  const proxy = http.createServer((request, reply) => {
    if (!`${request.url!}/`.startsWith(`${PREFIX}/`)) {
      reply.writeHead(404).end();
      return;
    }
    const headers = { ...request.headers, ...(says && { 'x-forwarded-prefix': PREFIX }) };
    const passed = http.request(
      to + (request.url!.slice(PREFIX.length) || '/'),
      { method: request.method!, headers },
      (answer) => {
        reply.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(reply);
      },
    );
    passed.on('error', () => reply.destroy());
    request.pipe(passed);
  });
  await new Promise<void>((done) => {
    proxy.listen(0, '127.0.0.1', done);
  });
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${PREFIX}`;
}

atNode('the page below the path of a proxy', (ui) => {
  test.each([true, false])(
    'is whole, asks for nothing outside of it, and keeps its login there; the proxy says so: %s',
    async (says) => {
      const node = ui.url;
      await ui.ask(
        'POST',
        '/streams/parcels',
        [{ eventId: '00000000-0000-4000-8000-00000000000a', eventType: 'weighed', data: { grams: 1 } }],
        { 'content-type': 'application/vnd.eventstore.events+json' },
      );
      // Nobody has logged in at first, and no scavenge has run.
      ui.allow(/status of 40[14]/);
      const url = await proxied(node, says);
      ui.url = url;
      try {
        const page = await ui.open('', { user: null });
        const outside: string[] = [];
        page.on('request', (request) => {
          if (!`${new URL(request.url()).pathname}/`.startsWith(`${PREFIX}/`)) outside.push(request.url());
        });
        await page.getByLabel('User name').fill(ADMIN);
        await page.getByLabel('Password').fill(PASSWORD);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
        expect((await page.context().cookies()).map(({ name, path }) => [name, path])).toEqual([
          ['skua-session', says ? PREFIX : '/'],
        ]);

        // By a link, by its address, and by going back.
        await page.getByRole('link', { name: 'Streams', exact: true }).click();
        await page.getByRole('link', { name: 'parcels' }).first().click();
        await sees(page, 'weighed');
        expect(new URL(page.url()).pathname).toBe(`${PREFIX}/ui/streams/parcels`);
        await page.goto(`${url}/ui/streams/parcels/0`);
        await sees(page, 'weighed');
        await page.goto(`${url}/ui/scavenge?tab=history`);
        await page.getByRole('heading', { level: 1, name: 'Scavenge' }).waitFor();
        await page.goto(`${url}/ui/`);
        await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
        expect(outside).toEqual([]);
      } finally {
        ui.url = node;
      }
    },
  );
});
