import type { BlockCache } from '../cache/block-cache.ts';
import type { Outcome } from '../log/log-reader.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { JobProgress, Jobs } from '../ports/jobs.ts';
import type { Log } from '../ports/log.ts';
import type { Storage } from '../ports/storage.ts';
import type { EntryList, IndexEntry } from './entries.ts';
import { type StreamHasher, streamHasher } from './stream-hash.ts';

export interface StreamIndexOptions {
  readonly storage: Storage;
  readonly cache: BlockCache;
  readonly digests: Digests;
  readonly ids: Ids;
  readonly jobs: Jobs;
  readonly log: Log;
  readonly clock: Clock;
  readonly hasher?: StreamHasher;
  readonly memTableEntriesMax?: number;
  readonly tablesPerLevelMax?: number;
  readonly bloomFilters?: boolean;
  readonly verify?: boolean;
  readonly cacheDepth?: number;
  readonly existenceFilterBytes?: number;
  readonly logEnd: number;
  readonly onProgress?: (progress: JobProgress) => void;
}

export interface IndexTableInfo { readonly file: string; readonly level: number; readonly entries: number }

export declare class StreamIndex {
  static open(options: StreamIndexOptions): Promise<StreamIndex>;
  readonly hasher: StreamHasher;
  get commitCheckpoint(): number;
  get prepareCheckpoint(): number;
  readonly wasReset: string | null;
  add(hi: number, lo: number, version: number, position: number): void;
  endBulk(commitPosition: number, preparePosition: number): void;
  ready(): Promise<void> | null;
  floor(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome;
  ceiling(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome;
  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): Outcome;
  fill(): Promise<void>;
  mightContain(hi: number, lo: number): boolean;
  addStream(hi: number, lo: number, position: number): void;
  noteExistenceCheckpoint(position: number): void;
  get existenceCheckpoint(): number;
  initExistence(): Promise<void>;
  flush(): Promise<void>;
  flushExistence(): Promise<void>;
  tables(): readonly IndexTableInfo[];
  close(): Promise<void>;
}
export { streamHasher };
