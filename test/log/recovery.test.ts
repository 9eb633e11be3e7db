import { GONE } from '../../infra/fs/discard.ts';
import { describe, expect, it } from 'vitest';
import { putI32 } from '../../core/base/bytes.ts';
import { BLOCK_SUMS_FILE } from '../../core/log/format/block-sums-file.ts';
import { encodeHeader, encodeFooter } from '../../core/log/format/chunk-format.ts';
import { encodeSlot, SLOT_BYTES, slotOffset } from '../../core/log/format/commit-slot.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import {
  appendGroup,
  checkpoint,
  CHUNK,
  contentOf,
  contents,
  flip,
  groupAt,
  logText,
  ONGOING_FILE,
  openTestLog,
  patch,
  putFile,
  readBackward,
  readForward,
  recordAt,
  resize,
  setCheckpoint,
  textOf,
} from './kit.ts';

/** What a start makes of every state that a crash, another program or a bad disk leaves. */

const FIRST = 'chunk-000000.000000';
const SECOND = 'chunk-000001.000000';

interface Directory {
  readonly storage: MemoryStorage;
  readonly groups: readonly Uint8Array[];
  readonly ends: readonly number[];
}

/** A cleanly stopped directory with groups of the given record sizes in one chunk. */
async function directoryOf(...sizes: readonly (readonly number[])[]): Promise<Directory> {
  const storage = new MemoryStorage();
  const log = await openTestLog(storage);
  const groups: Uint8Array[] = [];
  const ends: number[] = [];
  for (const group of sizes) {
    groups.push(await appendGroup(log, group));
    ends.push(log.end);
  }
  await log.close();
  return { storage, groups, ends };
}

/** Two completed chunks and an ongoing one. */
async function threeChunks(): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const log = await openTestLog(storage);
  for (let chunk = 0; chunk < 3; chunk++) {
    await appendGroup(log, [1_000, 2_000]);
    await appendGroup(log, [500]);
    if (chunk < 2) await log.completeChunk();
  }
  await log.close();
  return storage;
}

/** Opens, compares the log with the groups, appends one more and reads it all again after another start. */
async function expectLog(
  storage: MemoryStorage,
  groups: readonly Uint8Array[],
  end = groups.reduce((sum, group) => sum + group.length, 0),
): Promise<void> {
  const log = await openTestLog(storage);
  expect(log.end).toBe(end);
  expect(await logText(log.table)).toBe(textOf(...groups));
  expect(textOf(...(await readBackward(log.table)).map((record) => record.bytes))).toBe(
    textOf(...(await readForward(log.table)).reverse().map((record) => record.bytes)),
  );
  expect(await checkpoint(storage, 'writer.chk')).toBe(end);
  const more = await appendGroup(log, [321, 123], 99);
  await log.completeChunk();
  const last = await appendGroup(log, [222], 98);
  await log.close();
  const again = await openTestLog(storage);
  expect(await logText(again.table)).toBe(textOf(...groups, more, last));
  await again.close();
}

async function expectRefusal(storage: MemoryStorage, code: string, data: Record<string, unknown>): Promise<void> {
  const before = await contents(storage);
  await expect(openTestLog(storage)).rejects.toMatchObject({ code, data });
  const after = await contents(storage);
  for (const name of before.keys())
    if (name.startsWith('chunk-')) expect(after.get(name) === before.get(name), `${name} is untouched`).toBe(true);
}

const slotAt = (sequence: number): number => slotOffset(CHUNK, sequence);

describe('the end of the log', () => {
  it('is where writer.chk says, whatever garbage follows', async () => {
    const { storage, groups, ends } = await directoryOf([300, 400], [500]);
    await patch(storage, FIRST, 128 + ends[1]!, new Random(5).bytes(20_000));
    await expectLog(storage, groups);
  });

  it('is where writer.chk says, even if whole records of nobody follow', async () => {
    const { storage, groups, ends } = await directoryOf([300, 400], [500]);
    await patch(storage, FIRST, 128 + ends[1]!, groupAt(ends[1]!, [600, 700], 55));
    await expectLog(storage, groups);
  });

  it.each([0, 1, 2])('is found from the newest slot when writer.chk is %d groups old', async (age) => {
    const { storage, groups, ends } = await directoryOf([300], [400, 100], [500], [900]);
    await setCheckpoint(storage, 'writer.chk', ends[3 - age]!);
    await setCheckpoint(storage, 'chaser.chk', ends[3 - age]!);
    await expectLog(storage, groups);
  });

  it('is the one before when the newest slot is torn', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400], [500]);
    await setCheckpoint(storage, 'writer.chk', ends[0]!);
    await flip(storage, FIRST, slotAt(3) + 20);
    await expectLog(storage, groups.slice(0, 2));
  });

  it('is the one before when the data of the newest group are torn', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400], [5_000, 600]);
    await setCheckpoint(storage, 'writer.chk', ends[0]!);
    await patch(storage, FIRST, 128 + ends[1]! + 1_024, new Uint8Array(512));
    await expectLog(storage, groups.slice(0, 2));
  });

  it('is writer.chk when both slots are torn', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400], [500]);
    await setCheckpoint(storage, 'writer.chk', ends[1]!);
    await flip(storage, FIRST, slotAt(3) + 1);
    await flip(storage, FIRST, slotAt(2) + 39);
    await expectLog(storage, groups.slice(0, 2));
  });

  it('is writer.chk when that is ahead of both slots, as another program leaves it', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400]);
    const foreign = groupAt(ends[1]!, [250, 260], 77);
    await patch(storage, FIRST, 128 + ends[1]!, foreign);
    await setCheckpoint(storage, 'writer.chk', ends[1]! + 510);
    await expectLog(storage, [...groups, foreign]);
  });

  it('is never found from a slot of another place', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400]);
    for (const [start, end] of [
      [-CHUNK, ends[1]!],
      [ends[1]!, CHUNK + 1],
      [ends[1]!, ends[1]!],
      [ends[1]!, ends[0]!],
      [CHUNK, CHUNK + 300],
    ] as const) {
      const slot = new Uint8Array(SLOT_BYTES);
      encodeSlot(slot, { sequence: 9, start, end, checksum: 0 }, nodeDigests);
      await patch(storage, FIRST, slotAt(9), slot);
      const log = await openTestLog(storage);
      expect(log.end).toBe(ends[1]);
      await log.close();
    }
    await expectLog(storage, groups);
  });

  it('a torn group is not resurrected by the groups after it', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400], [5_000]);
    await setCheckpoint(storage, 'writer.chk', ends[1]!);
    await flip(storage, FIRST, 128 + ends[1]! + 2_000);
    const log = await openTestLog(storage);
    expect(log.end).toBe(ends[1]);
    const next = await appendGroup(log, [700], 3);
    const after = await appendGroup(log, [800], 3);
    await log.close();
    await setCheckpoint(storage, 'writer.chk', ends[1]!);
    await expectLog(storage, [groups[0]!, groups[1]!, next, after]);
  });

  it('a slot beyond a gap in the records is damage', async () => {
    const { storage, ends } = await directoryOf([300], [400, 600], [500]);
    await setCheckpoint(storage, 'writer.chk', ends[0]!);
    await flip(storage, FIRST, 128 + ends[0]! + 400);
    await expectRefusal(storage, 'log_corrupt', { file: FIRST, offset: 128 + ends[0]! + 400 });
  });

  it.each([-1, 1, 7])('writer.chk %d bytes beside a record is damage', async (by) => {
    const { storage, ends } = await directoryOf([300], [400]);
    await setCheckpoint(storage, 'writer.chk', ends[1]! + by);
    await patch(storage, FIRST, slotAt(1), new Uint8Array(1_024));
    await expectRefusal(storage, 'log_corrupt', { file: FIRST, offset: 128 + ends[1]! + by });
  });

  it('in an unusable record is damage', async () => {
    const { storage, ends } = await directoryOf([300], [400]);
    for (const at of [ends[1]! - 1, ends[0]!, ends[0]! + 6]) {
      await flip(storage, FIRST, 128 + at);
      await expectRefusal(storage, 'log_corrupt', { file: FIRST, offset: 128 + ends[1]! });
      await flip(storage, FIRST, 128 + at);
    }
  });
});

describe('checkpoint files', () => {
  it.each([
    [10, 8],
    [9, 8],
  ])('of %d bytes are brought to %d and read', async (bytes, expected) => {
    const { storage, groups } = await directoryOf([300], [400]);
    await resize(storage, 'writer.chk', bytes);
    await patch(storage, 'writer.chk', 8, new Uint8Array(bytes - 8).fill(0xee));
    await expectLog(storage, groups);
    expect(await storage.size('writer.chk')).toBe(expected);
  });

  it('of 5 bytes keep what they hold', async () => {
    const { storage, groups } = await directoryOf([300], [400]);
    await resize(storage, 'writer.chk', 5);
    await expectLog(storage, groups);
  });

  it('chaser and epoch beyond the end are brought back', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400]);
    await setCheckpoint(storage, 'chaser.chk', ends[1]! + 50_000);
    await setCheckpoint(storage, 'epoch.chk', ends[1]!);
    const log = await openTestLog(storage);
    expect(await checkpoint(storage, 'chaser.chk')).toBe(ends[1]);
    expect(await checkpoint(storage, 'epoch.chk')).toBe(-1);
    await log.close();
    await expectLog(storage, groups);
  });

  it.each([-1, -(2 ** 40), 2 ** 50, 2 ** 62])('a writer.chk of %d is refused and named', async (value) => {
    const { storage } = await directoryOf([300]);
    await setCheckpoint(storage, 'writer.chk', value);
    await expectRefusal(storage, 'checkpoint_corrupt', { file: 'writer.chk', offset: 0 });
  });

  it('the others are made anew when they are missing', async () => {
    const { storage, groups } = await directoryOf([300], [400]);
    for (const name of ['chaser.chk', 'epoch.chk', 'proposal.chk', 'truncate.chk']) await storage.remove(name);
    await expectLog(storage, groups);
    expect(await checkpoint(storage, 'truncate.chk')).toBe(-1);
    expect(await checkpoint(storage, 'epoch.chk')).toBe(-1);
  });
});

describe('without writer.chk', () => {
  it('the slots name the end', async () => {
    const { storage, groups } = await directoryOf([300], [400, 500], [600]);
    await storage.remove('writer.chk');
    await storage.remove('chaser.chk');
    await expectLog(storage, groups);
  });

  it('the slots name the end, not a torn group behind it', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400, 500]);
    await patch(storage, FIRST, 128 + ends[1]!, groupAt(ends[1]!, [700], 9));
    await storage.remove('writer.chk');
    await expectLog(storage, groups);
  });

  it('without slots the records are walked to the last whole one', async () => {
    const { storage, groups, ends } = await directoryOf([300], [400, 500], [600]);
    await patch(storage, FIRST, slotAt(0), new Uint8Array(1_024));
    await storage.remove('writer.chk');
    await storage.remove('chaser.chk');
    await patch(storage, FIRST, 128 + ends[2]!, recordAt(ends[2]!, 900).subarray(0, 800));
    await expectLog(storage, groups);
  });

  it("slots older than chaser.chk don't cut the log", async () => {
    const { storage, groups, ends } = await directoryOf([300], [400]);
    const foreign = groupAt(ends[1]!, [250, 260, 270], 77);
    await patch(storage, FIRST, 128 + ends[1]!, foreign);
    await setCheckpoint(storage, 'chaser.chk', ends[1]! + 510);
    await storage.remove('writer.chk');
    await expectLog(storage, [...groups, foreign]);
  });

  it("slots of which none holds don't empty the log", async () => {
    const { storage, ends } = await directoryOf([300], [400]);
    await storage.remove('writer.chk');
    await storage.remove('chaser.chk');
    // With the checksums of its blocks the damage would be found.
    await storage.remove(BLOCK_SUMS_FILE);
    await flip(storage, FIRST, 128 + 290);
    await flip(storage, FIRST, 128 + ends[1]! - 20);
    const log = await openTestLog(storage);
    expect(log.end).toBe(ends[1]);
    await log.close();
  });

  it.each([true, false])(
    'a completed last chunk ends the log at its end (next file present: %s)',
    async (isPresent) => {
      const storage = new MemoryStorage();
      const log = await openTestLog(storage);
      const group = await appendGroup(log, [300, 400]);
      await log.completeChunk();
      await log.close();
      if (!isPresent) await storage.remove(SECOND);
      await storage.remove('writer.chk');
      await expectLog(storage, [group], CHUNK);
    },
  );

  it('and with nothing but an empty chunk the log is empty', async () => {
    const storage = new MemoryStorage();
    await (await openTestLog(storage)).close();
    await storage.remove('writer.chk');
    await expectLog(storage, []);
  });

  it('a crash in the middle of that search does not empty the log', async () => {
    const source = await threeChunks();
    await source.remove('writer.chk');
    const files: [string, Uint8Array][] = [];
    for (const name of await source.list('')) files.push([name, await contentOf(source, name)]);
    for (let n = 1; ; n++) {
      const storage = new FaultyStorage({ seed: n });
      for (const [name, bytes] of files) await putFile(storage, name, bytes);
      const before = storage.operations;
      storage.crashAt(before + n);
      const log = await openTestLog(storage).catch(() => null);
      if (log !== null) break;
      for (const mode of ['drop', 'keep', 'partial', 'clean'] as const) {
        const after = storage.restart(mode, n);
        const again = await openTestLog(after);
        expect(again.end, `crash at operation ${n}, ${mode}`).toBe(2 * CHUNK + 3_500);
        expect((await readForward(again.table)).length).toBe(9);
        const last = await openTestLog(after.restart('drop'));
        expect(last.end, `crash at operation ${n}, ${mode} and a power loss`).toBe(2 * CHUNK + 3_500);
      }
    }
  });
});

describe('a chunk completed in part', () => {
  /** The last chunk with a footer but writer.chk inside, or with the file cut off behind its data. */
  async function halfCompleted(keep: 'cut' | 'footer' | 'torn footer'): Promise<Directory> {
    const directory = await directoryOf([300, 400], [500]);
    const { storage } = directory;
    const log = await openTestLog(storage);
    await log.completeChunk();
    await log.close();
    await storage.remove(SECOND);
    await setCheckpoint(storage, 'writer.chk', 1_200);
    await setCheckpoint(storage, 'chaser.chk', 1_200);
    if (keep === 'cut') await resize(storage, FIRST, 128 + 1_200);
    if (keep === 'torn footer') await patch(storage, FIRST, 3_584, new Uint8Array(512));
    return directory;
  }

  it.each(['cut', 'footer', 'torn footer'] as const)('%s: goes on as the ongoing chunk', async (keep) => {
    const { storage, groups } = await halfCompleted(keep);
    const log = await openTestLog(storage);
    expect(await storage.size(FIRST)).toBe(ONGOING_FILE);
    expect(log.remaining).toBe(CHUNK - 1_200);
    await log.close();
    await expectLog(storage, groups);
  });

  it('an old writer.chk does not cut off what a footer names', async () => {
    const { storage, groups } = await halfCompleted('footer');
    await setCheckpoint(storage, 'writer.chk', 700);
    await setCheckpoint(storage, 'chaser.chk', 700);
    await expectLog(storage, groups);
  });

  it("an old writer.chk and an empty next chunk don't cut it off either", async () => {
    const storage = new MemoryStorage();
    const log = await openTestLog(storage);
    const groups = [await appendGroup(log, [300, 400]), await appendGroup(log, [500])];
    await log.completeChunk();
    await log.close();
    await setCheckpoint(storage, 'writer.chk', 300);
    await expectLog(storage, groups);
  });

  it('a full chunk that was never completed is completed when writer.chk stands at the boundary', async () => {
    const { storage, groups } = await directoryOf([5_000], [CHUNK - 5_000]);
    const log = await openTestLog(storage);
    expect((await contentOf(storage, FIRST)).length).toBe(CHUNK + 4_096);
    expect(log.end).toBe(CHUNK);
    expect(await storage.size(SECOND)).toBe(ONGOING_FILE);
    await log.close();
    const bytes = await contentOf(storage, FIRST);
    expect([...bytes.subarray(-128, -111)]).toEqual([...encodeFooter(CHUNK, CHUNK, 0).subarray(0, 17)]);
    expect(textOf(new Uint8Array(nodeDigestOf(bytes.subarray(0, -16))))).toBe(textOf(bytes.subarray(-16)));
    await expectLog(storage, groups, CHUNK);
  });

  it('a chunk whose footer is damaged is not taken for a full one', async () => {
    const storage = new MemoryStorage();
    const log = await openTestLog(storage);
    await appendGroup(log, [300, 400]);
    await log.completeChunk();
    await log.close();
    await storage.remove(SECOND);
    await flip(storage, FIRST, 4_096 - 128, 1);
    await expectRefusal(storage, 'log_corrupt', { file: FIRST });
  });
});

function nodeDigestOf(bytes: Uint8Array): Uint8Array {
  const md5 = nodeDigests.md5();
  md5.update(bytes);
  return md5.finish();
}

describe('chunk files that should not be there, or should', () => {
  it('the next chunk is created where writer.chk stands at a boundary', async () => {
    const storage = new MemoryStorage();
    const log = await openTestLog(storage);
    const group = await appendGroup(log, [300]);
    await log.completeChunk();
    await log.close();
    await storage.remove(SECOND);
    await expectLog(storage, [group], CHUNK);
  });

  it('an empty chunk behind the log is removed', async () => {
    const { storage, groups } = await directoryOf([300], [400]);
    const header = encodeHeader({
      version: 3,
      chunkSize: CHUNK,
      startNumber: 1,
      endNumber: 1,
      isScavenged: false,
      chunkId: new Uint8Array(16).fill(1),
    });
    const bytes = new Uint8Array(ONGOING_FILE);
    bytes.set(header);
    await putFile(storage, SECOND, bytes);
    const log = await openTestLog(storage);
    expect(await storage.size(SECOND)).toBe(null);
    await log.close();
    await expectLog(storage, groups);
  });

  it('a chunk with data behind the log is refused', async () => {
    const { storage } = await directoryOf([300], [400]);
    const bytes = new Uint8Array(ONGOING_FILE);
    bytes.set(
      encodeHeader({
        version: 3,
        chunkSize: CHUNK,
        startNumber: 1,
        endNumber: 1,
        isScavenged: false,
        chunkId: new Uint8Array(16).fill(1),
      }),
    );
    bytes.set(recordAt(CHUNK, 300), 128);
    await putFile(storage, SECOND, bytes);
    await expectRefusal(storage, 'chunk_unexpected', { file: SECOND });
    // Without writer.chk chunk 0 would have to be complete.
    await storage.remove('writer.chk');
    await expectRefusal(storage, 'log_corrupt', { file: FIRST, offset: ONGOING_FILE - 128 });
  });

  it('an empty chunk far behind the log, or a second version of it, is refused', async () => {
    for (const [name, number] of [
      ['chunk-000002.000000', 2],
      ['chunk-000001.000001', 1],
    ] as const) {
      const { storage } = await directoryOf([300]);
      const bytes = new Uint8Array(ONGOING_FILE);
      bytes.set(
        encodeHeader({
          version: 3,
          chunkSize: CHUNK,
          startNumber: number,
          endNumber: number,
          isScavenged: false,
          chunkId: new Uint8Array(16),
        }),
      );
      await putFile(storage, name, bytes);
      await expectRefusal(storage, 'chunk_unexpected', { file: name });
    }
  });

  it('leftover temporary files are removed', async () => {
    const { storage, groups } = await directoryOf([300]);
    for (const name of [
      'chunk-000001.000000.c1c1c1c1-0000-4000-8000-000000000000.tmp',
      '00000000-0000-4000-8000-000000000011.scavenge.tmp',
      'writer.chk.tmp',
      `chunk-000000.000000${GONE}`,
    ])
      await putFile(storage, name, new Uint8Array(5));
    await putFile(storage, 'notes.txt', new Uint8Array(5));
    await expectLog(storage, groups);
    expect((await storage.list('')).filter((name) => !name.startsWith('chunk-') && !name.endsWith('.chk'))).toEqual([
      BLOCK_SUMS_FILE,
      'notes.txt',
    ]);
  });

  it('a missing chunk in the middle is named, and nothing is changed', async () => {
    const storage = await threeChunks();
    await storage.remove(SECOND);
    await expectRefusal(storage, 'chunk_missing', { chunk: 1, count: 1 });
  });

  it('a missing last chunk that has data is named', async () => {
    const storage = await threeChunks();
    await storage.remove('chunk-000002.000000');
    await expectRefusal(storage, 'chunk_missing', { chunk: 2 });
  });

  it('superseded versions are removed', async () => {
    const storage = await threeChunks();
    const text = await (async () => {
      const log = await openTestLog(storage);
      const all = await logText(log.table);
      await log.close();
      return all;
    })();
    await putFile(storage, 'chunk-000001.000003', await contentOf(storage, SECOND));
    await putFile(storage, 'chunk-000001.000001', new Uint8Array(3));
    const log = await openTestLog(storage);
    expect(await logText(log.table)).toBe(text);
    expect((await storage.list('')).filter((name) => name.startsWith('chunk-'))).toEqual([
      FIRST,
      'chunk-000001.000003',
      'chunk-000002.000000',
    ]);
    await log.close();
  });

  it("a leftover that can't be removed does no harm", async () => {
    const storage = new FaultyStorage();
    const log = await openTestLog(storage);
    await appendGroup(log, [300]);
    await log.close();
    await putFile(storage, '00000000-0000-4000-8000-000000000011.scavenge.tmp', new Uint8Array(5));
    storage.failWhen((op, path) =>
      op === 'remove' && path === '00000000-0000-4000-8000-000000000011.scavenge.tmp' ? 'io_error' : undefined,
    );
    const again = await openTestLog(storage);
    expect(again.end).toBe(300);
    await again.close();
  });
});

describe('damage is refused with file and offset', () => {
  it.each([
    ['file type', 0, 0x01, 'log_corrupt', 0],
    ['version', 1, 0x04, 'log_unsupported', 1],
    ['chunk size', 4, 0x10, 'log_corrupt', 2],
    ['number', 6, 0x02, 'log_corrupt', 6],
    ['last number', 10, 0x04, 'log_corrupt', 10],
    ['transformation', 35, 0x01, 'log_unsupported', 35],
  ] as const)('the %s in the header of a completed or an ongoing chunk', async (_, at, xor, code, offset) => {
    for (const name of [SECOND, 'chunk-000002.000000']) {
      const storage = await threeChunks();
      await flip(storage, name, at, xor);
      await expectRefusal(storage, code, { file: name, offset });
    }
  });

  it.each([
    [0, 0x01],
    [4, 0x80],
    [5, 0xff],
    [13, 0x05],
  ])('byte %d of a footer', async (at, xor) => {
    const storage = await threeChunks();
    await flip(storage, SECOND, 4_096 - 128 + at, xor);
    await expectRefusal(storage, 'log_corrupt', { file: SECOND, offset: 4_096 - 128 });
  });

  it('a completed chunk that was cut off', async () => {
    const storage = await threeChunks();
    await resize(storage, SECOND, 3_000);
    await expectRefusal(storage, 'log_corrupt', { file: SECOND, offset: 3_000 - 128 });
    await resize(storage, SECOND, 100);
    await expectRefusal(storage, 'log_corrupt', { file: SECOND, offset: 100 });
  });

  it.each([
    ['prefix', 0, 1_000],
    ['position', 6, 1_000],
    ['suffix', 1_999, 1_000],
  ] as const)('the %s of a record, when it is read', async (_, at, start) => {
    const storage = await threeChunks();
    await flip(storage, SECOND, 128 + start + at);
    const log = await openTestLog(storage);
    await expect(readForward(log.table)).rejects.toMatchObject({
      code: 'log_corrupt',
      data: { file: SECOND, offset: 128 + start },
    });
    await expect(readBackward(log.table)).rejects.toMatchObject({ code: 'log_corrupt', data: { file: SECOND } });
    await log.close();
  });
});

describe('files of older versions', () => {
  it('an ongoing chunk of version 2 is made one of version 3', async () => {
    const { storage, groups } = await directoryOf([300], [400]);
    await patch(storage, FIRST, 1, Uint8Array.of(2));
    await resize(storage, FIRST, 128 + CHUNK + 128);
    const log = await openTestLog(storage);
    expect((await contentOf(storage, FIRST))[1]).toBe(3);
    expect(await storage.size(FIRST)).toBe(ONGOING_FILE);
    await log.close();
    await expectLog(storage, groups);
  });

  it('an ongoing chunk of the unaligned length that a truncation leaves goes on', async () => {
    const { storage, groups } = await directoryOf([300], [400]);
    await resize(storage, FIRST, 128 + CHUNK + 128);
    await expectLog(storage, groups);
    expect(await storage.size('chunk-000001.000000')).toBe(ONGOING_FILE);
  });

  it('a completed chunk of version 2 has no padding', async () => {
    const storage = await threeChunks();
    const bytes = await contentOf(storage, SECOND);
    const old = new Uint8Array(128 + 3_500 + 128);
    old.set(bytes.subarray(0, 128 + 3_500));
    old[1] = 2;
    const footer = new Uint8Array(128);
    footer[0] = 1;
    putI32(footer, 1, 3_500);
    putI32(footer, 5, 3_500);
    old.set(footer, 128 + 3_500);
    await putFile(storage, SECOND, old);
    const log = await openTestLog(storage);
    expect((await readForward(log.table)).length).toBe(9);
    expect((await readBackward(log.table)).length).toBe(9);
    await log.close();
    const longer = new Uint8Array(old.length + 1);
    longer.set(old.subarray(0, old.length - 128));
    longer.set(old.subarray(old.length - 128), longer.length - 128);
    await putFile(storage, SECOND, longer);
    await expectRefusal(storage, 'log_corrupt', { file: SECOND, offset: longer.length - 128 });
  });
});
