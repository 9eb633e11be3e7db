import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { TOMBSTONE } from '../../../core/log/format/records.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { DryRunChunk, DryRunReport } from '../../../core/scavenge/api.ts';
import { encodeText } from '../../../core/base/text.ts';
import { createApp } from '../../../handlers/app.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { readBody } from '../../../local/http/http-request.ts';
import { startServer } from '../../../local/http/server.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { ModelStore } from '../../support/model-store.ts';
import { runBy } from '../run.ts';
import { FakeIo } from '../support.ts';
import { contextOf } from '../../support/app-context.ts';

/** The commands that talk to a node, against a server whose scavenger does what the test says. */

const FIRST = '00000000-0000-4000-8000-000000000001';
const PROGRESS = {
  phase: 'Chunk execution',
  chunksDone: 1,
  chunksTotal: 4,
  bytesDone: 104_857_600,
  bytesTotal: 419_430_400,
  bytesReclaimed: 52_428_800,
  startedAtMs: 1_900_000_000_000,
  elapsedSeconds: 2.5,
  remainingSeconds: 7.5,
} as const;

let scavenger: FakeScavenger;
let store: ModelStore;
let server: HttpServer;

beforeEach(async () => {
  scavenger = new FakeScavenger();
  store = new ModelStore(systemClock, systemIds);
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
    }),
  );
  server = await startServer({ hostname: '127.0.0.1', port: 0, fetch: app, log: silentLog });
});
afterEach(async () => {
  await server.stop(0);
});

const run = (words: string, io = new FakeIo()) => runBy(io, [...words.split(' '), '--node', server.url]);

/** Ends the run with its last event in the history, as a real one does. */
async function end(result: 'Success' | 'Stopped' | 'Errored', error: string | null = null): Promise<void> {
  const data = JSON.stringify({
    scavengeId: FIRST,
    result,
    error,
    timeTaken: '00:00:04.5000000',
    spaceSaved: 157_286_400,
  });
  await store.append(`$scavenges-${FIRST}`, -2, [
    {
      id: '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11',
      type: '$scavengeCompleted',
      isJson: true,
      data: encodeText(data),
      metadata: new Uint8Array(0),
    },
  ]);
  scavenger.end(result, error);
}

describe('start', () => {
  test('tells the id, and how to follow', async () => {
    expect(await run('scavenge start --threads 2 --threshold -1 --throttle-percent 100 --sync-only')).toEqual({
      code: 0,
      out: `Scavenge ${FIRST} has started. Follow it with \`skua scavenge watch\`.\n`,
      err: '',
    });
    expect(scavenger.started).toEqual([
      { options: { threads: 2, threshold: -1, throttlePercent: 100, syncOnly: true }, isDry: false },
    ]);
  });

  test('sends only what was given', async () => {
    expect(await run('scavenge start --json')).toEqual({ code: 0, out: `{"scavengeId":"${FIRST}"}\n`, err: '' });
    expect(scavenger.started).toEqual([{ options: {}, isDry: false }]);
  });

  test('while one runs: 4, with its id and what to do', async () => {
    await scavenger.start();
    const { code, out, err } = await run('scavenge start');
    expect({ code, out }).toEqual({ code: 4, out: '' });
    expect(err).toMatch(
      new RegExp(
        `^error scavenge_in_progress: Scavenge ${FIRST} is already running\\. .*skua scavenge watch.*skua scavenge stop`,
      ),
    );
  });

  test('--wait says nothing until the end', async () => {
    const io = new FakeIo();
    scavenger.progressNow = PROGRESS;
    const running = run('scavenge start --wait', io);
    await scavenger.begun();
    await end('Success');
    expect(await running).toEqual({
      code: 0,
      out: `Done after 4.5 s: scavenge ${FIRST}. 150.0 MiB of files reclaimed.\n`,
      err: '',
    });
  });

  test('--watch draws a bar on a terminal', async () => {
    const io = new FakeIo({ isTTY: true, env: { NO_COLOR: '1' } });
    scavenger.progressNow = PROGRESS;
    const running = run('scavenge start --watch', io);
    await io.written(/\[#+-+\]/);
    scavenger.progressNow = { ...PROGRESS, chunksDone: 2, bytesDone: 209_715_200 };
    // One bar goes over all phases: learning and deciding come before.
    await io.written(/\[##############----------\] 58 %, (?:\d+ s left, )?chunk execution: 200\.0 MiB of 400\.0 MiB, /);
    await end('Success');
    const { code, out } = await running;
    expect({ code, out }).toEqual({
      code: 0,
      out: `Done after 4.5 s: scavenge ${FIRST}. 150.0 MiB of files reclaimed.\n`,
    });
    expect(io.err.endsWith('\r\u001B[2K')).toBe(true);
  });
});

describe('watch', () => {
  test('--json: an object a line, the result last; a failed run is 1', async () => {
    await scavenger.start();
    scavenger.progressNow = PROGRESS;
    const io = new FakeIo();
    const running = run('scavenge watch --json', io);
    await io.written(/"chunksDone":1/);
    scavenger.progressNow = { ...PROGRESS, chunksDone: 2, elapsedSeconds: 3 };
    await io.written(/"chunksDone":2/);
    await end('Errored', 'Error while scavenging DB: no space.');
    const { code, out, err } = await running;
    expect({ code, err }).toEqual({ code: 1, err: '' });
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map((line) => line['kind'])).toEqual(['progress', 'progress', 'result']);
    expect(lines[0]).toMatchObject({
      scavengeId: FIRST,
      phase: 'Chunk execution',
      chunksDone: 1,
      bytesReclaimed: 52_428_800,
    });
    expect(lines[2]).toEqual({
      kind: 'result',
      scavengeId: FIRST,
      result: 'Errored',
      error: 'Error while scavenging DB: no space.',
      bytesReclaimed: 157_286_400,
      seconds: 4.5,
    });
  });

  test('a stopped run is 1, and goes on with the next start', async () => {
    await scavenger.start();
    await end('Stopped');
    expect(await run('scavenge watch')).toEqual({
      code: 1,
      out: `Stopped after 4.5 s: scavenge ${FIRST}. 150.0 MiB of files reclaimed. The next start resumes where it stopped.\n`,
      err: '',
    });
  });

  test('nothing to follow: 1', async () => {
    expect(await run('scavenge watch')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('skua scavenge start'),
    });
  });
});

describe('status', () => {
  test('never run', async () => {
    expect(await run('scavenge status')).toEqual({
      code: 0,
      out: 'No scavenge is running, and none has run since the node was started.\n',
      err: '',
    });
    expect(JSON.parse((await run('scavenge status --json')).out)).toEqual({ running: null, last: null });
  });

  test('running, for people and for programs', async () => {
    await scavenger.start();
    scavenger.progressNow = PROGRESS;
    const { code, out } = await run('scavenge status');
    expect(code).toBe(0);
    expect(out).toBe(
      `Running for 2.5 s: scavenge ${FIRST}.\n47 %, 3 s left, chunk execution: 100.0 MiB of 400.0 MiB, 40.0 MiB/s, chunk 2 of 4, 50.0 MiB reclaimed\n`,
    );
    expect(JSON.parse((await run('scavenge status --json')).out)).toMatchObject({
      running: { scavengeId: FIRST, bytesDone: 104_857_600 },
      last: { scavengeResult: 'InProgress' },
    });
  });

  test('ended', async () => {
    await scavenger.start();
    await end('Errored', 'Error while scavenging DB: no space.');
    const { code, out } = await run('scavenge status');
    expect({ code, out }).toEqual({
      code: 0,
      out: `No scavenge is running. The last one:\nFailed after 4.5 s: scavenge ${FIRST}. 150.0 MiB of files reclaimed. Error while scavenging DB: no space. The next start resumes where it failed.\n`,
    });
  });
});

describe('an older point', () => {
  const waiting = {
    why: 'unfinished',
    point: {
      position: 41_654,
      eventNumber: 2,
      effectiveNowMs: 1_795_305_600_123,
      effectiveNowTicks: 4_567,
      threshold: 0,
    },
  } as const;
  const document = {
    why: 'unfinished',
    position: 41_654,
    eventNumber: 2,
    effectiveNow: '2026-11-22T00:00:00.1234567Z',
    threshold: 0,
  };
  const NOTE =
    'It resumes the scavenge of 2026-11-22T00:00:00Z, up to that time (position 41654); what was deleted or has expired since needs another run.\n';
  const done = (id: string, time = ' after 4.5 s', space = ' 150.0 MiB of files reclaimed.') =>
    `Done up to 2026-11-22T00:00:00Z${time}: scavenge ${id}.${space} It resumed the scavenge of that time: what was deleted or has expired since needs another run.\n`;
  beforeEach(() => {
    scavenger.waitingNow = waiting;
  });

  test('is told at the start, and in the result', async () => {
    expect(await run('scavenge start')).toEqual({
      code: 0,
      out: `Scavenge ${FIRST} has started. Follow it with \`skua scavenge watch\`.\n`,
      err: NOTE,
    });
    await end('Success');
    expect(await run('scavenge watch')).toEqual({ code: 0, out: done(FIRST), err: '' });
    expect(JSON.parse((await run('scavenge watch --json')).out)).toMatchObject({
      result: 'Success',
      olderPoint: document,
    });
    expect(JSON.parse((await run('scavenge start --json')).out)).toMatchObject({ olderPoint: document });
  });

  test('of a point that no run has reached, and with a threshold of its own', async () => {
    scavenger.waitingNow = { why: 'unreached', point: { ...waiting.point, threshold: 40 } };
    expect((await run('scavenge start --threshold 5')).err).toBe(
      'It uses the scavenge point of 2026-11-22T00:00:00Z, which no run has reached, up to that time (position 41654), with its threshold of 40; what was deleted or has expired since needs another run.\n',
    );
  });

  test('--fresh begins at a new one, and says nothing of it', async () => {
    expect(await run('scavenge start --fresh')).toMatchObject({ code: 0, err: '' });
    expect(scavenger.started).toEqual([{ options: { startAfresh: true }, isDry: false }]);
  });

  test('waits, and the status says since when, up to what, and how to go on', async () => {
    const { out } = await run('scavenge status');
    expect(out).toBe(
      [
        'No scavenge is running, and none has run since the node was started.',
        'A scavenge is unfinished: it was started at 2026-11-22T00:00:00Z and covers the log up to that time (position 41654).',
        '  skua scavenge start  resumes it; what was deleted or has expired since needs another run',
        '  skua scavenge start --wait --until-clean  does that, then starts the other run',
        '  skua scavenge start --fresh  abandons it and starts at a new point',
        '',
      ].join('\n'),
    );
    expect(JSON.parse((await run('scavenge status --json')).out)).toEqual({
      running: null,
      last: null,
      waiting: document,
    });
    await scavenger.start();
    scavenger.progressNow = { ...PROGRESS, olderPoint: waiting };
    const running = await run('scavenge status');
    expect(running.out).toContain(`50.0 MiB reclaimed, up to 2026-11-22T00:00:00Z\n${NOTE}`);
    expect(running.out).not.toContain('waits');
  });

  test('--until-clean runs another behind it, up to now', async () => {
    const io = new FakeIo();
    const running = run('scavenge start --wait --until-clean', io);
    await scavenger.begun();
    scavenger.waitingNow = null;
    await end('Success');
    await io.written(/Done up to/);
    await scavenger.begun(2);
    const second = scavenger.current()!;
    scavenger.end('Success');
    const { code, out, err } = await running;
    expect({ code, err }).toEqual({ code: 0, err: NOTE });
    expect(out).toBe(`${done(FIRST)}Done: scavenge ${second}.\n`);
  });

  test('--until-clean ends where no run reaches its start, and where one fails', async () => {
    const start = scavenger.start.bind(scavenger);
    const ending = (result: 'Success' | 'Stopped') => {
      scavenger.start = async (options) => {
        const started = await start(options);
        await store.append(`$scavenges-${started.scavengeId}`, -2, [
          {
            id: started.scavengeId,
            type: '$scavengeCompleted',
            isJson: true,
            data: encodeText('{"timeTaken":"00:00:01","spaceSaved":0}'),
            metadata: new Uint8Array(0),
          },
        ]);
        scavenger.end(result);
        return started;
      };
    };
    ending('Success');
    const { code, out, err } = await run('scavenge start --wait --until-clean');
    expect([code, out.split('Done up to').length - 1, err.split(NOTE).length - 1]).toEqual([1, 4, 4]);
    expect(err).toMatch(/error scavenge_not_clean: 4 runs have finished, and none reached its own start/);
    ending('Stopped');
    expect((await run('scavenge start --wait --until-clean')).out).toMatch(/^Stopped after/);
  });

  test.each([
    ['--until-clean', /needs|give --wait or --watch/],
    ['--wait --until-clean --fresh', /can't be combined with --fresh/],
    ['--wait --until-clean --sync-only', /--sync-only/],
    ['--until-clean --dry-run', /--dry-run/],
    ['--fresh --sync-only', /leave one of them out/],
  ])('%s is wrong usage', async (words, message) => {
    expect(await run(`scavenge start ${words}`)).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringMatching(message),
    });
    expect(scavenger.started).toEqual([]);
  });

  test('stands beside what a dry run and an explanation promise', async () => {
    const running = run('scavenge start --dry-run');
    await scavenger.begun();
    const report: DryRunReport = {
      scavengeId: FIRST,
      threshold: 0,
      point: waiting.point,
      chunks: [],
      totals: {
        chunks: 0,
        records: 0,
        discardable: 0,
        redactable: 0,
        bytes: 0,
        bytesReclaimable: 0,
        chunksExecuted: 0,
      },
      waiting,
    };
    scavenger.reports.set(FIRST, report);
    const line =
      'This is what a new scavenge would do. The next start resumes the scavenge of 2026-11-22T00:00:00Z, up to that time; what was deleted or has expired since then needs another run, or start with `skua scavenge start --fresh`.\n';
    expect((await running).out).toBe(`A scavenge would not rewrite any chunk. Nothing was changed.\n${line}`);
    const removed = [{ from: 0, to: 9, count: 10, bytes: 1_024, rule: '$tb' as const }];
    const left = [{ from: 4, to: 9, count: 6, bytes: 600, rule: '$tb' as const }];
    const explained = {
      stream: 's',
      lastEventNumber: 10,
      metadata: { $tb: 10 },
      rules: [{ rule: '$tb' as const, value: 10 }],
      removed,
      kept: [],
    };
    scavenger.explanations.set('s', { ...explained, waiting: { ...waiting, leaves: left } });
    expect((await run('explain s')).out).toContain(
      [
        '  0 to 9     10  1.0 KiB  $tb',
        '',
        'The next start is not this scavenge: it resumes the one of 2026-11-22T00:00:00Z, up to that time, unless you start it with `skua scavenge start --fresh`.',
        'Of the 10 events, it leaves 6 to another scavenge:',
        '  events  count   size  because of',
        '  4 to 9      6  600 B  $tb',
        '',
      ].join('\n'),
    );
    expect(JSON.parse((await run('explain s --json')).out)).toEqual({
      ...explained,
      waiting: { ...document, leaves: left },
    });
    scavenger.explanations.set('s', { ...explained, waiting: { ...waiting, leaves: [] } });
    expect((await run('explain s')).out).toContain('It removes the same of this stream.\n');
  });
});

describe('stop', () => {
  test('the running one, or the one named', async () => {
    await scavenger.start();
    expect(await run('scavenge stop')).toEqual({
      code: 0,
      out: `Scavenge ${FIRST} has stopped. The next start resumes where it stopped.\n`,
      err: '',
    });
    const { scavengeId } = await scavenger.start();
    expect(await run(`scavenge stop ${scavengeId} --json`)).toEqual({
      code: 0,
      out: `{"scavengeId":"${scavengeId}"}\n`,
      err: '',
    });
  });

  test('nothing to stop: 1', async () => {
    expect(await run('scavenge stop')).toEqual({
      code: 1,
      out: '',
      err: 'error scavenge_not_found: No scavenge is running.\n',
    });
    expect(await run('scavenge stop abc')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Scavenge abc is not running.'),
    });
  });
});

describe('dry run', () => {
  const chunk = (number: number, weight: number, wouldExecute: boolean): DryRunChunk => ({
    file: `chunk-${String(number).padStart(6, '0')}.000000`,
    start: number,
    end: number,
    weight,
    records: 1_300,
    discardable: weight / 2,
    redactable: 0,
    bytes: 268_435_456,
    bytesReclaimable: weight * 40_000,
    wouldExecute,
  });
  const report: DryRunReport = {
    scavengeId: FIRST,
    threshold: 500,
    point: { position: 900, eventNumber: 1, effectiveNowMs: 0, threshold: 500 },
    chunks: [
      chunk(0, 1_250, true),
      chunk(1, 4, false),
      chunk(2, 0, false),
      { ...chunk(3, 600, true), end: 5, file: 'chunk-000003.000002' },
    ],
    totals: {
      chunks: 4,
      records: 5_200,
      discardable: 927,
      redactable: 0,
      bytes: 1_073_741_824,
      bytesReclaimable: 74_000_000,
      chunksExecuted: 2,
    },
  };

  test('a table, sums, and that nothing was changed', async () => {
    const running = run('scavenge start --dry-run --threshold 500');
    await scavenger.begun();
    scavenger.reports.set(FIRST, report);
    const { code, out, err } = await running;
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toBe(
      [
        'file                 chunks  weight  records  removable       size  reclaimable  rewritten',
        'chunk-000000.000000  0        1,250    1,300        625  256.0 MiB     47.7 MiB  yes',
        'chunk-000001.000000  1            4    1,300          2  256.0 MiB    156.3 KiB  no',
        'chunk-000003.000002  3-5        600    1,300        300  256.0 MiB     22.9 MiB  yes',
        'all                                    5,200        927    1.0 GiB     70.6 MiB  2 of 4',
        '1 chunk file with nothing to remove.',
        '',
        'A scavenge would rewrite 2 chunk files of 4 and give back about 70.6 MiB of 1.0 GiB of chunk files (threshold 500: removable events in lighter chunks stay on disk). Nothing was changed.',
        '',
      ].join('\n'),
    );
    expect(scavenger.started).toEqual([{ options: { threshold: 500 }, isDry: true }]);
  });

  test('of records that free no block of a chunk file, why nothing is given back', async () => {
    const running = run('scavenge start --dry-run');
    await scavenger.begun();
    const totals = { ...report.totals, discardable: 2, bytesReclaimable: 0 };
    scavenger.reports.set(FIRST, { ...report, threshold: 0, totals });
    expect((await running).out).toContain(
      'give back about 0 B of 1.0 GiB of chunk files, which have whole blocks of 4 KiB: of each it may be one more or less. Nothing was changed.',
    );
  });

  test('--json is exact', async () => {
    const running = run('scavenge start --dry-run --json');
    await scavenger.begun();
    scavenger.reports.set(FIRST, report);
    expect(JSON.parse((await running).out)).toMatchObject({
      threshold: 500,
      chunks: report.chunks,
      totals: report.totals,
    });
  });

  test('watched by somebody else it ends with its report, or without one when it was stopped', async () => {
    await scavenger.startDryRun();
    scavenger.progressNow = { ...PROGRESS, phase: 'Accumulation' };
    const io = new FakeIo();
    const running = run('scavenge watch --json', io);
    await io.written(/"phase":"Accumulation"/);
    scavenger.reports.set(FIRST, report);
    scavenger.end('Success');
    const { code, out } = await running;
    expect([code, JSON.parse(out.trim().split('\n').at(-1)!)]).toMatchObject([
      0,
      { kind: 'result', totals: report.totals },
    ]);

    const { scavengeId } = await scavenger.startDryRun();
    const again = run('scavenge watch', new FakeIo());
    await scavenger.stop(scavengeId);
    scavenger.reports.set(scavengeId, new SkuaError('aborted', 'Stopped.'));
    expect(await again).toMatchObject({ code: 1, out: '' });
  });

  test('one that fails: 1, with the reason', async () => {
    const running = run('scavenge start --dry-run');
    await scavenger.begun();
    scavenger.reports.set(FIRST, new SkuaError('scavenge_failed', 'Found Tombstone in metadata stream $$a.'));
    expect(await running).toEqual({
      code: 1,
      out: '',
      err: 'error scavenge_failed: Found Tombstone in metadata stream $$a.\n',
    });
  });
});

describe('explain', () => {
  test('what goes and what stays, by rule', async () => {
    scavenger.explanations.set('a/ü', {
      stream: 'a/ü',
      lastEventNumber: 12,
      metadata: { $maxCount: 3, $tb: 5 },
      rules: [
        { rule: '$tb', value: 5 },
        { rule: '$maxCount', value: 3 },
      ],
      removed: [
        { from: 0, to: 4, count: 5, bytes: 10_240, rule: '$tb' },
        { from: 5, to: 9, count: 4, bytes: 8_192, rule: '$maxCount' },
      ],
      kept: [
        { from: 10, to: 11, count: 2, why: 'within $maxCount' },
        { from: 12, to: 12, count: 1, why: 'last event of the stream' },
      ],
    });
    expect(await run('explain a/ü')).toEqual({
      code: 0,
      err: '',
      out: [
        'a/ü: last event 12',
        'metadata: {"$maxCount":3,"$tb":5}',
        'rules:    $tb 5, $maxCount 3',
        '',
        'A scavenge would remove 9 events (18.0 KiB of records):',
        '  events  count      size  because of',
        '  0 to 4      5  10.0 KiB  $tb',
        '  5 to 9      4   8.0 KiB  $maxCount',
        '3 events would stay:',
        '  events    count  because',
        '  10 to 11      2  within $maxCount',
        '  12            1  last event of the stream',
        '',
      ].join('\n'),
    });
  });

  test('what of the metadata has no effect, and why', async () => {
    const ignored = [
      { key: '$maxAge', value: '"PT5M"', why: 'it must be a whole number of seconds, such as 3600' },
      { key: '$maxcount', value: '10', why: 'unknown key: it must be spelt $maxCount' },
    ];
    const explained = { stream: 'a', lastEventNumber: 1, rules: [], removed: [], kept: [] };
    scavenger.explanations.set('a', { ...explained, metadata: { $maxAge: 'PT5M', $maxcount: 10 }, ignored });
    expect((await run('explain a')).out).toBe(
      [
        'a: last event 1',
        'metadata: {"$maxAge":"PT5M","$maxcount":10}',
        'ignored:  $maxAge "PT5M": it must be a whole number of seconds, such as 3600',
        'ignored:  $maxcount 10: unknown key: it must be spelt $maxCount',
        'rules:    none, so nothing is ever removed',
        '',
        'A scavenge would remove nothing.',
        '',
      ].join('\n'),
    );
    scavenger.explanations.set('a', {
      ...explained,
      metadata: null,
      ignored: [{ key: null, value: 'tomorrow', why: 'this is no JSON object' }],
    });
    expect((await run('explain a')).out).toContain('metadata: tomorrow\nignored:  all of it: this is no JSON object\n');
  });

  test('numbers beyond 2^53 come through', async () => {
    scavenger.explanations.set('gone', {
      stream: 'gone',
      lastEventNumber: TOMBSTONE,
      metadata: null,
      rules: [{ rule: 'tombstone', value: true }],
      removed: [],
      kept: [{ from: TOMBSTONE, to: TOMBSTONE, count: 1, why: 'tombstone' }],
    });
    expect((await run('explain gone --json')).out).toContain('"lastEventNumber": 9223372036854775807,');
    const { out } = await run('explain gone');
    expect(out).toContain('gone: deleted for ever\nmetadata: none\nrules:    tombstone\n');
    expect(out).toContain('A scavenge would remove nothing.');
    expect(out).toContain('\n  the last      1  tombstone\n');
    expect(out).not.toContain('9223372036854775807');
  });

  test('no such stream: 1', async () => {
    expect(await run('explain nothing')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^error stream_not_found: /),
    });
  });
});

describe('what a node may answer', () => {
  const answering = async (response: () => Response, words: string) => {
    await server.stop(0);
    server = await startServer({ hostname: '127.0.0.1', port: 0, fetch: response, log: silentLog });
    return run(words);
  };

  test.each([
    [401, 4],
    [403, 4],
    [503, 3],
    [500, 1],
    [404, 1],
  ])('%i is exit code %i', async (status, code) => {
    const result = await answering(() => new Response('because', { status, statusText: 'So' }), 'scavenge start');
    expect(result).toEqual({
      code,
      out: '',
      err: `error unexpected_answer: The node answered ${status} So while starting a scavenge. because\n`,
    });
  });

  test('a problem document is told in its own words', async () => {
    const problem = JSON.stringify({
      code: 'access_denied',
      title: 'Forbidden',
      detail: 'This needs the role $ops',
      hint: 'Ask for it.',
    });
    expect(
      await answering(
        () =>
          new Response(problem, {
            status: 403,
            headers: { 'content-type': 'application/problem+json; charset=utf-8' },
          }),
        'scavenge stop',
      ),
    ).toEqual({ code: 4, out: '', err: 'error access_denied: This needs the role $ops. Ask for it.\n' });
  });

  test.each([
    'scavenge start',
    'scavenge stop',
    'scavenge status',
    'scavenge watch',
    'scavenge start --dry-run',
    'explain s',
  ])('nobody answers skua %s: 3', async (words) => {
    await server.stop(0);
    expect(await run(words)).toMatchObject({
      code: 3,
      out: '',
      err: expect.stringMatching(
        /^error node_unreachable: No node answers at .*npm start.*--node URL, or in SKUA_NODE\.\n$/,
      ),
    });
  });
});
