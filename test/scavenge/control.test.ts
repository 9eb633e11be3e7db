import { expect, test, vi } from 'vitest';
import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import {
  append,
  checkpointOf,
  eventsOf,
  fill,
  historyOf,
  leftovers,
  openWorld,
  recordsBelow,
  runToEnd,
  type World,
} from './control-kit.ts';

/** What an uninterrupted run leaves of `fill`. */
async function undisturbed(events?: number): Promise<{ records: string[]; point: number; files: string[] }> {
  const world = await openWorld();
  await fill(world.open, events);
  await runToEnd(world);
  const point = checkpointOf(world)!.point.position;
  const result = {
    records: await recordsBelow(world.open, point),
    point,
    files: (await world.storage.list('')).filter((name) => name.startsWith('chunk')),
  };
  await world.open.close();
  return result;
}

/** Everything that `fill` doomed is gone below the point, and nothing else. */
async function expectScavenged(world: World): Promise<void> {
  const { position } = checkpointOf(world)!.point;
  const streams = (await recordsBelow(world.open, position)).map((record) => record.split(' ')[1]);
  expect(streams.filter((stream) => stream === 'doomed')).toHaveLength(1);
  expect(streams.filter((stream) => stream === 'kept')).toHaveLength(40);
  expect(await leftovers(world.storage)).toEqual([]);
}

test('a run removes what is to go, and says so everywhere', async () => {
  const world = await openWorld();
  await fill(world.open);
  const { scavenger } = world.open;
  expect([scavenger.current(), scavenger.last(), scavenger.progress()]).toEqual([null, null, null]);
  const { scavengeId } = await scavenger.start({ threshold: 0 });
  expect(scavengeId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  expect(scavenger.current()).toBe(scavengeId);
  expect(scavenger.last()).toEqual({ scavengeId, result: 'InProgress', error: null });
  expect(scavenger.progress()).toMatchObject({ scavengeId, phase: 'Starting' });
  await scavenger.idle();
  expect(scavenger.last()).toEqual({ scavengeId, result: 'Success', error: null });
  expect([scavenger.current(), scavenger.progress()]).toEqual([null, null]);
  expect(checkpointOf(world)).toMatchObject({ stage: 'Done', point: { eventNumber: 0, threshold: 0 } });
  await expectScavenged(world);
  const texts = world.lines.filter(({ fields }) => fields['ScavengeId'] === scavengeId).map(({ message }) => message);
  expect(texts[0]).toBe('Request scavenging: startFromChunk=0&threads=1&threshold=0&syncOnly=False');
  expect(texts.slice(1).every((text) => text.startsWith('SCAVENGING: '))).toBe(true);
  expect(
    texts.find((text) =>
      text.includes('Started to scavenge physical chunk: "#0-0 (chunk-000000.000000)" with weight '),
    ),
  ).toMatch(/with weight \d+\. 0 => 0 \(0 => 65536\)$/);
  expect(texts.some((text) => text.includes('Scavenge Completed. Total time taken: '))).toBe(true);
  await world.open.close();
});

test('whoever reads that a run has ended may begin the next one, or a backup, at once', async () => {
  const world = await openWorld();
  await fill(world.open, 10);
  const { scavenger } = world.open;
  // What is told right behind the line that says so, while the history is still being written.
  const told: unknown[] = [];
  const push = world.lines.push.bind(world.lines);
  world.lines.push = (line) => {
    if (line.message.includes('Scavenge Completed')) queueMicrotask(() => told.push(scavenger.last()!.result));
    return push(line);
  };
  await scavenger.start();
  while (scavenger.last()!.result === 'InProgress')
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  expect(told).toEqual(['InProgress']);
  scavenger.hold()();
  await scavenger.start();
  await world.open.close();
});

test('a second start is refused with the id of the running one, and a stop of another id too', async () => {
  const world = await openWorld();
  await fill(world.open, 10);
  const { scavenger } = world.open;
  const { scavengeId } = await scavenger.start();
  await expect(scavenger.start()).rejects.toMatchObject({ code: 'scavenge_in_progress', data: { scavengeId } });
  await expect(scavenger.startDryRun()).rejects.toMatchObject({ code: 'scavenge_in_progress' });
  await expect(scavenger.stop('00000000-0000-0000-0000-000000000000')).rejects.toMatchObject({
    code: 'scavenge_not_found',
  });
  await scavenger.idle();
  await expect(scavenger.stop('current')).rejects.toMatchObject({ code: 'scavenge_not_found' });
  await expect(scavenger.stop(scavengeId)).rejects.toMatchObject({ code: 'scavenge_not_found' });
  await world.open.close();
  await expect(scavenger.start()).rejects.toMatchObject({ code: 'store_closed' });
});

test.each([
  [{ threads: 0 }],
  [{ threads: 1.5 }],
  [{ throttlePercent: 0 }],
  [{ throttlePercent: 101 }],
  [{ throttlePercent: 50, threads: 2 }],
  [{ threshold: 2 ** 31 }],
  [{ threshold: Number.NaN }],
])('%j is refused', async (options) => {
  const world = await openWorld();
  await expect(world.open.scavenger.start(options)).rejects.toMatchObject({ code: 'bad_option' });
  expect(world.open.scavenger.last()).toBeNull();
  await world.open.close();
});

const JOBS = [
  'scavenge.accumulate',
  'scavenge.calculate',
  'scavenge.execute-neighbours',
  'scavenge.execute-chunk',
  'scavenge.merge-chunks',
  'scavenge.execute-table',
  'scavenge.execute-positions-table',
  'scavenge.clean',
];
/** Jobs that there are only where chunks are merged after they were executed. */
const ONE_BY_ONE = ['scavenge.execute-chunk', 'scavenge.merge-chunks'];

test.each(JOBS)('a run stopped in %s goes on where it was, under a new id and to the same point', async (job) => {
  const expected = await undisturbed();
  const world = await openWorld({ scavenge: { mergesWhileExecuting: !ONE_BY_ONE.includes(job) } });
  await fill(world.open);
  const { scavenger } = world.open;
  let stopping: Promise<string> | null = null;
  world.jobs.hook = (name, _args, nth) => {
    // The second chunk or file, so that there is something done.
    if (name === job && nth === (job.startsWith('scavenge.execute-') && !job.endsWith('-table') ? 2 : 1))
      stopping = scavenger.stop('current');
  };
  const first = await runToEnd(world);
  expect(await stopping!).toBe(first);
  expect(scavenger.last()).toEqual({ scavengeId: first, result: 'Stopped', error: null });
  expect(checkpointOf(world)!.stage).not.toBe('Done');
  expect(await leftovers(world.storage)).toEqual([]);
  const events = await historyOf(world.open, first);
  expect(events.at(-1)).toMatchObject({ type: '$scavengeCompleted', members: { result: 'Stopped', error: null } });
  world.jobs.hook = null;
  world.jobs.ran.length = 0;
  // Neither counts for a run that goes on.
  const second = await runToEnd(world, { threshold: 1_000_000, syncOnly: true });
  expect(second).not.toBe(first);
  expect(scavenger.last()).toEqual({
    scavengeId: second,
    result: 'Success',
    error: null,
    olderPoint: { why: 'unfinished', point: checkpointOf(world)!.point },
  });
  expect(world.jobs.ran.filter((name) => JOBS.indexOf(name) < Math.min(JOBS.indexOf(job), 2))).toEqual([]);
  expect(checkpointOf(world)).toMatchObject({
    stage: 'Done',
    point: { position: expected.point, eventNumber: 0, threshold: 0 },
  });
  expect(await eventsOf(world.open, '$scavengePoints')).toHaveLength(1);
  expect(await recordsBelow(world.open, expected.point)).toEqual(expected.records);
  await expectScavenged(world);
  await world.open.close();
});

test.each([2, 4, 9])('%d threads give the same result', async (threads) => {
  const expected = await undisturbed(200);
  const world = await openWorld();
  await fill(world.open, 200);
  let atOnce = 0;
  let most = 0;
  world.jobs.hook = async (name) => {
    if (name !== 'scavenge.execute-neighbours' && name !== 'scavenge.execute-chunk') return;
    most = Math.max(most, ++atOnce);
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    atOnce--;
  };
  await runToEnd(world, { threads });
  expect(most).toBe(Math.min(threads, 4));
  expect(await recordsBelow(world.open, expected.point)).toEqual(expected.records);
  expect(checkpointOf(world)!.stage).toBe('Done');
  expect(world.lines.some(({ level, message }) => level === 'warn' && message.includes(`${threads} threads`))).toBe(
    threads > 4,
  );
  await world.open.close();
});

test('an error in one of several threads ends the others, and the run', async () => {
  const world = await openWorld({ scavenge: { disableMerging: true } });
  await fill(world.open);
  world.storage.failWhen((op, path) => (op === 'sync' && path.endsWith('.scavenge.tmp') ? 'io_error' : undefined));
  await runToEnd(world, { threads: 3 });
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Errored' });
  expect(await leftovers(world.storage)).toEqual([]);
  world.storage.failWhen(undefined);
  await runToEnd(world);
  await expectScavenged(world);
  await world.open.close();
});

test('a full disk ends the run with a clear reason; the node serves on, and the next run completes', async () => {
  const world = await openWorld();
  await fill(world.open);
  world.storage.failWhen((op, path) =>
    op !== 'read' && op !== 'remove' && path.endsWith('.scavenge.tmp') ? 'disk_full' : undefined,
  );
  const id = await runToEnd(world);
  const last = world.open.scavenger.last()!;
  expect(last).toMatchObject({ scavengeId: id, result: 'Errored' });
  expect(last.error).toMatch(/^Error while scavenging DB: .*\.$/);
  expect((await historyOf(world.open, id)).at(-1)).toMatchObject({
    type: '$scavengeCompleted',
    members: { result: 'Errored', error: last.error },
  });
  expect(
    world.lines.some(
      ({ level, message }) =>
        level === 'error' && message.startsWith('SCAVENGING: Scavenge Failed. Total time taken: '),
    ),
  ).toBe(true);
  expect(await leftovers(world.storage)).toEqual([]);
  await append(world.open, 'kept', 'thing', encodeText('still there'));
  world.storage.failWhen(undefined);
  await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
  await expectScavenged(world);
  await world.open.close();
});

test('a full disk that keeps the history from being written fails no run', async () => {
  const world = await openWorld();
  await fill(world.open);
  world.jobs.hook = (name) => {
    if (name === 'scavenge.calculate')
      world.storage.failWhen((op, path) => (op === 'writeAt' && path.endsWith('.000000') ? 'disk_full' : undefined));
  };
  await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success', error: null });
  expect(
    world.lines.filter(({ level, message }) => level === 'error' && message.includes('could not be written')).length,
  ).toBeGreaterThan(0);
  world.storage.failWhen(undefined);
  await expectScavenged(world);
  await world.open.close();
});

test('a merge that fails is told, and fails nothing', async () => {
  const world = await openWorld();
  await fill(world.open);
  world.storage.failWhen((op, path) =>
    op === 'create' && path.endsWith('.merge.scavenge.tmp') ? 'disk_full' : undefined,
  );
  const id = await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
  const merges = (await historyOf(world.open, id)).filter(({ type }) => type === '$scavengeMergeCompleted');
  expect(merges.length).toBeGreaterThan(0);
  for (const { members } of merges)
    expect(members).toMatchObject({ wasMerged: false, spaceSaved: 0, errorMessage: expect.stringContaining('') });
  world.storage.failWhen(undefined);
  await world.open.close();
});

test('half the time is rested, and a stop ends the rest', async () => {
  const world = await openWorld({ scavenge: { disableMerging: true } });
  await fill(world.open);
  world.jobs.hook = (name) => (name === 'scavenge.execute-chunk' ? world.clock.advance(12_000) : undefined);
  await world.open.scavenger.start({ throttlePercent: 50 });
  const isResting = () => world.lines.filter(({ message }) => message.includes('Pausing for 00:00:12')).length;
  for (let turn = 0; turn < 10_000 && isResting() === 0; turn++) await new Promise(setImmediate);
  expect(isResting()).toBe(1);
  const checkpoint = checkpointOf(world);
  await world.clock.advance(11_000);
  expect(checkpointOf(world)).toEqual(checkpoint);
  await world.clock.advance(1_500);
  for (let turn = 0; turn < 10_000 && isResting() === 1; turn++) await new Promise(setImmediate);
  await world.open.scavenger.stop('current');
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Stopped' });
  expect(checkpointOf(world)).toMatchObject({ stage: 'ExecutingChunks', doneChunk: 1 });
  world.jobs.hook = null;
  await runToEnd(world, { throttlePercent: 100 });
  await expectScavenged(world);
  await world.open.close();
});

test('a run that is cut off by a shutdown writes no completion, and the next start of the node does', async () => {
  const world = await openWorld();
  await fill(world.open);
  world.jobs.hook = async (name, _args, nth) => {
    if (name === 'scavenge.execute-neighbours' && nth === 2) closing = world.open.close();
  };
  let closing: Promise<void> | null = null;
  const { scavengeId } = await world.open.scavenger.start();
  await world.open.scavenger.idle();
  await closing!;
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Interrupted' });
  const again = await openWorld({
    storage: world.storage,
    states: world.states,
    scavenge: { repairHistory: true },
    seed: 2,
  });
  await again.open.scavenger.idle();
  const events = await historyOf(again.open, scavengeId);
  expect(events.map(({ type }) => type)).toEqual([
    '$scavengeStarted',
    '$scavengeChunksCompleted',
    '$scavengeChunksCompleted',
    '$scavengeChunksCompleted',
    '$scavengeMergeCompleted',
    '$scavengeCompleted',
  ]);
  const sums = events.slice(1, 5).reduce((sum, { members }) => sum + Number(members['spaceSaved']), 0);
  expect(events.at(-1)!.members).toMatchObject({
    result: 'Interrupted',
    error: 'The node was restarted.',
    spaceSaved: sums,
    maxChunkScavenged: 2,
  });
  expect([again.open.scavenger.current(), again.open.scavenger.last()]).toEqual([null, null]);
  await runToEnd(again);
  expect(again.open.scavenger.last()).toMatchObject({ result: 'Success' });
  await expectScavenged(again);
  await again.open.close();
});

test('chunks with nothing to do cost no job', async () => {
  const world = await openWorld();
  await fill(world.open);
  await runToEnd(world);
  world.jobs.ran.length = 0;
  world.lines.length = 0;
  await runToEnd(world);
  expect(world.jobs.ran.filter((name) => !name.endsWith('-table') && name !== 'scavenge.merge-chunks')).toEqual([
    'scavenge.accumulate',
    'scavenge.calculate',
    'scavenge.clean',
  ]);
  expect(world.lines.filter(({ message }) => message.includes('Skipped physical chunk: ')).length).toBeGreaterThan(3);
  await world.open.close();
});

test('when hard deletes are ignored, a stream can be written again at once', async () => {
  const world = await openWorld({ scavenge: { unsafeIgnoreHardDelete: true } });
  await append(world.open, 'gone', 'thing', encodeText('personal'));
  await world.open.store.deleteStream('gone', ANY, 'hard');
  await expect(append(world.open, 'gone', 'thing', encodeText('again'))).rejects.toMatchObject({
    code: 'stream_deleted',
  });
  await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
  expect(await world.open.store.streamInfo('gone')).toMatchObject({ lastEventNumber: -1, isTombstoned: false });
  expect(await append(world.open, 'gone', 'thing', encodeText('again'))).toBe(0);
  await world.open.close();
});

test('a point whose chunk could not be completed before the process ended is used nevertheless', async () => {
  const world = await openWorld();
  await fill(world.open, 10);
  world.storage.failWhen((op, path) => (op === 'truncate' && path.startsWith('chunk-') ? 'disk_full' : undefined));
  await append(world.open, '$scavengePoints', '$scavengePoint', encodeText('{}'), true);
  await world.open.close();
  world.storage.failWhen(undefined);
  const again = await openWorld({ storage: world.storage, states: world.states, seed: 3 });
  await runToEnd(again, { syncOnly: true });
  // What the run has added to the point of its checkpoint is its own.
  expect(again.open.scavenger.last()).toEqual({
    scavengeId: expect.any(String),
    result: 'Success',
    error: null,
    olderPoint: { why: 'unreached', point: { ...checkpointOf(again)!.point, emptiesDeleted: undefined } },
  });
  expect(await eventsOf(again.open, '$scavengePoints')).toHaveLength(1);
  await again.open.close();
});

test('while the chunk of its point can not be completed, a run fails before it has learnt anything', async () => {
  const world = await openWorld();
  await fill(world.open, 10);
  // The first of three cuts: the other two make it an open chunk again.
  let cuts = 0;
  world.storage.failWhen((op, path) =>
    op === 'truncate' && /^chunk-\d+\.\d+$/.test(path) && cuts++ % 3 === 0 ? 'disk_full' : undefined,
  );
  await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({
    result: 'Errored',
    error: expect.stringContaining('chunk-000000.000000') as string,
  });
  expect(world.jobs.ran).toEqual([]);
  expect(checkpointOf(world)).toBeNull();
  world.storage.failWhen(undefined);
  await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success', error: null });
  expect(checkpointOf(world)).toMatchObject({ stage: 'Done', point: { eventNumber: 0 } });
  await world.open.close();
});

test.each(['Calculating', 'Done'] as const)(
  'a scavenge database that was %s beyond the end of the log is refused, and the run has a history all the same',
  async (stage) => {
    const world = await openWorld();
    await fill(world.open, 10);
    const state = world.states.open({ pageSizeBytes: 16_384, cacheBytes: 1, hashUsersCacheEntries: 1 });
    state.begin();
    state.commit({ point: { position: 10_000_000, eventNumber: 3, effectiveNowMs: 0, threshold: 0 }, stage });
    state.close();
    const id = await runToEnd(world);
    expect(world.open.scavenger.last()).toMatchObject({
      result: 'Errored',
      error: expect.stringContaining('scavenging.db') as string,
    });
    expect((await historyOf(world.open, id)).map(({ type }) => type)).toEqual([
      '$scavengeStarted',
      '$scavengeCompleted',
    ]);
    await world.open.close();
  },
);

test('a scavenge database that can not be opened fails the run, whose history has both its ends', async () => {
  const world = await openWorld();
  world.states.open = () => {
    throw new SkuaError('scavenge_state_invalid', 'The scavenge database is damaged');
  };
  const id = await runToEnd(world);
  expect(world.open.scavenger.last()).toEqual({
    scavengeId: id,
    result: 'Errored',
    error: 'Error while scavenging DB: The scavenge database is damaged.',
  });
  expect((await historyOf(world.open, id)).map(({ type }) => type)).toEqual(['$scavengeStarted', '$scavengeCompleted']);
  expect((await world.open.store.streamInfo(`$scavenges-${id}`)).metadata.maxAge).toBe(2_592_000);
  await world.open.close();
});

test('a scavenge database that its own check finds damaged is removed, and the run learns everything anew', async () => {
  const world = await openWorld();
  await fill(world.open);
  await runToEnd(world);
  const removed = vi.spyOn(world.states, 'remove');
  world.states.isOnDisk = () => true;
  world.states.check = () => ['row 3 missing from index'] as never;
  await runToEnd(world);
  expect(removed).toHaveBeenCalledTimes(1);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
  await expectScavenged(world);
  world.states.check = () => [] as never;
  await runToEnd(world);
  expect(removed).toHaveBeenCalledTimes(1);
  await world.open.close();
});

test('index tables that are merged away while a job opens them are listed anew', async () => {
  const world = await openWorld();
  await fill(world.open);
  const failed = new Set<string>();
  world.jobs.hook = (name) => {
    if (failed.has(name) || (name !== 'scavenge.accumulate' && name !== 'scavenge.calculate')) return;
    failed.add(name);
    throw new SkuaError('file_not_found', 'There is no such table.', { path: 'index/gone' });
  };
  await runToEnd(world);
  expect(failed.size).toBe(2);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
  await expectScavenged(world);
  world.jobs.hook = (name) => {
    if (name === 'scavenge.accumulate')
      throw new SkuaError('file_not_found', 'There is no such table.', { path: 'index/gone' });
  };
  await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Errored' });
  await world.open.close();
});

test('a dry run counts and writes nothing, holds the place of a run, and can be asked for its report', async () => {
  const world = await openWorld();
  await fill(world.open);
  const { scavenger, store } = world.open;
  const end = store.end;
  const files = await world.storage.list('');
  const { scavengeId } = await scavenger.startDryRun({ threshold: 2 });
  expect([scavenger.current(), await scavenger.dryRun(scavengeId)]).toEqual([scavengeId, null]);
  await expect(scavenger.start()).rejects.toMatchObject({ code: 'scavenge_in_progress', data: { scavengeId } });
  await scavenger.idle();
  const report = (await scavenger.dryRun(scavengeId))!;
  expect(report).toMatchObject({ scavengeId, threshold: 2, totals: { discardable: expect.any(Number) as number } });
  expect(report.totals.discardable).toBe(39);
  expect([store.end, await world.storage.list(''), checkpointOf(world), scavenger.last(), scavenger.current()]).toEqual(
    [end, files, null, null, null],
  );
  // What was promised is what a run saves.
  const executed = (await historyOf(world.open, await runToEnd(world, { threshold: 2 }))).filter(
    ({ type }) => type === '$scavengeChunksCompleted',
  );
  expect((await scavenger.dryRun(scavengeId))!.totals.chunksExecuted).toBe(executed.length);
  await world.open.close();
});

test('a dry run can be stopped, and the last eight are remembered', async () => {
  const world = await openWorld();
  await fill(world.open, 10);
  const { scavenger } = world.open;
  world.jobs.hook = () => {
    void scavenger.stop('current');
  };
  const first = await scavenger.startDryRun();
  await scavenger.idle();
  await expect(scavenger.dryRun(first.scavengeId)).rejects.toMatchObject({ code: 'aborted' });
  world.jobs.hook = null;
  for (let i = 0; i < 8; i++) {
    await scavenger.startDryRun();
    await scavenger.idle();
  }
  await expect(scavenger.dryRun(first.scavengeId)).rejects.toMatchObject({ code: 'scavenge_not_found' });
  await world.open.close();
});

test('what would happen to one stream is explained, also during a run', async () => {
  const world = await openWorld();
  await fill(world.open, 20);
  const seen: unknown[] = [];
  world.jobs.hook = async (name, _args, nth) => {
    if (name === 'scavenge.calculate' && nth === 1) seen.push(await world.open.scavenger.explain('doomed'));
  };
  await runToEnd(world);
  expect(seen[0]).toMatchObject({
    stream: 'doomed',
    lastEventNumber: 9,
    removed: [{ from: 0, to: 8, count: 9, rule: '$maxCount' }],
    kept: [{ from: 9, to: 9, count: 1 }],
  });
  const slow = world.open.scavenger.explain('kept');
  const second = world.open.scavenger.explain('kept');
  await expect(world.open.scavenger.explain('kept')).rejects.toMatchObject({ code: 'too_busy' });
  await Promise.all([slow, second]);
  await world.open.close();
});

test('two nodes that write a point at once: the loser uses the point of the winner', async () => {
  const world = await openWorld();
  await fill(world.open, 10);
  await runToEnd(world);
  const { store } = world.open;
  const read = store.readStream.bind(store);
  // Another writer is faster between the look at the last point and the new one.
  store.readStream = async (stream, options) => {
    const page = await read(stream, options);
    if (stream === '$scavengePoints') {
      store.readStream = read;
      await append(world.open, '$scavengePoints', '$scavengePoint', encodeText('{}'), true);
    }
    return page;
  };
  const id = await runToEnd(world);
  expect(world.open.scavenger.last()).toEqual({ scavengeId: id, result: 'Success', error: null });
  expect(checkpointOf(world)).toMatchObject({ stage: 'Done', point: { eventNumber: 1 } });
  await world.open.close();
});

test('a point that is refused although there is no newer one: the run fails, and says so', async () => {
  const world = await openWorld();
  await fill(world.open, 10);
  await runToEnd(world);
  const { store } = world.open;
  Object.assign(store, {
    appendInternal: () =>
      Promise.reject(new SkuaError('wrong_expected_version', 'No.', { stream: '$scavenges', expected: 0, actual: 1 })),
  });
  const id = await runToEnd(world);
  expect(world.open.scavenger.last()).toEqual({
    scavengeId: id,
    result: 'Errored',
    error: 'Error while scavenging DB: Failed to add new scavenge point: WrongExpectedVersion.',
  });
  await world.open.close();
});

test('progress names the phase, its chunks and bytes, and the time left', async () => {
  const world = await openWorld({ scavenge: { disableMerging: true } });
  await fill(world.open);
  const seen: unknown[] = [];
  world.jobs.hook = async (name, _args, nth) => {
    if (name !== 'scavenge.execute-chunk' || nth !== 3) return;
    await world.clock.advance(10_000);
    seen.push(world.open.scavenger.progress());
  };
  await runToEnd(world);
  expect(seen).toHaveLength(1);
  const progress = seen[0] as {
    chunksDone: number;
    chunksTotal: number;
    bytesDone: number;
    bytesTotal: number;
    remainingSeconds: number;
  };
  expect(progress).toMatchObject({ phase: 'Chunk execution', chunksDone: 2, elapsedSeconds: 10 });
  expect(progress.chunksTotal).toBeGreaterThan(5);
  expect(progress.bytesDone).toBeGreaterThan(0);
  expect(progress.bytesDone).toBeLessThan(progress.bytesTotal);
  expect(progress.remainingSeconds).toBeCloseTo(
    (10 * (progress.bytesTotal - progress.bytesDone)) / progress.bytesDone,
    6,
  );
  expect(world.lines.some(({ message }) => /SCAVENGING: Chunk execution \d+ %/.test(message))).toBe(true);
  await world.open.close();
});

test('errors of the scavenger are typed', async () => {
  const world = await openWorld();
  await expect(world.open.scavenger.dryRun('nonsense')).rejects.toSatisfy((error) =>
    isSkuaError(error, 'scavenge_not_found'),
  );
  await expect(world.open.scavenger.explain('no-such-stream')).rejects.toSatisfy((error) =>
    isSkuaError(error, 'stream_not_found'),
  );
  await expect(world.open.scavenger.explain('')).rejects.toSatisfy((error) =>
    isSkuaError(error, 'invalid_stream_name'),
  );
  await world.open.close();
});
