import * as path from 'node:path';
import { checkErasureInRepository } from '../../core/backup/erasure-check/erasure-check.ts';
import type { RepositoryErasureSummary } from '../../core/backup/api.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { checkErasure } from '../../core/scavenge/erasure/erasure.ts';
import type { ErasureFinding, ErasureProgress, ErasureSummary } from '../../core/scavenge/api.ts';
import { checkErasureInObjects } from '../../core/shared-log/erasure-check/erasure-check.ts';
import type { ObjectErasureFinding, ObjectErasureSummary } from '../../core/shared-log/erasure-check/erasure-check.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { placeOf, repositoryCommand, runningText, whenEndedText, withRepository } from '../backup/backup-world.ts';
import { coloursFor, counted, EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { requireDirectory } from '../cli/data-directory.ts';
import { followSearch } from '../cli/findings.ts';
import { bytesText } from '../cli/progress.ts';
import { objectsAt, withObjectsAt } from '../on-objects/open-for-inspection.ts';
import type { proveErasedOptions } from './options-command.ts';

const SCAVENGE =
  'A scavenge removes what is deleted or expired; the last event of a stream is removed only by a hard delete.';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

type Options = Input<typeof proveErasedOptions>['options'];
type Search<S extends ErasureSummary> = AsyncGenerator<ErasureFinding | ErasureProgress, S>;

/** Searches a directory or a repository and reports what is found as it is found. */
export async function runProveErased(
  { options, given, positionals }: Input<typeof proveErasedOptions>,
  io: Io,
): Promise<ExitCode> {
  const events = [...options.event, ...positionals];
  if (options.stream === null && !given.has('event'))
    throw new UsageError('Name what to search for: --stream NAME or --event ID.');
  for (const id of events)
    if (!UUID.test(id))
      throw new UsageError(`'${id}' is not an event id. An id looks like 9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4.`);
  if (options.repository !== null) {
    if (given.has('db') || given.has('index') || options.storage !== null)
      throw new UsageError(
        'Name a data directory with --db, object storage with --storage or a repository with --repository, and only one of them.',
      );
    return searchRepository(options, events, io);
  }
  if (options.storage !== null && given.has('db'))
    throw new UsageError('Name a data directory with --db or object storage with --storage, not both.');
  if (given.has('key-file')) throw new UsageError('--key-file needs --repository.');
  const place = await objectsAt(options.db, options);
  if (place !== null) {
    if (given.has('index')) throw new UsageError('--index is for a data directory: leave it out for object storage.');
    return searchObjects(place, options, events, io);
  }
  const unfit = (['s3-endpoint', 's3-region'] as const).find((name) => given.has(name));
  if (unfit !== undefined) throw new UsageError(`--${unfit} needs --repository or --storage.`);
  return searchDirectory(options, events, io);
}

function searchObjects(
  place: ObjectLocation,
  { stream, json }: Options,
  events: readonly string[],
  io: Io,
): Promise<ExitCode> {
  return withObjectsAt(place, io, (world) =>
    report(
      checkErasureInObjects({ world, events, ...(stream !== null && { stream }) }),
      { storage: world.objects.place },
      { stream, events, advise: adviceOfObjects, json },
      io,
    ),
  );
}

async function searchDirectory(
  { stream, json, index, db }: Options,
  events: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const directory = path.resolve(db);
  await requireDirectory(directory);
  const storage = new FilesystemStorage({
    root: directory,
    mustExist: true,
    ...(index !== null && { indexRoot: index }),
  });
  try {
    return await report(
      checkErasure({ storage, events, ...(stream !== null && { stream }) }),
      { directory },
      { stream, events, advise: () => SCAVENGE, json },
      io,
    );
  } catch (error) {
    if (isSkuaError(error, 'file_not_found'))
      throw new CommandError('not_a_data_directory', `${error.message} Directory: ${directory}.`, EXIT.unreachable);
    throw error;
  }
}

function searchRepository(options: Options, events: readonly string[], io: Io): Promise<ExitCode> {
  const { stream, json } = options;
  return withRepository(placeOf(options.repository, 'repository', options), options, {}, io, (repository) =>
    report(
      checkErasureInRepository({ repository, clock: systemClock, events, ...(stream !== null && { stream }) }),
      { repository: repository.place },
      { stream, events, advise: (summary) => adviceFor(summary, options), json },
      io,
    ),
  );
}

/**
 * What removes the traces that were found: they lie in the newest backup of a node, in older ones, or in what no backup
 * needs any more.
 */
function adviceFor({ places, nodes, backupsRunning }: RepositoryErasureSummary, options: Options): string {
  const prune = (...more: string[]) =>
    repositoryCommand('backup prune', options.repository!, options, ['--erased', ...more]);
  const newest = places.flatMap((place) => (place.kind === 'backup' && place.isNewest ? [place] : []));
  const advice: string[] = [];
  for (const { backupId, nodeId } of newest) {
    advice.push(
      `The newest backup of node ${nodeId}, ${backupId}, holds traces: delete the events there if you have not yet (the last event of a stream is removed only by a hard delete), scavenge the node, and back it up${nodes > 1 ? `; if the node no longer exists, ${prune('--forget-node', nodeId)} drops its backups` : ''}.`,
    );
  }
  const isElsewhere = places.length > newest.length;
  if (newest.length > 0)
    advice.push(`${isElsewhere ? 'Other traces, and then these,' : 'Older backups then'} are removed by ${prune()}.`);
  else
    advice.push(
      `${places.every(({ kind }) => kind === 'unused') ? 'Only unused content holds them' : 'Only backups that newer ones have replaced hold them'}: ${prune()} removes them at once.`,
    );
  if (backupsRunning.length > 0)
    advice.push(
      `${runningText(backupsRunning)}; nothing is removed meanwhile: run it ${whenEndedText(backupsRunning)}.`,
    );
  return advice.join(' ');
}

interface Sought<S extends ErasureSummary> {
  readonly stream: string | null;
  /** Ids. */
  readonly events: readonly string[];
  /** What removes the traces that were found. */
  readonly advise: (summary: S) => string;
  readonly json: boolean;
}

/** Tells findings as they come, and then the verdict. `where` names what was searched. */
async function report<S extends ErasureSummary>(
  search: Search<S>,
  where: Readonly<Record<string, string>>,
  sought: Sought<S>,
  io: Io,
): Promise<ExitCode> {
  const { json } = sought;
  const waiting = new Findings(io);
  const redactions = new Map<string, NonNullable<ErasureFinding['mark']>>();
  const summary = await followSearch(
    search,
    io,
    ({ bytesDone, bytesTotal }) => ({ label: 'searching', bytesDone, bytesTotal }),
    (found) => {
      if (found.mark !== undefined) redactions.set(`${found.mark.number}@${found.mark.stream}`, found.mark);
      if (json) line(io.stdout, JSON.stringify(found));
      else waiting.tell(found);
    },
  );
  waiting.end();
  if (!json) for (const mark of redactions.values()) line(io.stdout, redactionText(mark));
  line(
    io.stdout,
    json
      ? JSON.stringify({
          kind: 'summary',
          ...where,
          ...summary,
          ...(redactions.size > 0 && { redactions: [...redactions.values()] }),
          ...(sought.stream !== null && { streamKnown: isKnown(summary) }),
        })
      : summaryText(summary, Object.values(where)[0]!, sought, io),
  );
  return summary.traces === 0 ? EXIT.ok : EXIT.failed;
}

/**
 * Reports findings. Of an object that goes by itself the first one is reported, and how many more there are: commits
 * hold copies of those before them.
 */
class Findings {
  readonly #io: Io;
  #file: string | null = null;
  #more = 0;

  constructor(io: Io) {
    this.#io = io;
  }

  tell(finding: ErasureFinding & Pick<ObjectErasureFinding, 'goesBy'>): void {
    if (finding.goesBy !== undefined && finding.file === this.#file) {
      this.#more++;
      return;
    }
    this.end();
    line(this.#io.stdout, findingText(finding, this.#io));
    if (finding.goesBy !== undefined) this.#file = finding.file;
  }

  end(): void {
    if (this.#more > 0) line(this.#io.stdout, `        and ${this.#more} more in the same object; --json shows all`);
    this.#file = null;
    this.#more = 0;
  }
}

/** What was asked, and who asked. */
function redactionText({ stream, number, by, reason }: NonNullable<ErasureFinding['mark']>): string {
  return `Event ${number} of ${JSON.stringify(stream)} was redacted by ${by}: ${reason}`;
}

function findingText({ kind, file, offset, what }: ErasureFinding, io: Io): string {
  const { red, dim, bold } = coloursFor(io.stdout, io.env);
  return `${kind === 'trace' ? red('trace  ') : dim('residue')} ${bold(`${file} at ${offset}`)}: ${what}`;
}

/** Of traces that all go by themselves none has to be removed. */
function adviceOfObjects({ traces, waiting, goneBy }: ObjectErasureSummary): string {
  const wait = `${waiting === traces ? 'They are' : `${counted(waiting, 'trace')} of them ${waiting === 1 ? 'is' : 'are'}`} in objects waiting to be removed, and will be gone by ${String(goneBy)} if a node or the functions run ticks.`;
  return [...(waiting > 0 ? [wait] : []), ...(waiting < traces ? [SCAVENGE] : [])].join(' ');
}

/** A stream that was leaves at least residue: its last event, its tombstone, or the hash of its name. */
function isKnown({ traces, residues }: ErasureSummary): boolean {
  return traces + residues > 0;
}

function summaryText<S extends ErasureSummary>(
  summary: S,
  place: string,
  { stream, events, advise }: Sought<S>,
  io: Io,
): string {
  const { files, bytes, traces, residues } = summary;
  const { red, green, yellow } = coloursFor(io.stdout, io.env);
  const searched = `Searched ${counted(files, 'file')} (${bytesText(bytes)}).`;
  // Nothing is proved of what never was: most likely the name is misspelt.
  if (stream !== null && !isKnown(summary)) {
    return `${place}: ${yellow(`no trace, and no sign that there ever was a stream ${JSON.stringify(stream)}`)}: nothing here names it, neither log nor index, not even a tombstone. This does not prove erasure: check the name. ${searched}`;
  }
  const verdict = traces === 0 ? green('no trace') : red(counted(traces, 'trace'));
  // An id, other than a stream, leaves nothing behind.
  const ofIds =
    traces === 0 && stream === null
      ? ` Whether an event with ${events.length === 1 ? 'this id' : 'these ids'} ever existed can't be determined: check the spelling.`
      : '';
  return `${place}: ${verdict}, ${counted(residues, 'residue')}. ${searched}${traces === 0 ? ofIds : ` ${advise(summary)}`}`;
}
