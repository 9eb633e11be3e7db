import { describe, expect, test } from 'vitest';
import type { CheckReport } from '../../../core/backup/checks/checks.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { BACKUP_ID, fakeBackups } from '../../support/backup/fake-backups.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { harness } from '../harness.ts';

async function world(options: Parameters<typeof fakeBackups>[1] = {}) {
  const backups = await fakeBackups(new ManualClock(Date.UTC(2031, 3, 2)), options);
  return { ...harness({ backups }), backups };
}

const VERIFIED: CheckReport = {
  kind: 'verify',
  verified: {
    manifests: 1,
    blobs: 2,
    blobsRead: 2,
    bytesRead: 10,
    pieces: 0,
    findings: 1,
    errors: 1,
    list: [{ key: 'blobs/ab', kind: 'damaged', message: 'It is damaged.', backups: [BACKUP_ID] }],
  },
};
const DRILLED: CheckReport = {
  kind: 'drill',
  drill: {
    backupId: BACKUP_ID,
    position: 1_000,
    chunks: 1,
    records: 5,
    events: 4,
    indexEntries: 4,
    bytes: 4_096,
    findings: [],
    warnings: [],
    isProven: true,
    restoreMs: 1_500.000_4,
    verifyMs: 500,
  },
};

test('the status says how far a restore reaches, and how to make one', async () => {
  const { get, backups } = await world();
  expect((await get('/admin/backup/status')).json()).toMatchObject({ current: null });
  backups.node.running = {
    backupId: BACKUP_ID,
    phase: 'Copying',
    bytesDone: 5,
    bytesTotal: 10,
    startedMs: Date.UTC(2031, 3, 2),
    elapsedSeconds: 1,
    remainingSeconds: 1,
  };
  expect((await get('/admin/backup/status')).json()).toMatchObject({
    current: { backupId: BACKUP_ID, phase: 'Copying', bytesDone: 5, bytesTotal: 10, startedAt: '2031-04-02T00:00:00Z' },
  });
  backups.node.lastNow = { backupId: BACKUP_ID, result: 'Failed', error: 'No.' };
  expect((await get('/admin/backup/status')).json()).toMatchObject({
    repository: 's3://backups/node',
    newest: { id: BACKUP_ID, createdAt: '2031-04-02T09:00:00Z', logEnd: 1_000 },
    restorable: { position: 1_500, at: '2031-04-02T09:10:00Z' },
    unshippedBytes: 7,
    shipLagSeconds: 1.5,
    provenAt: '2031-04-02T09:00:00Z',
    verified: { errors: 0 },
    last: { backupId: BACKUP_ID, result: 'Failed', error: 'No.' },
    commands: { restore: 'skua restore --from s3://backups/node --db ./restored' },
  });
  expect((await harness().get('/admin/backup/status')).status).toBe(404);
});

describe('checks', () => {
  test('begin, are looked at, and are ended', async () => {
    const { send, get } = await world();
    const begun = await send('POST', '/admin/backup/verify?subset=0.25');
    expect(begun.status).toBe(202);
    const { checkId } = begun.json();
    expect((await get('/admin/backup/check')).json()).toEqual({
      checks: [
        {
          checkId,
          kind: 'verify',
          state: 'running',
          phase: 'checking',
          bytesDone: 5,
          bytesTotal: 10,
          startedAt: '2031-04-02T00:00:00Z',
          endedAt: null,
          elapsedSeconds: 0,
          error: null,
          isGood: null,
          report: null,
        },
      ],
    });
    expect((await send('POST', '/admin/backup/drill')).json()).toMatchObject({ code: 'task_running' });
    expect((await send('DELETE', '/admin/backup/check')).json()).toEqual({ checkId });
    expect((await send('DELETE', '/admin/backup/check')).json()).toMatchObject({ code: 'task_not_found' });
  });

  test('end with what they found', async () => {
    const { send, get } = await world({
      check:
        ({ kind }) =>
        async () =>
          kind === 'verify' ? VERIFIED : DRILLED,
    });
    await send('POST', '/admin/backup/verify');
    await get('/admin/backup/check');
    await send('POST', `/admin/backup/drill?backup=${BACKUP_ID}`);
    expect((await get('/admin/backup/check')).json().checks).toMatchObject([
      {
        kind: 'drill',
        state: 'done',
        isGood: true,
        report: { backupId: BACKUP_ID, restoreSeconds: 1.5, findings: [] },
      },
      {
        kind: 'verify',
        state: 'done',
        isGood: false,
        report: { errors: 1, findings: [{ where: 'blobs/ab', kind: 'damaged', message: 'It is damaged.' }] },
      },
    ]);
  });

  test('that fail say why', async () => {
    const { send, get } = await world({
      check: () => async () => {
        throw new SkuaError('disk_full', 'There is no room.');
      },
    });
    await send('POST', '/admin/backup/drill');
    expect((await get('/admin/backup/check')).json().checks).toMatchObject([
      { state: 'failed', error: 'There is no room.', isGood: null },
    ]);
  });

  test('are refused without a repository', async () => {
    const { send } = await world({ check: null });
    for (const path of ['verify', 'drill'])
      expect((await send('POST', `/admin/backup/${path}`)).json()).toMatchObject({ code: 'backup_off' });
  });

  test.each([
    'verify?subset=0',
    'verify?subset=1.1',
    'verify?subset=',
    'verify?subset=-1',
    'verify?subset=NaN',
    'verify?subset=1e-3',
    'drill?backup=',
    `drill?backup=${'x'.repeat(65)}`,
  ])('are refused for %s', async (path) => {
    const { send, get } = await world();
    expect((await send('POST', `/admin/backup/${path}`)).json()).toMatchObject({ code: 'bad_request' });
    expect((await get('/admin/backup/check')).json()).toEqual({ checks: [] });
  });
});
