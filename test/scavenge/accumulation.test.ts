import { describe, expect, it } from 'vitest';
import type { ScavengeState } from '../../core/ports/scavenge-state.ts';
import { MERGE_CHUNKS_JOB } from '../../core/scavenge/chunk-merging.ts';
import { AGE_DEFAULT_S, E_MS } from './notation.ts';
import { expectWorld } from './notation-check.ts';
import { Learner } from './learn-kit.ts';
import type { LearnerOptions } from './learn-kit.ts';
import type { World } from './notation-world.ts';

async function accumulated(log: string, options: LearnerOptions = {}): Promise<Learner> {
  const learner = await Learner.create(log, { point: 'SP', ...options });
  await learner.accumulate();
  return learner;
}

function ask<T>(world: World, question: (state: ScavengeState) => T): T {
  const state = world.state();
  try {
    return question(state);
  } finally {
    state.close();
  }
}

function original(world: World, name: string) {
  const { hi, lo } = world.hash(name);
  return ask(world, (state) => state.original(name, hi, lo));
}

const E = Date.UTC(2022, 0, 5);

describe('accumulation', () => {
  it.each([
    ['M0(a){mc=1} | SP', { maxCount: 1, maxAge: null, truncateBefore: null }],
    ['M0(a){mc=1, tb=3, age} | SP', { maxCount: 1, maxAge: AGE_DEFAULT_S, truncateBefore: 3 }],
    ['M0(a){mc=1, tb=3} | M1(a){age} | SP', { maxCount: null, maxAge: AGE_DEFAULT_S, truncateBefore: null }],
    ['M0(a){mc=0} | SP', { maxCount: null }],
    ['M0(a){mc="1"} | SP', { maxCount: null }],
    ['M0(a){tb=MAX} | SP', { truncateBefore: Number.MAX_SAFE_INTEGER }],
  ])('stores the metadata of %s', async (log, expected) => {
    const { world } = await accumulated(log);
    expect(original(world, 'a')).toMatchObject({ isTombstoned: false, discardPoint: 0, status: 1, ...expected });
  });

  it('takes the range of timestamps of each chunk that has prepares', async () => {
    const { world } = await accumulated('a0@fresh, a1@old, a2@cutoff | !a3 | b0, SP');
    const ranges = ask(world, (state) => [0, 1, 2].map((chunk) => state.chunkTimeRange(chunk)));
    expect(ranges[0]).toMatchObject({ minMs: E - 3 * 86_400_000, maxMs: E - 86_400_000 });
    expect(ranges[1]).toBeUndefined();
    expect(ranges[2]).toMatchObject({ minMs: E_MS, maxMs: E_MS + 3_600_000 });
  });

  it('reads up to the point and no further', async () => {
    const learner = await Learner.create('a0, SP0 | M0(a){mc=1} | SP1', { point: 'SP0' });
    expect(await learner.accumulate()).toEqual({
      restedMs: 0,
      chunks: 1,
      records: 2,
      metadata: 0,
      tombstones: 0,
      recordCounts: [[0, 2]],
    });
    expect(original(learner.world, 'a')).toBeUndefined();
    expect(ask(learner.world, (state) => state.checkpoint())).toMatchObject({ stage: 'Accumulating', doneChunk: 0 });
  });

  it('counts what it saw', async () => {
    const learner = await Learner.create('a0, M0(a){mc=1}, T(b) | SP', { point: 'SP' });
    expect(await learner.accumulate()).toEqual({
      restedMs: 0,
      chunks: 2,
      records: 4,
      metadata: 1,
      tombstones: 1,
      recordCounts: [
        [0, 3],
        [1, 1],
      ],
    });
  });

  it('keeps tombstones in both rows', async () => {
    const { world } = await accumulated('M0(a){mc=3}, M1(a){mc=4}, T(a) | SP');
    expect(original(world, 'a')).toMatchObject({ isTombstoned: true, maxCount: 4, status: 1 });
    const { hi, lo } = world.hash('$$a');
    expect(ask(world, (state) => state.metastream('$$a', hi, lo))).toEqual({ isTombstoned: true, discardPoint: 1 });
    await expectWorld(world, { weights: [4] });
  });

  it('finds a collision when its second stream comes by, and moves what is stored', async () => {
    const { world } = await accumulated('M0(x){mc=1} | y0 | z0 | M1(x){mc=2} | SP', { collide: { y: 'x', z: 'x' } });
    expect([...ask(world, (state) => state.collisions())].sort()).toEqual(['x', 'y', 'z']);
    expect(original(world, 'x')).toMatchObject({ maxCount: 2 });
    expect(original(world, 'y')).toBeUndefined();
  });

  it('asks the index where the records of a scavenged chunk are gone', async () => {
    const { world } = await accumulated('!M5(a){mc=1} | M0(a){mc=2} | SP');
    await expectWorld(world, { weights: [0, 2, 0] });
    expect(original(world, 'a')).toBeUndefined();
  });

  it('is stopped within a chunk and goes on with it', async () => {
    const ending = new AbortController();
    // Chunk 0 has one at its beginning and three for what it teaches; the sixth is that of chunk 1 after 1 024 records.
    const onCheckpoint = (_job: string, count: number): void => {
      if (count === 6) ending.abort();
    };
    const learner = await Learner.create('M0(a){mc=1} | b0..b1100, M1(a){mc=2} | c0 | SP', {
      point: 'SP',
      chunkSize: 262_144,
      onCheckpoint,
    });
    await expect(learner.accumulate(0, { signal: ending.signal })).rejects.toMatchObject({ code: 'aborted' });
    expect(ask(learner.world, (state) => state.checkpoint())).toMatchObject({ stage: 'Accumulating', doneChunk: 0 });
    await expectWorld(learner.world, { weights: [0, 0] });
    expect(await learner.accumulate(1)).toMatchObject({ chunks: 3, metadata: 1 });
    await expectWorld(learner.world, { weights: [2, 0, 0, 0], dp: { $$a: 1 } });
    expect(original(learner.world, 'a')).toMatchObject({ maxCount: 2 });
  });

  it('reads a merged file one logical chunk at a time', async () => {
    const learner = await Learner.create('a0@old, M0(a){mc=1} | !c0 | M1(a){mc=2}, a1@fresh | T(b) | SP, a2 | a3', {
      point: 'SP',
    });
    const names = learner.files.chunks.map((file) => file.name);
    const target = '00000000-0000-4000-8000-000000000016.merge.scavenge.tmp';
    await learner.jobs.run(MERGE_CHUNKS_JOB, {
      chunkSize: learner.files.chunkSize,
      sources: names.slice(0, 5),
      target,
      chunkId: new Uint8Array(16),
    });
    await learner.world.storage.rename(target, 'chunk-000000.000009');
    const merged = await Learner.of(learner.world, { point: 'SP' });
    expect(merged.files.chunks.map((file) => file.name)).toEqual(['chunk-000000.000009', names[5]]);
    // A run that was stopped after chunk 0 goes on within the file.
    for (const [fromChunk, chunks, records] of [
      [0, 5, 6],
      [1, 4, 4],
      [4, 1, 1],
    ] as const)
      expect(await merged.accumulate(fromChunk)).toMatchObject({ chunks, records });
    const ranges = ask(merged.world, (state) => [0, 1, 2, 3, 4].map((chunk) => state.chunkTimeRange(chunk)?.minMs));
    expect(ranges).toEqual([E_MS - 3 * 86_400_000, undefined, E_MS - 86_400_000, E_MS + 3_600_000, E_MS]);
    expect(ask(merged.world, (state) => state.checkpoint())).toMatchObject({ doneChunk: 4 });
    expect(original(merged.world, 'a')).toMatchObject({ maxCount: 2 });
  });

  it('learns of more streams than it collects at a time', async () => {
    const name = (i: number): string => [...String(i)].map((digit) => String.fromCharCode(97 + Number(digit))).join('');
    const count = 33_000;
    const log = `M0(zz){mc=1}, ${Array.from({ length: count }, (_, i) => `M0(${name(i)}){mc=7}`).join(', ')}, M1(zz){mc=2}, T(${name(5)}) | SP`;
    const { world } = await accumulated(log, { chunkSize: 16_777_216 });
    expect(ask(world, (state) => state.activeOriginals(null, count * 2).length)).toBe(count + 1);
    expect(original(world, 'zz')).toMatchObject({ maxCount: 2 });
    expect(original(world, name(5))).toMatchObject({ maxCount: 7, isTombstoned: true });
    expect(original(world, name(count - 1))).toMatchObject({ maxCount: 7, isTombstoned: false });
    await expectWorld(world, { weights: [4, 0], dp: { $$zz: 1 } });
  });

  it('reports the bytes of the log', async () => {
    const learner = await Learner.create('a0, a1 | b0 | SP', { point: 'SP' });
    const progress: number[] = [];
    await learner.accumulate(0, {
      onProgress: ({ done, total, unit }) => {
        expect([unit, total]).toEqual(['bytes', learner.settings.point.position]);
        progress.push(done);
      },
    });
    expect(progress.at(-1)).toBe(learner.settings.point.position);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  });
});
