import * as path from 'node:path';
import { isSkuaError } from '../../core/base/errors.ts';
import { verifyObjects } from '../../core/shared-log/verify/verify.ts';
import type { VerifyObjectsNote, VerifyObjectsSummary } from '../../core/shared-log/verify/verify.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import type { VerifyFinding, VerifyNote, VerifyProgress, VerifySummary } from '../../core/integrity/api.ts';
import { verifyDirectory } from '../../core/integrity/integrity.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import type { Input } from '../cli/command.ts';
import { requireDirectory } from '../cli/data-directory.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { coloursFor, counted, EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { followSearch } from '../cli/findings.ts';
import { durationText } from '../cli/progress.ts';
import type { Phases, ProgressState } from '../cli/progress.ts';
import { objectsAt, withObjectsAt } from '../on-objects/open-for-inspection.ts';
import { newTemporaryStorage } from '../../infra/runtime/temporary-storage.ts';
import { openForInspection } from '../store/inspect-directory.ts';
import type { verifyOptions } from './options-command.ts';

const PHASES = {
  log: 'checking the log',
  index: 'checking the index',
  'scavenge-database': 'checking the scavenge database',
} as const;
const SHARES: Phases = { [PHASES.log]: 72, [PHASES.index]: 24, [PHASES['scavenge-database']]: 4 };

function stateOf({ phase, bytesDone, bytesTotal }: VerifyProgress): ProgressState {
  return { label: PHASES[phase], phases: SHARES, bytesDone, bytesTotal };
}

/** Checks a directory and reports what is wrong as it is found. */
export async function runVerify(
  { options, given, positionals }: Input<typeof verifyOptions>,
  io: Io,
): Promise<ExitCode> {
  const [named] = positionals;
  if (named === undefined && options.storage === null)
    throw new UsageError('DIR is missing: the data directory, or s3://bucket/prefix.');
  if (named !== undefined && options.storage !== null)
    throw new UsageError('Name one thing to check: a data directory, or object storage with --storage.');
  const place = await objectsAt(named ?? null, options);
  if (place !== null) {
    if (given.has('index')) throw new UsageError('--index is for a data directory: leave it out for object storage.');
    return verifyObjectsAt(place, options.json, io);
  }
  const unfit = (['s3-endpoint', 's3-region'] as const).find((name) => given.has(name));
  if (unfit !== undefined) throw new UsageError(`--${unfit} needs --storage.`);
  const directory = path.resolve(named!);
  await requireDirectory(directory);
  const storage = new FilesystemStorage({
    root: directory,
    mustExist: true,
    ...(options.index !== null && { indexRoot: options.index }),
  });
  const started = systemClock.monotonicMs();
  const over = await openForInspection(directory, options.index, true, io);
  try {
    const run = verifyDirectory({
      storage: over?.storage ?? storage,
      digests: nodeDigests,
      clock: systemClock,
      scavengeStates: over?.states ?? new SqliteScavengeStates({ indexRoot: storage.indexRoot }),
    });
    const summary = await followSearch(run, io, stateOf, (found) =>
      line(io.stdout, options.json ? JSON.stringify(found) : findingText(found, io)),
    );
    const seconds = (systemClock.monotonicMs() - started) / 1000;
    line(
      io.stdout,
      options.json
        ? JSON.stringify({ kind: 'summary', directory, ...summary, seconds })
        : summaryText(summary, directory, seconds, io),
    );
    return summary.errors === 0 ? EXIT.ok : EXIT.failed;
  } catch (error) {
    if (isSkuaError(error, 'file_not_found'))
      throw new CommandError('not_a_data_directory', `${error.message} Directory: ${directory}.`, EXIT.unreachable);
    throw error;
  } finally {
    await over?.remove();
  }
}

async function verifyObjectsAt(place: ObjectLocation, json: boolean, io: Io): Promise<ExitCode> {
  const started = systemClock.monotonicMs();
  const scratch = await newTemporaryStorage();
  try {
    return await withObjectsAt(place, io, async (world) => {
      const text = (found: VerifyFinding | VerifyObjectsNote) =>
        found.kind === 'note'
          ? `${coloursFor(io.stdout, io.env).dim('note   ')} ${found.message}`
          : findingText(found, io);
      const summary = await followSearch(verifyObjects({ world, scratch: scratch.storage }), io, stateOf, (found) =>
        line(io.stdout, json ? JSON.stringify(found) : text(found)),
      );
      const seconds = (systemClock.monotonicMs() - started) / 1000;
      line(
        io.stdout,
        json
          ? JSON.stringify({ kind: 'summary', storage: world.objects.place, ...summary, seconds })
          : objectsText(summary, world.objects.place, seconds, io),
      );
      return summary.errors === 0 ? EXIT.ok : EXIT.failed;
    });
  } finally {
    await scratch.remove();
  }
}

function objectsText(summary: VerifyObjectsSummary, place: string, seconds: number, io: Io): string {
  const { manifests, objects, commits, waiting, unnamed } = summary;
  return `${summaryText(summary, place, seconds, io)} The data is in ${counted(objects, 'object')}, followed by ${counted(commits, 'commit')}, and ${counted(manifests, 'manifest')}; ${counted(waiting, 'more object')} ${waiting === 1 ? 'waits' : 'wait'} for removal, and ${unnamed === 0 ? 'no object is unreferenced' : `${counted(unnamed, 'object')} no manifest references`}.`;
}

function findingText(finding: VerifyFinding | VerifyNote, io: Io): string {
  const colours = coloursFor(io.stdout, io.env);
  const severity =
    finding.kind === 'note'
      ? 'note   '
      : finding.severity === 'error'
        ? colours.red('error  ')
        : colours.yellow('warning');
  const place = finding.offset === null ? finding.file : `${finding.file} at ${finding.offset}`;
  return `${severity} ${colours.bold(place)} ${finding.code}: ${finding.message}`;
}

function summaryText(
  summary: Pick<
    VerifySummary,
    'chunks' | 'records' | 'events' | 'indexTables' | 'indexEntries' | 'errors' | 'warnings' | 'notes'
  >,
  directory: string,
  seconds: number,
  io: Io,
): string {
  const colours = coloursFor(io.stdout, io.env);
  const { chunks, records, events, indexTables, indexEntries, errors, warnings, notes } = summary;
  const looked = `${counted(chunks, 'chunk')}, ${counted(records, 'record')} (${counted(events, 'event')}), ${counted(indexTables, 'index table')} with ${counted(indexEntries, 'entry', 'entries')}`;
  const verdict =
    errors > 0
      ? colours.red(`${counted(errors, 'error')}, ${counted(warnings, 'warning')}`)
      : warnings > 0
        ? colours.yellow(`nothing wrong found, ${counted(warnings, 'warning')}`)
        : colours.green('nothing wrong found');
  const limits = notes === 0 ? '' : ` Parts without a checksum are listed above (${counted(notes, 'note')}).`;
  return `${directory}: ${verdict}.${limits} Checked ${looked} in ${durationText(seconds)}.`;
}
