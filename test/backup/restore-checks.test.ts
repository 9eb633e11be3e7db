import { beforeAll, describe, expect, it } from 'vitest';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { RESTORE_MARKER } from '../../core/log/format/markers.ts';
import { VERIFY_CHUNK_JOB, type VerifyChunkArgs } from '../../core/log/scrub/scrub.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import { type History, playHistory } from '../support/backup/restore-history.ts';
import { restoreOptions, restoreWorld } from '../support/backup/restore-kit.ts';

/** The MD5s of chunks are compared by jobs beside the writing of what comes behind. */
describe('the checks of restored chunks', () => {
  let history: History;
  let newest: Manifest;
  beforeAll(async () => {
    history = await playHistory({ seed: 43, parts: 2, writes: 60, scavenges: false });
    newest = history.pasts.at(-1)!.manifest;
    expect(newest.chunks.length).toBeGreaterThan(1);
  });

  /** Checks wait until the test ends them; everything else is done. */
  function held(target: MemoryStorage) {
    const { start } = restoreWorld(target);
    /** By the name of the chunk file. */
    const checks = new Map<string, PromiseWithResolvers<boolean>>();
    const jobs: Jobs = {
      ...start.jobs,
      run: (name, args, options) => {
        if (name !== VERIFY_CHUNK_JOB) return start.jobs.run(name, args, options);
        const check = Promise.withResolvers<boolean>();
        checks.set((args as VerifyChunkArgs).name, check);
        return check.promise;
      },
    };
    return { start: { ...start, jobs }, checks };
  }

  const idle = async () => {
    for (let i = 0; i < 200; i++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
  };

  it("don't hold up the end of the log, which is not opened before they have ended", async () => {
    const target = new MemoryStorage();
    const { start, checks } = held(target);
    let isEnded = false;
    const restoring = restoreBackup(
      restoreOptions(history.repository, target, { start, parallel: 8, checkMd5: true }),
    ).finally(() => {
      isEnded = true;
    });
    await idle();
    expect([...checks.keys()].sort()).toEqual(newest.chunks.map(({ path }) => path));
    expect(await target.size(newest.tail!.path)).not.toBeNull();
    expect([isEnded, await target.size('writer.chk')]).toEqual([false, null]);
    for (const check of checks.values()) check.resolve(true);
    expect(await restoring).toMatchObject({ position: newest.checkpoints.writer });
  });

  it('end the restore when one fails, after all of them have ended', async () => {
    const target = new MemoryStorage();
    const { start, checks } = held(target);
    let isEnded = false;
    const restoring = restoreBackup(
      restoreOptions(history.repository, target, { start, parallel: 8, checkMd5: true }),
    ).finally(() => {
      isEnded = true;
    });
    restoring.catch(() => {});
    await idle();
    checks.get(newest.chunks[0]!.path)!.resolve(false);
    await idle();
    expect(isEnded).toBe(false);
    for (const check of checks.values()) check.resolve(true);
    await expect(restoring).rejects.toMatchObject({ code: 'log_corrupt', data: { file: newest.chunks[0]!.path } });
    expect(await target.list('')).toContain(RESTORE_MARKER);
  });

  it('tell where the log ends before its end is written, where damage is allowed', async () => {
    const target = new MemoryStorage();
    const { start, checks } = held(target);
    const restoring = restoreBackup(
      restoreOptions(history.repository, target, { start, parallel: 8, allowDamaged: true }),
    );
    await idle();
    expect(await target.size(newest.tail!.path)).toBeNull();
    for (const [name, check] of checks) check.resolve(name !== newest.chunks[1]!.path);
    expect(await restoring).toMatchObject({
      position: newest.chunks[1]!.startNumber * newest.chunkSizeBytes,
      skipped: [{ path: newest.chunks[1]!.path }],
    });
  });
});
