import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import type { RestoreChoice, RestoreProgress, RestoreReport, RestoreWorld } from '../../core/backup/api.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { REPOSITORY_KEY } from '../../core/backup/format/repository-keys.ts';
import { restoreCopy } from '../../core/backup/restore-copy/restore-copy.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { type DataOf, isSkuaError } from '../../core/base/errors.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { timestampText } from '../../core/base/time.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import {
  backupIdOf,
  lanesOf,
  placeOf,
  repositoryCommand,
  runInterruptibly,
  withRepository,
  withRestoreWorld,
} from '../backup/backup-world.ts';
import { readRedactions } from '../backup/given-redactions.ts';
import { coloursFor, counted, EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { foldersOf, refuseFile, refuseOverlap, requireDirectory } from '../cli/data-directory.ts';
import { bytesText, elapsedText } from '../cli/progress.ts';
import type { Phases, Progress } from '../cli/progress.ts';
import type { restoreOptions } from './options-command.ts';

type Options = Input<typeof restoreOptions>['options'];

const INTERRUPTED =
  'The restore was interrupted, and no node will start on the directory. Repeat the command with --force.';
const PHASES = { copying: 'restoring', opening: 'opening' } as const;
const SHARES: Phases = { [PHASES.copying]: 85, [PHASES.opening]: 15 };

/** Restores from a repository, or from a copy of files, whichever is there. */
export async function runRestore({ options }: Input<typeof restoreOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.from, 'from', options);
  if (options.db === null) throw new UsageError('Name the directory to restore to with --db DIR.');
  checkChoice(options);
  const root = path.resolve(options.db);
  await refuseFile(root, '--db');
  const redactions = options.redactions === null ? null : await readRedactions(options.redactions);
  const started = systemClock.monotonicMs();
  const target = new FilesystemStorage({
    root,
    isOffline: true,
    ...(options.index !== null && { indexRoot: options.index }),
  });
  const report = await runInterruptibly(INTERRUPTED, io, ({ signal, progress }) =>
    withRestoreWorld(target, io, async (machine) => {
      const world: RestoreWorld = {
        ...machine,
        signal,
        force: options.force,
        parallel: options.parallel,
        ...(redactions !== null && { redactions }),
        onProgress: (state) => show(progress, state),
      };
      const isOfFiles = await isCopy(place, options);
      if (isOfFiles && place.kind === 'directory')
        await refuseOverlap({
          read: foldersOf(place.path, null),
          written: foldersOf(root, options.index),
          name: options.index === null ? '--db' : '--db, and --index',
        });
      return refusalsOf(
        root,
        isOfFiles ? fromCopy(place, world, options) : fromRepository(place, world, options, io),
        options,
      );
    }),
  );
  const seconds = (systemClock.monotonicMs() - started) / 1_000;
  const { earlierMs, ...document } = report;
  if (options.json)
    line(
      io.stdout,
      JSON.stringify({
        ...document,
        restoredTo: earlierMs === null ? null : timestampText(earlierMs, 0),
        db: root,
        seconds,
      }),
    );
  else showRestore(report, root, seconds, io, options['to-time']);
  return EXIT.ok;
}

function checkChoice(options: Options): void {
  const choices = (['backup', 'to-position', 'to-time'] as const).filter((name) => options[name] !== null);
  if (choices.length > 1)
    throw new UsageError(`--${choices[0]} and --${choices[1]} can't be combined: each sets how far to restore.`);
  if (options['at-or-before'] && options['to-time'] === null)
    throw new UsageError('--at-or-before needs --to-time: it takes the nearest restore point before that time.');
}

function show(progress: Progress, { phase, bytesDone, bytesTotal }: RestoreProgress): void {
  progress.update({ label: PHASES[phase], phases: SHARES, bytesDone, bytesTotal });
}

/** A directory is a copy of files unless it is a repository. */
async function isCopy(place: ObjectLocation, options: Options): Promise<boolean> {
  if (place.kind !== 'directory') return false;
  await requireDirectory(place.path);
  if (await isRepositoryFolder(place.path)) return false;
  for (const name of ['backup', 'to-position', 'to-time', 'key-file'] as const) {
    if (options[name] !== null)
      throw new UsageError(
        `--${name} is for repositories, and ${place.path} is not one. A file copy is restored as is.`,
      );
  }
  return true;
}

function fromCopy(place: ObjectLocation, world: RestoreWorld, options: Options): Promise<RestoreReport> {
  if (place.kind !== 'directory') throw new UsageError('A file copy is a directory.');
  if (options['allow-damaged'])
    throw new UsageError('--allow-damaged is for repositories: what a file copy lacks is unknown.');
  return restoreCopy({
    ...world,
    source: new FilesystemStorage({ root: place.path, mustExist: true }),
    place: place.path,
  });
}

function fromRepository(place: ObjectLocation, world: RestoreWorld, options: Options, io: Io): Promise<RestoreReport> {
  return withRepository(place, options, {}, io, async (repository, spec) =>
    restoreBackup({
      ...world,
      repository,
      ...lanesOf(world.start.jobs, spec),
      choice: await choiceOf(repository, options),
      allowDamaged: options['allow-damaged'],
    }),
  );
}

async function choiceOf(repository: Repository, options: Options): Promise<RestoreChoice> {
  const { backup, 'to-position': position, 'to-time': timeMs } = options;
  if (backup !== null) return { kind: 'backup', id: await backupIdOf(repository, backup) };
  if (position !== null) return { kind: 'position', position };
  return timeMs === null ? { kind: 'latest' } : { kind: 'time', timeMs, orBefore: options['at-or-before'] };
}

/** Refusals that concern the directory to restore to name it. */
async function refusalsOf(root: string, report: Promise<RestoreReport>, options: Options): Promise<RestoreReport> {
  try {
    return await report;
  } catch (error) {
    if (isSkuaError(error, 'directory_not_empty'))
      throw new CommandError(error.code, `${root}: ${error.message}`, EXIT.refused);
    if (isSkuaError(error, 'not_restorable'))
      throw new CommandError(error.code, [error.message, ...commandsFor(error.data, options)].join(' '), EXIT.failed);
    if (isSkuaError(error, 'directory_locked'))
      throw new CommandError(
        error.code,
        `${error.message} A restore needs a stopped node and a copy that is not in use.`,
        EXIT.unreachable,
      );
    throw error;
  }
}

/** What to type for a moment that can be had, where the one that was asked for can't. */
function commandsFor({ belowMs = null, aboveMs = null }: DataOf<'not_restorable'>, options: Options): string[] {
  const { from, db, index, 'to-time': timeMs } = options;
  const restoreTo = (ms: number, ...more: string[]): string => {
    const rest = [
      '--db',
      db!,
      ...(index === null ? [] : ['--index', index]),
      ...(options.force ? ['--force'] : []),
      '--to-time',
      timestampText(ms, 0),
      ...more,
    ];
    return repositoryCommand('restore', from!, options, rest);
  };
  const commands: string[] = [];
  if (belowMs !== null) commands.push(`For the one before, run ${restoreTo(timeMs!, '--at-or-before')}.`);
  if (aboveMs !== null)
    commands.push(`For the ${belowMs !== null ? 'other' : 'one after it'}, run ${restoreTo(aboveMs)}.`);
  return commands;
}

/** What was restored, what was left out, and what to mind. */
export function showRestore(
  report: RestoreReport,
  root: string,
  seconds: number,
  io: Io,
  wantedMs: number | null = null,
): void {
  const { green, yellow, red } = coloursFor(io.stdout, io.env);
  const { backupId, position, earlierMs, files, bytes, redacted, nodeId, warnings, skipped } = report;
  const what = backupId === null ? 'the copy' : `backup ${backupId}`;
  const verdict = skipped.some(({ lost }) => lost !== null) ? yellow('Partly done') : green('Done');
  line(
    io.stdout,
    `${verdict} after ${elapsedText(seconds)}: ${what} is restored to ${root}, up to position ${position}.`,
  );
  if (earlierMs !== null && wantedMs !== null)
    line(
      io.stdout,
      `${yellow('Not exactly')} what was asked for: ${timestampText(wantedMs, 0)} can't be restored; the nearest restore point before it is ${timestampText(earlierMs, 0)}.`,
    );
  line(
    io.stdout,
    `${counted(files, 'file')} (${bytesText(bytes)}), verified and opened once. The directory has the new node id ${nodeId}: the next file copy has to be a full one.`,
  );
  if (redacted > 0)
    line(
      io.stdout,
      `${counted(redacted, 'event')} had been redacted later, and will read as empty. The next scavenge removes the content.`,
    );
  for (const { key, path, reason, lost } of skipped) {
    const loss =
      lost === null
        ? 'It is rebuilt, nothing is lost.'
        : red(`Lost: positions ${lost.from} to ${lost.to}, ${counted(lost.chunks, 'chunk')}.`);
    line(io.stdout, `${yellow('damaged')} ${key ?? path}: ${reason} ${loss}`);
  }
  for (const warning of warnings) line(io.stdout, `${yellow('warning')} ${warning}`);
}

/** Whether a directory holds a repository rather than a copy of files. */
export async function isRepositoryFolder(directory: string): Promise<boolean> {
  const isThere = async (name: string) => (await stat(path.join(directory, name)).catch(() => null)) !== null;
  if (await isThere(REPOSITORY_KEY)) return true;
  // Where its first object was lost, the refusal should be the repository's.
  return (await isThere('manifests')) && !(await isThere('writer.chk'));
}
