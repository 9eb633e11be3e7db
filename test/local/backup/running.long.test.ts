import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { openTestStore } from '../../support/test-store.ts';
import { skua, startedNode } from '../spawn.ts';
import { run } from '../run.ts';

/** Backups of a node that is running, from the command line. */

const EVENTS = 'application/vnd.eventstore.events+json';
type Node = Awaited<ReturnType<typeof startedNode>>;

let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-running-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function append(node: Node, stream: string, count: number): Promise<string[]> {
  const events = Array.from({ length: count }, () => ({
    eventId: crypto.randomUUID(),
    eventType: 'parcel',
    data: { text: 'x'.repeat(1_500) },
  }));
  // A write has to fit a chunk.
  for (let from = 0; from < count; from += 25) {
    const { status } = await fetch(`${node.url}/streams/${stream}`, {
      method: 'POST',
      headers: { 'content-type': EVENTS },
      body: JSON.stringify(events.slice(from, from + 25)),
    });
    expect(status).toBe(201);
  }
  return events.map(({ eventId }) => eventId);
}

async function idsIn(db: string, stream: string): Promise<string[]> {
  const open = await openTestStore({ storage: new FilesystemStorage({ root: db }), writeEpoch: false });
  const ids: string[] = [];
  for (let isEnd = false; !isEnd;) {
    const page = await open.store.readStream(stream, {
      direction: 'forward',
      from: ids.length,
      count: 4_000,
      resolveLinks: false,
    });
    ids.push(...page.events.map(({ id }) => id));
    isEnd = page.isEnd;
  }
  await open.close();
  return ids;
}

function start(): Promise<Node> {
  return startedNode([
    '--db',
    at('data'),
    '--chunk-size',
    '128KiB',
    '--max-mem-table-size',
    '200',
    '--stream-existence-filter-size',
    '10000',
  ]);
}

/** What a command that succeeds may say beside its result: how far it is, where the machine is slow. */
const QUIET = expect.not.stringMatching(/error|warning|"code"/i);

test('under load: everything acknowledged before a backup began is in it, in a copy and in a repository', async () => {
  const node = await start();
  const acknowledged: string[] = [];
  let isWriting = true;
  const writer = (async () => {
    while (isWriting) acknowledged.push(...(await append(node, 's', 10)));
  })();
  const backups: { readonly words: string[]; readonly before: number }[] = [];
  for (const words of [
    ['copy', '--full', '--to', at('copy')],
    ['copy', '--differential', '--to', at('copy')],
    ['create', '--repository', at('repo')],
    ['create', '--repository', at('repo')],
  ]) {
    await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan((backups.at(-1)?.before ?? 0) + 100), {
      timeout: 600_000,
    });
    backups.push({ words, before: acknowledged.length });
    expect(await run('backup', ...words, '--node', node.url)).toMatchObject({ code: 0, err: QUIET });
  }
  isWriting = false;
  await writer;
  await node.stop();
  for (const [from, before] of [
    [at('copy'), backups[1]!.before],
    [at('repo'), backups[3]!.before],
  ] as const) {
    expect(await run('restore', '--from', from, '--db', at('restored'), '--force')).toMatchObject({
      code: 0,
      err: QUIET,
    });
    const found = await idsIn(at('restored'), 's');
    expect(found.length).toBeGreaterThanOrEqual(before);
    expect(found).toEqual(acknowledged.slice(0, found.length));
    expect(await run('verify', at('restored'))).toMatchObject({ code: 0 });
  }
});

test('a scavenge that runs is in the way, unless it is stopped for the time; then it goes on', async () => {
  const node = await start();
  await append(node, 'kept', 100);
  await append(node, 'gone', 200);
  await fetch(`${node.url}/streams/gone`, { method: 'DELETE', headers: { 'es-harddelete': 'true' } });
  const scavenge = async (method: string, rest = '') =>
    (
      await fetch(`${node.url}/admin/scavenge${rest}`, { method, headers: { accept: 'application/json' } })
    ).json() as Promise<Record<string, unknown>>;
  const { scavengeId } = await scavenge('POST', '?throttlePercent=1');
  const words = ['backup', 'copy', '--full', '--to', at('copy'), '--node', node.url];
  expect(await run(...words)).toMatchObject({
    code: 4,
    err: expect.stringMatching(/scavenge_in_progress.*--pause-scavenge/),
  });
  expect(readdirSync(folder)).toEqual(['data']);
  const paused = await run(...words, '--pause-scavenge');
  expect(paused).toMatchObject({
    code: 0,
    err: expect.stringMatching(new RegExp(`Scavenge ${scavengeId} was stopped.*\\nThe scavenge resumed`)),
  });
  await vi.waitFor(async () => expect(await scavenge('GET', '/last')).toMatchObject({ scavengeResult: 'Success' }), {
    timeout: 600_000,
  });
  expect((await scavenge('GET', '/last'))['scavengeId']).not.toBe(scavengeId);
  await node.stop();
  expect(await run('restore', '--from', at('copy'), '--db', at('restored'))).toMatchObject({ code: 0 });
  expect((await idsIn(at('restored'), 'kept')).length).toBe(100);
});

test('Ctrl+C ends a backup with 130 and lets go of the node; a repeat makes it', async () => {
  const node = await start();
  await append(node, 's', 200);
  const words = ['backup', 'create', '--repository', at('repo'), '--node', node.url];
  const process = skua([...words, '--throttle', '64KiB']);
  // Something is stored, and most is not.
  await vi.waitFor(() => expect(readdirSync(at('repo', 'active'))).toHaveLength(1), { timeout: 600_000, interval: 20 });
  process.child.kill('SIGINT');
  expect(await process.ended).toMatchObject({ code: 130, err: expect.stringContaining('Repeat the command') });
  const listed = await run('backup', 'list', '--repository', at('repo'), '--json');
  expect(JSON.parse(listed.out)).toMatchObject({ backups: [] });
  const { status } = await fetch(`${node.url}/admin/scavenge`, { method: 'POST' });
  expect(status).toBe(200);
  await vi.waitFor(
    async () =>
      expect(
        await (await fetch(`${node.url}/admin/scavenge/last`, { headers: { accept: 'application/json' } })).json(),
      ).toMatchObject({ scavengeResult: 'Success' }),
    { timeout: 600_000 },
  );
  expect(await run(...words)).toMatchObject({ code: 0, err: QUIET });
  expect(await run('backup', 'copy', '--snapshot', '--node', node.url, '--json')).toMatchObject({
    code: 0,
    out: expect.stringContaining('"isOneVolume":true'),
  });
  await node.stop();
});
