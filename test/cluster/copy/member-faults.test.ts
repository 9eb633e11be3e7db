import { describe, expect, test } from 'vitest';
import { ANY } from '../../../core/streams/api.ts';
import { openObjectStore } from '../../../core/object-log/instance/instance.ts';
import { FaultyStorage } from '../../support/faulty-storage.ts';
import { listAll } from '../../../core/ports/object-store.ts';
import { worldOf } from '../../object-log/setup.ts';
import { Cluster, event } from './kit.ts';
import { recordsOf } from './records.ts';

const FORWARD = { direction: 'forward', from: 0, count: 100 } as const;

/** Lets time pass until the promise has settled. */
async function passing<T>(cluster: Cluster, work: Promise<T>, stepMs = 100): Promise<T> {
  let isDone = false;
  const done = work.finally(() => { isDone = true; });
  done.catch(() => {});
  for (let i = 0; i < 5_000 && !isDone; i++) await cluster.clock.advance(stepMs);
  return done;
}

async function snapshotOf({ objects }: Cluster): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  for await (const { key } of listAll(objects, '')) found.set(key, (await objects.get(key))!);
  return found;
}

async function putBack({ objects }: Cluster, snapshot: Map<string, Uint8Array>): Promise<void> {
  for await (const { key } of listAll(objects, '')) if (!snapshot.has(key)) await objects.remove([key]);
}

describe('a copy whose disk is full', () => {
  test('what is committed is answered as success within 5 s; it takes no writes until there is space; then it has all', async () => {
    const cluster = new Cluster();
    const disk = new FaultyStorage();
    const [one, two] = [await cluster.open(disk), await cluster.open()];
    await one.store.append('s', ANY, [event('before')]);
    disk.failWhen((op) => (op === 'writeAt' || op === 'create' ? 'disk_full' : undefined));
    const startedMs = cluster.clock.monotonicMs();
    expect(await passing(cluster, one.store.append('s', 0, [event('while')]))).toMatchObject({ firstEventNumber: 1 });
    expect(cluster.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(6_500);
    expect(one.log).toMatchObject({ isCaughtUp: false, trouble: { code: 'disk_full' } });
    expect(one.log.lag.commits).toBe(1);
    expect((await one.store.readStream('s', FORWARD)).events.map(({ type }) => type)).toEqual(['before']);
    await expect(one.store.append('s', ANY, [event('refused')])).rejects.toMatchObject({ code: 'not_ready' });
    await two.log.refresh();
    expect((await two.store.readStream('s', FORWARD)).events.map(({ type }) => type)).toEqual(['before', 'while']);
    await two.store.append('s', 1, [event('elsewhere')]);
    disk.failWhen(undefined);
    await cluster.clock.advance(2_000);
    expect(one.log).toMatchObject({ isCaughtUp: true, trouble: null, applied: two.log.applied });
    await one.store.append('s', 2, [event('after')]);
    expect((await one.store.readStream('s', FORWARD)).events.map(({ type }) => type)).toEqual(['before', 'while', 'elsewhere', 'after']);
    await two.log.refresh();
    await Promise.all([one.close(), two.close()]);
    expect(await recordsOf(disk)).toEqual(await recordsOf(two.storage));
  });
});

describe('a copy whose sync failed', () => {
  test('is opened again by itself, and the write is a success', async () => {
    const cluster = new Cluster();
    const disk = new FaultyStorage();
    const one = await cluster.open(disk);
    await one.store.append('s', ANY, [event('before')]);
    let isFailing = true;
    disk.failWhen((op, path) => {
      if (op !== 'sync' || !path.startsWith('chunk') || !isFailing) return undefined;
      isFailing = false;
      return 'sync_failed';
    });
    expect(await passing(cluster, one.store.append('s', 0, [event('while')]))).toMatchObject({ firstEventNumber: 1 });
    for (let i = 0; i < 100 && !one.log.isCaughtUp; i++) await cluster.clock.advance(100);
    expect((await one.store.readStream('s', FORWARD)).events.map(({ type }) => type)).toEqual(['before', 'while']);
    await one.store.append('s', 1, [event('after')]);
    await one.close();
    // Whoever opens it next, after the power was lost, finds all of it.
    expect((await recordsOf(disk.restart('drop'))).length).toBe(3);
  });
});

describe('another log than before', () => {
  test('an older bucket that was put back is noticed at the next look, and nothing is written', async () => {
    const cluster = new Cluster();
    const one = await cluster.open();
    await one.store.append('s', ANY, [event('old')]);
    const older = await snapshotOf(cluster);
    await one.store.append('s', ANY, [event('lost')]);
    await putBack(cluster, older);
    // Somebody else wins the number again, and a tick has made a manifest.
    const foreign = await openObjectStore(worldOf(cluster.objects, { clock: cluster.clock, seed: 99 }));
    await foreign.store.append('other', ANY, [event('again')]);
    await foreign.store.append('other', ANY, [event('more')]);
    const failed = one.failed;
    await one.log.refresh().catch(() => {});
    await expect(one.store.append('s', ANY, [event('x')])).rejects.toMatchObject({ code: expect.stringMatching(/log_diverged|not_ready/) });
    expect(await failed).toMatchObject({ code: 'log_diverged' });
    await foreign.close();
    await one.close();
    await expect(cluster.open(one.storage)).rejects.toMatchObject({ code: 'log_diverged' });
  });
});
