import { describe, expect, test } from 'vitest';
import type { ManifestSummary } from '../../../core/backup/format/snapshot-manifest.ts';
import { NodeBackups } from '../../../core/backup/backups/backups.ts';
import type { BackupRequest, NodeBackupsParts } from '../../../core/backup/backups/backups.ts';
import { RepositoryWatch, runBackupSchedule, Shipping } from '../../../core/backup/background/background.ts';
import type { Repository } from '../../../core/backup/repository/api.ts';
import type { ShipOutcome } from '../../../core/backup/shipper/shipper.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { createSchedule } from '../../../infra/cron-schedule.ts';
import { LogLines } from '../../handlers/secured.ts';
import { FakeBackups } from '../../support/backup/fake-backups.ts';
import { FakeAutoScavenge, STATUSES } from '../../support/fake-auto-scavenge.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';

/** The backups of a node, each of which a test ends when it likes. */
function world(more: Partial<NodeBackupsParts> = {}) {
  const clock = new ManualClock(Date.UTC(2031, 3, 2, 9));
  const scavenger = new FakeScavenger();
  const autoScavenge = new FakeAutoScavenge();
  const files = new FakeBackups();
  const log = new LogLines();
  const counted: unknown[] = [];
  const requests: BackupRequest[] = [];
  let making = Promise.withResolvers<ManifestSummary>();
  const backUp = (request: BackupRequest) => {
    requests.push(request);
    making = Promise.withResolvers();
    request.signal.addEventListener('abort', () => making.reject(new SkuaError('aborted', 'Ended.')));
    return making.promise;
  };
  const backups = new NodeBackups({
    place: '/backups',
    scavenger,
    autoScavenge,
    hold: async () => {
      // As the store's own holds are.
      const release = scavenger.hold();
      const hold = files.take();
      return {
        ...hold,
        isReleased: false,
        release: async () => {
          release();
          await hold.release();
        },
      };
    },
    backUp,
    repository: () => Promise.reject(new Error('unused')),
    prune: null,
    clock,
    ids: new SeededIds(3),
    log,
    meter: {
      ...silentMeter,
      count: (name, by, labels) => {
        counted.push([name, by, labels]);
      },
    },
    ...more,
  });
  const begun = async () => {
    while (backups.current()?.phase === 'Starting') await clock.advance(0);
  };
  const done = () =>
    making.resolve({
      id: requests.at(-1)!.backupId,
      nodeId: 'n',
      createdMs: clock.nowMs(),
      cause: 'manual',
      logEnd: 1,
      shippedEnd: 1,
      shippedMs: 0,
      sizeBytes: 436,
    });
  const fail = (error: Error) => making.reject(error);
  return {
    backups,
    clock,
    scavenger,
    autoScavenge,
    files,
    log,
    counted,
    requests,
    begun,
    done,
    fail,
    messages: () => log.lines.map(({ message }) => message),
  };
}

/** Lets everything run that can. */
const settle = (clock: ManualClock) => clock.advance(0);

describe('one backup at a time', () => {
  test('is made of what is held, tells how far it is, and lets go', async () => {
    const { backups, clock, scavenger, requests, begun, done, counted } = world();
    const { backupId } = await backups.start();
    await begun();
    expect([requests[0]!.backupId, requests[0]!.cause, scavenger.holds]).toEqual([backupId, 'manual', 1]);
    expect(backups.current()).toMatchObject({
      backupId,
      phase: 'Copying',
      bytesDone: 0,
      bytesTotal: 436,
      remainingSeconds: null,
    });
    await clock.advance(10_000);
    requests[0]!.onProgress(100, 400);
    expect(backups.current()).toMatchObject({
      bytesDone: 100,
      bytesTotal: 400,
      elapsedSeconds: 10,
      remainingSeconds: 30,
    });
    await expect(backups.start()).rejects.toMatchObject({ code: 'backup_running', data: { backupId } });
    done();
    await settle(clock);
    expect([backups.current(), backups.last(), scavenger.holds]).toEqual([
      null,
      { backupId, result: 'Success', error: null },
      0,
    ]);
    expect(counted).toEqual([['eventstore_backup_runs_total', 1, { result: 'Success' }]]);
  });

  test('that fails is told with its reason', async () => {
    const { backups, clock, scavenger, begun, fail, log } = world();
    await backups.start();
    await begun();
    fail(new SkuaError('storage_denied', 'The key may not write.'));
    await settle(clock);
    expect([backups.last(), scavenger.holds]).toMatchObject([{ result: 'Failed', error: 'The key may not write.' }, 0]);
    expect(log.lines.at(-1)).toMatchObject({ level: 'error', fields: { code: 'storage_denied' } });
    expect((await backups.start()).backupId).not.toBe(backups.last()!.backupId);
    await backups.close();
  });

  test('is ended on request, and by the end of the node', async () => {
    const { backups, scavenger, begun, clock } = world();
    await expect(backups.abort()).rejects.toMatchObject({ code: 'backup_not_running' });
    const { backupId } = await backups.start();
    // Not even begun to copy.
    expect(await backups.abort()).toBe(backupId);
    expect([backups.last(), scavenger.holds]).toEqual([{ backupId, result: 'Aborted', error: null }, 0]);
    await backups.start();
    await begun();
    await backups.close();
    expect([backups.last(), scavenger.holds]).toMatchObject([{ result: 'Aborted' }, 0]);
    await expect(backups.start()).rejects.toMatchObject({ code: 'store_closed' });
    await settle(clock);
  });

  test('is refused while a scavenge runs, and keeps one from starting', async () => {
    const { backups, scavenger } = world();
    const { scavengeId } = await scavenger.start();
    await expect(backups.start()).rejects.toMatchObject({ code: 'scavenge_in_progress', data: { scavengeId } });
    scavenger.end('Success');
    await backups.start();
    await expect(scavenger.start()).rejects.toMatchObject({ code: 'backup_running' });
    await backups.close();
    await scavenger.start();
  });

  test.each([false, true])(
    'stops no scavenge and keeps none from starting where files are objects, asked to pause: %s',
    async (pauseScavenge) => {
      const { backups, clock, files, begun, done, messages } = world({
        scavenger: null,
        autoScavenge: null,
        hold: async () => ({ ...files.take(), isReleased: false }),
      });
      await backups.start({ pauseScavenge });
      await begun();
      done();
      await settle(clock);
      expect(backups.last()?.result).toBe('Success');
      expect(messages().filter((message) => message.includes('scavenge'))).toEqual([]);
    },
  );

  test('needs a repository', async () => {
    const { backups } = world({ place: null });
    await expect(backups.start()).rejects.toMatchObject({ code: 'backup_off' });
    await expect(backups.list()).rejects.toMatchObject({ code: 'backup_off' });
  });

  test('prunes what need not be kept, and a failure of that is only told', async () => {
    const pruned: string[] = [];
    const { backups, clock, begun, done, messages } = world({
      prune: async () => {
        pruned.push('once');
        throw new Error('no');
      },
    });
    await backups.start();
    await begun();
    done();
    await settle(clock);
    expect([pruned, backups.last()?.result]).toEqual([['once'], 'Success']);
    expect(messages()).toContain('old backups could not be removed from the repository; the next backup tries again');
  });
});

describe('pauseScavenge', () => {
  test('stops a run, and lets it go on as it was started', async () => {
    const { backups, clock, scavenger, begun, done } = world();
    await scavenger.start({ threads: 1, throttlePercent: 25 });
    await backups.start({ pauseScavenge: true });
    await begun();
    expect([scavenger.current(), scavenger.last()?.result, scavenger.holds]).toEqual([null, 'Stopped', 1]);
    done();
    await settle(clock);
    expect([scavenger.current(), scavenger.started.length, scavenger.started[1]!.options]).toEqual([
      expect.any(String),
      2,
      { threads: 1, throttlePercent: 25 },
    ]);
  });

  test('does so after a failure and after an end, too', async () => {
    for (const isFailing of [true, false]) {
      const { backups, clock, scavenger, begun, fail } = world();
      await scavenger.start();
      await backups.start({ pauseScavenge: true });
      await begun();
      if (isFailing) fail(new Error('gone'));
      else await backups.abort();
      await settle(clock);
      expect([scavenger.started.length, scavenger.current()]).toEqual([2, expect.any(String)]);
    }
  });

  test('leaves a dry run and what an operator has paused alone', async () => {
    const { backups, clock, scavenger, autoScavenge, begun, done } = world();
    autoScavenge.statusNow = STATUSES.Paused;
    await scavenger.startDryRun();
    const dry = scavenger.current();
    // The fake's holds know no dry runs.
    scavenger.hold = () => () => {};
    await backups.start({ pauseScavenge: true });
    await begun();
    expect(scavenger.current()).toBe(dry);
    done();
    await settle(clock);
    expect([autoScavenge.calls, scavenger.started.length]).toEqual([['status'], 1]);
  });

  test('pauses a cycle and resumes it, which then starts its own run again', async () => {
    const { backups, clock, scavenger, autoScavenge, begun, done } = world();
    autoScavenge.statusNow = STATUSES.InProgress;
    autoScavenge.pausesAtOnce = false;
    await scavenger.start();
    await backups.start({ pauseScavenge: true });
    await begun();
    expect([autoScavenge.calls, scavenger.current()]).toEqual([['status', 'pause'], null]);
    // It takes no order to go on until it has come to rest.
    autoScavenge.error = new SkuaError('auto_scavenge_pausing', 'Pausing.');
    done();
    await settle(clock);
    autoScavenge.error = null;
    await clock.advance(1_000);
    expect([autoScavenge.calls, scavenger.started.length, backups.last()?.result]).toEqual([
      ['status', 'pause', 'resume', 'resume'],
      1,
      'Success',
    ]);
  });

  test('a run of an operator goes on beside a cycle that waits for its end', async () => {
    const { backups, clock, scavenger, autoScavenge, begun, done } = world();
    autoScavenge.statusNow = {
      ...STATUSES.InProgress,
      cycle: {
        clusterScavengeId: 'c',
        startedAtMs: 0,
        nodes: [{ node: 'n', state: 'waiting', scavengeId: null, result: null }],
      },
    };
    await scavenger.start();
    await backups.start({ pauseScavenge: true });
    await begun();
    done();
    await settle(clock);
    expect([autoScavenge.calls, scavenger.started.length]).toEqual([['status', 'pause', 'resume'], 2]);
  });
});

test('a schedule begins a backup whenever it comes round, and leaves out one that comes too early', async () => {
  const clock = new ManualClock(Date.UTC(2031, 3, 2, 9, 58, 30));
  const log = new LogLines();
  const begun: string[] = [];
  const stop = new AbortController();
  const begin = (cause: string) => {
    begun.push(`${cause} ${new Date(clock.nowMs()).toISOString()}`);
    if (begun.length === 2) throw new SkuaError('backup_running', 'One is being made.');
    return { backupId: 'x', made: new Promise<never>(() => {}) };
  };
  const running = runBackupSchedule({
    backups: { begin },
    schedule: createSchedule(),
    expression: '0 * * * *',
    clock,
    log,
    signal: stop.signal,
  });
  await clock.advance(89_999);
  expect(begun).toEqual([]);
  await clock.advance(2 * 3_600_000);
  expect(begun).toEqual(['scheduled 2031-04-02T10:00:00.000Z', 'scheduled 2031-04-02T11:00:00.000Z']);
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { reason: 'One is being made.' } }]);
  // Set forward by an operator: at most half a minute later it is noticed.
  clock.setNow(Date.UTC(2031, 3, 2, 15, 0, 1));
  await clock.advance(30_000);
  expect(begun).toHaveLength(3);
  stop.abort();
  await running;
});

test('shipping makes the backup that it needs, as soon as no scavenge runs', async () => {
  const clock = new ManualClock();
  const log = new LogLines();
  const outcomes: Partial<ShipOutcome>[] = [
    {},
    { error: new SkuaError('storage_unreachable', 'Nobody answers.') },
    { error: new Error('again') },
    {},
  ];
  const begun: string[] = [];
  let refusal: SkuaError | null = new SkuaError('scavenge_in_progress', 'One runs.', { scavengeId: 'a run' });
  let ticks = 0;
  const shipper = { tick: async () => ({ shippedBytes: 0, wants: null, error: null, ...outcomes[ticks++] }) };
  const begin = (cause: string) => {
    if (refusal !== null) throw refusal;
    begun.push(cause);
    return { backupId: 'x', made: new Promise<never>(() => {}) };
  };
  const shipping = new Shipping({ shipper, backups: { begin, current: () => null }, everyMs: 2_000, clock, log });
  shipping.want('none');
  const stop = new AbortController();
  const running = shipping.run(stop.signal);
  await clock.advance(6_000);
  expect([ticks, begun, log.lines.map(({ level, message }) => `${level} ${message}`)]).toEqual([
    4,
    [],
    ['error log could not be shipped; will retry', 'info log is shipped again'],
  ]);
  refusal = null;
  await clock.advance(4_000);
  expect(begun).toEqual(['shipping']);
  stop.abort();
  await running;
});

test('a watch knows the newest backup, tells of a newer one, and outlives a repository that is away', async () => {
  const clock = new ManualClock(1_000_000);
  const log = new LogLines();
  let newest: { id: string; createdMs: number; checkpoints: { writer: number } } | null = null;
  let isAway = true;
  let told = 0;
  const repository = async () => {
    if (isAway) throw new SkuaError('storage_unreachable', 'Nobody answers.');
    return {
      place: '/b',
      newestOf: async () => newest,
      readObject: async () => ({ backupId: 'x', provenMs: 700, position: 1 }),
    } as unknown as Repository;
  };
  const watch = new RepositoryWatch({
    repository,
    nodeId: 'n',
    clock,
    log,
    onNewer: () => {
      told++;
    },
  });
  const stop = new AbortController();
  const running = watch.run(stop.signal);
  await clock.advance(120_000);
  expect([watch.newestMs, watch.provenMs, log.lines.length]).toEqual([null, null, 1]);
  isAway = false;
  await clock.advance(60_000);
  expect([watch.newestMs, watch.provenMs, told, log.lines.at(-1)?.level]).toEqual([null, 700, 0, 'info']);
  newest = { id: 'a', createdMs: 900, checkpoints: { writer: 5 } };
  await clock.advance(300_000);
  expect([watch.newestMs, told]).toEqual([900, 1]);
  watch.made({ id: 'b', createdMs: 950, logEnd: 9 });
  expect(watch.newest).toEqual({ id: 'b', createdMs: 950, logEnd: 9 });
  watch.proven(800);
  expect([watch.newestMs, watch.provenMs]).toEqual([950, 800]);
  stop.abort();
  await running;
});
