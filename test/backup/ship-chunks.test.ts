import { describe, expect, it } from 'vitest';
import type { Repository } from '../../core/backup/repository/api.ts';
import { verifyRepository } from '../../core/backup/verify/verify.ts';
import type { RepositoryFinding } from '../../core/backup/verify/verify.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { FakeLog, NODE_ID } from '../support/backup/fake-log.ts';
import { copyOfObjects, expectShippedChunks, shipperOf } from '../support/backup/shipping-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';

const CHUNK_BYTES = 65_536;

function keyOf(manifestId: string, from: number): string {
  return `shipped/${manifestId}/${String(from).padStart(20, '0')}`;
}

async function rig() {
  const objects = new MemoryObjects();
  const repository = await openTestRepository(objects);
  const log = new FakeLog(CHUNK_BYTES);
  log.write(3, 500);
  const clock = new ManualClock();
  const base = await log.backUp(repository, clock.nowMs());
  return { objects, repository, log, clock, base, ...shipperOf(log, async () => repository, NODE_ID, { clock }) };
}

async function findingsOf(objects: ObjectStore): Promise<RepositoryFinding[]> {
  const findings: RepositoryFinding[] = [];
  await verifyRepository({
    repository: await openTestRepository(objects),
    onFinding: (finding) => findings.push(finding),
  });
  return findings;
}

describe('shipping behind one base, when chunks are completed', () => {
  it('ships the rest of the chunk, goes on in the next, and asks for a base once', async () => {
    const { log, shipper, repository, base, wanted, clock } = await rig();
    log.write(1, 1_000);
    log.completeChunk();
    log.write(1, 1_000);
    expect(await shipper.tick()).toMatchObject({ wants: 'chunk', error: null });
    expect([shipper.unshippedBytes, shipper.lagMs]).toEqual([0, 0]);
    const pieces = await expectShippedChunks(repository, base, log);
    expect(pieces.map(({ from, previousEnd }) => [from, previousEnd])).toEqual([
      [base.checkpoints.writer, undefined],
      [CHUNK_BYTES, log.dataEnd(0)],
    ]);
    log.write(1, 1_000);
    await shipper.tick();
    await expectShippedChunks(repository, base, log);
    expect(wanted).toEqual(['chunk']);
    const next = await log.backUp(repository, clock.nowMs() + 1);
    shipper.rebase();
    log.write(1, 1_000);
    expect(await shipper.tick()).toMatchObject({ wants: null });
    await expectShippedChunks(repository, next, log);
  });

  it('counts nothing as unshipped where the log ends with a chunk', async () => {
    const { log, shipper, wanted } = await rig();
    log.write(1, 1_000);
    log.completeChunk();
    expect(await shipper.tick()).toMatchObject({ wants: 'chunk' });
    expect([log.end, shipper.unshippedBytes, shipper.lagMs]).toEqual([CHUNK_BYTES, 0, 0]);
    expect(wanted).toEqual(['chunk']);
  });

  it('goes on across many chunks, with another process after each, and when they are scavenged behind it', async () => {
    const { log, repository, base, clock } = await rig();
    for (let i = 0; i < 12; i++) {
      for (let n = 0; n < 5; n++) log.write(2, 5_500);
      const { shipper } = shipperOf(log, async () => repository, NODE_ID, { clock });
      expect(await shipper.tick()).toMatchObject({ error: null });
      expect(shipper.unshippedBytes).toBe(0);
      // What was shipped of them is still there.
      if (i % 3 === 2) log.versions.fill(1);
    }
    expect(log.versions.length).toBeGreaterThan(8);
    const scavenged = log.versions.fill(0).length;
    const pieces = await expectShippedChunks(repository, base, log);
    expect(pieces.filter(({ previousEnd }) => previousEnd !== undefined)).toHaveLength(scavenged);
  });

  it('stops where a chunk was scavenged before it was shipped whole, says so, and knows what is missing', async () => {
    const { log, shipper, repository, base } = await rig();
    log.write(1, 1_000);
    await shipper.tick();
    const shippedEnd = log.end;
    log.write(1, 1_000);
    log.completeChunk();
    log.versions[0] = 1;
    log.write(1, 1_000);
    expect(await shipper.tick()).toEqual({ shippedBytes: 0, wants: 'scavenged', error: null });
    expect(shipper.unshippedBytes).toBe(log.end - shippedEnd);
    log.versions[0] = 0;
    await shipper.tick();
    await expectShippedChunks(repository, base, log);
  });

  it('has no gap and no stranger in it, whatever fails and whoever goes on', async () => {
    let chunks = 0;
    for (let seed = 1; seed <= 25; seed++) {
      const { objects, log, base, clock } = await rig();
      const random = new Random(seed);
      const faulty = new FaultyObjects(objects, {
        seed,
        chances: { before: 0.1, after: 0.1, late: 0.1, throttle: 0.05 },
      });
      let repository: Repository | null = null;
      const open = async () => (repository ??= await openTestRepository(faulty));
      let { shipper } = shipperOf(log, open, NODE_ID, { clock });
      for (let i = 0; i < 50; i++) {
        log.write(random.int(1, 3), random.int(0, 4_000));
        if (random.chance(0.1)) log.completeChunk();
        await shipper.tick();
        await clock.advance(random.int(0, 30_000));
        if (random.chance(0.1)) ({ shipper } = shipperOf(log, open, NODE_ID, { clock }));
      }
      await faulty.settle();
      faulty.faultWhen(() => 'delay');
      for (let i = 0; i < 3; i++) {
        await clock.advance(61_000);
        await shipper.tick();
      }
      const to = log.end % CHUNK_BYTES === 0 ? log.dataEnd(log.end / CHUNK_BYTES - 1) : log.end;
      await expectShippedChunks(await openTestRepository(objects), base, log, to);
      expect(shipper.unshippedBytes, `seed ${seed}`).toBe(0);
      chunks += log.versions.length;
    }
    expect(chunks).toBeGreaterThan(80);
  });

  it('leaves nothing behind a crash at any request that another process can not go on with', async () => {
    for (let n = 0; ; n++) {
      const { objects, log, base, clock } = await rig();
      const faulty = new FaultyObjects(objects);
      const repository = await openTestRepository(faulty);
      faulty.crashAfter(n);
      const { shipper } = shipperOf(log, async () => repository, NODE_ID, { clock });
      for (let i = 0; i < 4; i++) {
        log.write(1, 1_000);
        log.completeChunk();
        log.write(1, 1_000);
        await shipper.tick();
        await clock.advance(100_000);
      }
      expect(await findingsOf(objects)).toEqual([]);
      const after = await openTestRepository(objects);
      await shipperOf(log, async () => after, NODE_ID, { clock }).shipper.tick();
      await expectShippedChunks(after, base, log);
      if (!faulty.isCrashed) {
        expect(n).toBeGreaterThan(10);
        break;
      }
    }
  });
});

describe('a check of what was shipped across chunks', () => {
  async function shipped() {
    const { objects, log, shipper, repository, base } = await rig();
    for (let i = 0; i < 3; i++) {
      log.write(1, 1_000);
      await shipper.tick();
      log.write(1, 1_000);
      await shipper.tick();
      log.completeChunk();
    }
    return { objects, log, base, pieces: await repository.shipped(base.id) };
  }

  it('finds any piece that is missing but the last, and any changed byte of its header', async () => {
    const { objects, base, pieces } = await shipped();
    expect(pieces).toHaveLength(6);
    expect(await findingsOf(objects)).toEqual([]);
    for (const [i, piece] of pieces.entries()) {
      const key = keyOf(base.id, piece.from);
      const found = await findingsOf(await copyOfObjects(objects, (other) => other === key));
      const isLast = i === pieces.length - 1;
      expect(found.map(({ kind, backups }) => [kind, backups])).toEqual(isLast ? [] : [['missing', [base.id]]]);
      // Of the first one of a chunk only the end of the one before is known.
      if (!isLast) expect(found[0]!.key).toBe(keyOf(base.id, piece.previousEnd ?? piece.from));
      const bytes = (await objects.get(key))!;
      for (let at = 0; at < 60; at++) {
        const changed = bytes.slice();
        changed[at]! ^= 0x40;
        const other = await copyOfObjects(objects);
        await other.put(key, changed);
        expect(
          (await findingsOf(other)).map((finding) => [finding.key, finding.kind]),
          `byte ${at}`,
        ).toEqual([[key, 'damaged']]);
      }
    }
  });

  it.each([
    { name: 'begins inside a chunk', piece: (end: number) => ({ from: end + 100, previousEnd: end, to: end + 200 }) },
    {
      name: 'leaves out a chunk',
      piece: (end: number) => ({ from: 4 * CHUNK_BYTES, previousEnd: end, to: 4 * CHUNK_BYTES + 8 }),
    },
    {
      name: 'goes back',
      piece: (end: number) => ({ from: 3 * CHUNK_BYTES, previousEnd: end - 4, to: 3 * CHUNK_BYTES + 8 }),
    },
    {
      name: 'is in two chunks',
      piece: (end: number) => ({ from: 3 * CHUNK_BYTES, previousEnd: end, to: 4 * CHUNK_BYTES + 8 }),
    },
  ])('finds one that $name', async ({ piece }) => {
    const { objects, base, pieces } = await shipped();
    const repository = await openTestRepository(objects);
    const stranger = piece(pieces.at(-1)!.to);
    await repository.ship(
      { manifestId: base.id, ...stranger, shippedMs: 1 },
      new Uint8Array(stranger.to - stranger.from),
    );
    expect((await findingsOf(objects)).map(({ kind, key }) => [kind, key])).toEqual([
      ['damaged', keyOf(base.id, stranger.from)],
    ]);
    await expect(repository.shipped(base.id)).rejects.toMatchObject({ code: 'repository_damaged' });
  });

  it('refuses to ship what lies further behind than a chunk can', async () => {
    const { repository, base } = await rig();
    await expect(
      repository.ship(
        { manifestId: base.id, from: 2_000_000_000, to: 2_000_000_004, previousEnd: 5, shippedMs: 1 },
        new Uint8Array(4),
      ),
    ).rejects.toMatchObject({ code: 'bad_option' });
  });
});
