import { beforeEach, describe, expect, it } from 'vitest';
import type { Repository } from '../../core/backup/repository/api.ts';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import { manifestKey } from '../../core/backup/repository/manifests.ts';
import { chooseRestore } from '../../core/backup/restore/choose.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { FakeLog, NODE_ID } from '../support/backup/fake-log.ts';
import { copyOfObjects, expectShippedChunks, shipperOf } from '../support/backup/shipping-kit.ts';
import type { TestShipper } from '../support/backup/shipping-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { RecordWalk } from '../../core/log/format/record-walk.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Backups that are made while log is shipped, by the node or from outside. */

let log: FakeLog;
let clock: ManualClock;
let objects: FaultyObjects;
let repository: Repository;
let first: Manifest;
let shipping: TestShipper;

beforeEach(async () => {
  log = new FakeLog();
  clock = new ManualClock();
  objects = new FaultyObjects(new MemoryObjects());
  repository = await openTestRepository(objects);
  log.write(2, 300);
  first = await log.backUp(repository, clock.nowMs());
  shipping = shipperOf(log, async () => repository, NODE_ID, { clock });
  await written();
});

async function written(): Promise<void> {
  await clock.advance(5_000);
  log.write(1, 300);
  await shipping.shipper.tick();
}

/** A backup of the log as it is now, whose manifest is written when the function is called. */
async function begunBackup(nodeId = NODE_ID): Promise<() => Promise<Manifest>> {
  const there = new MemoryObjects();
  const manifest = await log.backUp(await openTestRepository(there), clock.nowMs());
  return async () => {
    for await (const { id } of (await openTestRepository(there)).blobs()) {
      const key = `blobs/${id.slice(0, 2)}/${id}`;
      await objects.put(key, (await there.get(key))!);
    }
    await repository.putManifest({ ...manifest, nodeId });
    return manifest;
  };
}

/** What a restore of the latest gives, which the shipper must know. */
async function latestEnd(): Promise<number> {
  const { position } = await chooseRestore(repository, { kind: 'latest' });
  expect(shipping.shipper.unshippedBytes).toBe(log.end - position);
  return position;
}

it('promises of a piece behind which more is to come no later moment than that of its last record', async () => {
  const from = log.end;
  for (let i = 0; i < 8; i++) log.write(20, 900);
  await shipping.shipper.tick();
  const pieces = (await repository.shipped(first.id)).filter((piece) => piece.from >= from);
  expect(pieces.length).toBeGreaterThan(1);
  for (const piece of pieces) {
    const walk = new RecordWalk(piece.from);
    walk.push(await repository.readShipped(piece), () => true);
    expect(piece.shippedMs).toBe(piece.to === log.end ? clock.nowMs() : Math.min(clock.nowMs(), walk.timeMs));
  }
});

describe('shipping beside backups that are made from outside', () => {
  it('follows the newest in the next round that ships', async () => {
    const put = await begunBackup();
    await written();
    const second = await put();
    await written();
    await expectShippedChunks(repository, second, log);
    expect((await repository.shipped(first.id)).at(-1)!.to).toBeLessThan(log.end);
    expect(await latestEnd()).toBe(log.end);
  });

  it('loses nothing in between: the latest is the backup whose log reaches furthest', async () => {
    const put = await begunBackup();
    for (let i = 0; i < 4; i++) await written();
    const second = await put();
    expect(second.checkpoints.writer).toBeLessThan(log.end);
    const plan = await chooseRestore(repository, { kind: 'latest' });
    expect([plan.manifest.id, plan.position]).toEqual([first.id, log.end]);
    expect(await chooseRestore(repository, { kind: 'latest' }, { allowDamaged: true })).toMatchObject({
      manifest: { id: first.id },
      position: log.end,
    });
    expect(await chooseRestore(repository, { kind: 'time', timeMs: Date.UTC(2040, 0), orBefore: true })).toMatchObject({
      manifest: { id: first.id },
      position: log.end,
    });
    // Within the newest, that one serves.
    expect(await chooseRestore(repository, { kind: 'position', position: second.checkpoints.writer })).toMatchObject({
      manifest: { id: second.id },
    });
    await shipping.shipper.tick();
    expect(await latestEnd()).toBe(log.end);
  });

  it('looks once a round that ships, and not at the backups of others again', async () => {
    const other = await (await begunBackup('0a0a0a0a-3c51-4f6a-9d0b-6f1f2f9a7c11'))();
    await written();
    const before = objects.calls.length;
    await written();
    expect(objects.calls.slice(before).map(({ op }) => op)).toEqual(['list', 'create']);
    const idle = objects.calls.length;
    await shipping.shipper.tick();
    expect(objects.calls.length).toBe(idle);
    await expectShippedChunks(repository, first, log);
    expect((await chooseRestore(repository, { kind: 'latest' })).manifest.id).toBe(other.id);
  });

  it('goes on behind the one before when the newest is removed, and asks for a base when there is none left', async () => {
    const second = await (await begunBackup())();
    await written();
    await repository.removeManifest(second.id);
    await written();
    await expectShippedChunks(repository, first, log);
    expect(await latestEnd()).toBe(log.end);
    await repository.removeManifest(first.id);
    await written();
    expect(shipping.wanted).toEqual(['none']);
    expect(shipping.shipper.unshippedBytes).toBe(log.end);
  });

  it('knows what would be lost while it can not catch up, and when the backup that reached further is removed', async () => {
    const put = await begunBackup();
    for (let i = 0; i < 3; i++) await written();
    const second = await put();
    shipping.shipper.rebase();
    objects.faultWhen((op) => (op === 'create' ? 'before' : undefined));
    await written();
    expect(await latestEnd()).toBe((await repository.shipped(first.id)).at(-1)!.to);
    await repository.removeManifest(first.id);
    await clock.advance(60_000);
    await shipping.shipper.tick();
    expect(await latestEnd()).toBe(second.checkpoints.writer);
    objects.faultWhen(undefined);
    await clock.advance(60_000);
    await shipping.shipper.tick();
    await expectShippedChunks(repository, second, log);
    expect(await latestEnd()).toBe(log.end);
  });
});

describe('the latest, of several backups with shipped log', () => {
  it('is the newest where the log was cut before it, however far the one before reached', async () => {
    for (let i = 0; i < 4; i++) await written();
    log.cut(first.checkpoints.writer);
    await clock.advance(1_000);
    const second = await (await begunBackup())();
    const plan = await chooseRestore(repository, { kind: 'latest' });
    expect([plan.manifest.id, plan.position]).toEqual([second.id, second.checkpoints.writer]);
  });

  it('is refused when the one that reaches furthest is damaged, and does without it when damage is allowed', async () => {
    const put = await begunBackup();
    await written();
    const from = log.end;
    await written();
    await written();
    const second = await put();
    const key = `shipped/${first.id}/${String(from).padStart(20, '0')}`;
    const broken = await openTestRepository(await copyOfObjects(objects, (other) => other === key));
    await expect(chooseRestore(broken, { kind: 'latest' })).rejects.toMatchObject({ code: 'repository_damaged' });
    const plan = await chooseRestore(broken, { kind: 'latest' }, { allowDamaged: true });
    expect([plan.manifest.id, plan.position]).toEqual([first.id, from]);
    expect(plan.warnings).toHaveLength(1);
    expect(second.checkpoints.writer).toBeLessThan(from);
  });

  it('does not depend on older manifests that are damaged', async () => {
    const second = await (await begunBackup())();
    const manifest = manifestKey(first);
    const damaged = await copyOfObjects(objects);
    await damaged.put(manifest, new Uint8Array(9));
    expect((await chooseRestore(await openTestRepository(damaged), { kind: 'latest' })).manifest.id).toBe(second.id);
  });
});
