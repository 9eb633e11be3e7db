import type { ScavengeOptions } from '../../core/scavenge/api.ts';
import { flag, integer, text } from '../../infra/runtime/command-options.ts';
import type { OptionValues } from '../../infra/runtime/command-options.ts';
import { UsageError } from '../../infra/runtime/failure.ts';

const THREADS_MAX = 4;
const INT32_MAX = 2_147_483_647;
const INT32_MIN = -2_147_483_648;

/** For commands that work on the directory of a stopped node. */
export const indexOption = text('DIR', null, 'Folder of the index', 'index in the data directory');

/** For commands that work on files by themselves; a running node has an option of that name. */
export const keepDataOption = flag('Keep the data of the last event of a soft-deleted stream, as EventStoreDB does');

/** How a scavenge is to run, of a node and of a directory alike. */
export const runOptions = {
  threads: integer('COUNT', 1, THREADS_MAX, 1, 'Chunks to process in parallel'),
  threshold: integer(
    'WEIGHT',
    INT32_MIN,
    INT32_MAX,
    0,
    'Rewrite only chunks of at least this weight, which is about twice the number of events to remove; -1 rewrites every chunk. With a weight above 0 removed events may stay on disk',
  ),
  'throttle-percent': integer(
    'PERCENT',
    1,
    100,
    100,
    'Percentage of the time spent working; the rest is pauses. Below 100 only with one thread',
  ),
  'sync-only': flag('Use an existing scavenge point, do not write a new one'),
  fresh: flag('Start at a new scavenge point; an unfinished scavenge is abandoned instead of resumed'),
  'dry-run': flag('Change nothing: count what would be removed, chunk by chunk'),
};

type RunOptionValues = OptionValues<typeof runOptions>;

/** The options that were given. Throws a UsageError for a combination that is refused. */
export function scavengeOptionsOf(options: RunOptionValues, given: ReadonlySet<string>): ScavengeOptions {
  if (options['throttle-percent'] < 100 && options.threads > 1)
    throw new UsageError('--throttle-percent must be 100 with more than one thread.');
  if (options.fresh && options['sync-only'])
    throw new UsageError(
      '--fresh writes a scavenge point and --sync-only uses an existing one: leave one of them out.',
    );
  return {
    ...(given.has('threads') && { threads: options.threads }),
    ...(given.has('threshold') && { threshold: options.threshold }),
    ...(given.has('throttle-percent') && { throttlePercent: options['throttle-percent'] }),
    ...(given.has('sync-only') && { syncOnly: options['sync-only'] }),
    ...(options.fresh && { startAfresh: true }),
  };
}

/**
 * Runs that --until-clean makes at most: one that waits, one to a point in the log, one to a new point, and one more.
 */
export const UNTIL_CLEAN_RUNS_MAX = 4;

export const untilCleanOption = flag(
  `If a run covers only an older scavenge point, as a resumed one does, start another after it, until one covers everything up to its own start (${UNTIL_CLEAN_RUNS_MAX} runs at most)`,
);

/** Throws a UsageError where there is nothing that could be run until it is clean. */
export function checkUntilClean(options: RunOptionValues): void {
  const odd = (['fresh', 'sync-only', 'dry-run'] as const).find((name) => options[name]);
  if (odd !== undefined)
    throw new UsageError(
      `--until-clean starts one scavenge after the other until one covers everything up to its own start, which can't be combined with --${odd}: leave one of them out.`,
    );
}

/** The same as the query of POST `/admin/scavenge`. */
export function scavengeQueryOf(options: ScavengeOptions, isDryRun: boolean): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) query.set(name, String(value));
  if (isDryRun) query.set('dryRun', 'true');
  return query;
}
