import { afterAll, beforeAll, expect, test } from 'vitest';
import { PAGE_BYTES_MAX } from '../../../local/ui/build.mjs';
import { ok, packed } from '../packed.ts';
import type { Packed } from '../packed.ts';

let all: Packed;
beforeAll(async () => {
  all = await packed();
});
afterAll(() => all.remove());

test('the installed package serves the page from its own files, which npm has packed', async () => {
  const paths = all.told.files.map((file) => file.path);
  expect(
    paths.filter((file) => /^dist\/ui\/(?:index\.html|assets\/[\w-]+\.(?:js|css|svg))(?:\.br|\.gz)?$/.test(file))
      .length,
  ).toBeGreaterThan(8);
  const page = all.told.files.filter(({ path }) => path.startsWith('dist/ui/') && path.endsWith('.gz'));
  expect(page.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(PAGE_BYTES_MAX);
  expect((await ok(all.shell('cat node_modules/skua/dist/THIRD-PARTY.txt', { cwd: all.installed }).ended)).out).toMatch(
    /^preact \d/m,
  );
  const spawned = all.shell('exec skua start --insecure --mem-db --stream-existence-filter-size 10000', {
    cwd: all.installed,
    isServer: true,
    env: { SERVER_NODE_PORT: '0' },
  });
  const url = (await spawned.seen(/is listening on (\S+)\n/))[1]!;
  const started = performance.now();
  const html = await (await fetch(`${url}/ui`)).text();
  const names = [...html.matchAll(/(?:src|href)="(ui\/assets\/[^"]+)"/g)].map(([, name]) => `/${name!}`);
  const assets = await Promise.all(names.map((name) => fetch(url + name, { headers: { 'accept-encoding': 'br' } })));
  for (const asset of assets)
    expect([
      asset.url,
      asset.status,
      asset.headers.get('content-encoding'),
      (await asset.arrayBuffer()).byteLength > 0,
    ]).toEqual([asset.url, 200, 'br', true]);
  console.log(`page and ${names.length} files in ${Math.round(performance.now() - started)} ms`);
  await spawned.end();
});
