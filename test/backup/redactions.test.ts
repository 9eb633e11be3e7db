import { describe, expect, it } from 'vitest';
import { copyFiles } from '../../core/backup/copy/copy.ts';
import { manifestShape } from '../../core/backup/format/manifest-shape.ts';
import { restoreCopy } from '../../core/backup/restore-copy/restore-copy.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { verifyRepository } from '../../core/backup/verify/verify.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { snapshotOfDirectory } from '../../core/store/snapshot/snapshot.ts';
import { MARKS_STREAM } from '../../core/streams/format/marks.ts';
import { decodeMarks, MARKS_FILE } from '../../core/streams/format/marks-table.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { putFile } from '../log/kit.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { backUpNode } from '../support/backup/backup-kit.ts';
import { backUp, restoreOptions, restoreWorld, verifyErrors } from '../support/backup/restore-kit.ts';
import { shipperOf } from '../support/backup/shipping-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { isCrash } from '../support/crash.ts';
import { MOMENTS } from '../support/crash-run.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { codeOf } from '../streams/setup.ts';
import { append } from './hold-kit.ts';
import {
  bytesIn,
  EMPTY,
  filesWithMarker,
  idOf,
  MARKER,
  orders,
  redactSecret,
  SECRET,
  WHOLE,
  within,
  write,
  writeOrders,
} from './redactions-kit.ts';

/** Redactions in backups: what a restore of an older one shows. */

interface Redacted {
  readonly objects: MemoryObjects;
  readonly repository: Awaited<ReturnType<typeof openTestRepository>>;
  /** The directory, stopped, behind the second backup. */
  readonly storage: MemoryStorage;
  readonly first: string;
  readonly second: string;
}

/** A backup of the orders, a redaction, and a backup behind it. */
async function redacted(): Promise<Redacted> {
  const objects = new MemoryObjects();
  const repository = await openTestRepository(objects);
  const storage = new MemoryStorage();
  await within(storage, (open) => writeOrders(open));
  const first = (await backUp(storage, repository, 1)).id;
  await within(storage, redactSecret);
  const second = (await backUp(storage, repository, 2)).id;
  return { objects, repository, storage, first, second };
}

function restored(
  { repository }: Pick<Redacted, 'repository'>,
  id: string,
  target: Storage,
  more: Parameters<typeof restoreOptions>[2] = {},
): ReturnType<typeof restoreBackup> {
  return restoreBackup(restoreOptions(repository, target, { choice: { kind: 'backup', id }, ...more }));
}

describe('a backup', () => {
  it('names a table of marks where there are any, of a running node as of a stopped directory, which stays as it is', async () => {
    const { repository, storage, first, second } = await redacted();
    expect(await repository.manifest(first)).toMatchObject({ format: 1 });
    expect((await repository.manifest(first)).redactions).toBeUndefined();
    const stopped = await repository.manifest(second);
    expect(stopped).toMatchObject({ format: 2, redactions: { path: MARKS_FILE } });
    const before = await everyFile(storage);
    await backUp(storage, repository, 3);
    expect(await everyFile(storage)).toEqual(before);
    const running = await within(storage, async (open) => (await backUpNode(open, repository)).manifest);
    expect(running).toMatchObject({ format: 2, redactions: { blob: stopped.redactions!.blob } });
    // Without an index the log tells.
    for (const name of await storage.list('index')) await storage.remove(`index/${name}`);
    expect((await backUp(storage, repository, 5)).redactions!.blob).toBe(stopped.redactions!.blob);
    // One that is damaged stays as it is.
    await putFile(storage, 'index/indexmap', new Uint8Array(40));
    const damaged = await everyFile(storage);
    expect((await backUp(storage, repository, 6)).redactions!.blob).toBe(stopped.redactions!.blob);
    expect(await everyFile(storage)).toEqual(damaged);
    expect(manifestShape({ ...stopped, format: 1 }, '')).toMatchObject({ member: 'format' });
    expect(manifestShape({ ...(await repository.manifest(first)), format: 2 }, '')).toMatchObject({ member: 'format' });
    expect(await verifyRepository({ repository })).toMatchObject({ findings: 0 });
  });

  it('finds marks that the tables of the index know, and those behind them', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    const storage = new MemoryStorage();
    await within(storage, async (open) => {
      await writeOrders(open);
      await redactSecret(open);
      await append(open, 'filler', 60);
      await redactSecret(open, { numbers: [0], metadata: ['$correlationId'] });
    });
    const manifest = await backUp(storage, repository, 1);
    const { content } = (await sourceOf(storage)).snapshot.files.find(({ path }) => path === MARKS_FILE)!;
    const marks = decodeMarks('', content!, nodeDigests);
    expect(manifest.redactions!.sizeBytes).toBe(content!.length);
    expect(marks.positions).toHaveLength(2);
    expect(marks.keys).toEqual([[0, '$correlationId', marks.markedAt[0]]]);
  });
});

async function sourceOf(storage: Storage) {
  const source = await snapshotOfDirectory({
    storage,
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
    ids: new SeededIds(7),
    digests: nodeDigests,
    log: silentLog,
  });
  await source.release();
  return source;
}

async function everyFile(storage: Storage): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const folder of ['', 'index', 'index/stream-existence'])
    for (const name of await storage.list(folder)) {
      const path = folder === '' ? name : `${folder}/${name}`;
      files[path] = Buffer.from(await bytesIn(storage, path)).toString('base64');
    }
  return files;
}

describe('a restore of an older backup', () => {
  it('shows what was redacted since as empty, before and behind the opening that writes it to the log, and for ever', async () => {
    const world = await redacted();
    const target = new MemoryStorage();
    expect(await restored(world, world.first, target)).toMatchObject({ redacted: 1, warnings: [] });
    expect(await filesWithMarker(target)).not.toEqual([]);
    expect(await target.list('')).toContain(MARKS_FILE);
    expect(await verifyErrors(target)).toEqual([]);
    // An opening that only looks writes nothing.
    expect(await within(target, orders, { writeEpoch: false })).toEqual(EMPTY);
    expect(await target.list('')).toContain(MARKS_FILE);
    // A backup of it knows, too.
    expect((await backUp(target, world.repository, 3)).format).toBe(2);
    expect(await within(target, orders)).toEqual(EMPTY);
    expect(await target.list('')).not.toContain(MARKS_FILE);
    expect(await within(target, orders)).toEqual(EMPTY);
    await within(target, async ({ store, scavenger }) => {
      const marks = (await store.readStream(MARKS_STREAM, { direction: 'forward', from: 0, count: 9 })).events;
      expect(marks.map(({ data }) => JSON.parse(Buffer.from(data).toString()) as unknown)).toEqual([
        expect.objectContaining({ stream: 'orders', number: SECRET, id: idOf(SECRET), by: 'restore' }),
      ]);
      await scavenger.start();
      await scavenger.idle();
    });
    expect(await filesWithMarker(target)).toEqual([]);
    expect(await within(target, orders)).toEqual(EMPTY);
  });

  it('finds marks in log that was shipped, and only in pieces that say so', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    const storage = new MemoryStorage();
    let first = '';
    await within(storage, async (open) => {
      await writeOrders(open);
      first = (await backUpNode(open, repository)).manifest.id;
      const { nodeId } = await repository.manifest(first);
      const { shipper } = shipperOf(open.shippableLog(), async () => repository, nodeId);
      await write(open, 10, 'x', 'other');
      await shipper.tick();
      await redactSecret(open);
      await shipper.tick();
    });
    expect((await repository.shipped(first)).map(({ hasMarks }) => hasMarks ?? false)).toEqual([false, true]);
    const target = new MemoryStorage();
    expect(await restored({ repository }, first, target)).toMatchObject({ redacted: 1, warnings: [] });
    expect(await within(target, orders)).toEqual(EMPTY);
    // With the piece itself the log has the mark.
    const latest = new MemoryStorage();
    expect(await restoreBackup(restoreOptions(repository, latest))).toMatchObject({ redacted: 0 });
    expect(await latest.list('')).not.toContain(MARKS_FILE);
    expect(await within(latest, orders)).toEqual(EMPTY);
  });

  it('adds metadata that a newer mark of a redacted event names', async () => {
    const { repository, storage, second } = await redacted();
    await within(storage, (open) => redactSecret(open, { metadata: ['$correlationId'] }));
    await backUp(storage, repository, 3);
    const target = new MemoryStorage();
    expect(await restored({ repository }, second, target)).toMatchObject({ redacted: 1 });
    const expected = EMPTY.with(SECRET, 'redacted ');
    for (const _again of [1, 2]) expect(await within(target, orders)).toEqual(expected);
  });

  it('leaves another event at the same position alone', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const storage = new MemoryStorage();
    const still = { writeEpoch: false };
    await within(storage, (open) => write(open, 0, '0'));
    const first = (await backUp(storage, repository, 1)).id;
    await within(storage, (open) => write(open, 1, MARKER), still);
    await within(storage, (open) => write(open, 5, 'y'), still);
    await within(storage, (open) => redactSecret(open, { numbers: [1, 2] }), still);
    await backUp(storage, repository, 2);
    const target = new MemoryStorage();
    expect(await restored({ repository }, first, target)).toMatchObject({ redacted: 0 });
    expect(await target.list('')).not.toContain(MARKS_FILE);
    await within(target, (open) => write(open, 2, MARKER), still);
    const positions = async (of: Storage) =>
      (await readRawLog(of)).filter(({ prepare }) => prepare?.stream === 'orders').map(({ position }) => position);
    expect(await positions(target)).toEqual((await positions(storage)).slice(0, 2));
    const third = (await backUp(target, repository, 3)).id;
    const again = new MemoryStorage();
    expect(await restored({ repository }, third, again)).toMatchObject({ redacted: 0 });
    expect(await within(again, orders)).toEqual(['{"card":"0"}', `{"card":"${MARKER}"}`]);
    // Nor does it matter that none begins there.
    const longer = new MemoryStorage();
    await restored({ repository }, first, longer);
    for (const n of [3, 4]) await within(longer, (open) => write(open, n, 'x'.repeat(99), 'other'), still);
    expect(await positions(longer)).toHaveLength(1);
    const fourth = (await backUp(longer, repository, 4)).id;
    expect(await restored({ repository }, fourth, new MemoryStorage())).toMatchObject({ redacted: 0 });
  });

  it('warns where newer marks can not be read', async () => {
    const { objects, repository, first, second } = await redacted();
    const { redactions } = await repository.manifest(second);
    const key = repository.blobKey(redactions!.blob);
    const bytes = (await objects.get(key))!.slice();
    bytes[bytes.length - 1]! ^= 1;
    await objects.put(key, bytes);
    expect(await restored({ repository }, first, new MemoryStorage())).toMatchObject({
      redacted: 0,
      warnings: [expect.stringContaining(key)],
    });
    // What is older than the restored one, the restored one knows.
    const [older] = await repository.manifestKeys();
    await objects.put(older!.key, new Uint8Array(9));
    const fresh = await openTestRepository(objects, { create: false });
    const report = await restored({ repository: fresh }, second, new MemoryStorage());
    expect(report.warnings.filter((warning) => warning.includes(older!.key))).toEqual([]);
  });
});

describe('a copy of files', () => {
  it('has the marks of its node, and takes others from a file', async () => {
    const world = await redacted();
    const target = new MemoryStorage();
    await restored(world, world.first, target);
    const source = await snapshotOfDirectory({
      storage: target,
      clock: new ManualClock(TEST_NOW_MS, 'microtask'),
      ids: new SeededIds(9),
      digests: nodeDigests,
      log: silentLog,
    });
    const copy = new MemoryStorage();
    const clock = new ManualClock(TEST_NOW_MS, 'microtask');
    await copyFiles({ source, target: copy, mode: 'full', clock, digests: nodeDigests });
    await source.release();
    const second = new MemoryStorage();
    const options = { source: copy, place: 'copy' };
    expect(await restoreCopy({ ...restoreWorld(second), ...options })).toMatchObject({
      redacted: 1,
      warnings: [expect.stringContaining('--redactions')],
    });
    expect(await within(second, orders)).toEqual(EMPTY);
    await copy.remove(MARKS_FILE);
    const third = new MemoryStorage();
    expect(await restoreCopy({ ...restoreWorld(third), ...options })).toMatchObject({ redacted: 0 });
    expect(await within(third, orders)).toEqual(WHOLE);
    const redactions = decodeMarks('', await bytesIn(target, MARKS_FILE), nodeDigests);
    const fourth = new MemoryStorage();
    expect(await restoreCopy({ ...restoreWorld(fourth), ...options, redactions })).toMatchObject({
      redacted: 1,
      warnings: [],
    });
    expect(await within(fourth, orders)).toEqual(EMPTY);
  });
});

describe('the marks beside a restored log', () => {
  async function waiting(): Promise<FaultyStorage> {
    const world = await redacted();
    const target = new FaultyStorage({ reads: 'async' });
    await restored(world, world.first, target);
    return target;
  }

  it('are taken in whole, whatever cuts the opening off', async () => {
    const base = await waiting();
    const undisturbed = base.restart('keep');
    const before = undisturbed.operations;
    await within(undisturbed, async () => {});
    const operations = undisturbed.operations - before;
    expect(operations).toBeGreaterThan(10);
    for (let n = 1; n <= operations; n++) {
      const moment = MOMENTS[n % 3]!;
      const mode = (['drop', 'keep', 'partial', 'clean'] as const)[n % 4]!;
      const name = `crash ${moment} operation ${n}, ${mode}`;
      const target = base.restart('keep');
      target.crashAt(target.operations + n, moment);
      const seen = await within(target, orders).catch((error: unknown) => {
        if (!isCrash(error) && !isSkuaError(error, 'sync_failed')) throw error;
        return EMPTY;
      });
      expect(seen, name).toEqual(EMPTY);
      const after = target.restart(mode, n);
      expect(await within(after, orders, { writeEpoch: false }), `${name}, only looked at`).toEqual(EMPTY);
      expect(await within(after, orders), name).toEqual(EMPTY);
      expect(await after.list(''), name).not.toContain(MARKS_FILE);
      const last = after.restart('drop', n);
      expect(await within(last, orders), `${name}, once more`).toEqual(EMPTY);
      expect([...after.violations, ...last.violations], name).toEqual([]);
    }
  });

  it('open nothing where they are damaged, and a check says so', async () => {
    const target = await waiting();
    const file = await target.open(MARKS_FILE, 'write');
    await file.writeAt(20, Uint8Array.of(255));
    await file.sync();
    await file.close();
    expect(await verifyErrors(target)).toEqual([expect.stringContaining(`error ${MARKS_FILE}`)]);
    expect(await codeOf(within(target, orders))).toBe('log_corrupt');
  });
});
