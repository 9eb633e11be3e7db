import { describe, expect, it } from 'vitest';
import { openPrefix } from '../../core/object-log/create-prefix.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryObjects } from '../../core/ports/memory-objects.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { Deadline } from '../../infra/aws/functions/deadline.ts';
import { TickedScavenger } from '../../infra/aws/functions/ticked-scavenger.ts';
import { systemClock } from '../../infra/clock.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { SeededIds } from '../support/seeded-ids.ts';

async function open() {
  const world = { objects: new MemoryObjects(), clock: systemClock, ids: new SeededIds(1), digests: nodeDigests, log: silentLog, meter: silentMeter };
  await openPrefix(world, {});
  const deadline = new Deadline();
  const scavenger = new TickedScavenger(world, deadline);
  await scavenger.refresh();
  return { scavenger, deadline, other: new TickedScavenger(world, deadline) };
}

describe('scavenges that ticks carry on', () => {
  it('are none at first', async () => {
    const { scavenger } = await open();
    expect([scavenger.current(), scavenger.last(), scavenger.progress()]).toEqual([null, null, null]);
    await expect(scavenger.stop('current')).rejects.toMatchObject({ code: 'scavenge_not_found' });
    expect(() => scavenger.hold()()).not.toThrow();
  });

  it('are asked for once, whoever asks', async () => {
    const { scavenger, other } = await open();
    const { scavengeId } = await scavenger.start();
    await other.refresh();
    expect(other.current()).toBe(scavengeId);
    expect(other.last()).toEqual({ scavengeId, result: 'InProgress', error: null });
    expect(other.progress()).toMatchObject({ scavengeId, remainingSeconds: null });
    await expect(other.start()).rejects.toMatchObject({ code: 'scavenge_in_progress', data: { scavengeId } });
    expect(() => other.hold()).toThrowError(expect.objectContaining({ code: 'scavenge_in_progress' }));
  });

  it('are stopped within the time that the function has, or say that it takes longer', async () => {
    const { scavenger, deadline } = await open();
    const { scavengeId } = await scavenger.start();
    deadline.begin(() => 2_000);
    await expect(scavenger.stop('current')).rejects.toMatchObject({ code: 'scavenge_stopping', data: { scavengeId } });
  });

  it('are not tried or explained here, and the refusal says where', async () => {
    const { scavenger } = await open();
    for (const refused of [scavenger.startDryRun(), scavenger.explain()]) await expect(refused).rejects.toMatchObject({ code: 'bad_request', message: expect.stringContaining('--storage s3://') });
  });
});
