import { beforeEach, describe, expect, it } from 'vitest';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY } from '../../core/streams/api.ts';
import { backUp, logText, restoreOptions, verifyErrors } from '../support/backup/restore-kit.ts';
import { endOf } from '../support/backup/restore-history.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { Random } from '../support/random.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { newEvent } from '../support/workload.ts';
import { readRawLog } from '../scavenge/raw-log.ts';

const CHUNK_BYTES = 65_536;

let storage: MemoryStorage;
let repository: Repository;
let manifest: Manifest;
let random: Random;
let seed: number;

/** Starts the node, writes, and stops it; a start writes an epoch. */
async function write(count: number): Promise<void> {
  const open = await openTestStore({ storage, seed: seed++, chunkSizeBytes: CHUNK_BYTES, verifyChunks: false });
  for (let i = 0; i < count; i++)
    await open.store.append('stream', ANY, [newEvent(random, 'one', null, 200), newEvent(random, 'two', null, 200)]);
  await open.close();
}

/** Ships the log behind the manifest in pieces of so many records. */
async function shipAll(recordsInPiece: number, leftOut = 0): Promise<number[]> {
  const records = (await readRawLog(storage)).filter(({ position }) => position >= manifest.checkpoints.writer);
  const kept = records.slice(0, records.length - leftOut);
  const starts: number[] = [];
  for (let i = 0; i < kept.length; i += recordsInPiece) {
    const part = kept.slice(i, i + recordsInPiece);
    const from = part[0]!.position;
    const to = endOf(part.at(-1)!);
    const number = Math.floor(from / CHUNK_BYTES);
    const file = await storage.open(`chunk-00000${number}.000000`, 'read');
    const bytes = Uint8Array.from(await file.read(HEADER_BYTES + from - number * CHUNK_BYTES, to - from));
    await file.close();
    expect(await repository.ship({ manifestId: manifest.id, from, to, shippedMs: TEST_NOW_MS }, bytes)).toBe('created');
    starts.push(from);
  }
  return starts;
}

beforeEach(async () => {
  storage = new MemoryStorage();
  random = new Random(3);
  seed = 100;
  repository = await openTestRepository(new MemoryObjects());
  await write(20);
  manifest = await backUp(storage, repository, 1);
});

describe('log that was shipped after a backup', () => {
  it('that breaks off inside a write of two events is cut before that write', async () => {
    await write(15);
    await shipAll(5, 1);
    const records = await readRawLog(storage);
    const target = new MemoryStorage();
    const report = await restoreBackup(restoreOptions(repository, target));
    expect(report.position).toBe(records.at(-2)!.position);
    expect(await logText(target)).toEqual((await logText(storage)).slice(0, -2));
    expect(await verifyErrors(target)).toEqual([]);
  });

  it('is left out of a restore of the backup itself', async () => {
    await write(15);
    await shipAll(4);
    expect(
      (
        await restoreBackup(
          restoreOptions(repository, new MemoryStorage(), { choice: { kind: 'backup', id: manifest.id } }),
        )
      ).position,
    ).toBe(manifest.checkpoints.writer);
  });

  it('may begin the chunk behind the one that was backed up', async () => {
    const open = await openTestStore({ storage, seed: seed++, verifyChunks: false });
    // A scavenge point completes its chunk, and the log can be cut where that ends.
    await open.scavenger.start({ threshold: 1_000 });
    await open.scavenger.idle();
    await open.close();
    manifest = await backUp(storage, repository, 2);
    const target = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, target, { choice: { kind: 'position', position: CHUNK_BYTES } }));
    storage = target;
    manifest = {
      ...(await backUp(storage, repository, 3)),
      id: 'dddddddd-0000-4000-8000-000000000001',
      createdMs: TEST_NOW_MS + 4_000,
      tail: null,
    };
    expect(manifest.checkpoints.writer).toBe(CHUNK_BYTES);
    await repository.putManifest(manifest);
    await write(5);
    await shipAll(3);
    const restored = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, restored));
    expect(await logText(restored)).toEqual(await logText(storage));
    expect(await verifyErrors(restored)).toEqual([]);
  });

  it('that is damaged ends the restore, or is left out from the damage on', async () => {
    await write(15);
    const starts = await shipAll(6);
    const readShipped: Repository['readShipped'] = async (piece) => {
      const bytes = (await repository.readShipped(piece)).slice();
      if (piece.from === starts[1]) bytes[bytes.length - 1]! ^= 0x10;
      return bytes;
    };
    const broken = new Proxy(repository, {
      get: (_, name: keyof Repository) => {
        const member = repository[name];
        return name === 'readShipped' ? readShipped : typeof member === 'function' ? member.bind(repository) : member;
      },
    });
    await expect(restoreBackup(restoreOptions(broken, new MemoryStorage()))).rejects.toMatchObject({
      code: 'log_corrupt',
    });
    const target = new MemoryStorage();
    const report = await restoreBackup(restoreOptions(broken, target, { allowDamaged: true }));
    expect(report).toMatchObject({ position: starts[1], skipped: [{ lost: { from: starts[1] } }] });
    expect(await logText(target)).toEqual(
      (await logText(storage)).filter((line) => Number.parseInt(line, 10) < starts[1]!),
    );
    expect(await verifyErrors(target)).toEqual([]);
  });
});
