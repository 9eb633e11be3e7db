import { describe, expect, it, test } from 'vitest';
import { bySize } from '../support/run-size.ts';
import {
  append,
  checkpointOf,
  eventsOf,
  fill,
  historyOf,
  openWorld,
  recordsBelow,
  runToEnd,
  setMetadata,
  type World,
} from './control-kit.ts';
import { crashAndGoOn, prepare } from './crash-kit.ts';

/** Runs that go on to an older point, what is told of that, and runs that abandon them. */

const JOBS = [
  'scavenge.accumulate',
  'scavenge.calculate',
  'scavenge.execute-neighbours',
  'scavenge.execute-table',
  'scavenge.clean',
];

/** Stops the run when this job is about to run, of files that are written the second one. */
async function stoppedIn(world: World, job: string): Promise<void> {
  const { scavenger } = world.open;
  world.jobs.hook = (name, _args, nth) => {
    if (name === job && nth === (job === 'scavenge.execute-neighbours' ? 2 : 1)) void scavenger.stop('current');
  };
  await runToEnd(world);
  world.jobs.hook = null;
  world.jobs.ran.length = 0;
  expect(scavenger.last()).toMatchObject({ result: 'Stopped' });
}

/** Of what `fill` has left of a stream in the log, whether or not it can be read: the numbers. */
async function numbersLeft(world: World, stream: string, end: number): Promise<number[]> {
  return (await recordsBelow(world.open, end))
    .map((record) => record.split(' '))
    .filter(([, name]) => name === stream)
    .map(([, , number]) => Number(number));
}

describe.each(JOBS)('a run that was stopped in %s', (job) => {
  async function world() {
    const opened = await openWorld();
    await fill(opened.open);
    const end = opened.open.status().checkpoints.writer;
    await stoppedIn(opened, job);
    // What was limited since: the point of the run that waits knows nothing of it.
    await setMetadata(opened.open, 'kept', { $maxCount: 3 });
    return { world: opened, end, scavenger: opened.open.scavenger };
  }

  test('waits, is gone on with, and says all the time that it goes to an older point', async () => {
    const { world: opened, end, scavenger } = await world();
    const { point } = checkpointOf(opened)!;
    const waiting = { why: 'unfinished', point };
    expect(await scavenger.waiting()).toEqual(waiting);
    const { scavengeId, olderPoint } = await scavenger.start();
    expect(olderPoint).toEqual(waiting);
    expect([scavenger.last(), scavenger.progress()]).toMatchObject([
      { scavengeId, result: 'InProgress', olderPoint: waiting },
      { olderPoint: waiting },
    ]);
    expect(await scavenger.waiting()).toBeNull();
    await scavenger.idle();
    expect(scavenger.last()).toEqual({ scavengeId, result: 'Success', error: null, olderPoint: waiting });
    expect(await scavenger.waiting()).toBeNull();
    expect(await numbersLeft(opened, 'kept', end)).toHaveLength(40);
    // The next one takes the rest.
    const next = await scavenger.start();
    await scavenger.idle();
    expect([next, scavenger.last()]).toEqual([
      { scavengeId: next.scavengeId },
      { scavengeId: next.scavengeId, result: 'Success', error: null },
    ]);
    expect(await numbersLeft(opened, 'kept', end)).toEqual([37, 38, 39]);
    expect(
      (await historyOf(opened.open, scavengeId))
        .map(({ type, members }) => [type, Object.keys(members)])
        .filter(([type]) => /Started|Completed$/.test(String(type))),
    ).toEqual(expect.arrayContaining([['$scavengeStarted', ['scavengeId', 'nodeEndpoint']]]));
    await opened.open.close();
  });

  test('is abandoned by one that starts afresh, which does all there is to do', async () => {
    const { world: opened, end, scavenger } = await world();
    const before = checkpointOf(opened)!.point;
    const started = await scavenger.start({ startAfresh: true });
    expect(started).toEqual({ scavengeId: started.scavengeId });
    await scavenger.idle();
    expect(scavenger.last()).toEqual({ scavengeId: started.scavengeId, result: 'Success', error: null });
    expect(checkpointOf(opened)).toMatchObject({ stage: 'Done', point: { eventNumber: before.eventNumber + 1 } });
    expect(await scavenger.waiting()).toBeNull();
    expect(await numbersLeft(opened, 'kept', end)).toEqual([37, 38, 39]);
    expect(await numbersLeft(opened, 'doomed', end)).toEqual([39]);
    expect(await eventsOf(opened.open, '$scavengePoints')).toHaveLength(2);
    expect(
      opened.lines.some(({ message }) => message.includes(`Abandoned the scavenge to SP-${before.eventNumber}`)),
    ).toBe(true);
    // No chunk of the log is learnt from twice.
    expect(opened.jobs.ran.filter((name) => name === 'scavenge.accumulate')).toHaveLength(1);
    await opened.open.close();
  });

  test('does not have its way with events that were let live since, where another starts afresh', async () => {
    const { world: opened, end, scavenger } = await world();
    const left = await numbersLeft(opened, 'doomed', end);
    await setMetadata(opened.open, 'doomed', {});
    expect((await scavenger.explain('doomed')).removed).toEqual([]);
    await scavenger.start({ startAfresh: true });
    await scavenger.idle();
    expect(scavenger.last()).toMatchObject({ result: 'Success' });
    expect(await numbersLeft(opened, 'doomed', end)).toEqual(left);
    expect((await eventsOf(opened.open, 'doomed')).map(({ number }) => number)).toEqual(left);
    await opened.open.close();
  });

  test('is told of by explain, with what it leaves, and by a dry run', async () => {
    const { world: opened, scavenger } = await world();
    const waiting = { why: 'unfinished', point: checkpointOf(opened)!.point };
    const kept = await scavenger.explain('kept');
    expect(kept.removed).toEqual([{ from: 0, to: 36, count: 37, bytes: expect.any(Number), rule: '$maxCount' }]);
    expect(kept.waiting).toEqual({ ...waiting, leaves: kept.removed });
    expect((await scavenger.explain('doomed')).waiting).toEqual({ ...waiting, leaves: [] });
    await append(opened.open, 'doomed', 'thing', new Uint8Array(10));
    const doomed = await scavenger.explain('doomed');
    // The event that was the last one at the point of that run stays until another.
    expect(doomed.waiting!.leaves).toMatchObject([{ from: 39, to: 39, count: 1, rule: '$maxCount' }]);
    const { scavengeId } = await scavenger.startDryRun();
    await scavenger.idle();
    expect((await scavenger.dryRun(scavengeId))!.waiting).toEqual(waiting);
    await runToEnd(opened);
    await runToEnd(opened);
    expect(await scavenger.explain('kept')).not.toHaveProperty('waiting');
    await opened.open.close();
  });
});

test('a point in the log that no run has reached is an older one as well', async () => {
  const world = await openWorld();
  await fill(world.open);
  await runToEnd(world);
  await world.open.close();
  // As where the database was deleted, or the end came between the point and the first checkpoint.
  const again = await openWorld({ storage: world.storage.restart('keep') });
  const waiting = await again.open.scavenger.waiting();
  expect(waiting).toMatchObject({ why: 'unreached', point: { eventNumber: 0 } });
  const { olderPoint } = await again.open.scavenger.start();
  expect(olderPoint).toEqual(waiting);
  await again.open.scavenger.idle();
  expect(again.open.scavenger.last()).toMatchObject({ result: 'Success', olderPoint: waiting });
  expect(await again.open.scavenger.waiting()).toBeNull();
  await again.open.close();
});

test('asking what waits makes no scavenge database, and starting afresh is not for syncOnly', async () => {
  const world = await openWorld();
  const { scavenger } = world.open;
  expect(await scavenger.waiting()).toBeNull();
  expect((await world.storage.list('index/scavenging')).length).toBe(0);
  await expect(scavenger.start({ startAfresh: true, syncOnly: true })).rejects.toMatchObject({
    code: 'bad_option',
    message: expect.stringContaining('leave one of them out'),
  });
  await world.open.close();
  expect(await scavenger.waiting()).toBeNull();
});

test('a run that began afresh and was stopped is gone on with, not abandoned once more', async () => {
  const world = await openWorld();
  const { scavenger } = world.open;
  await fill(world.open);
  await stoppedIn(world, 'scavenge.calculate');
  world.jobs.hook = (name) => {
    if (name === 'scavenge.execute-neighbours') void scavenger.stop('current');
  };
  await scavenger.start({ startAfresh: true, threads: 2 });
  await scavenger.idle();
  world.jobs.hook = null;
  expect(scavenger.last()).toMatchObject({ result: 'Stopped' });
  expect(scavenger.lastOptions!()).toEqual({ startAfresh: false, threads: 2 });
  const { point } = checkpointOf(world)!;
  await runToEnd(world, scavenger.lastOptions!());
  expect(checkpointOf(world)).toMatchObject({ stage: 'Done', point });
  await world.open.close();
});

describe('the power fails in a run that abandons another', () => {
  it('leaves the one or the other at any storage operation and behind any commit, and nothing in between', async () => {
    const prepared = await prepare(11);
    const step = bySize(401, 23, 7);
    for (const share of bySize([0.5, 0.8], [0.3, 0.5, 0.7, 0.9])) {
      const abandons = Math.floor(prepared.operations * share);
      for (let operation = 1; operation <= prepared.operations; operation += step)
        expect(
          await crashAndGoOn(prepared, {
            operation,
            abandons,
            mode: operation % 2 === 0 ? 'drop' : 'partial',
            commitsLost: operation % 3,
            seed: operation,
          }),
        ).toEqual([]);
      for (let commit = 1; commit <= 4; commit++)
        for (const commitsLost of bySize([commit % 2], [0, 1]))
          expect(await crashAndGoOn(prepared, { commit, abandons, mode: 'drop', commitsLost, seed: commit })).toEqual(
            [],
          );
    }
  });
});
