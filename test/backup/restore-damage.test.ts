import { beforeAll, describe, expect, it } from 'vitest';
import { blobKeyOf } from '../../core/backup/repository/repository.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { RESTORE_MARKER } from '../../core/log/format/markers.ts';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { listAll } from '../../core/ports/object-store.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { CHUNK_BYTES, type History, playHistory } from '../support/backup/restore-history.ts';
import { logText, restoreOptions, verifyErrors } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { Random } from '../support/random.ts';
import { openTestStore } from '../support/test-store.ts';

let history: History;
let newest: Manifest;
let whole: string[];

beforeAll(async () => {
  history = await playHistory({ seed: 41, parts: 2, writes: 60, scavenges: false });
  newest = history.pasts.at(-1)!.manifest;
  whole = await logText(history.storage);
});

/** The repository with one byte of an object changed, or without the object. */
async function damaged(key: string, change: ((bytes: Uint8Array) => void) | null): Promise<Repository> {
  const objects = new MemoryObjects();
  for await (const { key: other } of listAll(history.objects, '')) {
    const bytes = (await history.objects.get(other))!.slice();
    if (other === key && change === null) continue;
    if (other === key) change!(bytes);
    await objects.put(other, bytes);
  }
  return openTestRepository(objects, { create: false });
}

function flip(at: number): (bytes: Uint8Array) => void {
  return (bytes) => {
    bytes[at % bytes.length]! ^= 0x40;
  };
}

describe('a damaged backup', () => {
  it('is refused with the name of the object, whichever byte of what is needed is flipped, and leaves nothing that opens', async () => {
    const random = new Random(1);
    const needed = [...newest.chunks, ...(newest.tail?.segments ?? []), ...newest.index!.files].map(({ blob }) =>
      blobKeyOf(blob),
    );
    expect(newest.chunks.length).toBeGreaterThan(1);
    for (const key of new Set(needed)) {
      for (let i = 0; i < 3; i++) {
        const at = random.int(0, 1_000_000);
        const target = new MemoryStorage();
        await expect(
          restoreBackup(restoreOptions(await damaged(key, flip(at)), target)),
          `byte ${at} of ${key}`,
        ).rejects.toMatchObject({ code: 'repository_damaged', data: { key } });
        expect(await target.list('')).toContain(RESTORE_MARKER);
        await expect(openTestStore({ storage: target })).rejects.toMatchObject({ code: 'backup_failed' });
      }
    }
  });

  it('is refused when its manifest is damaged, without a change to the directory', async () => {
    const keys: string[] = [];
    for await (const { key } of listAll(history.objects, 'manifests/')) keys.push(key);
    const target = new MemoryStorage();
    await expect(restoreBackup(restoreOptions(await damaged(keys.at(-1)!, flip(77)), target))).rejects.toMatchObject({
      code: 'repository_damaged',
      data: { key: keys.at(-1) },
    });
    expect(await target.list('')).toEqual([]);
    const report = await restoreBackup(
      restoreOptions(await damaged(keys.at(-1)!, flip(77)), target, { allowDamaged: true }),
    );
    expect(report).toMatchObject({
      backupId: history.pasts[0]!.manifest.id,
      position: history.pasts[0]!.manifest.checkpoints.writer,
    });
    expect(report.warnings.join()).toContain(keys.at(-1));
    // Damage to a backup that is not asked for is no obstacle.
    expect((await restoreBackup(restoreOptions(await damaged(keys[0]!, flip(77)), new MemoryStorage()))).position).toBe(
      newest.checkpoints.writer,
    );
  });

  it('gives the log before a damaged chunk where damage is allowed, and says what is lost', async () => {
    const { writer } = newest.checkpoints;
    for (const chunk of newest.chunks.slice(1)) {
      const key = blobKeyOf(chunk.blob);
      for (const change of [null, flip(5_000)]) {
        const target = new MemoryStorage();
        const report = await restoreBackup(restoreOptions(await damaged(key, change), target, { allowDamaged: true }));
        const position = chunk.startNumber * CHUNK_BYTES;
        expect(report).toMatchObject({
          position,
          skipped: [{ key, path: chunk.path, lost: { from: position, to: writer } }],
        });
        expect(report.skipped[0]!.lost!.chunks).toBe(Math.ceil(writer / CHUNK_BYTES) - chunk.startNumber);
        expect(await logText(target)).toEqual(whole.filter((line) => Number.parseInt(line, 10) < position));
        expect(await verifyErrors(target)).toEqual([]);
      }
    }
    const first = await damaged(blobKeyOf(newest.chunks[0]!.blob), null);
    await expect(
      restoreBackup(restoreOptions(first, new MemoryStorage(), { allowDamaged: true })),
      'there is nothing before the first',
    ).rejects.toMatchObject({ code: 'repository_damaged' });
  });

  it('gives the log before damage in the ongoing chunk, and makes a damaged index anew', async () => {
    const segment = newest.tail!.segments.at(-1)!;
    const tailKey = blobKeyOf(segment.blob);
    const target = new MemoryStorage();
    const report = await restoreBackup(
      restoreOptions(
        await damaged(tailKey, (bytes) => {
          bytes[bytes.length - 1]! ^= 1;
        }),
        target,
        { allowDamaged: true },
      ),
    );
    expect(report).toMatchObject({
      position: segment.from,
      skipped: [{ key: tailKey, lost: { from: segment.from, to: newest.checkpoints.writer, chunks: 1 } }],
    });
    expect(await logText(target)).toEqual(whole.filter((line) => Number.parseInt(line, 10) < segment.from));
    expect(await verifyErrors(target)).toEqual([]);
    const table = newest.index!.files.find(({ path }) => /[0-9a-f-]{36}$/.test(path))!;
    const rebuilt = new MemoryStorage();
    const indexReport = await restoreBackup(
      restoreOptions(await damaged(blobKeyOf(table.blob), flip(900)), rebuilt, { allowDamaged: true }),
    );
    expect(indexReport).toMatchObject({
      position: newest.checkpoints.writer,
      skipped: [{ key: blobKeyOf(table.blob), lost: null }],
    });
    expect(await logText(rebuilt)).toEqual(whole);
    expect(await verifyErrors(rebuilt)).toEqual([]);
  });

  it('that was damaged before it was made is found by the MD5 of the chunk', async () => {
    const { repository } = history;
    const chunk = newest.chunks[1]!;
    const bytes: number[] = [];
    for await (const piece of repository.readBlob(chunk)) bytes.push(...piece);
    bytes[4_000]! ^= 1;
    const { blob } = await repository.writeBlob(bytes.length, async function* content() {
      yield Uint8Array.from(bytes);
    });
    const id = 'cccccccc-0000-4000-8000-000000000001';
    await repository.putManifest({
      ...newest,
      id,
      chunks: newest.chunks.map((one) => (one === chunk ? { ...one, blob } : one)),
    });
    try {
      await expect(
        restoreBackup(
          restoreOptions(repository, new MemoryStorage(), { choice: { kind: 'backup', id }, checkMd5: true }),
        ),
      ).rejects.toMatchObject({ code: 'log_corrupt', data: { file: chunk.path } });
      const report = await restoreBackup(
        restoreOptions(repository, new MemoryStorage(), { choice: { kind: 'backup', id }, allowDamaged: true }),
      );
      expect(report).toMatchObject({
        position: chunk.startNumber * CHUNK_BYTES,
        skipped: [{ key: null, path: chunk.path }],
      });
      await expect(
        restoreBackup(restoreOptions(repository, new MemoryStorage(), { choice: { kind: 'backup', id } })),
      ).rejects.toMatchObject({ code: 'log_corrupt', data: { file: chunk.path } });
    } finally {
      await repository.removeManifest(id);
    }
  });
});
