import type { CompressionMode } from '../../core/backup/repository-api.ts';
import { parseTimestamp } from '../../core/time.ts';
import { nodeOption } from '../cli/node-option.ts';
import { address, flag, integer, text } from '../cli/options.ts';
import type { Option } from '../cli/options.ts';
import { size } from '../config/kinds.ts';
import { indexOption } from '../scavenge/options.ts';

const PARALLEL_MAX = 16;
const KEPT_MAX = 10_000;
const THROTTLE_MIN_BYTES = 65_536;
const THROTTLE_MAX_BYTES = 1_099_511_627_776;
/** With a zone, so that nobody is surprised by the one of the machine. */
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,7})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** Which files are backed up: those of a running node, or of a stopped directory. */
export const sourceOptions = {
  node: nodeOption,
  db: text('DIR', null, 'Data directory of a stopped node, instead of a running one'),
  index: indexOption,
  'pause-scavenge': flag('Stop a scavenge that runs, pause auto-scavenge in a cycle, and let both go on afterwards'),
};

/** How a repository is reached; `repository` itself is required by what uses it. */
export const placeOptions = {
  repository: text('R', null, 'The repository: a directory, or s3://bucket/prefix (credentials as the AWS tools take them)'),
  'key-file': text('FILE', null, 'Key of an encrypted repository, from `skua backup key`'),
  's3-endpoint': address('URL', 'that of AWS, or AWS_ENDPOINT_URL_S3', 'Server that speaks S3'),
  's3-region': text('REGION', null, 'Region of the bucket', 'AWS_REGION'),
};

export const compressionOption = oneOf<CompressionMode>(['off', 'auto', 'on'], 'auto', 'Compress what is stored (zstd); auto does so in buckets, where it pays');
export const parallelOption = integer('COUNT', 1, PARALLEL_MAX, 4, 'Files to work on at a time');
export const throttleOption = bytes('Most bytes a second, such as 20MiB', THROTTLE_MIN_BYTES, THROTTLE_MAX_BYTES);
export const jsonOption = flag('Report as JSON, sizes in bytes');
export const backupOption = text('ID', null, 'The backup, by its id or the beginning of it', 'the newest');

export const keepOptions = {
  'keep-last': kept('Keep this many of the newest backups'),
  'keep-hourly': kept('Keep the last backup of each of this many hours that have one (UTC)'),
  'keep-daily': kept('The same for days'),
  'keep-weekly': kept('The same for weeks'),
};

function kept(help: string): Option<number> {
  return { ...integer('N', 0, KEPT_MAX, 0, help), fallbackText: '' };
}

/** One of several words. */
export function oneOf<T extends string>(words: readonly T[], fallback: T, help: string): Option<T> {
  const parse = (given: string) => (words.includes(given as T) ? { value: given as T } : { allowed: words.join(', ').replace(/, (?=[^,]*$)/, ' or ') });
  return { placeholder: words.join('|'), fallback, fallbackText: fallback, help, parse };
}

/** A number of bytes with an optional unit; null unless given. */
export function bytes(help: string, min: number, max: number): Option<number | null> {
  return { placeholder: 'SIZE', fallback: null, fallbackText: '', help, parse: size({ min, max }).parse };
}

/** A share, `10%` or `0.1`; what is above 0 and at most 1. */
export function share(fallback: number, help: string): Option<number> {
  const parse = (given: string) => {
    const parts = /^(\d{1,3}(?:\.\d{1,4})?)(%?)$/.exec(given);
    const value = parts === null ? Number.NaN : Number(parts[1]) / (parts[2] === '%' ? 100 : 1);
    return value > 0 && value <= 1 ? { value } : { allowed: 'a share above 0 and up to 100%, such as 10%' };
  };
  return { placeholder: 'SHARE', fallback, fallbackText: `${fallback * 100}%`, help, parse };
}

/** A position in the log; null unless given. */
export function position(help: string): Option<number | null> {
  const parse = (given: string) => {
    const value = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN;
    return Number.isSafeInteger(value) ? { value } : { allowed: 'a position in the log, a whole number from 0 on' };
  };
  return { placeholder: 'N', fallback: null, fallbackText: '', help, parse };
}

/** A moment in milliseconds since 1970; null unless given. */
export function moment(help: string): Option<number | null> {
  const parse = (given: string) => {
    const value = TIME.test(given) ? parseTimestamp(given) : Number.NaN;
    return Number.isNaN(value) ? { allowed: 'a time with its zone, such as 2026-07-01T12:00:00Z or 2026-07-01T14:00:00+02:00' } : { value };
  };
  return { placeholder: 'TIME', fallback: null, fallbackText: '', help, parse };
}
