import { describe, expect, it } from 'vitest';
import { writeContent } from '../../core/ports/write-content.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { StorageFile } from '../../core/ports/storage.ts';

const MIB = 1_048_576;

async function* mebibytes(count: number): AsyncGenerator<Uint8Array, void, undefined> {
  const piece = new Uint8Array(MIB);
  for (let i = 0; i < count; i++) yield piece;
}

/** A file that keeps nothing; its syncs end when the test says so. */
function fakeFile() {
  const syncs: PromiseWithResolvers<void>[] = [];
  let written = 0;
  const file = {
    path: 'f',
    writeAt: async (_at: number, bytes: Uint8Array) => {
      written += bytes.length;
    },
    sync: () => {
      syncs.push(Promise.withResolvers<void>());
      return syncs.at(-1)!.promise;
    },
  } as unknown as StorageFile;
  return { file, syncs, written: () => written };
}

const idle = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe('content that is restored', () => {
  it('is synced beside the writing, one sync at a time, every 32 MiB', async () => {
    const { file, syncs, written } = fakeFile();
    let end = -1;
    const writing = writeContent(file, 128, mebibytes(80)).then((at) => {
      end = at;
    });
    await idle();
    // The second sync waits for the first, and the writing for it.
    expect([written() / MIB, syncs.length]).toEqual([64, 1]);
    syncs[0]!.resolve();
    await idle();
    expect([written() / MIB, syncs.length, end]).toEqual([80, 2, -1]);
    syncs[1]!.resolve();
    await writing;
    expect(end).toBe(128 + 80 * MIB);
  });

  it('fails with the sync that failed, which is not repeated', async () => {
    const { file, syncs, written } = fakeFile();
    const writing = writeContent(file, 0, mebibytes(200));
    await idle();
    syncs[0]!.reject(new SkuaError('sync_failed', 'The disk is gone.'));
    await expect(writing).rejects.toMatchObject({ code: 'sync_failed' });
    expect([written() / MIB, syncs.length]).toEqual([64, 1]);
  });

  it('leaves no sync under way behind when the content fails', async () => {
    const { file, syncs } = fakeFile();
    let isEnded = false;
    const failing = async function* failing() {
      yield* mebibytes(40);
      throw new Error('the backup is gone');
    };
    const writing = writeContent(file, 0, failing()).finally(() => {
      isEnded = true;
    });
    writing.catch(() => {});
    await idle();
    expect([syncs.length, isEnded]).toEqual([1, false]);
    syncs[0]!.resolve();
    await expect(writing).rejects.toThrow('the backup is gone');
  });
});
