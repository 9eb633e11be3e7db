import { CommandHandler, IllegalStateError, STREAM_DOES_NOT_EXIST, STREAM_EXISTS } from '@event-driven-io/emmett';
import type { Event } from '@event-driven-io/emmett';
import { getEventStoreDBEventStore } from '@event-driven-io/emmett-esdb';
import * as eventstore from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ClientNode } from './nodes.ts';

/**
 * An application over Emmett: a depot that keeps parcels. Commands are decided on a stream of their own each, with the
 * version that it had; a view of all parcels follows `$all`, keeps its place in a stream of the same store, and goes on
 * from there.
 */
type ParcelEvent =
  | Event<'ParcelArrived', { readonly parcel: string; readonly grams: number }>
  | Event<'ParcelMoved', { readonly parcel: string; readonly shelf: string }>
  | Event<'ParcelCollected', { readonly parcel: string; readonly by: string }>;

interface Parcel {
  readonly status: 'unknown' | 'here' | 'collected';
  readonly shelf: string | null;
  readonly moves: number;
}

const UNKNOWN: Parcel = { status: 'unknown', shelf: null, moves: 0 };

function evolve(parcel: Parcel, { type, data }: ParcelEvent): Parcel {
  switch (type) {
    case 'ParcelArrived':
      return { ...parcel, status: 'here' };
    case 'ParcelMoved':
      return { ...parcel, shelf: data.shelf, moves: parcel.moves + 1 };
    case 'ParcelCollected':
      return { ...parcel, status: 'collected', shelf: null };
  }
}

const decide = {
  arrive:
    (parcel: string, grams: number) =>
    (state: Parcel): ParcelEvent => {
      if (state.status !== 'unknown') throw new IllegalStateError(`Parcel ${parcel} has arrived already.`);
      return { type: 'ParcelArrived', data: { parcel, grams } };
    },
  move:
    (parcel: string, shelf: string) =>
    (state: Parcel): ParcelEvent[] => {
      if (state.status !== 'here') throw new IllegalStateError(`Parcel ${parcel} is not here.`);
      return state.shelf === shelf ? [] : [{ type: 'ParcelMoved', data: { parcel, shelf } }];
    },
  collect:
    (parcel: string, by: string) =>
    (state: Parcel): ParcelEvent => {
      if (state.status !== 'here') throw new IllegalStateError(`Parcel ${parcel} is not here.`);
      return { type: 'ParcelCollected', data: { parcel, by } };
    },
};

const handle = CommandHandler<Parcel, ParcelEvent>({
  evolve,
  initialState: () => UNKNOWN,
  mapToStreamId: (id) => `parcel-${id}`,
});

/** `isExpectedVersionConflictError` does not know the errors of the adapter, which carries a class of its own. */
const CONFLICT = { errorCode: 412 };
const CHECKPOINTS = 'view-of-parcels-checkpoints';

/** Parcels on each shelf, followed over `$all`. */
class ShelfView {
  readonly shelves = new Map<string, Set<string>>();
  readonly #client: eventstore.EventStoreDBClient;
  #seen = 0;

  constructor(client: eventstore.EventStoreDBClient) {
    this.#client = client;
  }

  /** Follows until this holds, from the place that was kept; says how many events that took. */
  async until(holds: () => boolean): Promise<number> {
    const begun = this.#seen;
    const subscription = this.#client.subscribeToAll({
      fromPosition: await this.#place(),
      filter: eventstore.streamNameFilter({ prefixes: ['parcel-'] }),
    });
    for await (const { event } of subscription) {
      this.#apply(event as unknown as ParcelEvent);
      this.#seen++;
      await this.#client.appendToStream(
        CHECKPOINTS,
        eventstore.jsonEvent({
          type: 'Checkpoint',
          data: { commit: String(event!.position!.commit), prepare: String(event!.position!.prepare) },
        }),
      );
      if (holds()) break;
    }
    return this.#seen - begun;
  }

  async #place(): Promise<eventstore.Position | typeof eventstore.START> {
    try {
      for await (const { event } of this.#client.readStream(CHECKPOINTS, {
        direction: eventstore.BACKWARDS,
        fromRevision: eventstore.END,
        maxCount: 1,
      })) {
        const { commit, prepare } = event!.data as unknown as { readonly commit: string; readonly prepare: string };
        return { commit: BigInt(commit), prepare: BigInt(prepare) };
      }
    } catch (error) {
      if (!(error instanceof eventstore.StreamNotFoundError)) throw error;
    }
    return eventstore.START;
  }

  #apply({ type, data }: ParcelEvent): void {
    for (const parcels of this.shelves.values()) if (type !== 'ParcelArrived') parcels.delete(data.parcel);
    if (type === 'ParcelMoved')
      this.shelves.set(data.shelf, (this.shelves.get(data.shelf) ?? new Set()).add(data.parcel));
  }

  on(shelf: string): string[] {
    return [...(this.shelves.get(shelf) ?? [])].sort();
  }
}

describe.each([false, true])('an application over Emmett, with TLS: %s', (isSecure) => {
  let node: ClientNode;
  let client: eventstore.EventStoreDBClient;
  beforeAll(async () => {
    node = await ClientNode.start(isSecure);
    client = eventstore.EventStoreDBClient.connectionString(node.connectionString());
  });
  afterAll(async () => {
    // Not waited for: of a subscription that was left while it had more to give, the client waits for an end that it
    // does not read.
    void client.dispose();
    await node.stop();
  });

  test('commands are decided on what was read, and appended if nothing came between', async () => {
    const store = getEventStoreDBEventStore(client);
    const arrived = await handle(store, '17', decide.arrive('17', 750));
    expect([arrived.newState.status, arrived.nextExpectedStreamVersion]).toEqual(['here', 0n]);
    const moved = await handle(store, '17', decide.move('17', 'A1'), { expectedStreamVersion: 0n });
    expect([moved.newState, moved.nextExpectedStreamVersion]).toEqual([{ status: 'here', shelf: 'A1', moves: 1 }, 1n]);
    expect((await handle(store, '17', decide.move('17', 'A1'))).nextExpectedStreamVersion).toBe(1n);
    await expect(handle(store, '17', decide.arrive('17', 1))).rejects.toThrow('arrived already');
    const stale = await handle(store, '17', decide.collect('17', 'kim'), { expectedStreamVersion: 0n }).catch(
      (error: unknown) => error,
    );
    expect(stale).toMatchObject(CONFLICT);
    const { events, currentStreamVersion } = await store.readStream<ParcelEvent>('parcel-17');
    expect(events.map(({ type }) => type)).toEqual(['ParcelArrived', 'ParcelMoved']);
    expect([currentStreamVersion, events[1]!.metadata.streamPosition, events[1]!.metadata.streamName]).toEqual([
      1n,
      1n,
      'parcel-17',
    ]);
    expect(events[1]!.metadata.globalPosition).toBeGreaterThan(events[0]!.metadata.globalPosition);
  });

  test('expected versions: a new stream, one that exists, and neither', async () => {
    const store = getEventStoreDBEventStore(client);
    const event: ParcelEvent = { type: 'ParcelArrived', data: { parcel: '18', grams: 1 } };
    await expect(
      store.appendToStream('parcel-18', [event], { expectedStreamVersion: STREAM_EXISTS }),
    ).rejects.toThrow();
    await store.appendToStream('parcel-18', [event], { expectedStreamVersion: STREAM_DOES_NOT_EXIST });
    const conflict = await store
      .appendToStream('parcel-18', [event], { expectedStreamVersion: STREAM_DOES_NOT_EXIST })
      .catch((error: unknown) => error);
    expect(conflict).toMatchObject(CONFLICT);
    expect(await store.readStream('parcel-nobody-knows')).toMatchObject({ streamExists: false, events: [] });
  });

  test('of many that decide at once one after another is let in, and none is lost', async () => {
    const store = getEventStoreDBEventStore(client);
    await handle(store, '19', decide.arrive('19', 1));
    const busy = CommandHandler<Parcel, ParcelEvent>({
      evolve,
      initialState: () => UNKNOWN,
      mapToStreamId: (id) => `parcel-${id}`,
      retry: {
        onVersionConflict: {
          retries: 100,
          minTimeout: 1,
          factor: 1,
          shouldRetryError: (error) => (error as typeof CONFLICT).errorCode === CONFLICT.errorCode,
        },
      },
    });
    await Promise.all(Array.from({ length: 8 }, (_, n) => busy(store, '19', decide.move('19', `B${n}`))));
    const { state } = await store.aggregateStream<Parcel, ParcelEvent>('parcel-19', {
      evolve,
      initialState: () => UNKNOWN,
    });
    expect(state.moves).toBe(8);
  });

  test('a view follows all parcels, keeps its place, and goes on from there', async () => {
    const store = getEventStoreDBEventStore(client);
    for (const id of ['30', '31', '32']) {
      await handle(store, id, decide.arrive(id, 5));
      await handle(store, id, decide.move(id, 'C1'));
    }
    const view = new ShelfView(client);
    expect(await view.until(() => view.on('C1').length === 3)).toBeGreaterThanOrEqual(6);
    expect(view.on('C1')).toEqual(['30', '31', '32']);
    const following = view.until(() => view.on('C1').length === 1);
    await handle(store, '31', decide.collect('31', 'kim'));
    await handle(store, '30', decide.move('30', 'C2'));
    // What was seen before does not come again.
    expect(await following).toBe(2);
    expect([view.on('C1'), view.on('C2')]).toEqual([['32'], ['30']]);
  });
});
