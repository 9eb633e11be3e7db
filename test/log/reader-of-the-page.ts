import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/**
 * A reader of data directories written from `core/log/FORMAT.md` alone: it imports nothing of the product, so what it
 * can't read the page does not say. `node test/log/reader-of-the-page.ts FOLDER` prints the events.
 */

export interface PageEvent {
  readonly commit: number;
  readonly prepare: number;
  readonly stream: string;
  readonly number: bigint;
  readonly type: string;
  readonly id: string;
  readonly isJson: boolean;
  readonly isRedacted: boolean;
  readonly ticks: bigint;
  readonly data: Buffer;
  readonly metadata: Buffer;
}

interface ChunkFile {
  readonly path: string;
  readonly chunkSize: number;
  readonly first: number;
  readonly last: number;
  readonly isScavenged: boolean;
}
interface Prepare {
  readonly event: PageEvent;
  readonly flags: number;
  readonly transactionPosition: number;
  readonly transactionOffset: number;
}

const HIGHEST = 2n ** 63n - 1n;
const [EVENT, LAST, DELETE, COMMITTED, JSON_DATA, REDACTED] = [0x0001, 0x0004, 0x0008, 0x0020, 0x0100, 0x0200] as const;

/** The bytes of a file from an offset on, or before its end where that is negative. */
function bytesOf(path: string, from: number, length: number): Buffer {
  const fd = openSync(path, 'r');
  const { size } = fstatSync(fd);
  const start = from < 0 ? Math.max(0, size + from) : from;
  const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - start)));
  readSync(fd, bytes, 0, bytes.length, start);
  closeSync(fd);
  return bytes;
}

function chunkFile(path: string): ChunkFile {
  const h = bytesOf(path, 0, 128);
  if (h[0] !== 2 || (h[1] !== 2 && h[1] !== 3) || h[35] !== 0)
    throw new Error(`${path} is no plain chunk of version 2 or 3`);
  return {
    path,
    chunkSize: h.readInt32LE(2),
    first: h.readInt32LE(6),
    last: h.readInt32LE(10),
    isScavenged: h.readInt32LE(14) > 0,
  };
}

function filesThatCount(folder: string): ChunkFile[] {
  const names = readdirSync(folder)
    .filter((name) => /^chunk-\d{6}\.\d{6}$/.test(name))
    .sort();
  const files: ChunkFile[] = [];
  let expected = 0;
  for (const [i, name] of names.entries()) {
    const number = Number(name.slice(6, 12));
    if (number < expected || names[i + 1]?.startsWith(name.slice(0, 12)) === true) continue;
    if (number > expected) throw new Error(`chunk ${expected} is missing`);
    const file = chunkFile(join(folder, name));
    files.push(file);
    expected = file.last + 1;
  }
  return files;
}

/**
 * Bytes of data and of the map of a completed file, as its footer has them; null where its last bytes are no footer.
 */
function footerOf(path: string): { data: number; map: number } | null {
  const f = bytesOf(path, -128, 128);
  const isWide = (f[0]! & 2) !== 0;
  const [data, end, map] = [
    f.readInt32LE(1),
    isWide ? Number(f.readBigInt64LE(5)) : f.readInt32LE(5),
    f.readInt32LE(isWide ? 13 : 9),
  ];
  const isFooter =
    (f[0]! & 1) !== 0 &&
    data >= 0 &&
    map >= 0 &&
    map % (isWide ? 12 : 8) === 0 &&
    end >= data &&
    256 + data + map <= statSync(path).size;
  return isFooter ? { data, map } : null;
}

/** `isLast`: the log ends behind it, and it may not have got its footer. */
function completedBytes({ path, chunkSize, isScavenged }: ChunkFile, isLast: boolean): number {
  if (isLast && !isScavenged && footerOf(path) === null) return chunkSize;
  const bytes = readFileSync(path);
  if (!createHash('md5').update(bytes.subarray(0, -16)).digest().equals(bytes.subarray(-16)))
    throw new Error(`${path} does not fit its MD5`);
  return footerOf(path)?.data ?? -1;
}

/**
 * Where the data of the ongoing chunk ends: at `writer`, local, or behind it where a commit slot or a footer says so.
 */
function ongoingBytes({ path, chunkSize, first }: ChunkFile, writer: number): number {
  const start = first * chunkSize;
  const slots = [512, 1024]
    .map((at) => bytesOf(path, chunkSize + at, 40))
    .filter(
      (s) =>
        s.length === 40 && s.toString('latin1', 0, 8) === 'SkuaSlot' && crc32(s.subarray(0, 36)) === s.readUInt32LE(36),
    );
  for (const slot of slots.sort((a, b) => Number(b.readBigInt64LE(8) - a.readBigInt64LE(8)))) {
    const [from, to] = [Number(slot.readBigInt64LE(16)) - start, Number(slot.readBigInt64LE(24)) - start];
    if (from < 0 || to <= from || to > chunkSize) continue;
    if (to <= writer) break;
    if (crc32(bytesOf(path, 128 + from, to - from)) === slot.readUInt32LE(32)) return to;
  }
  const footer = footerOf(path);
  return footer === null || footer.map > 0 ? writer : Math.max(writer, footer.data);
}

/** The payloads of the log's records, in its order. */
export function readRecords(folder: string): Buffer[] {
  const writer = Number(readFileSync(join(folder, 'writer.chk')).readBigInt64LE(0));
  const records: Buffer[] = [];
  const files = filesThatCount(folder);
  for (const file of files) {
    const { path, chunkSize, first, last, isScavenged } = file;
    const [start, end] = [first * chunkSize, (last + 1) * chunkSize];
    if (start > writer) break;
    const isOngoing = !isScavenged && writer < end;
    const data = bytesOf(
      path,
      128,
      isOngoing ? ongoingBytes(file, writer - start) : completedBytes(file, writer === end && file === files.at(-1)),
    );
    for (let at = 0, length = 0; at < data.length; at += length + 8) {
      length = data.readInt32LE(at);
      const payload = data.subarray(at + 4, at + 4 + length);
      const local = Number(payload.readBigInt64LE(2)) - start;
      const isInPlace = isScavenged ? local >= at && local < end - start : local === at;
      if (data.readInt32LE(at + 4 + length) !== length || !isInPlace)
        throw new Error(`${path} holds no record at ${128 + at}`);
      records.push(payload);
    }
  }
  return records;
}

const guid = (b: Buffer): string =>
  [
    b.subarray(0, 4).reverse(),
    b.subarray(4, 6).reverse(),
    b.subarray(6, 8).reverse(),
    b.subarray(8, 10),
    b.subarray(10),
  ]
    .map((group) => group.toString('hex'))
    .join('-');

function prepareOf(p: Buffer): Prepare {
  let at = 24;
  const take = (length: number): Buffer => p.subarray(at, (at += length));
  const text = (): string => {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = take(1)[0]!;
      length |= (byte & 127) << shift;
      if (byte < 128) return take(length).toString('utf8');
    }
  };
  const [flags, prepare] = [p.readUInt16LE(10), Number(p.readBigInt64LE(2))];
  const narrow = p[1] === 0 ? BigInt(take(4).readInt32LE()) : null;
  const expectedVersion =
    narrow === null ? take(8).readBigInt64LE() : narrow === 2_147_483_646n ? HIGHEST - 1n : narrow;
  const [stream, id, , ticks, type] = [text(), guid(Buffer.from(take(16))), take(16), take(8).readBigInt64LE(), text()];
  const [data, metadata] = [take(take(4).readInt32LE()), take(take(4).readInt32LE())];
  if (at !== p.length) throw new Error(`the prepare at ${prepare} does not fill its payload`);
  const event = {
    commit: prepare,
    prepare,
    stream,
    number: expectedVersion + 1n,
    type,
    id,
    ticks,
    data,
    metadata,
    isJson: (flags & JSON_DATA) !== 0,
    isRedacted: (flags & REDACTED) !== 0,
  };
  return { event, flags, transactionPosition: Number(p.readBigInt64LE(12)), transactionOffset: p.readInt32LE(20) };
}

/** The events of the log, in the order and form in which the store shows all of them. */
export function readEvents(folder: string): PageEvent[] {
  const events: PageEvent[] = [];
  const push = (event: PageEvent, flags: number): void => {
    const isWhole = (flags & (EVENT | DELETE | COMMITTED)) === (EVENT | COMMITTED);
    const isEmptied =
      event.isRedacted &&
      isWhole &&
      event.metadata.length === 0 &&
      !event.stream.startsWith('$$') &&
      event.data.every((byte) => byte === 0);
    if ((flags & (EVENT | DELETE)) === 0 || event.stream === '$epoch-information' || isEmptied) return;
    events.push(event.isRedacted ? { ...event, data: Buffer.alloc(0) } : event);
  };
  const transactions = new Map<number, Prepare[]>();
  for (const record of readRecords(folder)) {
    if (record[0] === 0) {
      const prepare = prepareOf(record);
      const { event, flags, transactionPosition } = prepare;
      if ((flags & COMMITTED) !== 0) push(event, flags);
      else transactions.set(transactionPosition, [...(transactions.get(transactionPosition) ?? []), prepare]);
    } else if (record[0] === 1) {
      const commit = Number(record.readBigInt64LE(2));
      const first = record[1] === 0 ? BigInt(record.readInt32LE(18)) : record.readBigInt64LE(18);
      for (const { event, flags, transactionOffset } of transactions.get(Number(record.readBigInt64LE(10))) ?? []) {
        push({ ...event, commit, number: (flags & DELETE) !== 0 ? HIGHEST : first + BigInt(transactionOffset) }, flags);
        if ((flags & LAST) !== 0) break;
      }
    }
  }
  return events;
}

if (import.meta.main)
  for (const { data, metadata, ...event } of readEvents(process.argv[2] ?? '.'))
    console.log({ ...event, data: data.toString(), metadata: metadata.toString() });
