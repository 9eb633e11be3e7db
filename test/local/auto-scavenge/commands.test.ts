import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { createApp } from '../../../handlers/app.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { readBody } from '../../../local/http/http-request.ts';
import { startServer } from '../../../local/http/server.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import { FakeAutoScavenge, STATUSES } from '../../support/fake-auto-scavenge.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { ModelStore } from '../../support/model-store.ts';
import { run as runNamed } from '../run.ts';
import { contextOf } from '../../support/app-context.ts';

/** The commands, against a server whose auto-scavenge does what the test says. */

let autoScavenge: FakeAutoScavenge;
let scavenger: FakeScavenger;
let server: HttpServer;

beforeEach(async () => {
  autoScavenge = new FakeAutoScavenge();
  scavenger = new FakeScavenger();
  const store = new ModelStore(systemClock, systemIds);
  const app = createApp(
    contextOf({
      store,
      scavenger,
      clock: systemClock,
      ids: systemIds,
      log: silentLog,
      meter: silentMeter,
      security: null,
      node: null,
      readBody,
      autoScavenge,
    }),
  );
  server = await startServer({ hostname: '127.0.0.1', port: 0, fetch: app, log: silentLog });
});
afterEach(async () => {
  await server.stop(0);
});

const run = (...words: string[]) => runNamed('auto-scavenge', ...words, '--node', server.url);

describe('status', () => {
  test('not configured', async () => {
    expect(await run('status')).toEqual({
      code: 0,
      err: '',
      out: 'Not configured.\nSchedule: none. Set one with `skua auto-scavenge configure CRON`.\n',
    });
  });

  test('waiting: the next start, and how the last cycle ended', async () => {
    autoScavenge.statusNow = STATUSES.Waiting;
    const { code, out } = await run('status');
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(
          [
            String.raw`^Waiting: the next cycle starts in 2 d 3 h 45 min, at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\.`,
            'Schedule: 30 2 \\* \\* 0',
            'Last cycle 7d1f0c9e-5b2a-4a63-8c1d-90b1b7c3a000, completed at 2031-03-31T02:40:01\\.5Z:',
            '  node {11}state {6}result {3}scavenge',
            '  10\\.0\\.0\\.1:2113  completed  Success  00000000-0000-4000-8000-000000000003',
            '  10\\.0\\.0\\.2:2113  completed  Errored\n$',
          ].join('\n'),
        ),
      ),
    ]);
  });

  test('in progress: the nodes of the cycle, and how far this one is', async () => {
    autoScavenge.statusNow = STATUSES.InProgress;
    await scavenger.start();
    scavenger.progressNow = {
      phase: 'Chunk execution',
      chunksDone: 1,
      chunksTotal: 4,
      bytesDone: 104_857_600,
      bytesTotal: 419_430_400,
      bytesReclaimed: 52_428_800,
      startedAtMs: 0,
      elapsedSeconds: 2.5,
      remainingSeconds: 7.5,
    };
    const { code, out } = await run('status');
    expect([code, out.split('\n')]).toEqual([
      0,
      [
        'In progress.',
        'Schedule: 30 2 * * 0',
        `Cycle ${STATUSES.InProgress.cycle.clusterScavengeId}, since 2031-04-02T09:15:00Z:`,
        '  node           state      result   scavenge',
        '  10.0.0.2:2113  completed  Success  00000000-0000-4000-8000-000000000002',
        '  10.0.0.1:2113  running             00000000-0000-4000-8000-000000000001',
        '  [::1]:2113     waiting',
        '10.0.0.1:2113: 47 %, 3 s left, chunk execution: 100.0 MiB of 400.0 MiB, 40.0 MiB/s, chunk 2 of 4, 50.0 MiB reclaimed',
        '',
      ],
    ]);
    expect(JSON.parse((await run('status', '--json')).out)).toMatchObject({
      enabled: true,
      state: 'InProgress',
      schedule: '30 2 * * 0',
      timeUntilNextCycle: '00:00:00',
      cycle: { nodes: STATUSES.InProgress.cycle.nodes },
      progress: { bytesDone: 104_857_600 },
    });
  });

  test.each([
    ['Pausing', 'Pausing: a scavenge is being stopped.'],
    ['Paused', 'Paused: nothing starts until `skua auto-scavenge resume`.'],
  ] as const)('%s', async (state, text) => {
    autoScavenge.statusNow = STATUSES[state];
    expect((await run('status')).out.split('\n')[0]).toBe(text);
  });

  test('off: why', async () => {
    autoScavenge.off = 'The licence key expired.';
    expect(await run('status')).toEqual({ code: 0, out: 'Auto-scavenge is off. The licence key expired.\n', err: '' });
    expect(await run('status', '--json')).toEqual({
      code: 0,
      out: '{"enabled":false,"reason":"The licence key expired."}\n',
      err: '',
    });
  });
});

describe('commands', () => {
  test('configure tells when the next cycle starts', async () => {
    expect(await run('configure', '0 */6 * * sun')).toEqual({
      code: 0,
      err: '',
      out: expect.stringMatching(
        /^The schedule is 0 \*\/6 \* \* sun: the next cycle starts in 2 d 3 h 45 min, at \S+Z\.\n$/,
      ),
    });
    expect(autoScavenge.calls).toEqual(['configure 0 */6 * * sun', 'status']);
    expect(JSON.parse((await run('configure', '0 0 * * *', '--json')).out)).toMatchObject({
      state: 'Waiting',
      schedule: '0 0 * * *',
    });
  });

  test('pause: at once, or still under way', async () => {
    expect(await run('pause')).toEqual({
      code: 0,
      err: '',
      out: 'Paused. Nothing starts until `skua auto-scavenge resume`.\n',
    });
    autoScavenge.pausesAtOnce = false;
    expect(await run('pause')).toMatchObject({ code: 0, out: expect.stringMatching(/^Pausing: /) });
    expect((await run('pause', '--json')).out).toBe('{"state":"Pausing"}\n');
  });

  test('resume', async () => {
    expect(await run('resume')).toEqual({ code: 0, err: '', out: 'Resumed. The cycle continues.\n' });
    expect(JSON.parse((await run('resume', '--json')).out)).toMatchObject({ state: 'InProgress' });
  });

  test.each([
    [
      new SkuaError('invalid_schedule', 'Invalid CRON expression', { hint: 'Give five fields.' }),
      2,
      'error invalid_schedule: Invalid CRON expression. Give five fields.\n',
    ],
    [
      new SkuaError('auto_scavenge_pausing', 'x'),
      4,
      'error auto_scavenge_pausing: Auto scavenge process is currently pausing. x\n',
    ],
    [
      new SkuaError('auto_scavenge_busy', 'AutoScavenge queue is full'),
      3,
      'error auto_scavenge_busy: AutoScavenge queue is full.\n',
    ],
    [new SkuaError('writer_stopped', 'The writer stopped.'), 3, 'error writer_stopped: The writer stopped.\n'],
  ])('what a node refuses: %s', async (error, code, err) => {
    autoScavenge.error = error;
    for (const words of [['configure', 'x'], ['pause'], ['resume']])
      expect(await run(...words)).toEqual({ code, out: '', err });
  });

  test('while it is off: 4', async () => {
    autoScavenge.off = 'There is no licence key.';
    for (const words of [['configure', '0 0 * * *'], ['pause'], ['resume']])
      expect(await run(...words)).toEqual({
        code: 4,
        out: '',
        err: 'error auto_scavenge_off: AutoScavenge is not enabled. There is no licence key.\n',
      });
  });

  test('nobody answers: 3; more than a quoted schedule: 2', async () => {
    expect((await run('configure', '0', '0', '*', '*', '*')).code).toBe(2);
    await server.stop(0);
    for (const words of [['status'], ['configure', 'x'], ['pause'], ['resume']])
      expect((await run(...words)).code).toBe(3);
  });
});
