import { i32, i64 } from '../base/bytes.ts';
import { BlockCache } from '../cache/cache.ts';
import { untilHit } from '../base/step.ts';
import { isSkuaError } from '../base/errors.ts';
import { guidToText } from '../base/guid.ts';
import { damageOf, type Inspected, note, type Part, section } from '../ports/file-format.ts';
import type { StorageFile } from '../ports/storage.ts';
import {
  type ChunkFooter,
  type ChunkHeader,
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  mapActual,
} from './format/chunk-format.ts';
import { ChunkProof } from './format/chunk-proof.ts';
import { Chunk } from './chunk/chunk.ts';
import { isSlotWhole, readSlots } from './log-end/log-end.ts';
import { checkOldLength } from './format/chunk-files.ts';
import { crcText, notARecord, READ_BYTES, RECORD_HEAD_BYTES, recordParts, type RecordStretch } from './record-parts.ts';
import { FRAME_BYTES, isRecordLength, SYSTEM } from './format/records.ts';

/** A chunk, for programs that look into it: completed, being written, or what is left of one. */

/** Of writer.chk. */
const WRITER_BYTES = 8;

/** Header, footer and records. Behind a damaged record they go on where the next one is found. */
export async function* chunkParts(looked: Inspected): AsyncGenerator<Part, void, undefined> {
  const {
    file,
    world: { digests },
  } = looked;
  const headBytes = (await file.read(0, HEADER_BYTES)).slice();
  let header: ChunkHeader | null = null;
  try {
    header = decodeHeader(file.path, headBytes);
  } catch (error) {
    yield damageOf(error, 0);
    if (headBytes.length < HEADER_BYTES) return;
  }
  const { footer, wrong } = header === null ? { footer: null, wrong: null } : await footerOf(file, header);
  const isOngoing = header !== null && footer === null && wrong === null;
  if (header !== null)
    yield headerSection(header, isOngoing ? 'being written' : footer === null ? 'not complete' : 'completed');
  if (footer !== null) yield footerSection(footer);
  const ongoing = isOngoing ? await ongoingEnd(looked, header!) : null;
  if (ongoing !== null) yield* ongoing.parts;
  const to = footer !== null ? HEADER_BYTES + footer.physicalBytes : (ongoing?.end ?? file.size);
  const start = header === null ? 0 : header.startNumber * header.chunkSize;
  const between: readonly [number, number] | undefined =
    header === null ? undefined : [start, (header.endNumber + 1) * header.chunkSize];
  const position = header === null || header.isScavenged ? -1 : start;
  const stretch = { file, from: HEADER_BYTES, to, position, ...(between !== undefined && { between }) };
  if (looked.at !== null && header !== null) yield* recordAt(looked, header, footer, stretch);
  // Of a chunk that is being written there is no checksum yet.
  const proof = footer === null ? null : new ChunkProof(digests, file.path, file.size);
  proof?.add(headBytes);
  let records = 0;
  let isWhole = true;
  for (let from = HEADER_BYTES; from >= HEADER_BYTES && from < to;) {
    const isFirst = from === HEADER_BYTES;
    try {
      for await (const part of recordParts({
        ...stretch,
        from,
        position: position < 0 ? -1 : position + from - HEADER_BYTES,
        onPiece: (piece) => {
          if (isFirst) proof?.add(piece);
        },
      })) {
        records++;
        yield part;
      }
      break;
    } catch (error) {
      const damage = damageOf(error, null);
      const offset = damage.offset ?? to;
      if (ongoing?.isKnown === false) {
        // It is not known otherwise where the log ends, and behind that end lies whatever was written before.
        if (await isAnything(file, offset))
          yield note(`The bytes after offset ${offset} are not a record: an unfinished write, or older content.`);
        break;
      }
      isWhole = false;
      yield damage;
      from = header === null ? -1 : await resumedAt(file, { header, footer, from: offset + 1, to });
      if (from > offset) yield note(`Records continue at offset ${from}: ${from - offset} bytes were skipped.`);
    }
  }
  if (wrong !== null) yield damageOf(wrong, Math.max(0, file.size - FOOTER_BYTES));
  if (footer !== null && header?.isScavenged === true && isWhole && footer.mapBytes / footer.mapEntryBytes !== records)
    yield {
      kind: 'damage',
      offset: to,
      error: notARecord(
        file,
        to,
        `a map of ${footer.mapBytes / footer.mapEntryBytes} positions for ${records} records`,
      ),
    };
  if (proof !== null && isWhole) yield await checksumPart(file, proof);
}

interface Resumption {
  readonly header: ChunkHeader;
  readonly footer: ChunkFooter | null;
  /** Offsets in the file: the first at which a record may begin again, and the end of the data. */
  readonly from: number;
  readonly to: number;
}

/**
 * Offset of the first record behind damage: by the map of a scavenged chunk, else by a record that names the position
 * at which it lies. -1 where there is none.
 */
async function resumedAt(file: StorageFile, { header, footer, from, to }: Resumption): Promise<number> {
  if (header.isScavenged) return footer === null ? -1 : resumedByMap(file, footer, from);
  const start = header.startNumber * header.chunkSize;
  for (let at = from; at < to; at += READ_BYTES) {
    // A record that begins at the end of a piece is found in it.
    const piece = await file.read(at, Math.min(READ_BYTES + RECORD_HEAD_BYTES, to - at));
    for (let i = 0; i + RECORD_HEAD_BYTES < piece.length; i++) {
      const offset = at + i;
      if (
        i64(piece, i + 6) !== start + offset - HEADER_BYTES ||
        !isRecordLength(i32(piece, i)) ||
        piece[i + 4]! > SYSTEM
      )
        continue;
      const end = offset + 4 + i32(piece, i);
      if (end + 4 <= to && i32(await file.read(end, 4), 0) === i32(piece, i)) return offset;
    }
    if (piece.length <= RECORD_HEAD_BYTES) return -1;
  }
  return -1;
}

async function resumedByMap(
  file: StorageFile,
  { physicalBytes, mapBytes, mapEntryBytes }: ChunkFooter,
  from: number,
): Promise<number> {
  const mapAt = HEADER_BYTES + physicalBytes;
  const step = MAP_ENTRIES_AT_ONCE * mapEntryBytes;
  for (let at = 0; at < mapBytes; at += step) {
    const entries = await file.read(mapAt + at, Math.min(step, mapBytes - at));
    for (let i = 0; i + mapEntryBytes <= entries.length; i += mapEntryBytes) {
      const offset = HEADER_BYTES + mapActual(entries, i);
      if (offset >= from && offset < mapAt) return offset;
    }
  }
  return -1;
}

/** Entries of a map that are read at once. */
const MAP_ENTRIES_AT_ONCE = 65_536;

function headerSection(
  { version, startNumber, endNumber, chunkSize, isScavenged, chunkId }: ChunkHeader,
  state: string,
): Part {
  return section('header', {
    state,
    isScavenged,
    firstChunk: startNumber,
    lastChunk: endNumber,
    startPosition: startNumber * chunkSize,
    endPosition: (endNumber + 1) * chunkSize,
    chunkSizeBytes: chunkSize,
    chunkId: guidToText(chunkId, 0),
    version,
  });
}

function footerSection({ physicalBytes, logicalBytes, mapBytes, mapEntryBytes, md5 }: ChunkFooter): Part {
  return section('footer', {
    dataBytes: physicalBytes,
    logicalBytes,
    mapEntries: mapBytes / mapEntryBytes,
    mapEntryBytes,
    md5,
  });
}

/** The footer, or what is wrong with it; neither for a chunk that is being written. */
async function footerOf(
  file: StorageFile,
  header: ChunkHeader,
): Promise<{ readonly footer: ChunkFooter | null; readonly wrong: unknown }> {
  const tail = (await file.read(Math.max(0, file.size - FOOTER_BYTES), FOOTER_BYTES)).slice();
  try {
    const footer = decodeFooter(file.path, tail, file.size);
    checkOldLength(file.path, header, footer, file.size);
    return { footer, wrong: null };
  } catch (error) {
    const isOngoing =
      !header.isScavenged &&
      file.size >= HEADER_BYTES + header.chunkSize + FOOTER_BYTES &&
      tail.every((byte) => byte === 0);
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
async function ongoingEnd({ file, world }: Inspected, header: ChunkHeader): Promise<OngoingEnd> {
  const start = header.startNumber * header.chunkSize;
  const writer = await writerCheckpoint(world.open);
  const isHere = writer !== null && writer >= start && writer <= start + header.chunkSize;
  let end = isHere ? writer : -1;
  const parts: Part[] = [];
  for (const slot of await readSlots(file, header, world.digests)) {
    const isWhole = await isSlotWhole(file, header, slot, world.digests);
    if (isWhole) end = Math.max(end, slot.end);
    parts.push(
      section(`commit slot ${slot.sequence % 2}`, {
        sequence: slot.sequence,
        startPosition: slot.start,
        endPosition: slot.end,
        crc32: crcText(slot.checksum),
        isWhole,
      }),
    );
  }
  const isKnown = end >= 0;
  parts.unshift(
    section('end of the data', {
      writerPosition: isHere ? writer : null,
      position: isKnown ? end : null,
      saidBy: !isKnown ? 'nothing: up to the last record' : end === writer && isHere ? 'writer.chk' : 'a commit slot',
    }),
  );
  return { end: HEADER_BYTES + (isKnown ? end - start : header.chunkSize), isKnown, parts };
}

async function writerCheckpoint(open: Inspected['world']['open']): Promise<number | null> {
  const file = await open('writer.chk');
  if (file === null) return null;
  try {
    return file.size < WRITER_BYTES ? null : i64(await file.read(0, WRITER_BYTES), 0);
  } finally {
    await file.close();
  }
}

/**
 * The one record that is wanted, without those before it, which may be damaged; nothing where it is not so easily
 * found.
 */
async function* recordAt(
  { file, at }: Inspected,
  header: ChunkHeader,
  footer: ChunkFooter | null,
  stretch: RecordStretch,
): AsyncGenerator<Part, void, undefined> {
  const chunk = new Chunk(file.path, new BlockCache(0).attach(file), header, footer, stretch.to - HEADER_BYTES);
  const { by, value } = at!;
  try {
    const offset =
      by === 'offset'
        ? value
        : value >= chunk.startPosition && value < chunk.endPosition
          ? await untilHit(() => chunk.offsetFrom(value))
          : -1;
    if (offset < HEADER_BYTES || offset + FRAME_BYTES > stretch.to) return;
    const position = header.isScavenged ? -1 : chunk.startPosition + offset - HEADER_BYTES;
    for await (const part of recordParts({ ...stretch, from: offset, position })) {
      if (part.kind === 'record' && (by === 'offset' ? part.offset : part.position) === value) yield part;
      return;
    }
  } catch (error) {
    // No record begins there: the walk finds which one lies before it.
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
