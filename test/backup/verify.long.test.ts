import { describe, expect, it } from 'vitest';
import { verifyRepository } from '../../core/backup/verify/verify.ts';
import type { RepositoryFinding, VerifyRepositoryOptions } from '../../core/backup/verify/verify.ts';
import { noteProven, suspectBlobs } from '../../core/backup/notes/notes.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { listAll } from '../../core/ports/object-store.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { backUpNode, danglingIn } from '../support/backup/backup-kit.ts';
import { FakeLog } from '../support/backup/fake-log.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { Random } from '../support/random.ts';
import { append, openSmall } from './hold-kit.ts';

const KEY = new Random(4).bytes(32);

/** What a check finds by any client; a repository that can't even be opened names its object, too. */
async function findingsOf(
  objects: ObjectStore,
  key: Uint8Array | null,
  more: Partial<VerifyRepositoryOptions> = {},
): Promise<RepositoryFinding[]> {
  const findings: RepositoryFinding[] = [];
  try {
    const repository = await openTestRepository(objects, { key });
    await verifyRepository({ repository, onFinding: (finding) => findings.push(finding), ...more });
  } catch (error) {
    if (!isSkuaError(error, 'repository_damaged')) throw error;
    findings.push({ key: String(error.data['key']), kind: 'damaged', message: error.message, backups: [] });
  }
  return findings;
}

async function keysIn(objects: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listAll(objects, '')) keys.push(key);
  return keys;
}

/** Two backups of a node, one of a log with pieces behind it, and one of every small object. */
async function filled(key: Uint8Array | null): Promise<MemoryObjects> {
  const objects = new MemoryObjects();
  const repository = await openTestRepository(objects, { key, compression: key === null ? 'off' : 'on' });
  const node = await openSmall(new MemoryStorage());
  await append(node, 'a', 20);
  await backUpNode(node, repository);
  await append(node, 'b', 30);
  await backUpNode(node, repository);
  await node.close();
  const log = new FakeLog();
  log.write(3, 100);
  const base = await log.backUp(repository, 1_000);
  for (let i = 0; i < 3; i++) {
    const from = log.end;
    log.write(2, 300);
    await repository.ship(
      { manifestId: base.id, from, to: log.end, shippedMs: 2_000 + i },
      await log.read(from, log.end),
    );
  }
  await repository.writeBlob(9, async function* content() {
    yield new TextEncoder().encode('left over');
  });
  await noteProven(repository, { backupId: base.id, provenMs: 1, position: log.end });
  await repository.writeObject('unreferenced', { seen: {} });
  await repository.writeObject('active/bbbbbbbb-0000-4000-8000-000000000001', { writtenMs: 0 });
  await repository.writeObject('pruning/bbbbbbbb-0000-4000-8000-000000000002', { writtenMs: 0 });
  await repository.writeObject('suspect', { blobs: [] });
  return objects;
}

describe.each([
  { name: 'plain', key: null },
  { name: 'encrypted and compressed', key: KEY },
])('a check of a repository, $name', ({ key }) => {
  it('finds nothing in a sound one', async () => {
    const objects = await filled(key);
    expect(await findingsOf(objects, key)).toEqual([]);
    const repository = await openTestRepository(objects, { key });
    const report = await verifyRepository({ repository });
    expect(report).toMatchObject({ manifests: 3, pieces: 3, findings: 0 });
    expect(report.blobsRead).toBe(report.blobs);
  });

  it('finds any changed byte of any object, and names the object', async () => {
    const objects = await filled(key);
    const random = new Random(12);
    const keys = await keysIn(objects);
    expect(keys.length).toBeGreaterThan(20);
    for (const name of keys) {
      const bytes = (await objects.get(name))!;
      const places = [
        0,
        9,
        12,
        16,
        24,
        28,
        bytes.length - 1,
        ...Array.from({ length: 4 }, () => random.int(0, bytes.length - 1)),
      ];
      for (const at of new Set(places.filter((place) => place < bytes.length))) {
        const changed = bytes.slice();
        changed[at]! ^= 1 << random.int(0, 7);
        const fork = objects.fork();
        await fork.put(name, changed);
        const findings = await findingsOf(fork, key);
        expect(
          findings.map((finding) => finding.key),
          `byte ${at} of ${name}`,
        ).toContain(name);
        if (name.startsWith('blobs/') || name.startsWith('shipped/'))
          for (const finding of findings) expect(finding.backups.length, finding.message).toBeLessThanOrEqual(2);
      }
      const fork = objects.fork();
      await fork.put(name, new Uint8Array([...bytes, 0]));
      expect(
        (await findingsOf(fork, key)).map((finding) => finding.key),
        `a byte behind ${name}`,
      ).toContain(name);
    }
  });

  it('finds objects that are missing, and the backups that need them', async () => {
    const objects = await filled(key);
    const repository = await openTestRepository(objects, { key });
    const [, newer] = await repository.backups();
    const { chunks, id } = await repository.manifest((await repository.backups())[0]!.id);
    for (const name of [repository.blobKey(chunks[0]!.blob)]) {
      const fork = objects.fork();
      await fork.remove([name]);
      expect(await findingsOf(fork, key)).toMatchObject([{ key: name, kind: 'missing', backups: [newer!.id, id] }]);
    }
    for await (const { key: name } of listAll(objects, 'shipped/')) {
      const fork = objects.fork();
      await fork.remove([name]);
      const findings = await findingsOf(fork, key);
      // The last one leaves no gap: what was shipped ends before it.
      if (findings.length > 0) expect(findings).toMatchObject([{ key: name, kind: 'missing' }]);
    }
  });
});

describe('a check of a repository', () => {
  it('reads a part, and all of it in a few turns', async () => {
    const objects = await filled(null);
    const repository = await openTestRepository(objects);
    const { blobs, bytesRead } = await verifyRepository({ repository });
    let read = 0;
    for (let seed = 0; seed < 8; seed++) {
      const report = await verifyRepository({ repository, subset: 0.25, seed });
      expect(report.bytesRead).toBeLessThan(bytesRead);
      read += report.blobsRead;
    }
    expect(read / blobs).toBeGreaterThan(1);
    expect(read / blobs).toBeLessThan(3);
    expect((await verifyRepository({ repository, subset: 0 })).blobsRead).toBe(0);
  });

  it('looks at one backup alone', async () => {
    const objects = await filled(null);
    const repository = await openTestRepository(objects);
    const [newest, older] = await repository.backups();
    const known = new Set((await repository.manifest(older!.id)).chunks.map(({ blob }) => blob));
    const own = (await repository.manifest(newest!.id)).chunks.find(({ blob }) => !known.has(blob))!;
    await objects.remove([repository.blobKey(own.blob)]);
    expect(await findingsOf(objects, null, { backupId: older!.id })).toEqual([]);
    expect(await findingsOf(objects, null, { backupId: newest!.id })).toMatchObject([
      { kind: 'missing', backups: [newest!.id] },
    ]);
    await expect(findingsOf(objects, null, { backupId: 'none' })).rejects.toMatchObject({ code: 'backup_not_found' });
  });

  it('tells of objects that do not belong there', async () => {
    const objects = await filled(null);
    await objects.put('notes.txt', new Uint8Array(3));
    expect(await findingsOf(objects, null)).toMatchObject([{ key: 'notes.txt', kind: 'unknown' }]);
  });

  it('has the next backup mend what it found', async () => {
    const objects = new MemoryObjects();
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 30);
    const repository = await openTestRepository(objects);
    const { manifest } = await backUpNode(node, repository);
    const name = repository.blobKey(manifest.chunks[0]!.blob);
    const bytes = (await objects.get(name))!;
    bytes[1_000]! ^= 1;
    await objects.put(name, bytes);
    expect(await findingsOf(objects, null)).toMatchObject([{ key: name, kind: 'damaged', backups: [manifest.id] }]);
    const { report } = await backUpNode(node, repository, { known: manifest });
    expect(report.blobsStored).toBe(1);
    expect(await findingsOf(objects, null)).toEqual([]);
    expect(await danglingIn(objects)).toEqual([]);
    expect((await suspectBlobs(repository)).size).toBe(0);
    await node.close();
  });

  it('ends when it is aborted', async () => {
    const repository = await openTestRepository(await filled(null));
    const abort = new AbortController();
    await expect(
      verifyRepository({ repository, signal: abort.signal, onProgress: () => abort.abort() }),
    ).rejects.toMatchObject({ code: 'aborted' });
  });
});
