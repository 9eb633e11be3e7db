import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import { checkErasureInRepository } from '../../core/backup/erasure-check/erasure-check.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ACCUMULATE_JOB } from '../../core/scavenge/accumulation.ts';
import { CLEAN_JOB } from '../../core/scavenge/cleaning.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { backUpNode } from '../support/backup/backup-kit.ts';
import { endOf } from '../support/backup/restore-history.ts';
import { logText, restoreOptions, verifyErrors } from '../support/backup/restore-kit.ts';
import { copyOfObjects, shipperOf } from '../support/backup/shipping-kit.ts';
import type { TestShipper } from '../support/backup/shipping-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { MOMENTS } from '../support/crash-run.ts';
import { isCrash } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { newEvent } from '../support/workload.ts';
import { CHUNK_BYTES, openSmall } from './hold-kit.ts';

/** A node whose log is shipped across chunks behind one backup, restored. */

let storage: MemoryStorage;
let clock: ManualClock;
let node: DirectoryStore;
let objects: MemoryObjects;
let repository: Repository;
let base: Manifest;
let shipping: TestShipper;
let random: Random;
/** Jobs with a name that wait until they are released, or the next name is held. */
let held: { readonly name: string; readonly isReached: () => void; readonly released: Promise<void> } | null;
let release: () => void;

/** Resolves when the next job with this name waits; what waited before goes on. */
function reach(name: string): Promise<void> {
  release();
  return new Promise((isReached) => {
    held = {
      name,
      isReached,
      released: new Promise((resolve) => {
        release = resolve;
      }),
    };
  });
}

async function openNode(): Promise<void> {
  const jobs = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids: new SeededIds(99), clock });
  const run: InlineJobs['run'] = async (name, args, options) => {
    if (name === held?.name) {
      held.isReached();
      await held.released;
    }
    return jobs.run(name, args, options);
  };
  node = await openSmall(storage, { clock, jobs: { run, close: () => jobs.close() }, verifyChunks: false });
  shipping = shipperOf(node.shippableLog(), async () => repository, base?.nodeId ?? '', { clock });
}

async function write(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const events = Array.from({ length: random.int(1, 3) }, () =>
      newEvent(random, 'made', 'x'.repeat(random.int(1_000, 4_000))),
    );
    await node.store.append(random.pick(['a', 'b', 'c']), ANY, events);
    clock.setNow(clock.nowMs() + 1_000);
  }
}

async function writeAndShip(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await write(1);
    expect(await shipping.shipper.tick()).toMatchObject({ error: null });
    expect(shipping.shipper.unshippedBytes).toBe(0);
  }
}

beforeEach(async () => {
  storage = new MemoryStorage();
  clock = new ManualClock(TEST_NOW_MS, 'microtask');
  random = new Random(17);
  held = null;
  release = () => {};
  objects = new MemoryObjects();
  repository = await openTestRepository(objects);
  base = null!;
  await openNode();
  await write(8);
  base = (await backUpNode(node, repository)).manifest;
  shipping = shipperOf(node.shippableLog(), async () => repository, base.nodeId, { clock });
});

afterEach(async () => {
  release();
  await node.close();
});

async function keysOfPieces(): Promise<string[]> {
  return (await repository.shipped(base.id)).map(({ from }) => `shipped/${base.id}/${String(from).padStart(20, '0')}`);
}

describe('log that was shipped across chunks', () => {
  it('is restored with its chunks completed, whichever was the last piece', async () => {
    await writeAndShip(60);
    const source = await logText(storage);
    const keys = await keysOfPieces();
    expect(node.shippableLog().end).toBeGreaterThan(base.checkpoints.writer + 3 * CHUNK_BYTES);
    let before = -1;
    for (let count = 0; count <= keys.length; count++) {
      const left = new Set(keys.slice(count));
      const target = new MemoryStorage();
      const report = await restoreBackup(
        restoreOptions(await openTestRepository(await copyOfObjects(objects, (key) => left.has(key))), target),
      );
      const restored = await logText(target);
      expect(restored, `${count} pieces`).toEqual(source.slice(0, restored.length));
      expect(await verifyErrors(target), `${count} pieces`).toEqual([]);
      expect(report.position).toBeGreaterThan(before);
      before = report.position;
    }
    expect(before).toBe(node.shippableLog().end);
  });

  it('is the nearest moment before one that was scavenged and never shipped', async () => {
    await writeAndShip(10);
    const shippedEnd = node.shippableLog().end;
    const shippedMs = clock.nowMs() - 1_000;
    clock.setNow(clock.nowMs() + 60_000);
    await write(30);
    // Behind the first write that was not shipped.
    const wantedMs = shippedMs + 61_500;
    await node.store.deleteStream('a', ANY, 'hard');
    await node.scavenger.start({ threads: 1, throttlePercent: 100, threshold: 0 });
    await node.scavenger.idle();
    await backUpNode(node, repository, { clock: new ManualClock(clock.nowMs(), 'microtask') });
    const refusal = await restoreBackup(
      restoreOptions(repository, new MemoryStorage(), { choice: { kind: 'time', timeMs: wantedMs } }),
    ).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: 'not_restorable',
      data: { belowMs: shippedMs, aboveMs: expect.any(Number) },
    });
    const target = new MemoryStorage();
    expect(
      await restoreBackup(
        restoreOptions(repository, target, { choice: { kind: 'time', timeMs: wantedMs, orBefore: true } }),
      ),
    ).toMatchObject({ backupId: base.id, position: shippedEnd, earlierMs: shippedMs });
    expect(await verifyErrors(target)).toEqual([]);
    // And the moment of the last piece itself can be had.
    expect(
      await restoreBackup(
        restoreOptions(repository, new MemoryStorage(), { choice: { kind: 'time', timeMs: shippedMs - 1 } }),
      ),
    ).toMatchObject({ backupId: base.id, earlierMs: null });
  });

  it('is restored to any place in it, also where a chunk begins, and never to one between two chunks', async () => {
    await writeAndShip(25);
    const records = (await readRawLog(storage)).filter(({ position }) => position >= base.checkpoints.writer);
    const source = await logText(storage);
    const ends = records.map(endOf);
    const starts = [...new Set(records.map(({ chunk }) => chunk * CHUNK_BYTES))].filter(
      (start) => start > base.checkpoints.writer,
    );
    expect(starts.length).toBeGreaterThan(1);
    for (const position of [...starts, ...ends.filter((_, i) => i % 5 === 0)]) {
      const target = new MemoryStorage();
      try {
        expect(
          (await restoreBackup(restoreOptions(repository, target, { choice: { kind: 'position', position } })))
            .position,
        ).toBe(position);
      } catch (error) {
        // Inside a write of several events.
        if (!isSkuaError(error, 'not_restorable') || starts.includes(position)) throw error;
        continue;
      }
      expect(await logText(target)).toEqual(source.filter((line) => Number.parseInt(line, 10) < position));
      expect(await verifyErrors(target)).toEqual([]);
    }
    for (const start of starts) {
      const dataEnd = Math.max(...ends.filter((end) => end < start), base.checkpoints.writer);
      for (const position of [dataEnd + 1, start - 1]) {
        await expect(
          restoreBackup(restoreOptions(repository, new MemoryStorage(), { choice: { kind: 'position', position } })),
        ).rejects.toMatchObject({ code: 'not_restorable', data: { below: dataEnd, above: start } });
      }
    }
  });

  it('is restored to any time in it', async () => {
    await writeAndShip(25);
    const source = await logText(storage);
    const seen = new Set<number>();
    for (let timeMs = TEST_NOW_MS; timeMs < clock.nowMs() + 2_000; timeMs += 1_700) {
      const target = new MemoryStorage();
      const { position } = await restoreBackup(
        restoreOptions(repository, target, { choice: { kind: 'time', timeMs, orBefore: timeMs > clock.nowMs() } }),
      );
      const restored = await logText(target);
      expect(restored).toEqual(source.slice(0, restored.length));
      expect(await verifyErrors(target)).toEqual([]);
      seen.add(position);
    }
    expect(seen.size).toBeGreaterThan(10);
    expect([...seen].at(-1)).toBe(node.shippableLog().end);
  });

  it('goes on with a node that was restarted, with its epochs', async () => {
    for (let i = 0; i < 3; i++) {
      await writeAndShip(8);
      await node.close();
      await openNode();
      expect(await shipping.shipper.tick()).toMatchObject({ error: null });
    }
    const target = new MemoryStorage();
    const { position } = await restoreBackup(restoreOptions(repository, target));
    expect(position).toBe(node.shippableLog().end);
    expect(await logText(target)).toEqual(await logText(storage));
    const epochOf = async (on: MemoryStorage) =>
      Buffer.from(await (await on.open('epoch.chk', 'read')).read(0, 8)).readBigInt64LE();
    expect(await epochOf(target)).toBe(await epochOf(storage));
    expect(await verifyErrors(target)).toEqual([]);
  });

  it('is searched for what should be erased, in every chunk', async () => {
    const events = Array.from({ length: 3 }, () => newEvent(random, 'made', null, 50));
    for (const event of events) {
      await writeAndShip(14);
      await node.store.append('wanted', ANY, [event]);
    }
    await writeAndShip(1);
    expect(
      new Set((await repository.shipped(base.id)).map(({ from }) => Math.floor(from / CHUNK_BYTES))).size,
    ).toBeGreaterThan(2);
    const found = new Set<string>();
    for (const { id } of events)
      for await (const said of checkErasureInRepository({
        repository,
        clock: new ManualClock(TEST_NOW_MS, 'microtask'),
        events: [id],
      }))
        if (said.kind !== 'progress') found.add(id);
    expect(found.size).toBe(3);
  });

  it('that is damaged in the middle of all is cut there, inside its chunk, when damage is allowed', async () => {
    await writeAndShip(25);
    const pieces = await repository.shipped(base.id);
    for (const index of [2, pieces.findIndex(({ previousEnd }) => previousEnd !== undefined), pieces.length - 2]) {
      const key = `shipped/${base.id}/${String(pieces[index]!.from).padStart(20, '0')}`;
      const broken = await copyOfObjects(objects);
      const bytes = (await broken.get(key))!.slice();
      bytes[bytes.length - 1]! ^= 1;
      await broken.put(key, bytes);
      const damaged = await openTestRepository(broken);
      await expect(restoreBackup(restoreOptions(damaged, new MemoryStorage()))).rejects.toMatchObject({
        code: 'repository_damaged',
      });
      const target = new MemoryStorage();
      const report = await restoreBackup(restoreOptions(damaged, target, { allowDamaged: true }));
      expect(report).toMatchObject({
        position: pieces[index]!.from,
        skipped: [{ key, lost: { from: pieces[index]!.from } }],
      });
      expect(await logText(target)).toEqual(
        (await logText(storage)).filter((line) => Number.parseInt(line, 10) < pieces[index]!.from),
      );
      expect(await verifyErrors(target)).toEqual([]);
    }
  });

  it('is never taken in part for the whole after a power loss at any operation of its restore', async () => {
    await writeAndShip(16);
    const whole = await logText(storage);
    const undisturbed = new FaultyStorage({ reads: 'async' });
    await restoreBackup(restoreOptions(repository, undisturbed));
    expect(await logText(undisturbed)).toEqual(whole);
    expect(undisturbed.violations).toEqual([]);
    for (let n = 1; n <= undisturbed.operations; n++) {
      const target = new FaultyStorage({ reads: 'async' });
      target.crashAt(n, MOMENTS[n % 3]);
      const error = await restoreBackup(restoreOptions(repository, target)).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (error !== null && !isCrash(error) && !isSkuaError(error, 'sync_failed')) throw error;
      const mode = n % 2 === 0 ? 'partial' : 'clean';
      const left = target.restart(mode, n);
      const opened = await openSmall(left, { writeEpoch: false, verifyChunks: false }).then(
        async (open) => {
          await open.close();
          return logText(left);
        },
        (reason: unknown) => reason,
      );
      // Before the first file there is nothing, and a start makes a log of its own.
      if (Array.isArray(opened)) expect([[], whole]).toContainEqual(opened);
      else expect(opened, `operation ${n}`).toMatchObject({ code: 'backup_failed' });
      const after = target.restart(mode, n);
      await restoreBackup(restoreOptions(repository, after, { force: true }));
      expect(await logText(after), `operation ${n}`).toEqual(whole);
      expect(await verifyErrors(after), `operation ${n}`).toEqual([]);
      expect(await logText(after.restart('drop')), `operation ${n}: on the disk`).toEqual(whole);
    }
  });
});

describe('shipping while a scavenge runs', () => {
  it('goes on from its beginning to its end, over chunks that it has rewritten, and a restore of the latest has everything', async () => {
    await node.store.append('$$a', ANY, [newEvent(random, '$metadata', '{"$maxCount":1}')]);
    await writeAndShip(10);
    const everything = await logText(storage);
    const begun = reach(ACCUMULATE_JOB);
    await node.scavenger.start({ threshold: -1 });
    await begun;
    expect(shipping.shipper.unshippedBytes).toBeGreaterThan(0);
    await writeAndShip(4);
    await reach(CLEAN_JOB);
    for (let i = 0; i < 6; i++) {
      await writeAndShip(4);
      const target = new MemoryStorage();
      const { position } = await restoreBackup(restoreOptions(repository, target));
      expect(position).toBe(node.shippableLog().end);
      const restored = await logText(target);
      // What was shipped before the scavenge has what that took away, and what came since is there.
      expect(restored).toEqual(expect.arrayContaining(everything));
      expect(restored).toEqual(expect.arrayContaining(await logText(storage)));
      expect(await verifyErrors(target)).toEqual([]);
    }
    expect(node.scavenger.progress()?.phase).toBe('Cleaning');
    expect((await storage.list('')).some((name) => /^chunk-\d{6}\.000001$/.test(name))).toBe(true);
    expect(shipping.wanted).toEqual(['chunk']);
    // The node stops and starts while it runs: another process goes on behind the same base.
    held = null;
    release();
    await node.close();
    await openNode();
    await writeAndShip(3);
    await node.scavenger.idle();
    const restored = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, restored));
    expect(await logText(restored)).toEqual(expect.arrayContaining(everything));
    const next = (await backUpNode(node, repository)).manifest;
    shipping.shipper.rebase();
    await writeAndShip(2);
    expect((await repository.shipped(next.id)).length).toBeGreaterThan(0);
    const target = new MemoryStorage();
    expect(await restoreBackup(restoreOptions(repository, target))).toMatchObject({
      backupId: next.id,
      position: node.shippableLog().end,
    });
    expect(await logText(target)).toEqual(await logText(storage));
  });
});
