import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import { ANY } from '../../core/streams/api.ts';
import { decodeText } from '../../core/base/text.ts';
import { openTestStore } from '../support/test-store.ts';
import { event } from './setup.ts';

/**
 * Who wants one event gets it alone where the storage has it at hand: a block of its neighbours would cost many times
 * as much.
 */

const STREAMS = 30;
/** Events of two blocks each, more than the smallest cache has room for. */
const TAIL = 100;
const ALONE_BYTES = 4_096;

/** A disk that may have the bytes at hand, as the system's page cache has them. */
class ReadCounts {
  readonly storage: Storage;
  isAtHand = true;
  /** Lengths of reads of chunk files that had to be waited for, and of those made at once. */
  waited: number[] = [];
  atOnce: number[] = [];

  constructor(memory: MemoryStorage) {
    this.storage = new Proxy<Storage>(memory, {
      get: (target, key) => {
        if (key === 'open' || key === 'create')
          return async (path: string, access: 'read' | 'write') => this.#opened(await target[key](path, access));
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  #opened(file: StorageFile): StorageFile {
    const isChunk = file.path.startsWith('chunk-');
    return new Proxy(file, {
      get: (target, key) => {
        if (key === 'read')
          return async (position: number, length: number) => {
            if (isChunk) this.waited.push(length);
            return target.read(position, length);
          };
        if (key === 'readNow')
          return (position: number, length: number, into: Uint8Array, at: number): number => {
            if (!this.isAtHand) return -1;
            if (isChunk) this.atOnce.push(length);
            const bytes = target.read(position, length) as Uint8Array;
            into.set(bytes, at);
            return bytes.length;
          };
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }
}

async function filled(): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const open = await openTestStore({ storage });
  for (let i = 0; i < STREAMS; i++) {
    await open.store.append(`s${i}`, ANY, [event(`first of ${i}`), event(`second of ${i}`)]);
    await open.store.append('filler', ANY, [event('f'.repeat(70_000))]);
  }
  for (let i = 0; i < TAIL; i++) await open.store.append('tail', ANY, [event('f'.repeat(70_000))]);
  await open.close();
  return storage;
}

/** With nothing of the streams in its cache. */
async function opened(disk: ReadCounts) {
  const open = await openTestStore({ storage: disk.storage, cacheBytes: 0 });
  await open.attributes!.idle();
  for (let round = 0; round < 2; round++)
    await open.store.readStream('tail', { direction: 'forward', from: 0, count: TAIL });
  disk.waited = [];
  disk.atOnce = [];
  return open;
}

describe('a single event', () => {
  it('is read alone, and without waiting, where the storage has it at hand', async () => {
    const disk = new ReadCounts(await filled());
    const open = await opened(disk);
    for (let i = 0; i < STREAMS; i += 3)
      expect(decodeText((await open.store.readEvent(`s${i}`, 0)).data)).toBe(`first of ${i}`);
    expect(disk.waited).toEqual([]);
    expect(disk.atOnce.length).toBeGreaterThanOrEqual(STREAMS / 3);
    expect(Math.max(...disk.atOnce)).toBeLessThanOrEqual(ALONE_BYTES);
    await open.close();
  });

  it('comes with its block where the storage would have to wait', async () => {
    const disk = new ReadCounts(await filled());
    const open = await opened(disk);
    disk.isAtHand = false;
    for (let i = 0; i < STREAMS; i += 3)
      expect(decodeText((await open.store.readEvent(`s${i}`, 1)).data)).toBe(`second of ${i}`);
    expect(disk.atOnce).toEqual([]);
    expect(disk.waited.length).toBeGreaterThanOrEqual(STREAMS / 3);
    const before = disk.waited.length;
    for (let i = 0; i < STREAMS; i += 3) await open.store.readEvent(`s${i}`, 0);
    expect(disk.waited).toHaveLength(before);
    await open.close();
  });

  it('that is asked for again and again comes into the cache', async () => {
    const disk = new ReadCounts(await filled());
    const open = await opened(disk);
    for (let i = 0; i < 10; i++) expect(decodeText((await open.store.readEvent('s4', 1)).data)).toBe('second of 4');
    expect(disk.atOnce.length + disk.waited.length).toBeLessThan(6);
    await open.close();
  });
});
