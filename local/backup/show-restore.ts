import type { RestoreReport } from '../../core/backup/restore-report.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Io } from '../cli/io.ts';
import { line } from '../cli/io.ts';
import { counted } from '../cli/table.ts';
import { bytesText, elapsedText } from '../progress.ts';

/** What was restored, what was left out, and what to mind. */
export function showRestore(report: RestoreReport, root: string, seconds: number, io: Io): void {
  const { green, yellow, red } = coloursFor(io.stdout, io.env);
  const { backupId, position, files, bytes, nodeId, warnings, skipped } = report;
  const what = backupId === null ? 'the copy' : `backup ${backupId}`;
  const verdict = skipped.some(({ lost }) => lost !== null) ? yellow('Done in part') : green('Done');
  line(io.stdout, `${verdict} after ${elapsedText(seconds)}: ${what} is restored to ${root}, up to position ${position}.`);
  line(io.stdout, `${counted(files, 'file')} (${bytesText(bytes)}), verified and opened once. The directory has the new node id ${nodeId}: the next copy of its files has to be a full one.`);
  for (const { key, path, reason, lost } of skipped) {
    const loss = lost === null ? 'It is made anew, nothing is lost.' : red(`Lost: positions ${lost.from} to ${lost.to}, ${counted(lost.chunks, 'chunk')}.`);
    line(io.stdout, `${yellow('damaged')} ${key ?? path}: ${reason} ${loss}`);
  }
  for (const warning of warnings) line(io.stdout, `${yellow('warning')} ${warning}`);
}
