import { expect, test } from 'vitest';
import type { ScavengeCheckpoint, ScavengePoint, ScavengeStage } from '../../core/ports/scavenge-state.ts';
import { decideBeginning } from '../../core/scavenge/points/points.ts';
import { TrailingCheckpoint } from '../../core/scavenge/chunk-execution.ts';

/** What a run begins with, by what it finds; chunks of 100 bytes, point n in chunk n. */
const CHUNK = 100;
const point = (eventNumber: number): ScavengePoint => ({
  position: eventNumber * CHUNK + 60,
  eventNumber,
  effectiveNowMs: 0,
  threshold: 7,
});
const done = (eventNumber: number): ScavengeCheckpoint => ({ point: point(eventNumber), stage: 'Done' });
const begin = (checkpoint: ScavengeCheckpoint | null, latest: ScavengePoint | null, syncOnly: boolean) =>
  decideBeginning(checkpoint, latest, { syncOnly, startAfresh: false }, CHUNK);
const afresh = (checkpoint: ScavengeCheckpoint | null, latest: ScavengePoint | null) =>
  decideBeginning(checkpoint, latest, { syncOnly: false, startAfresh: true }, CHUNK);

const WORKING: readonly ScavengeStage[] = [
  'Accumulating',
  'Calculating',
  'ExecutingChunks',
  'MergingChunks',
  'ExecutingIndex',
  'Cleaning',
];

test.each(WORKING)('a run that was ended while %s is resumed, whatever the log and the request say', (stage) => {
  const checkpoint: ScavengeCheckpoint = { point: point(1), stage, doneChunk: 0 };
  for (const latest of [null, point(0), point(1), point(5)]) {
    for (const syncOnly of [false, true])
      expect(begin(checkpoint, latest, syncOnly)).toEqual({ kind: 'resume', checkpoint });
  }
});

test.each(WORKING)(
  'one that is to start afresh writes a point behind the latest and reads on behind what a run learnt that was ended while %s',
  (stage) => {
    const checkpoint: ScavengeCheckpoint = { point: point(5), stage, doneChunk: 2 };
    for (const latest of [null, point(5), point(8)])
      expect(afresh(checkpoint, latest)).toEqual({
        kind: 'write',
        after: latest?.eventNumber ?? -1,
        fromChunk: stage === 'Accumulating' ? 3 : 6,
      });
    expect(afresh({ point: point(5), stage }, null)).toMatchObject({ fromChunk: stage === 'Accumulating' ? 0 : 6 });
  },
);

test('a start afresh where nothing is unfinished writes a point, too', () => {
  expect(afresh(null, null)).toEqual({ kind: 'write', after: -1, fromChunk: 0 });
  expect(afresh(null, point(4))).toEqual({ kind: 'write', after: 4, fromChunk: 0 });
  expect(afresh(done(2), point(5))).toEqual({ kind: 'write', after: 5, fromChunk: 3 });
});

test('a run in several parts that starts afresh uses the point that a part of it has written', () => {
  const fresh = (since: number, latest: ScavengePoint) =>
    decideBeginning(
      { point: point(5), stage: 'Calculating' },
      latest,
      { syncOnly: false, startAfresh: true, freshSinceMs: since },
      CHUNK,
    );
  const written = { ...point(8), effectiveNowMs: 1_000 };
  expect(fresh(1_000, written)).toEqual({ kind: 'use', point: written, fromChunk: 6 });
  expect(fresh(1_001, written)).toEqual({ kind: 'write', after: 8, fromChunk: 6 });
  expect(fresh(0, point(5))).toMatchObject({ kind: 'write' });
});

test.each([
  ['nothing stored and no point', null, null, { kind: 'write', after: -1, fromChunk: 0 }, { kind: 'nothing' }],
  [
    'nothing stored and a point',
    null,
    point(4),
    { kind: 'use', point: point(4), fromChunk: 0 },
    { kind: 'use', point: point(4), fromChunk: 0 },
  ],
  ['done, and no point in the log', done(2), null, { kind: 'write', after: -1 }, { kind: 'nothing' }],
  [
    'done, and a newer point',
    done(2),
    point(5),
    { kind: 'use', point: point(5), fromChunk: 3 },
    { kind: 'use', point: point(5), fromChunk: 3 },
  ],
  ['done, and no newer point', done(2), point(2), { kind: 'write', after: 2, fromChunk: 3 }, { kind: 'nothing' }],
  ['done, and an older point', done(2), point(1), { kind: 'write', after: 2, fromChunk: 3 }, { kind: 'nothing' }],
])('%s', (_, checkpoint, latest, expected, expectedOfSyncOnly) => {
  expect(begin(checkpoint, latest, false)).toMatchObject(expected);
  expect(begin(checkpoint, latest, true)).toEqual(expectedOfSyncOnly);
});

/** Two threads, chunks that end at 10, 20, 30, 40 and 50. */
test.each([
  [
    [20, 30, 40, 10, 50],
    [40, 50],
  ],
  [[20, 30, 40, 50, 10], [50]],
  [
    [20, 10, 30, 40, 50],
    [20, 30, 40, 50],
  ],
])('finishing in the order %j moves the checkpoint to %j', (order, expected) => {
  const checkpoint = new TrailingCheckpoint(undefined);
  const waiting = [10, 20, 30, 40, 50];
  const running = new Map([waiting.shift()!, waiting.shift()!].map((end) => [end, checkpoint.take(end)]));
  const told: (number | undefined)[] = [];
  for (const end of order) {
    const next = waiting.shift();
    if (next !== undefined) running.set(next, checkpoint.take(next));
    if (checkpoint.finish(running.get(end)!)) told.push(checkpoint.done);
  }
  expect(told).toEqual(expected);
});
