import { createHash } from 'node:crypto';
import type { Storage } from '../../core/ports/storage.ts';

/**
 * An independent reading of a data directory after a clean stop. It shares no code with what it judges.
 */
export async function findFormatErrors(storage: Storage): Promise<string[]> {
  const wrong: string[] = [];
  const names = await storage.list('');
  const checkpoint = async (name: string): Promise<number> => {
    const bytes = await contentOf(storage, name);
    if (bytes.length !== 8) wrong.push(`${name} has ${bytes.length} bytes`);
    return Number(view(bytes).getBigInt64(0, true));
  };
  const writer = await checkpoint('writer.chk');
  const chaser = await checkpoint('chaser.chk');
  const epoch = await checkpoint('epoch.chk');
  const proposal = await checkpoint('proposal.chk');
  if (chaser !== writer) wrong.push(`chaser.chk is ${chaser}, writer.chk ${writer}`);
  if (epoch >= writer) wrong.push(`epoch.chk ${epoch} is not below writer.chk ${writer}`);
  if ((await checkpoint('truncate.chk')) !== -1) wrong.push('truncate.chk is not -1');
  if (names.some((name) => name.endsWith('.tmp')))
    wrong.push(`temporary files: ${names.filter((name) => name.endsWith('.tmp')).join()}`);
  const chunks = names.filter((name) => name.startsWith('chunk-'));
  const epochNumber = await checkChunks(storage, chunks, writer, epoch, wrong);
  if (epochNumber !== null && proposal < epochNumber)
    wrong.push(`proposal.chk ${proposal} is below the last epoch ${epochNumber}`);
  await checkIndex(storage, chaser, wrong);
  return wrong;
}

async function contentOf(storage: Storage, path: string): Promise<Uint8Array> {
  const file = await storage.open(path, 'read');
  const bytes = new Uint8Array(await file.read(0, file.size));
  await file.close();
  return bytes;
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Number of the epoch that epoch.chk names, or null. */
async function checkChunks(
  storage: Storage,
  names: readonly string[],
  writer: number,
  epoch: number,
  wrong: string[],
): Promise<number | null> {
  let expected = 0;
  let epochNumber: number | null = null;
  for (const [i, name] of names.entries()) {
    if (!/^chunk-\d{6}\.\d{6}$/.test(name)) wrong.push(`${name} is no chunk file name`);
    const bytes = await contentOf(storage, name);
    const header = view(bytes);
    const [chunkSize, start, end] = [header.getInt32(2, true), header.getInt32(6, true), header.getInt32(10, true)];
    if (bytes[0] !== 2 || bytes[1] !== 3) wrong.push(`${name} has type ${bytes[0]} and version ${bytes[1]}`);
    if (start !== Number(name.slice(6, 12)) || start !== expected)
      wrong.push(`${name} starts at ${start}, expected ${expected}`);
    if (bytes.subarray(34, 128).some((byte) => byte !== 0))
      wrong.push(`${name} has a header that is not padded with zeros`);
    expected = end + 1;
    const isLast = i === names.length - 1;
    if (isLast !== (start === Math.floor(writer / chunkSize)))
      wrong.push(`${name} and writer.chk ${writer} do not agree about the last chunk`);
    const dataBytes = isLast
      ? checkOngoing(name, bytes, writer - start * chunkSize, chunkSize, wrong)
      : checkCompleted(name, bytes, wrong);
    const records = checkRecords(name, bytes, dataBytes, start * chunkSize, header.getInt32(14, true) > 0, wrong);
    const found = records.get(epoch);
    if (epoch >= start * chunkSize && epoch < (end + 1) * chunkSize && found === undefined)
      wrong.push(`epoch.chk ${epoch} names no epoch record`);
    if (found !== undefined) epochNumber = found;
  }
  return epochNumber;
}

function checkOngoing(name: string, bytes: Uint8Array, dataBytes: number, chunkSize: number, wrong: string[]): number {
  const length = Math.ceil((chunkSize + 256) / 4096) * 4096;
  if (bytes.length !== length)
    wrong.push(`${name} is being written and has ${bytes.length} bytes instead of ${length}`);
  return dataBytes;
}

function checkCompleted(name: string, bytes: Uint8Array, wrong: string[]): number {
  const footer = view(bytes.subarray(bytes.length - 128));
  const [physical, logical, map] = [
    footer.getInt32(1, true),
    Number(footer.getBigInt64(5, true)),
    footer.getInt32(13, true),
  ];
  if (footer.getUint8(0) !== 3) wrong.push(`${name} has footer flags ${footer.getUint8(0)}`);
  if (bytes.length !== Math.ceil((256 + physical + map) / 4096) * 4096)
    wrong.push(`${name} has ${bytes.length} bytes for ${physical} of data`);
  if (view(bytes).getInt32(14, true) === 0 && (logical !== physical || map !== 0))
    wrong.push(`${name} is not scavenged but has a map`);
  const md5 = createHash('md5')
    .update(bytes.subarray(0, bytes.length - 16))
    .digest();
  if (!md5.equals(bytes.subarray(bytes.length - 16))) wrong.push(`${name} has a wrong MD5`);
  return physical;
}

/** Epoch numbers by position. */
function checkRecords(
  name: string,
  bytes: Uint8Array,
  dataBytes: number,
  base: number,
  isScavenged: boolean,
  wrong: string[],
): Map<number, number> {
  const epochs = new Map<number, number>();
  const data = view(bytes);
  let at = 0;
  while (at < dataBytes) {
    const length = data.getInt32(128 + at, true);
    if (length <= 0 || at + length + 8 > dataBytes || data.getInt32(128 + at + 4 + length, true) !== length) {
      wrong.push(`${name} has no record at offset ${128 + at}`);
      return epochs;
    }
    const position = Number(data.getBigInt64(128 + at + 6, true));
    if (!isScavenged && position !== base + at)
      wrong.push(`${name} has a record at offset ${128 + at} that names position ${position}`);
    if (bytes[128 + at + 4] === 2) {
      const json = bytes.subarray(128 + at + 4 + 32, 128 + at + 4 + length);
      epochs.set(
        position,
        (JSON.parse(Buffer.from(json).toString('utf8')) as { epochNumber?: number }).epochNumber ?? 0,
      );
    }
    at += length + 8;
  }
  return epochs;
}

async function checkIndex(storage: Storage, chaser: number, wrong: string[]): Promise<void> {
  const names = await storage.list('index');
  if (!names.includes('indexmap')) {
    if (names.some((name) => /^[0-9a-f-]{36}$/.test(name))) wrong.push('index tables without an indexmap');
    return;
  }
  const map = Buffer.from(await contentOf(storage, 'index/indexmap'));
  const lines = map.toString('utf8').split('\n');
  if (lines[0] !== createHash('md5').update(map.subarray(32)).digest('hex').toUpperCase())
    wrong.push('indexmap has a wrong MD5');
  if (lines[1] !== '2') wrong.push(`indexmap has version ${lines[1]}`);
  if (Number(lines[2]!.split('/')[1]) >= chaser)
    wrong.push(`indexmap commit ${lines[2]} is not below chaser.chk ${chaser}`);
  const tables = lines.slice(4).filter((line) => line !== '');
  let before = [-1, 0];
  for (const line of tables) {
    const [level, place, name] = line.split(',') as [string, string, string];
    if (Number(level) < before[0]! || Number(place) !== (Number(level) === before[0] ? before[1]! + 1 : 0))
      wrong.push(`indexmap lists ${line} out of order`);
    before = [Number(level), Number(place)];
    if (names.includes(name)) checkTable(name, await contentOf(storage, `index/${name}`), wrong);
    else wrong.push(`indexmap names ${name}, which is missing`);
  }
  const listed = new Set(tables.map((line) => line.split(',')[2]));
  for (const name of names) {
    if (name !== 'indexmap' && name !== 'proven-tables' && !listed.has(name.replace(/\.bloomfilter$/, '')))
      wrong.push(`index/${name} belongs to nothing`);
  }
}

function checkTable(name: string, bytes: Uint8Array, wrong: string[]): void {
  const table = view(bytes);
  if (bytes[0] !== 1 || bytes[1] !== 4) wrong.push(`${name} is a table of type ${bytes[0]}, version ${bytes[1]}`);
  const md5 = createHash('md5')
    .update(bytes.subarray(0, bytes.length - 16))
    .digest();
  if (!md5.equals(bytes.subarray(bytes.length - 16))) wrong.push(`${name} has a wrong MD5`);
  const midpoints = table.getUint32(bytes.length - 144 + 2, true);
  const entries = (bytes.length - 272 - midpoints * 24) / 24;
  if (!Number.isInteger(entries)) wrong.push(`${name} has ${entries} entries`);
  const key = (i: number): readonly [bigint, bigint, bigint] => {
    const at = 128 + i * 24;
    return [table.getBigUint64(at + 8, true), table.getBigInt64(at, true), table.getBigInt64(at + 16, true)];
  };
  for (let i = 1; i < entries; i++) {
    const [a, b] = [key(i - 1), key(i)];
    const first = a.findIndex((part, k) => part !== b[k]);
    if (first < 0 || a[first]! < b[first]!) {
      wrong.push(`${name} is not sorted at entry ${i}`);
      return;
    }
  }
}
