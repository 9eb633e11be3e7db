import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import { LEAVES_JOB } from '../../core/integrity/jobs/jobs.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { append, copyOf, fill, openProven, recordsIn, scavenge, verify } from './proof-kit.ts';
import { contentOf } from '../log/kit.ts';

describe('an honest directory', () => {
  it('verifies before and after scavenges with merges, against every anchor that was made', async () => {
    const storage = new MemoryStorage();
    let open = await openProven(storage);
    const random = new Random(1);
    await fill(open, random, 900);
    const anchors = [await open.hashChain!.anchor()];
    await fill(open, random, 300);
    anchors.push(await open.hashChain!.anchor());
    await open.close();
    const before = await verify(storage, anchors);
    expect(before).toMatchObject({ findings: 0, removed: 0, uncovered: 0, anchors: 2 });
    expect(before.proven).toBe((await recordsIn(storage, anchors[1]!.position)).length);
    expect(await storage.list('proofs')).toContain('leaves-000001');

    open = await openProven(storage);
    await open.store.deleteStream('gone', -2, 'hard');
    await scavenge(open);
    const uncovered = await verify(storage, anchors);
    expect(uncovered).toMatchObject({ findings: 0, anchors: 2 });
    expect(uncovered.uncovered).toBeGreaterThan(300);
    expect((await verify(storage, anchors, true)).told.every(({ code }) => code === 'uncovered')).toBe(true);
    anchors.push(await open.hashChain!.anchor());
    await fill(open, random, 200, ['kept', 'short', 'other']);
    await scavenge(open);
    anchors.push(await open.hashChain!.anchor());
    await open.close();
    const after = await verify(storage, anchors, true);
    expect(after).toMatchObject({ findings: 0, uncovered: 0, anchors: 4, notes: [] });
    expect(after.proven).toBe((await recordsIn(storage, anchors[3]!.position)).length);
    expect((await storage.list('')).filter((name) => name.startsWith('chunk-')).length).toBeLessThan(5);
    expect(after.logEnd).toBeGreaterThanOrEqual(after.position);
  });

  it('goes on with its chain whether or not the option is given, and begins none without it', async () => {
    const storage = new MemoryStorage();
    let open = await openProven(storage, { beginsProofs: false });
    await fill(open, new Random(2), 700);
    expect(open.hashChain).toBeNull();
    await open.close();
    open = await openProven(storage);
    const anchor = await open.hashChain!.anchor();
    await open.close();
    open = await openProven(storage, { beginsProofs: false });
    await scavenge(open);
    const after = await open.hashChain!.anchor();
    await open.close();
    const verdict = await verify(storage, [anchor, after], true);
    expect(verdict).toMatchObject({ findings: 0, anchors: 2 });
    expect(verdict.removed).toBeGreaterThan(100);
  });

  it('says of a log that was scavenged before what was there when the chain began', async () => {
    const storage = new MemoryStorage();
    let open = await openProven(storage, { beginsProofs: false });
    await fill(open, new Random(3), 900);
    await scavenge(open);
    await open.close();
    open = await openProven(storage);
    const first = await open.hashChain!.anchor();
    await open.store.deleteStream('gone', -2, 'hard');
    await append(open, 'kept', new Uint8Array(10));
    await scavenge(open);
    const second = await open.hashChain!.anchor();
    await open.close();
    expect(await verify(storage, [first, second], true)).toMatchObject({ findings: 0, anchors: 2, notes: [] });
  });

  it('verifies from the anchor alone where the proofs are lost and nothing was removed, and not after a scavenge', async () => {
    const storage = new MemoryStorage();
    const open = await openProven(storage);
    await fill(open, new Random(4), 700);
    const anchor = await open.hashChain!.anchor();
    await open.close();
    const bare = await copyOf(storage);
    for (const name of await bare.list('proofs')) await bare.remove(`proofs/${name}`);
    expect(await verify(bare, [anchor])).toMatchObject({ findings: 0, anchors: 1 });
    const again = await openProven(storage);
    await scavenge(again);
    const after = await again.hashChain!.anchor();
    await again.close();
    for (const name of await storage.list('proofs')) await storage.remove(`proofs/${name}`);
    const codes = (await verify(storage, [anchor, after])).told.map(({ code }) => code);
    expect(codes).toContain('receipts');
    expect(codes).toContain('chain');
  });

  it('makes the same leaves whatever it is asked first: all at once at a scavenge, or one chunk after the other', async () => {
    const storage = new MemoryStorage();
    const open = await openProven(storage);
    await fill(open, new Random(5), 900);
    const other = await copyOf(storage);
    await open.hashChain!.ensureTo(0);
    await open.hashChain!.anchor();
    await scavenge(open);
    await open.close();
    const again = await openProven(other);
    await again.hashChain!.anchor();
    await again.close();
    expect(await contentOf(storage, 'proofs/leaves-000001')).toEqual(await contentOf(other, 'proofs/leaves-000001'));
  });

  it('lets a scavenge be stopped while hashes of a log that has none are written, and the next one goes on', async () => {
    const storage = new MemoryStorage();
    let open = await openProven(storage, { beginsProofs: false });
    await fill(open, new Random(6), 900);
    await open.close();
    const clock = new ManualClock(TEST_NOW_MS, 'microtask');
    const ids = new SeededIds(4);
    const inline = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock });
    let isStopped = false;
    const jobs: Jobs = {
      run: async (name, args, options) => {
        if (name === LEAVES_JOB && !isStopped) {
          isStopped = true;
          void open.scavenger.stop(open.scavenger.current()!);
        }
        return inline.run(name, args, options);
      },
      close: () => inline.close(),
    };
    open = await openProven(storage, { clock, ids, jobs });
    await open.scavenger.start({});
    await open.scavenger.idle();
    expect(open.scavenger.last()).toMatchObject({ result: 'Stopped' });
    expect(
      (await storage.list('')).filter((name) => /^chunk-\d+\.\d+$/.test(name) && !name.endsWith('.000000')),
    ).toEqual([]);
    const anchor = await open.hashChain!.anchor();
    await scavenge(open);
    const after = await open.hashChain!.anchor();
    await open.close();
    const verdict = await verify(storage, [anchor, after], true);
    expect(verdict).toMatchObject({ findings: 0, anchors: 2 });
    expect(verdict.removed).toBeGreaterThan(100);
  });
});
