import { mkdir, readFile, writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { restoreBackup } from '../../../core/backup/restore/restore.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { DirectoryObjects } from '../../../infra/objects/directory-objects.ts';
import { lastOf } from '../../backup/hold-kit.ts';
import { restoreOptions } from '../../support/backup/restore-kit.ts';
import { openTestRepository } from '../../support/backup/test-repository.ts';
import { openTestStore } from '../../support/test-store.ts';
import { startedIn, temporaryFolder, until } from './node-kit.ts';
import type { Started } from './node-kit.ts';
import { findingsOf } from '../../support/damage.ts';

/** A real node, its files over HTTP, and backups of itself. */

let place: Awaited<ReturnType<typeof temporaryFolder>>;
let running: Started | null = null;

beforeEach(async () => {
  place = await temporaryFolder();
});
afterEach(async () => {
  await running?.node.stop();
  running = null;
  await place.remove();
});

async function start(...words: string[]): Promise<Started> {
  running = await startedIn(place.folder, words);
  return running;
}

interface Listed {
  readonly files: readonly { readonly path: string; readonly sizeBytes: number }[];
  readonly checkpoints: { readonly writer: number };
}

/** Copies what a hold lists, over HTTP, into a folder. */
async function copyOf(node: Started, holdId: string): Promise<FilesystemStorage> {
  const { files } = await node.json<Listed>('GET', `/admin/backup/files?hold=${holdId}`);
  const root = path.join(node.folder, 'copy');
  // As who copies does: writing a file may take longer than a hold lasts.
  const renewing = setInterval(() => {
    void node.ask('POST', `/admin/backup/hold/${holdId}`).then(
      (reply) => reply.body?.cancel(),
      () => {},
    );
  }, 10_000);
  try {
    for (const { path: name, sizeBytes } of files) {
      const reply = await node.ask('GET', `/admin/backup/files/${name}?hold=${holdId}`);
      expect([name, reply.status, reply.headers.get('content-length')]).toEqual([name, 200, String(sizeBytes)]);
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), new Uint8Array(await reply.arrayBuffer()));
    }
  } finally {
    clearInterval(renewing);
  }
  return new FilesystemStorage({ root });
}

test('a copy that is made under writes has everything acknowledged before its hold', async () => {
  const node = await start();
  await node.append('orders', 90);
  let isDone = false;
  const writing = (async () => {
    while (!isDone) await node.append('orders', 5);
  })();
  const before = (await node.json('GET', '/streams/orders/head/backward/1?embed=body')).entries[0]
    .eventNumber as number;
  const { holdId } = await node.json<{ holdId: string }>('POST', '/admin/backup/hold');
  const storage = await copyOf(node, holdId);
  expect((await node.json('POST', '/admin/scavenge')).code).toBe('backup_running');
  expect((await node.ask('DELETE', `/admin/backup/hold/${holdId}`)).status).toBe(204);
  isDone = true;
  await writing;
  expect((await node.ask('POST', '/admin/scavenge')).status).toBe(200);
  const open = await openTestStore({ storage, writeEpoch: false });
  expect(await lastOf(open, 'orders')).toBeGreaterThanOrEqual(before);
  await open.close();
  expect(await findingsOf(storage)).toEqual([]);
});

test('a restart of the node ends its holds, and its id stays', async () => {
  const first = await start();
  const { holdId, nodeId } = await first.json<{ holdId: string; nodeId: string }>('POST', '/admin/backup/hold');
  await first.node.stop();
  const second = await start();
  expect(await second.json('GET', `/admin/backup/files?hold=${holdId}`)).toMatchObject({ code: 'hold_not_found' });
  expect((await second.ask('POST', '/admin/scavenge')).status).toBe(200);
  await until(async () => (await second.json('GET', '/admin/scavenge/current')).scavengeId === '');
  expect(await second.json('POST', '/admin/backup/hold')).toMatchObject({ nodeId });
});

describe('with a repository', () => {
  const repository = () => path.join(place.folder, 'backups');
  const ended = (node: Started) => until(async () => (await node.ask('GET', '/admin/backup/current')).status === 404);
  const metric = async (node: Started, name: string): Promise<number | null> => {
    const line = (await (await node.ask('GET', '/metrics')).text()).split('\n').find((each) => each.startsWith(name));
    return line === undefined ? null : Number(line.split(' ').at(-1));
  };

  test('backs itself up, and again what is new', async () => {
    const node = await start('--backup-repository', repository());
    expect(await metric(node, 'eventstore_backup_age_seconds')).toBeNull();
    await node.append('orders', 90);
    const { backupId } = await node.json<{ backupId: string }>('POST', '/admin/backup');
    await ended(node);
    const [first, ...others] = (await node.json('GET', '/admin/backups')).backups;
    expect([first, others]).toMatchObject([{ id: backupId, cause: 'manual' }, []]);
    await node.append('orders', 5);
    await node.json('POST', '/admin/backup');
    await ended(node);
    const { backups } = await node.json('GET', '/admin/backups');
    expect(backups.map(({ id }: { id: string }) => id)[1]).toBe(backupId);
    expect(backups[0].logEnd).toBeGreaterThan(first.logEnd);
    expect(await metric(node, 'eventstore_backup_runs_total{result="Success"}')).toBe(2);
    expect(await metric(node, 'eventstore_backup_age_seconds')).toBeGreaterThanOrEqual(0);
    expect(node.log.lines.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['a backup has started', 'a backup has completed']),
    );
  });

  test('ships what is new behind a backup that it makes for that, and goes on after a restart', async () => {
    const words = ['--backup-repository', repository(), '--backup-ship-every-sec', '1'];
    const first = await start(...words);
    const isShipped = (node: Started) =>
      until(
        async () =>
          (await metric(node, 'eventstore_backup_unshipped_bytes')) === 0 &&
          (await metric(node, 'eventstore_backup_ship_lag_seconds')) === 0,
      );
    await first.append('orders', 10);
    await isShipped(first);
    const [base] = (await first.json('GET', '/admin/backups')).backups;
    expect(base).toMatchObject({ cause: 'shipping' });
    await first.append('orders', 3);
    await isShipped(first);
    const [shipped, ...others] = (await first.json('GET', '/admin/backups')).backups;
    expect([shipped.id, shipped.logEnd, others]).toEqual([base.id, base.logEnd, []]);
    expect(shipped.shippedEnd).toBeGreaterThan(base.logEnd);
    await first.node.stop();
    const second = await start(...words);
    await isShipped(second);
    const [later] = (await second.json('GET', '/admin/backups')).backups;
    expect(later.id).toBe(base.id);
    expect(later.shippedEnd).toBeGreaterThan(shipped.shippedEnd);
  });

  test('ships on while a scavenge runs, over the end of its chunk, and a restore has everything', async () => {
    const node = await start('--backup-repository', repository(), '--backup-ship-every-sec', '1');
    const isShipped = () => until(async () => (await metric(node, 'eventstore_backup_unshipped_bytes')) === 0);
    await node.ask('POST', '/streams/orders/metadata', {
      headers: {
        'content-type': 'application/json',
        'es-eventtype': '$metadata',
        'es-eventid': '00000000-0000-4000-9000-000000000002',
      },
      body: '{"$maxCount":1}',
    });
    await node.append('orders', 300);
    await isShipped();
    // Shipping makes a backup for the chunks that were begun, and no scavenge begins meanwhile.
    let scavengeId: string | undefined;
    await until(
      async () =>
        (scavengeId = (await node.json('POST', '/admin/scavenge?throttlePercent=1')).scavengeId as
          | string
          | undefined) !== undefined,
    );
    await node.append('kept', 80);
    await isShipped();
    const objects = new DirectoryObjects({ root: repository() });
    const target = new MemoryStorage();
    await restoreBackup(
      restoreOptions(await openTestRepository(objects, { create: false, compression: 'auto' }), target),
    );
    expect((await node.json('GET', '/admin/scavenge/current')).scavengeId).toBe(scavengeId);
    await objects.close();
    const open = await openTestStore({ storage: target, writeEpoch: false });
    expect(await lastOf(open, 'kept')).toBe(79);
    await open.close();
    expect(await findingsOf(target)).toEqual([]);
  });

  test('what file managers leave in the repository stops neither lists nor retention, is told once, and stays', async () => {
    const strangers = [
      'manifests/.DS_Store',
      'manifests/Thumbs.db',
      'blobs/.DS_Store',
      'shipped/desktop.ini',
      'active/._x',
      'notes.txt',
    ].map((name) => path.join(repository(), name));
    const node = await start('--backup-repository', repository(), '--backup-keep-last', '1');
    const made: string[] = [];
    for (let i = 0; i < 3; i++) {
      await node.append('orders', 2);
      made.unshift((await node.json<{ backupId: string }>('POST', '/admin/backup')).backupId);
      await ended(node);
      if (i > 0) continue;
      for (const stranger of strangers) {
        await mkdir(path.dirname(stranger), { recursive: true });
        await writeFile(stranger, 'x');
      }
    }
    expect((await node.json('GET', '/admin/backups')).backups.map(({ id }: { id: string }) => id)).toEqual(
      made.slice(0, 1),
    );
    expect(
      node.log.lines.filter(({ level, message }) => level === 'warn' && message.includes('skipped, and left')),
    ).toMatchObject([{ message: expect.stringMatching(/ in .* ha(s a name|ve names) unknown to this store \(/) }]);
    for (const stranger of strangers) expect(await readFile(stranger, 'utf8')).toBe('x');
  });

  test('one in memory does so too', async () => {
    const node = await start('--mem-db', '--backup-repository', repository());
    await node.append('orders', 40);
    const { backupId } = await node.json<{ backupId: string }>('POST', '/admin/backup');
    await ended(node);
    expect((await node.json('GET', '/admin/backups')).backups).toMatchObject([{ id: backupId }]);
  });

  test('without one there is nothing to begin, and the refusal says what to do', async () => {
    const node = await start();
    const reply = await node.ask('POST', '/admin/backup');
    expect([reply.status, await reply.json()]).toMatchObject([
      409,
      { code: 'backup_off', detail: expect.stringContaining('Backup:Repository') },
    ]);
    expect((await node.ask('GET', '/admin/backups')).status).toBe(409);
  });

  test('a key that is missing or broken keeps the node from starting', async () => {
    await expect(
      start('--backup-repository', repository(), '--backup-key-file', path.join(place.folder, 'no-key')),
    ).rejects.toMatchObject({ code: 'key_unreadable' });
    const key = path.join(place.folder, 'key');
    await writeFile(key, 'too short');
    await expect(start('--backup-repository', repository(), '--backup-key-file', key)).rejects.toMatchObject({
      code: 'key_unreadable',
    });
    await writeFile(key, `${'5a'.repeat(32)}\n`);
    const node = await start('--backup-repository', repository(), '--backup-key-file', key);
    await node.append('orders', 3);
    await node.json('POST', '/admin/backup');
    await ended(node);
    expect((await node.json('GET', '/admin/backups')).backups).toHaveLength(1);
  });
});
