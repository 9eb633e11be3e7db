import { createHash } from 'node:crypto';
import type { RestoreOptions } from '../../../core/backup/restore/restore.ts';
import { createBackup } from '../../../core/backup/create/create.ts';
import type { Manifest } from '../../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../../core/backup/repository/api.ts';
import type { RestoreWorld } from '../../../core/backup/restore/restore-files.ts';
import { snapshotOfDirectory } from '../../../core/store/snapshot/snapshot.ts';
import { JOBS } from '../../../core/jobs/jobs.ts';
import { InlineJobs } from '../../../core/memory/inline-jobs.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import { verifyDirectory } from '../../../core/integrity/integrity.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { readRawLog } from '../../scavenge/raw-log.ts';
import { ManualClock } from '../manual-clock.ts';
import { SeededIds } from '../seeded-ids.ts';
import { TEST_NOW_MS } from '../test-store.ts';

/** A backup of a stopped directory. `number` says which one it is: its id follows from it, and its time by default. */
export async function backUp(
  storage: Storage,
  repository: Repository,
  number: number,
  nowMs = TEST_NOW_MS + number * 1_000,
): Promise<Manifest> {
  const clock = new ManualClock(nowMs, 'microtask');
  const ids = new SeededIds(1_000 + number);
  const source = await snapshotOfDirectory({ storage, clock, ids, digests: nodeDigests, log: silentLog });
  try {
    return (
      await createBackup({
        source,
        repository,
        cause: 'manual',
        clock,
        ids,
        digests: nodeDigests,
        backupId: backupId(number),
      })
    ).manifest;
  } finally {
    await source.release();
  }
}

/** Milliseconds since 1970 of a record's timestamp, read apart from the code under test. */
export function timeOf(record: Buffer): number {
  const ms = (at: number): number => Number(record.readBigInt64LE(at) / 10_000n) - 62_135_596_800_000;
  if (record[0] === 1) return ms(record.length - 8);
  if (record[0] === 2) return ms(10);
  let at = 24 + (record[1] === 1 ? 8 : 4);
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = record[at++]!;
    length |= (byte & 127) << shift;
    if (byte < 128) break;
  }
  return ms(at + length + 32);
}

export function restoreWorld(target: Storage, seed = 50): RestoreWorld {
  const ids = new SeededIds(seed);
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const jobs = new InlineJobs({ jobs: JOBS, storage: target, digests: nodeDigests, ids, clock });
  return {
    target,
    ids,
    clock,
    digests: nodeDigests,
    start: { jobs, log: silentLog, meter: silentMeter, existenceFilterBytes: 10_000, cacheBytes: 16 * 1024 * 1024 },
  };
}

export function restoreOptions(
  repository: Repository,
  target: Storage,
  options: Partial<RestoreOptions> = {},
): RestoreOptions {
  return { ...restoreWorld(target), repository, choice: { kind: 'latest' }, ...options };
}

/** What `skua verify` would say, errors and warnings; a log without events has no index. */
export async function verifyErrors(storage: Storage): Promise<string[]> {
  const wrong: string[] = [];
  for await (const message of verifyDirectory({
    storage,
    digests: nodeDigests,
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
  })) {
    if (message.kind === 'finding' && !message.message.startsWith('There is no index map'))
      wrong.push(`${message.severity} ${message.file}: ${message.message}`);
  }
  return wrong;
}

/** One line for each record: its position and a digest. */
export async function logText(storage: Storage): Promise<string[]> {
  return (await readRawLog(storage)).map(
    ({ position, bytes }) => `${position} ${createHash('md5').update(bytes, 'latin1').digest('hex')}`,
  );
}

/** A UUID that ends in the number. */
export function backupId(number: number): string {
  return `bbbbbbbb-0000-4000-8000-${String(number).padStart(12, '0')}`;
}
