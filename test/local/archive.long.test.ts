import { copyFileSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { VERSION } from '../../infra/runtime/version.ts';
import { freePorts } from '../support/free-ports.ts';
import { ARCHIVE, archived, isArchived, ok, packed } from './packed.ts';
import type { Packed } from './packed.ts';
import { Spawned, threadsOf } from './spawn.ts';

/** The archive, made in a clone of the Node.js that runs the tests, and unpacked in a folder with nothing else. */

let all: Packed;
let folder: string;
/** As an installer would have it on the path. */
let skuaLink: string;

beforeAll(async () => {
  all = await packed();
  folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'skua-archive-')));
  if (!isArchived) return;
  const made = path.join(all.clone, 'dist', `${ARCHIVE}.tar.gz`);
  copyFileSync(await archived(), made);
  await ok(all.shell(`tar -xzf '${made}'`, { cwd: folder }).ended);
  skuaLink = path.join(folder, 'skua');
  symlinkSync(path.join(ARCHIVE, 'bin/skua'), skuaLink);
});
afterEach(async () => {
  // What a test that failed has not ended.
  for (const each of spawned.splice(0)) {
    each.child.kill('SIGKILL');
    await each.ended;
  }
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await all.remove();
});

const spawned: Spawned[] = [];

function skua(words: readonly string[]): Spawned {
  const nothing = Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined]));
  const started = new Spawned(
    skuaLink,
    words,
    { ...nothing, PATH: '/usr/bin:/bin', HOME: folder, SERVER_STREAM_EXISTENCE_FILTER_SIZE: '10000' },
    { cwd: folder },
  );
  spawned.push(started);
  return started;
}

const START = ['start', '--insecure', '--node-port', '0', '--db', 'data'];

async function urlOf(node: Spawned): Promise<string> {
  return (await node.seen(/is listening on (\S+)\n/))[1]!;
}

async function stop(node: Spawned): Promise<void> {
  node.child.kill('SIGTERM');
  const { code, err } = await node.ended;
  expect(code).toBe(0);
  expect(err).toContain('"stopped"');
}

async function call(url: string, init: RequestInit = {}): Promise<{ status: number; text: string }> {
  const reply = await fetch(url, init);
  return { status: reply.status, text: await reply.text() };
}

const post = (
  body: unknown,
  type = 'application/json',
  headers: Readonly<Record<string, string>> = {},
): RequestInit => ({
  method: 'POST',
  headers: { ...headers, 'content-type': type },
  body: JSON.stringify(body),
});

/** A connector whose script runs, and a call that becomes an event. */
async function takeOrder(url: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  const routingScript = Buffer.from(
    'function route({ body }) { return { stream: "order-" + body.number, schema: "order-placed" }; }',
  ).toString('base64');
  const settings = { instanceTypeName: 'webhook-source', routingScript, waitForWrite: true, streams: ['order-*'] };
  expect(await call(`${url}/connectors/orders`, post({ settings }, 'application/json', headers))).toMatchObject({
    status: 200,
  });
  expect((await call(`${url}/connectors/orders/start`, { method: 'POST', headers })).status).toBe(200);
  expect((await call(`${url}/webhook/orders`, post({ number: 1742 }))).status).toBe(201);
}

describe.skipIf(!isArchived)('the archive', () => {
  test('has the package, Node.js and a command of four lines, with all licences, for one folder', async () => {
    expect(readdirSync(folder).toSorted()).toEqual(['skua', ARCHIVE]);
    const files = readdirSync(path.join(folder, ARCHIVE), { recursive: true }) as string[];
    const { told } = all;
    expect(files).toEqual(
      expect.arrayContaining([
        ...told.files.map((file) => file.path),
        'bin/skua',
        'node/bin/node',
        'node/LICENSE',
        'LICENSE',
        'dist/THIRD-PARTY.txt',
        'infra/packaging/skua.service',
        'infra/packaging/healthcheck.mjs',
      ]),
    );
    expect(readFileSync(path.join(folder, ARCHIVE, 'bin/skua'), 'utf8').match(/\n/g)).toHaveLength(4);
    expect(readFileSync(path.join(folder, ARCHIVE, 'node/bin/node')).equals(readFileSync(process.execPath))).toBe(true);
  });

  test('says its version and its errors as the command does', async () => {
    expect(await skua(['--version']).ended).toEqual({ code: 0, out: `${VERSION}\n`, err: '' });
    expect(await skua(['start', '--wrong']).ended).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('Unknown option --wrong.') as string,
    });
  });

  test('keeps events, scavenges in worker threads, runs scripts in WebAssembly and has the page; what it wrote is there after a second start', async () => {
    const first = skua(START);
    const url = await urlOf(first);
    // The process that was started is the node: signals of a service manager reach it.
    const home = path.join(folder, ARCHIVE);
    expect(readFileSync(`/proc/${first.child.pid}/cmdline`, 'utf8').split('\0').slice(0, -1)).toEqual([
      path.join(home, 'node/bin/node'),
      '--max-semi-space-size=16',
      '--initial-old-space-size=64',
      path.join(home, 'dist/main.js'),
      ...START,
    ]);
    expect(
      (
        await call(
          `${url}/streams/letters`,
          post(
            [{ eventId: 'fbf4a1a1-b4a3-4dfe-a01f-ec52c34e16e4', eventType: 'letter-posted', data: { to: 'Oslo' } }],
            'application/vnd.eventstore.events+json',
          ),
        )
      ).status,
    ).toBe(201);
    expect((await call(`${url}/ui`)).text).toContain('<html');

    await takeOrder(url);

    // As many as local/installed.mjs asks for.
    expect(threadsOf(first.child.pid!).filter((name) => name === 'libuv-worker')).toHaveLength(12);

    const { scavengeId } = JSON.parse((await call(`${url}/admin/scavenge`, { method: 'POST' })).text) as {
      scavengeId: string;
    };
    await first.seen(new RegExp(`Scavenge Completed.*${scavengeId}`));
    await stop(first);

    const second = skua(START);
    const again = await urlOf(second);
    const read = (stream: string) =>
      call(`${again}/streams/${stream}?embed=body`, { headers: { accept: 'application/vnd.eventstore.atom+json' } });
    expect((await read('letters')).text).toContain('Oslo');
    expect((await read('order-1742')).text).toContain('order-placed');
    await stop(second);
  });

  test('starts the members of a cluster, and the functions', async () => {
    const cluster = skua(['cluster', 'try', '--db', 'cluster', '--port', String((await freePorts(1))[0])]);
    await cluster.seen(/Ctrl\+C stops all\./);
    cluster.child.kill('SIGINT');
    expect(await cluster.ended).toMatchObject({
      code: 0,
      out: expect.stringContaining('All members have stopped.') as string,
    });
    const functions = skua(['functions', 'serve', '--port', '0', '--no-ticks']);
    const [, url] = await functions.seen(/The functions answer at (\S+),/);
    const headers = { authorization: `Basic ${Buffer.from('admin:changeit').toString('base64')}` };
    await takeOrder(url!, headers);
    expect((await call(`${url}/streams/order-1742/0`, { headers })).text).toContain('1742');
    expect((await fetch(`${url}/tick`, { method: 'POST' })).status).toBe(200);
    functions.child.kill('SIGINT');
    expect((await functions.ended).code).toBe(0);
  });

  test('is no part of the package', async () => {
    expect(readdirSync(path.join(all.clone, 'dist'))).toContain(`${ARCHIVE}.tar.gz`);
    const { out } = await ok(all.shell('npm pack --dry-run --json --ignore-scripts', { cwd: all.clone }).ended);
    const [{ files }] = JSON.parse(out) as [Packed['told']];
    expect(files.map((file) => file.path)).toEqual(all.told.files.map((file) => file.path));
  });

  test('is made for what there is a Node.js of', async () => {
    expect(await all.shell('infra/packaging/archive.sh ia32', { cwd: all.clone }).ended).toMatchObject({
      code: 2,
      err: expect.stringContaining('name x64 or arm64') as string,
    });
  });
});
