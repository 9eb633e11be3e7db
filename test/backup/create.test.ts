import { describe, expect, it } from 'vitest';
import { SEGMENTS_MAX } from '../../core/backup/create/create.ts';
import { BytePace } from '../../core/backup/create/store-part.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import { StorageSource } from '../../core/store/source/source.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { BLOB_FRAME_LOCAL_BYTES } from '../../core/backup/format/blob-format.ts';
import { EXISTENCE_DATA_PATH } from '../../core/index/format/existence-files.ts';
import { ANY } from '../../core/streams/api.ts';
import { listAll } from '../../core/ports/object-store.ts';
import { backUpNode, backUpSource, danglingIn, filesOf } from '../support/backup/backup-kit.ts';
import { restoreOptions } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { append, CHUNK_BYTES, lastOf, openSmall } from './hold-kit.ts';
import { findingsOf } from '../support/damage.ts';

const KEY = new Random(4).bytes(32);

describe('a backup', () => {
  it('holds every file as it is, with the times of its records, and restores', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 70);
    const repository = await openTestRepository(new MemoryObjects());
    const { manifest, report } = await backUpNode(node, repository);
    expect(manifest).toMatchObject({ format: 1, cause: 'manual', chunkSizeBytes: CHUNK_BYTES, scavengeDb: null });
    expect(manifest.chunks.length).toBeGreaterThan(3);
    expect(manifest.tail!.segments).toHaveLength(1);
    for (const chunk of manifest.chunks)
      expect(chunk.fromMs! <= chunk.toMs! && chunk.fromMs! > Date.UTC(2020, 0)).toBe(true);
    expect(manifest.index!.files.length).toBeGreaterThan(2);
    expect(report.blobsStored).toBeGreaterThan(7);

    const target = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, target, { choice: { kind: 'latest' } }));
    expect(await findingsOf(target)).toEqual([]);
    const restored = await openSmall(target);
    expect(await lastOf(restored, 'a')).toBe(69);
    await restored.close();
    await node.close();
  });

  it('stores nothing when there is nothing new, and reads next to nothing', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 70);
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const first = await backUpNode(node, repository);
    const again = await backUpNode(node, repository, { known: first.manifest });
    expect(again.report).toMatchObject({ blobsStored: 0, bytesNew: 0, bytesStored: 0 });
    // The index map and the checkpoint of the filter, twice for the former.
    expect(again.bytesRead).toBeLessThan(2_000);
    // Another process: footers and the end of the tail are compared as well.
    const elsewhere = await backUpNode(node, await openTestRepository(objects));
    expect(elsewhere.report.blobsStored).toBe(0);
    expect(elsewhere.bytesRead).toBeLessThan(70_000);
    expect(elsewhere.manifest.createdMs).toBeGreaterThan(again.manifest.createdMs);
    expect(again.manifest).toEqual({ ...first.manifest, id: again.manifest.id, createdMs: again.manifest.createdMs });
    expect(elsewhere.manifest.chunks).toEqual(first.manifest.chunks);
    await node.close();
  });

  it('stores only what came since, and a chunk that was completed as a whole', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 40);
    const repository = await openTestRepository(new MemoryObjects());
    const first = await backUpNode(node, repository);
    await append(node, 'b', 1);
    const second = await backUpNode(node, repository, { known: first.manifest });
    expect(second.manifest.tail!.segments).toHaveLength(2);
    expect(second.manifest.tail!.segments[0]).toEqual(first.manifest.tail!.segments[0]);
    expect(second.report.bytesNew).toBeLessThan(30_000);
    await append(node, 'b', 20);
    const third = await backUpNode(node, repository);
    expect(third.manifest.chunks.length).toBeGreaterThan(second.manifest.chunks.length);
    await node.close();
  });

  it('puts a tail of many segments together', async () => {
    const node = await openSmall(new MemoryStorage(), { chunkSizeBytes: 1_048_576 });
    const repository = await openTestRepository(new MemoryObjects());
    let known: Manifest | null = null;
    const counts: number[] = [];
    for (let i = 0; i <= SEGMENTS_MAX; i++) {
      await append(node, 'a', 1);
      ({ manifest: known } = await backUpNode(node, repository, { known }));
      counts.push(known.tail!.segments.length);
    }
    expect(counts).toEqual([...Array.from({ length: SEGMENTS_MAX }, (_, i) => i + 1), 1]);
    await node.close();
  });

  it('does not build upon a tail that was cut and has grown again', async () => {
    const storage = new MemoryStorage();
    let node = await openSmall(storage);
    await append(node, 'a', 3);
    const repository = await openTestRepository(new MemoryObjects());
    const first = await backUpNode(node, repository);
    await append(node, 'a', 2);
    const second = await backUpNode(node, repository);
    await node.close();
    // What a member of a cluster does that had written what nobody else has.
    const file = await storage.open('truncate.chk', 'write');
    const to = new DataView(new ArrayBuffer(8));
    to.setBigInt64(0, BigInt(first.manifest.checkpoints.writer), true);
    await file.writeAt(0, new Uint8Array(to.buffer));
    await file.close();
    node = await openSmall(storage);
    await append(node, 'another', 5);
    const third = await backUpNode(node, repository, { known: null });
    expect(third.manifest.tail!.header).toBe(second.manifest.tail!.header);
    await node.close();
  });

  it('stores what vanished meanwhile once more', async () => {
    const node = await openSmall(new MemoryStorage(), { memTableEntriesMax: 10_000 });
    await append(node, 'a', 40);
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const first = await backUpNode(node, repository);
    const { chunks, tail } = first.manifest;
    await repository.removeBlobs([chunks[0]!.blob, chunks[1]!.blob, tail!.segments[0]!.blob]);
    const second = await backUpNode(node, repository, { known: first.manifest });
    expect(second.report.blobsStored).toBe(3);
    expect(await danglingIn(objects)).toEqual([]);
    await node.close();
  });

  it('refuses a chunk that can not be walked, and names it', async () => {
    const storage = new MemoryStorage();
    const node = await openSmall(storage);
    await append(node, 'a', 40);
    const file = await storage.open('chunk-000001.000000', 'write');
    await file.writeAt(20_000, new Uint8Array(8_000));
    await file.close();
    const objects = new MemoryObjects();
    await expect(backUpNode(node, await openTestRepository(objects))).rejects.toMatchObject({
      code: 'log_corrupt',
      data: { file: 'chunk-000001.000000' },
    });
    expect(await (await openTestRepository(objects)).backups()).toEqual([]);
    await node.close();
  });

  it('reads nothing behind the snapshot of the chunk that is being written', async () => {
    const storage = new MemoryStorage();
    const node = await openSmall(storage);
    await append(node, 'a', 3);
    const hold = await node.hold();
    await append(node, 'later', 4);
    const repository = await openTestRepository(new MemoryObjects());
    const { manifest } = await backUpSource(new StorageSource(storage, hold.snapshot), repository);
    const tail = (await filesOf(repository, manifest)).get(manifest.tail!.path)!;
    expect(tail.length).toBe(hold.snapshot.files.at(-1)!.sizeBytes);
    expect(Buffer.from(tail).includes('later')).toBe(false);
    await hold.release();
    await node.close();
  });

  it('shows nothing of what it holds where it is encrypted', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a-stream-with-a-name', 40);
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects, { key: KEY, compression: 'on' });
    const { manifest } = await backUpNode(node, repository);
    for await (const { key } of listAll(objects, '')) {
      const bytes = Buffer.from((await objects.get(key))!);
      for (const text of ['a-stream-with-a-name', manifest.nodeId, 'chunk-0', 'made'])
        expect(bytes.includes(text), `${text} in ${key}`).toBe(false);
    }
    await node.close();
  });

  it('is announced while it runs, and no longer', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 5);
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const seen = new Set<number>();
    const count = async () => {
      let n = 0;
      for await (const _key of listAll(objects, 'active/')) n++;
      return n;
    };
    const counting: Promise<void>[] = [];
    await backUpNode(node, repository, {
      onProgress: () => {
        counting.push(
          count().then((n) => {
            seen.add(n);
          }),
        );
      },
    });
    await Promise.all(counting);
    expect([...seen]).toEqual([1]);
    expect(await count()).toBe(0);
    await node.close();
  });

  it('tells how far it is', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 70);
    const told: number[] = [];
    let last = { bytesDone: 0, bytesTotal: 0, filesDone: 0, filesTotal: 0 };
    await backUpNode(node, await openTestRepository(new MemoryObjects()), {
      onProgress: (progress) => {
        told.push(progress.bytesDone);
        last = progress;
      },
    });
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(last.bytesDone).toBe(last.bytesTotal);
    expect(last.filesDone).toBe(last.filesTotal);
    await node.close();
  });
});

describe('a backup to a store that fails', () => {
  it('leaves no manifest that points to something missing, wherever it is interrupted, and a repeat completes it', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 40);
    const base = new MemoryObjects();
    await backUpNode(node, await openTestRepository(base));
    await append(node, 'b', 20);
    const counted = new FaultyObjects(base.fork());
    await backUpNode(node, await openTestRepository(counted), { parallel: 1 });
    const calls = counted.calls.length;
    expect(calls).toBeGreaterThan(20);
    for (let n = 0; n < calls; n++) {
      const objects = base.fork();
      const faulty = new FaultyObjects(objects, { seed: n + 1 });
      faulty.crashAfter(n);
      await expect(
        openTestRepository(faulty).then((repository) => backUpNode(node, repository, { parallel: 1 })),
        `call ${n}`,
      )
        .rejects.toMatchObject({ code: 'storage_crashed' })
        .catch(async (error: unknown) => {
          // The intent is removed last of all, and a backup is none the worse for what it leaves there.
          if (faulty.calls.at(-1)?.key.startsWith('active/') !== true) throw error;
        });
      expect(await danglingIn(objects), `after call ${n}`).toEqual([]);
      const repository = await openTestRepository(objects);
      const { manifest } = await backUpNode(node, repository);
      expect(await danglingIn(objects)).toEqual([]);
      expect((await repository.manifest('latest')).id).toBe(manifest.id);
    }
    await node.close();
  });

  it('completes, or ends with the error of the store, when calls fail, hang or lose their replies', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 40);
    const ends = new Map<string, number>();
    for (let seed = 1; seed <= 60; seed++) {
      const objects = new MemoryObjects();
      const faulty = new FaultyObjects(objects, {
        seed,
        chances: { before: 0.01, after: 0.02, late: 0.02, throttle: 0.01, delay: 0.1 },
      });
      const end = await openTestRepository(faulty)
        .then((repository) => backUpNode(node, repository))
        .then(
          () => 'made',
          (error: { code?: string }) => error.code ?? String(error),
        );
      ends.set(end, (ends.get(end) ?? 0) + 1);
      await faulty.settle();
      expect(await danglingIn(objects), `seed ${seed}`).toEqual([]);
      await backUpNode(node, await openTestRepository(objects));
      expect(await danglingIn(objects), `seed ${seed}`).toEqual([]);
    }
    expect([...ends.keys()].toSorted()).toEqual(['made', 'storage_throttled', 'storage_unreachable']);
    await node.close();
  });

  it('takes up what an interrupted one has stored', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 70);
    const objects = new MemoryObjects();
    const faulty = new FaultyObjects(objects);
    faulty.faultWhen((op, key) => (op === 'put' && key.startsWith('manifests/') ? 'before' : undefined));
    await expect(backUpNode(node, await openTestRepository(faulty))).rejects.toMatchObject({
      code: 'storage_unreachable',
    });
    const { report } = await backUpNode(node, await openTestRepository(objects));
    expect(report.blobsStored).toBe(0);
    await node.close();
  });

  it.each([null, KEY])('of a small store takes less than twice its data, in a directory too', async (key) => {
    const node = await openSmall(new MemoryStorage(), { existenceFilterBytes: 4_000_000 });
    for (let i = 0; i < 5; i++)
      await node.store.append(
        `stream-${i}`,
        ANY,
        Array.from({ length: 100 }, (_, at) => ({
          id: `00000000-0000-4000-8000-${String(1_000 * i + at).padStart(12, '0')}`,
          type: 'made',
          isJson: false,
          data: new Uint8Array(20).fill(at),
          metadata: new Uint8Array(0),
        })),
      );
    await node.scavenger.start({ threads: 1, throttlePercent: 100, threshold: 0 });
    await node.scavenger.idle();
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects, {
      key,
      compression: 'auto',
      frameBytes: BLOB_FRAME_LOCAL_BYTES,
    });
    const { manifest } = await backUpNode(node, repository);
    const sizeOfKind = (kinds: RegExp) =>
      [...manifest.chunks, ...manifest.index!.files]
        .filter(({ path }) => kinds.test(path))
        .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const filterBytes = sizeOfKind(/existence.*dat$/i);
    expect(filterBytes).toBeGreaterThan(4_000_000);
    let stored = 0;
    for await (const { sizeBytes } of listAll(objects, '')) stored += sizeBytes;
    const data = sizeOfKind(/./) - filterBytes;
    expect(stored).toBeLessThan(2 * data);
    // The log and its tables are as fast to read as ever: nothing is compressed there.
    for (const { blob, sizeBytes, path } of manifest.chunks)
      expect((await objects.head(repository.blobKey(blob)))!.sizeBytes, path).toBeGreaterThan(sizeBytes);

    // And what is not used takes no room where it is restored.
    const target = new MemoryStorage();
    let written = 0;
    const create = target.create.bind(target);
    target.create = async (path) => {
      const file = await create(path);
      const writeAt = file.writeAt.bind(file);
      if (path === EXISTENCE_DATA_PATH)
        file.writeAt = (position, bytes) => {
          written += bytes.length;
          return writeAt(position, bytes);
        };
      return file;
    };
    await restoreBackup(restoreOptions(repository, target, { choice: { kind: 'latest' } }));
    expect(written).toBeLessThan(filterBytes / 4);
    expect(await findingsOf(target)).toEqual([]);
    const plain = await openTestRepository(new MemoryObjects(), {
      key,
      compression: 'off',
      frameBytes: BLOB_FRAME_LOCAL_BYTES,
    });
    expect((await backUpNode(node, plain)).report.bytesStored).toBeGreaterThan(filterBytes);
    await node.close();
  });

  it('ends at once when it is aborted', async () => {
    const node = await openSmall(new MemoryStorage());
    await append(node, 'a', 70);
    const objects = new MemoryObjects();
    const abort = new AbortController();
    const onProgress = ({ filesDone }: { filesDone: number }) => {
      if (filesDone === 2) abort.abort();
    };
    await expect(
      backUpNode(node, await openTestRepository(objects), { onProgress, signal: abort.signal, parallel: 1 }),
    ).rejects.toMatchObject({ code: 'aborted' });
    for await (const { key } of listAll(objects, 'active/')) expect.unreachable(key);
    expect(await danglingIn(objects)).toEqual([]);
    await node.close();
  });
});

describe('the pace of a backup', () => {
  it('keeps to so many bytes a second, for all readers together', async () => {
    const clock = new ManualClock();
    const pace = new BytePace(clock, 1_000_000);
    let done = 0;
    const reader = async () => {
      for (let i = 0; i < 10; i++) {
        await pace.take(100_000);
        done += 100_000;
      }
    };
    const readers = Promise.all([reader(), reader()]);
    await clock.advance(500);
    expect(done).toBe(500_000);
    await clock.advance(1_499);
    expect(done).toBe(1_900_000);
    await clock.advance(1);
    expect(done).toBe(2_000_000);
    await readers;
  });

  it('does not sleep without a limit', async () => {
    const clock = new ManualClock();
    const pace = new BytePace(clock, 0);
    await pace.take(1e12);
    expect(clock.sleeping).toBe(0);
  });
});
