import { isOwnName } from '../../core/ports/own-names.ts';
import { BlockCache } from '../../core/cache/cache.ts';
import { i64, putI64 } from '../../core/base/bytes.ts';
import { HIT, isMiss, type Outcome } from '../../core/base/step.ts';
import type { LogReader } from '../../core/log/log-reader.ts';
import { openLog } from '../../core/log/log.ts';
import type { OpenLogOptions } from '../../core/log/log.ts';
import { encodePrepare, prepareFrameBytes, RecordFrame } from '../../core/log/format/records.ts';
import type { TransactionLog } from '../../core/log/transaction-log.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';

/** The smallest chunk size, and the length of an ongoing chunk file with it. */
export const CHUNK = 65_536;
export const ONGOING_FILE = 69_632;
export const RECORD_MIN = prepareFrameBytes(1, 1, 0, 0);

const NOTHING = new Uint8Array(0);
const STREAM = new TextEncoder().encode('s');

export function logOptions(storage: Storage, more: Partial<OpenLogOptions> = {}): OpenLogOptions {
  return {
    storage,
    cache: new BlockCache(0),
    digests: nodeDigests,
    ids: new SeededIds(7),
    clock: new ManualClock(),
    log: silentLog,
    chunkSizeBytes: CHUNK,
    ...more,
  };
}

/** A log without an index that would have to know of a group first: what is durable is seen at once. */
export async function openTestLog(storage: Storage, more: Partial<OpenLogOptions> = {}): Promise<TransactionLog> {
  const log = await openLog(logOptions(storage, more));
  const append = log.append.bind(log);
  log.append = async (group) => {
    await append(group);
    log.publish();
  };
  return log;
}

/** A framed record of exactly `bytes` bytes, with content that depends on its position and the seed. */
export function recordAt(position: number, bytes: number, seed = 1): Uint8Array {
  if (bytes < RECORD_MIN) throw new RangeError(`A record has at least ${RECORD_MIN} bytes.`);
  const out = new Uint8Array(bytes);
  const random = new Random(seed * 7919 + position);
  const id = random.bytes(16);
  encodePrepare(out, 0, {
    position,
    flags: 0x27,
    transactionPosition: position,
    transactionOffset: 0,
    expectedVersion: -1,
    stream: STREAM,
    eventId: id,
    correlationId: id,
    timestampMs: 1_704_164_645_678,
    timestampTicks: 0,
    eventType: STREAM,
    data: random.bytes(bytes - RECORD_MIN),
    metadata: NOTHING,
  });
  return out;
}

/** Records of the given sizes, one behind the other from `position` on. */
export function groupAt(position: number, sizes: readonly number[], seed = 1): Uint8Array {
  const out = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0));
  let at = 0;
  for (const size of sizes) {
    out.set(recordAt(position + at, size, seed), at);
    at += size;
  }
  return out;
}

/** Appends a group at the end of the log and returns it. */
export async function appendGroup(log: TransactionLog, sizes: readonly number[], seed = 1): Promise<Uint8Array> {
  const group = groupAt(log.end, sizes, seed);
  await log.append(group.slice());
  return group;
}

export interface SeenRecord {
  readonly position: number;
  readonly next: number;
  readonly bytes: Uint8Array;
}

/** Takes a step until it does not miss. */
export async function step(take: () => Outcome): Promise<Outcome> {
  for (let tries = 0; tries < 1_000; tries++) {
    const outcome = take();
    if (!isMiss(outcome)) return outcome;
    await outcome;
  }
  throw new Error('The step misses for ever.');
}

export function seen(frame: RecordFrame): SeenRecord {
  return { position: frame.position, next: frame.next, bytes: frame.bytes.slice(frame.at, frame.at + frame.length) };
}

export async function readForward(reader: LogReader, from = 0): Promise<SeenRecord[]> {
  const out: SeenRecord[] = [];
  const frame = new RecordFrame();
  let at = from;
  while ((await step(() => reader.readForward(at, frame))) === HIT) {
    out.push(seen(frame));
    at = frame.next;
  }
  return out;
}

export async function readBackward(reader: LogReader, from = reader.end): Promise<SeenRecord[]> {
  const out: SeenRecord[] = [];
  const frame = new RecordFrame();
  let at = from;
  while ((await step(() => reader.readBackward(at, frame))) === HIT) {
    out.push(seen(frame));
    at = frame.position;
  }
  return out;
}

/** The framed records between two positions, as they would lie in an unscavenged file. */
export function framed(records: readonly SeenRecord[]): Uint8Array {
  const out = new Uint8Array(records.reduce((sum, { bytes }) => sum + bytes.length + 8, 0));
  const view = new DataView(out.buffer);
  let at = 0;
  for (const { bytes } of records) {
    view.setInt32(at, bytes.length, true);
    out.set(bytes, at + 4);
    view.setInt32(at + 4 + bytes.length, bytes.length, true);
    at += bytes.length + 8;
  }
  return out;
}

export async function contentOf(storage: Storage, path: string): Promise<Uint8Array> {
  const file = await storage.open(path, 'read');
  try {
    return Uint8Array.from(await file.read(0, file.size));
  } finally {
    await file.close();
  }
}

/** Replaces a file, durably. */
export async function putFile(storage: Storage, path: string, bytes: Uint8Array): Promise<void> {
  if (isOwnName(path)) await storage.remove(path);
  const file = await storage.create(path);
  await file.writeAt(0, bytes);
  await file.sync();
  await file.close();
}

/** Changes bytes of a file in place, durably. */
export async function patch(storage: Storage, path: string, offset: number, bytes: Uint8Array): Promise<void> {
  const file = await storage.open(path, 'write');
  await file.writeAt(offset, bytes);
  await file.sync();
  await file.close();
}

export async function flip(storage: Storage, path: string, offset: number, xor = 0x10): Promise<void> {
  const file = await storage.open(path, 'write');
  const [byte] = await file.read(offset, 1);
  await file.writeAt(offset, Uint8Array.of(byte! ^ xor));
  await file.sync();
  await file.close();
}

export async function resize(storage: Storage, path: string, bytes: number): Promise<void> {
  const file = await storage.open(path, 'write');
  await file.truncate(bytes);
  await file.sync();
  await file.close();
}

export async function checkpoint(storage: Storage, name: string): Promise<number> {
  return i64(await contentOf(storage, name), 0);
}

export async function setCheckpoint(storage: Storage, name: string, value: number): Promise<void> {
  const bytes = new Uint8Array(8);
  putI64(bytes, 0, value);
  await putFile(storage, name, bytes);
}

/** Every file of the folders with its content. */
export async function contents(
  storage: Storage,
  folders: readonly string[] = ['', 'index', 'index/stream-existence'],
): Promise<Map<string, string>> {
  const out = new Map<string, string>();
  for (const folder of folders) {
    for (const name of await storage.list(folder)) {
      const path = folder === '' ? name : `${folder}/${name}`;
      out.set(path, Buffer.from(await contentOf(storage, path)).toString('latin1'));
    }
  }
  return out;
}

export async function copyTo(
  from: Storage,
  to: Storage,
  folders: readonly string[] = ['', 'index', 'index/stream-existence'],
): Promise<void> {
  for (const folder of folders) {
    for (const name of await from.list(folder)) {
      const path = folder === '' ? name : `${folder}/${name}`;
      await putFile(to, path, await contentOf(from, path));
    }
  }
}

/** Bytes as text, which compares quickly. */
export function textOf(...parts: readonly Uint8Array[]): string {
  return Buffer.concat(parts).toString('latin1');
}

/** The whole log as the bytes of its records. */
export async function logText(reader: LogReader): Promise<string> {
  return textOf(framed(await readForward(reader)));
}
