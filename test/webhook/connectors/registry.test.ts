import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { ActiveConnector, Connector } from '../../../core/webhook/api.ts';
import type { RunningConnectors } from '../../../core/webhook/connectors/connectors.ts';
import { json, outcome, setMetadata } from '../../security/kit.ts';
import { base64, eventsOf, openWorld, SCRIPT, settings, signed, statesOf } from './kit.ts';
import type { Instance, World } from './kit.ts';

let world: World;
let one: Instance;
let connectors: RunningConnectors;

beforeEach(async () => {
  world = await openWorld();
  one = world.instance();
  connectors = one.connectors;
  await connectors.open();
});
afterEach(() => world.close());

/** What a process that starts now brings back. */
async function restarted(tokens?: readonly string[]): Promise<Instance> {
  const again = world.instance(tokens);
  await again.connectors.open();
  return again;
}

async function running(id: string, given = settings()): Promise<void> {
  await connectors.create(id, null, given);
  await connectors.start(id);
}

const typesOf = async (id: string) =>
  (await eventsOf(world.store, `$connectors/${id}`)).map(({ type }) => type.replace('$conn-mngt-connector-', ''));
const violationsOf = (action: Promise<unknown>): Promise<string[]> =>
  action.then(
    () => [],
    (error: SkuaError) => (error.data['violations'] as { field: string }[]).map(({ field }) => field),
  );

describe('events', () => {
  test('of a whole life, with all their fields', async () => {
    await connectors.create('parcels', 'Parcels', settings({ WaitForWrite: 'true' }));
    await connectors.start('parcels');
    await connectors.rename('parcels', 'Letters');
    await connectors.reconfigure('parcels', settings());
    await connectors.stop('parcels');
    const timestamp = '2026-11-22T00:00:00Z';
    const first = { ...Object.fromEntries(settings()), waitForWrite: 'true' };
    expect(await eventsOf(world.store, '$connectors/parcels')).toEqual([
      {
        type: '$conn-mngt-connector-created',
        data: { connectorId: 'parcels', name: 'Parcels', settings: first, timestamp },
      },
      {
        type: '$conn-mngt-connector-activating',
        data: { connectorId: 'parcels', revision: 0, settings: first, timestamp },
      },
      { type: '$conn-mngt-connector-running', data: { connectorId: 'parcels', timestamp, recordedAt: timestamp } },
      { type: '$conn-mngt-connector-renamed', data: { connectorId: 'parcels', name: 'Letters', timestamp } },
      {
        type: '$conn-mngt-connector-reconfigured',
        data: { connectorId: 'parcels', revision: 1, settings: Object.fromEntries(settings()), timestamp },
      },
      { type: '$conn-mngt-connector-deactivating', data: { connectorId: 'parcels', timestamp } },
      { type: '$conn-mngt-connector-stopped', data: { connectorId: 'parcels', timestamp, recordedAt: timestamp } },
    ]);
    expect((await eventsOf(world.store, '$connectors-ctrl/registry-snapshots')).at(-1)!.data).toEqual({
      connectorIds: ['parcels'],
      timestamp,
    });
    expect((await world.store.streamInfo('$connectors-ctrl/registry-snapshots')).metadata).toEqual({ maxCount: 10 });
  });

  test('a deletion hides all that was, and what other streams hold of the connector', async () => {
    await connectors.create('parcels', 'Parcels', signed());
    const { createdMs } = await connectors.get('parcels');
    await setMetadata(world.store, '$webhook-parcels-deliveries', { $maxCount: 9 });
    for (const stream of ['$webhook-parcels-deliveries', '$webhook-parcels-rejections'])
      await world.store.append(stream, -2, [json('noted', {}), json('noted', {})]);
    world.clock.setNow(world.clock.nowMs() + 60_000);
    await connectors.delete('parcels');
    expect(await typesOf('parcels')).toEqual(['deleted']);
    for (const stream of ['$webhook-parcels-deliveries', '$webhook-parcels-rejections'])
      expect((await world.store.streamInfo(stream)).metadata.truncateBefore).toBe(2);
    expect((await world.store.streamInfo('$webhook-parcels-deliveries')).metadata.maxCount).toBe(9);
    for (const { connectors: all } of [one, await restarted()]) {
      expect(await outcome(() => all.get('parcels'))).toBe('connector_not_found');
      expect(await all.list()).toMatchObject([
        { connectorId: 'parcels', name: 'Parcels', createdMs, deletedMs: world.clock.nowMs(), settings: new Map() },
      ]);
    }
  });

  test('an id can be used again, from the beginning', async () => {
    await connectors.create('parcels', 'Old one', settings({ 'logging:enabled': 'false' }));
    await connectors.reconfigure('parcels', settings());
    await connectors.delete('parcels');
    await connectors.create('parcels', null, settings());
    for (const { connectors: all } of [one, await restarted()])
      expect(await all.get('parcels')).toMatchObject({
        name: 'parcels',
        settingsRevision: 0,
        deletedMs: null,
        state: 'CONNECTOR_STATE_STOPPED',
      });
    await connectors.start('parcels');
    expect(await connectors.activeOf('parcels')).toMatchObject({ incarnation: 3, activation: 4 });
  });

  test('what a deletion could not clean up is cleaned up before the id is used again', async () => {
    await connectors.create('parcels', null, signed());
    await world.raw.append('$webhook-parcels-deliveries', -2, [json('noted', {})]);
    world.beforeWrite = (stream) => {
      if (stream.startsWith('$$')) throw new SkuaError('disk_full', 'The disk is full.');
    };
    await connectors.delete('parcels');
    expect([one.log.at('warn').length, (await typesOf('parcels')).length]).toEqual([1, 2]);
    world.beforeWrite = () => {};
    await connectors.create('parcels', null, settings());
    expect((await world.store.streamInfo('$webhook-parcels-deliveries')).metadata.truncateBefore).toBe(1);
    expect(await typesOf('parcels')).toEqual(['deleted', 'created']);
  });

  test('what others wrote into the streams is passed over', async () => {
    await running('parcels');
    await world.raw.append('$connectors/parcels', -2, [
      json('something', { a: 1 }),
      json('$conn-mngt-connector-stopped', 'no json'),
      json('$conn-mngt-connector-reconfigured', { settings: 7, revision: 'x' }),
    ]);
    await world.raw.append('$connectors-ctrl/registry-snapshots', -2, [
      json('foreign', {}),
      json('$conn-ctrl-registry-snapshot', 'no json'),
    ]);
    await connectors.create('letters', null, settings());
    expect(await statesOf((await restarted()).connectors)).toEqual({ parcels: 'RUNNING', letters: 'STOPPED' });
  });
});

describe('commands', () => {
  test('states: what is possible in each, and what it leads to', async () => {
    await connectors.create('parcels', null, settings());
    expect(await outcome(() => connectors.create('parcels', null, settings()))).toBe('connector_exists');
    expect(await outcome(() => connectors.stop('parcels'))).toBe('ok');
    expect(await typesOf('parcels')).toEqual(['created']);
    await connectors.start('parcels');
    expect(await outcome(() => connectors.start('parcels'))).toBe('connector_state');
    expect(await outcome(() => connectors.reset('parcels'))).toBe('connector_state');
    expect(await outcome(() => connectors.delete('parcels'))).toBe('connector_state');
    await connectors.rename('parcels', 'parcels');
    await connectors.stop('parcels');
    await connectors.reset('parcels');
    expect(await typesOf('parcels')).toEqual([
      'created',
      'activating',
      'running',
      'deactivating',
      'stopped',
      'activating',
      'running',
    ]);
  });

  test.each([
    ['', 1],
    ['a'.repeat(51), 1],
    ['a b c', 1],
    ['a/b', 1],
    ['a.b'.repeat(20), 2],
    ['parcels$', 1],
    ['naïve', 1],
  ])('the id %j is refused with %i reasons', async (id, count) => {
    expect(await violationsOf(connectors.create(id, null, settings()))).toEqual(
      Array.from({ length: count }, () => 'connectorId'),
    );
    expect(await outcome(() => connectors.start(id))).toBe('invalid_connector');
    expect(await connectors.activeOf(id)).toBeNull();
  });

  test.each([
    ['ab', 'refused'],
    ['a'.repeat(51), 'refused'],
    ['\ud800abc', 'refused'],
    ['  ', 'parcels'],
    ['', 'parcels'],
    [null, 'parcels'],
    [' Abc ', 'Abc'],
  ])('the name %j is %s', async (name, expected) => {
    if (expected === 'refused')
      expect(await violationsOf(connectors.create('parcels', name, settings()))).toEqual(['name']);
    else {
      await connectors.create('parcels', name, settings());
      expect((await connectors.get('parcels')).name).toBe(expected);
    }
  });

  test('settings and script are looked at before anything is written', async () => {
    const { end } = world.store;
    expect(
      await violationsOf(connectors.create('parcels', null, settings({ signatur: 'x', waitForWrites: 'y' }))),
    ).toEqual(['signatur', 'waitForWrites']);
    expect(
      await violationsOf(connectors.create('parcels', null, settings({ waitForWrite: 'x', confirmationTimeout: 'y' }))),
    ).toEqual(['waitForWrite', 'confirmationTimeout']);
    expect(
      await violationsOf(connectors.create('parcels', null, settings({ routingScript: base64('const x = (') }))),
    ).toEqual(['routingScript']);
    expect(
      await violationsOf(connectors.create('parcels', null, settings({ routingScript: base64('const other = 1') }))),
    ).toEqual(['routingScript']);
    expect(world.store.end).toBe(end);
  });

  test('a script that does not cope with an empty request is only worth a warning', async () => {
    await connectors.create(
      'parcels',
      null,
      settings({
        'streams:0': '*',
        routingScript: base64('const route = (request) => ({ stream: request.body.a.b });'),
      }),
    );
    expect(one.log.at('warn')).toHaveLength(1);
    await connectors.create('letters', null, settings({ 'streams:0': '*' }));
    expect(one.log.at('warn')).toHaveLength(1);
    expect(one.sandbox.released).toEqual(['parcels:tried', 'letters:tried']);
  });

  test('many at once end one after the other', async () => {
    await connectors.create('parcels', null, settings());
    const all = await Promise.all(
      [
        () => connectors.start('parcels'),
        () => connectors.start('parcels'),
        () => connectors.stop('parcels'),
        () => connectors.delete('parcels'),
        () => connectors.start('parcels'),
      ].map(outcome),
    );
    expect(all).toEqual(['ok', 'connector_state', 'ok', 'ok', 'connector_not_found']);
    expect(
      await Promise.all(Array.from({ length: 5 }, () => outcome(() => connectors.create('parcels', null, settings())))),
    ).toEqual(['ok', ...Array.from({ length: 4 }, () => 'connector_exists')]);
  });

  test('too many waiting commands are turned away', async () => {
    await connectors.create('parcels', null, settings());
    const all = await Promise.all(
      Array.from({ length: 150 }, (_, i) => outcome(() => connectors.rename('parcels', `Name ${i}`))),
    );
    expect(new Set(all)).toEqual(new Set(['ok', 'too_busy']));
    expect(await outcome(() => connectors.rename('parcels', 'Name again'))).toBe('ok');
  });

  test('after closing there are none', async () => {
    await connectors.create('parcels', null, settings());
    const starting = connectors.start('parcels');
    await Promise.all([starting, connectors.close()].map((each) => each.catch(() => {})));
    expect(await outcome(() => connectors.stop('parcels'))).toBe('store_closed');
  });

  test('a store that refuses to write leaves everything as it was', async () => {
    await connectors.create('parcels', null, settings());
    world.beforeWrite = () => {
      throw new SkuaError('disk_full', 'The disk is full.');
    };
    for (const command of [
      () => connectors.start('parcels'),
      () => connectors.delete('parcels'),
      () => connectors.create('letters', null, settings()),
    ])
      expect(await outcome(command)).toBe('disk_full');
    world.beforeWrite = () => {};
    expect(await statesOf(connectors)).toEqual({ parcels: 'STOPPED' });
    expect(await outcome(() => connectors.start('parcels'))).toBe('ok');
  });

  test('ids are listed in the order of their creation', async () => {
    for (const id of ['third', 'first', 'second']) {
      await connectors.create(id, null, settings());
      world.clock.setNow(world.clock.nowMs() + 1_000);
    }
    for (const { connectors: all } of [one, await restarted()])
      expect((await all.list()).map(({ connectorId }) => connectorId)).toEqual(['third', 'first', 'second']);
  });

  test('a connector whose stream was deleted for ever does not exist, and its id is taken', async () => {
    await running('parcels');
    await world.raw.deleteStream('$connectors/parcels', -2, 'hard');
    expect(await connectors.activeOf('parcels')).toBeNull();
    expect(await outcome(() => connectors.start('parcels'))).toBe('connector_not_found');
    expect(await violationsOf(connectors.create('parcels', null, settings()))).toEqual(['connectorId']);
    expect(await statesOf((await restarted()).connectors)).toEqual({});
  });
});

describe('what runs', () => {
  test('only between start and stop, and the drain comes before STOPPED', async () => {
    const seen: unknown[] = [];
    connectors.onStop(async (connector) => {
      seen.push([
        connector.connectorId,
        connector.activation,
        (await typesOf('parcels')).at(-1),
        await connectors.activeOf('parcels'),
      ]);
    });
    await connectors.create('parcels', null, settings());
    expect(await connectors.activeOf('parcels')).toBeNull();
    await connectors.start('parcels');
    expect(await connectors.activeOf('parcels')).toMatchObject({
      connectorId: 'parcels',
      activation: 1,
      revision: 0,
      secrets: [],
      settings: { script: SCRIPT },
    });
    await connectors.stop('parcels');
    expect(seen).toEqual([['parcels', 1, 'deactivating', null]]);
    expect(one.sandbox.released.at(-1)).toBe('parcels');
    expect(await connectors.activeOf('parcels')).toBeNull();
  });

  test('a stop waits for what had been accepted', async () => {
    const [draining, drained] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    connectors.onStop(() => {
      draining.resolve();
      return drained.promise;
    });
    await running('parcels');
    let isStopped = false;
    const stopping = connectors.stop('parcels').then(() => {
      isStopped = true;
    });
    await draining.promise;
    expect([isStopped, (await connectors.get('parcels')).state]).toEqual([false, 'CONNECTOR_STATE_DEACTIVATING']);
    drained.resolve();
    await stopping;
    expect((await connectors.get('parcels')).state).toBe('CONNECTOR_STATE_STOPPED');
  });

  test('a drain that fails is logged and stops nobody', async () => {
    connectors.onStop(() => Promise.reject(new Error('no')));
    await running('parcels');
    await connectors.stop('parcels');
    expect([one.log.at('error').length, (await connectors.get('parcels')).state]).toEqual([
      1,
      'CONNECTOR_STATE_STOPPED',
    ]);
  });

  test('is one object, found at once, as long as it runs, whatever is changed meanwhile', async () => {
    await running('parcels');
    const active = await connectors.activeOf('parcels');
    expect(connectors.activeOf('parcels')).toBe(active);
    await connectors.reconfigure('parcels', settings({ waitForWrite: 'true' }));
    await connectors.rename('parcels', 'Other');
    expect(connectors.activeOf('parcels')).toBe(active);
    expect(await (await restarted()).connectors.activeOf('parcels')).toEqual(active);
    await connectors.stop('parcels');
    await connectors.start('parcels');
    expect(await connectors.activeOf('parcels')).toMatchObject({ revision: 1, settings: { waitForWrite: true } });
  });

  test('names that nobody gave a connector are no load', async () => {
    for (const id of ['nobody', '__proto__', 'constructor', '', 'a/../b', 'x'.repeat(10_000), '$connectors'])
      expect(await connectors.activeOf(id)).toBeNull();
  });

  test('the same after a restart, member by member', async () => {
    await running('parcels', signed());
    await connectors.create('letters', 'Letters', settings({ waitForWrite: 'true' }));
    await running('stopped');
    await connectors.stop('stopped');
    await running('changed', signed('one'));
    await connectors.reconfigure('changed', signed('two'));
    await running('deleted', signed());
    await connectors.stop('deleted');
    await connectors.delete('deleted');
    const actives = (all: RunningConnectors) =>
      Promise.all(['parcels', 'letters', 'stopped', 'changed', 'deleted'].map((id) => all.activeOf(id)));
    const before: [readonly Connector[], (ActiveConnector | null)[]] = [
      await connectors.list(),
      await actives(connectors),
    ];
    const { end } = world.store;
    const again = (await restarted()).connectors;
    expect([await again.list(), await actives(again)]).toEqual(before);
    expect(before[1].map((active) => active?.secrets)).toEqual([['s3cret'], undefined, undefined, ['one'], undefined]);
    expect(world.store.end).toBe(end);
  });
});

describe('secrets', () => {
  test('are sealed in every event and masked in every answer', async () => {
    await running('parcels', signed('very-secret', { 'signature:secrets:0': 'old-secret' }));
    await connectors.reconfigure('parcels', signed('new-secret'));
    expect(JSON.stringify(await eventsOf(world.store, '$connectors/parcels'))).not.toMatch(/(very|old|new)-secret/);
    expect((await connectors.get('parcels')).settings.get('signature:secret')).toBe('********');
    expect((await connectors.list())[0]!.settings.get('signature:secret')).toBe('********');
    expect((await connectors.activeOf('parcels'))!.secrets).toEqual(['very-secret', 'old-secret']);
  });

  test('a masked one stays as it is stored; a mask without one is refused', async () => {
    await connectors.create('parcels', null, signed('kept', { 'signature:secrets:2': 'dropped' }));
    await connectors.reconfigure('parcels', signed('********', { 'signature:secrets:0': 'new' }));
    await connectors.start('parcels');
    expect((await connectors.activeOf('parcels'))!.secrets).toEqual(['kept', 'new']);
    expect(
      await violationsOf(connectors.reconfigure('parcels', signed('kept', { 'signature:secrets:1': '********' }))),
    ).toEqual(['signature:secrets:1']);
    expect(await violationsOf(connectors.create('letters', null, signed('********')))).toEqual(['signature:secret']);
  });

  test('without a token they are refused, and everything else works', async () => {
    const { connectors: none } = world.instance([]);
    const { end } = world.store;
    expect(await outcome(() => none.create('parcels', null, signed()))).toBe('secret_refused');
    expect(world.store.end).toBe(end);
    await none.create('parcels', null, settings());
    expect(await outcome(() => none.reconfigure('parcels', signed()))).toBe('secret_refused');
    expect(await outcome(() => none.start('parcels'))).toBe('ok');
  });

  test('a wrong token keeps its connectors from running, with the reason, and no others', async () => {
    await running('parcels', signed());
    await running('letters');
    const wrong = await restarted(['token-2']);
    expect(await statesOf(wrong.connectors)).toEqual({ parcels: 'STOPPED', letters: 'RUNNING' });
    expect((await wrong.connectors.get('parcels')).error).toMatchObject({
      code: 9,
      message: expect.stringContaining('PreviousTokens') as string,
    });
    expect([
      await wrong.connectors.activeOf('parcels'),
      (await wrong.connectors.activeOf('letters'))?.connectorId,
    ]).toEqual([null, 'letters']);
    expect((await typesOf('parcels')).at(-1)).toBe('failed');
    // It can be said again.
    expect(await outcome(() => wrong.connectors.start('parcels'))).toBe('secret_refused');
    expect((await typesOf('parcels')).slice(-2)).toEqual(['activating', 'failed']);
    const right = await restarted();
    await right.connectors.start('parcels');
    expect(await right.connectors.get('parcels')).toMatchObject({ state: 'CONNECTOR_STATE_RUNNING', error: null });
  });

  test('a token is changed without an end of service, and every write seals with the new one', async () => {
    await running('parcels', signed('a'));
    await connectors.create('letters', null, signed('b'));
    const both = (await restarted(['token-2', 'token-1'])).connectors;
    expect((await both.activeOf('parcels'))!.secrets).toEqual(['a']);
    await both.stop('parcels');
    await both.start('parcels');
    await both.reconfigure('parcels', signed('********'));
    await both.reconfigure('letters', signed('********'));
    const next = (await restarted(['token-2'])).connectors;
    expect((await next.activeOf('parcels'))!.secrets).toEqual(['a']);
    await next.start('letters');
    expect((await next.activeOf('letters'))!.secrets).toEqual(['b']);
  });

  test('one that was moved to another connector does not open', async () => {
    await connectors.create('parcels', null, signed());
    const sealed = (await eventsOf(world.store, '$connectors/parcels'))[0]!.data['settings'];
    await connectors.create('letters', null, signed());
    await world.raw.append('$connectors/letters', -2, [
      json('$conn-mngt-connector-reconfigured', { connectorId: 'letters', revision: 1, settings: sealed }),
    ]);
    expect(await outcome(() => connectors.start('letters'))).toBe('secret_refused');
  });
});

describe('testing a script', () => {
  const input = { body: '{"id":7}', headers: { 'X-A': 'b', 'X-Empty': '' }, query: { q: '1', empty: '' } };

  test('runs the settings that would be started, in a lane of its own, and writes nothing', async () => {
    await running('parcels');
    await connectors.reconfigure(
      'parcels',
      settings({
        routingScript: base64(
          'const route = (r) => ({ stream: `new-${r.body.id}-${r.headers["x-a"]}-${r.query.q}-${r.path}-${Object.keys(r.headers).length}${Object.keys(r.query).length}` });',
        ),
      }),
    );
    const { end } = world.store;
    expect(await connectors.test('parcels', input)).toEqual({
      outcome: 'routed',
      stream: 'new-7-b-1-/webhook/parcels-11',
      schema: null,
      error: null,
      durationMs: 1,
    });
    expect(world.store.end).toBe(end);
    expect([one.sandbox.calls.at(-1)!.connectorId, one.sandbox.released.at(-1)]).toEqual([
      'parcels:tested',
      'parcels:tested',
    ]);
  });

  test.each<[string, string, string]>([
    ['const route = () => null;', '{}', 'skipped'],
    ['const route = () => { throw new Error("no"); };', '{}', 'failed'],
    ['const route = () => ({ stream: "$x" });', '{}', 'failed'],
    ['const route = () => ({ stream: "a\\u0000" });', '{}', 'failed'],
    ['const route = () => ({ stream: "a", schema: "x".repeat(2000) });', '{}', 'failed'],
    [SCRIPT, '{', 'invalid-json'],
    [SCRIPT, '', 'invalid-json'],
    [SCRIPT, '['.repeat(65) + ']'.repeat(65), 'invalid-json'],
    [SCRIPT, '['.repeat(64) + ']'.repeat(64), 'routed'],
    [SCRIPT, '"[[["', 'routed'],
  ])('%s with %s is %s', async (script, body, expected) => {
    await connectors.create('parcels', null, settings({ routingScript: base64(script) }));
    const result = await connectors.test('parcels', { body, headers: {}, query: {} });
    expect(result.outcome).toBe(expected);
    expect(result.error === null).toBe(expected === 'routed' || expected === 'skipped');
  });

  test('a result with type, and without schema, is told at the creation and by the trial', async () => {
    const told = [expect.stringMatching(/returns type, .* as schema/)];
    const script = base64('const route = () => ({ stream: "orders", type: "placed" });');
    expect(
      await connectors.create('parcels', null, settings({ routingScript: script, 'streams:0': 'orders' })),
    ).toEqual(told);
    expect(await connectors.test('parcels', input)).toMatchObject({ outcome: 'routed', schema: null, warnings: told });
    expect(await connectors.reconfigure('parcels', settings({ 'streams:0': 'orders-*' }))).toEqual([]);
  });

  test("what the sandbox can't do now is told", async () => {
    await connectors.create('parcels', null, settings());
    one.sandbox.answer = { kind: 'unavailable', reason: 'busy', retryAfterMs: 10 };
    expect(await connectors.test('parcels', input)).toMatchObject({ outcome: 'unavailable', error: 'busy' });
    one.sandbox.answer = { kind: 'timed-out', reason: 'slow' };
    expect(await connectors.test('parcels', input)).toMatchObject({ outcome: 'timed-out', error: 'slow' });
  });
});
