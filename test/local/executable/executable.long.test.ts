import { existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { VERSION } from '../../../local/cli/version.ts';
import { TELLS_CAUGHT } from '../../support/caught.ts';
import { freePorts } from '../../support/free-ports.ts';
import { ok, packed } from '../packed.ts';
import type { Packed } from '../packed.ts';
import { Spawned, threadsOf } from '../spawn.ts';

/** The single executable, made in a clone and copied to an empty folder, with nothing on the path. */

let all: Packed;
beforeAll(async () => {
  all = await packed();
  await ok(all.shell('npm run build:executable -- --built', { cwd: all.clone }).ended);
});
afterAll(() => all.remove());

let folder: string;
let executable: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-executable-'));
  executable = path.join(folder, 'skua');
  linkSync(path.join(all.clone, 'dist/skua-linux-x64'), executable);
  for (const each of ['home', 'temp']) mkdirSync(path.join(folder, each));
});
afterEach(async () => {
  // What a test that failed has not ended.
  for (const each of spawned.splice(0)) {
    each.child.kill('SIGKILL');
    await each.ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

const spawned: Spawned[] = [];

function skua(words: readonly string[], env: Readonly<Record<string, string>> = {}): Spawned {
  const nothing = Object.fromEntries(Object.keys(process.env).filter((name) => !TELLS_CAUGHT.includes(name)).map((name) => [name, undefined]));
  const started = new Spawned(executable, words, { ...nothing, PATH: '', HOME: path.join(folder, 'home'), TMPDIR: path.join(folder, 'temp'), SERVER_STREAM_EXISTENCE_FILTER_SIZE: '10000', ...env }, { cwd: folder });
  spawned.push(started);
  return started;
}

const cache = (): string => path.join(folder, 'home/.cache/skua');
/** The one folder that it was unpacked to. */
function unpackedFolder(): string {
  const names = readdirSync(cache());
  expect(names).toHaveLength(1);
  return path.join(cache(), names[0]!);
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

const post = (body: unknown, type = 'application/json'): RequestInit => ({ method: 'POST', headers: { 'content-type': type }, body: JSON.stringify(body) });

describe.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('the single executable', () => {
  test('says its version and its errors as the command does, and unpacks for its user only, with all licences', async () => {
    expect(await skua(['--version']).ended).toEqual({ code: 0, out: `${VERSION}\n`, err: '' });
    expect(await skua(['start', '--wrong']).ended).toMatchObject({ code: 2, out: '', err: expect.stringContaining('Unknown option --wrong.') as string });
    const files = readdirSync(unpackedFolder());
    expect(files).toEqual(expect.arrayContaining(['main.js', 'worker.js', 'quickjs.wasm', 'ui', 'LICENSE', 'THIRD-PARTY.txt', 'NODE-LICENSE.txt']));
    expect(files.filter((name) => name.endsWith('.map') || ['functions', 'types', 'embedded.js', 'skua-linux-x64'].includes(name))).toEqual([]);
    expect(statSync(unpackedFolder()).mode & 0o777).toBe(0o700);
    expect(readdirSync(path.join(folder, 'temp'))).toEqual([]);
  });

  test('keeps events, scavenges in worker threads, runs scripts in WebAssembly and has the page; what it wrote is there after a second start', async () => {
    const first = skua(START);
    const url = await urlOf(first);
    // Nothing but the program and its words: the options of Node.js are inside.
    expect(readFileSync(`/proc/${first.child.pid}/cmdline`, 'utf8').split('\0').slice(0, -1)).toEqual([executable, ...START]);
    expect((await call(`${url}/streams/letters`, post([{ eventId: 'fbf4a1a1-b4a3-4dfe-a01f-ec52c34e16e4', eventType: 'letter-posted', data: { to: 'Oslo' } }], 'application/vnd.eventstore.events+json'))).status).toBe(201);
    expect((await call(`${url}/ui`)).text).toContain('<html');

    const routingScript = Buffer.from('function route({ body }) { return { stream: "order-" + body.number, schema: "order-placed" }; }').toString('base64');
    expect((await call(`${url}/connectors/orders`, post({ settings: { instanceTypeName: 'webhook-source', routingScript, waitForWrite: true, streams: ['order-*'] } })))).toMatchObject({ status: 200 });
    expect((await call(`${url}/connectors/orders/start`, { method: 'POST' })).status).toBe(200);
    expect((await call(`${url}/webhook/orders`, post({ number: 1742 }))).status).toBe(201);

    // As many as local/installed.mjs asks for.
    expect(threadsOf(first.child.pid!).filter((name) => name === 'libuv-worker')).toHaveLength(12);

    const { scavengeId } = JSON.parse((await call(`${url}/admin/scavenge`, { method: 'POST' })).text) as { scavengeId: string };
    await first.seen(new RegExp(`Scavenge Completed.*${scavengeId}`));
    await stop(first);

    const second = skua(START);
    const again = await urlOf(second);
    const read = (stream: string) => call(`${again}/streams/${stream}?embed=body`, { headers: { accept: 'application/vnd.eventstore.atom+json' } });
    expect((await read('letters')).text).toContain('Oslo');
    expect((await read('order-1742')).text).toContain('order-placed');
    await stop(second);
  });

  test('two that start at once for the first time both serve, from one folder', async () => {
    const nodes = ['one', 'two'].map((db) => skua([...START.slice(0, -1), db]));
    for (const url of await Promise.all(nodes.map(urlOf))) expect((await call(`${url}/health/ready`)).status).toBe(200);
    await Promise.all(nodes.map(stop));
    expect(readdirSync(unpackedFolder()).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  test('a second start takes the files as they are, and one that finds some damaged or missing writes those anew', async () => {
    await ok(skua(['--version']).ended);
    const [main, worker] = ['main.js', 'worker.js'].map((name) => path.join(unpackedFolder(), name)) as [string, string];
    const [whole, inode, untouched] = [readFileSync(main, 'utf8'), statSync(main).ino, statSync(worker).ino];
    await ok(skua(['--version']).ended);
    expect(statSync(main).ino).toBe(inode);
    for (const damage of [() => truncateSync(main, 10), () => writeFileSync(main, 'throw new Error("not ours")'), () => rmSync(main)]) {
      damage();
      expect(await skua(['--version']).ended).toEqual({ code: 0, out: `${VERSION}\n`, err: '' });
      expect(readFileSync(main, 'utf8')).toBe(whole);
    }
    expect(statSync(worker).ino).toBe(untouched);
  });

  test('without a folder that it can use it is refused, and says which one it would need', async () => {
    const file = path.join(folder, 'file');
    writeFileSync(file, '');
    const { code, out, err } = await skua(['--version'], { XDG_CACHE_HOME: file, TMPDIR: file }).ended;
    expect({ code, out }).toEqual({ code: 4, out: '' });
    expect(err).toMatch(/^error not_unpacked: .*XDG_CACHE_HOME.*\n$/);
    expect(existsSync(cache())).toBe(false);
  });

  test('starts the members of a cluster by itself, and says that it has no functions', async () => {
    const cluster = skua(['cluster', 'try', '--db', 'cluster', '--port', String((await freePorts(1))[0])]);
    await cluster.seen(/Ctrl\+C stops all\./);
    cluster.child.kill('SIGINT');
    expect(await cluster.ended).toMatchObject({ code: 0, out: expect.stringContaining('All members have stopped.') as string });
    expect(await skua(['functions', 'serve', '--port', '0']).ended).toMatchObject({ code: 1, err: expect.stringMatching(/^error bundles_missing: This one file has no functions/) as string });
  });

  test('is no part of the package', async () => {
    expect(existsSync(path.join(all.clone, 'dist/skua-linux-x64'))).toBe(true);
    const { out } = await ok(all.shell('npm pack --dry-run --json --ignore-scripts', { cwd: all.clone }).ended);
    const [{ files }] = JSON.parse(out) as [Packed['told']];
    expect(files.map((file) => file.path)).toContain('dist/main.js');
    expect(files.filter((file) => file.path.includes('skua-linux'))).toEqual([]);
  });
});
