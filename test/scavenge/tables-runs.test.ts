import { describe, expect, test } from 'vitest';
import { decodeText } from '../../core/base/text.ts';
import { STATUS_ACTIVE } from '../../core/ports/scavenge-state.ts';
import type { OriginalStreamData, ScavengeStage } from '../../core/ports/scavenge-state.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { checkRow, expectWorld } from './notation-check.ts';
import type { Expectation } from './notation-check.ts';
import { pointOf } from './notation-log.ts';
import { World } from './notation-world.ts';
import type { Hooks, Run, RunOptions, WorldOptions } from './notation-world.ts';

/** Row 26, and rows 88 to 105: what a run finds of earlier ones, and runs that are stopped and resumed. */

const NO_DATA: OriginalStreamData = {
  isTombstoned: false,
  maxAge: null,
  maxCount: null,
  truncateBefore: null,
  discardPoint: 0,
  maybeDiscardPoint: 0,
  status: STATUS_ACTIVE,
};

/** The state in which a run is, or was, at a stage for that scavenge point. */
function stateAt(
  stage: ScavengeStage,
  point: string,
  rows: Record<string, Partial<OriginalStreamData>> = {},
): NonNullable<WorldOptions['state']> {
  return (state, world) => {
    state.begin();
    for (const [stream, data] of Object.entries(rows)) {
      const { hi, lo } = world.hash(stream);
      state.register(stream, hi, lo);
      state.setOriginal(stream, hi, lo, { ...NO_DATA, ...data });
    }
    state.commit({ point: pointOf(world.log, point), stage });
  };
}

function jobsOf(run: Run): string[] {
  return run.jobs.map(({ name }) => name);
}

/** First chunk that was accumulated, or null. */
function accumulatedFrom(run: Run): number | null {
  const job = run.jobs.find(({ name }) => name === 'scavenge.accumulate');
  return job === undefined ? null : (job.args as { fromChunk: number }).fromChunk;
}

function executed(run: Run): string[] {
  return run.jobs
    .filter(({ name }) => name === 'scavenge.execute-chunk')
    .map(({ args }) => (args as { source: string }).source);
}

async function succeeds(world: World, options: RunOptions = {}): Promise<Run> {
  const run = await world.run(options);
  expect(run.last).toMatchObject({ result: 'Success', error: null });
  return run;
}

async function pointsIn(open: DirectoryStore): Promise<[number, string][]> {
  const page = await open.store.readStream('$scavengePoints', { direction: 'forward', from: 0, count: 100 });
  return page.events.map((event) => [event.number, decodeText(event.data)]);
}

describe('16.9 subsequent runs', () => {
  test('row 26: a run for SP0, then one for SP1', async () => {
    const world = await World.create('a0..a2, M0(a){tb=MAX} | SP0 | a3, M1(a){tb=3} | SP1', {
      state: stateAt('Accumulating', 'SP0'),
    });
    await succeeds(world);
    await expectWorld(world, { left: 'a2, M0 | SP0 | = | =' });
    await succeeds(world);
    await expectWorld(world, { left: '∅ | SP0 | a3, M1 | SP1' });
  });

  test('row 88: no SP, not syncOnly', async () => {
    const world = await World.create('M0(a){mc=1}, a0, a1');
    const run = await succeeds(world, {
      syncOnly: false,
      threshold: 2,
      inspect: async (open) => expect(await pointsIn(open)).toEqual([[0, '{\n  "threshold": 2\n}']]),
    });
    expect(run.committed.at(-1)).toMatchObject({ stage: 'Done', point: { eventNumber: 0, threshold: 2 } });
    await expectWorld(world, { left: 'M0, a1' });
  });

  test('row 89: stored Done SP-0, latest SP-0', async () => {
    const world = await World.create('M0(a){mc=1}, a0, a1 | SP0', { state: stateAt('Done', 'SP0') });
    const run = await succeeds(world, {
      syncOnly: false,
      inspect: async (open) =>
        expect(await pointsIn(open)).toEqual([
          [0, '{}'],
          [1, '{}'],
        ]),
    });
    expect(run.committed.at(-1)).toMatchObject({ stage: 'Done', point: { eventNumber: 1, threshold: 0 } });
    expect(accumulatedFrom(run)).toBe(2);
  });

  const AFTER_SP0 = 'M0(a){mc=1}, a5 | SP0 | a6, a7 | a8, SP1 | a9, SP2 | a10';
  const AT_SP2: Expectation = {
    left: 'M0 | SP0 | ∅ | SP1 | a9, SP2 | a10',
    versions: [1, 0, 1, 1, 0, 0],
    dp: { a: 9 },
  };

  test('row 90: stored Done SP-0 with a row a{mc=1, DP 5}: the latest point, accumulated from the chunk after SP-0', async () => {
    const world = await World.create(AFTER_SP0, {
      state: stateAt('Done', 'SP0', { a: { maxCount: 1, discardPoint: 5, maybeDiscardPoint: 5 } }),
    });
    const run = await succeeds(world);
    expect(run.committed.at(-1)).toMatchObject({ stage: 'Done', point: { eventNumber: 2 } });
    expect(accumulatedFrom(run)).toBe(2);
    expect(run.committed.filter(({ stage }) => stage === 'Accumulating').map(({ doneChunk }) => doneChunk)).toEqual([
      1, 2, 3, 4,
    ]);
    await expectWorld(world, AT_SP2);
  });

  test('row 91: the same log, no state', async () => {
    const { run } = await checkRow({ row: 91, log: AFTER_SP0, ...AT_SP2 });
    expect(accumulatedFrom(run)).toBe(0);
  });

  test('row 92: SP0 in the log, syncOnly, no state', async () => {
    await checkRow({ row: 92, log: 'M0(a){mc=1}, a0, a1 | SP0', left: 'M0, a1 | SP0' });
  });

  test.each([
    { row: 93, when: 'no SP', log: 'M0(a){mc=1}, a0, a1', state: undefined },
    { row: 94, when: 'stored Done SP-0 = latest', log: 'M0(a){mc=1}, a0, a1 | SP0', state: stateAt('Done', 'SP0') },
  ])('row $row: $when, syncOnly', async ({ log, state }) => {
    const world = await World.create(log, state === undefined ? {} : { state });
    const run = await succeeds(world);
    expect(jobsOf(run)).toEqual([]);
    expect(run.committed).toEqual([]);
    expect(run.history.map(({ type }) => type)).toEqual(['$scavengeStarted', '$scavengeCompleted']);
    await expectWorld(world, { left: '=' });
  });

  test('row 95: SP0 | SP1, stored Done SP-0', async () => {
    const world = await World.create('SP0{th=-1} | SP1{th=-1}', { state: stateAt('Done', 'SP0') });
    const run = await succeeds(world);
    expect(accumulatedFrom(run)).toBe(1);
    expect(executed(run)).toEqual(['chunk-000000.000000']);
    await expectWorld(world, { left: '=', versions: [1, 0] });
  });

  test('row 96: SP0 | SP1 | SP2 | SP3, stored Done SP-2', async () => {
    const world = await World.create('SP0{th=-1} | SP1{th=-1} | SP2{th=-1} | SP3{th=-1}', {
      state: stateAt('Done', 'SP2'),
    });
    const run = await succeeds(world);
    expect(accumulatedFrom(run)).toBe(3);
    expect(executed(run)).toEqual(['chunk-000000.000000', 'chunk-000001.000000', 'chunk-000002.000000']);
  });

  test('row 97: a discard point never moves back', async () => {
    const world = await World.create('M0(a){mc=1}, a0, a1, a2 | SP0 | M1(a){mc=4}, a3, a4 | SP1', {
      state: stateAt('Done', 'SP0', { a: { maxCount: 1, discardPoint: 2, maybeDiscardPoint: 2 } }),
    });
    await succeeds(world);
    await expectWorld(world, { left: 'a2 | SP0 | = | SP1', dp: { a: 2 } });
  });

  test('row 104: a normal run to SP0, then an unsafe run', async () => {
    const world = await World.create('M0(a){mc=1}, a0, a1, T(a) | SP0 | SP1', {
      state: stateAt('Accumulating', 'SP0'),
    });
    await succeeds(world);
    await expectWorld(world, { left: 'T(a) | SP0 | SP1' });
    await succeeds(world, { unsafe: true });
    await expectWorld(world, { left: '∅ | SP0 | SP1', rows: { a: 'gone', $$a: 'gone' } });
  });

  test('row 105: a tombstone after SP0, then an unsafe run', async () => {
    const world = await World.create('M0(a){mc=1}, a0, a1 | SP0 | T(a) | SP1', {
      state: stateAt('Accumulating', 'SP0'),
    });
    await succeeds(world);
    await expectWorld(world, { left: 'M0, a1 | SP0 | T(a) | SP1' });
    await succeeds(world, { unsafe: true });
    await expectWorld(world, { left: '∅ | SP0 | ∅ | SP1' });
  });
});

describe('16.9 runs that are stopped', () => {
  /** Chunk 1 alone has more records than lie between two looks at whether to stop. */
  const LOG = 'M0(a){mc=2}, a0..a9 | a10..a1599 | b0, a1600, M0(b){tb=MAX}, b1 | SP';
  const LEFT: Expectation = {
    left: 'M0(a) | a1599 | a1600, M0(b), b1 | SP',
    versions: [1, 1, 1, 0],
    rows: { b: 'gone', a: 'active' },
  };
  const SIZE: WorldOptions = { chunkSize: 262_144 };

  /** Runs until the hooks stop it, and checks that nothing is left lying about. */
  async function stopped(world: World, hooks: Hooks, options: RunOptions = {}): Promise<Run> {
    const run = await world.run({ ...options, hooks });
    expect(run.last).toMatchObject({ result: 'Stopped', error: null });
    expect(run.history.at(-1)).toMatchObject({ type: '$scavengeCompleted', data: { result: 'Stopped', error: null } });
    expect((await world.storage.list('')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    return run;
  }

  test('an uninterrupted run, for comparison', async () => {
    const world = await World.create(LOG, SIZE);
    await succeeds(world);
    await expectWorld(world, LEFT);
  });

  test.each([
    ['always', true, [2]],
    ['where it is worth it', false, [1, 0]],
  ])('the same is left by a run that merges %s', async (_, mergesAlways, versions) => {
    const world = await World.create(LOG, SIZE);
    await succeeds(world, { merging: true, store: { scavenge: { mergesAlways } } });
    await expectWorld(world, { ...LEFT, versions });
  });

  test('row 98: while reading chunk 1 of 4', async () => {
    const world = await World.create(LOG, SIZE);
    // Looks at whether to stop since chunk 0 was done: one before chunk 1 is read, one within it.
    let looks = -1;
    await stopped(world, {
      committed: ({ doneChunk }) => {
        looks = doneChunk === 0 ? 0 : -1;
      },
      checkpoint: () => {
        if (looks >= 0 && ++looks === 2) world.stop();
      },
    });
    expect(world.checkpoint()).toMatchObject({ stage: 'Accumulating', doneChunk: 0 });
    const run = await succeeds(world);
    expect(run.committed.filter(({ stage }) => stage === 'Accumulating').map(({ doneChunk }) => doneChunk)).toEqual([
      1, 2, 3,
    ]);
    await expectWorld(world, LEFT);
  });

  test('row 99: during the first batch of calculation', async () => {
    const world = await World.create(LOG, SIZE);
    await stopped(world, {
      checkpoint: (name, _args, count) => {
        if (name === 'scavenge.calculate' && count === 2) world.stop();
      },
    });
    expect(world.checkpoint()).toMatchObject({ stage: 'Calculating' });
    expect(world.checkpoint()!.doneStream).toBeUndefined();
    await expectWorld(world, { left: '=', weights: [0, 0, 0, 0], rows: { a: 'active', b: 'active' }, dp: { a: 0 } });
    const run = await succeeds(world);
    expect(accumulatedFrom(run)).toBeNull();
    await expectWorld(world, LEFT);
  });

  test('row 100: during the execution of chunk 1', async () => {
    const world = await World.create(LOG, SIZE);
    await stopped(world, {
      checkpoint: (name, args) => {
        if (name === 'scavenge.execute-chunk' && (args as { source: string }).source === 'chunk-000001.000000')
          world.stop();
      },
    });
    expect(world.checkpoint()).toMatchObject({ stage: 'ExecutingChunks', doneChunk: 0 });
    await expectWorld(world, { versions: [1, 0, 0, 0] });
    const run = await succeeds(world);
    expect(jobsOf(run)[0]).toBe('scavenge.execute-chunk');
    expect(executed(run)).toEqual(['chunk-000001.000000', 'chunk-000002.000000']);
    await expectWorld(world, LEFT);
  });

  test('row 100: the same where every chunk is executed', async () => {
    const world = await World.create(`${LOG}{th=-1}`, SIZE);
    await stopped(world, {
      checkpoint: (name, args) => {
        if (name === 'scavenge.execute-chunk' && (args as { source: string }).source === 'chunk-000001.000000')
          world.stop();
      },
    });
    const run = await succeeds(world);
    expect(executed(run)).toEqual(['chunk-000001.000000', 'chunk-000002.000000']);
    await expectWorld(world, LEFT);
  });

  test('row 101: during index execution', async () => {
    const world = await World.create(LOG, SIZE);
    await stopped(world, {
      checkpoint: (name) => {
        if (name === 'scavenge.execute-table') world.stop();
      },
    });
    expect(world.checkpoint()).toMatchObject({ stage: 'ExecutingIndex' });
    const run = await succeeds(world);
    expect(new Set(jobsOf(run))).toEqual(new Set(['scavenge.execute-table', 'scavenge.clean']));
    await expectWorld(world, LEFT);
  });

  test('row 102: right after the Cleaning checkpoint', async () => {
    const world = await World.create(LOG, SIZE);
    await stopped(world, {
      committed: ({ stage }) => {
        if (stage === 'Cleaning') world.stop();
      },
    });
    expect(world.checkpoint()).toMatchObject({ stage: 'Cleaning' });
    await expectWorld(world, { rows: { b: 'spent', a: 'active' } });
    const run = await succeeds(world);
    expect(jobsOf(run)).toEqual(['scavenge.clean']);
    expect(run.committed.at(-1)).toMatchObject({ stage: 'Done' });
    await expectWorld(world, LEFT);
  });

  const STAGES: readonly [ScavengeStage, string][] = [
    ['Accumulating', 'scavenge.accumulate'],
    ['Calculating', 'scavenge.calculate'],
    ['ExecutingChunks', 'scavenge.execute-chunk'],
    ['MergingChunks', 'scavenge.merge-chunks'],
    ['ExecutingIndex', 'scavenge.execute-table'],
    ['Cleaning', 'scavenge.clean'],
  ];
  test.each(STAGES)('row 103: right after the first checkpoint of %s', async (stage, job) => {
    const world = await World.create(LOG, SIZE);
    await stopped(
      world,
      {
        committed: (checkpoint) => {
          if (checkpoint.stage === stage) world.stop();
        },
      },
      { merging: true },
    );
    const stored = world.checkpoint();
    expect(stored).toMatchObject({ stage, point: pointOf(world.log, 'SP') });
    expect([stored!.doneChunk, stored!.doneStream]).toEqual([undefined, undefined]);
    const run = await succeeds(world, { merging: true });
    expect(jobsOf(run)[0]).toBe(job);
    await expectWorld(world, { ...LEFT, versions: [2] });
  });
});
