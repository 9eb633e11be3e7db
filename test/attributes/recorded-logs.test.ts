import { describe, expect, it } from 'vitest';
import { Attributes } from '../../core/attributes/attributes.ts';
import { BlockCache } from '../../core/cache/cache.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { silentLog } from '../../core/ports/log.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { decodeText } from '../../core/base/text.ts';
import { ANY } from '../../core/streams/api.ts';
import { collectingLog, md5Hex } from '../index/world.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { contentOf, openTestLog, putFile } from '../log/kit.ts';
import { installFiles, ORACLE_SETS, unpackSet } from '../support/fixtures.ts';
import { differences, naive, newEvent, openIndexed, set } from './world.ts';

/** The existence filter of `fresh` is 273 MB of zeros. */
const SMALL_SETS = ORACLE_SETS.filter((name) => name !== 'fresh' && !name.startsWith('random-a'));
const OPTIONS = { attributes: { memTableEntriesMax: 200 } };

async function install(name: string): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet(name));
  return storage;
}

/** Builds the index up to the end of the recorded log, without a new epoch behind it. */
async function openStoreOnce(storage: MemoryStorage): Promise<{ close(): Promise<void> }> {
  const log = await openTestLog(storage);
  const ids = new SeededIds(9);
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const attributes = new Attributes({
    world: {
      storage,
      clock,
      ids,
      digests: nodeDigests,
      jobs: new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock }),
      log: silentLog,
    },
    cache: new BlockCache(8_388_608),
    log: log.table,
    lastEpoch: log.checkpoints.epoch.value,
    settings: OPTIONS.attributes,
  });
  attributes.begin({ names: true, correlations: false, tags: false });
  await attributes.idle();
  return {
    async close() {
      await attributes.close(true);
      await log.close();
    },
  };
}

describe('attribute indexes of directories recorded from the reference', () => {
  it.each(SMALL_SETS)('%s: have each event, also those of explicit transactions', async (name) => {
    const storage = await install(name);
    const open = await openIndexed({ storage, ...OPTIONS });
    await set(open.store, { correlations: true, tags: true });
    await open.attributes!.idle();
    expect(await differences(open)).toEqual([]);
    expect((await naive(open, 'names')).size).toBeGreaterThan(3);
    await open.close();
    const lines: string[] = [];
    const again = await openIndexed({ storage, ...OPTIONS, seed: 2, log: collectingLog(lines) });
    expect(await differences(again)).toEqual([]);
    expect(lines.filter((line) => line.includes('attribute'))).toEqual([]);
    await again.close();
  });

  it('stay with a log that another program went on with, and leave one that it never was', async () => {
    for (const [from, to, why] of [
      ['orders-1-before', 'orders-3-grown', ''],
      ['transactions-1-before', 'orders-1-before', 'another log'],
      ['transactions-1-before', 'transactions-3-scavenged', ''],
    ] as const) {
      const storage = await install(from);
      await (await openStoreOnce(storage)).close();
      const log = await install(to);
      for (const name of await storage.list('attributes/names'))
        await putFile(log, `attributes/names/${name}`, await contentOf(storage, `attributes/names/${name}`));
      const lines: string[] = [];
      const open = await openIndexed({ storage: log, ...OPTIONS, seed: 3, log: collectingLog(lines) });
      const told = lines.filter((line) => line.includes('attribute'));
      if (why === '') expect(told).toEqual([]);
      else expect(told.join()).toContain(why);
      expect(await differences(open, true)).toEqual([]);
      await open.close();
      expect((await contentOf(log, 'attributes/names/indexmap')).length).toBeGreaterThan(0);
    }
  });

  it.each(SMALL_SETS)('%s: leave all else as it is where none can be written', async (name) => {
    const left: string[] = [];
    for (const isWritten of [true, false]) {
      const storage = await install(name);
      const create = storage.create.bind(storage);
      storage.create = (path) =>
        isWritten || !path.startsWith('attributes/') ? create(path) : Promise.reject(new Error('no room'));
      const open = await openTestStore({ storage, chunkSizeBytes: 65_536, ...OPTIONS });
      // The same ids each time: the reference would read these events, too.
      for (let i = 0; i < 30; i++) {
        const id = `22222222-0000-4000-8000-${String(i).padStart(12, '0')}`;
        await open.store.append(`beside-${i % 3}`, ANY, [{ ...newEvent('Added'), id }]);
      }
      if (isWritten) await open.attributes!.idle();
      expect(open.status().attributes[0]!.state).toBe(isWritten ? 'live' : 'building');
      await open.close();
      const files = await elsewhere(storage);
      expect(files.filter((line) => !isKnownToReference(line))).toEqual([]);
      left.push(files.join('\n'));
    }
    expect(left[1]).toBe(left[0]);
  });
});

/** Names of tables differ from run to run, with the ids that are drawn. */
const TABLE_NAME = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

/** All files but those of attribute indexes, with what is in them but for drawn ids, and the records of the log. */
async function elsewhere(storage: MemoryStorage): Promise<string[]> {
  const lines: string[] = [];
  for (const folder of ['', 'index', 'index/stream-existence'])
    for (const file of await storage.list(folder)) {
      const path = folder === '' ? file : `${folder}/${file}`;
      const bytes = await contentOf(storage, path);
      // A map has an MD5 of its text in front; block sums are of chunks, whose records have drawn ids.
      const seen = /^chunk-|^block-sums$/.test(path)
        ? String(bytes.length)
        : /indexmap$|proven-tables$/.test(path)
          ? decodeText(bytes.subarray(32)).replaceAll(TABLE_NAME, 'T')
          : md5Hex(bytes);
      lines.push(`${path.replaceAll(TABLE_NAME, 'T')} ${seen}`);
    }
  for (const { position, bytes, prepare } of await readRawLog(storage))
    lines.push(`chunk-000000.000000 ${position} ${bytes.length} ${JSON.stringify(prepare)}`);
  return lines.toSorted();
}

/** What the reference writes, and what of ours it leaves alone. */
const isKnownToReference = (line: string): boolean =>
  /^(?:chunk-\d{6}\.\d{6}|\w+\.chk|block-sums|index\/(?:indexmap|proven-tables|T(?:\.bloomfilter)?|stream-existence\/streamExistenceFilter\.(?:chk|dat))) /.test(
    line,
  );
