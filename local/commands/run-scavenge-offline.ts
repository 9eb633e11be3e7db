import { readdir, stat } from 'node:fs/promises';
import * as path from 'node:path';
import type { ScavengeOptions, Scavenger } from '../../core/scavenge/api.ts';
import { dryRunDocument, resumedPointDocument, progressDocument } from '../../handlers/scavenging/scavenge-routes.ts';
import { systemClock } from '../../infra/system-clock.ts';
import type { Input } from '../cli/command.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import { bytesText } from '../cli/progress.ts';
import { completionIn } from '../scavenge/completion.ts';
import { openDirectory } from '../store/open-directory.ts';
import { isClean, ProgressView, showDryRun, showEnding, tooManyRuns } from '../scavenge/follow.ts';
import type { Ending } from '../scavenge/follow.ts';
import { directoryWays, notTheNextLine, logResumedPoint } from '../scavenge/resumed-point.ts';
import { checkUntilClean, scavengeOptionsOf, UNTIL_CLEAN_RUNS_MAX } from '../scavenge/scavenge-options.ts';
import type { scavengeOfflineOptions } from './options-command.ts';

/** How often the run is asked how far it is. */
const LOOK_MS = 100;

/** Scavenges the directory of a stopped node, and shows what it takes on disk before and after. */
export async function runScavengeOffline(
  { options, given, positionals }: Input<typeof scavengeOfflineOptions>,
  io: Io,
): Promise<ExitCode> {
  const directory = path.resolve(positionals[0]!);
  const wanted = scavengeOptionsOf(options, given);
  const isDryRun = options['dry-run'];
  if (options['until-clean']) checkUntilClean(options);
  const folders = [directory, ...(options.index === null ? [] : [path.resolve(options.index)])];
  const node = await openDirectory(
    directory,
    options.index,
    {
      disableMerging: options['disable-scavenge-merging'],
      keepsDeletedData: options['keep-data-of-deleted-streams'],
      repairHistory: !isDryRun,
    },
    io,
    { looksOnly: isDryRun },
  );
  const interrupt = listenForInterrupt(
    isDryRun ? 'The dry run was stopped.' : 'The scavenge was stopped. The next one resumes from there.',
    io,
  );
  const { scavenger, store } = node.open;
  const view = new ProgressView({ io, json: options.json, isShown: !options.json, signal: interrupt.signal });
  try {
    if (isDryRun) {
      const code = await dryRun(scavenger, wanted, view, interrupt.signal, options.json, io);
      const waiting = options.json || options.fresh ? null : await scavenger.waiting();
      if (waiting !== null)
        line(io.stdout, notTheNextLine(resumedPointDocument(waiting), directoryWays(positionals[0]!)));
      return code;
    }
    const diskBefore = await diskOf(folders);
    const endings: Ending[] = [];
    do {
      const { scavengeId, olderPoint } = await scavenger.start(wanted);
      const older = olderPoint === undefined ? {} : { olderPoint: resumedPointDocument(olderPoint) };
      if (older.olderPoint !== undefined && !options.json) logResumedPoint(older.olderPoint, io.stderr);
      await runToEnd(scavenger, scavengeId, view, interrupt.signal);
      const { result, error } = scavenger.last()!;
      const { bytesReclaimed, seconds } = await completionIn(store, scavengeId);
      const ending = { scavengeId, result, error, bytesReclaimed, seconds, ...older };
      endings.push(ending);
      if (!options.json) showEnding(ending, false, io);
    } while (
      options['until-clean'] &&
      endings.at(-1)!.result === 'Success' &&
      !isClean(endings.at(-1)!) &&
      endings.length < UNTIL_CLEAN_RUNS_MAX
    );
    await node.close();
    const diskAfter = await diskOf(folders);
    const last = endings.at(-1)!;
    if (options.json)
      line(
        io.stdout,
        JSON.stringify(
          {
            ...last,
            diskBytesBefore: diskBefore,
            diskBytesAfter: diskAfter,
            ...(options['until-clean'] && { runs: endings }),
          },
          null,
          2,
        ),
      );
    else line(io.stdout, `On disk: ${bytesText(diskBefore)} before, ${bytesText(diskAfter)} after.`);
    interrupt.signal.throwIfAborted();
    if (options['until-clean'] && last.result === 'Success' && !isClean(last)) throw tooManyRuns();
    return last.result === 'Success' ? EXIT.ok : EXIT.failed;
  } finally {
    view.clear();
    await node.close();
    interrupt.release();
  }
}

async function diskOf(folders: readonly string[]): Promise<number> {
  const sizes = await Promise.all(folders.map(diskBytes));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** Shows the progress until the run has ended; Ctrl+C stops it. */
async function runToEnd(
  scavenger: Scavenger,
  scavengeId: string,
  view: ProgressView,
  signal: AbortSignal,
): Promise<void> {
  const stop = () => {
    void scavenger.stop(scavengeId).catch(() => {});
  };
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop);
  const ended = new AbortController();
  const idle = scavenger.idle().then(() => ended.abort());
  while (!ended.signal.aborted) {
    const progress = scavenger.progress();
    if (progress !== null) view.show(progressDocument(progress));
    await systemClock.sleep(LOOK_MS, ended.signal);
  }
  await idle;
  signal.removeEventListener('abort', stop);
  view.clear();
}

async function dryRun(
  scavenger: Scavenger,
  wanted: ScavengeOptions,
  view: ProgressView,
  signal: AbortSignal,
  json: boolean,
  io: Io,
): Promise<ExitCode> {
  const { scavengeId } = await scavenger.startDryRun(wanted);
  await runToEnd(scavenger, scavengeId, view, signal);
  signal.throwIfAborted();
  const report = await scavenger.dryRun(scavengeId);
  if (report === null) throw new CommandError('internal', 'The dry run finished without a report.', EXIT.failed);
  if (json) line(io.stdout, JSON.stringify(dryRunDocument(report), null, 2));
  else showDryRun(report, io);
  return EXIT.ok;
}

/** Bytes that the files of a folder take on disk: of files with holes only what is filled. */
export async function diskBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    // A file may have gone since the folder was read.
    const found = await stat(path.join(entry.parentPath, entry.name)).catch(() => null);
    if (found !== null) bytes += found.blocks * 512;
  }
  return bytes;
}
