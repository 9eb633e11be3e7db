import fs, { mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { diskShare } from '../../infra/fs/disk-share.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { SyncTurns, syncTurns } from '../../infra/fs/sync-turns.ts';

const root = mkdtempSync(join(tmpdir(), 'skua-turns-'));
afterAll(() => {
  rmSync(root, { recursive: true });
});
const MIB = new Uint8Array(1_048_576);

describe('turns of syncs', () => {
  test('who gives way goes on at once when nobody syncs, and waits no longer than a moment when somebody does', () => {
    const turns = new SyncTurns();
    turns.giveWay();
    turns.begin();
    turns.end();
    turns.giveWay();
    turns.begin();
    const begin = performance.now();
    turns.giveWay();
    expect(performance.now() - begin).toBeGreaterThan(9);
    // Nobody ends the sync, so it is over by itself: a busy machine may make more than a moment of it.
    expect(performance.now() - begin).toBeLessThan(60_000);
  });

  test('threads share them, and each sees what has begun since it looked last', () => {
    const loop = new SyncTurns();
    const background = new SyncTurns(loop.cells);
    expect(background.wereTaken()).toBe(false);
    loop.begin();
    loop.end();
    expect(background.wereTaken()).toBe(true);
    expect(background.wereTaken()).toBe(false);
  });

  test('syncs of the request loop take them, on the spot too', async () => {
    const file = await new FilesystemStorage({ root }).create('loop');
    syncTurns.wereTaken();
    for (let i = 0; i < 20; i++) {
      file.writeAt(0, new Uint8Array(1));
      await file.sync();
      expect(syncTurns.wereTaken()).toBe(true);
    }
    expect(syncTurns.cells[0]).toBe(0);
    await file.close();
  });

  test('syncs for which no request waits do not', async () => {
    const file = await new FilesystemStorage({ root, isOffline: true }).create('offline');
    syncTurns.wereTaken();
    for (let i = 0; i < 20; i++) {
      file.writeAt(0, new Uint8Array(1));
      await file.sync();
    }
    expect(syncTurns.wereTaken()).toBe(false);
    expect(syncTurns.cells[0]).toBe(0);
    await file.close();
  });
});

describe('a thread in the background sets the disk to work', () => {
  /** Syncs made while 40 MiB are written, with `each` called before every MiB. */
  async function syncsOf(name: string, each: () => void): Promise<number> {
    const file = await new FilesystemStorage({ root, isBlocking: true }).create(name);
    let syncs = 0;
    const sync = file.sync.bind(file);
    file.sync = () => {
      syncs++;
      return sync();
    };
    syncTurns.wereTaken();
    for (let i = 0; i < 40; i++) {
      each();
      await file.writeAt(i * MIB.length, MIB);
    }
    await sync();
    await file.close();
    return syncs;
  }

  test('now and then, and more often while others sync', async () => {
    expect(await syncsOf('alone', () => {})).toBe(2);
    // Between 1 and 4 MiB at a time, by how long that takes the disk.
    const syncs = await syncsOf('beside', () => {
      syncTurns.begin();
      syncTurns.end();
    });
    expect(syncs).toBeGreaterThanOrEqual(10);
    expect(syncs).toBeLessThanOrEqual(40);
  });

  test('and lets it rest afterwards, while others sync', async () => {
    const file = await new FilesystemStorage({ root, isBlocking: true }).create('resting');
    const resting = vi.spyOn(diskShare, 'during').mockImplementation(async (sync) => {
      await sync();
      return 14;
    });
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    try {
      file.sync = async () => {};
      const write = (position: number): Promise<void> => {
        syncTurns.begin();
        syncTurns.end();
        return Promise.resolve(file.writeAt(position, new Uint8Array(4 * MIB.length)));
      };
      await write(0);
      // No more than one write-back is behind: whoever writes on waits for the rest of the one before.
      let isWritten = false;
      void write(4 * MIB.length).then(() => {
        isWritten = true;
      });
      await vi.advanceTimersByTimeAsync(13);
      expect([isWritten, resting.mock.calls.length]).toEqual([false, 1]);
      await vi.advanceTimersByTimeAsync(1);
      expect(isWritten).toBe(true);
    } finally {
      vi.useRealTimers();
      resting.mockRestore();
    }
    await file.close();
  });

  test('and whoever writes on meets its error', async () => {
    const file = await new FilesystemStorage({ root, isBlocking: true }).create('failing');
    let calls = 0;
    file.sync = () => {
      calls++;
      return Promise.reject(new Error('the disk is gone'));
    };
    const writes: Promise<void>[] = [];
    for (let i = 0; i < 40; i++) writes.push(Promise.resolve(file.writeAt(i * MIB.length, MIB)));
    const results = await Promise.allSettled(writes);
    expect(results.some((result) => result.status === 'rejected')).toBe(true);
    expect(calls).toBe(1);
    await file.close();
  });

  test('and a sync that ends well says nothing while one that began before it may still fail', async () => {
    const file = await new FilesystemStorage({ root, isBlocking: true }).create('told-once');
    const calls: ((error: Error | null) => void)[] = [];
    const fdatasync = vi.spyOn(fs, 'fdatasync').mockImplementation(((
      _fd: number,
      done: (error: Error | null) => void,
    ) => {
      calls.push(done);
    }) as never);
    syncBuiltinESMExports();
    try {
      file.writeAt(0, MIB);
      const [beside, last] = [file.sync(), file.sync()];
      calls[1]!(null);
      let isDurable = false;
      void last.then(
        () => {
          isDurable = true;
        },
        () => {},
      );
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      expect(isDurable).toBe(false);
      calls[0]!(Object.assign(new Error('EIO'), { code: 'EIO' }));
      await expect(last).rejects.toMatchObject({ code: 'sync_failed' });
      await expect(beside).rejects.toMatchObject({ code: 'sync_failed' });
    } finally {
      fdatasync.mockRestore();
      syncBuiltinESMExports();
    }
    await file.close();
  });
});
