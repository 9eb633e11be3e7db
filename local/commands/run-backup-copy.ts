import * as path from 'node:path';
import { copyFiles } from '../../core/backup/copy.ts';
import type { CopyReport } from '../../core/backup/copy.ts';
import { systemClock } from '../../infra/clock.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { runInterruptibly } from '../backup/run.ts';
import { checkSource, withSource } from '../backup/source.ts';
import { checkVolumes } from '../backup/volumes.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Input } from '../cli/command.ts';
import { CommandError } from '../cli/failure.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { counted } from '../cli/table.ts';
import { UsageError } from '../cli/usage-error.ts';
import { refuseFile } from '../directory.ts';
import { bytesText, elapsedText } from '../progress.ts';
import type { copyOptions } from './backup.ts';

const INTERRUPTED = 'The copy was ended before it was complete, and says so by its file copy-unfinished. Repeat the command: it goes on with what is missing.';

/** Copies the files of a node into a directory, or says how its volumes have to be snapshot. */
export async function runBackupCopy({ options }: Input<typeof copyOptions>, io: Io): Promise<ExitCode> {
  const modes = (['full', 'differential', 'snapshot'] as const).filter((mode) => options[mode]);
  if (modes.length !== 1) throw new UsageError('Say how to copy: --full, --differential, or --snapshot for the order of disk snapshots.');
  const mode = modes[0]!;
  checkSource(options);
  if (mode === 'snapshot') {
    if (options.to !== null) throw new UsageError('--snapshot copies nothing: leave out --to.');
    return checkVolumes(options, io);
  }
  if (options.to === null) throw new UsageError('Name the directory for the copy with --to DIR.');
  const to = path.resolve(options.to);
  await refuseFile(to, '--to');
  refuseOverlap(to, options.db, options.index);
  const target = new FilesystemStorage({ root: to });
  const started = systemClock.monotonicMs();
  const report = await runInterruptibly(INTERRUPTED, io, ({ signal, progress }) => withSource(options, io, signal, async (source) => {
    const lock = await target.lock();
    try {
      return await copyFiles({
        source, target, mode, clock: systemClock, digests: nodeDigests, signal,
        onProgress: ({ bytesDone, bytesTotal, path: file }) => progress.update({ label: 'copying', bytesDone, bytesTotal, detail: file }),
      });
    } finally {
      await lock.release();
    }
  }));
  const seconds = (systemClock.monotonicMs() - started) / 1_000;
  if (options.json) line(io.stdout, JSON.stringify({ ...report, to, seconds }));
  else show(report, to, seconds, io);
  return EXIT.ok;
}

/** Copying a directory into itself would never end, and a lock taken there would be the node's own. */
function refuseOverlap(to: string, db: string | null, index: string | null): void {
  for (const folder of [db, index]) {
    if (folder === null) continue;
    const from = path.resolve(folder);
    if (to === from || to.startsWith(from + path.sep) || from.startsWith(to + path.sep)) throw new CommandError('directory_not_empty', `${to} is, holds or lies in the directory that is copied (${from}). Name another one with --to.`, EXIT.refused);
  }
}

function show({ mode, nodeId, logEnd, copied, kept, removed, bytesCopied, wasUnfinished }: CopyReport, to: string, seconds: number, io: Io): void {
  const { green } = coloursFor(io.stdout, io.env);
  const others = mode === 'full' && kept === 0 && removed === 0 ? '' : ` ${counted(kept, 'file')} ${kept === 1 ? 'was' : 'were'} there already, ${counted(removed, 'old one')} removed.`;
  line(io.stdout, `${green('Done')} after ${elapsedText(seconds)}: ${mode} copy of node ${nodeId} in ${to}, up to position ${logEnd}.`);
  line(io.stdout, `${counted(copied, 'file')} copied (${bytesText(bytesCopied)}).${others}${wasUnfinished ? ' It completed a copy that had not been finished.' : ''}`);
  line(io.stdout, `Restore it with \`skua restore --from ${to} --db DIR\`.`);
}
