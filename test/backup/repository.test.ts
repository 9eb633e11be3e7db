import { describe, expect, it } from 'vitest';
import { MemoryObjects } from '../support/memory-objects.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { FakeLog } from '../support/backup/fake-log.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';

const KEY = new Random(1).bytes(32);
const OTHER_KEY = new Random(2).bytes(32);

describe('opening a repository', () => {
  it('makes it once, and finds it again', async () => {
    const objects = new MemoryObjects();
    await expect(openTestRepository(objects, { create: false })).rejects.toMatchObject({
      code: 'repository_not_found',
    });
    const made = await openTestRepository(objects);
    const found = await openTestRepository(objects, { create: false }, { ids: new SeededIds(99) });
    expect(found.info).toEqual(made.info);
    expect(made.info.isEncrypted).toBe(false);
  });

  it('refuses a wrong, a missing and an unwanted key before anything else', async () => {
    const encrypted = new MemoryObjects();
    await openTestRepository(encrypted, { key: KEY });
    expect((await openTestRepository(encrypted, { key: KEY })).info.isEncrypted).toBe(true);
    for (const key of [OTHER_KEY, null, KEY.subarray(1)]) {
      const counted = new FaultyObjects(encrypted);
      await expect(openTestRepository(counted, { key })).rejects.toMatchObject({ code: 'repository_key' });
      expect(counted.calls).toEqual([{ op: 'get', key: 'skua-repository' }]);
    }
    const plain = new MemoryObjects();
    await openTestRepository(plain);
    await expect(openTestRepository(plain, { key: KEY })).rejects.toMatchObject({ code: 'repository_key' });
  });

  it('does not take a place with other objects for an empty one', async () => {
    const objects = new MemoryObjects();
    await openTestRepository(objects);
    await objects.put('blobs/00/some', new Uint8Array(1));
    await objects.remove(['skua-repository']);
    await expect(openTestRepository(objects)).rejects.toMatchObject({ code: 'repository_not_found' });
  });

  it('finds damage of what it is opened with', async () => {
    const objects = new MemoryObjects();
    await openTestRepository(objects);
    const bytes = (await objects.get('skua-repository'))!;
    bytes[20]! ^= 1;
    await objects.put('skua-repository', bytes);
    await expect(openTestRepository(objects)).rejects.toMatchObject({
      code: 'repository_damaged',
      data: { key: 'skua-repository' },
    });
  });

  it('agrees with another process that makes it at the same time, whatever becomes of its call', async () => {
    for (const fault of ['before', 'after', 'late'] as const) {
      const objects = new MemoryObjects();
      const faulty = new FaultyObjects(objects);
      faulty.faultWhen((op, _key, n) => (op === 'create' && n < 6 ? fault : undefined));
      const [a, b] = await Promise.all([
        openTestRepository(faulty, {}, { ids: new SeededIds(1) }),
        openTestRepository(objects, {}, { ids: new SeededIds(2) }),
      ]);
      expect(a.info).toEqual(b.info);
    }
  });
});

describe('the blobs of a repository', () => {
  it.each(['memory', 's3://bucket'])('that are missing are found in %s', async (place) => {
    const objects = new MemoryObjects({ place });
    const repository = await openTestRepository(objects);
    const ids: string[] = [];
    for (let i = 0; i < 80; i++)
      ids.push(
        (
          await repository.writeBlob(2, async function* content() {
            yield new Uint8Array([i, 1]);
          })
        ).blob,
      );
    expect(await repository.missingBlobs(ids)).toEqual([]);
    await repository.removeBlobs(ids.slice(0, 3));
    expect((await repository.missingBlobs([...ids, ...ids])).toSorted()).toEqual(ids.slice(0, 3).toSorted());
    expect(await repository.missingBlobs(ids.slice(2, 5))).toEqual([ids[2]]);
  });
});

describe('the backups of a repository', () => {
  it('are listed newest first, with what was shipped, and found by their ids', async () => {
    const repository = await openTestRepository(new MemoryObjects(), { key: KEY });
    await expect(repository.manifest('latest')).rejects.toMatchObject({ code: 'backup_not_found' });
    const log = new FakeLog();
    log.write(1, 100);
    const older = await log.backUp(repository, 5_000);
    const from = log.end;
    log.write(1, 100);
    await repository.ship({ manifestId: older.id, from, to: log.end, shippedMs: 7_000 }, await log.read(from, log.end));
    const newer = await log.backUp(repository, 10_000);
    expect(await repository.backups()).toMatchObject([
      { id: newer.id, createdMs: 10_000, logEnd: log.end, shippedEnd: log.end, shippedMs: 10_000 },
      { id: older.id, createdMs: 5_000, logEnd: from, shippedEnd: log.end, shippedMs: 7_000 },
    ]);
    expect(await repository.manifest('latest')).toEqual(newer);
    expect(await repository.manifest(older.id)).toEqual(older);
    expect(await repository.newestOf(newer.nodeId)).toEqual(newer);
    expect(await repository.newestOf('another')).toBe(null);
    await repository.removeManifest(newer.id);
    expect((await repository.backups()).map(({ id }) => id)).toEqual([older.id]);
    await expect(repository.removeManifest(newer.id)).rejects.toMatchObject({ code: 'backup_not_found' });
  });

  it('are listed without those that are damaged, which are told', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const log = new FakeLog();
    log.write(1, 100);
    const sound = await log.backUp(repository, 5_000);
    const damaged = await log.backUp(repository, 10_000);
    const key = `manifests/000000000010000-${damaged.id}`;
    const bytes = (await objects.get(key))!;
    bytes[50]! ^= 4;
    await objects.put(key, bytes);
    const fresh = await openTestRepository(objects);
    await expect(fresh.backups()).rejects.toMatchObject({ code: 'repository_damaged', data: { key } });
    const told: string[] = [];
    expect((await fresh.backups((name) => told.push(name))).map(({ id }) => id)).toEqual([sound.id]);
    expect(told).toEqual([key]);
    expect((await fresh.newestOf(sound.nodeId))!.id).toBe(sound.id);
  });

  it('a manifest under the key of another is found out', async () => {
    for (const key of [null, KEY]) {
      const objects = new MemoryObjects();
      const repository = await openTestRepository(objects, { key });
      const log = new FakeLog();
      log.write(1, 100);
      const a = await log.backUp(repository, 5_000);
      const b = await log.backUp(repository, 6_000);
      await objects.put(`manifests/000000000006000-${b.id}`, (await objects.get(`manifests/000000000005000-${a.id}`))!);
      await expect((await openTestRepository(objects, { key })).manifest(b.id)).rejects.toMatchObject({
        code: 'repository_damaged',
      });
    }
  });

  it('get a piece of log from one writer only', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    const log = new FakeLog();
    log.write(1, 100);
    const { id } = await log.backUp(repository, 5_000);
    const from = log.end;
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        repository.ship({ manifestId: id, from, to: from + 10 + i, shippedMs: i }, new Uint8Array(10 + i)),
      ),
    );
    expect(outcomes.toSorted()).toEqual(['created', ...Array.from({ length: 7 }, () => 'exists')]);
    const [piece] = await repository.shipped(id);
    expect(piece).toMatchObject({ from, to: from + 10 + outcomes.indexOf('created') });
    await expect(
      repository.ship({ manifestId: id, from: 5, to: 10, shippedMs: 1 }, new Uint8Array(4)),
    ).rejects.toMatchObject({ code: 'bad_option' });
  });
});
