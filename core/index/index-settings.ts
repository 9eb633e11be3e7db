import { SkuaError } from '../base/errors.ts';
import { FILTER_BYTES_MAX, FILTER_BYTES_MIN } from './format/bloom.ts';
import { INDEX_FOLDER } from './format/index-map.ts';
import { CACHE_DEPTH_MAX, CACHE_DEPTH_MIN, POSITION_TABLE_VERSION, TABLE_VERSION } from './format/table-format.ts';

/** Where the files of an index lie, and of which form its tables are. */
export interface IndexHome {
  readonly folder: string;
  readonly tableVersion: typeof TABLE_VERSION | typeof POSITION_TABLE_VERSION;
}

/** Of the stream index. */
export const STREAM_INDEX_HOME: IndexHome = { folder: INDEX_FOLDER, tableVersion: TABLE_VERSION };

export interface IndexSettings {
  /** Entries at which a memtable is written out. */
  readonly memTableEntriesMax: number;
  /** Tables with which a level is full, and merged. */
  readonly tablesPerLevelMax: number;
  /** Entries of a merge that waits for no larger one. */
  readonly smallMergeEntriesMax: number;
  /** Entries of the largest table that a merge of a full level may make. */
  readonly mergedEntriesMax: number;
  /** Whether tables have bloom filters. */
  readonly bloomFilters: boolean;
  /** Whether every table's MD5 and order are checked on load. */
  readonly verify: boolean;
  /** Midpoints of a table kept in memory, as a power of two from 8 to 28. */
  readonly cacheDepth: number;
  /** Bytes of bits of the stream existence filter; 0 switches it off. */
  readonly existenceFilterBytes: number;
}

export const DEFAULT_INDEX_SETTINGS: IndexSettings = {
  memTableEntriesMax: 1_000_000,
  tablesPerLevelMax: 2,
  smallMergeEntriesMax: 16_777_216,
  mergedEntriesMax: Number.MAX_SAFE_INTEGER,
  bloomFilters: true,
  verify: true,
  cacheDepth: 16,
  existenceFilterBytes: 33_554_432,
};

/** Throws `bad_option`. */
export function checkSettings(settings: IndexSettings): void {
  const check = (name: keyof IndexSettings, min: number, max: number): void => {
    const value = settings[name];
    if (typeof value !== 'number' || !(Number.isInteger(value) && value >= min && value <= max)) {
      throw new SkuaError('bad_option', `${name} is ${value}; it must be a whole number from ${min} to ${max}.`, {
        option: name,
        value,
      });
    }
  };
  check('memTableEntriesMax', 1, 100_000_000);
  check('tablesPerLevelMax', 2, 100);
  check('smallMergeEntriesMax', 1, Number.MAX_SAFE_INTEGER);
  check('mergedEntriesMax', 1, Number.MAX_SAFE_INTEGER);
  check('cacheDepth', CACHE_DEPTH_MIN, CACHE_DEPTH_MAX);
  if (settings.existenceFilterBytes !== 0) check('existenceFilterBytes', FILTER_BYTES_MIN, FILTER_BYTES_MAX);
}
