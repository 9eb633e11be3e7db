import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { drillBackup } from '../../core/backup/drill.ts';
import type { DrillReport } from '../../core/backup/drill.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { runInterruptibly } from '../backup/run.ts';
import { backupIdOf, lanesOf, placeOf, withRepository, withRestoreWorld } from '../backup/world.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Input } from '../cli/command.ts';
import { CommandError } from '../cli/failure.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { counted, countText } from '../cli/table.ts';
import { bytesText, elapsedText } from '../progress.ts';
import type { drillOptions } from './backup.ts';

const PHASES = { copying: 'restoring', opening: 'opening', verifying: 'verifying' } as const;

/** Proves a backup. The scratch folder goes whatever happens, a second Ctrl+C excepted. */
export async function runBackupDrill({ options }: Input<typeof drillOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  const parent = path.resolve(options.scratch ?? tmpdir());
  if (!(await stat(parent).catch(() => null))?.isDirectory()) throw new CommandError('not_a_directory', `${parent} is not a directory. Name a folder with room for the restored data with --scratch.`, EXIT.unreachable);
  const report = await runInterruptibly('The drill was ended, and has proved nothing. What it restored is removed.', io, ({ signal, progress }) => (
    withRepository(place, options, {}, async (repository, spec) => {
      const choice = options.backup === null ? { kind: 'latest' as const } : { kind: 'backup' as const, id: await backupIdOf(repository, options.backup) };
      const root = await mkdtemp(path.join(parent, 'skua-drill-'));
      const storage = new FilesystemStorage({ root, isOffline: true });
      try {
        return await withRestoreWorld(storage, io, ({ target: _, ...world }) => drillBackup({
          ...world, repository, ...lanesOf(world.start.jobs, spec), choice, signal, parallel: options.parallel,
          scratch: () => Promise.resolve({ storage, remove: () => Promise.resolve() }),
          onProgress: ({ phase, bytesDone, bytesTotal }) => progress.update({ label: PHASES[phase], bytesDone, bytesTotal }),
        }));
      } finally {
        await rm(root, { recursive: true, force: true });
      }
    })));
  if (options.json) line(io.stdout, JSON.stringify(report));
  else show(report, io);
  return report.isProven ? EXIT.ok : EXIT.failed;
}

function show({ backupId, position, chunks, records, events, indexEntries, bytes, findings, warnings, isProven, restoreMs, verifyMs }: DrillReport, io: Io): void {
  const { green, red, yellow, bold } = coloursFor(io.stdout, io.env);
  for (const { severity, file, offset, code, message } of findings) {
    line(io.stdout, `${severity === 'error' ? red('error  ') : yellow('warning')} ${bold(offset === null ? file : `${file} at ${offset}`)} ${code}: ${message}`);
  }
  for (const warning of warnings) line(io.stdout, `${yellow('warning')} ${warning}`);
  line(io.stdout, `${isProven ? green('Proven') : red('Not proven')}: backup ${backupId}, up to position ${position}.`);
  line(io.stdout, `${counted(chunks, 'chunk')}, ${counted(records, 'record')} (${counted(events, 'event')}), ${countText(indexEntries)} index entries; ${bytesText(bytes)} restored in ${elapsedText(restoreMs / 1_000)}, verified in ${elapsedText(verifyMs / 1_000)}.`);
}
