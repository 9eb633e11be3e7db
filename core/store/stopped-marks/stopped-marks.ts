import { brokenInvariant } from '../../base/errors.ts';
import { streamHasher } from '../../base/stream-hash.ts';
import { BlockCache } from '../../cache/cache.ts';
import { LogOfEntries } from '../../index/format/of-log.ts';
import { StreamIndex } from '../../index/index.ts';
import type { TransactionLog } from '../../log/api.ts';
import { scanLog } from '../../log/chunk-table/chunk-table.ts';
import { parsePrepare, PREPARE, PrepareFields, streamOf } from '../../log/format/records.ts';
import { MemoryStorage } from '../../memory/memory-storage.ts';
import { OverStorage } from '../../memory/over-storage.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Jobs } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import type { MarkColumns } from '../../streams/api.ts';
import { committedMark } from '../../streams/committed/committed.ts';
import { MARKS_STREAM } from '../../streams/format/marks.ts';
import { shownData } from '../../streams/format/retention.ts';
import { loadMarks } from '../../streams/load-marks/load-marks.ts';
import { Lookup } from '../../streams/lookup/lookup.ts';
import { allMarks, findRestored, restoredColumns } from '../restored-marks/restored-marks.ts';

/** With so many tables a level is not full, so that none is merged. */
const TABLES_PER_LEVEL = 100;
const NO_JOBS: Jobs = {
  run: (name) => Promise.reject(brokenInvariant(`The job ${name} was to run where an index is only looked into`, {})),
  close: async () => {},
};

interface StoppedWorld {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly log: Log;
}

/**
 * All marks of redaction of a directory that no node has open, but this log of it: those that its index tables know,
 * those behind them, and those that a restore left. Where there is no index, the whole log is read. Nothing is written.
 */
export async function marksOfStopped(world: StoppedWorld, { table, end }: TransactionLog): Promise<MarkColumns> {
  // An index removes what it finds damaged.
  const storage = new OverStorage(world.storage, new MemoryStorage());
  const entries = new LogOfEntries(table, streamHasher);
  const index = await StreamIndex.open({
    ports: { ...world, storage, jobs: NO_JOBS, cache: new BlockCache(0) },
    settings: { existenceFilterBytes: 0, verify: false, tablesPerLevelMax: TABLES_PER_LEVEL },
    logEnd: end,
    whyAnother: (path) => entries.whyAnother(storage, path),
  });
  try {
    const lookup = new Lookup(table, index);
    const { redactions } = lookup;
    await loadMarks(lookup, redactions, world.clock);
    const fields = new PrepareFields();
    await scanLog(table, Math.max(0, index.commitCheckpoint), (frame) => {
      if (frame.type !== PREPARE) return;
      parsePrepare(frame, fields);
      if (!fields.isCommitted || !fields.isEvent || streamOf(frame, fields) !== MARKS_STREAM) return;
      if (fields.eventNumber < redactions.loadedTo) return;
      const found = committedMark(shownData(frame, fields), frame.position);
      if (found !== null) redactions.add(found.mark, found.position);
    });
    const restored = await findRestored({ ...world, storage, reader: table, known: redactions });
    return allMarks(redactions, restoredColumns(restored ?? []));
  } finally {
    await index.close();
  }
}
