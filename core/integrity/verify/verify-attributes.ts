import { ATTRIBUTE_INDEXES, type AttributeIndexName, type AttributeSink } from '../../attributes/api.ts';
import { LogAnchors } from '../../attributes/format/anchor.ts';
import { attributeFolder } from '../../attributes/format/attribute-folders.ts';
import { LogOfAttributes } from '../../attributes/format/log-of-attributes.ts';
import { AttributeIntake } from '../../attributes/intake/intake.ts';
import { isSkuaError } from '../../base/errors.ts';
import { HIT, untilHit } from '../../base/step.ts';
import { IndexEntry } from '../../index/format/entries.ts';
import { type IndexMap, loadIndexMap, mapPathOf } from '../../index/format/index-map.ts';
import { BloomBudget } from '../../index/format/table-bloom.ts';
import { POSITION_TABLE_VERSION, tableCorrupt } from '../../index/format/table-format.ts';
import { openTable } from '../../index/format/table-scan.ts';
import { verifyTable } from '../../index/jobs/jobs.ts';
import { TableReader } from '../../index/tables/tables.ts';
import type { ChunkTable } from '../../log/api.ts';
import { scanLog } from '../../log/chunk-table/chunk-table.ts';
import { silentLog } from '../../ports/log.ts';
import { checkTable } from './verify-index.ts';
import type { VerifyFinding, VerifyNote, VerifyProgress, VerifyRun } from './verify-run.ts';

/** An attribute index whose tables are sound by themselves. */
interface SoundIndex {
  readonly name: AttributeIndexName;
  readonly map: IndexMap;
  readonly paths: readonly string[];
}

/**
 * Checks the attribute indexes by themselves and against the log, in both directions. What the next start finds is a
 * warning, since it builds such an index anew; what it would not find, and would hide events, is an error.
 */
export async function* verifyAttributes(
  run: VerifyRun,
  log: ChunkTable,
): AsyncGenerator<VerifyFinding | VerifyNote | VerifyProgress, void> {
  const sound: SoundIndex[] = [];
  for (const name of ATTRIBUTE_INDEXES) {
    const map = await readMap(run, log, name);
    yield* run.take();
    if (map === null) continue;
    const paths = map.levels.flat().map((table) => `${attributeFolder(name)}/${table}`);
    if (yield* checkTables(run, log, paths)) sound.push({ name, map, paths });
  }
  if (sound.length > 0) await checkEventsHaveEntries(run, log, sound);
  yield* run.take();
}

const ANEW = 'The next start builds the index anew.';

async function readMap(run: VerifyRun, log: ChunkTable, name: AttributeIndexName): Promise<IndexMap | null> {
  const folder = attributeFolder(name);
  const path = mapPathOf(folder);
  try {
    const map = await loadIndexMap(run.storage, run.digests, folder);
    if (map === null || map.commitCheckpoint < 0) return null;
    const { commitCheckpoint: end } = map;
    const why =
      end >= log.end
        ? `it reaches position ${end}, beyond the log's end at ${log.end}`
        : await new LogAnchors(log, -1).whyAnother(end, map.anchor);
    if (why === null) return map;
    run.add('warning', 'attribute_index_of_another_log', path, null, `${path} is of another log: ${why}. ${ANEW}`);
  } catch (error) {
    addDamage(run, path, error);
  }
  return null;
}

function addDamage(run: VerifyRun, path: string, error: unknown): void {
  if (!isSkuaError(error)) throw error;
  run.add('warning', 'attribute_index_damaged', path, null, `${error.message} ${ANEW}`);
}

/** True where all can be searched. */
async function* checkTables(
  run: VerifyRun,
  log: ChunkTable,
  paths: readonly string[],
): AsyncGenerator<VerifyFinding | VerifyNote | VerifyProgress, boolean> {
  let bytesTotal = 0;
  for (const path of paths) bytesTotal += (await run.storage.size(path)) ?? 0;
  let bytesDone = 0;
  let areSound = true;
  for (const path of paths) {
    const wrong = await faultOf(run, path);
    if (wrong !== null) run.add('warning', 'attribute_index_damaged', path, null, `${wrong} ${ANEW}`);
    areSound = wrong === null && (await checkTable(run, path, new LogOfAttributes(log))) && areSound;
    yield* run.take();
    bytesDone += (await run.storage.size(path)) ?? 0;
    yield { kind: 'progress', phase: 'index', bytesDone, bytesTotal };
  }
  return areSound;
}

/** What is wrong with a table by itself; null where it is sound. */
async function faultOf({ storage, digests }: VerifyRun, path: string): Promise<string | null> {
  const wrong = await verifyTable(
    { path },
    { storage, digests, progress() {}, async checkpoint() {}, monotonicMs: () => 0, async sleep() {} },
  );
  if (wrong !== null) return wrong;
  const { file, shape } = await openTable(storage, path);
  await file.close();
  if (shape.version === POSITION_TABLE_VERSION) return null;
  return tableCorrupt(path, `is of version ${shape.version}, which is that of another index`).message;
}

/** Collects what a record must have. */
class Wanted implements AttributeSink {
  readonly hi: number[] = [];
  readonly lo: number[] = [];

  add(hi: number, lo: number): void {
    this.hi.push(hi);
    this.lo.push(lo);
  }

  end(): void {}

  clear(): void {
    this.hi.length = this.lo.length = 0;
  }
}

/** Every event up to the map's end must be found by each of its attributes. */
async function checkEventsHaveEntries(run: VerifyRun, log: ChunkTable, indexes: readonly SoundIndex[]): Promise<void> {
  const parts = {
    storage: run.storage,
    cache: run.cache,
    log: silentLog,
    budget: new BloomBudget(),
    cacheDepth: 16,
    bloomFilters: false,
  };
  const checks: { index: SoundIndex; tables: TableReader[]; wanted: Wanted; isWhole: boolean }[] = [];
  const found = new IndexEntry();
  const has = async (table: TableReader, hi: number, lo: number, position: number): Promise<boolean> =>
    (await untilHit(() => table.floor(hi, lo, position, position, found))) === HIT && found.position === position;
  try {
    for (const index of indexes) {
      const tables: TableReader[] = [];
      checks.push({ index, tables, wanted: new Wanted(), isWhole: true });
      for (const path of index.paths) tables.push(await TableReader.open(path, parts));
    }
    const wantedOf = (name: AttributeIndexName): Wanted | null =>
      checks.find(({ index }) => index.name === name)?.wanted ?? null;
    const intake = new AttributeIntake({
      names: wantedOf('names'),
      correlations: wantedOf('correlations'),
      tags: wantedOf('tags'),
    });
    await scanLog(log, 0, async (frame) => {
      const { position } = frame;
      await intake.visit(frame, log);
      for (const check of checks) {
        const { index, tables, wanted } = check;
        for (let i = 0; check.isWhole && position <= index.map.commitCheckpoint && i < wanted.hi.length; i++) {
          let isThere = false;
          for (const table of tables) isThere ||= await has(table, wanted.hi[i]!, wanted.lo[i]!, position);
          if (isThere) continue;
          check.isWhole = false;
          const folder = attributeFolder(index.name);
          run.add(
            'error',
            'attribute_index_missing_event',
            mapPathOf(folder),
            null,
            `The attribute index lacks an entry of the event that the record at position ${position} commits, and maybe others; delete the folder ${folder} to have it built anew from the log.`,
          );
        }
        wanted.clear();
      }
    });
  } catch (error) {
    run.addError(error, 'the log');
  } finally {
    for (const { tables } of checks) for (const table of tables) await table.close();
  }
}
