import { pruneRepository } from '../../core/backup/prune.ts';
import type { PruneReport } from '../../core/backup/prune.ts';
import { systemClock } from '../../infra/clock.ts';
import { systemIds } from '../../infra/ids.ts';
import { runInterruptibly } from '../backup/run.ts';
import { placeOf, withRepository } from '../backup/world.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Input } from '../cli/command.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { counted } from '../cli/table.ts';
import { UsageError } from '../cli/usage-error.ts';
import { bytesText } from '../progress.ts';
import type { pruneOptions } from './backup.ts';

type Options = Input<typeof pruneOptions>['options'];

const INTERRUPTED = 'The removal was ended before it was complete. What is left is whole; repeat the command to go on.';
const WHY = { retention: 'not kept', erased: 'holds what a scavenge has removed since' } as const;

/** Removes backups that are not kept. Exit code 4 where erased content had to stay because a backup runs. */
export async function runBackupPrune({ options, given }: Input<typeof pruneOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  const keep = keepOf(options, given);
  const { erased, 'dry-run': isDryRun, json } = options;
  const report = await runInterruptibly(INTERRUPTED, io, ({ signal }) => withRepository(place, options, {}, (repository) => (
    pruneRepository({ repository, keep, isErased: erased, isDryRun, clock: systemClock, ids: systemIds, signal }))));
  if (json) line(io.stdout, JSON.stringify({ isDryRun, ...report, removed: report.removed.map(({ id, createdMs, why }) => ({ id, createdAt: new Date(createdMs).toISOString(), why })) }, null, 2));
  else show(report, isDryRun, io);
  return erased && report.isBackupRunning ? EXIT.refused : EXIT.ok;
}

/** Null keeps every backup. Keeping nothing at all has to be a slip. */
function keepOf(options: Options, given: ReadonlySet<string>) {
  const keep = { last: options['keep-last'], hourly: options['keep-hourly'], daily: options['keep-daily'], weekly: options['keep-weekly'] };
  if (keep.last + keep.hourly + keep.daily + keep.weekly > 0) return keep;
  if ([...given].some((name) => name.startsWith('keep-'))) throw new UsageError('At least one --keep option must be above 0: no command removes every backup.');
  return null;
}

function show(report: PruneReport, isDryRun: boolean, io: Io): void {
  const { green, yellow } = coloursFor(io.stdout, io.env);
  const { removed, kept, blobsRemoved, bytesRemoved, blobsWaiting, isBackupRunning, restorableBefore, restorableAfter } = report;
  const verb = isDryRun ? 'would be removed' : 'removed';
  for (const { id, createdMs, why } of removed) line(io.stdout, `backup ${id} of ${new Date(createdMs).toISOString()}: ${WHY[why]}`);
  line(io.stdout, `${isDryRun ? yellow('Dry run') : green('Done')}: ${counted(removed.length, 'backup')} ${verb}, ${kept.length} kept; ${counted(blobsRemoved, 'object')} (${bytesText(bytesRemoved)}) ${verb}.`);
  if (blobsWaiting > 0) line(io.stdout, `${counted(blobsWaiting, 'object')} without use ${blobsWaiting === 1 ? 'stays' : 'stay'} for a day after ${blobsWaiting === 1 ? 'it was' : 'they were'} first seen so: a later prune removes ${blobsWaiting === 1 ? 'it' : 'them'}.`);
  if (isBackupRunning) line(io.stdout, `${yellow('A backup is being made')}, so no objects were removed. Repeat the command when it has ended.`);
  for (const { nodeId, from } of restorableAfter) {
    const before = restorableBefore.find((other) => other.nodeId === nodeId)?.from ?? null;
    if (before !== from) line(io.stdout, `Node ${nodeId}: ${from === null ? 'only the ends of backups can be restored now' : `any position from ${from} on can be restored now`}; before it was from ${before} on.`);
  }
}
