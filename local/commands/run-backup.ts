import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import type {
  CreatedBackup,
  DrillReport,
  PruneReport,
  RepositoryFinding,
  VerifyRepositoryReport,
} from '../../core/backup/api.ts';
import { lastProven } from '../../core/backup/notes/notes.ts';
import { madeMsOf } from '../../core/backup/format/snapshot-manifest.ts';
import type { ManifestSummary } from '../../core/backup/format/snapshot-manifest.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { TemporaryFolder } from '../../infra/fs/file-removal.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { createKeyFile } from '../cli/key-files.ts';
import {
  backupIdOf,
  lanesOf,
  placeOf,
  repositoryCommand,
  runInterruptibly,
  runningText,
  whenEndedText,
  withRepository,
  withRestoreWorld,
} from '../backup/backup-world.ts';
import { coloursFor, counted, countText, EXIT, line, shown, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { bytesText, elapsedText } from '../cli/progress.ts';
import type { Phases } from '../cli/progress.ts';
import type {
  backupCreateOptions,
  backupDrillOptions,
  backupKeyOptions,
  backupListOptions,
  backupPruneOptions,
  backupVerifyOptions,
} from './options-command.ts';

/** What a command works with is loaded when it is run: listing is asked for often, and needs little. */

const CREATION_INTERRUPTED =
  'The backup was interrupted and does not count. Repeat the command: what it stored is not stored again.';

/**
 * Makes a backup of a running node or a stopped directory. The repository is opened first, so that a node is not held
 * in vain.
 */
export async function runBackupCreate({ options }: Input<typeof backupCreateOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  const [{ createBackup }, { checkSource, withSource }] = await Promise.all([
    import('../../core/backup/create/create.ts'),
    import('../backup/source.ts'),
  ]);
  checkSource(options);
  const { compression, parallel, throttle, json } = options;
  const created = await runInterruptibly(CREATION_INTERRUPTED, io, ({ signal, progress }) =>
    withRepository(place, options, { create: true, compression }, io, (repository, spec) =>
      withSource(options, io, signal, (source, jobs) =>
        createBackup({
          source,
          repository,
          ...lanesOf(jobs, spec),
          cause: 'manual',
          clock: systemClock,
          ids: systemIds,
          digests: nodeDigests,
          parallel,
          signal,
          ...(throttle !== null && { throttleBytesPerSecond: throttle }),
          onProgress: ({ bytesDone, bytesTotal }) => progress.update({ label: 'backing up', bytesDone, bytesTotal }),
        }),
      ),
    ),
  );
  const { manifest, report } = created;
  const { id, nodeId, checkpoints } = manifest;
  if (json)
    line(
      io.stdout,
      JSON.stringify({
        backupId: id,
        nodeId,
        createdAt: new Date(madeMsOf(manifest)).toISOString(),
        logEnd: checkpoints.writer,
        ...report,
      }),
    );
  else showCreated(created, options, io);
  return EXIT.ok;
}

function showCreated(
  { manifest, report }: CreatedBackup,
  options: Input<typeof backupCreateOptions>['options'],
  io: Io,
): void {
  const { green } = coloursFor(io.stdout, io.env);
  const { files, sizeBytes, blobsStored, bytesNew, bytesStored, elapsedMs } = report;
  const shrunk = bytesStored < bytesNew ? `, ${bytesText(bytesStored)} as stored` : '';
  line(
    io.stdout,
    `${green('Done')} after ${elapsedText(elapsedMs / 1_000)}: backup ${manifest.id}, up to position ${manifest.checkpoints.writer}.`,
  );
  line(
    io.stdout,
    `${counted(files, 'file')} (${bytesText(sizeBytes)}), of which ${counted(blobsStored, 'object')} (${bytesText(bytesNew)}${shrunk}) were new.`,
  );
  const repository = options.repository!;
  line(
    io.stdout,
    `Restore it with ${repositoryCommand('restore', repository, options, ['--db', './restored'])}, prove it with ${repositoryCommand('backup drill', repository, options)}.`,
  );
}

const COLUMNS: readonly Column[] = [
  { title: 'backup', align: 'left' },
  { title: 'made', align: 'left' },
  { title: 'by', align: 'left' },
  { title: 'log end', align: 'right' },
  { title: 'shipped to', align: 'right' },
  { title: 'last shipped', align: 'left' },
  { title: 'size', align: 'right' },
  { title: 'node', align: 'left' },
];

/** Shows what a repository holds. Damaged manifests are reported and end the command with exit code 1. */
export async function runBackupList({ options }: Input<typeof backupListOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  return withRepository(place, options, {}, io, async (repository) => {
    const damaged: { readonly key: string; readonly message: string }[] = [];
    const backups = await repository.backups((key, error) => {
      damaged.push({ key, message: error.message });
    });
    const last = await lastProven(repository);
    // One that is gone proves nothing of what is there.
    const proven = backups.some(({ id }) => id === last?.backupId) ? last : null;
    if (options.json) {
      line(
        io.stdout,
        JSON.stringify(
          {
            repository: repository.place,
            isEncrypted: repository.info.isEncrypted,
            backups: backups.map(documentOf),
            proven: proven === null ? null : { backupId: proven.backupId, provenAt: timeText(proven.provenMs) },
            damaged,
          },
          null,
          2,
        ),
      );
    } else
      showList(
        repository.place,
        backups,
        proven?.backupId ?? null,
        repositoryCommand('backup drill', options.repository!, options),
        io,
      );
    if (!options.json)
      for (const { key, message } of damaged)
        line(io.stdout, `${coloursFor(io.stdout, io.env).red('damaged')} ${shown(key)}: ${shown(message)}`);
    return damaged.length === 0 ? EXIT.ok : EXIT.failed;
  });
}

function documentOf({ id, nodeId, createdMs, cause, logEnd, shippedEnd, shippedMs, sizeBytes }: ManifestSummary) {
  return {
    id,
    nodeId,
    createdAt: timeText(createdMs),
    cause,
    logEnd,
    shippedEnd,
    shippedAt: timeText(shippedMs),
    sizeBytes,
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

function showList(
  place: string,
  backups: readonly ManifestSummary[],
  proven: string | null,
  drill: string,
  io: Io,
): void {
  if (backups.length === 0) {
    line(io.stdout, `${place} holds no backups.`);
    return;
  }
  const rows = backups.map(({ id, nodeId, createdMs, cause, logEnd, shippedEnd, shippedMs, sizeBytes }) => [
    id,
    timeText(createdMs),
    cause,
    String(logEnd),
    shippedEnd > logEnd ? String(shippedEnd) : '-',
    shippedEnd > logEnd ? timeText(shippedMs) : '-',
    bytesText(sizeBytes),
    nodeId,
  ]);
  for (const each of tableLines(COLUMNS, rows)) line(io.stdout, each);
  line(
    io.stdout,
    proven === null ? `None of them has been tested yet: ${drill} does that.` : `Last tested by a drill: ${proven}.`,
  );
}

const DAY_MS = 86_400_000;

/** Checks a repository and reports what is wrong as it is found. */
export async function runBackupVerify({ options }: Input<typeof backupVerifyOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  const { verifyRepository } = await import('../../core/backup/verify/verify.ts');
  const { 'read-data-subset': subset, json } = options;
  const started = systemClock.monotonicMs();
  return runInterruptibly('The check was interrupted.', io, ({ signal, progress }) =>
    withRepository(place, options, {}, io, async (repository) => {
      let errors = 0;
      const report = await verifyRepository({
        repository,
        subset,
        signal,
        ...(options.backup !== null && { backupId: await backupIdOf(repository, options.backup) }),
        // Checks of following days read parts that follow one another.
        seed: Math.floor(systemClock.nowMs() / DAY_MS),
        onFinding: (finding) => {
          if (isError(finding)) errors++;
          progress.clear();
          line(
            io.stdout,
            json ? JSON.stringify({ ...finding, kind: 'finding', what: finding.kind }) : findingText(finding, io),
          );
        },
        onProgress: (bytesDone, bytesTotal) => progress.update({ label: 'checking', bytesDone, bytesTotal }),
      });
      progress.clear();
      const seconds = (systemClock.monotonicMs() - started) / 1_000;
      line(
        io.stdout,
        json
          ? JSON.stringify({ kind: 'summary', repository: repository.place, ...report, errors, seconds })
          : summaryText(report, errors, repository.place, seconds, io),
      );
      return errors === 0 ? EXIT.ok : EXIT.failed;
    }),
  );
}

/** What does not belong there takes up room, and harms no backup. */
function isError({ kind }: RepositoryFinding): boolean {
  return kind !== 'unknown';
}

function findingText(finding: RepositoryFinding, io: Io): string {
  const { red, yellow, bold } = coloursFor(io.stdout, io.env);
  const { key, kind, message, backups } = finding;
  const needed =
    backups.length === 0 ? '' : ` Needed by ${counted(backups.length, 'backup')}: ${backups.slice(0, 5).join(', ')}.`;
  return `${(isError(finding) ? red : yellow)(kind)} ${bold(key)}: ${message}${needed}`;
}

function summaryText(
  { manifests, blobs, blobsRead, bytesRead, pieces }: VerifyRepositoryReport,
  errors: number,
  place: string,
  seconds: number,
  io: Io,
): string {
  const { red, green } = coloursFor(io.stdout, io.env);
  const verdict = errors === 0 ? green('nothing wrong') : red(counted(errors, 'error'));
  return `${place}: ${verdict}. ${counted(manifests, 'backup')}, ${counted(blobs, 'object')} of which ${blobsRead} were read, ${counted(pieces, 'shipped piece')}; ${bytesText(bytesRead)} in ${elapsedText(seconds)}.`;
}

const PHASES = { copying: 'restoring', opening: 'opening', verifying: 'verifying' } as const;
const SHARES: Phases = { [PHASES.copying]: 55, [PHASES.opening]: 10, [PHASES.verifying]: 35 };

/** Proves a backup. The scratch folder goes whatever happens, a second Ctrl+C excepted. */
export async function runBackupDrill({ options }: Input<typeof backupDrillOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  const parent = path.resolve(options.scratch ?? tmpdir());
  if (!(await stat(parent).catch(() => null))?.isDirectory())
    throw new CommandError(
      'not_a_directory',
      `${parent} is not a directory. Name a folder with room for the restored data with --scratch.`,
      EXIT.unreachable,
    );
  const { drillBackup } = await import('../../core/backup/drill/drill.ts');
  const report = await runInterruptibly(
    'The drill was interrupted, and its backup is not tested. What it restored is removed.',
    io,
    ({ signal, progress }) =>
      withRepository(place, options, {}, io, async (repository, spec) => {
        const choice =
          options.backup === null
            ? { kind: 'latest' as const }
            : { kind: 'backup' as const, id: await backupIdOf(repository, options.backup) };
        const folder = await TemporaryFolder.make('skua-drill-', parent);
        const storage = new FilesystemStorage({ root: folder.path, isOffline: true });
        try {
          return await withRestoreWorld(storage, io, ({ target: _, ...world }) =>
            drillBackup({
              ...world,
              repository,
              ...lanesOf(world.start.jobs, spec),
              choice,
              signal,
              parallel: options.parallel,
              scratch: () => Promise.resolve({ storage, remove: () => Promise.resolve() }),
              onProgress: ({ phase, bytesDone, bytesTotal }) =>
                progress.update({ label: PHASES[phase], phases: SHARES, bytesDone, bytesTotal }),
            }),
          );
        } finally {
          await folder.remove();
        }
      }),
  );
  if (options.json) line(io.stdout, JSON.stringify(report));
  else showDrill(report, io);
  return report.isProven ? EXIT.ok : EXIT.failed;
}

function showDrill(
  {
    backupId,
    position,
    chunks,
    records,
    events,
    indexEntries,
    bytes,
    findings,
    warnings,
    isProven,
    restoreMs,
    verifyMs,
  }: DrillReport,
  io: Io,
): void {
  const { green, red, yellow, bold } = coloursFor(io.stdout, io.env);
  for (const { severity, file, offset, code, message } of findings) {
    line(
      io.stdout,
      `${severity === 'error' ? red('error  ') : yellow('warning')} ${bold(offset === null ? file : `${file} at ${offset}`)} ${code}: ${message}`,
    );
  }
  for (const warning of warnings) line(io.stdout, `${yellow('warning')} ${warning}`);
  line(io.stdout, `${isProven ? green('Proven') : red('Not proven')}: backup ${backupId}, up to position ${position}.`);
  line(
    io.stdout,
    `${counted(chunks, 'chunk')}, ${counted(records, 'record')} (${counted(events, 'event')}), ${countText(indexEntries)} index entries; ${bytesText(bytes)} restored in ${elapsedText(restoreMs / 1_000)}, verified in ${elapsedText(verifyMs / 1_000)}.`,
  );
}

type Options = Input<typeof backupPruneOptions>['options'];

const REMOVAL_INTERRUPTED = 'The removal was interrupted. What is left is intact; repeat the command to continue.';
const WHY = {
  retention: 'not kept',
  erased: 'holds what a scavenge removed later',
  forgotten: 'of a node that no longer exists',
} as const;

/** Removes backups that are not kept. Exit code 4 where erased content had to stay because a backup runs. */
export async function runBackupPrune({ options, given }: Input<typeof backupPruneOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  const keep = keepOf(options, given);
  const { erased, 'dry-run': isDryRun, json } = options;
  const { pruneRepository } = await import('../../core/backup/prune/prune.ts');
  const report = await runInterruptibly(REMOVAL_INTERRUPTED, io, ({ signal }) =>
    withRepository(place, options, {}, io, (repository) =>
      pruneRepository({
        repository,
        keep,
        isErased: erased,
        forgottenNode: options['forget-node'],
        isDryRun,
        clock: systemClock,
        ids: systemIds,
        digests: nodeDigests,
        signal,
      }),
    ),
  );
  if (json)
    line(
      io.stdout,
      JSON.stringify(
        {
          isDryRun,
          ...report,
          removed: report.removed.map(({ id, createdMs, why }) => ({
            id,
            createdAt: new Date(createdMs).toISOString(),
            why,
          })),
        },
        null,
        2,
      ),
    );
  else showPruned(report, options, io);
  return erased && report.isBackupRunning ? EXIT.refused : EXIT.ok;
}

/** Null keeps every backup. Keeping nothing at all has to be a slip. */
function keepOf(options: Options, given: ReadonlySet<string>) {
  const keep = {
    last: options['keep-last'],
    hourly: options['keep-hourly'],
    daily: options['keep-daily'],
    weekly: options['keep-weekly'],
  };
  if (keep.last + keep.hourly + keep.daily + keep.weekly > 0) return keep;
  if ([...given].some((name) => name.startsWith('keep-')))
    throw new UsageError('At least one --keep option must be above 0: no command removes every backup.');
  return null;
}

function showPruned(report: PruneReport, options: Options, io: Io): void {
  const { green, yellow } = coloursFor(io.stdout, io.env);
  const {
    removed,
    kept,
    blobsRemoved,
    bytesRemoved,
    blobsWaiting,
    redactionsKept,
    isBackupRunning,
    backupsRunning,
    restorableBefore,
    restorableAfter,
  } = report;
  const isDryRun = options['dry-run'];
  const verb = isDryRun ? 'would be removed' : 'removed';
  for (const { id, createdMs, why } of removed)
    line(io.stdout, `backup ${id} of ${new Date(createdMs).toISOString()}: ${WHY[why]}`);
  line(
    io.stdout,
    `${isDryRun ? yellow('Dry run') : green('Done')}: ${counted(removed.length, 'backup')} ${verb}, ${kept.length} kept; ${counted(blobsRemoved, 'object')} (${bytesText(bytesRemoved)}) ${verb}.`,
  );
  if (redactionsKept > 0)
    line(
      io.stdout,
      `${counted(redactionsKept, 'redacted event')} that only the forgotten node's backups knew of ${redactionsKept === 1 ? 'stays' : 'stay'} redacted: the repository ${isDryRun ? 'would keep' : 'keeps'} that in mind for all restores.`,
    );
  if (blobsWaiting > 0)
    line(
      io.stdout,
      `${counted(blobsWaiting, 'object')} no longer in use ${blobsWaiting === 1 ? 'stays' : 'stay'} for a day after ${blobsWaiting === 1 ? 'it was' : 'they were'} first found unused: a later prune removes ${blobsWaiting === 1 ? 'it' : 'them'}.`,
    );
  if (isBackupRunning && !isDryRun) {
    const why =
      backupsRunning.length === 0
        ? `${yellow('A backup may have been made')} while this command was held up`
        : yellow(runningText(backupsRunning));
    line(
      io.stdout,
      `${why}, so ${blobsRemoved === 0 ? 'no' : 'no further'} objects were removed. Repeat the command ${whenEndedText(backupsRunning)}.`,
    );
  } else if (isBackupRunning)
    line(io.stdout, `${yellow(runningText(backupsRunning))}: no objects would be removed until then.`);
  for (const { nodeId, from } of restorableAfter) {
    const before = restorableBefore.find((other) => other.nodeId === nodeId)?.from ?? null;
    if (before !== from)
      line(
        io.stdout,
        `Node ${nodeId}: ${from === null ? 'only the ends of backups can now be restored' : `any position from ${from} on can now be restored`}; before it was from ${before} on.`,
      );
  }
}

/** Makes the key of an encrypted repository. */
export async function runBackupKey(
  { options, positionals }: Input<typeof backupKeyOptions>,
  io: Io,
): Promise<ExitCode> {
  const file = path.resolve(positionals[0]!);
  await createKeyFile(file);
  if (options.json) line(io.stdout, JSON.stringify({ file }));
  else
    line(
      io.stdout,
      `${file} holds a new key. Keep a copy of it in a safe place: without it the backups made with it are lost.`,
    );
  return EXIT.ok;
}
