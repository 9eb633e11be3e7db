import { describe, expect, it, test } from 'vitest';
import type { Chunk } from '../../core/log/chunk/chunk.ts';
import { neighboursFrom, type Planned, SurvivorEstimate } from '../../core/scavenge/neighbours.ts';
import {
  append,
  checkpointOf,
  historyOf,
  openWorld,
  recordsBelow,
  runToEnd,
  setMetadata,
  type World,
} from './control-kit.ts';

/** Which neighbours are written into one file, and what a run that does so tells and leaves. */

const CHUNK = 1_000;
const chunk = (number: number, physicalBytes: number, mapCount = 0, endNumber = number): Chunk =>
  ({ startNumber: number, endNumber, physicalBytes, mapCount }) as Chunk;
const executed = (number: number, bytes: number, weight: number, mapCount = 0): Planned => ({
  chunk: chunk(number, bytes, mapCount),
  weight,
  isExecuted: true,
});
const skipped = (number: number, bytes: number): Planned => ({
  chunk: chunk(number, bytes),
  weight: 0,
  isExecuted: false,
});
/** Hundred records in each of the first thousand chunks. */
const counts = new Map(Array.from({ length: 1_000 }, (_, number) => [number, 100]));

describe('how much survives', () => {
  it('is told by the weight and the size of the records, then by what went for the weight of earlier chunks', () => {
    const estimate = new SurvivorEstimate(counts);
    expect(estimate.of(executed(0, CHUNK, 100))).toBe(500);
    expect(estimate.of(executed(0, CHUNK, 100, 200))).toBe(750);
    expect(estimate.of(skipped(1, 300))).toBe(300);
    expect(estimate.of(executed(0, CHUNK, 0))).toBe(CHUNK);
    expect(estimate.of(executed(0, CHUNK, 300))).toBe(0);
    estimate.learn(executed(0, CHUNK, 100), 900);
    expect(estimate.of(executed(1, CHUNK, 200))).toBe(800);
    estimate.learn(executed(1, CHUNK, 200), 100);
    expect(Math.round(estimate.of(executed(2, CHUNK, 100))!)).toBe(667);
  });

  it('is not told where nothing is known of the chunk', () => {
    const estimate = new SurvivorEstimate(new Map());
    expect(estimate.of(executed(0, CHUNK, 100))).toBeNull();
    expect(estimate.of(executed(0, CHUNK, 0))).toBe(CHUNK);
    expect(estimate.of(executed(0, 0, 2))).toBeNull();
  });
});

describe('neighbours of one file', () => {
  const groups = (plan: readonly Planned[], always = false, estimate = new SurvivorEstimate(counts)): number[][] => {
    const out: number[][] = [];
    for (let at = 0; at < plan.length; at += out.at(-1)!.length)
      out.push(
        neighboursFrom(plan, at, estimate, { chunkSize: CHUNK, always }).map((planned) => planned.chunk.startNumber),
      );
    return out;
  };

  it('are as many as fit, skipped ones among them, by the rule of merging', () => {
    expect(groups([0, 1, 2, 3].map((number) => executed(number, CHUNK, 100)))).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(
      groups([executed(0, CHUNK, 100), skipped(1, 400), executed(2, CHUNK, 190), skipped(3, 800), skipped(4, 200)]),
    ).toEqual([
      [0, 1, 2],
      [3, 4],
    ]);
  });

  it('are no skipped ones that are large beside the others, unless all are merged', () => {
    const plans = [
      [skipped(0, 800), executed(1, 200, 100)],
      [executed(0, 200, 100), skipped(1, 800)],
      [executed(0, 200, 100), skipped(1, 500)],
    ];
    for (const plan of plans) {
      expect(groups(plan)).toEqual([[0], [1]]);
      expect(groups(plan, true)).toEqual([[0, 1]]);
    }
    expect(groups([executed(0, 400, 100), skipped(1, 800)])).toEqual([[0, 1]]);
  });

  it('are tried where they are expected to be too large by no more than the weights may err', () => {
    expect(groups([executed(0, 1_000.5, 100), executed(1, 1_000.5, 100), executed(2, CHUNK, 100)])).toEqual([
      [0, 1],
      [2],
    ]);
    expect(groups([executed(0, CHUNK, 99), executed(1, CHUNK, 99), executed(2, CHUNK, 200)])).toEqual([[0], [1, 2]]);
  });

  it('are bounded in number and in the bytes that are read for them', () => {
    expect(
      groups(Array.from({ length: 20 }, (_, number) => executed(number, CHUNK, 200))).map((group) => group.length),
    ).toEqual([8, 8, 4]);
    expect(groups(Array.from({ length: 100 }, (_, number) => skipped(number, 0))).map((group) => group.length)).toEqual(
      [64, 36],
    );
  });

  it('are none beside a chunk of which nothing is known, nor across a gap', () => {
    expect(groups([executed(0, CHUNK, 150), executed(2_000, CHUNK, 150), skipped(2_001, 10)])).toEqual([
      [0],
      [2_000],
      [2_001],
    ]);
    expect(groups([executed(0, 300, 100), executed(5, 300, 100)])).toEqual([[0], [5]]);
  });
});

/**
 * Events of `doomed`, which go but for the last, and of `kept`; `sizes` are the bytes of one of each, chunk by chunk or
 * so.
 */
async function fillUneven(world: World, sizes: readonly (readonly [doomed: number, kept: number])[]): Promise<void> {
  await setMetadata(world.open, 'doomed', { $maxCount: 1 });
  for (const [doomed, kept] of sizes) {
    for (let bytes = 0; bytes < 60_000; bytes += doomed + kept) {
      await append(world.open, 'doomed', 'thing', new Uint8Array(doomed));
      await append(world.open, 'kept', 'thing', new Uint8Array(kept));
    }
  }
}

const LOGS: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  'of equal chunks': Array.from({ length: 8 }, () => [3_000, 3_000]),
  'in which more goes than the weights tell': [
    [5_000, 500],
    [5_000, 900],
    [500, 500],
    [4_000, 300],
    [3_000, 3_000],
    [5_000, 100],
    [5_000, 700],
  ],
  'in which less goes than the weights tell': [
    [3_000, 3_000],
    [100, 4_000],
    [200, 3_000],
    [2_000, 2_000],
    [100, 100],
    [300, 4_000],
    [50, 700],
    [4_000, 50],
  ],
};

describe.each(Object.entries(LOGS))('a run over a log %s', (_, sizes) => {
  async function run(mergesWhileExecuting: boolean, options: object = {}) {
    const world = await openWorld({ scavenge: { mergesWhileExecuting } });
    await fillUneven(world, sizes);
    const scavengeId = await runToEnd(world, options);
    expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
    const { position } = checkpointOf(world)!.point;
    const records = await recordsBelow(world.open, position);
    const history = await historyOf(world.open, scavengeId);
    const files = (await world.storage.list('')).filter((name) => name.startsWith('chunk-'));
    const sizesOf = await Promise.all(files.map((name) => world.storage.size(name)));
    const { ran } = world.jobs;
    await world.open.close();
    return { records, history, starts: files.map((name) => Number(name.slice(6, 12))), bytes: sizesOf, ran };
  }

  type History = Awaited<ReturnType<typeof run>>['history'];
  /** Without times and ids; a merge is told of as soon as it is done. */
  const told = (history: History, types: RegExp) =>
    history
      .filter(({ type }) => types.test(type))
      .map(({ type, members }) => ({ type, ...members, scavengeId: '', timeTaken: '' }));
  /** Without the attribute indexes, which have entries of the history: it has more events where more is merged. */
  const saved = (history: History) =>
    history.reduce(
      (rest, { members }) => rest - ('attributeIndex' in members ? Number(members['spaceSaved']) : 0),
      Number(history.at(-1)!.members['spaceSaved']),
    );

  test('leaves the same files, and tells the same of every chunk, whether neighbours are merged while they are executed or after that', async () => {
    const [direct, after] = [await run(true), await run(false)];
    expect(direct.ran).toContain('scavenge.execute-neighbours');
    expect(direct.records).toEqual(after.records);
    expect(direct.starts).toEqual(after.starts);
    // What a run appends behind its point has other lengths when its figures have.
    expect(direct.bytes.slice(0, -1)).toEqual(after.bytes.slice(0, -1));
    expect(told(direct.history, /Chunks/)).toEqual(told(after.history, /Chunks/));
    // Where less was expected to fit than did, the rest is merged as ever.
    const extra = direct.ran.filter((name) => name === 'scavenge.merge-chunks').length;
    if (extra === 0) expect(told(direct.history, /Merge/)).toEqual(told(after.history, /Merge/));
    expect(saved(direct.history)).toBe(saved(after.history));
    expect(extra).toBeLessThanOrEqual(after.ran.filter((name) => name === 'scavenge.merge-chunks').length);
  });

  test('tells the same of every chunk with several threads', async () => {
    const [one, several] = [await run(true), await run(true, { threads: 3 })];
    expect(several.records).toEqual(one.records);
    const byChunk = (history: History) =>
      told(history, /Chunks/).sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
    expect(byChunk(several.history)).toEqual(byChunk(one.history));
  });
});

test('the checkpoint stands at the end of a file, with no weight before it, whenever a run can be cut off: there the reference goes on', async () => {
  const world = await openWorld();
  await fillUneven(world, LOGS['in which less goes than the weights tell']!);
  const seen: number[] = [];
  world.jobs.hook = async (name) => {
    if (!name.startsWith('scavenge.execute-') || name === 'scavenge.execute-table') return;
    const { stage, doneChunk = -1 } = checkpointOf(world)!;
    expect(stage).toBe('ExecutingChunks');
    const starts = (await world.storage.list(''))
      .filter((file) => file.startsWith('chunk-'))
      .map((file) => Number(file.slice(6, 12)));
    expect(starts).toContain(doneChunk + 1);
    const state = world.states.open({ pageSizeBytes: 16_384, cacheBytes: 1_048_576, hashUsersCacheEntries: 1_000 });
    expect(state.weight(0, doneChunk)).toBe(0);
    state.close();
    seen.push(doneChunk);
  };
  await runToEnd(world);
  expect(seen.length).toBeGreaterThan(2);
  expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
  await world.open.close();
});

test('neighbours that can not be written together are executed one by one, and the history tells of no merge that was not', async () => {
  const world = await openWorld();
  await fillUneven(world, LOGS['of equal chunks']!);
  world.storage.failWhen((op, path) =>
    op === 'writeAt' && path.endsWith('.merge.scavenge.tmp') ? 'disk_full' : undefined,
  );
  const scavengeId = await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
  const history = await historyOf(world.open, scavengeId);
  expect(history.filter(({ type }) => type === '$scavengeChunksCompleted').length).toBeGreaterThanOrEqual(8);
  for (const { members } of history.filter(({ type }) => type === '$scavengeMergeCompleted'))
    expect(members).toMatchObject({ wasMerged: false });
  expect(
    world.lines.filter(({ level, message }) => level === 'warn' && message.includes('one by one')).length,
  ).toBeGreaterThan(0);
  expect((await world.storage.list('')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  world.storage.failWhen(undefined);
  await world.open.close();
});
