import { describe, expect, it } from 'vitest';
import { putI32, putI64 } from '../../core/base/bytes.ts';
import { encodeFooter, encodeHeader, type ChunkHeader } from '../../core/log/format/chunk-format.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import {
  appendGroup,
  checkpoint,
  CHUNK,
  contentOf,
  contents,
  copyTo,
  logText,
  openTestLog,
  putFile,
  recordAt,
  setCheckpoint,
  textOf,
} from './kit.ts';

/** What `truncate.chk` asks for. */

const NAMES = [0, 1, 2, 3].map((number) => `chunk-00000${number}.000000`);
const RECORDS = [1_000, 2_000, 500] as const;
/** End of the data in each chunk. */
const DATA = 3_500;
const END = 3 * CHUNK + DATA;

/** Chunks 0, 1 and 2 complete, 3 ongoing, each with the same three records. */
async function fourChunks(storage: Storage = new MemoryStorage()): Promise<Storage> {
  const log = await openTestLog(storage);
  for (let chunk = 0; chunk < 4; chunk++) {
    await appendGroup(log, [1_000, 2_000]);
    await appendGroup(log, [500]);
    if (chunk < 3) await log.completeChunk();
  }
  await log.close();
  await setCheckpoint(storage, 'epoch.chk', CHUNK);
  return storage;
}

/** What the log holds up to a position. */
function logUpTo(position: number): string {
  const parts: Uint8Array[] = [];
  for (let chunk = 0; chunk < 4; chunk++) {
    let at = chunk * CHUNK;
    for (const bytes of RECORDS) {
      if (at + bytes <= position) parts.push(recordAt(at, bytes));
      at += bytes;
    }
  }
  return textOf(...parts);
}

/** A scavenged file that keeps the first record of each of its chunks. */
function scavenged(startNumber: number, endNumber: number): Uint8Array {
  const header: ChunkHeader = {
    version: 3,
    chunkSize: CHUNK,
    startNumber,
    endNumber,
    isScavenged: true,
    chunkId: new Uint8Array(16).fill(3),
  };
  const count = endNumber - startNumber + 1;
  const bytes = new Uint8Array(Math.ceil((256 + count * 1_012) / 4096) * 4096);
  bytes.set(encodeHeader(header));
  for (let i = 0; i < count; i++) {
    bytes.set(recordAt((startNumber + i) * CHUNK, 1_000), 128 + i * 1_000);
    putI32(bytes, 128 + count * 1_000 + i * 12, i * 1_000);
    putI64(bytes, 128 + count * 1_000 + i * 12 + 4, i * CHUNK);
  }
  bytes.set(encodeFooter(count * 1_000, (count - 1) * CHUNK + 1_000, count * 12), bytes.length - 128);
  const md5 = nodeDigests.md5();
  md5.update(bytes.subarray(0, -16));
  bytes.set(md5.finish(), bytes.length - 16);
  return bytes;
}

async function chunkNames(storage: Storage): Promise<string[]> {
  return (await storage.list('')).filter((name) => name.startsWith('chunk-'));
}

describe('truncation', () => {
  it.each([
    ['the end of a record of the ongoing chunk', 3 * CHUNK + 3_000, NAMES],
    ['the start of the ongoing chunk', 3 * CHUNK, NAMES],
    ['the end of the log', END, NAMES],
    ['the end of a record of a completed chunk', CHUNK + 1_000, NAMES.slice(0, 2)],
    ['the end of the data of a completed chunk', CHUNK + DATA, NAMES.slice(0, 2)],
    ['the start of a completed chunk', 2 * CHUNK, NAMES.slice(0, 3)],
    ['the start of the log', 0, NAMES.slice(0, 1)],
  ])('to %s', async (_, target, names) => {
    const storage = await fourChunks();
    await setCheckpoint(storage, 'truncate.chk', target);
    const log = await openTestLog(storage);
    expect(log.end).toBe(target);
    expect(await logText(log.table)).toBe(logUpTo(target));
    expect(await chunkNames(storage)).toEqual(names);
    expect(await checkpoint(storage, 'truncate.chk')).toBe(-1);
    expect(await checkpoint(storage, 'writer.chk')).toBe(target);
    expect(await checkpoint(storage, 'chaser.chk')).toBe(Math.min(target, END));
    expect(await checkpoint(storage, 'epoch.chk')).toBe(CHUNK >= target ? -1 : CHUNK);
    const last = await contentOf(storage, names.at(-1)!);
    expect(last.length).toBe(69_632);
    expect(
      last.subarray(128 + target - (names.length - 1) * CHUNK).every((byte) => byte === 0),
      'nothing is left behind the end',
    ).toBe(true);
    const more = await appendGroup(log, [700], 5);
    await log.completeChunk();
    await log.close();
    const again = await openTestLog(storage);
    expect(await logText(again.table)).toBe(logUpTo(target) + textOf(more));
    await again.close();
  });

  it('into a scavenged or merged chunk goes back to its start', async () => {
    for (const target of [CHUNK + 1_000, 2 * CHUNK, 2 * CHUNK + 3_000]) {
      const storage = await fourChunks();
      await putFile(storage, 'chunk-000001.000001', scavenged(1, 2));
      await setCheckpoint(storage, 'truncate.chk', target);
      const log = await openTestLog(storage);
      expect(log.end).toBe(CHUNK);
      expect(await logText(log.table)).toBe(logUpTo(CHUNK));
      expect(await chunkNames(storage)).toEqual(NAMES.slice(0, 2));
      await log.close();
    }
  });

  it('behind a scavenged chunk keeps it', async () => {
    const storage = await fourChunks();
    await putFile(storage, 'chunk-000001.000001', scavenged(1, 2));
    await setCheckpoint(storage, 'truncate.chk', 3 * CHUNK + 1_000);
    const log = await openTestLog(storage);
    expect(await logText(log.table)).toBe(
      logUpTo(CHUNK) + textOf(recordAt(CHUNK, 1_000), recordAt(2 * CHUNK, 1_000), recordAt(3 * CHUNK, 1_000)),
    );
    await log.close();
  });

  it('to a boundary without a file needs none', async () => {
    const storage = await fourChunks();
    await storage.remove(NAMES[3]!);
    await setCheckpoint(storage, 'writer.chk', 3 * CHUNK);
    await setCheckpoint(storage, 'truncate.chk', 3 * CHUNK);
    const log = await openTestLog(storage);
    expect(log.end).toBe(3 * CHUNK);
    await log.close();
  });

  it.each([
    [END - 500, false],
    [END, true],
  ])('to %i: is the scavenge database kept? %s', async (position, isKept) => {
    const storage = await fourChunks();
    await putFile(storage, 'index/scavenging/scavenging.db', new Uint8Array(100));
    await putFile(storage, 'index/scavenging/scavenging.db-wal', new Uint8Array(100));
    await setCheckpoint(storage, 'truncate.chk', position);
    await (await openTestLog(storage)).close();
    expect((await storage.size('index/scavenging/scavenging.db')) !== null).toBe(isKept);
    expect((await storage.size('index/scavenging/scavenging.db-wal')) !== null).toBe(isKept);
  });

  it('goes by the end that recovery finds, not by a writer.chk that has stayed behind', async () => {
    for (const [target, mode] of [
      [1_500, 'drop'],
      [1_500, 'clean'],
      [2_000, 'drop'],
      [500, 'drop'],
    ] as const) {
      const before = new FaultyStorage();
      const log = await openTestLog(before);
      const groups = [await appendGroup(log, [500]), await appendGroup(log, [1_000]), await appendGroup(log, [500])];
      const storage = before.restart(mode);
      await setCheckpoint(storage, 'writer.chk', 0);
      await setCheckpoint(storage, 'truncate.chk', target);
      const lines: string[] = [];
      const cut = await openTestLog(storage, {
        truncationBytesMax: 1_500,
        log: {
          ...silentLog,
          warn: (message) => {
            lines.push(message);
          },
        },
      });
      expect(cut.end).toBe(target);
      expect(await logText(cut.table)).toBe(textOf(...groups).slice(0, target));
      expect(await checkpoint(storage, 'truncate.chk')).toBe(-1);
      expect(lines.filter((line) => line.startsWith('log truncated')).length).toBe(target < 2_000 ? 1 : 0);
      const more = await appendGroup(cut, [300], 5);
      const again = await openTestLog(storage.restart('drop'));
      expect(await logText(again.table)).toBe(textOf(...groups).slice(0, target) + textOf(more));
    }
  });

  it('is refused by its limit as measured from there', async () => {
    const before = new FaultyStorage();
    const log = await openTestLog(before);
    await appendGroup(log, [500]);
    await appendGroup(log, [1_000]);
    const storage = before.restart('drop');
    await setCheckpoint(storage, 'truncate.chk', 500);
    await expect(openTestLog(storage, { truncationBytesMax: 999 })).rejects.toMatchObject({
      code: 'truncation_too_large',
      data: { bytes: 1_000 },
    });
  });

  it('cuts damage off that lies behind writer.chk, and is refused where it would stay', async () => {
    for (const [target, isPossible] of [
      [500, true],
      [1_600, false],
    ] as const) {
      const before = new FaultyStorage();
      const log = await openTestLog(before);
      await appendGroup(log, [500]);
      await log.flushCheckpoints();
      await appendGroup(log, [1_000]);
      await appendGroup(log, [100]);
      const storage = before.restart('drop');
      // The newest group is sound, and the record before it is not.
      storage.corrupt(NAMES[0]!, 128 + 500, 0x11);
      await setCheckpoint(storage, 'truncate.chk', target);
      if (isPossible) expect((await openTestLog(storage)).end).toBe(target);
      else await expect(openTestLog(storage)).rejects.toMatchObject({ code: 'log_corrupt' });
    }
  });

  it('beyond the end of the log changes nothing', async () => {
    const storage = await fourChunks();
    await setCheckpoint(storage, 'truncate.chk', END + 5_000);
    const log = await openTestLog(storage);
    expect(log.end).toBe(END);
    expect(await checkpoint(storage, 'truncate.chk')).toBe(-1);
    await log.close();
  });

  it('in a directory without chunks is forgotten', async () => {
    const storage = new MemoryStorage();
    await setCheckpoint(storage, 'truncate.chk', 700);
    const log = await openTestLog(storage);
    expect(log.end).toBe(0);
    expect(await checkpoint(storage, 'truncate.chk')).toBe(-1);
    await log.close();
  });
});

describe('a truncation that is refused changes nothing', () => {
  async function expectRefusal(
    storage: Storage,
    code: string,
    data: Record<string, unknown>,
    truncationBytesMax = -1,
  ): Promise<void> {
    const before = await contents(storage);
    await expect(openTestLog(storage, { truncationBytesMax })).rejects.toMatchObject({ code, data });
    expect(await contents(storage)).toEqual(before);
  }

  it('beyond the limit', async () => {
    const storage = await fourChunks();
    await setCheckpoint(storage, 'truncate.chk', 3 * CHUNK + 1_000);
    await expectRefusal(storage, 'truncation_too_large', { limit: 2_499, bytes: 2_500 }, 2_499);
    const log = await openTestLog(storage, { truncationBytesMax: 2_500 });
    expect(log.end).toBe(3 * CHUNK + 1_000);
    await log.close();
  });

  it('beyond the limit once the whole of a scavenged chunk has to go', async () => {
    const storage = await fourChunks();
    await putFile(storage, 'chunk-000002.000001', scavenged(2, 2));
    await setCheckpoint(storage, 'truncate.chk', 2 * CHUNK + 3_000);
    await expectRefusal(storage, 'truncation_too_large', { bytes: CHUNK + DATA }, CHUNK);
  });

  it.each([
    [-2, 'negative'],
    [CHUNK + 1_001, 'not at a record'],
    [CHUNK + 999, 'in a record'],
    [CHUNK + DATA + 1, 'behind the data of its chunk'],
    [2 ** 60, 'no log position'],
  ])('%d, which is %s', async (value) => {
    const storage = await fourChunks();
    if (value === 2 ** 60) await setCheckpoint(storage, 'writer.chk', 2 ** 61);
    await setCheckpoint(storage, 'truncate.chk', value);
    await expectRefusal(storage, 'checkpoint_corrupt', {
      file: value === 2 ** 60 ? 'writer.chk' : 'truncate.chk',
      offset: 0,
    });
  });

  it('with a chunk missing before the place, or at it', async () => {
    for (const missing of [0, 1]) {
      const storage = await fourChunks();
      await storage.remove(NAMES[missing]!);
      await setCheckpoint(storage, 'truncate.chk', CHUNK + 1_000);
      await expectRefusal(storage, 'chunk_missing', { chunk: missing });
    }
  });

  it('with a chunk behind the end of the log', async () => {
    const storage = await fourChunks();
    await setCheckpoint(storage, 'writer.chk', 2 * CHUNK + DATA);
    await setCheckpoint(storage, 'truncate.chk', CHUNK + 1_000);
    await expectRefusal(storage, 'chunk_unexpected', { file: NAMES[3] });
  });

  it('without writer.chk', async () => {
    const storage = await fourChunks();
    await storage.remove('writer.chk');
    await setCheckpoint(storage, 'truncate.chk', CHUNK + 1_000);
    await expectRefusal(storage, 'checkpoint_corrupt', { file: 'truncate.chk' });
  });
});

describe('a crash during a truncation', () => {
  it.each([
    ['in the ongoing chunk', 3 * CHUNK + 1_000, 3 * CHUNK + 1_000],
    ['in a completed chunk', CHUNK + 3_000, CHUNK + 3_000],
    ['in a merged chunk', 2 * CHUNK + 3_000, CHUNK],
  ])('%s, at each operation of it, is made good by the next start', async (name, target, end) => {
    const source = await fourChunks();
    if (name === 'in a merged chunk') await putFile(source, 'chunk-000001.000001', scavenged(1, 2));
    await setCheckpoint(source, 'truncate.chk', target);
    let crashes = 0;
    for (let n = 1; ; n++) {
      const storage = new FaultyStorage({ seed: n, reads: 'async' });
      await copyTo(source, storage);
      storage.crashAt(storage.operations + n, (['before', 'middle', 'after'] as const)[n % 3]);
      const log = await openTestLog(storage).catch(() => null);
      if (log !== null && !storage.isCrashed) break;
      crashes++;
      for (const [mode, seed] of [
        ['drop', 1],
        ['keep', 1],
        ['partial', 1],
        ['partial', 2],
        ['partial', 3],
        ['clean', 1],
        ['clean', 2],
        ['clean', 3],
      ] as const) {
        const trial = storage.restart(mode, seed);
        const again = await openTestLog(trial);
        expect(again.end, `crash at operation ${n}, ${mode} ${seed}`).toBe(end);
        expect(await logText(again.table)).toBe(logUpTo(end));
        expect(await checkpoint(trial, 'truncate.chk')).toBe(-1);
        // Nothing of the truncation comes back, and what was written behind it stays.
        const more = await appendGroup(again, [600], 9);
        const last = trial.restart('drop');
        expect(
          await logText((await openTestLog(last)).table),
          `crash at operation ${n}, ${mode} ${seed}, and a power loss`,
        ).toBe(logUpTo(end) + textOf(more));
        expect(await checkpoint(last, 'truncate.chk')).toBe(-1);
      }
    }
    expect(crashes).toBeGreaterThan(6);
  });
});
