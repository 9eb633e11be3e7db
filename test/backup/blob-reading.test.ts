import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BlobRef } from '../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { collect, inPieces, openTestRepository, TEST_FRAME_BYTES } from '../support/backup/test-repository.ts';
import { Random } from '../support/random.ts';

/** A directory reads frames into memory that is used again; blobs of more than 64 KiB don't come with their header. */
describe('a blob in a directory', () => {
  const content = new Random(31).bytes(200_000);
  let folder = '';
  let objects: ObjectStore;
  let repository: Repository;
  let ref: BlobRef;
  let crcBytes = 0;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'skua-blobs-'));
    objects = await openObjects({ kind: 'directory', path: folder });
    const digests = {
      ...nodeDigests,
      crc32: (bytes: Uint8Array, seed?: number) => {
        crcBytes += bytes.length;
        return nodeDigests.crc32(bytes, seed);
      },
    };
    repository = await openTestRepository(objects, {}, { digests });
    ref = await repository.writeBlob(content.length, inPieces(content));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function change(at: number): Promise<string> {
    const key = repository.blobKey(ref.blob);
    const bytes = (await objects.get(key))!;
    bytes[at]! ^= 1;
    await objects.put(key, bytes);
    return key;
  }

  it('leaves a piece as it is until the next one is asked for', async () => {
    let at = 0;
    for await (const piece of repository.readBlob(ref)) {
      // Frames that are fetched ahead arrive meanwhile: reads of a file that come later end later.
      for (let i = 0; i < 8; i++) await objects.get(repository.blobKey(ref.blob), { from: 0, length: 10 });
      expect(Buffer.compare(piece, content.subarray(at, at + piece.length))).toBe(0);
      at += piece.length;
    }
    expect(at).toBe(content.length);
  });

  it('is the same when it is verified at its end only, with one checksum of every byte', async () => {
    const all = await collect(repository.readWholeBlob(ref));
    expect(Buffer.compare(all, content)).toBe(0);
    crcBytes = 0;
    await collect(repository.readWholeBlob(ref));
    expect(crcBytes).toBeLessThan(content.length / 100);
    await collect(repository.readBlob(ref));
    expect(crcBytes).toBeGreaterThan(content.length);
  });

  it.each([3, 20, 48])('whose frame %i is damaged is refused, and the frame is named', async (frame) => {
    const key = await change(36 + frame * TEST_FRAME_BYTES + 7);
    const expected = {
      code: 'repository_damaged',
      data: { key },
      message: expect.stringContaining(`(frame ${frame})`),
    };
    await expect(collect(repository.readWholeBlob(ref))).rejects.toMatchObject(expected);
    await expect(collect(repository.readBlob(ref))).rejects.toMatchObject(expected);
    let given = 0;
    const reading = (async () => {
      for await (const piece of repository.readBlob(ref)) given += piece.length;
    })();
    await expect(reading).rejects.toMatchObject(expected);
    expect(given).toBe(frame * TEST_FRAME_BYTES);
  });

  it('that holds other content than its name says is refused', async () => {
    const other = await repository.writeBlob(content.length, inPieces(new Random(32).bytes(content.length)));
    await objects.put(repository.blobKey(ref.blob), (await objects.get(repository.blobKey(other.blob)))!);
    for (const bytes of [repository.readBlob(ref), repository.readWholeBlob(ref)])
      await expect(collect(bytes)).rejects.toMatchObject({
        code: 'repository_damaged',
        message: expect.stringContaining('its name'),
      });
  });
});
