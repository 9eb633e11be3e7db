import { beforeAll, describe, expect, it } from 'vitest';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { RESTORE_MARKER } from '../../core/log/format/markers.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { MOMENTS } from '../support/crash-run.ts';
import { isCrash } from '../support/crash.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { openTestStore } from '../support/test-store.ts';
import { type History, playHistory } from '../support/backup/restore-history.ts';
import { logText, restoreOptions, verifyErrors } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { bySize } from '../support/run-size.ts';

const SEED = 2;
/** Every how many operations one is tried: an odd number, since the moments of crashes change with them. */
const EVERY = bySize(67, 3, 1);
const MODES = ['drop', 'keep', 'partial', 'clean'] as const;

/** What a start makes of a directory: refuses it, finds nothing, or opens it with this log. */
async function started(storage: FaultyStorage): Promise<'refused' | 'empty' | string[]> {
  const isEmpty = (await storage.list('')).length === 0;
  try {
    const open = await openTestStore({ storage, writeEpoch: false, verifyChunks: false });
    await open.close();
  } catch (error) {
    if (!isSkuaError(error, 'backup_failed')) throw error;
    return 'refused';
  }
  return isEmpty ? 'empty' : logText(storage);
}

describe('a restore that a power loss cuts off', () => {
  let history: History;
  let whole: string[];
  let old: FaultyStorage;
  let oldLog: string[];

  beforeAll(async () => {
    history = await playHistory({ seed: SEED, parts: 3 });
    whole = await logText(history.storage);
    old = new FaultyStorage({ reads: 'async' });
    await playHistory({ seed: SEED + 1, parts: 1, storage: old });
    oldLog = await logText(old);
  });

  async function crashEverywhere(
    fresh: () => FaultyStorage,
    force: boolean,
    allowed: (found: string[]) => boolean,
  ): Promise<void> {
    const { repository } = history;
    const undisturbed = fresh();
    await restoreBackup(restoreOptions(repository, undisturbed, { force }));
    expect(await logText(undisturbed)).toEqual(whole);
    expect(undisturbed.violations).toEqual([]);
    const first = fresh().operations;
    expect(undisturbed.operations - first).toBeGreaterThan(40);
    let refusals = 0;
    for (let n = first + 1; n <= undisturbed.operations; n += EVERY) {
      const name = `crash ${MOMENTS[n % 3]} operation ${n}`;
      const target = fresh();
      target.crashAt(n, MOMENTS[n % 3]);
      const error = await restoreBackup(restoreOptions(repository, target, { force })).then(
        () => null,
        (reason: unknown) => reason,
      );
      // The dry start closes what it can; an index that it could not write is made again.
      if (error !== null && !isCrash(error) && !isSkuaError(error, 'sync_failed')) throw error;
      const after = target.restart(MODES[n % 4]!, n);
      const found = await started(target.restart(MODES[n % 4]!, n));
      if (found === 'refused') refusals++;
      else if (found !== 'empty')
        expect(allowed(found), `${name}: a start opens it with a part of the data`).toBe(true);
      const report = await restoreBackup(restoreOptions(repository, after, { force: true }));
      expect(report.position, name).toBe(history.pasts.at(-1)!.manifest.checkpoints.writer);
      expect(await logText(after), name).toEqual(whole);
      expect(await after.list(''), name).not.toContain(RESTORE_MARKER);
      expect(await verifyErrors(after), name).toEqual([]);
      expect([...target.violations, ...after.violations], name).toEqual([]);
      expect(await logText(after.restart('drop')), `${name}: what was restored is on the disk`).toEqual(whole);
    }
    expect(refusals).toBeGreaterThan(30 / EVERY);
  }

  it('into an empty directory: no start opens what is left, and a repetition completes it', async () => {
    await crashEverywhere(
      () => new FaultyStorage({ reads: 'async' }),
      false,
      (found) => found.join() === whole.join(),
    );
  });

  it('over another log: a start finds the old one, the new one, or is refused', async () => {
    await crashEverywhere(
      () => old.restart('keep'),
      true,
      (found) => found.join() === whole.join() || found.join() === oldLog.join(),
    );
  });

  it('of the machine with the backups, at any request: the same', async () => {
    const calm = new FaultyObjects(history.objects);
    const repository = await openTestRepository(calm, { create: false });
    const opening = calm.calls.length;
    await restoreBackup(restoreOptions(repository, new FaultyStorage()));
    const requests = calm.calls.length - opening;
    expect(requests).toBeGreaterThan(10);
    for (let n = 0; n < requests; n += bySize(9, 1)) {
      const objects = new FaultyObjects(history.objects);
      const failing = await openTestRepository(objects, { create: false });
      objects.crashAfter(n);
      const target = new FaultyStorage({ reads: 'async' });
      await expect(restoreBackup(restoreOptions(failing, target)), `request ${n + 1}`).rejects.toMatchObject({
        code: 'storage_crashed',
      });
      expect(['refused', 'empty']).toContain(await started(target.restart('keep')));
      const after = target.restart('keep');
      await restoreBackup(restoreOptions(history.repository, after, { force: true }));
      expect(await logText(after)).toEqual(whole);
    }
  });

  it('a full disk and a failing sync end it with the error, and leave a directory that no start opens', async () => {
    for (const code of ['disk_full', 'io_error', 'sync_failed'] as const) {
      const target = new FaultyStorage();
      target.failWhen((op, path) =>
        path.startsWith('chunk-') && (code === 'sync_failed' ? op === 'sync' : op === 'writeAt') ? code : undefined,
      );
      await expect(restoreBackup(restoreOptions(history.repository, target))).rejects.toMatchObject({ code });
      const after = target.restart('keep');
      expect(await started(target.restart('keep'))).toBe('refused');
      await restoreBackup(restoreOptions(history.repository, after, { force: true }));
      expect(await logText(after)).toEqual(whole);
    }
  });
});
