import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { CONFIGURATION_STREAM, CYCLES_STREAM } from '../../../core/auto-scavenge/auto-scavenge-streams.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { DirectoryStore } from '../../../core/store/store.ts';
import { ANY } from '../../../core/streams/api.ts';
import { decodeText } from '../../../core/base/text.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { openAutoScavenge, TICK_PERIOD_MS } from '../../../local/auto-scavenge/open-auto-scavenge.ts';
import { LogLines } from '../../handlers/secured.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { LicenceIssuer } from '../../support/licence-issuer.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore } from '../../support/test-store.ts';
import { load } from '../config/support.ts';

/** The auto-scavenge of a node over a real store and its scavenger; only time is the test's. */

/** Five seconds before a whole hour. */
const BEFORE_MS = Date.UTC(2026, 10, 22, 9, 59, 55);
const SELF = { address: '127.0.0.1', port: 2113 };

let opened: DirectoryStore | null = null;
afterEach(async () => {
  await opened?.close();
});

async function started(
  storage = new MemoryStorage(),
  nowMs = BEFORE_MS,
  words: readonly string[] = [],
  fake: FakeScavenger | null = null,
) {
  const clock = new ManualClock(nowMs);
  const ids = new SeededIds(nowMs % 1_000);
  const log = new LogLines();
  const open = await openTestStore({
    storage,
    clock,
    ids,
    scavenge: { repairHistory: true, nodeEndpoint: '127.0.0.1:2113' },
  });
  opened = open;
  const made = await openAutoScavenge({
    values: load(words).values,
    version: '9.9.9',
    open: { store: open.store, status: () => open.status(), scavenger: fake ?? open.scavenger },
    self: () => SELF,
    isLeader: () => true,
    clock,
    ids,
    keys: nodeKeys,
    log,
    meter: silentMeter,
  });
  const stop = new AbortController();
  const running = made.run(stop.signal);
  const events = async () => {
    const { events: all } = await open.store.readStream('$auto-scavenges', {
      direction: 'forward',
      from: 0,
      count: 100,
    });
    return all.map(({ type, data }) => ({ type, data: JSON.parse(decodeText(data)) as Record<string, unknown> }));
  };
  return {
    ...made,
    open,
    clock,
    log,
    events,
    storage,
    types: async () => (await events()).map(({ type }) => type),
    /** Ticks until the state is this one. */
    until: async (state: string) => {
      for (let ticks = 0; ticks < 50; ticks++) {
        if ((await made.autoScavenge.status()).state === state) return;
        await clock.advance(TICK_PERIOD_MS);
        await open.scavenger.idle();
      }
      expect.fail(`never ${state}: ${JSON.stringify(await made.autoScavenge.status())}`);
    },
    end: async () => {
      stop.abort();
      await clock.advance(TICK_PERIOD_MS);
      await running;
      await open.close();
      opened = null;
    },
  };
}

const CYCLE = [
  '$cluster-scavenge-started',
  '$node-designated',
  '$node-scavenge-started',
  '$node-scavenge-completed',
  '$cluster-scavenge-completed',
];

describe('a cycle', () => {
  test('31: begins when its time has come, scavenges the node, and ends', async () => {
    const { autoScavenge, open, clock, types, until, log } = await started();
    expect(log.lines[0]).toMatchObject({
      level: 'info',
      message: 'AutoScavenge 9.9.9 plugin enabled.',
      fields: { licence: 'built-in', timeZone: 'UTC' },
    });
    await autoScavenge.configure(' 0   * * * *');
    expect(await autoScavenge.status()).toEqual({
      state: 'Waiting',
      schedule: '0 * * * *',
      untilNextCycleMs: 5_000,
      cycle: null,
      lastCycle: null,
    });
    await clock.advance(4_000);
    expect((await autoScavenge.status()).state).toBe('Waiting');
    await clock.advance(TICK_PERIOD_MS);
    expect(open.scavenger.last()).not.toBeNull();
    await open.scavenger.idle();
    await until('Waiting');
    expect(await types()).toEqual(CYCLE);
    const { lastCycle, untilNextCycleMs } = await autoScavenge.status();
    expect(lastCycle).toMatchObject({
      nodes: [
        {
          node: '127.0.0.1:2113',
          state: 'completed',
          result: 'Success',
          scavengeId: open.scavenger.last()!.scavengeId,
        },
      ],
    });
    expect(untilNextCycleMs).toBeGreaterThan(3_500_000);
  });

  test('in the time zone that is configured', async () => {
    const { autoScavenge } = await started(new MemoryStorage(), BEFORE_MS, [
      '--auto-scavenge-time-zone',
      'Asia/Kolkata',
    ]);
    await autoScavenge.configure('30 15 * * *');
    expect((await autoScavenge.status()).untilNextCycleMs).toBe(5_000);
  });

  test.each([
    [true, 'paused'],
    [false, 'pausing'],
  ] as const)(
    '40 43: paused in the middle and resumed, it goes on (stops at once: %s)',
    async (stopsAtOnce, answer) => {
      const scavenger = new FakeScavenger();
      scavenger.stopsAtOnce = stopsAtOnce;
      const { autoScavenge, clock, types } = await started(new MemoryStorage(), BEFORE_MS, [], scavenger);
      await autoScavenge.configure('0 * * * *');
      await clock.advance(3 * TICK_PERIOD_MS);
      const { state, cycle } = await autoScavenge.status();
      expect([state, cycle?.nodes.map((node) => node.state), scavenger.started.length]).toEqual([
        'InProgress',
        ['running'],
        1,
      ]);
      const pausing = autoScavenge.pause();
      if (!stopsAtOnce) await clock.advance(1_000);
      expect(await pausing).toBe(answer);
      if (!stopsAtOnce) {
        expect((await autoScavenge.status()).state).toBe('Pausing');
        scavenger.end('Stopped');
        await clock.advance(TICK_PERIOD_MS);
      }
      expect((await autoScavenge.status()).state).toBe('Paused');
      await clock.advance(3_600_000);
      expect([(await autoScavenge.status()).cycle?.clusterScavengeId, scavenger.started.length]).toEqual([
        cycle!.clusterScavengeId,
        1,
      ]);
      await autoScavenge.resume();
      await clock.advance(TICK_PERIOD_MS);
      scavenger.end('Success');
      await clock.advance(TICK_PERIOD_MS);
      expect((await autoScavenge.status()).state).toBe('Waiting');
      expect(await types()).toEqual([
        '$cluster-scavenge-started',
        '$node-designated',
        '$node-scavenge-started',
        '$pause-requested',
        '$paused',
        '$resumed',
        '$node-designated',
        '$node-scavenge-started',
        '$node-scavenge-completed',
        '$cluster-scavenge-completed',
      ]);
    },
  );

  test('10: a restart in the middle goes on with the same cycle', async () => {
    const first = await started();
    await first.autoScavenge.configure('0 * * * *');
    await first.clock.advance(3 * TICK_PERIOD_MS);
    const { cycle } = await first.autoScavenge.status();
    expect(cycle).not.toBeNull();
    await first.end();

    const second = await started(first.storage, BEFORE_MS + 60_000);
    expect((await second.autoScavenge.status()).cycle?.clusterScavengeId).toBe(cycle!.clusterScavengeId);
    await second.until('Waiting');
    const all = await second.events();
    expect(all.filter(({ type }) => type === '$cluster-scavenge-started')).toHaveLength(1);
    expect(all.at(-1)).toMatchObject({
      type: '$cluster-scavenge-completed',
      data: { clusterScavengeId: cycle!.clusterScavengeId },
    });
  });
});

test('tells when any expression comes round, in any zone, and saves nothing', async () => {
  const { autoScavenge } = await started();
  const { schedule, zone, timesMs } = autoScavenge.times(' 30  2 * * sun ', 3);
  expect([schedule, zone, timesMs.length]).toEqual(['30 2 * * sun', 'UTC', 3]);
  for (const [i, ms] of timesMs.entries()) {
    const time = new Date(ms).toISOString();
    expect([time.slice(11), new Date(ms).getUTCDay(), i === 0 || ms - timesMs[i - 1]! === 7 * 86_400_000]).toEqual([
      '02:30:00.000Z',
      0,
      true,
    ]);
  }
  expect(
    autoScavenge.times('30 2 * * *', 1, 'Asia/Kolkata').timesMs.map((ms) => new Date(ms).toISOString().slice(11, 16)),
  ).toEqual(['21:00']);
  for (const none of ['0 0 30 2 *', '* * * *'])
    expect(() => autoScavenge.times(none, 5)).toThrow('Invalid CRON expression');
  expect((await autoScavenge.status()).schedule).toBeNull();
});

test('waits for a backup that reads its files, as for any other work', async () => {
  const { autoScavenge, open, clock, until } = await started();
  await autoScavenge.configure('0 * * * *');
  const hold = await open.hold();
  await clock.advance(30 * 60_000);
  expect((await autoScavenge.status()).cycle?.nodes).toEqual([
    { node: '127.0.0.1:2113', state: 'waiting', scavengeId: null, result: null },
  ]);
  await hold.release();
  await until('Waiting');
  expect((await autoScavenge.status()).lastCycle?.nodes).toMatchObject([{ state: 'completed', result: 'Success' }]);
});

test('both streams may be deleted by an administrator', async () => {
  const { autoScavenge, open, until } = await started();
  await autoScavenge.configure('0 * * * *');
  await autoScavenge.pause();
  for (const stream of [CYCLES_STREAM, CONFIGURATION_STREAM]) await open.store.deleteStream(stream, ANY, 'soft');
  expect(await autoScavenge.status()).toMatchObject({ state: 'NotConfigured', schedule: null });
  await autoScavenge.configure('*/5 * * * *');
  await autoScavenge.pause();
  await autoScavenge.resume();
  await until('InProgress');
});

test('a tick returns before its deadline, and commands do not wait for more than a call', async () => {
  const scavenger = new FakeScavenger();
  scavenger.stopsAtOnce = false;
  const { autoScavenge, clock } = await started(new MemoryStorage(), BEFORE_MS, [], scavenger);
  await autoScavenge.configure('0 * * * *');
  await clock.advance(3 * TICK_PERIOD_MS);
  const paused = autoScavenge.pause();
  await clock.advance(1_000);
  expect(await paused).toBe('pausing');
  const ticked = autoScavenge.tick(clock.monotonicMs() + 200);
  const status = autoScavenge.status();
  await clock.advance(200);
  await ticked;
  expect((await status).state).toBe('Pausing');
});

describe('off', () => {
  test.each([
    [['--auto-scavenge-enabled-'], /AutoScavenge:Enabled is false/],
    [['--dev'], /dev mode/],
    [['--mem-db'], /in memory/],
    [['--licensing-use-built-in-'], /no licence key/],
    [['--licensing-license-key', 'x'], /IssuerKeyFile/],
  ] as const)('%j: nothing happens, and why is said', async (words, reason) => {
    const { autoScavenge, clock, open, log } = await started(new MemoryStorage(), BEFORE_MS, words);
    expect(autoScavenge.enabled()).toEqual({ enabled: false, reason: expect.stringMatching(reason) });
    expect(log.lines.at(-1)).toMatchObject({
      level: 'info',
      message: 'AutoScavenge 9.9.9 plugin disabled.',
      fields: { reason: expect.stringMatching(reason) },
    });
    await expect(autoScavenge.configure('* * * * *')).rejects.toMatchObject({
      code: 'auto_scavenge_off',
      data: { reason: expect.stringMatching(reason) },
    });
    // What a node writes at its start is written behind it.
    await clock.settle();
    const before = open.status().checkpoints.writer;
    await clock.advance(3 * TICK_PERIOD_MS);
    expect([open.status().checkpoints.writer, open.scavenger.last()]).toEqual([before, null]);
  });

  test('87: from the moment on at which the key expires, in the middle of a cycle too', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'skua-licence-'));
    const file = path.join(folder, 'issuer.pub');
    const issuer = new LicenceIssuer(new Uint8Array(32));
    await writeFile(file, issuer.publicKey);
    const key = issuer.issue({ features: ['AUTO_SCAVENGE'], expiresAtMs: BEFORE_MS + 3_600_000 });
    const scavenger = new FakeScavenger();
    const { autoScavenge, clock, types, log } = await started(
      new MemoryStorage(),
      BEFORE_MS,
      ['--licensing-license-key', key, '--licensing-issuer-key-file', file],
      scavenger,
    );
    await rm(folder, { recursive: true });
    expect(log.lines[0]).toMatchObject({
      message: 'AutoScavenge 9.9.9 plugin enabled.',
      fields: { licence: 'key', licenceExpires: '2026-11-22T10:59:55Z' },
    });
    await autoScavenge.configure('0 * * * *');
    await clock.advance(3_600_000 - 1);
    expect([autoScavenge.enabled().enabled, scavenger.current()]).toEqual([true, expect.any(String)]);
    const before = await types();
    await clock.advance(TICK_PERIOD_MS);
    expect(autoScavenge.enabled()).toEqual({ enabled: false, reason: expect.stringMatching(/expired at/) });
    await expect(autoScavenge.pause()).rejects.toMatchObject({ code: 'auto_scavenge_off' });
    // The run on the node goes on by itself, and nobody takes note of its end.
    expect(scavenger.current()).not.toBeNull();
    scavenger.end('Success');
    await clock.advance(10 * TICK_PERIOD_MS);
    expect(await types()).toEqual(before);
    expect(log.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { fields: { feature: 'AUTO_SCAVENGE', reason: expect.stringMatching(/expired at/) } },
    ]);
  });
});
