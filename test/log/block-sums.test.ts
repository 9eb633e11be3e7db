import { describe, expect, it } from 'vitest';
import { BLOCK_SUMS_INTERVAL_MS, compareBlocks } from '../../core/log/block-sums/block-sums.ts';
import { BLOCK_SUMS_FILE, readBlockSums } from '../../core/log/format/block-sums-file.ts';
import { SCRUB_AGAIN_AFTER_MS } from '../../core/log/scrubber/scrubber.ts';
import { HEADER_BYTES, ongoingFileBytes } from '../../core/log/format/chunk-format.ts';
import { slotOffset } from '../../core/log/format/commit-slot.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { verifyDirectory } from '../../core/integrity/integrity.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { bySize, RUNS_FIXED } from '../support/run-size.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { checkpoint, contentOf, contents, copyTo, flip, putFile, resize, setCheckpoint } from './kit.ts';

/**
 * Who has changed the chunk being written since its checksums were written down, and what the next start makes of it:
 * the table of core/log/README.md, "What a crash leaves".
 */

/** Sixteen blocks. */
const CHUNK = 1_048_576;
const FIRST = 'chunk-000000.000000';

let nextId = 0;
async function append(open: DirectoryStore, count: number, fill = 7): Promise<void> {
  for (let i = 0; i < count; i++)
    await open.store.append('s', ANY, [
      {
        id: `00000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`,
        type: 'made',
        isJson: false,
        data: new Uint8Array(4_000).fill(fill),
        metadata: new Uint8Array(0),
      },
    ]);
}

let seed = 1;
interface Node {
  readonly open: DirectoryStore;
  readonly clock: ManualClock;
  readonly told: string[];
}
async function start(storage: Storage): Promise<Node> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const told: string[] = [];
  const tell = (_: string, fields?: Record<string, unknown>) => {
    if (fields?.['file'] === BLOCK_SUMS_FILE) told.push(String(fields['reason']));
  };
  const log: Log = { debug() {}, info: tell, error() {}, warn: tell };
  const open = await openTestStore({ storage, clock, log, seed: seed++, chunkSizeBytes: CHUNK, verifyChunks: false });
  return { open, clock, told };
}

/** A start and a stop that may append, and what the log said of the checksums. */
async function run(storage: Storage, events = 0, fill = 7): Promise<string[]> {
  const { open, told } = await start(storage);
  await append(open, events, fill);
  await open.close();
  return told;
}

async function stopped(events = 60): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  await run(storage, events);
  return storage;
}

const copyOf = async (storage: Storage): Promise<MemoryStorage> => {
  const copy = new MemoryStorage();
  await copyTo(storage, copy);
  return copy;
};
const sumsOf = async (storage: Storage) => {
  const found = await readBlockSums(storage, nodeDigests, CHUNK);
  if (found === null || found === 'not-ours') throw new Error(`no checksums: ${String(found)}`);
  return found;
};
const outcome = (starting: Promise<unknown>): Promise<string> =>
  starting.then(
    () => 'started',
    (error: { code: string; data: { file: string; offset: number } }) =>
      `${error.code} ${error.data.file} ${error.data.offset}`,
  );

async function verify(storage: Storage): Promise<string[]> {
  const found: string[] = [];
  for await (const each of verifyDirectory({ storage, digests: nodeDigests, clock: new ManualClock() })) {
    if (each.kind === 'finding') found.push(`${each.severity} ${each.code} ${each.file} ${each.offset}`);
    if (each.kind === 'note') found.push(`note ${each.code} ${each.file} ${each.offset} ${each.bytes}`);
  }
  return found;
}

/**
 * What a writer without these checksums leaves that begins at `from`: the log is cut there as it does it, with the
 * slots, and another epoch and other events follow.
 */
async function writtenByOther(storage: Storage, from: number, events: number, hasSlots: boolean): Promise<void> {
  const kept = await contentOf(storage, BLOCK_SUMS_FILE);
  await setCheckpoint(storage, 'truncate.chk', from);
  await run(storage, events, 9);
  await putFile(storage, BLOCK_SUMS_FILE, kept);
  if (hasSlots) return;
  // The reference never has slots.
  await resize(storage, FIRST, slotOffset(CHUNK, 0));
  await resize(storage, FIRST, ongoingFileBytes(CHUNK));
}

/** Where events end, in the middle of what is vouched for. */
async function boundary(storage: Storage, event: number): Promise<number> {
  const copy = await copyOf(storage);
  const { open } = await start(copy);
  const { events } = await open.store.readStream('s', { direction: 'forward', from: event, count: 1 });
  await open.close();
  return events[0]!.position;
}

if (RUNS_FIXED)
  describe('the checksums of the chunk being written', () => {
    it('vouch for all of it after a stop, and nothing is left unproved', async () => {
      const storage = await stopped();
      const sums = await sumsOf(storage);
      expect(sums.end).toBe(HEADER_BYTES + (await checkpoint(storage, 'writer.chk')));
      expect(sums.sums.length).toBe(Math.ceil(sums.end / 65_536));
      expect(await verify(storage)).toEqual([]);
      expect(await run(storage)).toEqual([]);
    });

    it('follow while the node runs, at most 5 seconds behind, without a sync of an append', async () => {
      const storage = new FaultyStorage();
      const { open, clock } = await start(storage);
      await append(open, 40);
      const before = storage.ops.filter(({ op }) => op === 'sync').length;
      await append(open, 5);
      expect(storage.ops.filter(({ op }) => op === 'sync').length - before).toBe(5);
      expect(await storage.size(BLOCK_SUMS_FILE)).toBe(null);
      await clock.advance(BLOCK_SUMS_INTERVAL_MS);
      const { checkpoints } = open.status();
      expect((await sumsOf(storage)).end).toBe(HEADER_BYTES + checkpoints.writer);
      expect(open.status().checksummedTo).toBe(checkpoints.writer);
      await append(open, 1);
      expect(open.status().checksummedTo).toBe(checkpoints.writer);
      await open.close();
    });

    it('are those of the next chunk when one is completed, and vouch for nothing until they are written', async () => {
      const storage = new FaultyStorage();
      const { open, clock } = await start(storage);
      await append(open, 40);
      await clock.advance(BLOCK_SUMS_INTERVAL_MS);
      await append(open, 240);
      const killed = storage.restart('drop');
      storage.isCrashed = false;
      expect(await verify(killed)).toEqual([
        expect.stringMatching(/^note ongoing_unprotected chunk-000001.000000 128 \d+$/),
        ...(await verify(killed)).slice(1),
      ]);
      await clock.advance(BLOCK_SUMS_INTERVAL_MS);
      expect((await sumsOf(storage)).chunkNumber).toBe(1);
      await open.close();
      expect(await run(killed)).toEqual(['they belong to another chunk file']);
    });

    it('are compared again in the background after a week: damage ends the node with its place', async () => {
      for (const isDamaged of [false, true]) {
        const storage = new MemoryStorage();
        const clock = new ManualClock(TEST_NOW_MS, 'microtask');
        const open = await openTestStore({ storage, clock, seed: seed++, chunkSizeBytes: CHUNK });
        let failure = 'none';
        void open.failed.then(({ code, data }) => {
          failure = `${code} ${String(data['file'])} ${String(data['offset'])}`;
        });
        await append(open, 60);
        await clock.advance(60_000);
        if (isDamaged) await flip(storage, FIRST, 140_000);
        await append(open, 5);
        clock.setNow(clock.nowMs() + SCRUB_AGAIN_AFTER_MS - 180_000);
        await clock.advance(60_000);
        expect(failure).toBe('none');
        for (let i = 0; i < 8; i++) {
          await clock.advance(60_000);
          for (let turn = 0; turn < 50; turn++)
            await new Promise((resolve) => {
              setImmediate(resolve);
            });
        }
        expect(failure).toBe(isDamaged ? `log_corrupt ${FIRST} 131072` : 'none');
        await open.close();
      }
    });

    it("that can't be written are told once and tried again", async () => {
      const storage = new FaultyStorage();
      const { open, clock, told } = await start(storage);
      await append(open, 3);
      let isFailing = true;
      storage.failWhen((op, path) => (isFailing && path.startsWith(BLOCK_SUMS_FILE) ? 'disk_full' : undefined));
      for (let i = 0; i < 3; i++) await clock.advance(BLOCK_SUMS_INTERVAL_MS);
      await append(open, 3);
      expect(told).toHaveLength(1);
      isFailing = false;
      await clock.advance(BLOCK_SUMS_INTERVAL_MS);
      expect((await sumsOf(storage)).end).toBe(HEADER_BYTES + open.status().checkpoints.writer);
      await open.close();
    });
  });

if (RUNS_FIXED)
  describe('a block that is still vouched for and differs', () => {
    it.each([
      [0, 'in the first block'],
      [3, 'in the middle'],
      [-1, 'at the end'],
    ])('(block %i, %s) refuses the start with file and offset, and changes nothing', async (block) => {
      const storage = await stopped();
      const { end } = await sumsOf(storage);
      const at = block < 0 ? end - 500 : block * 65_536 + 30_000;
      await flip(storage, FIRST, at);
      const before = await contents(storage);
      const offset = Math.floor(at / 65_536) * 65_536;
      expect(await outcome(run(storage))).toBe(`log_corrupt ${FIRST} ${offset}`);
      expect(await contents(storage)).toEqual(before);
      expect((await verify(storage)).filter((line) => line.includes('block_mismatch'))).toEqual([
        `error block_mismatch ${FIRST} ${offset}`,
      ]);
      await flip(storage, FIRST, at);
      expect(await run(storage)).toEqual([]);
    });

    it('refuses it after the log has grown, whoever wrote that', async () => {
      const storage = await stopped(60);
      const old = await contentOf(storage, BLOCK_SUMS_FILE);
      await storage.remove(BLOCK_SUMS_FILE);
      await run(storage, 40);
      await putFile(storage, BLOCK_SUMS_FILE, old);
      expect(await outcome(run(await copyOf(storage)))).toBe('started');
      await flip(storage, FIRST, 70_000);
      expect(await outcome(run(storage))).toBe(`log_corrupt ${FIRST} 65536`);
    });

    it('is taken as it is once the file is deleted, as the message says', async () => {
      const storage = await stopped();
      await flip(storage, FIRST, 70_000);
      await storage.remove(BLOCK_SUMS_FILE);
      expect(await outcome(run(storage))).toBe('started');
      expect(await verify(storage)).toEqual([]);
    });

    it('is named by verify with all others of its kind', async () => {
      const storage = await stopped();
      for (const at of [10_000, 70_000, 70_001, 140_000]) await flip(storage, FIRST, at);
      expect((await verify(storage)).filter((line) => line.includes('block_mismatch'))).toEqual(
        [0, 65_536, 131_072].map((offset) => `error block_mismatch ${FIRST} ${offset}`),
      );
    });
  });

describe('what is no damage', () => {
  it('a truncation by truncate.chk: built again', async () => {
    const storage = await stopped();
    await setCheckpoint(storage, 'truncate.chk', await boundary(storage, 30));
    expect(await run(storage, 50, 9)).toEqual([]);
    expect(await run(storage)).toEqual([]);
    expect(await verify(storage)).toEqual([]);
  });

  it.each([
    ['shorter than before', 5, true],
    ['longer than before', 90, true],
    ['longer than before, without commit slots', 90, false],
  ] as const)('a truncation by another program that wrote on, so that the log is %s', async (_, events, hasSlots) => {
    const storage = await stopped();
    await writtenByOther(storage, await boundary(storage, 30), events, hasSlots);
    expect((await verify(storage)).filter((line) => line.startsWith('error'))).toEqual([]);
    const told = await run(storage);
    expect(told).toEqual([
      expect.stringMatching(events < 30 ? /ends before/ : hasSlots ? /epoch begins at position/ : /truncated since/),
    ]);
    expect(await run(storage)).toEqual([]);
    expect(await verify(storage)).toEqual([]);
  });

  it('an older state of the same directory that was put back and has grown again', async () => {
    const storage = await stopped(30);
    const older = await copyOf(storage);
    await run(storage, 30);
    const newer = await contentOf(storage, BLOCK_SUMS_FILE);
    // Its own file was not among what was put back.
    await older.remove(BLOCK_SUMS_FILE);
    await run(older, 60, 9);
    await putFile(older, BLOCK_SUMS_FILE, newer);
    expect(await run(older)).toEqual([expect.stringMatching(/epoch begins|other files/)]);
  });

  it('the files of a sister that never had this file, copied over a directory that went its own way', async () => {
    const storage = await stopped(30);
    const { open: sister } = await start(storage);
    const target = await copyOf(storage).then(async (copy) => {
      await run(copy, 5, 9);
      return copy;
    });
    const kept = await contentOf(target, BLOCK_SUMS_FILE);
    await append(sister, 60);
    await sister.close();
    await copyTo(storage, target);
    await putFile(target, BLOCK_SUMS_FILE, kept);
    expect(await run(target)).toEqual([expect.stringMatching(/epoch begins|other files/)]);
  });

  it('a writer that does not know the file and only appends: what is vouched for stays, the rest is protected as it is', async () => {
    const storage = await stopped(30);
    const kept = await contentOf(storage, BLOCK_SUMS_FILE);
    await run(storage, 60);
    await putFile(storage, BLOCK_SUMS_FILE, kept);
    expect(await verify(storage)).toEqual([
      expect.stringMatching(/^note ongoing_unprotected chunk-000000.000000 \d+ \d+$/),
    ]);
    expect(await run(storage)).toEqual([]);
    expect(await verify(storage)).toEqual([]);
  });

  it('a file of another chunk, a damaged one, a foreign one, an empty one', async () => {
    const other = await contentOf(await stopped(3), BLOCK_SUMS_FILE);
    const storage = await stopped();
    const own = await contentOf(storage, BLOCK_SUMS_FILE);
    for (const [content, reason] of [
      [other, /another chunk/],
      [own.map((byte, i) => (i === 70 ? byte ^ 1 : byte)), /changed or damaged/],
      [new Uint8Array(200).fill(65), /changed or damaged/],
      [new Uint8Array(0), /changed or damaged/],
    ] as const) {
      await putFile(storage, BLOCK_SUMS_FILE, content);
      expect(await run(storage)).toEqual([expect.stringMatching(reason)]);
      expect(await run(storage)).toEqual([]);
    }
  });

  it('a directory without the file, which verify names', async () => {
    const storage = await stopped();
    const { end } = await sumsOf(storage);
    await storage.remove(BLOCK_SUMS_FILE);
    expect(await verify(storage)).toEqual([`note ongoing_unprotected ${FIRST} ${HEADER_BYTES} ${end - HEADER_BYTES}`]);
    expect(await run(storage)).toEqual([]);
  });

  it('what is vouched for lies below writer.chk on the disk, whatever comes between the two: behind that others overwrite it, and rightly so', async () => {
    const storage = new FaultyStorage();
    await run(storage, 60);
    const openFile = storage.open.bind(storage);
    // The chaser's checkpoint follows the writer's: what is appended then, the writer's does not know.
    let between: () => Promise<void> = async () => {};
    storage.open = async (name, access) => {
      const file = await openFile(name, access);
      if (name !== 'chaser.chk') return file;
      return new Proxy(file, {
        get: (target, member) =>
          member === 'sync'
            ? async () => {
                await between();
                await target.sync();
              }
            : typeof target[member as 'read'] === 'function'
              ? target[member as 'read'].bind(target)
              : target[member as 'read'],
      });
    };
    const { open, clock } = await start(storage);
    const begun = storage.ops.length;
    for (let i = 0; i < 4; i++) {
      await clock.advance(BLOCK_SUMS_INTERVAL_MS - 1_000);
      await append(open, 1);
      between = () => {
        between = async () => {};
        return append(open, 1);
      };
      await clock.advance(1_000);
    }
    await open.close();
    const ops = storage.ops.slice(begun).map(({ op, path }) => `${op} ${path}`);
    const saves = ops.flatMap((op, at) => (op === `create ${BLOCK_SUMS_FILE}.tmp` ? [at] : []));
    expect(saves.length).toBeGreaterThan(2);
    for (const at of saves)
      expect(ops.lastIndexOf('sync writer.chk', at), ops.slice(Math.max(0, at - 8), at).join()).toBeGreaterThan(
        ops.lastIndexOf(`sync ${FIRST}`, at),
      );
  });

  it(
    'the end of the process at any moment: every start succeeds, and damage in what is vouched for is found',
    async () => {
      const work = async (storage: FaultyStorage): Promise<void> => {
        for (let part = 0; part < 3; part++) {
          const { open, clock } = await start(storage);
          for (let i = 0; i < 3; i++) {
            await append(open, 45);
            await clock.advance(BLOCK_SUMS_INTERVAL_MS);
          }
          await open.close();
        }
      };
      const all = new FaultyStorage();
      await work(all);
      let refused = 0;
      for (let at = 20; at < all.operations; at += bySize(633, 37)) {
        const storage = new FaultyStorage({ seed: at });
        storage.crashAt(at, (['before', 'middle', 'after'] as const)[at % 3]);
        await work(storage).catch(() => {});
        const modes = ['drop', 'partial', 'clean'] as const;
        for (const mode of bySize<readonly ('drop' | 'partial' | 'clean')[]>(
          [modes[Math.floor(at / 211) % 3]!],
          modes,
        )) {
          const left = storage.restart(mode, at);
          const sums = await readBlockSums(left, nodeDigests, CHUNK);
          const name = sums === null || sums === 'not-ours' ? FIRST : `chunk-00000${sums.chunkNumber}.000000`;
          const isOngoing = sums !== null && sums !== 'not-ours' && (await left.size(name)) === ongoingFileBytes(CHUNK);
          const damaged = await copyOf(left);
          const told = await run(left, 1);
          expect(
            told.filter((reason) => reason !== 'they belong to another chunk file'),
            `operation ${at} ${mode}`,
          ).toEqual([]);
          if (!isOngoing || told.length > 0 || sums.end < 3_000) continue;
          await flip(damaged, name, sums.end - 2_000);
          // A crash in the middle of a completion takes the commit slots, and with them the proof that nobody else
          // wrote.
          const wasCut = (await contentOf(damaged, name))
            .subarray(slotOffset(CHUNK, 0), ongoingFileBytes(CHUNK))
            .every((byte) => byte === 0);
          if (wasCut) continue;
          expect(await outcome(run(damaged)), `operation ${at} ${mode}`).toMatch(/^log_corrupt/);
          refused++;
        }
      }
      expect(refused).toBeGreaterThan(bySize(0, 20));
    },
    bySize(30_000, 300_000),
  );
});

it('the next piece is read while one is summed, and not into its place', async () => {
  const storage = new MemoryStorage();
  const open = await openTestStore({
    storage,
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
    seed: seed++,
    chunkSizeBytes: 4 * CHUNK,
    verifyChunks: false,
  });
  for (let fill = 1; fill <= 60; fill++) await append(open, 10, fill);
  await open.close();
  // A disk that is done at once.
  const bound = <T extends object>(target: T, own: Partial<T>): T =>
    new Proxy(target, {
      get: (_, key) => {
        const value: unknown = Reflect.get(key in own ? own : target, key, key in own ? own : target);
        return typeof value === 'function' && !(key in own) ? (value.bind(target) as unknown) : value;
      },
    });
  const quick = bound<Storage>(storage, {
    open: async (name, mode) => {
      const file = await storage.open(name, mode);
      return bound(file, {
        read: (position, length, into) => {
          const bytes = file.read(position, length);
          if (into === undefined || bytes instanceof Promise) return bytes;
          into.set(bytes);
          return into.subarray(0, bytes.length);
        },
      });
    },
  });
  const passed: number[] = [];
  expect(
    await compareBlocks(quick, FIRST, nodeDigests, async (bytes) => {
      passed.push(bytes);
    }),
  ).toEqual([]);
  expect(passed.length).toBeGreaterThan(2);
});
