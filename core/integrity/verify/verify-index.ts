import { i64 } from '../../base/bytes.ts';
import { BloomFilter, checkLines, LINE_BYTES, readBloomHeader } from '../../index/format/bloom.ts';
import { IndexEntry } from '../../index/format/entries.ts';
import { EXISTENCE_CHECKPOINT_PATH, EXISTENCE_DATA_PATH } from '../../index/format/existence-files.ts';
import { INDEX_FOLDER, INDEX_MAP_PATH, loadIndexMap, type IndexMap } from '../../index/format/index-map.ts';
import { Hash64 } from '../../base/stream-hash.ts';
import { FITS, LogOfEntries, REMOVED } from '../../index/format/of-log.ts';
import { BloomBudget } from '../../index/format/table-bloom.ts';
import { bloomPathOf, type TableShape } from '../../index/format/table-format.ts';
import { openTable, readBatches, checkMd5 } from '../../index/format/table-scan.ts';
import type { EntryBatch } from '../../index/api.ts';
import { TableReader } from '../../index/tables/tables.ts';
import type { ChunkTable } from '../../log/api.ts';
import { END, HIT, untilHit } from '../../base/step.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf } from '../../log/format/records.ts';
import { scanLog } from '../../log/chunk-table/chunk-table.ts';
import { silentLog } from '../../ports/log.ts';
import type { VerifyFinding, VerifyNote, VerifyProgress, VerifyRun } from './verify-run.ts';

/** Checks the index by itself and against the log, in both directions. */
export async function* verifyIndex(
  run: VerifyRun,
  log: ChunkTable,
): AsyncGenerator<VerifyFinding | VerifyNote | VerifyProgress, void> {
  const map = await readMap(run, log);
  if (map === null) return;
  const paths = map.levels.flat().map((name) => `${INDEX_FOLDER}/${name}`);
  let total = 0;
  for (const path of paths) total += (await run.storage.size(path)) ?? 0;
  let done = 0;
  const sound: string[] = [];
  for (const path of paths) {
    const isSound = await checkTable(run, path, new LogOfEntries(log, run.hasher), (shape) => {
      run.indexTables++;
      run.indexEntries += shape.entries;
    });
    if (isSound) sound.push(path);
    yield* run.take();
    done += (await run.storage.size(path)) ?? 0;
    yield { kind: 'progress', phase: 'index', bytesDone: done, bytesTotal: total };
  }
  if (sound.length === paths.length) await checkEventsAreIndexed(run, log, map, sound);
  await checkExistence(run, log);
}

async function readMap(run: VerifyRun, log: ChunkTable): Promise<IndexMap | null> {
  let map: IndexMap | null;
  try {
    map = await loadIndexMap(run.storage, run.digests);
  } catch (error) {
    run.addError(error, INDEX_MAP_PATH);
    return null;
  }
  if (map === null) {
    run.add(
      'warning',
      'index_missing',
      INDEX_MAP_PATH,
      null,
      'There is no index map; the next start builds the index from the log.',
    );
    return null;
  }
  if (map.commitCheckpoint >= log.end)
    run.add(
      'error',
      'index_ahead',
      INDEX_MAP_PATH,
      33,
      `The index reaches position ${map.commitCheckpoint}, beyond the log's end at ${log.end}; the next start rebuilds it.`,
    );
  return map;
}

/**
 * Shape, checksum, order and entries of one table, of which `onShape` is told first. True when the table can be
 * searched.
 */
export async function checkTable(
  run: VerifyRun,
  path: string,
  entries: Pick<LogOfEntries, 'found'>,
  onShape: (shape: TableShape) => void = () => {},
): Promise<boolean> {
  try {
    const { file, shape } = await openTable(run.storage, path);
    onShape(shape);
    try {
      if (!(await checkMd5(file, run.digests, async () => {})))
        run.add(
          'error',
          'md5_mismatch',
          path,
          file.size - 16,
          `The checksum of ${path} does not match its content; delete the index folder to have it rebuilt from the log.`,
        );
    } finally {
      await file.close();
    }
    const bloom = await loadBloom(run, bloomPathOf(path));
    let index = 0;
    let last: [number, number, number, number] = [Infinity, Infinity, Infinity, Infinity];
    for await (const batch of readBatches(run.storage, path)) {
      for (let i = 0; i < batch.count; i++, index++) {
        const entry: [number, number, number, number] = [
          batch.hi[i]!,
          batch.lo[i]!,
          batch.versions[i]!,
          batch.positions[i]!,
        ];
        if (compare(entry, last) > 0) {
          run.add(
            'error',
            'index_disorder',
            path,
            128 + index * shape.entryBytes,
            `Entry ${index} of ${path} is out of order.`,
          );
          return false;
        }
        if (bloom && !bloom.mayContain(entry[0], entry[1]))
          run.add(
            'error',
            'bloom_missing',
            bloomPathOf(path),
            null,
            `The bloom filter of ${path} misses a stream that the table holds (entry ${index}); delete the filter.`,
          );
        last = entry;
      }
      await checkEntriesInLog(run, path, batch, index - batch.count, shape.entryBytes, entries);
    }
    return true;
  } catch (error) {
    run.addError(error, path);
    return false;
  }
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < 4; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return 0;
}

async function checkEntriesInLog(
  run: VerifyRun,
  path: string,
  batch: EntryBatch,
  firstIndex: number,
  entryBytes: number,
  log: Pick<LogOfEntries, 'found'>,
): Promise<void> {
  const order = Array.from({ length: batch.count }, (_, i) => i).sort(
    (a, b) => batch.positions[a]! - batch.positions[b]!,
  );
  for (const i of order) {
    const found = await log.found(batch, i);
    if (found !== FITS && found !== REMOVED)
      run.add(
        'error',
        'index_wrong_entry',
        path,
        128 + (firstIndex + i) * entryBytes,
        `Entry ${firstIndex + i} of ${path} names position ${batch.positions[i]}, ${found}.`,
      );
  }
}

/**
 * Every event up to the index's checkpoint must be found through it. After a scavenge the index may lack the events
 * at the beginning of a stream, which are discarded though their chunk has not been rewritten.
 */
async function checkEventsAreIndexed(
  run: VerifyRun,
  log: ChunkTable,
  map: IndexMap,
  paths: readonly string[],
): Promise<void> {
  const parts = {
    storage: run.storage,
    cache: run.cache,
    log: silentLog,
    budget: new BloomBudget(),
    cacheDepth: 16,
    bloomFilters: false,
  };
  const tables = await Promise.all(paths.map((path) => TableReader.open(path, parts)));
  const fields = new PrepareFields();
  const hash = new Hash64();
  const found = new IndexEntry();
  const search = async (version: number, position: number, table: TableReader, up: boolean): Promise<boolean> =>
    (await untilHit(() =>
      up
        ? table.ceiling(hash.hi, hash.lo, version, position, found)
        : table.floor(hash.hi, hash.lo, version, position, found),
    )) === HIT;
  try {
    await scanLog(log, 0, async (frame) => {
      if (frame.type !== PREPARE || frame.position > map.prepareCheckpoint) return;
      parsePrepare(frame, fields);
      if (!fields.isCommitted || !fields.isEvent) return;
      const { position } = frame;
      const number = fields.eventNumber;
      const stream = streamOf(frame, fields);
      run.hasher.hashUtf8(frame.bytes, fields.streamAt, fields.streamLength, hash);
      for (const table of tables)
        if ((await search(number, position, table, false)) && found.version === number && found.position === position)
          return;
      for (const table of tables) {
        let from = 0;
        let at = 0;
        while ((await search(from, at, table, true)) && found.version < number) {
          from = found.version;
          at = found.position + 1;
          // Another stream may have the same hash.
          if ((await streamAt(run, log, found.position)) !== stream) continue;
          run.add(
            'error',
            'index_missing_event',
            INDEX_MAP_PATH,
            null,
            `The index lacks event ${number} of stream '${stream}' at position ${position}; delete the index folder to have it rebuilt from the log.`,
          );
          return;
        }
      }
    });
  } catch (error) {
    run.addError(error, 'the log');
  } finally {
    for (const table of tables) await table.close();
  }
}

/** Stream of the event at `position`; null when a scavenge has removed it. */
async function streamAt(run: VerifyRun, log: ChunkTable, position: number): Promise<string | null> {
  const frame = new RecordFrame();
  const fields = new PrepareFields();
  if ((await untilHit(() => log.readAt(position, frame))) === END || frame.type !== PREPARE) return null;
  parsePrepare(frame, fields);
  return streamOf(frame, fields);
}

async function loadBloom(run: VerifyRun, path: string): Promise<BloomFilter | null> {
  const size = await run.storage.size(path);
  if (size === null) return null;
  const file = await run.storage.open(path, 'read');
  try {
    const bytes = (await file.read(0, size)).slice();
    if (readBloomHeader(bytes, size) === null) {
      run.add('error', 'bloom_corrupt', path, 0, `${path} has an invalid header or length; delete the file.`);
      return null;
    }
    const corrupt = checkLines(bytes, LINE_BYTES, size);
    if (corrupt > 0)
      run.add(
        'error',
        'bloom_corrupt',
        path,
        null,
        `${corrupt} lines of ${path} do not match their checksums; delete the file.`,
      );
    return new BloomFilter(bytes);
  } finally {
    await file.close();
  }
}

/** The existence filter must know every stream with a record below its checkpoint. */
async function checkExistence(run: VerifyRun, log: ChunkTable): Promise<void> {
  const size = await run.storage.size(EXISTENCE_CHECKPOINT_PATH);
  if (size !== 8 || (await run.storage.size(EXISTENCE_DATA_PATH)) === null) return;
  const file = await run.storage.open(EXISTENCE_CHECKPOINT_PATH, 'read');
  const checkpoint = i64(await file.read(0, 8), 0);
  await file.close();
  if (checkpoint < 0) return;
  const filter = await loadBloom(run, EXISTENCE_DATA_PATH);
  if (filter === null) return;
  const fields = new PrepareFields();
  const hash = new Hash64();
  try {
    await scanLog(log, 0, (frame) => {
      if (frame.type !== PREPARE || frame.position >= checkpoint) return;
      parsePrepare(frame, fields);
      run.hasher.hashUtf8(frame.bytes, fields.streamAt, fields.streamLength, hash);
      if (!filter.mayContain(hash.hi, hash.lo))
        run.add(
          'error',
          'existence_missing',
          EXISTENCE_DATA_PATH,
          null,
          `The stream existence filter misses stream '${streamOf(frame, fields)}', which has a record at ${frame.position}; delete the stream-existence folder.`,
        );
    });
  } catch (error) {
    run.addError(error, 'the log');
  }
}
