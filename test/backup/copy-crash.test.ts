import { beforeAll, expect, test } from 'vitest';
import { COPY_MARKER } from '../../core/log/format/markers.ts';
import type { BackupSource } from '../../core/store/source/source.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY } from '../../core/streams/api.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import type { CrashMoment } from '../support/faulty-storage.ts';
import { bySize } from '../support/run-size.ts';
import { append, clone, copy, filesOf, hashesOf, openSource, restored, withSource } from './copy-kit.ts';

/**
 * The power fails at every operation of a copy. Before the marker stands, the former copy is what it was; behind it the
 * marker says so until a repeat has completed it; and what the repeat makes is what an undisturbed copy makes.
 */

let source: BackupSource;
let close: () => Promise<void>;
let former: MemoryStorage;
const known: Record<string, string[]> = {};

beforeAll(async () => {
  const storage = new MemoryStorage();
  former = new MemoryStorage();
  await withSource(storage, async (open) => {
    known['a'] = await append(open, 'a', 100);
    await append(open, 'gone', 40);
  });
  await copy(storage, former, 'full');
  // A scavenge and a new chunk: files are copied, kept, renamed and removed.
  const open = await openSource(storage);
  known['b'] = await append(open, 'b', 40);
  await open.store.deleteStream('gone', ANY, 'hard');
  await open.scavenger.start({});
  await open.scavenger.idle();
  source = await open.hold();
  close = () => open.close();
  return () => close();
});

async function formerOn(seed: number): Promise<FaultyStorage> {
  const disk = new FaultyStorage({ seed });
  await clone(former, disk);
  return disk;
}

const named = (files: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(files).filter(([path]) => !path.endsWith('.tmp')));

test.each([{ mode: 'full' as const }, { mode: 'differential' as const }])(
  'a crash at every operation of a $mode copy leaves the former copy or one that a repeat completes',
  async ({ mode }) => {
    const start = (seed: number) => (mode === 'full' ? Promise.resolve(new FaultyStorage({ seed })) : formerOn(seed));
    const calm = await start(1);
    const before = await hashesOf(calm);
    const first = calm.operations;
    await copy(source, calm, mode);
    const expected = await hashesOf(calm);
    const count = calm.operations - first;
    expect(count).toBeGreaterThan(60);
    expect(calm.violations).toEqual([]);
    expect(Object.keys(expected).some((path) => calm.hasUnsynced(path))).toBe(false);
    expect(await restored(calm, ['a', 'b'])).toMatchObject({ wrong: [], ids: known });
    for (let n = 1; n <= count; n += bySize(4, 1)) {
      const moment = (['before', 'middle', 'after'] as const satisfies CrashMoment[])[n % 3]!;
      const disk = await start(n);
      disk.crashAt(disk.operations + n, moment);
      await expect(copy(source, disk, mode), `operation ${n}`).rejects.toMatchObject({ code: 'storage_crashed' });
      const after = disk.restart((['drop', 'partial', 'keep', 'clean'] as const)[Math.floor(n / 3) % 4]!, n);
      const left = named(await hashesOf(after));
      const isMarked = COPY_MARKER in left;
      // Without the marker it is one copy or the other, whole.
      if (!isMarked) expect([before, expected], `operation ${n}`).toContainEqual(left);
      if (isMarked || mode === 'differential' || Object.keys(left).length === 0) {
        await copy(source, after, mode);
        expect(await hashesOf(after), `repeat after operation ${n}`).toEqual(expected);
        expect(await hashesOf(after.restart('drop')), `repeat after operation ${n}, on the disk`).toEqual(expected);
      }
    }
  },
);

test('a differential copy completes a full one that was not finished, and the other way round', async () => {
  for (const [first, second] of [
    ['full', 'differential'],
    ['differential', 'full'],
  ] as const) {
    const disk = new FaultyStorage({ seed: 3 });
    disk.crashAt(50, 'before');
    await expect(copy(source, disk, first)).rejects.toMatchObject({ code: 'storage_crashed' });
    const after = disk.restart('partial', 3);
    expect(await copy(source, after, second)).toMatchObject({ wasUnfinished: true });
    expect(await restored(after, ['a', 'b'])).toMatchObject({ wrong: [], ids: known });
  }
});

test('a disk that is full ends it with an error, and there is no half file under a real name', async () => {
  const disk = new FaultyStorage({ seed: 4, capacityBytes: 200_000 });
  await expect(copy(source, disk, 'full')).rejects.toMatchObject({ code: 'disk_full' });
  const files = await filesOf(disk);
  expect(files.has(COPY_MARKER)).toBe(true);
  for (const { path, sizeBytes, kind } of source.snapshot.files)
    if (kind !== 'ongoing-chunk' && files.has(path)) expect(files.get(path)!.length, path).toBe(sizeBytes);
  disk.setCapacity(100_000_000);
  await copy(source, disk, 'full');
  expect(await restored(disk, ['a', 'b'])).toMatchObject({ wrong: [], ids: known });
});
