import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startedIn, temporaryFolder, until } from './node-kit.ts';
import type { Started } from './node-kit.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let started: Started;

beforeEach(async () => {
  folder = await temporaryFolder();
  // Its temporary folders are beside nobody else's.
  vi.stubEnv('TMPDIR', folder.folder);
  started = await startedIn(folder.folder, ['--backup-repository', path.join(folder.folder, 'repository of it')]);
});
afterEach(async () => {
  await started.node.stop();
  vi.unstubAllEnvs();
  await folder.remove();
});

const drills = () => readdirSync(tmpdir()).filter((name) => name.startsWith('skua-drill-'));

async function checked(query: string) {
  const reply = await started.ask('POST', `/admin/backup/${query}`);
  expect(reply.status).toBe(202);
  let check: any;
  await until(async () => ([check] = (await started.json('GET', '/admin/backup/check')).checks)[0].state !== 'running');
  return check;
}

test('a node verifies its repository and proves its newest backup, and says how to restore it', async () => {
  await started.append('orders', 60);
  expect(await checked('drill')).toMatchObject({ state: 'failed', error: expect.stringContaining('no backup') });
  await started.ask('POST', '/admin/backup');
  await until(async () => (await started.ask('GET', '/admin/backup/current')).status !== 200);
  const {
    backups: [newest],
  } = await started.json('GET', '/admin/backups');
  expect(await checked('verify')).toMatchObject({
    kind: 'verify',
    state: 'done',
    error: null,
    isGood: true,
    report: { manifests: 1, errors: 0, findings: [] },
  });
  const before = drills();
  expect(await checked('drill')).toMatchObject({
    kind: 'drill',
    state: 'done',
    error: null,
    isGood: true,
    report: { backupId: newest.id, position: newest.logEnd, findings: [] },
  });
  expect(drills()).toEqual(before);
  const status = await started.json('GET', '/admin/backup/status');
  expect(status).toMatchObject({
    newest: { id: newest.id, logEnd: newest.logEnd },
    restorable: { position: newest.logEnd },
    unshippedBytes: null,
    verified: { errors: 0 },
    last: { result: 'Success' },
  });
  expect(Date.parse(status.provenAt)).toBeGreaterThan(0);
  expect(status.commands.restore).toBe(
    `skua restore --from '${path.join(folder.folder, 'repository of it')}' --db ./restored`,
  );
});
