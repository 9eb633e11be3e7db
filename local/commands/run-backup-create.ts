import { createBackup } from '../../core/backup/create.ts';
import type { CreatedBackup } from '../../core/backup/create.ts';
import { systemClock } from '../../infra/clock.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { systemIds } from '../../infra/ids.ts';
import { runInterruptibly } from '../backup/run.ts';
import { checkSource, withSource } from '../backup/source.ts';
import { lanesOf, placeOf, withRepository } from '../backup/world.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Input } from '../cli/command.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { counted } from '../cli/table.ts';
import { bytesText, elapsedText } from '../progress.ts';
import type { createOptions } from './backup.ts';

const INTERRUPTED = 'The backup was ended before it was complete, and counts as none. Repeat the command: what it stored is not stored again.';

/** Makes a backup of a running node or a stopped directory. The repository is opened first, so that a node is not held in vain. */
export async function runBackupCreate({ options }: Input<typeof createOptions>, io: Io): Promise<ExitCode> {
  const place = placeOf(options.repository, 'repository', options);
  checkSource(options);
  const { compression, parallel, throttle, json } = options;
  const created = await runInterruptibly(INTERRUPTED, io, ({ signal, progress }) => (
    withRepository(place, options, { create: true, compression }, (repository, spec) => (
      withSource(options, io, signal, (source, jobs) => createBackup({
        source, repository, ...lanesOf(jobs, spec), cause: 'manual', clock: systemClock, ids: systemIds, digests: nodeDigests, parallel, signal,
        ...(throttle !== null && { throttleBytesPerSecond: throttle }),
        onProgress: ({ bytesDone, bytesTotal }) => progress.update({ label: 'backing up', bytesDone, bytesTotal }),
      }))
    ))
  ));
  const { manifest: { id, nodeId, createdMs, checkpoints }, report } = created;
  if (json) line(io.stdout, JSON.stringify({ backupId: id, nodeId, createdAt: new Date(createdMs).toISOString(), logEnd: checkpoints.writer, ...report }));
  else show(created, options.repository!, io);
  return EXIT.ok;
}

function show({ manifest, report }: CreatedBackup, repository: string, io: Io): void {
  const { green } = coloursFor(io.stdout, io.env);
  const { files, sizeBytes, blobsStored, bytesNew, bytesStored, elapsedMs } = report;
  const shrunk = bytesStored < bytesNew ? `, ${bytesText(bytesStored)} as stored` : '';
  line(io.stdout, `${green('Done')} after ${elapsedText(elapsedMs / 1_000)}: backup ${manifest.id}, up to position ${manifest.checkpoints.writer}.`);
  line(io.stdout, `${counted(files, 'file')} (${bytesText(sizeBytes)}), of which ${counted(blobsStored, 'object')} (${bytesText(bytesNew)}${shrunk}) were new.`);
  line(io.stdout, `Restore it with \`skua restore --from ${repository} --db DIR\`, prove it with \`skua backup drill --repository ${repository}\`.`);
}
