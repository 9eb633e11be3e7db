import { nodeDigests } from '../../infra/node-digests.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pruneRepository } from '../../core/backup/prune/prune.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { checkErasureInRepository } from '../../core/backup/erasure-check/erasure-check.ts';
import { verifyRepository } from '../../core/backup/verify/verify.ts';
import type { RepositoryFinding } from '../../core/backup/verify/verify.ts';
import { logStrangersOnce } from '../../core/ports/object-kinds.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { listAll } from '../../core/ports/object-store.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { DirectoryObjects } from '../../infra/objects/directory-objects.ts';
import { ran } from '../local/spawn.ts';
import { FakeLog } from '../support/backup/fake-log.ts';
import { playHistory } from '../support/backup/restore-history.ts';
import type { History } from '../support/backup/restore-history.ts';
import { backupId, restoreOptions } from '../support/backup/restore-kit.ts';
import { openTestRepository, repositoryWorld } from '../support/backup/test-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';

/**
 * What systems, file managers, backup tools and people leave beside the objects of a repository: nothing stops, and
 * nothing of it goes.
 */

const SYSTEM = [
  '.DS_Store',
  'Thumbs.db',
  'desktop.ini',
  '._x',
  '.nfs00000000000a1b2c00000001',
  '.gitkeep',
  'README.md',
  'x.tmp',
  '0',
  'zzz',
];
/** Names that are nearly ours. */
const NEARLY = [
  `manifests/00179530560200-${backupId(1)}`,
  `manifests/001795305602000-${backupId(1)}.bak`,
  `manifests/001795305602000-${backupId(1).toUpperCase()}`,
  `manifests/001795305602000_${backupId(1)}`,
  `manifests/old/001795305602000-${backupId(1)}`,
  `blobs/aa/${'a'.repeat(63)}`,
  `blobs/aa/${'a'.repeat(64)}.1`,
  `blobs/aa/${'b'.repeat(64)}`,
  `blobs/${'a'.repeat(64)}`,
  `blobs/AA/${'A'.repeat(64)}`,
  `shipped/${backupId(1)}/${'0'.repeat(19)}`,
  `shipped/${backupId(1)}/${'0'.repeat(20)}.tmp`,
  `shipped/x/${'0'.repeat(20)}`,
  `active/${backupId(1)}.json`,
  'active/x',
  'pruning/x',
  'proven.bak',
  'skua-repository.bak',
];
const FOLDERS = [
  '',
  'manifests/',
  'blobs/',
  'blobs/aa/',
  'shipped/',
  `shipped/${backupId(1)}/`,
  'active/',
  'pruning/',
  'notes/',
];
const STRANGERS = [...FOLDERS.flatMap((folder) => SYSTEM.map((name) => folder + name)), ...NEARLY];
const BYTES = new TextEncoder().encode("somebody else's");

let folder: string;
let history: History;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-strangers-'));
  history = await playHistory({ seed: 44, parts: 3, writes: 40, scavenges: false });
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function withStrangers(objects: ObjectStore): Promise<void> {
  for await (const { key } of listAll(history.objects, '')) await objects.put(key, (await history.objects.get(key))!);
  for (const key of STRANGERS) await objects.put(key, BYTES);
}

async function expectUntouched(objects: ObjectStore): Promise<void> {
  for (const key of STRANGERS) expect(await objects.get(key), key).toEqual(BYTES);
}

describe.each([
  { name: 'in memory', open: () => new MemoryObjects() },
  { name: 'in a directory', open: () => new DirectoryObjects({ root: path.join(folder, 'in-directory') }) },
])('strangers in a repository $name', ({ open }) => {
  it('stop no list, backup, check, search, shipping, prune or restore, are told once, and stay', async () => {
    const objects: ObjectStore = open();
    await objects.begin?.();
    await withStrangers(objects);
    const told: string[] = [];
    const repository = await openTestRepository(
      objects,
      { create: false },
      { onStrangers: logStrangersOnce((message) => told.push(message)) },
    );
    const ids = history.pasts.map(({ manifest }) => manifest.id);
    expect((await repository.backups()).map(({ id }) => id)).toEqual([...ids].reverse());
    expect((await repository.manifest('latest')).id).toBe(ids.at(-1));
    const log = new FakeLog();
    log.write(3, 100);
    const base = await log.backUp(repository, TEST_NOW_MS - 1_000);
    const from = log.end;
    log.write(2, 300);
    await repository.ship(
      { manifestId: base.id, from, to: log.end, shippedMs: TEST_NOW_MS },
      await log.read(from, log.end),
    );
    for (const key of ['.DS_Store', `${from}`]) await objects.put(`shipped/${base.id}/${key}`, BYTES);
    expect(await repository.shipped(base.id)).toHaveLength(1);
    const findings: RepositoryFinding[] = [];
    await verifyRepository({ repository, onFinding: (finding) => findings.push(finding) });
    expect(findings.filter(({ kind }) => kind !== 'unknown')).toEqual([]);
    expect(new Set(findings.map(({ key }) => key))).toEqual(
      new Set([...STRANGERS, `shipped/${base.id}/.DS_Store`, `shipped/${base.id}/${from}`]),
    );
    const search = checkErasureInRepository({
      repository,
      clock: new ManualClock(TEST_NOW_MS, 'microtask'),
      events: [],
      stream: 'nothing-of-that-name',
    });
    let next = await search.next();
    while (next.done !== true) next = await search.next();
    expect(next.value.traces).toBe(0);
    for (const nowMs of [TEST_NOW_MS + 1e9, TEST_NOW_MS + 2e9]) {
      await pruneRepository({
        digests: nodeDigests,
        repository,
        keep: { last: 1, hourly: 0, daily: 0, weekly: 0 },
        isErased: true,
        clock: new ManualClock(nowMs, 'microtask'),
        ids: new SeededIds(8),
      });
    }
    await repository.removeManifest(base.id);
    expect((await repository.backups()).map(({ id }) => id)).toEqual([ids.at(-1)]);
    await restoreBackup(restoreOptions(repository, new MemoryStorage()));
    await expectUntouched(objects);
    expect(told).toEqual([expect.stringContaining('skipped, and left where they are')]);
    await expect(repository.removeObjects(['manifests/.DS_Store'])).rejects.toMatchObject({ code: 'io_error' });
    await expectUntouched(objects);
    await repository.close();
  });
});

describe('strangers in the place of a repository', () => {
  it('are told by a command on a line of its own, which does its work', async () => {
    const place = path.join(folder, 'told');
    const objects = new DirectoryObjects({ root: place });
    await objects.begin();
    await withStrangers(objects);
    const listed = await ran(['backup', 'list', '--repository', place, '--json']);
    expect(listed.code).toBe(0);
    expect(JSON.parse(listed.out) as { backups: unknown[]; damaged: unknown[] }).toMatchObject({
      backups: [{}, {}, {}],
      damaged: [],
    });
    expect(listed.err.trim().split('\n')).toEqual([
      expect.stringMatching(
        /^\d+ objects in .*told have names unknown to this store \(manifests\/\..* is the first\): skipped, and left where they are\.$/,
      ),
    ]);
    await expectUntouched(new DirectoryObjects({ root: place }));
  });

  it("keep nobody from making one only where they are the system's", async () => {
    const objects = new MemoryObjects();
    for (const key of ['.DS_Store', 'lost-found/._x', 'Thumbs.db', '.snapshot/a/b']) await objects.put(key, BYTES);
    await openTestRepository(objects, {}, repositoryWorld());
    for (const key of ['notes.txt', 'manifests/0', 'src/main.ts']) {
      const other = new MemoryObjects();
      await other.put('.DS_Store', BYTES);
      await other.put(key, BYTES);
      await expect(openTestRepository(other), key).rejects.toMatchObject({ code: 'repository_not_found' });
    }
  });
});
