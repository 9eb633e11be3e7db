import { expect, test } from 'vitest';
import { Holds, HOLD_MS, HOLDS_MAX } from '../../core/store/hold/hold.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { append, contentOf, copied, lastOf, openSmall } from './hold-kit.ts';
import { findingsOf } from '../support/damage.ts';

test('everything acknowledged before a hold is in its files, whatever is written meanwhile', async () => {
  const open = await openSmall(new MemoryStorage());
  for (let round = 0; round < 8; round++) {
    await append(open, 'orders', 7);
    const before = await lastOf(open, 'orders');
    const hold = await open.hold();
    // Fills chunks and memtables while the files are copied.
    const [storage] = await Promise.all([copied(hold), append(open, 'orders', 23)]);
    await hold.release();
    const again = await openSmall(storage, { writeEpoch: false });
    expect(again.status().checkpoints.writer).toBe(hold.snapshot.checkpoints.writer);
    expect(await lastOf(again, 'orders')).toBe(before);
    await again.close();
    expect(await findingsOf(storage)).toEqual([]);
  }
  await open.close();
});

test('the files that are listed stay what they were', async () => {
  const storage = new MemoryStorage();
  const open = await openSmall(storage);
  await append(open, 'orders', 70);
  const hold = await open.hold();
  const before = new Map<string, Uint8Array>();
  for (const { path } of hold.snapshot.files) before.set(path, await contentOf(hold, path));
  for (let i = 0; i < 60; i++) await append(open, `stream-${i}`, 1);
  open.mergeIndexes();
  for (const [path, bytes] of before) expect(Buffer.compare(await contentOf(hold, path), bytes), path).toBe(0);
  await hold.release();
  await open.close();
});

test('the order is that of copying, with the ongoing chunk up to the end of the log', async () => {
  const open = await openSmall(new MemoryStorage());
  await append(open, 'orders', 45);
  const hold = await open.hold();
  const { files, checkpoints, chunkSizeBytes } = hold.snapshot;
  const names = files.map(({ path }) => path.replace(/[0-9a-f-]{36}/, 'GUID'));
  const tables = names.filter((name) => name.includes('GUID'));
  expect(tables.length).toBeGreaterThan(0);
  expect(names).toEqual([
    'index/indexmap',
    'index/stream-existence/streamExistenceFilter.chk',
    ...tables,
    'index/stream-existence/streamExistenceFilter.dat',
    'chaser.chk',
    'epoch.chk',
    'writer.chk',
    'proposal.chk',
    'truncate.chk',
    'chunk-000000.000000',
    'chunk-000001.000000',
    'chunk-000002.000000',
  ]);
  expect(files.at(-1)).toMatchObject({
    kind: 'ongoing-chunk',
    sizeBytes: 128 + checkpoints.writer - 2 * chunkSizeBytes,
  });
  expect(checkpoints.writer).toBe(checkpoints.chaser);
  expect(open.status().checkpoints).toMatchObject({ writer: checkpoints.writer, chaser: checkpoints.chaser });
  await hold.release();
  await open.close();
});

test('no scavenge starts and no table is merged while a hold lasts', async () => {
  const open = await openSmall(new MemoryStorage());
  await append(open, 'orders', 30);
  const hold = await open.hold();
  await expect(open.scavenger.start()).rejects.toMatchObject({ code: 'backup_running' });
  const merges = open.status().indexMerges;
  await append(open, 'orders', 120);
  expect(open.status()).toMatchObject({ indexMerges: merges });
  const heldTables = open.status().indexTables;
  await hold.release();
  const { scavengeId } = await open.scavenger.start();
  await open.scavenger.idle();
  expect(open.scavenger.last()).toMatchObject({ scavengeId, result: 'Success' });
  expect(open.status().indexTables).toBeLessThan(heldTables);
  await open.close();
});

test('there is no hold while a scavenge runs', async () => {
  const open = await openSmall(new MemoryStorage());
  await append(open, 'orders', 30);
  const { scavengeId } = await open.scavenger.start();
  await expect(open.hold()).rejects.toMatchObject({ code: 'scavenge_in_progress', data: { scavengeId } });
  await open.scavenger.idle();
  await (await open.hold()).release();
  await open.close();
});

test('a store that closes ends its holds, and gives none any more', async () => {
  const open = await openSmall(new MemoryStorage());
  await append(open, 'orders', 5);
  const hold = await open.hold();
  const pieces = hold.read('chunk-000000.000000', 0, 128)[Symbol.asyncIterator]();
  await open.close();
  expect(hold.isReleased).toBe(true);
  await expect(pieces.next()).rejects.toMatchObject({ code: 'hold_not_found' });
  await expect(open.hold()).rejects.toMatchObject({ code: 'store_closed' });
});

test('only what is listed is read', async () => {
  const storage = new MemoryStorage();
  const open = await openSmall(storage);
  await append(open, 'orders', 5);
  const hold = await open.hold();
  const read = async (path: string, from = 0, length = 1) => {
    for await (const piece of hold.read(path, from, length)) return piece;
  };
  for (const path of ['node-id', 'skua.lock', '../secret', '/etc/passwd', 'index', ''])
    await expect(read(path), path).rejects.toMatchObject({ code: 'file_not_found' });
  const { sizeBytes } = hold.snapshot.files.find(({ kind }) => kind === 'ongoing-chunk')!;
  // The file goes on behind the end of the log, where bytes change.
  for (const [from, length] of [
    [0, sizeBytes + 1],
    [sizeBytes, 1],
    [-1, 1],
  ] as const)
    await expect(read('chunk-000000.000000', from, length)).rejects.toMatchObject({ code: 'bad_option' });
  await hold.release();
  await open.close();
});

async function withHolds(
  work: (holds: Holds, open: DirectoryStore, clock: ManualClock) => Promise<void>,
): Promise<void> {
  const clock = new ManualClock();
  const open = await openSmall(new MemoryStorage());
  await append(open, 'orders', 20);
  const holds = new Holds({ take: () => open.hold(), clock, ids: new SeededIds(9), log: silentLog });
  try {
    await work(holds, open, clock);
  } finally {
    await holds.close();
    await open.close();
  }
}

test('a hold ends a minute after its last use, and every use renews it', () =>
  withHolds(async (holds, open, clock) => {
    const { holdId, expiresMs } = await holds.begin();
    expect(expiresMs).toBe(clock.nowMs() + HOLD_MS);
    await clock.advance(HOLD_MS - 1);
    expect((await holds.renew(holdId)).expiresMs).toBe(clock.nowMs() + HOLD_MS);
    await clock.advance(HOLD_MS - 1);
    for await (const _ of holds.read(holdId, 'writer.chk', 0, 8)) await clock.advance(HOLD_MS - 1);
    await holds.renew(holdId);
    await clock.advance(HOLD_MS);
    expect(holds.count).toBe(0);
    await expect(holds.renew(holdId)).rejects.toMatchObject({ code: 'hold_not_found', data: { holdId } });
    await open.scavenger.start();
    await open.scavenger.idle();
  }));

test('a reader that pauses too long finds its hold gone', () =>
  withHolds(async (holds, _, clock) => {
    const { holdId } = await holds.begin();
    const pieces = holds.read(holdId, 'chunk-000000.000000', 0, 128);
    expect((await pieces.next()).done).toBe(false);
    await clock.advance(HOLD_MS);
    const rest = holds.read(holdId, 'chunk-000000.000000', 0, 128);
    await expect(rest.next()).rejects.toMatchObject({ code: 'hold_not_found' });
  }));

test('a few holds at once, each with a life of its own', () =>
  withHolds(async (holds, open) => {
    const ids: string[] = [];
    for (let i = 0; i < HOLDS_MAX; i++) ids.push((await holds.begin()).holdId);
    await expect(holds.begin()).rejects.toMatchObject({ code: 'too_busy', data: { limit: HOLDS_MAX } });
    for (const id of ids.slice(1)) await holds.release(id);
    await expect(holds.release(ids[1]!)).rejects.toMatchObject({ code: 'hold_not_found' });
    await expect(open.scavenger.start()).rejects.toMatchObject({ code: 'backup_running' });
    await holds.release(ids[0]!);
    await open.scavenger.start();
    await open.scavenger.idle();
  }));

test('none begins once they are closed, not even one that was being taken', () =>
  withHolds(async (holds, open) => {
    const beginning = holds.begin();
    await holds.close();
    await expect(beginning).rejects.toMatchObject({ code: 'store_closed' });
    await expect(holds.begin()).rejects.toMatchObject({ code: 'store_closed' });
    await open.scavenger.start();
    await open.scavenger.idle();
  }));
