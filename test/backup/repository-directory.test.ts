import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listAll } from '../../core/ports/object-store.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { verifyRepository } from '../../core/backup/verify/verify.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { backUpNode, danglingIn } from '../support/backup/backup-kit.ts';
import { collect, inPieces, openTestRepository } from '../support/backup/test-repository.ts';
import { Random } from '../support/random.ts';
import { append, openSmall } from './hold-kit.ts';

/**
 * Large content that is neither encrypted nor compressed is read only once: a directory can name an object when it is
 * complete.
 */
describe('a repository in a directory', () => {
  let folder = '';
  let objects: ObjectStore;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'skua-repository-'));
    objects = await openObjects({ kind: 'directory', path: folder });
  });
  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  const content = new Random(6).bytes(50_000);
  const blobs = async () => {
    const keys: string[] = [];
    for await (const { key } of listAll(objects, 'blobs/')) keys.push(key);
    return keys;
  };
  const unfinished = async () => {
    // Files are removed behind the calls.
    await objects.close();
    return readdir(join(folder, '.tmp'));
  };

  it('stores content under the id that follows from it, once', async () => {
    const repository = await openTestRepository(objects);
    let readings = 0;
    const counted = () => {
      readings++;
      return inPieces(content, 3_000)();
    };
    const ref = await repository.writeBlob(content.length, counted);
    expect(readings).toBe(1);
    expect(ref.isNew).toBe(true);
    expect(await blobs()).toEqual([repository.blobKey(ref.blob)]);
    expect((await objects.head(repository.blobKey(ref.blob)))!.sizeBytes).toBe(ref.storedBytes);
    expect(Buffer.compare(await collect(repository.readBlob(ref)), content)).toBe(0);
    expect(
      Buffer.compare(
        await collect(repository.readBlob(ref, { from: 20_001, length: 9_000 })),
        content.subarray(20_001, 29_001),
      ),
    ).toBe(0);
    expect(await repository.writeBlob(content.length, counted)).toEqual({ ...ref, isNew: false, storedBytes: 0 });
    expect(await unfinished()).toEqual([]);
    // The same content by the way of two readings has the same id.
    const encrypted = await openTestRepository(await openObjects({ kind: 'directory', path: join(folder, 'other') }), {
      compression: 'on',
    });
    expect((await encrypted.writeBlob(content.length, counted)).blob).toBe(ref.blob);
  });

  it('replaces what is suspect', async () => {
    const repository = await openTestRepository(objects);
    const ref = await repository.writeBlob(content.length, inPieces(content));
    await objects.put(repository.blobKey(ref.blob), new Uint8Array(10));
    expect(
      await repository.writeBlob(content.length, inPieces(content), { isSuspect: (id) => id === ref.blob }),
    ).toEqual(ref);
    expect(Buffer.compare(await collect(repository.readBlob(ref)), content)).toBe(0);
  });

  it('leaves nothing of content that fails, is aborted or has another length', async () => {
    const repository = await openTestRepository(objects);
    const failing = async function* failing() {
      yield content.subarray(0, 10_000);
      throw new Error('the disk is gone');
    };
    await expect(repository.writeBlob(content.length, failing)).rejects.toThrow('the disk is gone');
    for (const said of [content.length - 1, content.length + 1])
      await expect(repository.writeBlob(said, inPieces(content))).rejects.toMatchObject({ code: 'io_error' });
    const abort = new AbortController();
    const aborting = async function* aborting() {
      yield content.subarray(0, 10_000);
      abort.abort();
      yield content.subarray(10_000);
    };
    await expect(repository.writeBlob(content.length, aborting, { signal: abort.signal })).rejects.toMatchObject({
      code: 'aborted',
    });
    expect(await blobs()).toEqual([]);
    expect(await unfinished()).toEqual([]);
  });

  it('holds backups of a node', async () => {
    const node = await openSmall(new MemoryStorage());
    const repository = await openTestRepository(objects);
    await append(node, 'a', 40);
    const first = await backUpNode(node, repository);
    await append(node, 'a', 20);
    const second = await backUpNode(node, repository, { known: first.manifest });
    expect(second.manifest.chunks[0]).toEqual(first.manifest.chunks[0]);
    expect((await verifyRepository({ repository })).findings).toBe(0);
    expect(await danglingIn(objects)).toEqual([]);
    await node.close();
  });
});
