import * as path from 'node:path';
import { allMarks } from '../../core/store/restored-marks/restored-marks.ts';
import { snapshotOfDirectory } from '../../core/store/snapshot/snapshot.ts';
import { readLogId, removeLogId, writeLogId } from '../../core/cluster/replica/identity/identity.ts';
import { beginLog, requireNone } from '../../core/cluster/reset/reset.ts';
import type { ObjectManifest } from '../../core/shared-log/format/manifest.ts';
import type { MarkColumns } from '../../core/streams/api.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { ObjectLocation, ObjectStore } from '../../core/ports/object-store.ts';
import { timestampText } from '../../core/base/time.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { openObjects, overlap } from '../../infra/objects/open-objects.ts';
import { placeOf, runInterruptibly } from '../backup/backup-world.ts';
import type { Work } from '../backup/backup-world.ts';
import { requireDirectory } from '../cli/data-directory.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { coloursFor, countText, EXIT, line, shellWord } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { bytesText, elapsedText } from '../cli/progress.ts';
import { isConfirmed } from '../cli/question.ts';
import { openDirectory } from '../store/open-directory.ts';
import type { clusterResetOptions } from './options-command.ts';

type Options = Input<typeof clusterResetOptions>['options'];

const INTERRUPTED = 'The reset was interrupted: no log was started. What was uploaded is not used; repeat the command.';

/** What the copy holds, as it is shown before the question. */
interface Holding {
  readonly formerLogId: string | null;
  readonly logEnd: number;
  readonly lastCommitPosition: number;
  readonly marks: MarkColumns;
  /** Of the newest event; null where there is none. */
  readonly lastEvent: { readonly stream: string; readonly number: number; readonly time: string } | null;
}

/** Begins a new log at the end of a copy, and makes the copy one of that log. */
export async function runClusterReset({ options }: Input<typeof clusterResetOptions>, io: Io): Promise<ExitCode> {
  if (options.from === null)
    throw new UsageError(
      '--from DIR is missing: the data directory of the stopped member whose replica reaches furthest.',
    );
  if (options.storage === null)
    throw new UsageError('--storage PLACE is missing: the prefix for the new log, s3://bucket/prefix or a directory.');
  const root = path.resolve(options.from);
  const place = placeOf(options.storage, 'storage', { ...options, 'key-file': null });
  refuseOverlap(root, options.index, place);
  await requireDirectory(root);
  const objects = await openObjects(place);
  try {
    await requireNone({ objects, digests: nodeDigests });
    const holding = await look(root, options, io);
    await ask(root, holding, objects, options, io);
    const started = systemClock.monotonicMs();
    const manifest = await runInterruptibly(INTERRUPTED, io, (work) => begin(root, holding, objects, options, work));
    tell(
      { root, holding, manifest, seconds: (systemClock.monotonicMs() - started) / 1_000, place: objects.place },
      options,
      io,
    );
    return EXIT.ok;
  } finally {
    await objects.close();
  }
}

function refuseOverlap(root: string, index: string | null, place: ObjectLocation): void {
  for (const folder of [root, ...(index === null ? [] : [path.resolve(index)])]) {
    if (overlap(place, { kind: 'directory', path: folder }))
      throw new UsageError(`--storage and --from are inside each other (${folder}): the new log needs its own place.`);
  }
}

/**
 * Opens the copy as its node would, which recovers it and brings its index up to its end, and writes that when it is
 * closed.
 */
async function look(root: string, { index }: Options, io: Io): Promise<Holding> {
  const opened = await openDirectory(root, index, { repairHistory: false }, io, {
    whileRunning: 'Stop the member first: the new log starts at the end of its replica.',
    appendsNothing: true,
  });
  try {
    const { store } = opened.open;
    const { checkpoints, lastCommitPosition } = opened.open.status();
    const { events } = await store.readAll({ direction: 'backward', from: 'end', count: 1, resolveLinks: false });
    const [last] = events;
    return {
      formerLogId: await readLogId(opened.storage),
      logEnd: checkpoints.writer,
      lastCommitPosition,
      marks: allMarks(store.redactions, opened.open.restoredMarks),
      lastEvent:
        last === undefined
          ? null
          : { stream: last.stream, number: last.number, time: timestampText(last.createdMs, 0) },
    };
  } finally {
    await opened.close();
  }
}

async function ask(
  root: string,
  holding: Holding,
  { place }: ObjectStore,
  { yes, json }: Options,
  io: Io,
): Promise<void> {
  const output = json ? io.stderr : io.stdout;
  const { bold, yellow } = coloursFor(output, io.env);
  const { formerLogId, logEnd, lastEvent } = holding;
  line(
    output,
    `${bold(root)} ${formerLogId === null ? 'belongs to no log' : `is a replica of the log ${formerLogId}`}. It ends at position ${countText(logEnd)}${lastEvent === null ? ', and holds no event' : `; its newest event is of ${lastEvent.time} (number ${lastEvent.number} of ${JSON.stringify(lastEvent.stream)})`}.`,
  );
  line(output, `A new log will start there, in ${place}.`);
  if (formerLogId !== null)
    line(
      output,
      yellow(
        "Anything other replicas have beyond that end is lost. How many acknowledged commits this replica had not received yet can't be determined here. Compare the ends of the other replicas (`skua cluster reset` shows each), and take the one that reaches furthest.",
      ),
    );
  if (yes) return;
  if (await isConfirmed('Start the new log? Type yes: ', io)) return;
  throw new CommandError('not_confirmed', 'Nothing was changed. Answer yes, or give --yes in a script.', EXIT.refused);
}

/**
 * The directory names its log anew behind the manifest: until then it names none, and joins whichever log it is in by
 * comparison.
 */
async function begin(
  root: string,
  { logEnd, lastCommitPosition, marks }: Holding,
  objects: ObjectStore,
  { index }: Options,
  { signal, progress }: Work,
): Promise<ObjectManifest> {
  const storage = new FilesystemStorage({
    root,
    mustExist: true,
    isOffline: true,
    ...(index !== null && { indexRoot: index }),
  });
  const world = { objects, clock: systemClock, ids: systemIds, digests: nodeDigests };
  const source = await snapshotOfDirectory({ ...world, storage, log: silentLog });
  try {
    if (source.snapshot.checkpoints.writer !== logEnd)
      throw new CommandError(
        'directory_locked',
        `The log in ${root} ended at ${logEnd}, and now at ${source.snapshot.checkpoints.writer}: a node was started on it in the meantime. Stop it, and repeat the reset.`,
        EXIT.unreachable,
      );
    const manifest = await beginLog({
      world,
      source,
      lastCommitPosition,
      marks,
      signal,
      beforeManifest: () => removeLogId(storage),
      onProgress: ({ bytesDone, bytesTotal, file }) =>
        progress.update({ label: 'uploading', bytesDone, bytesTotal, detail: file }),
    });
    await writeLogId(storage, manifest.storeId);
    return manifest;
  } finally {
    await source.release();
  }
}

interface Done {
  readonly root: string;
  readonly holding: Holding;
  readonly manifest: ObjectManifest;
  readonly seconds: number;
  readonly place: string;
}

function tell({ root, holding, manifest, seconds, place }: Done, { json }: Options, io: Io): void {
  const { storeId: logId, chunks, files, logEnd, ongoing } = manifest;
  const bytes =
    [...chunks, ...files].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) +
    (ongoing?.segments ?? []).reduce((sum, { from, to }) => sum + to - from, 0);
  if (json) {
    line(
      io.stdout,
      JSON.stringify({
        directory: root,
        storage: place,
        formerLogId: holding.formerLogId,
        logId,
        logEnd,
        lastEvent: holding.lastEvent,
        chunks: chunks.length,
        bytes,
        seconds,
      }),
    );
    return;
  }
  line(
    io.stdout,
    `${coloursFor(io.stdout, io.env).green('Done')} after ${elapsedText(seconds)}: the log ${logId} starts in ${place} at position ${countText(logEnd)} (${bytesText(bytes)} uploaded), and ${root} is a replica of it.`,
  );
  line(
    io.stdout,
    `Start its member with \`skua start --storage ${shellWord(place)} --db ${shellWord(root)} --cluster-size N\` and its previous options, and the other members with the same --storage and empty directories, which will catch up.`,
  );
}
