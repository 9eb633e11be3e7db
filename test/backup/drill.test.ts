import { beforeAll, describe, expect, it } from 'vitest';
import { drillBackup, type DrillOptions, type DrillStorage } from '../../core/backup/drill/drill.ts';
import { BACKUP_JOBS, DRILL_JOB, type DrillArgs } from '../../core/backup/jobs/jobs.ts';
import { lastProven } from '../../core/backup/notes/notes.ts';
import { blobKeyOf } from '../../core/backup/repository/repository.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { verifyDirectory, type VerifySummary } from '../../core/integrity/integrity.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { type History, playHistory } from '../support/backup/restore-history.ts';
import { restoreWorld } from '../support/backup/restore-kit.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { readRawLog } from '../scavenge/raw-log.ts';

let history: History;

beforeAll(async () => {
  history = await playHistory({ seed: 71, parts: 2, writes: 40, scavenges: false });
});

/** What a drill is given, and the scratch places that it asked for and removed. */
function drilling(storage = new MemoryStorage()): {
  options: DrillOptions;
  places: MemoryStorage[];
  removed: MemoryStorage[];
} {
  const places: MemoryStorage[] = [];
  const removed: MemoryStorage[] = [];
  const scratch = async (): Promise<DrillStorage> => {
    places.push(storage);
    return {
      storage,
      remove: async () => {
        removed.push(storage);
      },
    };
  };
  const { ids, clock, digests, start } = restoreWorld(storage);
  return { options: { ids, clock, digests, start, repository: history.repository, scratch }, places, removed };
}

async function countsOf(storage: MemoryStorage): Promise<VerifySummary> {
  const run = verifyDirectory({ storage, digests: nodeDigests, clock: new ManualClock(TEST_NOW_MS, 'microtask') });
  for (;;) {
    const next = await run.next();
    if (next.done === true) return next.value;
  }
}

describe('a drill', () => {
  it('restores, opens and counts, notes the backup as proven, and removes everything', async () => {
    expect(await lastProven(history.repository)).toBe(null);
    const { options, places, removed } = drilling();
    const phases = new Set<string>();
    const report = await drillBackup({
      ...options,
      onProgress: ({ phase }) => {
        phases.add(phase);
      },
    });
    const { manifest } = history.pasts.at(-1)!;
    const { chunks, records, events, indexEntries } = await countsOf(history.storage as MemoryStorage);
    expect(report).toMatchObject({
      backupId: manifest.id,
      position: manifest.checkpoints.writer,
      chunks,
      records,
      events,
      indexEntries,
      isProven: true,
      findings: [],
      warnings: [],
    });
    expect(report.restoreMs).toBeGreaterThanOrEqual(0);
    expect([...phases]).toEqual(['copying', 'opening', 'verifying']);
    expect(removed).toEqual(places);
    expect(places.length).toBe(1);
    expect(await lastProven(history.repository)).toEqual({
      backupId: manifest.id,
      provenMs: TEST_NOW_MS,
      position: manifest.checkpoints.writer,
    });
  });

  it('of an older backup notes that one', async () => {
    const { manifest } = history.pasts[0]!;
    expect(await drillBackup({ ...drilling().options, choice: { kind: 'backup', id: manifest.id } })).toMatchObject({
      backupId: manifest.id,
      isProven: true,
    });
    expect(await lastProven(history.repository)).toMatchObject({ backupId: manifest.id });
  });

  it('of a damaged backup proves nothing, names the object, and removes what it made', async () => {
    const proven = await lastProven(history.repository);
    const { blob } = history.pasts.at(-1)!.manifest.chunks[1]!;
    const bytes = (await history.objects.get(blobKeyOf(blob)))!;
    const broken = bytes.slice();
    broken[broken.length - 900]! ^= 4;
    await history.objects.put(blobKeyOf(blob), broken);
    try {
      const { options, places, removed } = drilling();
      await expect(drillBackup(options)).rejects.toMatchObject({
        code: 'repository_damaged',
        data: { key: blobKeyOf(blob) },
      });
      expect(removed).toEqual(places);
    } finally {
      await history.objects.put(blobKeyOf(blob), bytes);
    }
    expect(await lastProven(history.repository)).toEqual(proven);
  });

  it('as a job waits for nothing, whatever the store that it opens does now and then', async () => {
    const storage = new MemoryStorage();
    const jobs = new InlineJobs({
      jobs: BACKUP_JOBS,
      storage,
      digests: nodeDigests,
      ids: new SeededIds(8),
      clock: new ManualClock(TEST_NOW_MS, 'microtask'),
      backup: { keys: nodeKeys, compression: nodeCompression, openObjects: async () => history.objects },
    });
    const args: DrillArgs = {
      place: { kind: 'directory', path: 'unused' },
      key: null,
      compression: 'auto',
      backupId: null,
      nowMs: TEST_NOW_MS,
    };
    // The clock stands still.
    expect(await jobs.run(DRILL_JOB, args)).toMatchObject({
      backupId: history.pasts.at(-1)!.manifest.id,
      isProven: true,
    });
    await jobs.close();
  });

  it('that finds errors in what it restored does not prove the backup', async () => {
    const proven = await lastProven(history.repository);
    const { repository } = history;
    // A chunk with a record whose event number was changed before the MD5 was made: it opens, but the index says
    // something else.
    const { manifest } = history.pasts.at(-1)!;
    const chunk = manifest.chunks[0]!;
    const bytes: number[] = [];
    for await (const piece of repository.readBlob(chunk)) bytes.push(...piece);
    const changed = Uint8Array.from(bytes);
    const record = (await readRawLog(history.storage)).find(({ prepare }) => prepare?.stream === 'a')!;
    changed[128 + record.position + 4 + 24]! ^= 0x20;
    const md5 = nodeDigests.md5();
    md5.update(changed.subarray(0, changed.length - 16));
    const digest = md5.finish();
    changed.set(digest, changed.length - 16);
    const { blob } = await repository.writeBlob(changed.length, async function* content() {
      yield changed;
    });
    const id = 'eeeeeeee-0000-4000-8000-000000000001';
    await repository.putManifest({
      ...manifest,
      id,
      chunks: [{ ...chunk, blob, md5: Buffer.from(digest).toString('hex') }, ...manifest.chunks.slice(1)],
    });
    const { options, places, removed } = drilling();
    const report = await drillBackup({ ...options, choice: { kind: 'backup', id } });
    expect(report).toMatchObject({ backupId: id, isProven: false });
    expect(report.findings.some(({ severity }) => severity === 'error')).toBe(true);
    expect(removed).toEqual(places);
    expect(await lastProven(repository)).toEqual(proven);
    await repository.removeManifest(id);
  });
});
