import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import { executeChunk } from '../../core/scavenge/chunk-execution.ts';
import { mergeChunks } from '../../core/scavenge/chunk-merging.ts';
import { executeNeighbours } from '../../core/scavenge/neighbours-job.ts';
import { contentOf } from '../log/kit.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { ID, jobContext, recordsOf, runSettings, statesWith, writeChunkFile } from './chunk-kit.ts';
import type { ContextOptions, EventInput } from './chunk-kit.ts';

/** The job that executes and merges in one, beside the two jobs that do the same one after the other. */

const CHUNK = 1_048_576;
const LARGE_CHUNK = 16 * CHUNK;
const TARGET = '00000000-0000-4000-8000-000000000015.merge.scavenge.tmp';
const STATES = statesWith({ a: { discardPoint: 1_000_000, maybeDiscardPoint: 1_000_000 } });

interface Member {
  readonly events: readonly EventInput[];
  /** Default true. */
  readonly isExecuted?: boolean;
  readonly version?: number;
}

interface Source {
  readonly name: string;
  readonly startNumber: number;
  readonly endNumber: number;
  readonly dataBytes: number;
  readonly isExecuted: boolean;
}

const FIRST = 3;
/** Events of `a` go, those of `b` stay. */
const half = (count: number, dataBytes: number, random = new Random(dataBytes)): EventInput[] =>
  Array.from({ length: count }, (_, i) => ({
    stream: i % 2 === 0 ? 'a' : 'b',
    number: i,
    dataBytes: random.int(0, 2 * dataBytes),
  }));
const kept = (count: number, dataBytes: number): EventInput[] =>
  Array.from({ length: count }, (_, number) => ({ stream: 'b', number, dataBytes }));
const gone = (count: number, dataBytes: number): EventInput[] =>
  Array.from({ length: count }, (_, number) => ({ stream: 'a', number, dataBytes }));

async function write(storage: Storage, members: readonly Member[], chunkSize = CHUNK): Promise<Source[]> {
  const sources: Source[] = [];
  for (const [i, { events, isExecuted = true, version }] of members.entries()) {
    const number = FIRST + i;
    const name = `chunk-00000${number}.000000`;
    await writeChunkFile(storage, name, number, chunkSize, events, version);
    const records = await recordsOf(storage, name);
    sources.push({
      name,
      startNumber: number,
      endNumber: number,
      dataBytes: records.reduce((sum, { text }) => sum + text.length + 8, 0),
      isExecuted,
    });
  }
  return sources;
}

function together(storage: Storage, sources: readonly Source[], options: ContextOptions & { chunkSize?: number } = {}) {
  return executeNeighbours(
    { settings: runSettings(), chunkSize: options.chunkSize ?? CHUNK, sources, target: TARGET, chunkId: ID },
    jobContext(storage, { states: STATES, ...options }),
  );
}

/** What execution and merging leave one after the other, and their results. */
async function oneByOne(storage: Storage, sources: readonly Source[]) {
  const executed = [];
  const files: string[] = [];
  for (const { name, isExecuted } of sources) {
    if (isExecuted)
      executed.push(
        await executeChunk(
          { settings: runSettings(), chunkSize: CHUNK, source: name, target: `${name}-executed`, chunkId: ID },
          jobContext(storage, { states: STATES }),
        ),
      );
    files.push(isExecuted ? `${name}-executed` : name);
  }
  await mergeChunks({ chunkSize: CHUNK, sources: files, target: 'expected.tmp', chunkId: ID }, jobContext(storage));
  return { executed, bytes: await contentOf(storage, 'expected.tmp') };
}

/** As many of the chunks as are expected go into the file, which is the one that they would get one after the other. */
async function expectSame(
  members: readonly Member[],
  count = members.length,
  reads: 'sync' | 'async' = 'async',
): Promise<void> {
  const storage = new FaultyStorage({ reads });
  const sources = await write(storage, members);
  const result = await together(storage, sources);
  expect(result.written).toHaveLength(count);
  const expected = await oneByOne(storage, sources.slice(0, count));
  const bytes = await contentOf(storage, TARGET);
  expect(Buffer.compare(bytes, expected.bytes)).toBe(0);
  expect(result.bytesAfter).toBe(bytes.length);
  const executed = result.written.filter((_, i) => sources[i]!.isExecuted);
  expect(
    executed.map(({ recordsKept, recordsDiscarded, bytesBefore, bytesAfter }) => ({
      recordsKept,
      recordsDiscarded,
      bytesBefore,
      bytesAfter,
    })),
  ).toEqual(
    expected.executed.map(({ recordsKept, recordsDiscarded, bytesBefore, bytesAfter }) => ({
      recordsKept,
      recordsDiscarded,
      bytesBefore,
      bytesAfter,
    })),
  );
}

describe('executing neighbours into one file', () => {
  it('leaves, byte for byte, the file that executing each and merging them leaves', async () => {
    await expectSame([{ events: half(300, 1_000) }, { events: half(300, 1_000) }]);
  });

  it('takes skipped, empty, emptied and old ones, and one that is alone', async () => {
    for (const members of [
      [
        { events: half(200, 700) },
        { events: kept(40, 900), isExecuted: false },
        { events: [] },
        { events: gone(90, 3_000) },
        { events: half(100, 600), version: 2 },
      ],
      [{ events: kept(40, 900), isExecuted: false, version: 2 }, { events: half(200, 700) }],
      [{ events: gone(90, 3_000) }, { events: gone(90, 3_000) }],
      [{ events: half(300, 1_000) }],
    ] satisfies Member[][])
      await expectSame(members);
  });

  it.each(['sync', 'async'] as const)(
    'ends its file before the chunk that does not fit, and gives it the checksum of its new header (reads: %s)',
    async (reads) => {
      for (const [members, count] of [
        // By a little, which shows at the end of the chunk, and by so much that it can be foreseen.
        [[{ events: half(850, 1_000) }, { events: half(850, 1_000) }, { events: half(300, 1_000) }], 2],
        [[{ events: half(500, 1_000) }, { events: kept(900, 1_000) }], 1],
        // A skipped one is not begun.
        [[{ events: half(500, 1_000) }, { events: kept(800, 1_000), isExecuted: false }], 1],
        [[{ events: gone(90, 3_000) }, { events: kept(600, 900) }, { events: kept(600, 900) }], 2],
      ] satisfies [Member[], number][])
        await expectSame(members, count, reads);
    },
  );

  it('foresees that a chunk does not fit, and reads no more of it', async () => {
    const storage = new MemoryStorage();
    const sources = await write(storage, [{ events: kept(160, 65_000) }, { events: kept(200, 65_000) }], LARGE_CHUNK);
    let bytes = 0;
    const open = storage.open.bind(storage);
    storage.open = async (path, access) => {
      const file = await open(path, access);
      if (path !== sources[1]!.name) return file;
      const read = file.read.bind(file);
      file.read = (position, length, into) => {
        bytes += length;
        return read(position, length, into);
      };
      return file;
    };
    expect((await together(storage, sources, { chunkSize: LARGE_CHUNK })).written).toHaveLength(1);
    expect(bytes).toBeLessThan(sources[1]!.dataBytes / 2);
  });

  it('makes no file where nothing that fits is to be executed', async () => {
    const storage = new MemoryStorage();
    const sources = await write(storage, [
      { events: kept(300, 1_000), isExecuted: false },
      { events: kept(900, 1_000) },
    ]);
    expect(await together(storage, sources)).toMatchObject({ bytesAfter: null, written: [{ recordsDiscarded: 0 }] });
    expect(await storage.list('')).toEqual(sources.map(({ name }) => name));
  });

  it('gives no checksum to a file that reads otherwise than it was written, where it has to be read again', async () => {
    const storage = new MemoryStorage();
    const sources = await write(storage, [{ events: half(500, 1_000) }, { events: kept(900, 1_000) }]);
    const create = storage.create.bind(storage);
    storage.create = async (path) => flipping(await create(path));
    await expect(together(storage, sources)).rejects.toMatchObject({ code: 'io_error' });
    expect(await storage.size(TARGET)).toBeNull();
  });

  it('refuses a damaged source, executed or skipped, and leaves nothing', async () => {
    for (const damaged of [0, 1]) {
      for (const isExecuted of [true, false]) {
        const storage = new MemoryStorage();
        const sources = await write(storage, [
          { events: half(60, 1_000), isExecuted },
          { events: half(60, 1_000), isExecuted },
        ]);
        const file = await storage.open(sources[damaged]!.name, 'write');
        const [byte] = await file.read(5_000, 1);
        await file.writeAt(5_000, Uint8Array.of(byte! ^ 1));
        await file.close();
        await expect(together(storage, sources)).rejects.toMatchObject({
          code: 'log_corrupt',
          data: { file: sources[damaged]!.name },
        });
        expect(await storage.size(TARGET)).toBeNull();
      }
    }
  });

  it('can be ended, and removes its file whichever operation fails', async () => {
    // The third does not fit.
    const members: Member[] = [
      { events: half(850, 1_000) },
      { events: half(850, 1_000) },
      { events: half(300, 1_000) },
    ];
    const measured = new FaultyStorage();
    const sources = await write(measured, members);
    const first = measured.operations + 1;
    expect((await together(measured, sources)).written).toHaveLength(2);
    for (let n = first; n <= measured.operations; n++) {
      const storage = new FaultyStorage({ reads: 'async' });
      await write(storage, members);
      storage.failAt(n, n % 2 === 0 ? 'disk_full' : 'sync_failed');
      await expect(together(storage, sources), `operation ${n}`).rejects.toBeInstanceOf(SkuaError);
      expect(await storage.list('')).toEqual(sources.map(({ name }) => name));
      expect(storage.violations).toEqual([]);
    }
    for (let ended = 1; ended <= 2; ended++) {
      const storage = new FaultyStorage({ reads: 'async' });
      await write(storage, members);
      let checks = 0;
      const onCheckpoint = () => {
        if (++checks === ended) throw new SkuaError('aborted', 'The job was ended.');
      };
      await expect(together(storage, sources, { onCheckpoint })).rejects.toMatchObject({ code: 'aborted' });
      expect(await storage.list('')).toEqual(sources.map(({ name }) => name));
    }
  });
});

/** A file in which a bit of the data has changed when it is read. */
function flipping(file: StorageFile): StorageFile {
  const read = file.read.bind(file);
  file.read = async (position, length, into) => {
    const bytes = Uint8Array.from(await read(position, length, into));
    if (position <= 9_000 && position + bytes.length > 9_000) bytes[9_000 - position]! ^= 4;
    return bytes;
  };
  return file;
}
