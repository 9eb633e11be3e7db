import { describe, expect, it } from 'vitest';
import { scanChunk, openCompleted } from '../../core/log/chunk/chunk.ts';
import { BlockCache } from '../../core/cache/cache.ts';
import {
  EXECUTE_CHUNK_JOB,
  type ExecuteChunkArgs,
  type ExecuteChunkResult,
} from '../../core/scavenge/chunk-execution.ts';
import { contents } from '../log/kit.ts';
import { learn, Learner } from './learn-kit.ts';

const LOG =
  "a0..a9 | M0(a){mc=2}, b0@old, b1@fresh, b2@fresh, M0(b){age} | c0, M0(c){mc=1}, M1(c){mc=1} | d0, T(d), M0(a'){mc=1} | e0 | SP";

describe('a dry run', () => {
  const log = LOG.replace("M0(a'){mc=1}", 'M1(a){mc=3}');

  it('counts, chunk by chunk, what execution then removes and saves', async () => {
    const dry = await Learner.create(log, { point: 'SP', threshold: 2 });
    const before = await contents(dry.world.storage);
    const report = await dry.dryRun();
    expect(await contents(dry.world.storage)).toEqual(before);
    const state = dry.world.state();
    expect(state.checkpoint()).toBeNull();
    state.close();

    const real = await learn(log, { point: 'SP', threshold: 2 });
    const realState = real.world.state();
    for (const chunk of report.chunks) {
      const args: ExecuteChunkArgs = {
        settings: real.settings,
        chunkSize: real.files.chunkSize,
        source: chunk.file,
        target: `${chunk.start}.scavenge.tmp`,
        chunkId: new Uint8Array(16),
      };
      const result = (await real.jobs.run(EXECUTE_CHUNK_JOB, args)) as ExecuteChunkResult;
      expect([chunk.discardable, chunk.records, chunk.bytes, chunk.bytesReclaimable]).toEqual([
        result.recordsDiscarded,
        result.recordsKept + result.recordsDiscarded,
        result.bytesBefore,
        result.bytesBefore - result.bytesAfter,
      ]);
      expect(chunk.weight).toBe(realState.weight(chunk.start, chunk.end));
    }
    realState.close();
    expect(
      report.chunks.map(({ start, weight, discardable, wouldExecute }) => [start, weight, discardable, wouldExecute]),
    ).toEqual([
      [0, 14, 7, true],
      [1, 4, 2, true],
      [2, 2, 1, true],
      [3, 2, 1, true],
      [4, 0, 0, false],
    ]);
    expect(report.totals).toMatchObject({ chunks: 5, records: 22, discardable: 11, chunksExecuted: 4 });
    expect(report).toMatchObject({ scavengeId: 'dry', threshold: 2, point: real.settings.point });
  });

  it.each([
    [3, [true, true, false, false, false]],
    [14, [true, false, false, false, false]],
    [15, [false, false, false, false, false]],
    [0, [true, true, true, true, false]],
    [-1, [true, true, true, true, true]],
  ])('would execute by the threshold %i', async (threshold, expected) => {
    const report = await (await Learner.create(log, { point: 'SP', threshold })).dryRun();
    expect(report.chunks.map((chunk) => chunk.wouldExecute)).toEqual(expected);
    expect(report.totals.chunksExecuted).toBe(expected.filter(Boolean).length);
    expect(report.totals.bytesReclaimable).toBe(
      report.chunks.reduce((sum, chunk) => sum + (chunk.wouldExecute ? chunk.bytesReclaimable : 0), 0),
    );
  });

  it('takes the end of the log for its point, with entries in memory only and a chunk that is being written', async () => {
    const learner = await Learner.create('a0, a1 | a2, M0(a){mc=1}, a3', { tablesCount: 0 });
    const { world } = learner;
    const file = learner.files.chunks[1]!;
    const chunk = await openCompleted(world.storage, new BlockCache(0), file.name);
    let bytes = 0;
    await scanChunk(chunk, chunk.startPosition, (frame) => {
      bytes = frame.next - chunk.startPosition;
    });
    await chunk.file.file.close();
    const files = { ...learner.files, chunks: [learner.files.chunks[0]!, { name: file.name, ongoingBytes: bytes }] };
    const settings = {
      ...learner.settings,
      point: { ...learner.settings.point, position: chunk.startPosition + bytes },
    };
    const report = (await learner.jobs.run('scavenge.dry-run', { files, settings, scavengeId: 'x' })) as Awaited<
      ReturnType<Learner['dryRun']>
    >;
    expect(
      report.chunks.map(({ weight, records, discardable, bytes: size }) => [weight, records, discardable, size]),
    ).toEqual([
      [4, 2, 2, 4_096],
      [2, 3, 1, 4_096],
    ]);
  });

  it('ends when it is told to', async () => {
    const ending = new AbortController();
    const learner = await Learner.create(log, {
      point: 'SP',
      onCheckpoint: (_job, count) => {
        if (count === 7) ending.abort();
      },
    });
    await expect(learner.dryRun({ signal: ending.signal })).rejects.toMatchObject({ code: 'aborted' });
  });

  it('reports how far it is, through both readings of the log', async () => {
    const learner = await Learner.create(log, { point: 'SP' });
    const told: number[] = [];
    await learner.dryRun({
      onProgress: ({ done, total }) => {
        expect(total).toBe(2 * learner.settings.point.position);
        told.push(done);
      },
    });
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.at(-1)).toBe(2 * learner.settings.point.position);
  });
});
