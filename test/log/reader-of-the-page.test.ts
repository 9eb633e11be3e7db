import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { EPOCH_OFFSET_MS, TOMBSTONE } from '../../core/log/format/records.ts';
import { ANY, type NewEvent, type StoredEvent } from '../../core/streams/api.ts';
import { codeOf } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { fixturePath, installFiles, installFolder, SETS, unpackHistory, unpackSet } from '../support/fixtures.ts';
import { readWholeAll } from '../support/oracle.ts';
import { Random } from '../support/random.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';
import type { TarFile } from '../support/tar.ts';
import { openTestStore } from '../support/test-store.ts';
import { type PageEvent, readEvents } from './reader-of-the-page.ts';

/** The page `core/log/FORMAT.md` suffices to read a log: a reader made from it alone reads what the store reads. */

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'skua-page-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** What either of them says of an event, in the numbers of the disk. */
function ofStore({
  position,
  preparePosition,
  stream,
  number,
  type,
  id,
  isJson,
  isRedacted,
  createdMs,
  createdTicks,
  data,
  metadata,
}: StoredEvent): unknown[] {
  const ticks = BigInt(createdMs + EPOCH_OFFSET_MS) * 10_000n + BigInt(createdTicks);
  return [
    position,
    preparePosition,
    stream,
    number === TOMBSTONE ? 2n ** 63n - 1n : BigInt(number),
    type,
    id,
    isJson,
    isRedacted,
    ticks,
    hex(data),
    hex(metadata),
  ];
}

function ofPage({
  commit,
  prepare,
  stream,
  number,
  type,
  id,
  isJson,
  isRedacted,
  ticks,
  data,
  metadata,
}: PageEvent): unknown[] {
  return [commit, prepare, stream, number, type, id, isJson, isRedacted, ticks, hex(data), hex(metadata)];
}

async function expectSame(files: readonly TarFile[], at: string): Promise<number> {
  installFolder(at, files, { withoutIndex: true });
  const byPage = readEvents(at).map(ofPage);
  const storage = new MemoryStorage();
  await installFiles(storage, files, { withoutIndex: true });
  const opened = await openTestStore({ storage, writeEpoch: false });
  const byStore = (await readWholeAll(opened.store, 'forward', 1000)).map(ofStore);
  await opened.close();
  expect(byPage.length).toBe(byStore.length);
  const different = byPage.findIndex((row, i) => row.some((value, k) => value !== byStore[i]![k]));
  expect([byPage[different], byStore[different]]).toEqual([undefined, undefined]);
  return byPage.length;
}

describe('the reader of the page', () => {
  it.each(SETS.filter((_, i) => i % bySize(2, 1) === 0))('reads %s as the store does', async (name) => {
    expect(await expectSame(unpackSet(name), folder)).toBeGreaterThan(0);
  });

  it.each(readdirSync(fixturePath('histories')).slice(0, bySize(1, 4)))(
    'reads the directories of history %s as the store does',
    async (archive) => {
      const directories = unpackHistory(join(fixturePath('histories'), archive));
      expect(directories.size).toBe(4);
      for (const [name, files] of directories) await expectSame(files, join(folder, name));
    },
  );
});

/** The files of a storage as they are, be it open or not. */
async function filesOf(storage: Storage): Promise<TarFile[]> {
  const files: TarFile[] = [];
  for (const path of await storage.list('')) {
    const file = await storage.open(path, 'read');
    files.push({ path, size: file.size, extents: [{ at: 0, bytes: Uint8Array.from(await file.read(0, file.size)) }] });
    await file.close();
  }
  return files;
}

const CHUNK = 65_536;
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

function events(count: number, seed: string, dataBytes = 40): NewEvent[] {
  return Array.from({ length: count }, (_, i) => ({
    id: createHash('md5')
      .update(`${seed} ${i}`)
      .digest('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
    type: `type-${i % 3}`,
    isJson: i % 2 === 0,
    data: utf8(i % 2 === 0 ? '{"a":"ä"}' : 'x'.repeat(dataBytes)),
    metadata: i % 5 === 0 ? utf8('{"m":1}') : new Uint8Array(0),
  }));
}

/** An event with so many bytes of data. */
const sized = (dataBytes: number): NewEvent[] =>
  events(1, `of ${dataBytes} bytes`).map((event) => ({
    ...event,
    isJson: false,
    data: new Uint8Array(dataBytes).fill(1),
    metadata: utf8(''),
  }));

describe('directories that the recorded ones have no like of', () => {
  it.each([
    ['its last group whole', 23],
    ['its last group torn: the other slot counts', 19],
  ])('of a process that was killed, with %s', async (_, count) => {
    const storage = new MemoryStorage();
    const opened = await openTestStore({ storage, chunkSizeBytes: CHUNK });
    await opened.store.append('before', ANY, events(3, 'before'));
    const before = (await filesOf(storage)).find(({ path }) => path === 'writer.chk')!;
    for (let i = 0; i < 5; i++) await opened.store.append('behind', ANY, events(4, `behind ${i}`));
    const killed = (await filesOf(storage)).map((file) => (file.path === 'writer.chk' ? before : file));
    const chunk = killed.find(({ path }) => path === 'chunk-000000.000000')!;
    if (count === 19) chunk.extents[0]!.bytes[128 + opened.store.end - 10]! ^= 1;
    await opened.close();
    expect(await expectSame(killed, folder)).toBe(count);
  });

  it('of a process that was killed after it had completed a chunk: the footer names the end', async () => {
    const storage = new MemoryStorage();
    const opened = await openTestStore({ storage, chunkSizeBytes: CHUNK });
    await opened.store.append('before', ANY, events(3, 'before'));
    const before = (await filesOf(storage)).find(({ path }) => path === 'writer.chk')!;
    for (let i = 0; i < 20; i++) await opened.store.append('behind', ANY, events(2, `behind ${i}`, 5_000));
    const killed = (await filesOf(storage))
      .map((file) => (file.path === 'writer.chk' ? before : file))
      .filter(({ path }) => path !== 'chunk-000001.000000');
    await opened.close();
    expect(await expectSame(killed, folder)).toBe(3 + 2 * 12);
  });

  it('of a process that was killed before it completed a chunk that is full to its end', async () => {
    const storage = new MemoryStorage();
    const opened = await openTestStore({ storage, chunkSizeBytes: CHUNK });
    const { store } = opened;
    await store.append('full', ANY, events(3, 'before'));
    const start = store.end;
    await store.append('full', ANY, sized(0));
    const overhead = store.end - start;
    await store.append('full', ANY, sized(CHUNK - store.end - overhead));
    expect(store.end).toBe(CHUNK);
    const killed = await filesOf(storage);
    await opened.close();
    expect(killed.map(({ path }) => path)).not.toContain('chunk-000001.000000');
    expect(await expectSame(killed, folder)).toBe(5);
  });

  it('with several streams in one write, deleted streams and what a scavenge empties', async () => {
    const storage = new MemoryStorage();
    const opened = await openTestStore({ storage, chunkSizeBytes: CHUNK });
    const { store, scavenger } = opened;
    await store.appendToStreams(
      ['one', 'two', 'three'].map((stream) => ({ stream, expectedVersion: ANY, events: events(3, stream, 5_000) })),
    );
    for (let i = 0; i < 30; i++) await store.append(`filled-${i % 4}`, ANY, events(5, `filled ${i}`, 4_000));
    await store.deleteStream('one', ANY, 'soft');
    await store.deleteStream('two', ANY, 'hard');
    await store.deleteStream('filled-0', ANY, 'soft');
    await scavenger.start({ threshold: -1 });
    await scavenger.idle();
    await store.append('behind', ANY, events(2, 'behind'));
    const files = await filesOf(storage);
    await opened.close();
    expect(files.filter(({ path }) => /^chunk-.*[1-9]$/.test(path)).length).toBeGreaterThan(0);
    expect(await expectSame(files, folder)).toBeGreaterThan(100);
  });

  it.each(seedsFrom(1, bySize(8, 40, 200)))(
    'of a disk that lost its power, seed %i: the end is where recovery finds it',
    async (seed) => {
      const random = new Random(seed);
      const storage = new FaultyStorage({ seed });
      const opened = await openTestStore({ storage, chunkSizeBytes: CHUNK, zeroAheadBytes: 8_192 });
      for (let i = 0; i < 4; i++)
        await opened.store.append('first', ANY, events(3, `first ${i}`, random.int(100, 6_000)));
      storage.crashAt(storage.operations + random.int(1, 120), random.pick(['before', 'middle', 'after']));
      let ending: unknown = null;
      for (let i = 0; ending === null && i < 200; i++) {
        ending = await opened.store
          .append(`stream-${i % 3}`, ANY, events(random.int(1, 6), `${seed} ${i}`, random.int(10, 6_000)))
          .then(() => null, codeOf);
      }
      expect(['storage_crashed', 'writer_stopped']).toContain(ending);
      const restarted = storage.restart(random.pick(['drop', 'keep', 'partial']), seed);
      expect(await expectSame(await filesOf(restarted), folder)).toBeGreaterThanOrEqual(12);
    },
  );

  it('in old forms: records of version 0, map entries of 8 bytes, a file of version 2', async () => {
    expect(await expectSame(oldDirectory(), folder)).toBe(4);
    expect(readEvents(folder).map(({ stream, number }) => `${stream} ${number}`)).toEqual([
      's 0',
      't 7',
      't 8',
      `s ${2n ** 63n - 1n}`,
    ]);
  });
});

/** Little-endian numbers of 2, 4 or 8 bytes. */
function bytesOf(...parts: readonly (readonly [bytes: number, value: number] | Uint8Array)[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (part instanceof Uint8Array) return part;
      const out = Buffer.alloc(part[0]);
      if (part[0] === 8) out.writeBigInt64LE(BigInt(part[1]));
      else out.writeIntLE(part[1], 0, part[0]);
      return out;
    }),
  );
}

const framed = (payload: Buffer): Buffer => bytesOf([4, payload.length], payload, [4, payload.length]);

function oldPrepare(
  position: number,
  flags: number,
  transaction: number,
  offset: number,
  expected: number,
  stream: string,
): Buffer {
  const ids = Buffer.alloc(32, 1 + (position % 250));
  const text = (value: string): Buffer => bytesOf([1, value.length], utf8(value));
  return framed(
    bytesOf(
      [1, 0],
      [1, 0],
      [8, position],
      [2, flags],
      [8, transaction],
      [4, offset],
      [4, expected],
      text(stream),
      ids,
      [8, 630_000_000_000_000_000 + position],
      text('T'),
      [4, 2],
      utf8('{}'),
      [4, 0],
    ),
  );
}

/** A scavenged chunk of an old version, completed, and the log's end behind it. */
function oldDirectory(): TarFile[] {
  const records = [
    oldPrepare(100, 0x0127, 100, 0, -1, 's'),
    oldPrepare(2_000, 0x0002, 2_000, -1, 6, 't'),
    oldPrepare(2_500, 0x0101, 2_000, 0, -2, 't'),
    oldPrepare(3_000, 0x0101, 2_000, 1, -2, 't'),
    oldPrepare(3_500, 0x0004, 2_000, -1, -2, 't'),
    framed(
      bytesOf(
        [1, 1],
        [1, 0],
        [8, 4_000],
        [8, 2_000],
        [4, 7],
        [8, 4_000],
        Buffer.alloc(16, 3),
        [8, 630_000_000_000_000_000],
      ),
    ),
    oldPrepare(5_000, 0x002e, 5_000, 0, 2_147_483_646, 's'),
  ];
  const positions = [100, 2_000, 2_500, 3_000, 3_500, 4_000, 5_000];
  const data = Buffer.concat(records);
  const map = Buffer.concat(
    positions.map((position, i) => bytesOf([4, Buffer.concat(records.slice(0, i)).length], [4, position])),
  );
  const header = Buffer.concat([
    bytesOf([1, 2], [1, 2], [4, CHUNK], [4, 0], [4, 0], [4, 1], Buffer.alloc(16, 9)),
    Buffer.alloc(94),
  ]);
  const footer = Buffer.concat([
    bytesOf([1, 1], [4, data.length], [4, 5_000 + records[6]!.length], [4, map.length]),
    Buffer.alloc(99),
  ]);
  const covered = Buffer.concat([header, data, map, footer]);
  const chunk = Buffer.concat([covered, createHash('md5').update(covered).digest()]);
  const files: readonly (readonly [string, Buffer])[] = [
    ['chunk-000000.000001', chunk],
    ['writer.chk', bytesOf([8, CHUNK])],
    ['chaser.chk', bytesOf([8, CHUNK])],
  ];
  return files.map(([path, bytes]) => ({
    path,
    size: bytes.length,
    extents: [{ at: 0, bytes: Uint8Array.from(bytes) }],
  }));
}
