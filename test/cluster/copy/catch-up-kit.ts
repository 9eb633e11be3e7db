import { expect } from 'vitest';
import { readLogId } from '../../../core/cluster/copy/identity.ts';
import { prepareCopy, type PreparedCopy } from '../../../core/cluster/copy/prepare-copy.ts';
import type { ObjectInstance } from '../../../core/object-log/api.ts';
import { openObjectStore } from '../../../core/object-log/instance/instance.ts';
import { startScavenge } from '../../../core/object-log/tick/control.ts';
import { MemoryObjects } from '../../../core/ports/memory-objects.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { silentLog } from '../../../core/ports/log.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import { ANY } from '../../../core/streams/api.ts';
import { verifyDirectory, type VerifySummary } from '../../../core/verify/verify.ts';
import { nodeDigests } from '../../../infra/digests.ts';
import { AutoClock } from '../../object-log/auto-clock.ts';
import { CHUNK_BYTES, compactionTick, eventsOf, exportDirectory, manifestOf, newClock, runTick, setMetadata, worldOf } from '../../object-log/tick-kit.ts';
import { type RawRecord, readRawLog } from '../../scavenge/raw-log.ts';
import { SeededIds } from '../../support/seeded-ids.ts';

export { CHUNK_BYTES, manifestOf };

/** A log in a bucket that grows, is compacted and scavenged as a test says. */
export class TestLog {
  readonly clock = new AutoClock();
  readonly objects = new MemoryObjects({ clock: this.clock });
  readonly ids = new SeededIds(3);
  #seed = 10;
  #writer: ObjectInstance | null = null;

  static async begin(): Promise<TestLog> {
    const log = new TestLog();
    await compactionTick(log.world());
    const writer = await log.writer();
    await setMetadata(writer.store, log.ids, 'short', { $maxCount: 2 });
    return log;
  }

  world() {
    return worldOf(this.objects, this.clock, this.#seed++);
  }

  async writer(): Promise<ObjectInstance> {
    this.#writer ??= await openObjectStore(worldOf(this.objects, this.clock, 2), { chunkSizeBytes: CHUNK_BYTES });
    return this.#writer;
  }

  /** Some 9 000 bytes of log a round, most of which a scavenge removes. */
  async write(rounds: number): Promise<void> {
    const { store } = await this.writer();
    for (let i = 0; i < rounds; i++) {
      await store.append('short', ANY, eventsOf(this.ids, 3, 2_500));
      await store.append(`kept-${i % 5}`, ANY, eventsOf(this.ids, 1, 1_000));
    }
  }

  compact(): Promise<unknown> {
    return compactionTick(this.world());
  }

  /** Runs a scavenge of the bucket to its end. */
  async scavenge(): Promise<void> {
    await startScavenge(this.world());
    for (let ticks = 0; ticks < 100; ticks++) {
      const { scavenge } = await runTick(this.world());
      if (scavenge?.state === 'ended' && scavenge.isTold) break;
    }
    await this.refresh();
  }

  async refresh(): Promise<void> {
    await (await this.writer()).refresh();
  }

  /** All records that the newest manifest names, by position. */
  async records(): Promise<Map<number, RawRecord>> {
    return byPosition(await readRawLog(await exportDirectory(this.objects, false)));
  }
}

export function byPosition(records: readonly RawRecord[]): Map<number, RawRecord> {
  return new Map(records.map((record) => [record.position, record]));
}

/** Prepares a copy with the newest manifest, by a member whose time stands still. */
export async function prepare(storage: Storage, objects: ObjectStore, seed = 900): Promise<PreparedCopy> {
  const world = { objects, clock: newClock(), ids: new SeededIds(seed), digests: nodeDigests, log: silentLog, meter: silentMeter };
  return prepareCopy({ storage, world, manifest: await manifestOf(objects as MemoryObjects), signal: new AbortController().signal });
}

/** What the project's own verify has to say about a directory. */
export async function findingsOf(storage: Storage): Promise<{ readonly findings: string[]; readonly summary: VerifySummary }> {
  const findings: string[] = [];
  const run = verifyDirectory({ storage, digests: nodeDigests, clock: newClock() });
  for (;;) {
    const next = await run.next();
    if (next.done === true) return { findings, summary: next.value };
    if (next.value.kind === 'finding' && next.value.code !== 'leftover_file') findings.push(`${next.value.severity} ${next.value.code} ${next.value.file}`);
  }
}

/** Records of the bucket that a copy lacks or has otherwise, and records of its own. */
export function differences(copy: ReadonlyMap<number, RawRecord>, bucket: ReadonlyMap<number, RawRecord>): string[] {
  const wrong: string[] = [];
  for (const [position, { bytes }] of bucket) {
    const own = copy.get(position);
    if (own === undefined) wrong.push(`${position} is missing`);
    else if (own.bytes !== bytes) wrong.push(`${position} is another record`);
  }
  return wrong;
}

/** The directory holds what the bucket's newest manifest names, names its log, and the project's own verify finds nothing wrong with it. */
export async function expectCopy(storage: Storage, { manifest, end }: PreparedCopy, log: TestLog, name = ''): Promise<void> {
  const newest = await manifestOf(log.objects);
  expect(manifest.number, name).toBe(newest.number);
  expect(end, name).toBeGreaterThanOrEqual(newest.logEnd);
  expect(await readLogId(storage), name).toBe(newest.storeId);
  expect(differences(byPosition(await readRawLog(storage)), await log.records()), name).toEqual([]);
  const { findings } = await findingsOf(storage);
  expect(findings.filter((found) => !found.startsWith('warning index_missing')), name).toEqual([]);
}
