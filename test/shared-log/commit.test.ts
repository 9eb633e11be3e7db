import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import type { ObjectLogOptions } from '../../core/shared-log/api.ts';
import { commitKey } from '../../core/shared-log/format/object-keys.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { newestManifest } from '../../core/shared-log/format/manifest.ts';
import { silentLog } from '../../core/ports/log.ts';
import { ANY, NO_STREAM } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { compact } from './compact.ts';
import { Bucket, event, HookedObjects, SMALL } from './setup.ts';

type Opened = Awaited<ReturnType<Bucket['open']>>;

const ids = async ({ store }: Opened, stream = 's') =>
  (await store.readStream(stream, { direction: 'forward', from: 0, count: 100 })).events.map(({ id }) => id);
const unknown = () => new SkuaError('outcome_unknown', 'Lost.', {});

async function faulty(
  bucket: Bucket,
  options: ObjectLogOptions = {},
): Promise<Opened & { readonly faults: FaultyObjects }> {
  const faults = new FaultyObjects(bucket.objects);
  return Object.assign(await bucket.open(options, () => faults), { faults });
}

async function hooked(
  bucket: Bucket,
  options: ObjectLogOptions = {},
): Promise<Opened & { readonly hooks: HookedObjects }> {
  const hooks = new HookedObjects(bucket.objects);
  return Object.assign(await bucket.open(options, () => hooks), { hooks });
}

/** What a tick and the age of removal leave of the commits so far. */
async function compactAndRemove(bucket: Bucket, number: number): Promise<void> {
  await compact(bucket.world());
  await bucket.objects.remove(Array.from({ length: number }, (_, i) => commitKey(i + 1)));
}

describe('a commit whose reply was lost', () => {
  test.each(['before', 'after', 'late', 'throttle'] as const)(
    '%s its effect is put there again and counts once',
    async (fault) => {
      const bucket = new Bucket();
      const instance = await faulty(bucket);
      const [first, second] = [event(), event()];
      await instance.store.append('s', NO_STREAM, [event()]);
      instance.faults.faultAt(1, fault);
      expect(await instance.store.append('s', 0, [first])).toMatchObject({ lastEventNumber: 1, isRepeat: false });
      expect(await instance.store.append('s', 1, [second])).toMatchObject({ lastEventNumber: 2 });
      await instance.faults.settle();
      expect((await ids(await bucket.open())).slice(1)).toEqual([first.id, second.id]);
      const creates = instance.faults.calls
        .filter(({ op, key }) => op === 'create' && key.startsWith('log/'))
        .map(({ key }) => key);
      expect(creates).toEqual([commitKey(1), commitKey(2), commitKey(2), commitKey(3)]);
    },
  );

  test("is another writer's if that was first", async () => {
    const bucket = new Bucket();
    const [instance, other] = [await hooked(bucket), await bucket.open()];
    let n = 0;
    instance.hooks.onCreate = async (_, create) => {
      if (++n > 1) return create();
      await other.store.append('s', ANY, [event()]);
      throw unknown();
    };
    await expect(instance.store.append('s', NO_STREAM, [event()])).rejects.toMatchObject({
      code: 'wrong_expected_version',
    });
    expect(await ids(other)).toHaveLength(1);
  });

  test('is unknown after the deadline; then nothing else is written at its number, and the next write finds out first', async () => {
    const bucket = new Bucket();
    const instance = await faulty(bucket, { commitDeadlineMs: 3_000 });
    instance.faults.faultWhen((op) => (op === 'create' ? 'before' : undefined));
    const [first, second] = [event(), event()];
    await expect(instance.store.append('s', ANY, [first])).rejects.toMatchObject({
      code: 'commit_outcome_unknown',
      data: { number: 1 },
    });
    await expect(instance.store.append('s', ANY, [second])).rejects.toMatchObject({
      code: 'storage_unreachable',
      data: { number: 1 },
    });
    instance.faults.faultWhen(undefined);
    expect(await instance.store.append('s', ANY, [second])).toMatchObject({ lastEventNumber: 1 });
    expect(await ids(await bucket.open())).toEqual([first.id, second.id]);
    expect(await ids(instance)).toEqual([first.id, second.id]);
    expect(await instance.store.append('s', ANY, [first])).toMatchObject({ lastEventNumber: 0, isRepeat: true });
  });

  test('is found by a read when it arrived after all', async () => {
    const bucket = new Bucket();
    const instance = await hooked(bucket, { commitDeadlineMs: 100 });
    const late: (() => Promise<unknown>)[] = [];
    instance.hooks.onCreate = async (_, create) => {
      late.push(create);
      throw unknown();
    };
    const first = event();
    await expect(instance.store.append('s', ANY, [first])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    await expect(instance.store.readEvent('s', 'last')).rejects.toMatchObject({ code: 'stream_not_found' });
    await late[0]!();
    expect(await ids(instance)).toEqual([first.id]);
    instance.hooks.onCreate = null;
    instance.counting.reset();
    expect(await instance.store.append('s', 0, [event()])).toMatchObject({ lastEventNumber: 1 });
    expect(instance.counting.counts()).toMatchObject({ puts: 1, gets: 0 });
  });

  test('has lost when a read finds another one at its number', async () => {
    const bucket = new Bucket();
    const [instance, other] = [await hooked(bucket, { commitDeadlineMs: 100 }), await bucket.open()];
    instance.hooks.onCreate = async () => {
      throw unknown();
    };
    const first = event();
    await expect(instance.store.append('s', ANY, [first])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    const winner = event();
    await other.store.append('s', ANY, [winner]);
    expect(await ids(instance)).toEqual([winner.id]);
    instance.hooks.onCreate = null;
    expect(await instance.store.append('s', 0, [first])).toMatchObject({ lastEventNumber: 1, isRepeat: false });
    expect(await ids(other)).toEqual([winner.id, first.id]);
  });
});

describe('what the store refuses for certain', () => {
  test('is told as it is, and the log goes on', async () => {
    const bucket = new Bucket();
    const instance = await hooked(bucket);
    instance.hooks.onCreate = async () => {
      throw new SkuaError('storage_denied', 'Not you.', {});
    };
    await expect(instance.store.append('s', ANY, [event()])).rejects.toMatchObject({ code: 'storage_denied' });
    instance.hooks.onCreate = null;
    expect(await instance.store.append('s', NO_STREAM, [event()])).toMatchObject({ lastEventNumber: 0 });
  });

  test('decides nothing about an earlier request for the same commit', async () => {
    const bucket = new Bucket();
    const instance = await hooked(bucket, { commitDeadlineMs: 1_000 });
    let n = 0;
    instance.hooks.onCreate = async (_, create) => {
      if (++n > 1) throw new SkuaError('storage_denied', 'Not you.', {});
      await create();
      throw unknown();
    };
    const first = event();
    await expect(instance.store.append('s', ANY, [first])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    expect(await ids(await bucket.open())).toEqual([first.id]);
  });

  test('is logged once when it begins and once when it ends, however many requests meet it', async () => {
    const bucket = new Bucket();
    const hooks = new HookedObjects(bucket.objects);
    const lines: string[] = [];
    const note = (line: string): void => {
      lines.push(line);
    };
    const instance = await openObjectStore(
      { ...bucket.world(), objects: hooks, log: { ...silentLog, error: note, info: note } },
      SMALL,
    );
    hooks.onCreate = async () => {
      throw new SkuaError('storage_denied', 'Read-only.', {});
    };
    for (let i = 0; i < 3; i++)
      await expect(instance.store.append('s', ANY, [event()])).rejects.toMatchObject({ code: 'storage_denied' });
    hooks.onCreate = null;
    for (let i = 0; i < 2; i++) await instance.store.append('s', ANY, [event()]);
    expect(lines).toEqual(['nothing can be committed', 'commits work again']);
    await instance.close();
  });

  test('a failing read of the winner says nothing of who won', async () => {
    const bucket = new Bucket();
    const [instance, other] = [await hooked(bucket), await bucket.open()];
    await other.store.append('s', ANY, [event()]);
    instance.hooks.onGet = async () => {
      throw new SkuaError('storage_unreachable', 'Gone.', {});
    };
    const second = event();
    await expect(instance.store.append('s', ANY, [second])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    instance.hooks.onGet = null;
    expect(await ids(instance)).toHaveLength(1);
    expect(await instance.store.append('s', ANY, [second])).toMatchObject({ lastEventNumber: 1, isRepeat: false });
  });
});

/**
 * A store that creates the object and says that it was there: below a network file system the reply was lost, and its
 * repeat found its own work.
 */
const lateTwin = async (_key: string, create: () => Promise<'created' | 'exists'>) => {
  await create();
  return 'exists' as const;
};

describe('a create that took the number and was told that it is taken', () => {
  test('is committed by its nonce', async () => {
    const bucket = new Bucket();
    const instance = await hooked(bucket);
    instance.hooks.onCreate = lateTwin;
    expect(await instance.store.append('s', ANY, [event()])).toMatchObject({ lastEventNumber: 0, isRepeat: false });
  });

  test('is not told as failed where the look at it fails', async () => {
    const bucket = new Bucket();
    const instance = await hooked(bucket);
    instance.hooks.onCreate = lateTwin;
    instance.hooks.onGet = async () => {
      throw new SkuaError('storage_unreachable', 'Gone.', {});
    };
    const first = event();
    await expect(instance.store.append('s', ANY, [first])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    instance.hooks.onCreate = instance.hooks.onGet = null;
    expect(await instance.store.append('s', ANY, [first])).toMatchObject({ lastEventNumber: 0, isRepeat: true });
  });

  test('is not told as failed, nor made again, where its object has gone since', async () => {
    const bucket = new Bucket();
    const instance = await hooked(bucket);
    instance.hooks.onCreate = async (key, create) => {
      const outcome = await lateTwin(key, create);
      await compactAndRemove(bucket, 1);
      bucket.clock.stand(7_200_000, true);
      return outcome;
    };
    const first = event();
    await expect(instance.store.append('s', ANY, [first])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    instance.hooks.onCreate = null;
    expect(await instance.store.append('s', ANY, [first])).toMatchObject({ lastEventNumber: 0, isRepeat: true });
    expect(await ids(instance)).toEqual([first.id]);
  });
});

describe.each([
  ['both clocks', true],
  ['the wall clock alone', false],
])('a process that stands still during a commit, by %s,', (_, monotonic) => {
  test('does not believe that it won where commits had been removed', async () => {
    const bucket = new Bucket();
    const [instance, other] = [await hooked(bucket), await bucket.open()];
    instance.hooks.onCreate = async (_key, create) => {
      for (let i = 0; i < 3; i++) await other.store.append('s', ANY, [event()]);
      await compactAndRemove(bucket, 3);
      bucket.clock.stand(7_200_000, monotonic);
      return create();
    };
    const lost = event();
    await expect(instance.store.append('s', ANY, [lost])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    instance.hooks.onCreate = null;
    expect(await ids(instance)).toHaveLength(3);
    expect(await instance.store.append('s', 2, [lost])).toMatchObject({ lastEventNumber: 3, isRepeat: false });
    expect(await ids(other)).toEqual(await ids(instance));
  });

  test('says that it does not know where its own commit was taken into files meanwhile', async () => {
    const bucket = new Bucket();
    const instance = await hooked(bucket);
    instance.hooks.onCreate = async (_key, create) => {
      const reply = await create();
      await compactAndRemove(bucket, 1);
      bucket.clock.stand(7_200_000, monotonic);
      return reply;
    };
    const first = event();
    await expect(instance.store.append('s', ANY, [first])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    instance.hooks.onCreate = null;
    expect(await instance.store.append('s', ANY, [first])).toMatchObject({ lastEventNumber: 0, isRepeat: true });
  });

  test('does not know either where another writer seems to have been first and its commit was taken into files', async () => {
    const bucket = new Bucket();
    const [instance, other] = [await hooked(bucket), await bucket.open()];
    instance.hooks.onCreate = async (_key, create) => {
      instance.hooks.onCreate = null;
      await other.store.append('s', ANY, [event()]);
      await compact(bucket.world());
      bucket.clock.stand(7_200_000, monotonic);
      return create();
    };
    const second = event();
    await expect(instance.store.append('s', ANY, [second])).rejects.toMatchObject({ code: 'commit_outcome_unknown' });
    expect(await instance.store.append('s', ANY, [second])).toMatchObject({ lastEventNumber: 1, isRepeat: false });
  });

  test('knows that it won where no manifest has taken in its number, with one LIST', async () => {
    const bucket = new Bucket();
    const instance = await hooked(bucket);
    instance.hooks.onCreate = async (_key, create) => {
      const reply = await create();
      bucket.clock.stand(7_200_000, monotonic);
      return reply;
    };
    instance.counting.reset();
    expect(await instance.store.append('s', NO_STREAM, [event()])).toMatchObject({ lastEventNumber: 0 });
    expect(instance.counting.counts()).toMatchObject({ puts: 1, lists: 1, gets: 0 });
  });

  test('does not take an absent object for the end of the log', async () => {
    const bucket = new Bucket();
    const [instance, other] = [await hooked(bucket), await bucket.open()];
    instance.hooks.onGet = async (_key, get) => {
      instance.hooks.onGet = null;
      for (let i = 0; i < 3; i++) await other.store.append('s', ANY, [event()]);
      await compactAndRemove(bucket, 3);
      bucket.clock.stand(7_200_000, monotonic);
      return get();
    };
    expect((await instance.store.readEvent('s', 'last')).number).toBe(2);
  });
});

test('an instance that nobody used for a while looks for the manifest before it writes', async () => {
  const bucket = new Bucket();
  const [instance, other] = [await bucket.open(), await bucket.open()];
  await instance.store.append('s', ANY, [event()]);
  for (let i = 0; i < 5; i++) await other.store.append('s', ANY, [event()]);
  await compactAndRemove(bucket, 6);
  bucket.clock.stand(200_000);
  instance.counting.reset();
  expect(await instance.store.append('s', ANY, [event()])).toMatchObject({ lastEventNumber: 6 });
  expect(instance.counting.counts()).toMatchObject({ puts: 1 });
  expect((await newestManifest(bucket.objects, nodeDigests))!.boundary).toBe(7);
});

test('a store that lies about what it holds is found out', async () => {
  const bucket = new Bucket();
  const [instance, other] = [await bucket.open(), await bucket.open()];
  await other.store.append('s', ANY, [event()]);
  const bytes = (await bucket.objects.get(commitKey(1)))!;
  bytes[100]! ^= 1;
  await bucket.objects.put(commitKey(1), bytes);
  await expect(instance.store.readEvent('s', 0)).rejects.toMatchObject({
    code: 'log_corrupt',
    data: { key: commitKey(1) },
  });
});
