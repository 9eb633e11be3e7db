import { beforeEach, describe, expect, test } from 'vitest';
import { createBackup, type CreateBackupOptions } from '../../core/backup/create/create.ts';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { restoreCopy } from '../../core/backup/restore-copy/restore-copy.ts';
import { RESTORE_MARKER } from '../../core/log/format/markers.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { restoreOptions, restoreWorld } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { bytesOf, findingsOf, flipPayload } from '../support/damage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { append, clock, copy, openSource, stopped, withSource } from './copy-kit.ts';

/** A chunk with a flipped bit is neither backed up, nor copied, nor restored as if it were sound. */

const [FIRST, SECOND] = ['chunk-000000.000000', 'chunk-000001.000000'] as const;
let storage: MemoryStorage;

beforeEach(async () => {
  storage = new MemoryStorage();
  await withSource(storage, (open) => append(open, 'a', 200));
});

async function backUp(repository: Repository, more: Partial<CreateBackupOptions> = {}): Promise<Manifest> {
  const source = await stopped(storage);
  try {
    const { manifest } = await createBackup({
      source,
      repository,
      cause: 'manual',
      clock: new ManualClock(TEST_NOW_MS, 'microtask'),
      ids: new SeededIds(31),
      digests: nodeDigests,
      ...more,
    });
    return manifest;
  } finally {
    await source.release();
  }
}

function lanesTo(objects: MemoryObjects, of = storage): NonNullable<CreateBackupOptions['lanes']> {
  const jobs = new InlineJobs({
    jobs: JOBS,
    storage: of,
    digests: nodeDigests,
    ids: new SeededIds(8),
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
    backup: { keys: nodeKeys, compression: nodeCompression, openObjects: async () => objects },
  });
  return {
    jobs,
    repository: { place: { kind: 'directory', path: 'memory' }, key: null, compression: 'off' },
    bytesMin: 10_000,
  };
}

describe('a backup', () => {
  for (const compression of ['off', 'on'] as const) {
    test.each([false, true])(
      `of a damaged chunk is refused with file and remedy, and there is no manifest (compression ${compression}, lanes %s)`,
      async (isInLanes) => {
        const at = await flipPayload(storage, SECOND);
        const objects = new MemoryObjects();
        const repository = await openTestRepository(objects, { compression });
        const refused = backUp(repository, isInLanes ? { lanes: lanesTo(objects) } : {});
        await expect(refused).rejects.toMatchObject({ code: 'log_corrupt', data: { file: SECOND } });
        await expect(refused).rejects.toThrow(/skua verify.*from a backup/);
        expect(await repository.backups()).toEqual([]);
        await flipPayload(storage, SECOND, at);
        expect((await backUp(repository)).chunks.length).toBeGreaterThan(1);
      },
    );
  }

  test('does not take a chunk for sound that an older version backed up', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    const first = await backUp(repository);
    const { id } = first;
    // As it was written before chunks were proved: without saying so.
    const chunks = first.chunks.map((chunk) => {
      const { provenBlob: _, ...old } = chunk;
      return old;
    });
    await repository.removeManifest(id);
    await repository.putManifest({ ...first, chunks });
    const at = await flipPayload(storage, FIRST);
    await expect(backUp(repository, { backupId: '00000000-0000-4000-8000-000000000009' })).rejects.toMatchObject({
      code: 'log_corrupt',
      data: { file: FIRST },
    });
    await flipPayload(storage, FIRST, at);
    const again = await backUp(repository, { backupId: '00000000-0000-4000-8000-000000000009' });
    expect(again.chunks.map(({ blob, provenBlob }) => provenBlob === blob)).toEqual(again.chunks.map(() => true));
    expect(again.chunks.map(({ blob }) => blob)).toEqual(first.chunks.map(({ blob }) => blob));
  });

  test('over the hold of a running node is refused too', async () => {
    const node = await openSource(storage);
    await flipPayload(storage, SECOND);
    const hold = await node.hold();
    const repository = await openTestRepository(new MemoryObjects());
    const options = {
      source: hold,
      repository,
      cause: 'manual',
      clock: new ManualClock(TEST_NOW_MS, 'microtask'),
      ids: new SeededIds(32),
      digests: nodeDigests,
    } as const;
    await expect(createBackup(options)).rejects.toMatchObject({ code: 'log_corrupt', data: { file: SECOND } });
    const target = new MemoryStorage();
    await expect(copy(hold, target, 'full')).rejects.toMatchObject({ code: 'log_corrupt', data: { file: SECOND } });
    expect(await target.size(SECOND)).toBe(null);
    await hold.release();
    await node.close();
  });
});

describe('a copy', () => {
  test('full, of a damaged chunk is refused, and stays unfinished until the chunk is mended', async () => {
    const at = await flipPayload(storage, SECOND);
    const target = new MemoryStorage();
    await expect(copy(storage, target, 'full')).rejects.toMatchObject({ code: 'log_corrupt', data: { file: SECOND } });
    expect(await target.size(SECOND)).toBe(null);
    await expect(openTestStore({ storage: target })).rejects.toThrow();
    await flipPayload(storage, SECOND, at);
    expect(await copy(storage, target, 'full')).toMatchObject({ wasUnfinished: true });
    expect(await findingsOf(target)).toEqual([]);
  });

  test('differential: the sound chunks that the copy has are kept, a damaged one that it lacks is refused', async () => {
    const target = new MemoryStorage();
    await copy(storage, target, 'full');
    await withSource(storage, (open) => append(open, 'b', 120));
    const chunks = (await storage.list('')).filter((name) => name.startsWith('chunk-'));
    const fresh = chunks[chunks.length - 2]!;
    const at = await flipPayload(storage, fresh);
    const before = await bytesOf(target, FIRST);
    await expect(copy(storage, target, 'differential')).rejects.toMatchObject({
      code: 'log_corrupt',
      data: { file: fresh },
    });
    expect((await bytesOf(target, FIRST)).equals(before)).toBe(true);
    await flipPayload(storage, fresh, at);
    await copy(storage, target, 'differential');
    expect(await findingsOf(target)).toEqual([]);
  });
});

describe('a restore', () => {
  /** A repository of the kind that a version made which did not look. */
  async function damagedBackup(
    objects: MemoryObjects,
  ): Promise<{ readonly repository: Repository; readonly manifest: Manifest }> {
    const repository = await openTestRepository(objects);
    const manifest = await backUp(repository);
    await flipPayload(storage, SECOND);
    const bytes = await bytesOf(storage, SECOND);
    const { blob } = await repository.writeBlob(bytes.length, async function* content() {
      yield Uint8Array.from(bytes);
    });
    const id = 'cccccccc-0000-4000-8000-000000000001';
    const made = {
      ...manifest,
      id,
      createdMs: manifest.createdMs + 1,
      chunks: manifest.chunks.map((one) => (one.path === SECOND ? { ...one, blob } : one)),
    };
    await repository.putManifest(made);
    return { repository, manifest: made };
  }

  test.each([false, true])(
    'from a repository refuses a chunk that was damaged before it was backed up (lanes %s)',
    async (isInLanes) => {
      const objects = new MemoryObjects();
      const { repository } = await damagedBackup(objects);
      const target = new MemoryStorage();
      await expect(
        restoreBackup(restoreOptions(repository, target, isInLanes ? { lanes: lanesTo(objects, target) } : {})),
      ).rejects.toMatchObject({ code: 'log_corrupt', data: { file: SECOND } });
      expect(await target.list('')).toContain(RESTORE_MARKER);
    },
  );

  test('to a position inside a damaged chunk does not complete it anew', async () => {
    const { repository, manifest } = await damagedBackup(new MemoryObjects());
    const records = await import('../scavenge/raw-log.ts').then(({ readRawLog }) => readRawLog(storage));
    const inside = records.filter(({ position }) => position > manifest.chunkSizeBytes).at(60)!.position;
    const choice = { kind: 'position', position: inside } as const;
    await expect(restoreBackup(restoreOptions(repository, new MemoryStorage(), { choice }))).rejects.toMatchObject({
      code: 'log_corrupt',
      data: { file: SECOND },
    });
    const allowed = await restoreBackup(
      restoreOptions(repository, new MemoryStorage(), { choice, allowDamaged: true }),
    );
    expect(allowed).toMatchObject({
      position: manifest.chunkSizeBytes,
      skipped: [{ path: SECOND, reason: expect.stringContaining(SECOND) as string }],
    });
  });

  test('from a copied directory refuses it', async () => {
    const target = new MemoryStorage();
    await copy(storage, target, 'full');
    await flipPayload(target, SECOND);
    await expect(
      restoreCopy({ ...restoreWorld(new MemoryStorage()), source: target, place: '/backup', clock }),
    ).rejects.toMatchObject({ code: 'log_corrupt', data: { file: SECOND } });
  });
});
