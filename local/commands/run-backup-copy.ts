import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import { copyFiles } from '../../core/backup/copy/copy.ts';
import type { CopyReport } from '../../core/backup/api.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { runInterruptibly } from '../backup/backup-world.ts';
import { checkSource, withSource } from '../backup/source.ts';
import type { SourceOptions } from '../backup/source.ts';
import { coloursFor, counted, EXIT, line, shellWord } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { foldersOf, refuseFile, refuseOverlap } from '../cli/data-directory.ts';
import { AnswerError, expectStatus, NodeClient } from '../cli/node-client.ts';
import { bytesText, elapsedText } from '../cli/progress.ts';
import type { backupCopyOptions } from './options-command.ts';

const INTERRUPTED =
  'The copy was interrupted, as its file copy-unfinished says. Repeat the command: it copies only what is missing.';

/** So that a differential copy right after a full one does not look as if something were wrong. */
const ALWAYS_COPIED =
  'Copied every time, at their full size: the chunk being written, checkpoints, the existence filter of the index, and the scavenge database.';

/** Copies the files of a node into a directory, or says how its volumes have to be snapshot. */
export async function runBackupCopy({ options }: Input<typeof backupCopyOptions>, io: Io): Promise<ExitCode> {
  const modes = (['full', 'differential', 'snapshot'] as const).filter((mode) => options[mode]);
  if (modes.length !== 1)
    throw new UsageError('Choose how to copy: --full, --differential, or --snapshot for the order of disk snapshots.');
  const mode = modes[0]!;
  checkSource(options);
  if (mode === 'snapshot') {
    if (options.to !== null) throw new UsageError('--snapshot copies nothing: leave out --to.');
    return checkVolumes(options, io);
  }
  if (options.to === null) throw new UsageError('Name the directory for the copy with --to DIR.');
  const to = path.resolve(options.to);
  await refuseFile(to, '--to');
  // Copying a directory into itself would never end, and a lock taken there would be the node's own.
  await refuseOverlap({ read: foldersOf(options.db, options.index), written: foldersOf(to, null), name: '--to' });
  const target = new FilesystemStorage({ root: to });
  const started = systemClock.monotonicMs();
  const report = await runInterruptibly(INTERRUPTED, io, ({ signal, progress }) =>
    withSource(options, io, signal, (source) =>
      copyFiles({
        source,
        target,
        mode,
        clock: systemClock,
        digests: nodeDigests,
        signal,
        onProgress: ({ bytesDone, bytesTotal, path: file }) =>
          progress.update({ label: 'copying', bytesDone, bytesTotal, detail: file }),
      }),
    ),
  );
  const seconds = (systemClock.monotonicMs() - started) / 1_000;
  if (options.json) line(io.stdout, JSON.stringify({ ...report, to, seconds }));
  else show(report, to, seconds, io);
  return EXIT.ok;
}

function show(
  { mode, nodeId, logEnd, copied, kept, removed, bytesCopied, wasUnfinished }: CopyReport,
  to: string,
  seconds: number,
  io: Io,
): void {
  const { green } = coloursFor(io.stdout, io.env);
  const others =
    mode === 'full' && kept === 0 && removed === 0
      ? ''
      : ` ${counted(kept, 'file')} ${kept === 1 ? 'was' : 'were'} up to date, ${counted(removed, 'old one')} removed.`;
  line(
    io.stdout,
    `${green('Done')} after ${elapsedText(seconds)}: ${mode} copy of node ${nodeId} in ${to}, up to position ${logEnd}.`,
  );
  line(
    io.stdout,
    `${counted(copied, 'file')} copied (${bytesText(bytesCopied)}).${others}${wasUnfinished ? ' It completed an unfinished copy.' : ''}`,
  );
  if (mode === 'differential') line(io.stdout, ALWAYS_COPIED);
  line(io.stdout, `Restore it with \`skua restore --from ${shellWord(to)} --db ./restored\`.`);
}

/** The node's folders are looked at on this machine, so it has to run here. */
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

interface Folders {
  readonly db: string;
  readonly index: string;
}

/**
 * Says in which order disk snapshots have to be taken: one of both folders at once where they are on one volume, else
 * the index first, so that it never knows more than the log. Exit code 1 when that can't be told.
 */
export async function checkVolumes(wanted: SourceOptions & { readonly json: boolean }, io: Io): Promise<ExitCode> {
  const folders =
    wanted.db === null
      ? await foldersOfNode(NodeClient.of(wanted, io.env))
      : { db: path.resolve(wanted.db), index: path.resolve(wanted.index ?? path.join(wanted.db, 'index')) };
  const [db, index] = [await volumeOf(folders.db), await volumeOf(folders.index)];
  const isOneVolume = db === index;
  const order = isOneVolume ? [folders.db] : [folders.index, folders.db];
  if (wanted.json) {
    line(io.stdout, JSON.stringify({ db: folders.db, index: folders.index, isOneVolume, order }));
    return EXIT.ok;
  }
  line(io.stdout, `db:    ${folders.db}`);
  line(io.stdout, `index: ${folders.index}`);
  line(
    io.stdout,
    isOneVolume
      ? 'Both are on one volume: take one snapshot of it. A node may run, and a scavenge too.'
      : 'They are on two volumes. Take a snapshot of the index volume first, then one of the db volume. A node may run, and a scavenge too.',
  );
  line(
    io.stdout,
    'To restore, copy both back into the directories of a stopped node, then copy chaser.chk over truncate.chk: `skua restore --from DIR` does that.',
  );
  return EXIT.ok;
}

async function volumeOf(folder: string): Promise<number> {
  try {
    return (await stat(folder)).dev;
  } catch (error) {
    throw new CommandError(
      'volume_unknown',
      `${folder} can't be read (${(error as NodeJS.ErrnoException).code ?? String(error)}), so its volume is unknown. Run the command on the machine of the node, as a user who may read its folders, with --db DIR.`,
      EXIT.failed,
    );
  }
}

/** By the node's own options, which name folders of the machine that it runs on. */
async function foldersOfNode(node: NodeClient): Promise<Folders> {
  const unknown = () =>
    new CommandError(
      'volume_unknown',
      'The node does not report where its folders are. Run the command on its machine with --db DIR, and --index DIR where the index has a folder of its own.',
      EXIT.failed,
    );
  let options: readonly { readonly name: string; readonly value: string | null }[];
  try {
    options = JSON.parse(
      await expectStatus(await node.call('GET', '/info/options'), [200], 'reading the options of the node'),
    ) as typeof options;
  } catch (error) {
    if (error instanceof AnswerError && error.exitCode === EXIT.failed) throw unknown();
    throw error;
  }
  if (!LOOPBACK.has(new URL(node.base).hostname)) throw unknown();
  const valueOf = (name: string) => options.find((option) => option.name.toLowerCase() === name)?.value || null;
  const db = valueOf('db');
  const index = valueOf('index') ?? (db === null ? null : path.join(db, 'index'));
  // A relative path is meant from where the node was started, which is not known here.
  if (
    db === null ||
    index === null ||
    !path.isAbsolute(db) ||
    !path.isAbsolute(index) ||
    valueOf('memdb')?.toLowerCase() === 'true'
  )
    throw unknown();
  return { db, index };
}
