import { describe, expect, it } from 'vitest';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { PIECES_MAX, Shipper } from '../../core/backup/shipper/shipper.ts';
import type { BaseReason } from '../../core/backup/shipper/shipper.ts';
import { PIECE_BYTES } from '../../core/store/shippable-log/shippable-log.ts';
import { RecordWalk } from '../../core/log/format/record-walk.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { FakeLog, NODE_ID } from '../support/backup/fake-log.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';

const KEY = new Random(4).bytes(32);

interface Rig {
  readonly log: FakeLog;
  readonly clock: ManualClock;
  readonly wanted: BaseReason[];
  readonly shipper: Shipper;
  readonly repository: Repository;
  readonly base: Manifest;
}

function newShipper(
  log: FakeLog,
  repository: Repository,
  clock: ManualClock,
  wanted: BaseReason[] = [],
  more: object = {},
): Shipper {
  return new Shipper({
    repository: async () => repository,
    nodeId: NODE_ID,
    log,
    clock,
    onBaseWanted: (reason) => wanted.push(reason),
    ...more,
  });
}

async function rig(
  objects = new MemoryObjects(),
  chunkSizeBytes = 65_536,
  key: Uint8Array | null = null,
): Promise<Rig> {
  const log = new FakeLog(chunkSizeBytes);
  const clock = new ManualClock();
  const wanted: BaseReason[] = [];
  log.write(3, 500);
  const repository = await openTestRepository(objects, { key, compression: key === null ? 'off' : 'on' });
  const base = await log.backUp(repository, clock.nowMs());
  return { log, clock, wanted, repository, base, shipper: newShipper(log, repository, clock, wanted) };
}

/** All that the repository holds behind the base, which must be the log itself. */
async function expectShipped(repository: Repository, base: Manifest, log: FakeLog, to = log.end): Promise<void> {
  const pieces = await repository.shipped(base.id);
  let at = base.checkpoints.writer;
  for (const piece of pieces) {
    expect(piece.from).toBe(at);
    expect(Buffer.compare(await repository.readShipped(piece), await log.read(piece.from, piece.to))).toBe(0);
    at = piece.to;
  }
  expect(at).toBe(to);
}

describe('shipping', () => {
  it.each([null, KEY])(
    'puts what came since the last call into the repository, and knows what it has not',
    async (key) => {
      const { log, shipper, repository, base, clock, wanted } = await rig(new MemoryObjects(), 65_536, key);
      expect(await shipper.tick()).toEqual({ shippedBytes: 0, wants: null, error: null });
      for (let i = 0; i < 5; i++) {
        const before = log.end;
        log.write(2, 900);
        expect(shipper.unshippedBytes).toBe(log.end - before);
        await clock.advance(5_000);
        expect(shipper.lagMs).toBe(5_000);
        expect(await shipper.tick()).toEqual({ shippedBytes: log.end - before, wants: null, error: null });
        expect([shipper.unshippedBytes, shipper.lagMs]).toEqual([0, 0]);
      }
      await expectShipped(repository, base, log);
      expect((await repository.backups())[0]).toMatchObject({
        logEnd: base.checkpoints.writer,
        shippedEnd: log.end,
        shippedMs: clock.nowMs(),
      });
      expect(wanted).toEqual([]);
    },
  );

  it('cuts behind whole writes', async () => {
    const { log, shipper, repository, base } = await rig(new MemoryObjects(), 67_108_864);
    for (let i = 0; i < 30; i++) log.write(7, 60_000);
    // More than a piece should have, and still a single write.
    log.write(90, 60_000);
    log.write(1, 10);
    await shipper.tick();
    await expectShipped(repository, base, log);
    const pieces = await repository.shipped(base.id);
    expect(pieces.length).toBeGreaterThan(3);
    for (const piece of pieces) {
      const walk = new RecordWalk(piece.from);
      walk.push(await repository.readShipped(piece), () => true);
      expect(walk.end).toBe(piece.to);
    }
    expect(pieces.filter(({ from, to }) => to - from > PIECE_BYTES)).toHaveLength(1);
  });

  it('asks for a base that is missing, and goes on from it', async () => {
    const log = new FakeLog();
    log.write(1, 100);
    const clock = new ManualClock();
    const repository = await openTestRepository(new MemoryObjects());
    const wanted: BaseReason[] = [];
    const shipper = newShipper(log, repository, clock, wanted);
    expect(await shipper.tick()).toMatchObject({ wants: 'none' });
    await shipper.tick();
    expect(wanted).toEqual(['none']);
    expect(shipper.unshippedBytes).toBe(log.end);
    await clock.advance(600_000);
    await shipper.tick();
    expect(wanted).toEqual(['none', 'none']);
    const base = await log.backUp(repository, clock.nowMs());
    shipper.rebase();
    log.write(1, 100);
    await shipper.tick();
    await expectShipped(repository, base, log);
    expect(wanted).toHaveLength(2);
  });

  it('asks for a base when a scavenge has replaced a chunk, and ships on meanwhile', async () => {
    const log = new FakeLog();
    log.write(1, 100);
    log.completeChunk();
    log.write(1, 100);
    const clock = new ManualClock();
    const repository = await openTestRepository(new MemoryObjects());
    const base = await log.backUp(repository, clock.nowMs());
    const shipper = newShipper(log, repository, clock);
    log.versions[0] = 1;
    log.write(1, 100);
    expect(await shipper.tick()).toMatchObject({ wants: 'scavenged' });
    await expectShipped(repository, base, log);
  });

  it('asks for a base after many pieces, and ships on', async () => {
    const { log, shipper, repository, base, wanted } = await rig(new MemoryObjects(), 1_048_576);
    for (let i = 0; i <= PIECES_MAX; i++) {
      log.write(1, 10);
      expect(await shipper.tick()).toMatchObject({ wants: i + 1 >= PIECES_MAX ? 'many' : null });
    }
    await expectShipped(repository, base, log);
    expect(wanted).toEqual(['many']);
  });

  it('knows after a restart how long ago everything was shipped', async () => {
    const { log, shipper, repository, clock } = await rig();
    log.write(1, 100);
    await shipper.tick();
    await clock.advance(60_000);
    log.write(1, 100);
    log.completeChunk();
    // Nothing can be shipped of it any more.
    log.versions[0] = 1;
    const next = newShipper(log, repository, clock);
    await next.tick();
    expect(next.lagMs).toBe(60_000);
  });

  it('finds out that another process ships there', async () => {
    const { log, shipper, repository, base } = await rig();
    await shipper.tick();
    await repository.ship(
      { manifestId: base.id, from: log.end, to: log.end + 4, shippedMs: 1 },
      new Uint8Array([1, 2, 3, 4]),
    );
    log.write(1, 100);
    expect(await shipper.tick()).toMatchObject({ wants: 'other', shippedBytes: 0 });
    expect(await repository.shipped(base.id)).toHaveLength(1);
  });

  it('takes over pieces that are the same', async () => {
    const { log, shipper, repository, base } = await rig();
    await shipper.tick();
    const from = log.end;
    log.write(1, 100);
    await repository.ship({ manifestId: base.id, from, to: log.end, shippedMs: 1 }, await log.read(from, log.end));
    log.write(1, 100);
    expect(await shipper.tick()).toMatchObject({ wants: null });
    await expectShipped(repository, base, log);
  });

  it('finds out that the log was cut and has grown again, while it runs and after a restart', async () => {
    for (const isRestarted of [false, true]) {
      const { log, repository, base, clock, shipper: first } = await rig();
      log.write(1, 100);
      await first.tick();
      log.cut(base.checkpoints.writer);
      const shipper = isRestarted ? newShipper(log, repository, clock) : first;
      expect(await shipper.tick()).toMatchObject({ wants: 'other' });
      log.write(1, 100);
      expect(await newShipper(log, repository, clock).tick()).toMatchObject({ wants: 'other' });
    }
  });

  it('asks for a base when what was shipped is damaged', async () => {
    const objects = new MemoryObjects();
    const { log, shipper, repository, base, clock } = await rig(objects);
    for (let i = 0; i < 3; i++) {
      log.write(1, 100);
      await shipper.tick();
    }
    const [first] = await repository.shipped(base.id);
    await objects.remove([`shipped/${base.id}/${String(first!.from).padStart(20, '0')}`]);
    expect(await newShipper(log, repository, clock).tick()).toMatchObject({ wants: 'damaged' });
  });

  it('keeps to its pace', async () => {
    const { log, repository, clock, base } = await rig(new MemoryObjects(), 67_108_864);
    const shipper = newShipper(log, repository, clock, [], { throttleBytesPerSecond: 1_000_000 });
    for (let i = 0; i < 100; i++) log.write(1, 100_000);
    const ticking = shipper.tick();
    await clock.advance(5_000);
    const soFar = (await repository.shipped(base.id)).at(-1)?.to ?? 0;
    expect(soFar).toBeLessThan(6_000_000);
    await clock.advance(10_000);
    await ticking;
    await expectShipped(repository, base, log);
  });

  it('pauses after errors, ever longer, and never loses its place', async () => {
    const objects = new MemoryObjects();
    const { log, base, clock } = await rig(objects);
    const faulty = new FaultyObjects(objects);
    const repository = await openTestRepository(faulty);
    const shipper = newShipper(log, repository, clock);
    faulty.faultWhen(() => 'before');
    log.write(1, 100);
    expect((await shipper.tick()).error).toMatchObject({ code: 'storage_unreachable' });
    const calls = faulty.calls.length;
    await shipper.tick();
    expect(faulty.calls.length).toBe(calls);
    let tries = 1;
    for (let i = 0; i < 600; i++) {
      await clock.advance(1_000);
      if ((await shipper.tick()).error !== null) tries++;
    }
    expect(tries).toBeGreaterThan(8);
    expect(tries).toBeLessThan(20);
    expect(shipper.lagMs).toBe(600_000);
    faulty.faultWhen(undefined);
    await clock.advance(60_000);
    expect((await shipper.tick()).error).toBe(null);
    await expectShipped(await openTestRepository(objects), base, log);
  });
});
