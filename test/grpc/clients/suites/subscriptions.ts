import { expect, test } from 'vitest';
import { failure } from '../nodes.ts';
import { numbered, take, told } from './suite.ts';
import type { Suite } from './suite.ts';

/** Subscriptions that catch up, to one stream and to all. */
export function subscriptionTests({ lib, client, stream }: Suite): void {
  const revisions = (events: readonly { readonly event?: { readonly revision: bigint } | undefined }[]): number[] =>
    events.map(({ event }) => Number(event!.revision));
  const count = (length: number, from = 0): number[] => Array.from({ length }, (_, n) => from + n);

  test('history and then what is written, in order and without a gap', async () => {
    const name = stream();
    await client().appendToStream(name, numbered(lib, 250));
    const subscription = client().subscribeToStream(name);
    const caughtUp = told(subscription, 'caughtUp');
    const confirmed = told(subscription, 'confirmation');
    const received = take(subscription, 500);
    await Promise.all([confirmed, caughtUp]);
    expect(subscription.id ?? 'confirmed').not.toBe('');
    for (let n = 0; n < 5; n++) await client().appendToStream(name, numbered(lib, 50));
    expect(revisions(await received)).toEqual(count(500));
  });

  test('from the end, from behind a number, and of a stream that comes later', async () => {
    const [name, later] = [stream(), stream()];
    await client().appendToStream(name, numbered(lib, 10));
    const atEnd = client().subscribeToStream(name, { fromRevision: lib.END });
    const behind = client().subscribeToStream(name, { fromRevision: 7n });
    const coming = client().subscribeToStream(later);
    const waiting = [take(atEnd, 1), take(behind, 3), take(coming, 2)];
    await Promise.all([told(atEnd, 'caughtUp'), told(behind, 'caughtUp'), told(coming, 'confirmation')]);
    await client().appendToStream(name, numbered(lib, 1));
    await client().appendToStream(later, numbered(lib, 2));
    expect((await Promise.all(waiting)).map(revisions)).toEqual([[10], [8, 9, 10], [0, 1]]);
  });

  test('all streams, from a position and from the end', async () => {
    const [name, other] = [stream(), stream()];
    const { position } = await client().appendToStream(name, numbered(lib, 20));
    const behind = client().subscribeToAll({ fromPosition: position! });
    const atEnd = client().subscribeToAll({ fromPosition: lib.END });
    const waiting = [take(behind, 3), take(atEnd, 3)];
    await Promise.all([told(behind, 'caughtUp'), told(atEnd, 'caughtUp')]);
    await client().appendToStream(other, numbered(lib, 3));
    for (const events of await Promise.all(waiting))
      expect(events.map(({ event }) => `${event!.streamId}/${event!.revision}`)).toEqual(
        [0, 1, 2].map((n) => `${other}/${n}`),
      );
  });

  test('what a filter takes, with checkpoints where nothing matches, from which another one goes on', async () => {
    const [name, noise] = [stream(), stream()];
    await client().appendToStream(noise, numbered(lib, 200));
    const checkpoints: { readonly commit: bigint; readonly prepare: bigint }[] = [];
    const filter = lib.streamNameFilter({
      prefixes: [name],
      checkpointInterval: 1,
      maxSearchWindow: 10,
      checkpointReached: (_, position) => {
        checkpoints.push(position);
      },
    });
    const subscription = client().subscribeToAll({ fromPosition: lib.START, filter });
    const received = take(subscription, 2);
    await told(subscription, 'caughtUp');
    expect(checkpoints.length).toBeGreaterThan(15);
    await client().appendToStream(name, numbered(lib, 2));
    expect(revisions(await received)).toEqual([0, 1]);
    for (let i = 1; i < checkpoints.length; i++)
      expect(checkpoints[i]!.commit).toBeGreaterThan(checkpoints[i - 1]!.commit);
    const next = client().subscribeToAll({
      fromPosition: checkpoints.at(-1)!,
      filter: lib.streamNameFilter({ regex: `^${name}$` }),
    });
    expect(revisions(await take(next, 2))).toEqual([0, 1]);
  });

  test('types, and all that is not of the system', async () => {
    const name = stream();
    const byType = take(client().subscribeToAll({ filter: lib.eventTypeFilter({ prefixes: [`${name}-odd`] }) }), 2);
    const plain = take(client().subscribeToAll({ filter: lib.excludeSystemEvents() }), 5);
    for (let n = 0; n < 4; n++)
      await client().appendToStream(name, numbered(lib, 1, n, n % 2 === 1 ? `${name}-odd` : `${name}-even`));
    expect(revisions(await byType)).toEqual([1, 3]);
    expect((await plain).every(({ event }) => !event!.type.startsWith('$'))).toBe(true);
  });

  test('links are followed, and one that leads nowhere comes alone', async () => {
    const [name, links] = [stream(), stream()];
    await client().appendToStream(name, numbered(lib, 1));
    await client().appendToStream(
      links,
      [`0@${name}`, `9@${name}`].map((text) => lib.binaryEvent({ type: '$>', data: Buffer.from(text) })),
    );
    const [found, missing] = await take(client().subscribeToStream(links, { resolveLinkTos: true }), 2);
    expect([found!.event!.streamId, found!.link!.revision, missing!.event, missing!.link!.revision]).toEqual([
      name,
      0n,
      undefined,
      1n,
    ]);
  });

  test('ends when it is told to, and with an error when the stream is gone for good', async () => {
    const name = stream();
    await client().appendToStream(name, numbered(lib, 3));
    const left = client().subscribeToStream(name);
    const events: unknown[] = [];
    left.on('data', (event) => {
      events.push(event);
    });
    await told(left, 'caughtUp');
    const ended = told(left, 'end');
    await left.unsubscribe();
    await ended;
    await client().appendToStream(name, numbered(lib, 3));
    expect(events).toHaveLength(3);

    const subscription = client().subscribeToStream(name, { fromRevision: lib.END });
    const end = failure(subscription);
    await told(subscription, 'caughtUp');
    await client().tombstoneStream(name);
    const error = await end;
    expect([error.constructor.name, error['streamName']]).toEqual(['StreamDeletedError', name]);
    expect((await failure(client().subscribeToStream(name))).constructor.name).toBe('StreamDeletedError');
  });

  test('many at a time over one connection', async () => {
    const name = stream();
    await client().appendToStream(name, numbered(lib, 5));
    const all = Array.from({ length: 50 }, () => take(client().subscribeToStream(name), 10));
    await client().appendToStream(name, numbered(lib, 5));
    for (const events of await Promise.all(all)) expect(revisions(events)).toEqual(count(10));
  });

  test('a reader that takes its time gets everything', async () => {
    const name = stream();
    const subscription = client().subscribeToStream(name, { fromRevision: lib.START }, { highWaterMark: 1 });
    const received: number[] = [];
    const done = (async () => {
      for await (const { event } of subscription) {
        received.push(Number(event!.revision));
        if (received.length % 100 === 0) await new Promise(setImmediate);
        if (received.length === 1_000) break;
      }
    })();
    for (let n = 0; n < 10; n++) await client().appendToStream(name, numbered(lib, 100));
    await done;
    expect(received).toEqual(count(1_000));
  });
}
