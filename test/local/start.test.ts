import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ran, skua, startedNode, startedProcess, threadsOf } from './spawn.ts';
import { IS_LONG_RUN, RUNS_FIXED } from '../support/run-size.ts';

/** A whole chunk is read to verify it, and written to damage it. */
const CHUNK_SIZE = ['--chunk-size', '1MiB'];
const EVENTS = 'application/vnd.eventstore.events+json';
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-start-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function append(url: string, id: string): Promise<Response> {
  return fetch(`${url}/streams/parcels`, {
    method: 'POST',
    headers: { 'content-type': EVENTS },
    body: JSON.stringify([{ eventId: id, eventType: 'weighed', data: { grams: 1 } }]),
  });
}

const ID = '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11';

describe("a folder that is somebody else's", () => {
  const tree = (at: string) =>
    readdirSync(at, { recursive: true, encoding: 'utf8' })
      .map((name) => `${name} ${statSync(path.join(at, name)).mtimeMs}`)
      .sort();

  test('is refused by everything that would write there, which names what it found and changes nothing', async () => {
    const data = path.join(folder, 'data');
    await (await startedNode(['--db', data, ...CHUNK_SIZE])).stop();
    const at = path.join(folder, 'checkout');
    mkdirSync(path.join(at, 'index'), { recursive: true });
    for (const name of ['README.md', 'index/table.ts', 'index/x.tmp']) writeFileSync(path.join(at, name), name);
    const before = tree(at);
    for (const words of [
      ['start', '--disable-tls', '--node-port', '0', '--db', at],
      ['start', '--disable-tls', '--node-port', '0', '--db', at, '--detach'],
      [
        'start',
        '--disable-tls',
        '--node-port',
        '0',
        '--db',
        at,
        '--storage',
        path.join(folder, 'log'),
        '--cluster-size',
        '1',
      ],
      ['restore', '--from', data, '--db', at],
      ['restore', '--from', data, '--db', at, '--force'],
      ['backup', 'copy', '--full', '--db', data, '--to', at],
    ]) {
      const { code, err } = await ran(words);
      expect({ code, err }, words.join(' ')).toEqual({
        code: 3,
        err: expect.stringContaining(
          `error not_a_data_directory: ${at} is not a data directory, and holds other files: README.md, index/table.ts, index/x.tmp.`,
        ),
      });
      expect(tree(at), words.join(' ')).toEqual(before);
    }
    for (const words of [
      ['scavenge', 'offline', at],
      ['explain', 'parcels', '--db', at],
      ['verify', at],
      ['user', 'list', '--db', at],
      ['proof', 'verify', '--db', at],
      ['restore', '--from', at, '--db', path.join(folder, 'back')],
      ['prove-erased', '--stream', 'a', '--db', at],
    ]) {
      expect((await ran(words)).code, words.join(' ')).not.toBe(0);
      expect(tree(at), words.join(' ')).toEqual(before);
    }
    // A refused restore leaves no folder and no lock.
    expect(existsSync(path.join(folder, 'back'))).toBe(false);
  });

  test('goes on where its data are: strangers stay where they are', async () => {
    await (await startedNode(['--db', folder, ...CHUNK_SIZE])).stop();
    const strangers = ['README.md', 'index/table.ts', 'x.tmp', 'writer.chk~', 'chunk-000000.000000.bak'];
    for (const name of strangers) writeFileSync(path.join(folder, name), name);
    await (await startedNode(['--db', folder])).stop();
    for (const name of strangers) expect(readFileSync(path.join(folder, name), 'utf8')).toBe(name);
  });
});

describe('a node', () => {
  test('tells where it is, logs structured lines, keeps its data, stops with SIGTERM', async () => {
    const first = await startedProcess(['--db', folder, ...CHUNK_SIZE]);
    expect(first.process.out).toContain(`\nWeb page: ${first.url}/ui\n`);
    expect((await fetch(`${first.url}/ui`)).headers.get('content-type')).toMatch(/^text\/html/);
    expect(first.process.out).toContain(`Data directory: ${folder} (chunks of 1 MiB)`);
    expect(first.process.out.match(/^curl .*$/gm)).toHaveLength(3);
    if (process.platform === 'linux')
      expect(threadsOf(first.process.child.pid!).filter((name) => name === 'libuv-worker')).toHaveLength(12);
    expect((await append(first.url, ID)).status).toBe(201);
    expect((await first.stop()).code).toBe(0);
    expect(first.process.logged().map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(['starting', 'listening', 'stopping', 'stopped']),
    );
    for (const line of first.process.logged())
      expect(line).toMatchObject({ level: expect.any(String), time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) });

    const second = await startedProcess(['--db', folder]);
    const reply = await fetch(`${second.url}/streams/parcels/0`);
    expect(await reply.json()).toEqual({ grams: 1 });
    expect((await second.stop()).code).toBe(0);
  });

  test.each([
    { env: {}, curl: 'curl -u admin:changeit -i', isNamed: true },
    { env: { SERVER_DEFAULT_ADMIN_PASSWORD: 'another' }, curl: 'curl -u admin -i', isNamed: false },
  ])('shows first commands with a password only where it is the default one: $curl', async (each) => {
    const node = await startedProcess(['--mem-db', '--disable-tls'], each.env);
    expect(node.process.out).toContain(`\n${each.curl} ${node.url}/streams/letters `);
    expect(node.process.out.includes('changeit')).toBe(each.isNamed);
    expect((await node.stop()).code).toBe(0);
  });

  test('stops while somebody subscribes and somebody waits', async () => {
    const node = await startedNode(['--mem-db']);
    await append(node.url, ID);
    const subscription = await fetch(`${node.url}/streams/parcels`, { headers: { accept: 'text/event-stream' } });
    const reader = subscription.body!.pipeThrough(new TextDecoderStream()).getReader();
    let subscribed = '';
    while (!subscribed.includes('event: caught-up'))
      subscribed += (await reader.read()).value ?? expect.fail(`It ended before it had caught up: ${subscribed}`);
    const waiting = fetch(`${node.url}/streams/parcels/1/forward/20`, { headers: { 'es-longpoll': '60' } });
    // Requests of one client are taken in turn: when this one has its answer the one before has been taken up.
    expect((await fetch(`${node.url}/health/live`)).ok).toBe(true);
    expect((await node.stop()).code).toBe(0);
    while (!(await reader.read()).done);
    expect((await waiting.catch(() => new Response(null, { status: 503 }))).status).toBeLessThan(600);
  });

  if (IS_LONG_RUN)
    test('stops with SIGINT, too', async () => {
      const node = await startedProcess(['--mem-db']);
      node.process.child.kill('SIGINT');
      expect((await node.process.ended).code).toBe(0);
      expect(node.process.out).toContain('Data is kept in memory');
    });

  test('has ended when it has stopped, whatever still waits for something in its process', async () => {
    // As a tick does that was left to its fate, and waits for the answer of a member.
    const node = skua(
      ['start', '--node-port', '0', '--mem-db', '--insecure', '--stream-existence-filter-size', '10000'],
      { NODE_OPTIONS: '--import=data:text/javascript,setInterval(()=>{},1000)' },
    );
    await node.seen(/listening on/);
    node.child.kill('SIGTERM');
    const { code, err } = await node.ended;
    expect([code, err.trimEnd().split('\n').at(-1)]).toEqual([0, expect.stringContaining('"stopped"')]);
  });

  test('keeps the index elsewhere', async () => {
    const node = await startedNode(['--db', path.join(folder, 'db'), '--index', path.join(folder, 'fast')]);
    expect((await append(node.url, ID)).status).toBe(201);
    await node.stop();
    expect(existsSync(path.join(folder, 'fast'))).toBe(true);
    expect(existsSync(path.join(folder, 'db', 'index'))).toBe(false);
  });

  test('says nothing of a page that an option took away', async () => {
    const node = await startedNode(['--mem-db', '--disable-admin-ui']);
    expect(await fetch(`${node.url}/ui`)).toHaveProperty('status', 404);
    await node.stop();
    expect(node.process.out).toContain('is listening on');
    expect(node.process.out).not.toContain('/ui');
  });

  test('an existing directory keeps its chunk size, and a warning says so', async () => {
    await (await startedNode(['--db', folder, ...CHUNK_SIZE])).stop();
    const node = await startedNode(['--db', folder, '--chunk-size', '2MiB']);
    await node.stop();
    expect(node.process.out).toContain('chunks of 1 MiB');
    expect(node.process.logged().map(({ msg }) => msg)).toContainEqual(
      expect.stringContaining('--chunk-size was ignored'),
    );
  });

  test('a deprecated option works and warns', async () => {
    const node = await startedNode(['--mem-db', '--http-ip', '127.0.0.1']);
    await node.stop();
    expect(node.process.logged().map(({ msg }) => msg)).toContain('DEPRECATED: --http-ip is now called --node-ip.');
  });

  test('log level off leaves stderr empty', async () => {
    const node = await startedNode(['--mem-db', '--log-level', 'off']);
    expect((await node.stop()).err).toBe('');
  });
});

if (RUNS_FIXED)
  describe('a failed start says why, once, and what to do', () => {
    test('port in use: 3', async () => {
      const node = await startedNode(['--mem-db']);
      const second = await ran([
        'start',
        '--insecure',
        '--mem-db',
        '--log-level',
        'error',
        '--node-port',
        new URL(node.url).port,
      ]);
      await node.stop();
      expect(second).toMatchObject({
        code: 3,
        out: '',
        err: expect.stringMatching(
          /^error port_in_use: Port \d+ of 127\.0\.0\.1 is in use by another process\..*--node-port.*\n$/,
        ),
      });
    });

    test('directory in use: 3', async () => {
      const node = await startedNode(['--db', folder, ...CHUNK_SIZE]);
      const second = await skua(['start', '--insecure', '--db', folder, '--node-port', '0', '--log-level', 'error'])
        .ended;
      const verified = await ran(['verify', folder]);
      await node.stop();
      expect(second).toMatchObject({
        code: 3,
        out: '',
        err: expect.stringMatching(/^error directory_locked: .*--db.*\n$/),
      });
      expect(verified).toMatchObject({ code: 3, out: '', err: expect.stringContaining('error directory_locked: ') });
    });

    test('a file where the directory should be: 3', async () => {
      const file = path.join(folder, 'file');
      writeFileSync(file, '');
      const { code, err } = await ran([
        'start',
        '--insecure',
        '--db',
        file,
        '--node-port',
        '0',
        '--log-level',
        'error',
      ]);
      expect(code).toBe(3);
      expect(err).toMatch(/^error not_a_directory: .*--db.*\n$/);
    });

    const isRoot = process.getuid?.() === 0;
    test.skipIf(isRoot)(
      `no right to write there: 3${isRoot ? ' (skipped: root may write everywhere)' : ''}`,
      async () => {
        const closed = path.join(folder, 'closed');
        mkdirSync(closed);
        chmodSync(closed, 0o500);
        const { code, err } = await ran([
          'start',
          '--insecure',
          '--db',
          closed,
          '--node-port',
          '0',
          '--log-level',
          'error',
        ]);
        expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining('denied') });
      },
    );

    test('a damaged directory: 1', async () => {
      await (await startedNode(['--db', folder, ...CHUNK_SIZE])).stop();
      const chunk = path.join(folder, 'chunk-000000.000000');
      const { size } = statSync(chunk);
      writeFileSync(chunk, Buffer.alloc(size, 7));
      const { code, out, err } = await ran([
        'start',
        '--insecure',
        '--db',
        folder,
        '--node-port',
        '0',
        '--log-level',
        'error',
      ]);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toContain('chunk-000000.000000');
    });
  });

describe('verify', () => {
  test('a good directory: 0, for people and for programs', async () => {
    const node = await startedNode(['--db', folder, ...CHUNK_SIZE]);
    await append(node.url, ID);
    await node.stop();
    expect(await ran(['verify', folder])).toMatchObject({ code: 0, out: expect.stringContaining('nothing wrong') });
    const { code, out } = await ran(['verify', folder, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ kind: 'summary', directory: folder, chunks: 1, errors: 0 });
  });

  test('a damaged one: 1, with file and place', async () => {
    await (await startedNode(['--db', folder, ...CHUNK_SIZE])).stop();
    const chunk = path.join(folder, 'chunk-000000.000000');
    const bytes = Buffer.alloc(statSync(chunk).size, 7);
    writeFileSync(chunk, bytes);
    const { code, out } = await ran(['verify', folder, '--json']);
    expect(code).toBe(1);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.find(({ severity }) => severity === 'error')).toMatchObject({
      kind: 'finding',
      file: 'chunk-000000.000000',
      code: expect.any(String),
      message: expect.any(String),
    });
    expect(lines.at(-1)).toMatchObject({ kind: 'summary' });
  });

  test('no directory, and one without a database: 3', async () => {
    expect(await ran(['verify', path.join(folder, 'absent')])).toMatchObject({
      code: 3,
      err: expect.stringContaining('error not_a_directory: '),
    });
    expect(await ran(['verify', folder])).toMatchObject({
      code: 3,
      err: expect.stringContaining('error not_a_data_directory: '),
    });
  });
});
