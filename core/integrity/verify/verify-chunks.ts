import { i64 } from '../../base/bytes.ts';
import { BLOCK_BYTES } from '../../cache/cache.ts';
import { HIT, untilHit } from '../../base/step.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { checkBlocks, type OngoingEnd } from '../../log/block-sums/block-sums.ts';
import { BLOCK_SUMS_FILE } from '../../log/format/block-sums-file.ts';
import {
  chunkFileName,
  chunkNumberAt,
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  mapActual,
  mapLogical,
  MD5_BYTES,
  parseChunkFileNames,
  takeInventory,
  type ChunkFooter,
  type ChunkHeader,
} from '../../log/format/chunk-format.ts';
import { ChunkTable } from '../../log/chunk-table/chunk-table.ts';
import { Chunk, scanChunk } from '../../log/chunk/chunk.ts';
import { findLogEnd } from '../../log/log-end/log-end.ts';
import { checkHeaderRange, checkOldLength, readHeader, type ChunkRange } from '../../log/format/chunk-files.ts';
import {
  COMMIT,
  decodeCommit,
  decodeEpoch,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
  SYSTEM,
} from '../../log/format/records.ts';
import { isLeftoverName } from '../../ports/own-names.ts';
import type { StorageFile } from '../../ports/storage.ts';
import { ShadowedStreams } from './shadowed-streams.ts';
import type { VerifyFinding, VerifyNote, VerifyProgress, VerifyRun } from './verify-run.ts';

const READ_BYTES = 1_048_576;

/** Checks checkpoints and chunk files. Returns the log as far as it can be read, or null when its end is unknown. */
export async function* verifyChunks(
  run: VerifyRun,
  names: readonly string[],
): AsyncGenerator<VerifyFinding | VerifyNote | VerifyProgress, ChunkTable | null> {
  const checkpoints = await verifyCheckpoints(run);
  let writer = checkpoints.writer;
  const files = parseChunkFileNames(names);
  for (const name of names)
    if (isLeftoverName(name))
      run.add(
        'warning',
        'leftover_file',
        name,
        null,
        `${name} is left over from interrupted work; the next start removes it.`,
      );
  if (files.length === 0) {
    if (writer !== null && writer !== 0)
      run.add(
        'error',
        'chunk_missing',
        'writer.chk',
        0,
        `writer.chk names position ${writer}, but there are no chunk files.`,
      );
    return null;
  }
  let chunkSize: number;
  try {
    chunkSize = (await readHeader(run.storage, files[0]!.name)).chunkSize;
  } catch (error) {
    run.addError(error, files[0]!.name);
    return null;
  }
  let lastNumber = files[files.length - 1]!.number;
  try {
    if (writer !== null)
      lastNumber = chunkNumberAt(
        writer,
        chunkSize,
        'writer.chk',
        'Delete it to have the end of the log found from the chunk files.',
      );
  } catch (error) {
    run.addError(error, 'writer.chk');
    writer = null;
  }
  const inventory = await takeInventory(files, lastNumber - 1, (file) =>
    readHeader(run.storage, file.name).then(
      (header) => header.endNumber,
      () => file.number,
    ),
  );
  const missing = [...inventory.missing];
  if (writer !== null && writer % chunkSize !== 0 && !inventory.latest.some((latest) => latest.endNumber >= lastNumber))
    missing.push(lastNumber);
  for (const number of missing)
    run.add('error', 'chunk_missing', chunkFileName(number, 0), null, `The file of chunk ${number} is missing.`);
  for (const file of inventory.old)
    run.add(
      'warning',
      'superseded_file',
      file.name,
      null,
      `${file.name} is superseded by a newer version; the next start removes it.`,
    );

  let total = 0;
  for (const { file } of inventory.latest) total += (await run.storage.size(file.name)) ?? 0;
  const table = new ChunkTable(chunkSize);
  table.end = Math.max(0, writer ?? 0);
  const shadowed = new ShadowedStreams(run);
  let done = 0;
  for (const { file, endNumber } of inventory.latest) {
    if (file.number > lastNumber) {
      run.add(
        'error',
        'chunk_unexpected',
        file.name,
        null,
        `${file.name} is beyond the end of the log${writer === null ? '' : ` at position ${writer}`}.`,
      );
      continue;
    }
    const before = done;
    const place = { number: file.number, endNumber, chunkSize };
    const chunk =
      file.number === lastNumber
        ? await openLast(run, file.name, writer, table, place)
        : await openComplete(run, file.name, place);
    if (chunk) {
      run.chunks++;
      table.put(chunk);
      if (chunk.isCompleted) {
        for await (const bytes of checkMd5(run, chunk))
          yield { kind: 'progress', phase: 'log', bytesDone: Math.min(before + bytes / 2, total), bytesTotal: total };
        yield* run.take();
      }
      await checkRecords(run, chunk, shadowed);
      yield* run.take();
    }
    done = before + ((await run.storage.size(file.name)) ?? 0);
    yield { kind: 'progress', phase: 'log', bytesDone: done, bytesTotal: total };
  }
  if (checkpoints.epoch >= 0 && checkpoints.epoch < table.end) await checkEpoch(run, table, checkpoints.epoch);
  return table;
}

/** epoch.chk must lead to an epoch record. */
async function checkEpoch(run: VerifyRun, table: ChunkTable, position: number): Promise<void> {
  const frame = new RecordFrame();
  const chunk = table.chunkAt(position);
  if (!chunk) return;
  try {
    if ((await untilHit(() => chunk.readAt(position, frame))) === HIT && frame.type === SYSTEM) return;
  } catch (error) {
    if (!isSkuaError(error, 'log_corrupt')) throw error;
  }
  run.add(
    'error',
    'checkpoint_corrupt',
    'epoch.chk',
    0,
    `epoch.chk names position ${position}, where no epoch record starts.`,
  );
}

interface CheckpointValues {
  /** Null when the file is missing or of the wrong length. */
  readonly writer: number | null;
  readonly epoch: number;
}

async function verifyCheckpoints(run: VerifyRun): Promise<CheckpointValues> {
  const values = new Map<string, number>();
  for (const name of ['writer.chk', 'chaser.chk', 'epoch.chk', 'proposal.chk', 'truncate.chk']) {
    const size = await run.storage.size(name);
    if (size === null) {
      run.add('warning', 'checkpoint_missing', name, null, `${name} is missing; the next start recreates it.`);
      continue;
    }
    const file = await run.storage.open(name, 'read');
    const bytes = await file.read(0, 8);
    await file.close();
    if (bytes.length !== 8 || size !== 8)
      run.add('error', 'checkpoint_corrupt', name, 0, `${name} has ${size} bytes instead of 8.`);
    else values.set(name, i64(bytes, 0));
  }
  const writer = values.get('writer.chk') ?? null;
  for (const name of ['chaser.chk', 'epoch.chk']) {
    const value = values.get(name) ?? -1;
    if (writer !== null && value > writer)
      run.add(
        'error',
        'checkpoint_corrupt',
        name,
        0,
        `${name} names position ${value}, beyond writer.chk at ${writer}.`,
      );
  }
  const truncate = values.get('truncate.chk') ?? -1;
  if (truncate >= 0)
    run.add(
      'warning',
      'truncation_pending',
      'truncate.chk',
      0,
      `The next start truncates the log to position ${truncate}.`,
    );
  return { writer, epoch: values.get('epoch.chk') ?? -1 };
}

async function openComplete(run: VerifyRun, name: string, place: ChunkRange): Promise<Chunk | null> {
  const file = await run.open(name);
  try {
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    checkHeaderRange(name, header, place);
    const footer = decodeFooter(name, await file.read(Math.max(0, file.size - FOOTER_BYTES), FOOTER_BYTES), file.size);
    checkOldLength(name, header, footer, file.size);
    await checkMap(run, name, file, header, footer);
    return new Chunk(name, run.cache.attach(file), header, footer, 0);
  } catch (error) {
    run.addError(error, name);
    return null;
  }
}

/** The chunk that holds the end of the log: still being written, or complete at exactly that place. */
async function openLast(
  run: VerifyRun,
  name: string,
  writer: number | null,
  table: ChunkTable,
  place: ChunkRange,
): Promise<Chunk | null> {
  const file = await run.open(name);
  try {
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    checkHeaderRange(name, header, place);
    if (header.isScavenged) {
      const footer = decodeFooter(
        name,
        await file.read(Math.max(0, file.size - FOOTER_BYTES), FOOTER_BYTES),
        file.size,
      );
      return new Chunk(name, run.cache.attach(file), header, footer, 0);
    }
    const start = header.startNumber * header.chunkSize;
    const end = await findLogEnd(file, header, Math.max(0, (writer ?? 0) - start), run.digests, writer === null);
    table.end = start + end.localEnd;
    await verifyBlocks(run, file, { header, ...end });
    return new Chunk(name, run.cache.attach(file), header, null, end.localEnd);
  } catch (error) {
    run.addError(error, name);
    return null;
  }
}

/**
 * The chunk being written has no MD5: its blocks are compared with the checksums beside it, and what these don't reach
 * is named.
 */
async function verifyBlocks(run: VerifyRun, file: StorageFile, end: OngoingEnd): Promise<void> {
  const name = file.path;
  const { wrong, checksummedTo, outdated, isThere } = await checkBlocks(run.storage, file, end, run.digests);
  for (const block of wrong) {
    const offset = block * BLOCK_BYTES;
    run.add(
      'error',
      'block_mismatch',
      name,
      offset,
      `The bytes of ${name} from ${offset} on differ from the checksum in ${BLOCK_SUMS_FILE} of this block of ${BLOCK_BYTES} bytes, and no other program has written there since: the file was changed or damaged. Restore the directory from a backup; to accept the bytes as they are, delete ${BLOCK_SUMS_FILE}.`,
    );
  }
  const dataEnd = HEADER_BYTES + end.localEnd;
  const from = Math.max(checksummedTo, HEADER_BYTES);
  const bytes = dataEnd - from;
  if (bytes <= 0) return;
  const why =
    checksummedTo > 0
      ? 'are not protected yet: the node ended before it had written their checksums'
      : outdated !== null
        ? `are not protected: ${BLOCK_SUMS_FILE} has checksums, but ${outdated}`
        : isThere
          ? 'are not protected'
          : `are not protected: there is no ${BLOCK_SUMS_FILE}, for example because another program or an older version wrote last, or the node was killed in its first seconds`;
  run.note(
    'ongoing_unprotected',
    name,
    { offset: from, bytes },
    `The last ${bytes.toLocaleString('en')} bytes of ${name}, the chunk that is being written, ${why}. A changed byte there is detected only if it breaks a record. The next start protects them as they are.`,
  );
}

async function* checkMd5(run: VerifyRun, chunk: Chunk): AsyncGenerator<number> {
  const file = chunk.file.file;
  const md5 = run.digests.md5();
  const end = file.size - MD5_BYTES;
  for (let at = 0; at < end; at += READ_BYTES) {
    const bytes = await file.read(at, Math.min(READ_BYTES, end - at));
    md5.update(bytes);
    yield at + bytes.length;
  }
  const found = md5.finish();
  const stored = await file.read(end, MD5_BYTES);
  if (found.some((byte, i) => byte !== stored[i]))
    run.add(
      'error',
      'md5_mismatch',
      chunk.name,
      end,
      `The checksum of ${chunk.name} does not match its content: the file has changed since it was written.`,
    );
}

/** Every entry of the position map must name a place where a record with that position lies, in ascending order. */
async function checkMap(
  run: VerifyRun,
  name: string,
  file: StorageFile,
  header: ChunkHeader,
  footer: ChunkFooter,
): Promise<void> {
  const { mapEntryBytes, mapBytes, physicalBytes } = footer;
  if (!header.isScavenged) {
    if (mapBytes !== 0)
      run.add(
        'error',
        'map_corrupt',
        name,
        HEADER_BYTES + physicalBytes,
        `${name} is not scavenged but has a position map.`,
      );
    return;
  }
  const count = mapBytes / mapEntryBytes;
  let lastLogical = -1;
  let lastActual = -1;
  for (let from = 0; from < count; from += 65_536) {
    const n = Math.min(65_536, count - from);
    const at = HEADER_BYTES + physicalBytes + from * mapEntryBytes;
    const bytes = await file.read(at, n * mapEntryBytes);
    for (let i = 0; i < n; i++) {
      const actual = mapActual(bytes, i * mapEntryBytes);
      const logical = mapLogical(bytes, i * mapEntryBytes, mapEntryBytes);
      if (logical <= lastLogical || actual <= lastActual || actual >= physicalBytes) {
        run.add(
          'error',
          'map_corrupt',
          name,
          at + i * mapEntryBytes,
          `Entry ${from + i} of the position map of ${name} is out of order.`,
        );
        return;
      }
      lastLogical = logical;
      lastActual = actual;
    }
  }
}

async function checkRecords(run: VerifyRun, chunk: Chunk, shadowed: ShadowedStreams): Promise<void> {
  const fields = new PrepareFields();
  const footerRecords = chunk.mapCount;
  let records = 0;
  let last: number = chunk.startPosition;
  let end: number = chunk.startPosition;
  try {
    await scanChunk(chunk, chunk.startPosition, (frame) => {
      records++;
      if (frame.position < last)
        throw new SkuaError(
          'log_corrupt',
          `${chunk.name} holds a record for position ${frame.position} after one for ${last}.`,
          { file: chunk.name },
        );
      last = frame.position;
      end = frame.next;
      if (!checkRecord(frame, fields)) return;
      run.events++;
      shadowed.look(frame, fields, chunk.name);
    });
  } catch (error) {
    run.addError(error, chunk.name);
    return;
  } finally {
    run.records += records;
  }
  if (chunk.isScavenged && records !== footerRecords)
    run.add(
      'error',
      'map_corrupt',
      chunk.name,
      null,
      `${chunk.name} holds ${records} records, but its position map has ${footerRecords} entries.`,
    );
  if (chunk.isCompleted && records > 0 && end - chunk.startPosition !== chunk.logicalBytes)
    run.add(
      'error',
      'log_corrupt',
      chunk.name,
      null,
      `The last record of ${chunk.name} ends at ${end - chunk.startPosition} of the chunk, but its footer says ${chunk.logicalBytes}.`,
    );
}

/** Decodes a record; true when it is an event. Throws `log_corrupt`. */
function checkRecord(frame: RecordFrame, fields: PrepareFields): boolean {
  switch (frame.type) {
    case PREPARE:
      parsePrepare(frame, fields);
      return fields.isEvent;
    case COMMIT:
      decodeCommit(frame);
      return false;
    case SYSTEM:
      decodeEpoch(frame);
      return false;
    default:
      throw new SkuaError(
        'log_corrupt',
        `The log holds a record of unknown type ${frame.type} at position ${frame.position}.`,
        { position: frame.position },
      );
  }
}
