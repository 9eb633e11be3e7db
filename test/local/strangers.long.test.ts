import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { STRANGERS } from '../support/strangers.ts';
import { ran, startedProcess } from './spawn.ts';

/**
 * Everything that writes to files of a real machine, as processes, with strangers' files and folders beside and below
 * all that it writes to.
 */

const EVENTS = 'application/vnd.eventstore.events+json';
const UUID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301';
/** Names that are nearly those of objects of a log, of a repository, or of what lies in a temporary folder. */
const NEARLY = [
  'log/0000000000000000001',
  'log/00000000000000000003.tmp',
  'log/.DS_Store',
  'manifest/.DS_Store',
  'manifest/999999999999990.bak',
  'files/notes.txt',
  `files/${UUID}.tmp`,
  'control/start-x.bak',
  'nodes/notes',
  `.tmp/${UUID}.bak`,
  '.tmp/.DS_Store',
  'manifests/.DS_Store',
  'manifests/Thumbs.db',
  `manifests/001795305602000-${UUID}.bak`,
  `blobs/aa/${'a'.repeat(63)}`,
  'blobs/notes',
  'shipped/x/y',
  'active/x',
  'skua-repository.bak',
  'skua-drill-notes',
  'skua-tick-x/inside',
  'node1.log.bak',
];
/** Of a machine that does much else. */
const TIMEOUT_MS = 300_000;

let folder: string;
const at = (...names: string[]): string => path.join(folder, ...names);
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-strangers-'));
  mkdirSync(at('tmp'));
  vi.stubEnv('TMPDIR', at('tmp'));
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** What was planted, by its path, with the time that it has. */
const planted = new Map<string, number>();

function plant(root: string, names: readonly string[]): void {
  for (const name of names) {
    const file = path.join(root, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, `somebody else's ${file}`, { flag: 'wx' });
    planted.set(file, statSync(file).mtimeMs);
  }
}

function expectUntouched(what: string): void {
  const changed = [...planted].filter(([file, mtimeMs]) => {
    const found = statSync(file, { throwIfNoEntry: false });
    return found === undefined || found.mtimeMs !== mtimeMs || readFileSync(file, 'utf8') !== `somebody else's ${file}`;
  });
  expect(changed, what).toEqual([]);
}

async function done(...words: string[]): Promise<string> {
  const { code, out, err } = await ran(words);
  expect(code, `${words.join(' ')}: ${err}`).toBe(0);
  expectUntouched(words.join(' '));
  return out;
}

async function append(url: string, stream: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const events = Array.from({ length: 20 }, () => ({
      eventId: crypto.randomUUID(),
      eventType: 'made',
      data: { text: 'x'.repeat(4_000) },
    }));
    const reply = await fetch(`${url}/streams/${stream}`, {
      method: 'POST',
      headers: { 'content-type': EVENTS },
      body: JSON.stringify(events),
    });
    expect(reply.status).toBe(201);
  }
}

test(
  'a node, its backups, copies, restores, scavenges, and a cluster leave strangers as they are',
  async () => {
    const data = at('data');
    const NODE = [
      '--db',
      data,
      '--chunk-size',
      '1MiB',
      '--log',
      at('logs'),
      '--audit-log',
      at('audit', 'audit.json'),
      '--log-file-retention-count',
      '1',
      '--log-file-interval',
      'Minute',
    ];
    mkdirSync(at('audit'));
    const start = () => startedProcess(NODE);
    await (await start()).stop();
    plant(data, STRANGERS);
    plant(at('logs'), ['notes.txt', 'log.json.bak', 'log1.json', 'log-err20.json']);
    plant(at('audit'), ['audit.txt', 'audit1.json', 'audit20310402.json.bak']);
    plant(at('tmp'), NEARLY);
    for (const place of ['log', 'copy', 'back']) plant(at(place, 'beside'), ['x']);

    let node = await start();
    await append(node.url, 'a', 18);
    expect((await fetch(`${node.url}/streams/a`, { method: 'DELETE' })).status).toBe(204);
    await append(node.url, 'b', 9);
    await done('backup', 'create', '--node', node.url, '--repository', at('repository'));
    plant(at('repository'), NEARLY);
    await done('scavenge', 'start', '--node', node.url, '--wait', '--threshold', '-1');
    await done('backup', 'create', '--node', node.url, '--repository', at('repository'));
    await done('backup', 'verify', '--repository', at('repository'));
    await done('backup', 'drill', '--repository', at('repository'));
    await done('backup', 'prune', '--repository', at('repository'), '--keep-last', '1');
    node.process.child.kill('SIGKILL');
    await node.process.ended;
    node = await start();
    await append(node.url, 'c', 5);
    expect((await node.stop()).code).toBe(0);
    expectUntouched('a stop');
    expect(readdirSync(data).filter((name) => /^chunk-.*\.gone\.tmp$/.test(name))).toEqual([]);

    await done('verify', data);
    await done('scavenge', 'offline', data);
    rmSync(at('copy', 'beside'), { recursive: true });
    planted.delete(at('copy', 'beside', 'x'));
    await done('backup', 'copy', '--full', '--db', data, '--to', at('copy'));
    plant(at('copy'), STRANGERS);
    await done('backup', 'copy', '--differential', '--db', data, '--to', at('copy'));
    // A folder with somebody's files and no data is no place to restore to; a directory of data is.
    for (const force of [[], ['--force']])
      expect(await ran(['restore', '--from', at('repository'), '--db', at('back'), ...force])).toMatchObject({
        code: 3,
        err: expect.stringContaining('not_a_data_directory'),
      });
    expectUntouched('a refused restore');
    expect(readdirSync(at('back'))).toEqual(['beside']);
    await done('restore', '--from', at('repository'), '--db', data, '--force');
    await done('restore', '--from', at('copy'), '--db', data, '--force');
    await done('verify', data);

    await done('cluster', 'reset', '--from', data, '--storage', at('log'), '--yes');
    plant(at('log'), NEARLY);
    const member = ['--storage', at('log'), '--db', at('member'), '--cluster-size', '1', '--disable-tls'];
    const wait = { headers: { authorization: `Basic ${btoa('admin:changeit')}` } };
    let first = await startedProcess(member);
    expect((await fetch(`${first.url}/streams/b`, wait)).ok).toBe(true);
    expect((await first.stop()).code).toBe(0);
    plant(at('member'), STRANGERS);
    first = await startedProcess(member);
    expect((await fetch(`${first.url}/streams/b`, wait)).ok).toBe(true);
    expect((await first.stop()).code).toBe(0);
    await done('verify', at('log'));
    await done('verify', at('member'));
    expect(planted.size).toBeGreaterThan(500);
  },
  TIMEOUT_MS,
);
