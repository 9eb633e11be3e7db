import { createHash } from 'node:crypto';
import { BlockCache } from '../../core/cache/cache.ts';
import { EntryList, IndexEntry } from '../../core/index/format/entries.ts';
import { MemTable } from '../../core/index/mem-table/mem-table.ts';
import { Hash64, streamHasher } from '../../core/base/stream-hash.ts';
import type { IndexSettings } from '../../core/index/index-settings.ts';
import { type IndexPorts, StreamIndex, type StreamIndexOptions } from '../../core/index/index.ts';
import { TABLE_JOBS } from '../../core/index/jobs/jobs.ts';
import { HIT } from '../../core/base/step.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { JobContext } from '../../core/ports/jobs.ts';
import { type Log, silentLog } from '../../core/ports/log.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { contentOf, putFile, step } from '../log/kit.ts';

export type Key = readonly [hi: number, lo: number];
export interface Item {
  readonly key: Key;
  readonly version: number;
  readonly position: number;
}

export function keyOf(name: string): Key {
  const out = new Hash64();
  streamHasher.hash(name, out);
  return [out.hi, out.lo];
}

export function jobContext(storage: Storage, seed = 1): JobContext {
  return {
    storage,
    digests: nodeDigests,
    ids: new SeededIds(seed),
    hasher: streamHasher,
    scavengeStates: MemoryScavengeStates.of(storage),
    progress() {},
    monotonicMs: () => 0,
    async sleep() {},
    async checkpoint() {},
  };
}

export function memTableOf(items: readonly Item[]): MemTable {
  const table = new MemTable(1_000);
  for (const item of items) table.add(item.key[0], item.key[1], item.version, item.position);
  return table;
}

/** Writes a table by the job, as a flush does. */
export async function writeTable(
  storage: Storage,
  path: string,
  items: readonly Item[],
  cacheDepth = 16,
): Promise<void> {
  await TABLE_JOBS['index.write-table']!(
    { path, bloomPath: `${path}.bloomfilter`, cacheDepth, columns: memTableOf(items).columns() } as never,
    jobContext(storage),
  );
}

export async function damage(storage: Storage, path: string, offset: number, xor = 0x10): Promise<void> {
  const bytes = await contentOf(storage, path);
  bytes[offset]! ^= xor;
  await putFile(storage, path, bytes);
}

export function md5Hex(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}

export function collectingLog(lines: string[]): Log {
  const add = (message: string, fields?: Record<string, unknown>): void => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  return { ...silentLog, warn: add, error: add };
}

/** Names of files must not repeat in one storage. */
const idsOf = new WeakMap<Storage, SeededIds>();

function idsFor(storage: Storage): SeededIds {
  const known = idsOf.get(storage);
  if (known !== undefined) return known;
  const ids = new SeededIds(7);
  idsOf.set(storage, ids);
  return ids;
}

/** All that an index may be given, in one. */
export type IndexOptions = Partial<IndexPorts & IndexSettings & Omit<StreamIndexOptions, 'ports' | 'settings'>>;

export function openIndex(storage: Storage = new MemoryStorage(), options: IndexOptions = {}): Promise<StreamIndex> {
  const clock = options.clock ?? new ManualClock();
  const ids = options.ids ?? idsFor(storage);
  const {
    hasher,
    onProgress,
    home,
    logEnd = Number.MAX_SAFE_INTEGER,
    cache,
    digests,
    jobs,
    log,
    clock: _clock,
    ids: _ids,
    storage: _storage,
    ...settings
  } = options;
  return StreamIndex.open({
    ports: {
      storage,
      clock,
      ids,
      cache: cache ?? new BlockCache(8_388_608),
      digests: digests ?? nodeDigests,
      jobs: jobs ?? new InlineJobs({ jobs: TABLE_JOBS, storage, digests: nodeDigests, ids, clock }),
      log: log ?? silentLog,
    },
    settings: { existenceFilterBytes: 10_000, ...settings },
    logEnd,
    ...(hasher !== undefined && { hasher }),
    ...(home !== undefined && { home }),
    ...(onProgress !== undefined && { onProgress }),
  });
}

/** Answers of a naive index: every item in one list. */
export class NaiveIndex {
  readonly items: Item[] = [];
  readonly #seen = new Set<string>();

  add(item: Item): void {
    const text = `${item.key.join()}/${item.version}/${item.position}`;
    if (this.#seen.has(text)) return;
    this.#seen.add(text);
    this.items.push(item);
  }

  #of(key: Key): [number, number][] {
    return this.items
      .filter((i) => i.key[0] === key[0] && i.key[1] === key[1])
      .map((i): [number, number] => [i.version, i.position])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  }

  floor(key: Key, version: number, position: number): [number, number] | undefined {
    return this.#of(key).findLast(([v, p]) => v < version || (v === version && p <= position));
  }

  ceiling(key: Key, version: number, position: number): [number, number] | undefined {
    return this.#of(key).find(([v, p]) => v > version || (v === version && p >= position));
  }

  range(key: Key, from: number, to: number): [number, number][] {
    return this.#of(key).filter(([v]) => v >= from && v <= to);
  }
}

const entry = new IndexEntry();
const list = new EntryList();

export async function floorOf(
  index: StreamIndex,
  key: Key,
  version: number,
  position: number,
): Promise<[number, number] | undefined> {
  return (await step(() => index.floor(key[0], key[1], version, position, entry))) === HIT
    ? [entry.version, entry.position]
    : undefined;
}

export async function ceilingOf(
  index: StreamIndex,
  key: Key,
  version: number,
  position: number,
): Promise<[number, number] | undefined> {
  return (await step(() => index.ceiling(key[0], key[1], version, position, entry))) === HIT
    ? [entry.version, entry.position]
    : undefined;
}

export async function rangeOf(index: StreamIndex, key: Key, from: number, to: number): Promise<[number, number][]> {
  await step(() => index.range(key[0], key[1], from, to, list));
  return Array.from({ length: list.length }, (_, i): [number, number] => [list.versions[i]!, list.positions[i]!]);
}
