import { expect } from 'vitest';
import { readLogId, removeLogId } from '../../../core/cluster/replica/identity/identity.ts';
import type { MemberStore } from '../../../core/cluster/replica/replica.ts';
import { prepareReplica, type PreparedReplica } from '../../../core/cluster/replica/prepare-replica.ts';
import type { ObjectInstance } from '../../../core/shared-log/api.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { manifestKey } from '../../../core/shared-log/format/object-keys.ts';
import { encodeManifest } from '../../../core/shared-log/format/manifest.ts';
import { startScavenge } from '../../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { listAll, type ObjectStore } from '../../../core/ports/object-store.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import { ANY } from '../../../core/streams/api.ts';
import { verifyDirectory, type VerifySummary } from '../../../core/integrity/integrity.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { AutoClock } from '../../shared-log/auto-clock.ts';
import {
  CHUNK_BYTES,
  compactionTick,
  eventsOf,
  exportDirectory,
  manifestOf,
  newClock,
  runTick,
  setMetadata,
  worldOf,
} from '../../shared-log/tick-kit.ts';
import { type RawRecord, readRawLog } from '../../scavenge/raw-log.ts';
import { FaultyStorage } from '../../support/faulty-storage.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { checkpoint } from '../../log/kit.ts';
import { openMember as openMemberOver } from './kit.ts';

export { CHUNK_BYTES, manifestOf };

/** A log in a bucket that grows, is compacted and scavenged as a test says. */
export class TestLog {
  readonly clock = new AutoClock();
  readonly objects: MemoryObjects = new MemoryObjects({ clock: this.clock });
  readonly ids = new SeededIds(3);
  #records: Promise<Map<number, RawRecord>> | null = null;
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

  /**
   * Runs a scavenge of the bucket to its end: one of its own, or, where a member has been there, to the point of a
   * member that is scavenged.
   */
  async scavenge(): Promise<void> {
    const before = await manifestOf(this.objects);
    if (before.cluster === true) {
      const member = await openMember(new MemoryStorage(), this, this.#seed++);
      await member.scavenger.start();
      await member.scavenger.idle();
      await member.close();
    } else await startScavenge(this.world());
    for (let ticks = 0; ticks < 100; ticks++) {
      const { scavenge } = await runTick(this.world());
      if (scavenge?.state === 'ended' && scavenge.isTold && scavenge.scavengeId !== before.scavenge?.scavengeId) break;
      expect(ticks).toBeLessThan(99);
    }
    await this.refresh();
  }

  /** Lets ticks leave the points of members alone, as if they had not come to them yet. */
  async unmark(): Promise<void> {
    const { cluster: _, ...manifest } = await manifestOf(this.objects);
    await this.objects.put(manifestKey(manifest.number), encodeManifest(manifest, nodeDigests));
  }

  async refresh(): Promise<void> {
    await (await this.writer()).refresh();
  }

  /** All records that the newest manifest names, by position. */
  async records(): Promise<Map<number, RawRecord>> {
    return byPosition(await readRawLog(await exportDirectory(this.objects, false)));
  }

  /** The log as it is now, which stays so: its records are read once. */
  async copy(): Promise<TestLog> {
    const log = new TestLog();
    for await (const { key } of listAll(this.objects, '')) await log.objects.put(key, (await this.objects.get(key))!);
    log.records = () => (log.#records ??= TestLog.prototype.records.call(log));
    return log;
  }
}

export function byPosition(records: readonly RawRecord[]): Map<number, RawRecord> {
  return new Map(records.map((record) => [record.position, record]));
}

/** Prepares a copy with the newest manifest, by a member whose time stands still. */
export async function prepare(storage: Storage, objects: ObjectStore, seed = 900): Promise<PreparedReplica> {
  const world = {
    objects,
    clock: newClock(),
    ids: new SeededIds(seed),
    digests: nodeDigests,
    log: silentLog,
    meter: silentMeter,
  };
  return prepareReplica({
    storage,
    world,
    manifest: await manifestOf(objects as MemoryObjects),
    signal: new AbortController().signal,
  });
}

/** What the project's own verify has to say about a directory. */
export async function findingsOf(
  storage: Storage,
): Promise<{ readonly findings: string[]; readonly summary: VerifySummary }> {
  const findings: string[] = [];
  const run = verifyDirectory({ storage, digests: nodeDigests, clock: newClock() });
  for (;;) {
    const next = await run.next();
    if (next.done === true) return { findings, summary: next.value };
    if (next.value.kind === 'finding' && next.value.code !== 'leftover_file')
      findings.push(`${next.value.severity} ${next.value.code} ${next.value.file}`);
  }
}

/** Records of the bucket that a copy lacks or has otherwise. Below `scavengedTo` its own scavenge has removed some. */
export function differences(
  copy: ReadonlyMap<number, RawRecord>,
  bucket: ReadonlyMap<number, RawRecord>,
  scavengedTo = 0,
): string[] {
  const wrong: string[] = [];
  for (const [position, { bytes }] of bucket) {
    const own = copy.get(position);
    if (own === undefined) {
      if (position >= scavengedTo) wrong.push(`${position} is missing`);
    } else if (own.bytes !== bytes) wrong.push(`${position} is another record`);
  }
  return wrong;
}

/**
 * Where the checkpoints of a directory stand. The chaser may stay behind the writer after a crash, and is never ahead.
 */
export async function checkpointsOf(storage: Storage): Promise<{ readonly writer: number; readonly chaser: number }> {
  return { writer: await checkpoint(storage, 'writer.chk'), chaser: await checkpoint(storage, 'chaser.chk') };
}

/**
 * The directory holds what the bucket's newest manifest names, names its log, and the project's own verify finds
 * nothing wrong with it.
 */
export async function expectCopy(
  storage: Storage,
  { manifest, end }: PreparedReplica,
  log: TestLog,
  name = '',
  scavengedTo = 0,
): Promise<void> {
  const newest = await manifestOf(log.objects);
  expect(manifest.number, name).toBe(newest.number);
  expect(end, name).toBeGreaterThanOrEqual(newest.logEnd);
  expect(await readLogId(storage), name).toBe(newest.storeId);
  expect(differences(byPosition(await readRawLog(storage)), await log.records(), scavengedTo), name).toEqual([]);
  const { writer, chaser } = await checkpointsOf(storage);
  expect(chaser, name).toBeLessThanOrEqual(writer);
  const { findings } = await findingsOf(storage);
  expect(
    findings.filter((found) => !found.startsWith('warning index_missing')),
    name,
  ).toEqual([]);
}

/** A disk with a past, as often as it is asked for. */
export type Disk = (seed?: number) => FaultyStorage;

/** What one catching up begins with. */
export interface Case {
  readonly name: string;
  readonly log: TestLog;
  readonly disk: Disk;
  /** Up to here the copy's own scavenge has been. */
  readonly scavengedTo: number;
}

function diskOf(storage: FaultyStorage): Disk {
  return (seed = 1) => storage.restart('keep', seed);
}

/** A member over a directory, for what only a running one does to its copy. */
export function openMember(
  storage: Storage,
  { objects }: Pick<TestLog, 'objects'>,
  seed: number,
  beginsProofs = false,
): Promise<MemberStore> {
  return openMemberOver({ storage, objects, clock: newClock(), seed, beginsProofs });
}

/** Every way in which a directory can stand to the bucket. */
export async function everyCase(): Promise<Case[]> {
  const cases: (Omit<Case, 'scavengedTo'> & Partial<Case>)[] = [];
  const fresh = (): FaultyStorage => new FaultyStorage({ seed: 1, reads: 'async' });
  {
    const log = await TestLog.begin();
    await log.write(9);
    await log.compact();
    const young = fresh();
    await prepare(young, log.objects);
    await log.write(2);
    await log.compact();
    cases.push({ name: 'inside the chunk that is being filled', log: await log.copy(), disk: diskOf(young) });
    await log.write(16);
    await log.compact();
    cases.push(
      { name: 'empty', log: await log.copy(), disk: diskOf(fresh()) },
      { name: 'inside a chunk that is complete since', log: await log.copy(), disk: diskOf(young) },
    );
    const single = young.restart('keep');
    await removeLogId(single);
    cases.push({ name: 'without log-id', log: await log.copy(), disk: diskOf(single) });
    const unfinished = fresh();
    await prepare(unfinished, log.objects);
    await log.write(3);
    await log.scavenge();
    await log.compact();
    cases.push({
      name: 'inside a chunk that is scavenged and merged since',
      log: await log.copy(),
      disk: diskOf(unfinished),
    });
    const member = unfinished.restart('keep');
    const open = await openMember(member, log, 50);
    await open.close();
    await log.write(8);
    await log.scavenge();
    await log.compact();
    cases.push({
      name: 'with merged files and an index, inside a chunk that is scavenged since',
      log: await log.copy(),
      disk: diskOf(member),
    });
  }
  {
    const log = await TestLog.begin();
    await log.write(12);
    await log.compact();
    const own = fresh();
    const member = await openMember(own, log, 60);
    await member.scavenger.start();
    await member.scavenger.idle();
    await member.close();
    await log.refresh();
    await log.unmark();
    await log.compact();
    const behind = own.restart('keep');
    const { logEnd: scavengedTo } = await manifestOf(log.objects);
    cases.push({
      name: 'at the end of a chunk, scavenged by itself, and the log no further',
      log: await log.copy(),
      disk: diskOf(behind),
      scavengedTo,
    });
    await log.write(10);
    await log.compact();
    cases.push({
      name: 'at the end of a chunk, scavenged by itself',
      log: await log.copy(),
      disk: diskOf(behind),
      scavengedTo,
    });
  }
  return cases.map((one) => ({ scavengedTo: 0, ...one }));
}
