import { describe, expect, it } from 'vitest';
import { openPrefix } from '../../core/shared-log/prefix/prefix.ts';
import type { ObjectScavenge } from '../../core/shared-log/format/manifest.ts';
import { createManifest, newestManifest } from '../../core/shared-log/format/manifest.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { Explanation } from '../../core/scavenge/api.ts';
import { Deadline } from '../../infra/aws/functions/deadline.ts';
import { TickedScavenger } from '../../infra/runtime/scavengers.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { SeededIds } from '../support/seeded-ids.ts';

async function open() {
  const world = {
    objects: new MemoryObjects(),
    clock: systemClock,
    ids: new SeededIds(1),
    digests: nodeDigests,
    log: silentLog,
    meter: silentMeter,
  };
  await openPrefix(world, {});
  const deadline = new Deadline();
  const scavenger = new TickedScavenger(world, deadline);
  await scavenger.refresh();
  return { world, scavenger, deadline, other: new TickedScavenger(world, deadline) };
}

describe('scavenges that ticks carry on', () => {
  it('are none at first', async () => {
    const { scavenger } = await open();
    expect([scavenger.current(), scavenger.last(), scavenger.progress()]).toEqual([null, null, null]);
    await expect(scavenger.stop('current')).rejects.toMatchObject({ code: 'scavenge_not_found' });
  });

  it('are asked for once, whoever asks', async () => {
    const { scavenger, other } = await open();
    const { scavengeId } = await scavenger.start();
    await other.refresh();
    expect(other.current()).toBe(scavengeId);
    expect(other.last()).toEqual({ scavengeId, result: 'InProgress', error: null });
    expect(other.progress()).toMatchObject({ scavengeId, remainingSeconds: null });
    await expect(other.start()).rejects.toMatchObject({ code: 'scavenge_in_progress', data: { scavengeId } });
  });

  it('are stopped within the time that the function has, or say that it takes longer', async () => {
    const { scavenger, deadline } = await open();
    const { scavengeId } = await scavenger.start();
    deadline.begin(() => 2_000);
    await expect(scavenger.stop('current')).rejects.toMatchObject({ code: 'scavenge_stopping', data: { scavengeId } });
  });

  it('tell how far the last tick has come with them', async () => {
    const { world, scavenger } = await open();
    const manifest = (await newestManifest(world.objects, nodeDigests))!;
    const progress = {
      phase: 'Chunk execution',
      chunksDone: 3,
      chunksTotal: 9,
      bytesDone: 30,
      bytesTotal: 90,
      bytesReclaimed: 12,
    } as const;
    const running: ObjectScavenge = {
      scavengeId: 'aaaaaaaa-0000-4000-8000-000000000001',
      startedMs: Date.now() - 5_000,
      threshold: 0,
      syncOnly: false,
      state: 'running',
      progress,
      endedMs: null,
      isTold: false,
      result: null,
      error: null,
    };
    await createManifest(world, { ...manifest, number: 2, scavenge: running });
    await scavenger.refresh();
    expect(scavenger.progress()).toMatchObject({ scavengeId: 'aaaaaaaa-0000-4000-8000-000000000001', ...progress });
    expect(scavenger.progress()!.elapsedSeconds).toBeGreaterThanOrEqual(5);
  });

  it('tell until when traces of what they removed remain, and that none do', async () => {
    const { world, scavenger } = await open();
    const manifest = (await newestManifest(world.objects, nodeDigests))!;
    const ended: ObjectScavenge = {
      scavengeId: 'aaaaaaaa-0000-4000-8000-000000000001',
      startedMs: 1,
      threshold: 0,
      syncOnly: false,
      state: 'ended',
      endedMs: 2,
      isTold: true,
      result: 'Success',
      error: null,
    };
    const erasure = {
      scavengeId: 'aaaaaaaa-0000-4000-8000-000000000001',
      manifest: 2,
      sinceMs: 3,
      untilMs: 4,
      goneMs: null,
    };
    await createManifest(world, { ...manifest, number: 2, scavenge: ended, erasure });
    await scavenger.refresh();
    expect(scavenger.last()).toMatchObject({
      scavengeId: 'aaaaaaaa-0000-4000-8000-000000000001',
      result: 'Success',
      traces: { untilMs: 4, goneMs: null },
    });
    await createManifest(world, { ...manifest, number: 3, scavenge: ended, erasure: { ...erasure, goneMs: 5 } });
    await scavenger.refresh();
    expect(scavenger.last()).toMatchObject({ traces: { goneMs: 5 } });
    // Of another run nothing is said.
    await createManifest(world, {
      ...manifest,
      number: 4,
      scavenge: { ...ended, scavengeId: 'bbbbbbbb-0000-4000-8000-000000000001' },
      erasure,
    });
    await scavenger.refresh();
    expect(scavenger.last()).not.toHaveProperty('traces');
  });

  it('are explained within the time that the function has, or the refusal says where else', async () => {
    const { world, deadline } = await open();
    const signals: AbortSignal[] = [];
    const scavenger = new TickedScavenger(world, deadline, {
      explain: (stream, signal) => {
        signals.push(signal!);
        return stream === 'endless'
          ? new Promise((_, reject) => {
              signal!.addEventListener('abort', () => reject(new Error('ended')));
            })
          : Promise.resolve({ stream } as Explanation);
      },
    });
    expect(await scavenger.explain('short')).toEqual({ stream: 'short' });
    deadline.begin(() => 2_000);
    await expect(scavenger.explain('endless')).rejects.toMatchObject({
      code: 'aborted',
      message: expect.stringContaining('--storage s3://'),
    });
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  it('are not tried here, and the refusal says where', async () => {
    const { scavenger } = await open();
    for (const refused of [scavenger.startDryRun(), scavenger.explain('s')])
      await expect(refused).rejects.toMatchObject({
        code: 'bad_request',
        message: expect.stringContaining('--storage s3://'),
      });
  });
});
