import { i32, i64 } from '../bytes.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { untilHit } from '../cache/step.ts';
import { isSkuaError, SkuaError } from '../errors.ts';
import { guidToText } from '../guid.ts';
import { toHex } from '../hex.ts';
import type { Digests } from '../ports/digests.ts';
import { damageOf, type Description, DOCUMENT_BYTES_MAX, type FileFormat, lineParts, type LookedInto, note, type Part, Payload, type RecordPart, section, wholeOf } from '../ports/file-format.ts';
import type { StorageFile } from '../ports/storage.ts';
import { decodeText } from '../text.ts';
import { timestampText } from '../time.ts';
import { beginsAsBlockSums, decodeBlockSums } from './block-sums.ts';
import { type ChunkFooter, type ChunkHeader, decodeFooter, decodeHeader, FOOTER_BYTES, HEADER_BYTES } from './chunk-format.ts';
import { ChunkProof } from './chunk-proof.ts';
import { PROOFS_FORMAT } from './chunk-proofs.ts';
import { Chunk } from './chunk.ts';
import { checkOldLength, isSlotWhole, readSlots } from './open-chunks.ts';
import { decodeProofs } from './proofs-file.ts';
import { RecordCutter } from './record-cutter.ts';
import { COMMIT, decodeCommit, decodeEpoch, decodePrepare, FLAG_COMMITTED, FLAG_DATA, FLAG_JSON, FLAG_REDACTED, FLAG_STREAM_DELETE, FLAG_TRANSACTION_BEGIN, FLAG_TRANSACTION_END, FRAME_BYTES, isRecordLength, parsePrepare, PREPARE, PrepareFields, type RecordFrame, recordTimestampAt, SYSTEM, timestampMsAt, timestampTicksAt } from './records.ts';

/** The files of the log, for whoever looks into them. */

/** Bytes read at once. */
const READ_BYTES = 1_048_576;

const FLAGS: readonly (readonly [number, string])[] = [
  [FLAG_DATA, 'data'], [FLAG_TRANSACTION_BEGIN, 'transaction-begin'], [FLAG_TRANSACTION_END, 'transaction-end'], [FLAG_STREAM_DELETE, 'stream-delete'],
  [FLAG_COMMITTED, 'committed'], [FLAG_JSON, 'json'], [FLAG_REDACTED, 'redacted'],
];

const scratch = new PrepareFields();

/** A record of the log, whose frame begins at `offset` in its file. Throws `log_corrupt` for one whose parts don't fill it. */
export function recordPart(frame: RecordFrame, offset: number): RecordPart {
  // Here and not when it is shown: damage is found in records that nobody looks at, too.
  const timeAt = recordTimestampAt(frame, scratch);
  const time = timestampText(timestampMsAt(frame.bytes, timeAt), timestampTicksAt(frame.bytes, timeAt));
  const lengthBytes = frame.length + FRAME_BYTES;
  const describe = frame.type === PREPARE ? describePrepare : frame.type === COMMIT ? describeCommit : describeSystem;
  // Decoded once, as the length of these decides what they say.
  if (frame.type === COMMIT) decodeCommit(frame);
  if (frame.type === SYSTEM) decodeEpoch(frame);
  return { kind: 'record', group: 'records', offset, position: frame.position, describe: () => describe(frame, lengthBytes, time) };
}

function describePrepare(frame: RecordFrame, lengthBytes: number, time: string): Description {
  const { stream, eventType, eventId, correlationId, data, metadata, flags, version, expectedVersion, transactionPosition, transactionOffset } = decodePrepare(frame);
  parsePrepare(frame, scratch);
  const number = scratch.isCommitted && scratch.isEvent ? scratch.eventNumber : null;
  return {
    fields: { lengthBytes, record: kindOf(flags), stream, number, type: eventType, time, data: new Payload(stream, data) },
    more: {
      metadata: new Payload(stream, metadata), dataBytes: data.length, metadataBytes: metadata.length, eventId, correlationId, flags: FLAGS.filter(([bit]) => (flags & bit) !== 0).map(([, name]) => name), expectedVersion,
      transactionPosition, transactionIndex: transactionOffset, recordVersion: version,
    },
  };
}

function kindOf(flags: number): string {
  if ((flags & FLAG_STREAM_DELETE) !== 0) return 'tombstone';
  if ((flags & FLAG_DATA) !== 0) return 'event';
  if ((flags & FLAG_TRANSACTION_BEGIN) !== 0) return 'begin';
  return (flags & FLAG_TRANSACTION_END) !== 0 ? 'end' : 'prepare';
}

function describeCommit(frame: RecordFrame, lengthBytes: number, time: string): Description {
  const { firstEventNumber, transactionPosition, correlationId, version } = decodeCommit(frame);
  return { fields: { lengthBytes, record: 'commit', stream: null, number: firstEventNumber, type: null, time, data: null }, more: { transactionPosition, correlationId, recordVersion: version } };
}

function describeSystem(frame: RecordFrame, lengthBytes: number, time: string): Description {
  return { fields: { lengthBytes, record: 'epoch', stream: null, number: null, type: null, time, data: decodeText(decodeEpoch(frame).json) } };
}

/** Where in a file records lie, and what is known of them. */
export interface RecordStretch {
  readonly file: StorageFile;
  /** Offsets in the file, the second behind the last record. */
  readonly from: number;
  readonly to: number;
  /** Of the first record; -1 where each says its own. */
  readonly position: number;
  /** Positions that there may be, from the first to before the second. */
  readonly between?: readonly [number, number];
  /** Is told every piece that is read. */
  readonly onPiece?: (piece: Uint8Array) => void;
}

/** Records one behind the other. One whose parts don't add up is damage that is passed over; what is no record ends them, with `log_corrupt` and its offset. */
export async function* recordParts(stretch: RecordStretch): AsyncGenerator<Part, void, undefined> {
  const { file, from, to, position, between, onPiece } = stretch;
  const cutter = new RecordCutter({ position, bytes: to - from, ...(between !== undefined && { between }), fail: (at, what) => notARecord(file, from + at, what) });
  const buffer = new Uint8Array(Math.max(0, Math.min(READ_BYTES, to - from)));
  for (let at = from; at < to;) {
    const piece = await file.read(at, Math.min(READ_BYTES, to - at), buffer);
    if (piece.length === 0) throw notARecord(file, at, 'the end of the file before the end of its data');
    at += piece.length;
    onPiece?.(piece);
    cutter.take(piece);
    while (cutter.next()) {
      const offset = from + cutter.passedBytes - cutter.frame.length - FRAME_BYTES;
      yield partOf(cutter.frame, offset);
    }
  }
  cutter.finish();
}

function partOf(frame: RecordFrame, offset: number): Part {
  try {
    return recordPart(frame, offset);
  } catch (error) {
    return damageOf(error, offset);
  }
}

function notARecord(file: StorageFile, offset: number, what: string): SkuaError {
  return new SkuaError('log_corrupt', `${file.path} holds ${what} at offset ${offset}.`, { file: file.path, offset });
}

const CHUNK_NAMES = [/(?<=^|\/)chunk-\d{6}\.\d{6}$/, /(?<=^|\/)[0-9a-f]{8}-[0-9a-f-]{27}(?:\.merge)?\.scavenge$/];

/** A chunk, completed, being written, or in part. */
export const CHUNK: FileFormat = {
  kind: 'chunk', title: 'chunk of the log', names: CHUNK_NAMES,
  begins: (head) => head.length >= HEADER_BYTES && head[0] === 2 && (head[1] === 2 || head[1] === 3) && i32(head, 2) > 0 && head.subarray(36, HEADER_BYTES).every((byte) => byte === 0),
  parts: chunkParts,
};

async function* chunkParts(looked: LookedInto): AsyncGenerator<Part, void, undefined> {
  const { file, world: { digests } } = looked;
  const headBytes = (await file.read(0, HEADER_BYTES)).slice();
  let header: ChunkHeader | null = null;
  try {
    header = decodeHeader(file.path, headBytes);
  } catch (error) {
    yield damageOf(error, 0);
    if (isSkuaError(error, 'log_unsupported') || headBytes.length < HEADER_BYTES) return;
  }
  const { footer, wrong } = header === null ? { footer: null, wrong: null } : await footerOf(file, header);
  const isOngoing = header !== null && footer === null && wrong === null;
  if (header !== null) yield headerSection(header, isOngoing ? 'being written' : footer === null ? 'not complete' : 'completed');
  if (footer !== null) yield footerSection(footer);
  const ongoing = isOngoing ? await ongoingEnd(looked, header!) : null;
  if (ongoing !== null) yield* ongoing.parts;
  const to = footer !== null ? HEADER_BYTES + footer.physicalBytes : ongoing?.end ?? file.size;
  const start = header === null ? 0 : header.startNumber * header.chunkSize;
  const between: readonly [number, number] | undefined = header === null ? undefined : [start, (header.endNumber + 1) * header.chunkSize];
  const position = header === null || header.isScavenged ? -1 : start;
  const stretch = { file, from: HEADER_BYTES, to, position, ...(between !== undefined && { between }) };
  if (looked.at !== null && header !== null) yield* recordAt(looked, header, footer, stretch);
  // Not beside a chunk that grows: that has no checksum yet.
  const proof = footer === null ? null : new ChunkProof(digests, file.path, file.size);
  proof?.add(headBytes);
  let records = 0;
  let isWalked = false;
  try {
    for await (const part of recordParts({ ...stretch, onPiece: (piece) => proof?.add(piece) })) {
      records++;
      yield part;
    }
    isWalked = true;
  } catch (error) {
    const damage = damageOf(error, null);
    // Of a chunk that is being written nobody knows better where it ends, and behind that lies whatever was written before.
    if (ongoing === null || ongoing.isKnown) yield damage;
    else if (await isAnything(file, damage.offset ?? to)) yield note(`What lies behind offset ${damage.offset} is no record: a write that was not finished, or what was there before.`);
  }
  if (wrong !== null) yield damageOf(wrong, Math.max(0, file.size - FOOTER_BYTES));
  if (footer !== null && header?.isScavenged === true && isWalked && footer.mapBytes / footer.mapEntryBytes !== records) yield { kind: 'damage', offset: to, error: notARecord(file, to, `a map of ${footer.mapBytes / footer.mapEntryBytes} positions for ${records} records`) };
  if (proof !== null) yield await checksumPart(file, proof);
}

function headerSection({ version, startNumber, endNumber, chunkSize, isScavenged, chunkId }: ChunkHeader, state: string): Part {
  return section('header', {
    state, isScavenged, firstChunk: startNumber, lastChunk: endNumber, startPosition: startNumber * chunkSize, endPosition: (endNumber + 1) * chunkSize, chunkSizeBytes: chunkSize, chunkId: guidToText(chunkId, 0), version,
  });
}

function footerSection({ physicalBytes, logicalBytes, mapBytes, mapEntryBytes, md5 }: ChunkFooter): Part {
  return section('footer', { dataBytes: physicalBytes, logicalBytes, mapEntries: mapBytes / mapEntryBytes, mapEntryBytes, md5 });
}

/** The footer, or what is wrong with it; neither for a chunk that is being written. */
async function footerOf(file: StorageFile, header: ChunkHeader): Promise<{ readonly footer: ChunkFooter | null; readonly wrong: unknown }> {
  const tail = (await file.read(Math.max(0, file.size - FOOTER_BYTES), FOOTER_BYTES)).slice();
  try {
    const footer = decodeFooter(file.path, tail, file.size);
    checkOldLength(file.path, header, footer, file.size);
    return { footer, wrong: null };
  } catch (error) {
    const isOngoing = !header.isScavenged && file.size >= HEADER_BYTES + header.chunkSize + FOOTER_BYTES && tail.every((byte) => byte === 0);
    return { footer: null, wrong: isOngoing ? null : error };
  }
}

interface OngoingEnd {
  /** Offset in the file. */
  readonly end: number;
  /** The file itself, or writer.chk beside it, says that records reach to there. */
  readonly isKnown: boolean;
  readonly parts: readonly Part[];
}

/** How far the data of a chunk goes that is being written: as a start finds it, but that nothing is settled. */
async function ongoingEnd({ file, world }: LookedInto, header: ChunkHeader): Promise<OngoingEnd> {
  const start = header.startNumber * header.chunkSize;
  const writer = await writerCheckpoint(world.open);
  const isHere = writer !== null && writer >= start && writer <= start + header.chunkSize;
  let end = isHere ? writer : -1;
  const parts: Part[] = [];
  for (const slot of await readSlots(file, header, world.digests)) {
    const isWhole = await isSlotWhole(file, header, slot, world.digests);
    if (isWhole) end = Math.max(end, slot.end);
    parts.push(section(`commit slot ${slot.sequence % 2}`, { sequence: slot.sequence, startPosition: slot.start, endPosition: slot.end, crc32: hex32(slot.checksum), isWhole }));
  }
  const isKnown = end >= 0;
  parts.unshift(section('end of the data', { writerPosition: isHere ? writer : null, position: isKnown ? end : null, saidBy: !isKnown ? 'nothing: as far as there are records' : end === writer && isHere ? 'writer.chk' : 'a commit slot' }));
  return { end: HEADER_BYTES + (isKnown ? end - start : header.chunkSize), isKnown, parts };
}

async function writerCheckpoint(open: LookedInto['world']['open']): Promise<number | null> {
  const file = await open('writer.chk');
  if (file === null) return null;
  try {
    return file.size < CHECKPOINT_BYTES ? null : i64(await file.read(0, CHECKPOINT_BYTES), 0);
  } finally {
    await file.close();
  }
}

/** The one record that is wanted, without those before it, which may be damaged; nothing where it is not so easily found. */
async function* recordAt({ file, at }: LookedInto, header: ChunkHeader, footer: ChunkFooter | null, stretch: RecordStretch): AsyncGenerator<Part, void, undefined> {
  const chunk = new Chunk(file.path, new BlockCache(0).attach(file), header, footer, stretch.to - HEADER_BYTES);
  const { by, value } = at!;
  try {
    const offset = by === 'offset' ? value : value >= chunk.startPosition && value < chunk.endPosition ? await untilHit(() => chunk.offsetFrom(value)) : -1;
    if (offset < HEADER_BYTES || offset + FRAME_BYTES > stretch.to) return;
    const position = header.isScavenged ? -1 : chunk.startPosition + offset - HEADER_BYTES;
    for await (const part of recordParts({ ...stretch, from: offset, position })) {
      if (part.kind === 'record' && (by === 'offset' ? part.offset : part.position) === value) yield part;
      return;
    }
  } catch (error) {
    // No record begins there: the walk tells which one lies before it.
    if (!isSkuaError(error, 'log_corrupt')) throw error;
  }
}

/** Whether anything stands where the next record would. */
async function isAnything(file: StorageFile, offset: number): Promise<boolean> {
  return (await file.read(offset, FRAME_BYTES)).some((byte) => byte !== 0);
}

async function checksumPart(file: StorageFile, proof: ChunkProof): Promise<Part> {
  await proof.addRange(file, file.size);
  try {
    proof.check();
    return section('checksum', { fits: true });
  } catch (error) {
    return damageOf(error, 0);
  }
}

/** Records one behind the other, without anything around them. */
export const SEGMENT: FileFormat = {
  kind: 'segment', title: 'records of the log', names: [/(?<=^|\/)filling\/chunk-\d{6}\.\d{6}\.tail$/, /(?<=^|\/)chunk-\d{6}\.\d{6}\.rest$/],
  begins: (head, sizeBytes) => head.length > RECORD_HEAD_BYTES && isRecordLength(i32(head, 0)) && i32(head, 0) + FRAME_BYTES <= sizeBytes && beginsAsRecord(head),
  parts: ({ file }) => recordParts({ file, from: 0, to: file.size, position: -1 }),
};

/** Of a record in its frame, up to the fields by which it is known for one. */
const RECORD_HEAD_BYTES = 24;
const PREPARE_BYTES_MIN = 70;

/** Records have no magic: type, version, position, and what each type must have. */
function beginsAsRecord(head: Uint8Array): boolean {
  const length = i32(head, 0);
  const [type, version] = [head[4]!, head[5]!];
  if (version > 1 || i64(head, 6) < 0) return false;
  if (type === PREPARE) return length >= PREPARE_BYTES_MIN && (head[14] !== 0 || head[15] !== 0);
  return type === COMMIT ? length === (version === 1 ? 58 : 54) : type === SYSTEM && version === 0 && head[22] === 1 && head[23] === 2;
}

const CHECKPOINT_BYTES = 8;

const CHECKPOINT: FileFormat = {
  kind: 'checkpoint', title: 'checkpoint', names: [/(?<=^|\/)(?:writer|chaser|epoch|proposal|truncate|tag)\.chk$/],
  async *parts({ file, key }) {
    const name = key.slice(key.lastIndexOf('/') + 1);
    const bytes = await file.read(0, CHECKPOINT_BYTES);
    if (bytes.length < CHECKPOINT_BYTES) throw new SkuaError('checkpoint_corrupt', `${name} has ${bytes.length} bytes instead of ${CHECKPOINT_BYTES}. Restore the file from a backup.`, { file: name, offset: bytes.length });
    const value = i64(bytes, 0);
    const [member, meaning] = MEANINGS[name.slice(0, name.indexOf('.'))] ?? ['value', ''];
    yield section('checkpoint', { [member]: value, meaning: value === -1 ? 'none' : meaning });
    if (file.size > CHECKPOINT_BYTES) yield { kind: 'damage', offset: CHECKPOINT_BYTES, error: new SkuaError('checkpoint_corrupt', `${name} has ${file.size} bytes instead of ${CHECKPOINT_BYTES}. The first ones count.`, { file: name, offset: CHECKPOINT_BYTES }) };
  },
};

const MEANINGS: Readonly<Record<string, readonly [string, string]>> = {
  writer: ['position', 'the log is durable up to here'], chaser: ['position', 'the log is indexed up to here'], epoch: ['position', 'the newest epoch record'], proposal: ['number', 'the newest epoch that was proposed'],
  truncate: ['position', 'the next start cuts the log off here'], tag: ['number', 'a tag of the directory, of newer versions of the reference database'],
};

const BLOCK_SUMS: FileFormat = {
  kind: 'block-sums', title: 'checksums of the chunk being written', names: [/(?<=^|\/)block-sums$/], begins: beginsAsBlockSums,
  async *parts({ file, world: { digests } }) {
    const found = file.size > DOCUMENT_BYTES_MAX ? 'not-ours' : decodeBlockSums(await wholeOf(file), digests);
    if (found === 'not-ours') throw new SkuaError('checkpoint_corrupt', `${file.path} is not as it was written. It is a help that the next start makes anew: delete it.`, { file: file.path, offset: 0 });
    const { chunkNumber, chunkId, end, sequence, epoch, sums } = found;
    yield section('block sums', { chunkNumber, chunkId: guidToText(chunkId, 0), endOffset: end, commitSlotSequence: sequence, epochPosition: epoch.position, epochBytes: epoch.bytes.length, blocks: sums.length });
    for (const [block, sum] of sums.entries()) yield { kind: 'record', group: 'blocks', offset: BLOCK_STEP_BYTES * block, describe: () => ({ fields: { block, crc32: hex32(sum) } }) };
  },
};

/** Blocks are those of the cache. */
const BLOCK_STEP_BYTES = 65_536;

const PROVEN: FileFormat = { kind: 'proven-chunks', title: 'chunks that were compared with their checksums', names: [/(?<=^|\/)proven-chunks$/], begins: (head) => decodeText(head).startsWith(PROOFS_FORMAT), parts: (looked) => provenParts(looked, PROOFS_FORMAT) };

/** A file of what was proved, of chunks or tables. */
export async function* provenParts({ file, world: { digests } }: LookedInto, format: string): AsyncGenerator<Part, void, undefined> {
  const bytes = await wholeOf(file);
  try {
    for (const [name, { sizeBytes, modifiedMs, provenMs }] of decodeProofs(bytes, digests, file.path, format)) yield { kind: 'record', group: 'files', offset: null, describe: () => ({ fields: { name, sizeBytes, modifiedMs, provenMs } }) };
  } catch (error) {
    if (!isSkuaError(error, 'io_error')) throw error;
    yield { kind: 'damage', offset: 0, error };
    yield* lineParts(bytes);
  }
}

const ID: FileFormat = {
  kind: 'log-id', title: 'id of the log of which the directory is a copy', names: [/(?<=^|\/)log-id$/],
  parts: (looked) => idParts(looked),
};

const UUID_LINE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\s?$/;

/** A file that holds a UUID and a line end. */
export async function* idParts({ file }: LookedInto): AsyncGenerator<Part, void, undefined> {
  const bytes = (await file.read(0, 64)).slice();
  const text = decodeText(bytes);
  if (file.size <= bytes.length && UUID_LINE.test(text)) {
    yield section('id', { id: text.trim() });
    return;
  }
  yield { kind: 'damage', offset: 0, error: new SkuaError('checkpoint_corrupt', `${file.path} holds no UUID.`, { file: file.path, offset: 0 }) };
  yield* lineParts(bytes);
}

const MARKS: Readonly<Record<string, string>> = {
  restoring: 'A restore was begun here and has not ended: no start takes the directory for the whole.', 'copy-unfinished': 'A copy of files was begun here and has not ended: the same command completes it.',
  'scavenge-due': 'This copy was cut back and took files of the bucket for that: what its scavenges had removed may be there again until one has succeeded.',
};

const MARK: FileFormat = {
  kind: 'marker', title: 'marker', names: [/(?<=^|\/)(?:restoring|copy-unfinished|scavenge-due)$/],
  async *parts({ file, key }) {
    yield note(Object.entries(MARKS).find(([name]) => key.startsWith(name))?.[1] ?? 'A marker.');
    yield* lineParts(await wholeOf(file));
  },
};

function hex32(value: number): string {
  return toHex(Uint8Array.of(value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255));
}

export const LOG_FORMATS: readonly FileFormat[] = [CHUNK, SEGMENT, CHECKPOINT, BLOCK_SUMS, PROVEN, ID, MARK];

/** CRC-32 of a stretch of a file. */
export async function crcOf(file: StorageFile, digests: Digests): Promise<number> {
  let sum = 0;
  for (let at = 0; at < file.size;) {
    const bytes = await file.read(at, Math.min(READ_BYTES, file.size - at));
    if (bytes.length === 0) break;
    sum = digests.crc32(bytes, sum);
    at += bytes.length;
  }
  return sum;
}
