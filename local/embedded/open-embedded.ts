import { SkuaError } from '../../core/base/errors.ts';
import type { Log } from '../../core/ports/log.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { LogEntry, OpenStoreOptions, Store } from './api.ts';
import { OpenedStore } from './store.ts';

const CHUNK_BYTES_MIN = 1_048_576;
const CHUNK_BYTES_MAX = 1_073_741_824;
const CACHE_BYTES_MIN = 1_048_576;

/**
 * Opens a store: one in a directory, in memory, or in a bucket; a new one where there is none.
 *
 * @throws `bad_option` for what can't be meant; `directory_locked` while another process has the directory;
 * `not_a_data_directory` for a folder with other files and no data; `log_corrupt`, `log_unsupported`,
 * `index_corrupt` for files that can't be read; `storage_unreachable`, `storage_denied`, `bucket_not_found`,
 * `prefix_unsuitable` for a bucket; `disk_full`, `io_error`.
 *
 * @example
 * const store = await openStore({ directory: './data' });
 * try {
 *   await store.append('order-1', { type: 'Placed', data: { total: 12 } });
 * } finally {
 *   await store.close();
 * }
 */
export async function openStore(options: OpenStoreOptions): Promise<Store> {
  const {
    directory,
    memory,
    bucket,
    endpoint,
    region,
    upkeep = true,
    chunkBytes,
    cacheBytes,
    onLog,
  } = options as Partial<Record<keyof AllOptions, unknown>> as AllOptions;
  const places = [directory, memory === true ? true : undefined, bucket].filter((place) => place !== undefined);
  if (places.length !== 1)
    throw new SkuaError('bad_option', 'Set exactly one of { directory }, { memory: true } and { bucket }.');
  checkText('directory', directory);
  checkText('bucket', bucket);
  checkBytes('chunkBytes', chunkBytes, CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
  checkBytes('cacheBytes', cacheBytes, CACHE_BYTES_MIN, Number.MAX_SAFE_INTEGER);
  const log = logTo(onLog);
  if (bucket !== undefined) {
    // With it comes what only object storage needs.
    const { openBucket } = await import('./open-bucket.ts');
    return new OpenedStore(await openBucket({ bucket, endpoint, region, upkeep, chunkBytes, cacheBytes, log }));
  }
  const { openLocal } = await import('./open-local.ts');
  return new OpenedStore(await openLocal({ directory: directory ?? null, chunkBytes, cacheBytes, log }));
}

interface AllOptions {
  readonly directory?: string;
  readonly memory?: boolean;
  readonly bucket?: string;
  readonly endpoint?: string;
  readonly region?: string;
  readonly upkeep?: boolean;
  readonly chunkBytes?: number;
  readonly cacheBytes?: number;
  readonly onLog?: (entry: LogEntry) => void;
}

function checkText(option: string, value: string | undefined): void {
  if (value !== undefined && (typeof value !== 'string' || value === ''))
    throw new SkuaError('bad_option', `${option} must be a non-empty string.`, { option, value });
}

function checkBytes(option: string, value: number | undefined, min: number, max: number): void {
  if (value !== undefined && (!Number.isSafeInteger(value) || value < min || value > max))
    throw new SkuaError(
      'bad_option',
      `${option} is ${value}; it must be a whole number of bytes from ${min} to ${max}.`,
      { option, value },
    );
}

function logTo(onLog: ((entry: LogEntry) => void) | undefined): Log {
  if (onLog === undefined) return silentLog;
  const at =
    (level: LogEntry['level']) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      onLog({ level, message, fields });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
