import { afterEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { RunningConnectors } from '../../../core/webhook/connectors/connectors.ts';
import { json, outcome } from '../../security/kit.ts';
import { Random } from '../../support/random.ts';
import { eventsOf, openWorld, settings, signed, statesOf } from './kit.ts';
import type { World } from './kit.ts';

let world: World;
afterEach(() => world.close());

type Step = (all: RunningConnectors) => Promise<unknown>;

/** A life with every command in it. Behind each step: the states that are seen when it has been done. */
const LIFE: readonly (readonly [string, Step, string])[] = [
  ['create', (all) => all.create('parcels', null, signed('first')), 'parcels STOPPED first'],
  ['create another', (all) => all.create('letters', null, settings()), 'parcels STOPPED first, letters STOPPED'],
  ['start', (all) => all.start('parcels'), 'parcels RUNNING first, letters STOPPED'],
  ['reconfigure', (all) => all.reconfigure('parcels', signed('second')), 'parcels RUNNING first, letters STOPPED'],
  ['rename', (all) => all.rename('parcels', 'Parcels'), 'Parcels RUNNING first, letters STOPPED'],
  ['stop', (all) => all.stop('parcels'), 'Parcels STOPPED second, letters STOPPED'],
  ['start again', (all) => all.start('parcels'), 'Parcels RUNNING second, letters STOPPED'],
  ['stop again', (all) => all.stop('parcels'), 'Parcels STOPPED second, letters STOPPED'],
  ['delete', (all) => all.delete('parcels'), 'Parcels DELETED, letters STOPPED'],
  ['create again', (all) => all.create('parcels', null, signed('third')), 'parcels STOPPED third, letters STOPPED'],
  ['start the new one', (all) => all.start('parcels'), 'parcels RUNNING third, letters STOPPED'],
];

/** Names, states, and the secret that counts: of a running connector the one that calls are checked with. */
async function seen(all: RunningConnectors): Promise<string> {
  const parts: string[] = [];
  for (const { connectorId, name, state, deletedMs, settings: shown } of (await all.list()).toSorted((a, b) =>
    a.connectorId > b.connectorId ? -1 : 1,
  )) {
    const active = await all.activeOf(connectorId);
    const hasSecret = shown.has('signature:secret');
    const secret = active?.secrets[0] ?? (hasSecret ? await secretOf(all, connectorId) : '');
    parts.push(`${name} ${deletedMs === null ? state.replace('CONNECTOR_STATE_', '') : 'DELETED'} ${secret}`.trim());
  }
  return parts.join(', ');
}

/** The secret of a stopped connector, which only a start tells. */
async function secretOf(all: RunningConnectors, connectorId: string): Promise<string> {
  await all.start(connectorId);
  const secret = (await all.activeOf(connectorId))!.secrets[0]!;
  await all.stop(connectorId);
  return secret;
}

const withoutSecrets = (text: string): string => text.replace(/(STOPPED|RUNNING) \w+/g, '$1');

async function notedStreams(): Promise<void> {
  for (const stream of ['$webhook-parcels-deliveries', '$webhook-parcels-rejections'])
    await world.raw.append(stream, -2, [json('noted', {})]);
}

/** Takes the steps until a write fails; the number of the step that was cut off, or of steps. */
async function live(all: RunningConnectors): Promise<number> {
  for (const [i, [, step]] of LIFE.entries()) {
    if (i === 8) await notedStreams();
    try {
      await step(all);
    } catch {
      return i;
    }
  }
  return LIFE.length;
}

async function liveUntil(writesMax: number): Promise<{ readonly cutOff: number; readonly writes: number }> {
  const { connectors } = world.instance();
  await connectors.open();
  let writes = 0;
  // A process that is gone writes nothing more.
  world.beforeWrite = () => {
    if (++writes > writesMax) throw new SkuaError('io_error', 'crash');
  };
  const cutOff = await live(connectors);
  world.beforeWrite = () => {};
  return { cutOff, writes };
}

const WRITES = 22;

test('a life without a crash', async () => {
  world = await openWorld();
  expect(await liveUntil(Number.POSITIVE_INFINITY)).toEqual({ cutOff: LIFE.length, writes: WRITES });
});

describe('a crash between any two appends', () => {
  test.each(Array.from({ length: WRITES }, (_, i) => i))('behind write %i', async (writesMax) => {
    world = await openWorld();
    const { cutOff } = await liveUntil(writesMax);
    const { connectors } = world.instance();
    await connectors.open();
    // What was under way was done, or was not; a deletion counts although its streams are still to be truncated.
    const before = cutOff === 0 ? '' : LIFE[cutOff - 1]![2];
    const after = LIFE[cutOff]?.[2] ?? LIFE.at(-1)![2];
    const { end } = world.store;
    const list = await connectors.list();
    const now = list
      .toSorted((a, b) => (a.connectorId > b.connectorId ? -1 : 1))
      .map(
        ({ name, state, deletedMs }) =>
          `${name} ${deletedMs === null ? state.replace('CONNECTOR_STATE_', '') : 'DELETED'}`,
      )
      .join(', ');
    expect([before, after].map(withoutSecrets)).toContain(now);
    for (const { state, deletedMs, connectorId } of list) {
      expect(['CONNECTOR_STATE_RUNNING', 'CONNECTOR_STATE_STOPPED']).toContain(state);
      if (deletedMs !== null)
        expect((await eventsOf(world.store, `$connectors/${connectorId}`)).map(({ type }) => type)).toEqual([
          '$conn-mngt-connector-deleted',
        ]);
    }
    // Another start has nothing left to do and finds the same.
    const again = world.instance().connectors;
    await again.open();
    expect(await again.list()).toEqual(list);
    expect(world.store.end).toBe(end);
    expect([before, after]).toContain(await seen(again));
    // Life goes on from where it stands.
    for (const [, step] of LIFE.slice(cutOff)) await outcome(() => step(again));
    expect(await seen(again)).toBe(LIFE.at(-1)![2]);
    const truncated = await Promise.all(
      ['$webhook-parcels-deliveries', '$webhook-parcels-rejections'].map(async (stream) => {
        const { lastEventNumber, metadata } = await world.store.streamInfo(stream);
        return (metadata.truncateBefore ?? 0) > lastEventNumber;
      }),
    );
    expect(truncated).toEqual([true, true]);
  });
});

describe('two instances', () => {
  test('each sees at once what the other did, and drains what runs no more', async () => {
    world = await openWorld();
    const [one, two] = [world.instance().connectors, world.instance().connectors];
    const drained: string[] = [];
    two.onStop(async ({ connectorId, activation }) => {
      drained.push(`${connectorId} ${activation}`);
    });
    await Promise.all([one.open(), two.open()]);
    await one.create('parcels', null, settings());
    await two.start('parcels');
    expect([(await one.activeOf('parcels'))?.activation, (await two.activeOf('parcels'))?.activation]).toEqual([1, 1]);
    await one.stop('parcels');
    expect(await two.activeOf('parcels')).toBeNull();
    expect(drained).toEqual(['parcels 1']);
    await two.delete('parcels');
    expect(await outcome(() => one.start('parcels'))).toBe('connector_not_found');
    await one.create('parcels', 'New one', settings());
    expect(await two.get('parcels')).toMatchObject({ name: 'New one', settingsRevision: 0 });
  });

  test("a start during another instance's start finishes it, and both succeed", async () => {
    world = await openWorld();
    const one = world.instance();
    const two = world.instance();
    await one.connectors.create('parcels', null, settings());
    one.sandbox.beforeCheck = () => two.connectors.open();
    await one.connectors.start('parcels');
    expect((await eventsOf(world.store, '$connectors/parcels')).map(({ type }) => type.split('-').at(-1))).toEqual([
      'created',
      'activating',
      'running',
    ]);
  });

  test("a stop during another instance's start wins", async () => {
    world = await openWorld();
    const one = world.instance();
    const two = world.instance();
    await one.connectors.create('parcels', null, settings());
    one.sandbox.beforeCheck = () => two.connectors.stop('parcels');
    expect(await outcome(() => one.connectors.start('parcels'))).toBe('connector_state');
    expect(await statesOf(one.connectors)).toEqual({ parcels: 'STOPPED' });
  });

  test('an id that both create is one connector', async () => {
    world = await openWorld();
    const both = [world.instance().connectors, world.instance().connectors];
    expect(
      (
        await Promise.all(both.map((all, i) => outcome(() => all.create('parcels', `Name ${i}`, settings()))))
      ).toSorted(),
    ).toEqual(['connector_exists', 'ok']);
    expect(await Promise.all(both.map((all, i) => outcome(() => all.create(`other-${i}`, null, settings()))))).toEqual([
      'ok',
      'ok',
    ]);
    expect(Object.keys(await statesOf(world.instance().connectors)).toSorted()).toEqual([
      'other-0',
      'other-1',
      'parcels',
    ]);
  });

  test('a deletion that is slow to clean up leaves alone what came after it', async () => {
    world = await openWorld();
    const [one, two] = [world.instance().connectors, world.instance().connectors];
    await one.create('parcels', null, settings());
    await notedStreams();
    const deliveries = '$webhook-parcels-deliveries';
    const streamInfo = world.raw.streamInfo.bind(world.raw);
    let isFirst = true;
    world.raw.streamInfo = async (stream) => {
      if (stream === deliveries && isFirst) {
        isFirst = false;
        await two.create('parcels', null, settings());
        await world.raw.append(deliveries, -2, [json('noted', {})]);
      }
      return streamInfo(stream);
    };
    await one.delete('parcels');
    const { lastEventNumber, metadata } = await streamInfo(deliveries);
    expect([lastEventNumber, metadata.truncateBefore]).toEqual([1, 1]);
    expect(await statesOf(one)).toEqual({ parcels: 'STOPPED' });
  });

  const MAY_FOLLOW: Readonly<Record<string, readonly string[]>> = {
    created: ['', 'deleted'],
    activating: ['STOPPED'],
    running: ['ACTIVATING'],
    deactivating: ['RUNNING', 'ACTIVATING'],
    stopped: ['DEACTIVATING'],
    failed: ['ACTIVATING', 'RUNNING'],
    deleted: ['STOPPED'],
  };
  const STATE_AFTER: Readonly<Record<string, string>> = {
    created: 'STOPPED',
    activating: 'ACTIVATING',
    running: 'RUNNING',
    deactivating: 'DEACTIVATING',
    stopped: 'STOPPED',
    failed: 'STOPPED',
    deleted: 'deleted',
  };

  test.each([1, 2, 3, 4, 5, 6])(
    'random commands of both at once never write what a state does not allow, seed %i',
    async (seed) => {
      world = await openWorld();
      const random = new Random(seed);
      const both = [world.instance().connectors, world.instance().connectors];
      const written: string[] = [];
      const append = world.raw.append.bind(world.raw);
      world.raw.append = async (stream, ...rest) => {
        const result = await append(stream, ...rest);
        if (stream.startsWith('$connectors/'))
          for (const { type } of rest[1])
            written.push(`${stream.slice(12)} ${result.lastEventNumber} ${type.split('-').at(-1)}`);
        return result;
      };
      for (let round = 0; round < 25; round++) {
        await Promise.all(
          Array.from({ length: 6 }, () => {
            const all = random.pick(both);
            const id = random.pick(['parcels', 'letters']);
            const command = random.pick<Step>([
              (each) => each.create(id, null, settings()),
              (each) => each.start(id),
              (each) => each.start(id),
              (each) => each.stop(id),
              (each) => each.delete(id),
              (each) => each.rename(id, `Name ${round}`),
              (each) => each.reconfigure(id, settings()),
            ]);
            return outcome(() => command(all));
          }),
        );
      }
      for (const id of ['parcels', 'letters']) {
        const types = written
          .filter((line) => line.startsWith(`${id} `))
          .map((line) => line.split(' '))
          .sort((a, b) => Number(a[1]) - Number(b[1]))
          .map(([, , type]) => type!);
        expect(types.length).toBeGreaterThan(10);
        let state = '';
        for (const type of types) {
          if (type === 'renamed' || type === 'reconfigured') expect(['', 'deleted']).not.toContain(state);
          else {
            expect(MAY_FOLLOW[type], `${type} in state ${state}`).toContain(state);
            state = STATE_AFTER[type]!;
          }
        }
      }
      expect(await both[0]!.list()).toEqual(await both[1]!.list());
      expect(
        Object.values(await statesOf(both[0]!)).filter((state) => state.endsWith('ING') && state !== 'RUNNING'),
      ).toEqual([]);
    },
  );
});
