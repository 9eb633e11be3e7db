import { describe, expect, test } from 'vitest';
import { putI32 } from '../../../core/base/bytes.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { commitKey } from '../../../core/shared-log/format/object-keys.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { ANY } from '../../../core/streams/api.ts';
import { redact } from '../../../core/streams/redact/redact.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { FaultyStorage } from '../../support/faulty-storage.ts';
import { listAll } from '../../../core/ports/object-store.ts';
import { worldOf } from '../../shared-log/setup.ts';
import { Cluster, event } from './kit.ts';
import { readRawLog } from '../../scavenge/raw-log.ts';

const FORWARD = { direction: 'forward', from: 0, count: 100 } as const;

/** Lets time pass until the promise has settled. */
async function passing<T>(cluster: Cluster, work: Promise<T>, stepMs = 100): Promise<T> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
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
    const given = one.log.waitForCommit(one.log.applied + 1, new AbortController().signal);
    expect(await passing(cluster, one.store.append('s', 0, [event('while')]))).toMatchObject({ firstEventNumber: 1 });
    expect(cluster.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(6_500);
    expect(one.log).toMatchObject({ isCaughtUp: false, trouble: { code: 'disk_full' } });
    expect(one.log.lag.commits).toBe(1);
    expect((await one.store.readStream('s', FORWARD)).events.map(({ type }) => type)).toEqual(['before']);
    await expect(one.store.append('s', ANY, [event('refused')])).rejects.toMatchObject({ code: 'not_ready' });
    // Others are given it though it is not in this copy.
    expect(await given).toBe(true);
    await two.log.takePushed(one.log.recent(two.log.applied + 1, 65_536)!);
    expect((await two.store.readStream('s', FORWARD)).events.map(({ type }) => type)).toEqual(['before', 'while']);
    await two.store.append('s', 1, [event('elsewhere')]);
    disk.failWhen(undefined);
    await cluster.clock.advance(2_000);
    expect(one.log).toMatchObject({ isCaughtUp: true, trouble: null, applied: two.log.applied });
    await one.store.append('s', 2, [event('after')]);
    expect((await one.store.readStream('s', FORWARD)).events.map(({ type }) => type)).toEqual([
      'before',
      'while',
      'elsewhere',
      'after',
    ]);
    await two.log.refresh();
    await Promise.all([one.close(), two.close()]);
    expect(await readRawLog(disk)).toEqual(await readRawLog(two.storage));
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
    expect((await readRawLog(disk.restart('drop'))).length).toBe(3);
  });
});

describe('what is under way while a copy is opened again', () => {
  test('is told only that it may be asked again: who follows, who writes, who reads', async () => {
    const cluster = new Cluster();
    const disk = new FaultyStorage();
    const one = await cluster.open(disk);
    await one.store.append('s', ANY, [event('before')]);
    await redact(one.store, new SeededIds(9), 'ann', { stream: 's', numbers: [0], reason: 'r' });
    const [read] = (await one.store.readStream('s', FORWARD)).events;
    const held = { ...read!, isRedacted: false };
    const following = (async () => {
      for await (const _ of one.store.subscribeToStream('s', { after: -1, signal: new AbortController().signal }));
    })();
    following.catch(() => {});
    let isFailing = true;
    disk.failWhen((op, path) => {
      if (op !== 'sync' || !path.startsWith('chunk') || !isFailing) return undefined;
      isFailing = false;
      return 'sync_failed';
    });
    // Of the two, the first meets the disk, and the second waits in the queue of a store that closes.
    const first = one.store.append('s', ANY, [event('while')]);
    const second = first.then(() => one.store.append('s', ANY, [event('behind')]));
    // Asked in the moment in which the second one is refused: soon the copy is open again.
    const reading = second.catch(() => one.store.readStream('s', FORWARD));
    reading.catch(() => {});
    const { end } = one.store;
    const endMeanwhile = second.then(
      () => 0,
      () => one.store.end,
    );
    // What was read before is on its way to consumers meanwhile, and marks hide it all the same.
    const heldMeanwhile = second.then(
      () => null,
      () => one.store.redactions.shown(held),
    );
    await passing(cluster, first);
    expect(await heldMeanwhile).toMatchObject({ isRedacted: true });
    await expect(second).rejects.toMatchObject({ code: 'not_ready' });
    await expect(reading).rejects.toMatchObject({ code: 'not_ready' });
    expect(await endMeanwhile).toBeGreaterThanOrEqual(end);
    await expect(passing(cluster, following)).rejects.toMatchObject({ code: 'not_ready' });
    for (let i = 0; i < 100 && !one.log.isCaughtUp; i++) await cluster.clock.advance(100);
    expect((await one.store.readStream('s', FORWARD)).events.map(({ type }) => type)).toEqual(['before', 'while']);
    await one.close();
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
    await expect(one.store.append('s', ANY, [event('x')])).rejects.toMatchObject({
      code: expect.stringMatching(/log_diverged|not_ready/),
    });
    expect(await failed).toMatchObject({ code: 'log_diverged' });
    await foreign.close();
    await one.close();
    await expect(cluster.open(one.storage)).rejects.toMatchObject({ code: 'log_diverged' });
  });
});

describe('a newer format', () => {
  test('a commit of it is not taken in, whatever it holds, and nothing is changed', async () => {
    const cluster = new Cluster();
    const [one, two] = [await cluster.open(), await cluster.open()];
    await one.store.append('s', ANY, [event('known')]);
    await two.log.refresh();
    await one.store.append('s', ANY, [event('newer')]);
    const key = commitKey(2);
    const bytes = (await cluster.objects.get(key))!;
    bytes[8] = 3;
    putI32(bytes, 76, nodeDigests.crc32(bytes.subarray(0, 76)) | 0);
    await cluster.objects.put(key, bytes);
    await expect(two.log.refresh()).rejects.toMatchObject({
      code: 'format_too_new',
      data: { format: 3, formatMax: 2 },
    });
    expect(two.log.applied).toBe(1);
    await one.close();
    await two.close();
  });

  test('a member that may not take part commits nothing, and reads on', async () => {
    const cluster = new Cluster();
    let refusal: SkuaError | null = null;
    const one = await cluster.open(undefined, { refusal: () => refusal });
    await one.store.append('s', ANY, [event('before')]);
    refusal = new SkuaError('format_too_new', 'Commits are written in format 2.');
    await expect(one.store.append('s', ANY, [event('refused')])).rejects.toMatchObject({ code: 'format_too_new' });
    expect((await one.store.readStream('s', FORWARD)).events).toHaveLength(1);
    refusal = null;
    await one.store.append('s', 0, [event('after')]);
    await one.close();
  });
});
