import type { RepositoryFinding, VerifyRepositoryReport } from '../../core/backup/verify-repository.ts';
import { verifyRepository } from '../../core/backup/verify-repository.ts';
import { systemClock } from '../../infra/clock.ts';
import { runInterruptibly } from '../backup/run.ts';
import { backupIdOf, placeOf, withRepository } from '../backup/world.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Input } from '../cli/command.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { counted } from '../cli/table.ts';
import { bytesText, elapsedText } from '../progress.ts';
import type { verifyBackupOptions } from './backup.ts';


const DAY_MS = 86_400_000;

/** Checks a repository and reports what is wrong as it is found. */
export async function runBackupVerify({ options }: Input<typeof verifyBackupOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  const { 'read-data-subset': subset, json } = options;
  const started = systemClock.monotonicMs();
  return runInterruptibly('The check was ended before it was complete.', io, ({ signal, progress }) => withRepository(place, options, {}, async (repository) => {
    let errors = 0;
    const report = await verifyRepository({
      repository, subset, signal,
      ...(options.backup !== null && { backupId: await backupIdOf(repository, options.backup) }),
      // Checks of following days read parts that follow one another.
      seed: Math.floor(systemClock.nowMs() / DAY_MS),
      onFinding: (finding) => {
        if (isError(finding)) errors++;
        progress.clear();
        line(io.stdout, json ? JSON.stringify({ ...finding, kind: 'finding', what: finding.kind }) : findingText(finding, io));
      },
      onProgress: (bytesDone, bytesTotal) => progress.update({ label: 'checking', bytesDone, bytesTotal }),
    });
    progress.clear();
    const seconds = (systemClock.monotonicMs() - started) / 1_000;
    line(io.stdout, json ? JSON.stringify({ kind: 'summary', repository: repository.place, ...report, errors, seconds }) : summaryText(report, errors, repository.place, seconds, io));
    return errors === 0 ? EXIT.ok : EXIT.failed;
  }));
}

/** What does not belong there takes up room, and harms no backup. */
function isError({ kind }: RepositoryFinding): boolean {
  return kind !== 'unknown';
}

function findingText(finding: RepositoryFinding, io: Io): string {
  const { red, yellow, bold } = coloursFor(io.stdout, io.env);
  const { key, kind, message, backups } = finding;
  const needed = backups.length === 0 ? '' : ` Needed by ${counted(backups.length, 'backup')}: ${backups.slice(0, 5).join(', ')}.`;
  return `${(isError(finding) ? red : yellow)(kind)} ${bold(key)}: ${message}${needed}`;
}

function summaryText({ manifests, blobs, blobsRead, bytesRead, pieces }: VerifyRepositoryReport, errors: number, place: string, seconds: number, io: Io): string {
  const { red, green } = coloursFor(io.stdout, io.env);
  const verdict = errors === 0 ? green('nothing wrong') : red(counted(errors, 'error'));
  return `${place}: ${verdict}. ${counted(manifests, 'backup')}, ${counted(blobs, 'object')} of which ${blobsRead} were read, ${counted(pieces, 'shipped piece')}; ${bytesText(bytesRead)} in ${elapsedText(seconds)}.`;
}
