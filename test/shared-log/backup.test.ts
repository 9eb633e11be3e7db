import { describe, expect, test } from 'vitest';
import { createBackup } from '../../core/backup/create/create.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { objectSource } from '../../core/shared-log/overlay/overlay.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import type { GetOptions, ObjectStore } from '../../core/ports/object-store.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { readWholeStream } from '../support/oracle.ts';
import { openTestStore } from '../support/test-store.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { backupsOf, expectRestored, HOUR_MS, memoryScratch, openRepositoryOf, restored } from './backup-kit.ts';
import { OPTIONS } from './scavenge-kit.ts';
import {
  CHUNK_BYTES,
  compactionTick,
  eventsOf,
  exportDirectory,
  manifestOf,
  runTick,
  setMetadata,
  worldOf,
} from './tick-kit.ts';
import { IS_LONG_RUN, bySize } from '../support/run-size.ts';

async function store(rounds = 40) {
  const clock = new AutoClock();
  const objects = new MemoryObjects({ clock });
  const repository = new MemoryObjects({ clock });
  await compactionTick(worldOf(objects, clock, 1));
  const instance = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
  const ids = new SeededIds(3);
  await setMetadata(instance.store, ids, 'short', { $maxCount: 2 });
  const fill = async (count: number) => {
    for (let i = 0; i < count; i++) {
      await instance.store.append('short', ANY, eventsOf(ids, 2, 2_000));
      await instance.store.append(`s-${i % 3}`, ANY, eventsOf(ids, 1, 1_000));
    }
  };
  await fill(rounds);
  await compactionTick(worldOf(objects, clock, 4));
  await fill(5);
  return { clock, objects, repository, instance, fill };
}

const inAMinute = (clock: AutoClock) => clock.monotonicMs() + 60_000;

describe('the files of a store on object storage', () => {
  test('are those of a data directory, the tail included', async () => {
    const { clock, objects, repository, instance } = await store();
    const world = worldOf(objects, clock, 5);
    const source = await objectSource(world, OPTIONS, (await memoryScratch()).storage);
    const { snapshot, manifest } = source;
    expect(snapshot).toMatchObject({
      nodeId: manifest.storeId,
      chunkSizeBytes: CHUNK_BYTES,
      checkpoints: { writer: instance.store.end, chaser: instance.store.end, epoch: -1 },
    });
    expect(snapshot.files.map(({ kind }) => kind).filter((kind, i, all) => kind !== all[i - 1])).toEqual([
      'index-map',
      'index-table',
      'bloom-filter',
      'checkpoint',
      'chunk',
      'ongoing-chunk',
    ]);
    await createBackup({
      source,
      cause: 'manual',
      clock,
      ids: world.ids,
      digests: nodeDigests,
      repository: await openRepositoryOf(repository, clock, 6),
    });
    await source.release();
    await expectRestored(repository, clock, await exportDirectory(objects));
    await instance.close();
  });

  test.each([
    ['an event less than a chunk', 1],
    ['a chunk to its last byte', 0],
  ] as const)('end where the log does: %s', async (_, missing) => {
    const clock = new AutoClock();
    const objects = new MemoryObjects({ clock });
    const repository = new MemoryObjects({ clock });
    const instance = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
    const ids = new SeededIds(3);
    const frame = await frameBytes();
    for (let left = CHUNK_BYTES; left > 0;) {
      const data = Math.min(left - frame > 5_000 ? 4_000 : left - frame, left - frame);
      if (missing === 1 && data === left - frame) break;
      await instance.store.append('s', ANY, eventsOf(ids, 1, data));
      left -= data + frame;
    }
    if (missing === 0) expect(instance.store.end).toBe(CHUNK_BYTES);
    expect(await backupsOf(objects, repository, clock, 5).ship(inAMinute(clock))).toBe('made');
    await expectRestored(repository, clock, await exportDirectory(objects));
    await instance.close();
  });
});

/** Bytes of a record besides its data, in a stream of one letter. */
async function frameBytes(): Promise<number> {
  const clock = new AutoClock();
  const instance = await openObjectStore(worldOf(new MemoryObjects({ clock }), clock, 2), OPTIONS);
  await instance.store.append('s', ANY, eventsOf(new SeededIds(3), 1, 100));
  const { end } = instance.store;
  await instance.close();
  return end - 100;
}

describe('backups by ticks', () => {
  test('are made when the newest is old enough, whoever made it, and hold what was there', async () => {
    const { clock, objects, repository, instance, fill } = await store();
    const backups = backupsOf(objects, repository, clock, 5);
    expect(await backups.ship(inAMinute(clock))).toBe('made');
    await expectRestored(repository, clock, await exportDirectory(objects));
    expect(await backups.ship(inAMinute(clock))).toBe('not-due');
    expect(await backupsOf(objects, repository, clock, 6).ship(inAMinute(clock))).toBe('not-due');
    await fill(30);
    await runTick(worldOf(objects, clock, 7));
    await fill(3);
    clock.advance(HOUR_MS);
    expect(await backupsOf(objects, repository, clock, 6).ship(inAMinute(clock))).toBe('made');
    await expectRestored(repository, clock, await exportDirectory(objects));
    expect(await backups.ship(inAMinute(clock))).toBe('not-due');
    expect(await (await openRepositoryOf(repository, clock, 8)).backups()).toHaveLength(2);
    await instance.close();
  });

  if (IS_LONG_RUN)
    test('hold what a scavenge between them, finished or not, has left', async () => {
      const { clock, objects, repository, instance, fill } = await store();
      const backups = backupsOf(objects, repository, clock, 5);
      const ship = async () => {
        clock.advance(HOUR_MS);
        expect(await backups.ship(inAMinute(clock))).toBe('made');
        await expectRestored(repository, clock, await exportDirectory(objects));
      };
      await ship();
      await startScavenge(worldOf(objects, clock, 6));
      let state = 'running';
      for (let i = 0; state === 'running'; i++) {
        state = (await runTick(worldOf(objects, clock, 10 + i), { settings: { ownBytesMax: 1 } })).scavenge!.state;
        await fill(1);
        await ship();
        expect(i).toBeLessThan(40);
      }
      await ship();
      await instance.close();
    });

  test('are not made of a store without events, nor of none', async () => {
    const clock = new AutoClock();
    const objects = new MemoryObjects({ clock });
    const repository = new MemoryObjects({ clock });
    const backups = backupsOf(objects, repository, clock, 5);
    expect(await backups.ship(inAMinute(clock))).toBe('empty');
    await compactionTick(worldOf(objects, clock, 1));
    expect(await backups.ship(inAMinute(clock))).toBe('empty');
    expect(await (await openRepositoryOf(repository, clock, 8)).backups()).toEqual([]);
  });

  test('run after the tick, with its time', async () => {
    const { clock, objects, instance } = await store();
    const shipped: number[] = [];
    const deadlineMs = inAMinute(clock);
    await runTick(worldOf(objects, clock, 6), { deadlineMs, shipBackup: async (untilMs) => shipped.push(untilMs) });
    expect(shipped).toEqual([deadlineMs]);
    await expect(
      runTick(worldOf(objects, clock, 7), { shipBackup: () => Promise.reject(new Error('no repository')) }),
    ).rejects.toThrow('no repository');
    await instance.close();
  });
});

describe("a backup that a tick can't finish", () => {
  /** The same objects, where time passes with every read of a file. */
  function slow(objects: MemoryObjects, clock: AutoClock, read = new Map<string, number>()): ObjectStore {
    return new Proxy(objects, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name !== 'get') return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        return async (key: string, options?: GetOptions) => {
          if (key.startsWith('files/')) clock.advance(1_000);
          const bytes = await target.get(key, options);
          read.set(key, (read.get(key) ?? 0) + (bytes?.length ?? 0));
          return bytes;
        };
      },
    });
  }

  test('goes on with the next ones, which read nothing again that is stored', async () => {
    const { clock, objects, repository, instance } = await store(120);
    const outcomes: string[] = [];
    const read = new Map<string, number>();
    for (let i = 0; outcomes.at(-1) !== 'made'; i++) {
      outcomes.push(
        await backupsOf(slow(objects, clock, read), repository, clock, 5 + i).ship(clock.monotonicMs() + 12_000),
      );
      expect(i).toBeLessThan(30);
    }
    expect(outcomes.length).toBeGreaterThan(3);
    // What was cut off in the middle is read again, and nothing else: a file is read once to name it and once to store
    // it.
    const times = (await manifestOf(objects)).chunks.map(({ key, sizeBytes }) => (read.get(key) ?? 0) / sizeBytes);
    expect(times.filter((each) => each > 2.1).length).toBeLessThan(outcomes.length);
    expect(times.filter((each) => each <= 2.1).length).toBeGreaterThan(2);
    expect(new Set(outcomes.slice(0, -1))).toEqual(new Set(['goes-on']));
    await expectRestored(repository, clock, await exportDirectory(objects));
    expect(await objects.head('control/backup')).toBe(null);
    await instance.close();
  });

  test('is left to the tick that is at it, until that should have ended', async () => {
    const { clock, objects, repository, instance } = await store();
    const faulty = new FaultyObjects(repository, { seed: 1 });
    faulty.crashAfter(12);
    await expect(backupsOf(objects, faulty, clock, 5).ship(inAMinute(clock))).rejects.toThrow();
    // It could write down that it is not at it any more, so nobody waits.
    expect(await backupsOf(objects, repository, clock, 6).ship(inAMinute(clock))).toBe('made');
    clock.advance(HOUR_MS);
    await objects.put(
      'control/backup',
      new TextEncoder().encode(
        JSON.stringify({
          repository: 'aaaaaaaa-0000-4000-8000-000000000001',
          owner: 'bbbbbbbb-0000-4000-8000-000000000001',
          untilMs: clock.nowMs() + 30_000,
          files: [],
        }),
      ),
    );
    const waiting = backupsOf(objects, repository, clock, 7);
    expect(await waiting.ship(inAMinute(clock))).toBe('elsewhere');
    clock.advance(30_000);
    expect(await waiting.ship(inAMinute(clock))).toBe('made');
    await instance.close();
  });

  test('does no harm when its draft is damaged, or its blobs are gone', async () => {
    const { clock, objects, repository, instance } = await store(60);
    expect(await backupsOf(slow(objects, clock), repository, clock, 5).ship(clock.monotonicMs() + 12_000)).toBe(
      'goes-on',
    );
    const draft = JSON.parse(new TextDecoder().decode((await objects.get('control/backup'))!)) as {
      files: { file: { blob: string } }[];
    };
    expect(draft.files.length).toBeGreaterThan(1);
    await (await openRepositoryOf(repository, clock, 8)).removeBlobs([draft.files[0]!.file.blob]);
    expect(await backupsOf(objects, repository, clock, 6).ship(inAMinute(clock))).toBe('made');
    await expectRestored(repository, clock, await exportDirectory(objects));
    clock.advance(HOUR_MS);
    await objects.put('control/backup', new Uint8Array([1, 2, 3]));
    expect(await backupsOf(objects, repository, clock, 7).ship(inAMinute(clock))).toBe('made');
    await instance.close();
  });
});

describe('a tick that is killed at any call of a backup', () => {
  test.each(bySize(['repository'] as const, ['store', 'repository'] as const))(
    'of the %s: the backup before stays whole, and a repeat makes the next',
    async (which) => {
      const { clock, objects, repository, instance, fill } = await store(15);
      expect(await backupsOf(objects, repository, clock, 5).ship(inAMinute(clock))).toBe('made');
      const first = await exportDirectory(objects);
      await fill(15);
      await runTick(worldOf(objects, clock, 6));
      clock.advance(HOUR_MS);
      const second = await exportDirectory(objects);
      let isWhole = false;
      let crashes = 0;
      for (let n = 0; !isWhole; n++) {
        const given = { store: objects.fork(), repository: repository.fork() };
        const faulty = new FaultyObjects(given[which], { seed: n });
        faulty.crashAfter(n);
        const over = { ...given, [which]: faulty };
        isWhole = await backupsOf(over.store, over.repository, clock, 100 + n)
          .ship(inAMinute(clock))
          .then(
            () => !faulty.isCrashed,
            () => false,
          );
        if (faulty.isCrashed) crashes++;
        const made = await (await openRepositoryOf(given.repository, clock, 300 + n)).backups();
        await expectRestored(given.repository, clock, made.length === 1 ? first : second);
        clock.advance(60_001);
        await backupsOf(given.store, given.repository, clock, 500 + n).ship(inAMinute(clock));
        await expectRestored(given.repository, clock, second);
        expect(n).toBeLessThan(120);
      }
      expect(crashes).toBeGreaterThan(12);
      await instance.close();
    },
  );
});

test('a restored directory has the events of every stream', async () => {
  const { clock, objects, repository, instance } = await store();
  await backupsOf(objects, repository, clock, 5).ship(inAMinute(clock));
  const open = await openTestStore({ storage: await restored(repository, clock) });
  for (const stream of ['short', 's-0', 's-1', 's-2', '$$short'])
    expect(await readWholeStream(open.store, stream, 'forward', 50)).toEqual(
      await readWholeStream(instance.store, stream, 'forward', 50),
    );
  await open.close();
  await instance.close();
});
