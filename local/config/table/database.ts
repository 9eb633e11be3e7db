import { boolean, integer, path, powerOfTwo, size, text } from '../kinds.ts';
import { flag, option, optional } from '../option.ts';

const TERABYTE = 1_099_511_627_776;

/** Options of section 2.4: files, memory and checks of the store. */
export const database = {
  Db: option(path('DIR'), './data', 'Data directory, created when absent'),
  Index: optional(path('DIR'), 'Directory of the index', { fallbackText: 'index in the data directory' }),
  Storage: optional(text('PLACE'), 'Keep the data in object storage instead of a directory: s3://bucket/prefix, with endpoint, region and credentials as the AWS SDK takes them. Functions and other nodes may use the same place at the same time', { fallbackText: 'the data directory' }),
  MemDb: flag(boolean, 'Keep everything in memory; nothing outlives the process'),
  ChunkSize: option(size({ min: 131_072, max: 1_073_741_824, multipleOf: 4_096 }), 268_435_456, 'Data bytes of a chunk file; for a new directory only, an existing one keeps its own', { fallbackText: '256 MiB' }),
  ChunksCacheSize: option(size({ min: 4_194_304, max: TERABYTE }), 67_108_864, 'Memory for blocks of chunk files and index tables', { fallbackText: '64 MiB' }),
  MaxMemTableSize: option(integer('COUNT', 1, 100_000_000), 1_000_000, 'Index entries that are held in memory before a table is written'),
  StreamExistenceFilterSize: option(size({ min: 10_000, max: 4_000_000_000, or: 0 }), 33_554_432, 'Memory of the filter that knows which streams exist; 0 switches it off', { fallbackText: '32 MiB' }),
  IndexCacheDepth: option(integer('DEPTH', 8, 28), 16, 'Midpoints of an index table that are kept in memory, as a power of two'),
  UseIndexBloomFilters: option(boolean, true, 'Write and use bloom filters of index tables'),
  SkipIndexVerify: flag(boolean, 'Do not compare the checksums of index tables at a start'),
  SkipDbVerify: flag(boolean, 'Do not compare the checksums of chunk files after a start'),
  MaxTruncation: option(size({ min: 0, max: 1_024 * TERABYTE, or: -1 }), 268_435_456, 'Refuse to start when truncate.chk asks to cut off more than this from the log; -1 for any length', { fallbackText: '256 MiB' }),
  UnsafeIgnoreHardDelete: flag(boolean, 'Let a scavenge remove the marks of hard-deleted streams too: their names can then be used again, from event 0 on'),
};

/** Options of section 2.5. */
export const scavenge = {
  DisableScavengeMerging: flag(boolean, 'Leave small chunk files as they are after a scavenge'),
  ScavengeHistoryMaxAge: option(integer('DAYS', 1, 24_855), 30, 'Days for which the events of a scavenge are kept'),
  ScavengeBackendPageSize: option(powerOfTwo('KIB', 1, 64), 16, 'Page of the scavenge database in KiB; an existing one keeps its own'),
  ScavengeBackendCacheSize: option(size({ min: 65_536, max: TERABYTE, multipleOf: 1_024 }), 67_108_864, 'Cache of the scavenge database while a scavenge runs', { fallbackText: '64 MiB' }),
  ScavengeHashUsersCacheCapacity: option(integer('COUNT', 0, 100_000_000), 100_000, 'Stream hashes that a scavenge remembers in memory'),
  AlwaysKeepScavenged: flag(boolean, 'Ignored', { deprecated: 'it has no effect: a scavenged chunk always takes the place of the one before' }),
  OptimizeIndexMerge: flag(boolean, 'Ignored', { deprecated: 'it has no effect: index merges never look into the log' }),
};
