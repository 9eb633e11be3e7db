import { BlockCache } from '../../core/cache/cache.ts';
import { loadIndexMap } from '../../core/index/format/index-map.ts';
import { Chunk, scanChunk, openCompleted } from '../../core/log/chunk/chunk.ts';
import { chunkFileName, HEADER_BYTES, parseChunkFileNames, takeInventory } from '../../core/log/format/chunk-format.ts';
import { hasFooter, readHeader } from '../../core/log/format/chunk-files.ts';
import {
  decodePrepare,
  FRAME_BYTES,
  PREPARE,
  type PrepareRecord,
  type RecordFrame,
} from '../../core/log/format/records.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { guidFromUuidBytes } from '../../core/base/guid.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { checkpoint, putFile, setCheckpoint } from '../log/kit.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { completedChunk } from './notation-log.ts';
import { readIndexEntries } from './notation-world.ts';

/**
 * Recorded directories before and after a scavenge of the reference, and how the one is brought to where the reference
 * began.
 */

export interface RawRecord {
  readonly position: number;
  /** Framed. */
  readonly bytes: Uint8Array;
}

export interface RecordedPoint {
  readonly position: number;
  readonly effectiveNowMs: number;
}

/** Visits all records of a stopped directory, in the order of the log. */
export async function scanDirectory(storage: Storage, visit: (frame: RecordFrame) => void): Promise<void> {
  const writer = await checkpoint(storage, 'writer.chk');
  const inventory = await takeInventory(
    parseChunkFileNames(await storage.list('')),
    -1,
    async (file) => (await readHeader(storage, file.name)).endNumber,
  );
  for (const { file } of inventory.latest) {
    const chunk = (await hasFooter(storage, file.name))
      ? await openCompleted(storage, new BlockCache(0), file.name)
      : await openOngoing(storage, file.name, writer);
    await scanChunk(chunk, 0, visit);
    await chunk.file.file.close();
  }
}

async function openOngoing(storage: Storage, name: string, writer: number): Promise<Chunk> {
  const header = await readHeader(storage, name);
  const file = await storage.open(name, 'read');
  return new Chunk(
    name,
    new BlockCache(0).attach(file),
    header,
    null,
    Math.max(0, writer - header.startNumber * header.chunkSize),
  );
}

/** Framed records in [from, to). */
export async function recordsOf(storage: Storage, from: number, to: number): Promise<RawRecord[]> {
  const records: RawRecord[] = [];
  await scanDirectory(storage, (frame) => {
    if (frame.position >= from && frame.position < to)
      records.push({
        position: frame.position,
        bytes: frame.bytes.slice(frame.at - 4, frame.at + frame.length + FRAME_BYTES - 4),
      });
  });
  return records;
}

/** The first scavenge point at or behind `from`. */
export async function pointAfter(storage: Storage, from: number): Promise<RecordedPoint> {
  let point: PrepareRecord | null = null;
  await scanDirectory(storage, (frame) => {
    if (point !== null || frame.position < from || frame.type !== PREPARE) return;
    const prepare = decodePrepare(frame);
    if (prepare.stream === '$scavengePoints' && prepare.eventType === '$scavengePoint') point = prepare;
  });
  if (point === null) throw new Error(`There is no scavenge point behind ${from}.`);
  const { position, timestampMs } = point as PrepareRecord;
  return { position, effectiveNowMs: timestampMs };
}

/**
 * Appends to the directory in `before` what the reference wrote between its start and its scavenge, which `after` still
 * has, up to and including the scavenge point, and completes the chunk.
 */
export async function extendToPoint(before: Storage, after: Storage): Promise<RecordedPoint> {
  const writer = await checkpoint(before, 'writer.chk');
  const point = await pointAfter(after, writer);
  const records = await recordsOf(after, writer, point.position + 1);
  const { chunkSize } = await readHeader(before, parseChunkFileNames(await before.list(''))[0]!.name);
  const ids = new SeededIds(20);
  const last = Math.floor(point.position / chunkSize);
  for (let number = Math.floor(writer / chunkSize); number <= last; number++) {
    const base = number * chunkSize;
    const name = chunkFileName(number, 0);
    const isNew = (await before.size(name)) === null;
    const chunkId = isNew ? guidFromUuidBytes(ids.uuidBytes()) : (await readHeader(before, name)).chunkId;
    const old = isNew
      ? []
      : [{ position: base, bytes: await dataOf(before, name, writer - base) }].filter(({ bytes }) => bytes.length > 0);
    const all = [...old, ...records.filter(({ position }) => position >= base && position < base + chunkSize)];
    all.reduce((end, { position, bytes }) => {
      if (position !== end) throw new Error(`A record before ${position} is not in the recorded directory.`);
      return position + bytes.length;
    }, base);
    await putFile(before, name, completedChunk({ chunkSize, start: number, isScavenged: false, chunkId }, all));
  }
  await setCheckpoint(before, 'writer.chk', (last + 1) * chunkSize);
  await setCheckpoint(before, 'chaser.chk', (last + 1) * chunkSize);
  return point;
}

async function dataOf(storage: Storage, name: string, bytes: number): Promise<Uint8Array> {
  const file = await storage.open(name, 'read');
  try {
    return Uint8Array.from(await file.read(HEADER_BYTES, bytes));
  } finally {
    await file.close();
  }
}

/** Differences that are shown. */
const SHOWN_MAX = 5;

/** How the records below `to` differ, in words; empty when position and bytes of all are the same. */
export async function compareRecords(ours: Storage, theirs: Storage, to: number): Promise<string[]> {
  const expected = await recordsOf(theirs, 0, to);
  const found = new Map((await recordsOf(ours, 0, to)).map((record) => [record.position, record.bytes]));
  const count = found.size;
  const differences: string[] = [];
  const tell = (text: string): void => {
    if (differences.length < SHOWN_MAX) differences.push(text);
  };
  for (const { position, bytes } of expected) {
    const own = found.get(position);
    if (own === undefined) tell(`${position} is gone: ${describe(bytes)}`);
    else if (Buffer.compare(own, bytes) !== 0) tell(`${position} has other bytes: ${describe(bytes)}`);
    found.delete(position);
  }
  for (const [position, bytes] of found) tell(`${position} is still there: ${describe(bytes)}`);
  if (differences.length > 0) differences.unshift(`${count} records, recorded ${expected.length}`);
  return differences;
}

function describe(bytes: Uint8Array): string {
  return JSON.stringify(Buffer.from(bytes.subarray(28, 200)).toString('latin1'));
}

/** How far the index tables reach into the log; -1 when there are none. */
export async function tablesReach(storage: Storage): Promise<number> {
  return (await loadIndexMap(storage, nodeDigests))?.prepareCheckpoint ?? -1;
}

/**
 * How the entries at or below `to` differ. Up to where the tables of the directory reached before the scavenge, both
 * had the same entries on disk; what lay behind them the reference kept in memory, where no scavenge comes.
 */
export async function compareEntries(ours: Storage, theirs: Storage, to: number): Promise<string[]> {
  const keys = async (storage: Storage): Promise<Set<string>> =>
    new Set(
      (await readIndexEntries(storage))
        .filter(({ position }) => position <= to)
        .map(({ hi, lo, version, position }) => `${position} ${hi} ${lo} ${version}`),
    );
  const own = await keys(ours);
  const expected = await keys(theirs);
  const differences = [
    ...[...expected].filter((key) => !own.has(key)).map((key) => `gone: ${key}`),
    ...[...own].filter((key) => !expected.has(key)).map((key) => `still there: ${key}`),
  ];
  return differences.length === 0
    ? []
    : [`${own.size} entries, recorded ${expected.size}`, ...differences.slice(0, SHOWN_MAX)];
}
