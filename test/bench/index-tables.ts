import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { INDEX_FOLDER, loadIndexMap, newGuid, saveIndexMap } from '../../core/index/format/index-map.ts';
import { bloomPathOf } from '../../core/index/format/table-format.ts';
import { TableWriter } from '../../core/index/format/table-writer.ts';
import type { JobContext } from '../../core/ports/jobs.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { newEvent } from './events.ts';
import { openFolder } from './open-folder.ts';
import { PROBE_STREAM } from './shared-log.ts';

/** Levels of the two tables: different ones, so that they are merged when that is asked for only. */
const LEVELS = [3, 4] as const;
/** Entries of one hash. */
const ENTRIES_A_HASH = 4;
const CACHE_DEPTH = 16;

/**
 * A stopped directory whose log is nearly empty and whose index has two tables of `entries` entries in all, which stand
 * for no events: they are written as tables, and nobody asks for their streams. Built once a run.
 */
export async function largeIndex(folder: string, entries: number, say: (line: string) => void): Promise<void> {
  if (existsSync(`${folder}.complete`)) return;
  say(`  building index tables of ${entries} entries ...`);
  await rm(folder, { recursive: true, force: true });
  const open = await openFolder(folder);
  await open.store.append(PROBE_STREAM, ANY, [newEvent(0)]);
  await open.close();
  const storage = new FilesystemStorage({ root: folder });
  const map = (await loadIndexMap(storage, nodeDigests))!;
  const levels: string[][] = map.levels.map((names) => [...names]);
  for (const level of LEVELS) {
    while (levels.length <= level) levels.push([]);
    levels[level]!.push(await writeTable(storage, Math.floor(entries / LEVELS.length), level));
  }
  await saveIndexMap({ ...map, levels }, storage, nodeDigests, systemIds);
  await writeFile(`${folder}.complete`, '');
}

/** Writes a table whose hashes are spread evenly, and differ from those of another `salt`. */
async function writeTable(storage: FilesystemStorage, entries: number, salt: number): Promise<string> {
  const name = newGuid(systemIds);
  const path = `${INDEX_FOLDER}/${name}`;
  const writer = await TableWriter.create({ path, bloomPath: bloomPathOf(path), entries, cacheDepth: CACHE_DEPTH }, {
    storage,
    digests: nodeDigests,
    async checkpoint() {},
  } as unknown as JobContext);
  const step = Math.floor(2 ** 32 / Math.ceil(entries / ENTRIES_A_HASH));
  for (let n = 0; n < entries; n++) {
    if (writer.room === 0) await writer.drain();
    const hash = Math.floor(n / ENTRIES_A_HASH);
    writer.add(
      0xffff_ffff - hash * step - salt,
      Math.imul(hash, 0x9e3779b1) >>> 0,
      ENTRIES_A_HASH - 1 - (n % ENTRIES_A_HASH),
      n,
    );
  }
  await writer.finish();
  return name;
}
