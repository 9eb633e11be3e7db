import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY, type StreamPage } from '../../core/streams/api.ts';
import { openTestStore } from '../support/test-store.ts';
import { event } from './setup.ts';

/**
 * The targets of a page of links are looked for at the same time where they have to be read, and the page is the same
 * as ever.
 */

const TARGETS = 40;
/** As many as may be looked for at once. */
const AHEAD = 16;

/** Events of two blocks each, more than the smallest cache has room for. */
const TAIL = 100;

/** A disk whose reads end when the test says so. */
class HeldReads {
  readonly storage: Storage;
  isHeld = false;
  /** Reads whose file and place fit fail. */
  fails: ((path: string, position: number) => boolean) | null = null;
  waves = 0;
  mostAtOnce = 0;
  #waiting: (() => void)[] = [];

  constructor(memory: MemoryStorage) {
    const opened = (file: StorageFile): StorageFile =>
      new Proxy(file, {
        get: (target, key) => {
          if (key === 'read') return (position: number, length: number) => this.#read(target, position, length);
          const value: unknown = Reflect.get(target, key, target);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    this.storage = new Proxy<Storage>(memory, {
      get: (target, key) => {
        if (key === 'open' || key === 'create')
          return async (path: string, access: 'read' | 'write') => opened(await target[key](path, access));
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  async #read(file: StorageFile, position: number, length: number): Promise<Uint8Array> {
    if (this.isHeld)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    if (this.fails?.(file.path, position) === true) throw new SkuaError('io_error', 'The disk has gone.', {});
    return file.read(position, length);
  }

  /** Lets the reads that are under way end, wave after wave, until `work` has ended. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.isHeld = true;
    let isOver = false;
    const working = work().finally(() => {
      isOver = true;
    });
    working.catch(() => {});
    for (let turns = 0; !isOver && turns < 10_000; turns++) {
      await turn();
      if (this.#waiting.length === 0) continue;
      this.mostAtOnce = Math.max(this.mostAtOnce, this.#waiting.length);
      this.waves++;
      for (const resolve of this.#waiting.splice(0)) resolve();
    }
    this.isHeld = false;
    expect(isOver).toBe(true);
    return working;
  }
}

/** Not in the order of the log, which would be read ahead. */
const targetOf = (link: number): number => (link * 17) % TARGETS;

/** Each target lies in a block of its own; every fourth stream has metadata, one is gone for ever, one is not there. */
async function filled(targetBytes = 100): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const open = await openTestStore({ storage });
  for (let i = 0; i < TARGETS; i++) {
    if (i !== 7) await open.store.append(`t${i}`, ANY, [event('x'.repeat(targetBytes))]);
    await open.store.append('filler', ANY, [event('f'.repeat(70_000))]);
    if (i % 4 === 0) {
      await open.store.append(`$$t${i}`, ANY, [event('{"$maxCount":5}', { type: '$metadata', isJson: true })]);
      await open.store.append('filler', ANY, [event('f'.repeat(70_000))]);
    }
  }
  await open.store.deleteStream('t9', ANY, 'hard');
  await open.store.append(
    'l',
    ANY,
    Array.from({ length: TARGETS }, (_, i) => event(`0@t${targetOf(i)}`, { type: '$>' })),
  );
  for (let i = 0; i < TAIL; i++) await open.store.append('tail', ANY, [event('f'.repeat(70_000))]);
  await open.close();
  return storage;
}

/** Opens the store with nothing of the targets in its cache. */
async function opened(storage: Storage): Promise<DirectoryStore> {
  const open = await openTestStore({ storage, cacheBytes: 0 });
  for (let round = 0; round < 2; round++)
    await open.store.readStream('tail', { direction: 'forward', from: 0, count: TAIL });
  return open;
}

const read = ({ store }: DirectoryStore, bytesMax?: number): Promise<StreamPage> =>
  store.readStream('l', {
    direction: 'forward',
    from: 0,
    count: TARGETS,
    resolveLinks: true,
    ...(bytesMax !== undefined && { bytesMax }),
  });
const brief = ({ events, nextEventNumber, isEnd, isCut }: StreamPage) => [
  events.map((e) => [e.stream, e.number, e.link?.number ?? null, e.linkTargetMissing, e.data.length]),
  nextEventNumber,
  isEnd,
  isCut,
];

describe('the targets of a page of links', () => {
  it('are looked for together, not one behind the other, and come in the order of the links', async () => {
    const memory = await filled();
    const quick = await openTestStore({ storage: memory });
    const expected = brief(await read(quick));
    await quick.close();
    const held = new HeldReads(memory);
    const open = await opened(held.storage);
    const page = await held.during(() => read(open));
    expect(brief(page)).toEqual(expected);
    expect(page.events.map((e) => e.linkTargetMissing === true)).toEqual(
      Array.from({ length: TARGETS }, (_, i) => targetOf(i) === 7 || targetOf(i) === 9),
    );
    // One behind the other they take a wave each at least.
    expect(held.waves).toBeLessThan(TARGETS / 2);
    expect(held.mostAtOnce).toBeGreaterThan(AHEAD / 2);
    expect(held.mostAtOnce).toBeLessThanOrEqual(AHEAD + 1);
    await open.close();
  });

  it('are taken as long as the page has room, and nothing is being read when it ends', async () => {
    const memory = await filled(3_000);
    const quick = await openTestStore({ storage: memory });
    const expected = brief(await read(quick, 40_000));
    await quick.close();
    const held = new HeldReads(memory);
    const open = await opened(held.storage);
    const page = await held.during(() => read(open, 40_000));
    expect(brief(page)).toEqual(expected);
    expect(page.isCut).toBe(true);
    expect(held.waiting).toBe(0);
    await open.close();
  });

  it('that cannot be read are met in their turn', async () => {
    const held = new HeldReads(await filled());
    const open = await opened(held.storage);
    const before = await held.during(() => open.store.readEvent('t20', 0));
    held.fails = (path, position) => path.startsWith('chunk') && position > before.position;
    await expect(held.during(() => read(open))).rejects.toMatchObject({ code: 'io_error' });
    expect(held.waiting).toBe(0);
    held.fails = null;
    expect((await held.during(() => read(open))).events).toHaveLength(TARGETS);
    await open.close();
  });
});
