import type { ScavengeOptions } from '../../core/scavenge/api.ts';
import { flag, integer, text } from '../cli/options.ts';
import type { OptionValues } from '../cli/options.ts';
import { UsageError } from '../cli/failure.ts';

const THREADS_MAX = 4;
const INT32_MAX = 2_147_483_647;
const INT32_MIN = -2_147_483_648;

/** For commands that work on the directory of a stopped node. */
export const indexOption = text('DIR', null, 'Folder of the index', 'index in the data directory');

/** How a scavenge is to run, of a node and of a directory alike. */
export const runOptions = {
  threads: integer('COUNT', 1, THREADS_MAX, 1, 'Chunks to work on at a time'),
  threshold: integer('WEIGHT', INT32_MIN, INT32_MAX, 0, 'Rewrite only chunks of at least this weight, which is about twice the number of events to remove; -1 rewrites every chunk. With a weight above 0 removed events may stay on disk'),
  'throttle-percent': integer('PERCENT', 1, 100, 100, 'Share of the time to work; the rest is pauses. Below 100 only with one thread'),
  'sync-only': flag('Only go to a scavenge point that exists already, do not write one'),
  'dry-run': flag('Change nothing: count what would be removed, chunk by chunk'),
};

type RunOptionValues = OptionValues<typeof runOptions>;

/** The options that were given. Throws a UsageError for a combination that is refused. */
export function scavengeOptionsOf(options: RunOptionValues, given: ReadonlySet<string>): ScavengeOptions {
  if (options['throttle-percent'] < 100 && options.threads > 1) throw new UsageError('--throttle-percent must be 100 with more than one thread.');
  return {
    ...(given.has('threads') && { threads: options.threads }),
    ...(given.has('threshold') && { threshold: options.threshold }),
    ...(given.has('throttle-percent') && { throttlePercent: options['throttle-percent'] }),
    ...(given.has('sync-only') && { syncOnly: options['sync-only'] }),
  };
}

/** The same as the query of POST `/admin/scavenge`. */
export function scavengeQueryOf(options: ScavengeOptions, isDryRun: boolean): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) query.set(name, String(value));
  if (isDryRun) query.set('dryRun', 'true');
  return query;
}
