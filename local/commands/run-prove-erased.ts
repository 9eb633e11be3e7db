import * as path from 'node:path';
import { checkErasureInRepository } from '../../core/backup/erasure-check/erasure-check.ts';
import type { RepositoryErasureSummary } from '../../core/backup/api.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { timestampText } from '../../core/base/time.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { keptAnchor } from '../../core/integrity/kept-anchor/kept-anchor.ts';
import { checkErasure } from '../../core/scavenge/erasure/erasure.ts';
import type { ErasureFinding, ErasureProgress, ErasureSummary } from '../../core/scavenge/api.ts';
import { checkErasureInObjects } from '../../core/shared-log/erasure-check/erasure-check.ts';
import type { ObjectErasureFinding, ObjectErasureSummary } from '../../core/shared-log/erasure-check/erasure-check.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
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
import {
  CHAIN_ELSEWHERE,
  type ChainState,
  chainText,
  ErasureRecord,
  NO_CHAIN_KEPT,
  remainText,
} from './erasure-record.ts';
import type { proveErasedOptions } from './options-command.ts';

const SCAVENGE =
  'A scavenge removes what is deleted or expired, and the content of redacted events; the last event of a stream goes only with a hard delete of the stream.';
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
  { stream, json, 'allow-unknown': allowsUnknown }: Options,
  events: readonly string[],
  io: Io,
): Promise<ExitCode> {
  return withObjectsAt(place, io, (world) =>
    report(
      checkErasureInObjects({ world, events, ...(stream !== null && { stream }) }),
      { storage: world.objects.place },
      { stream, advise: adviceOfObjects, chain: async () => ELSEWHERE, allowsUnknown, json },
      io,
    ),
  );
}

async function searchDirectory(
  { stream, json, index, db, 'allow-unknown': allowsUnknown }: Options,
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
      {
        stream,
        searched: ', with the space set aside in them',
        advise: () => SCAVENGE,
        chain: () => chainOf(storage),
        allowsUnknown,
        json,
      },
      io,
    );
  } catch (error) {
    if (isSkuaError(error, 'file_not_found'))
      throw new CommandError('not_a_data_directory', `${error.message} Directory: ${directory}.`, EXIT.unreachable);
    throw error;
  }
}

function searchRepository(options: Options, events: readonly string[], io: Io): Promise<ExitCode> {
  const { stream, json, 'allow-unknown': allowsUnknown } = options;
  return withRepository(placeOf(options.repository, 'repository', options), options, {}, io, (repository) =>
    report(
      checkErasureInRepository({ repository, clock: systemClock, events, ...(stream !== null && { stream }) }),
      { repository: repository.place },
      {
        stream,
        advise: (summary) => adviceFor(summary, options),
        remains: ({ places }) => remainText(places),
        chain: async () => ELSEWHERE,
        allowsUnknown,
        json,
      },
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
      `The newest backup of node ${nodeId}, ${backupId}, was made before they were removed. Delete or redact the events on the node if you have not yet (the last event of a stream goes only with a hard delete of the stream; a redaction empties any), scavenge it, and back it up again${nodes > 1 ? `; if the node no longer exists, ${prune('--forget-node', nodeId)} drops its backups` : ''}.`,
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

const ELSEWHERE: ChainState = { anchor: null, why: CHAIN_ELSEWHERE };

async function chainOf(storage: Storage): Promise<ChainState> {
  try {
    const anchor = await keptAnchor(storage, nodeDigests);
    return anchor === null ? { anchor, why: NO_CHAIN_KEPT } : { anchor };
  } catch (error) {
    if (isSkuaError(error, 'proof_damaged')) return { anchor: null, why: error.message };
    throw error;
  }
}

interface Sought<S extends ErasureSummary> {
  readonly stream: string | null;
  /** What removes the traces that were found. */
  readonly advise: (summary: S) => string;
  /** Where traces are, and until when, a line each. */
  readonly remains?: (summary: S) => readonly string[];
  /** What to know about the bytes that were searched. */
  readonly searched?: string;
  readonly chain: () => Promise<ChainState>;
  readonly allowsUnknown: boolean;
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
  const record = new ErasureRecord();
  const searchedAt = timestampText(Math.floor(systemClock.nowMs()), 0);
  const summary = await followSearch(
    search,
    io,
    ({ bytesDone, bytesTotal }) => ({ label: 'searching', bytesDone, bytesTotal }),
    (found) => {
      record.note(found);
      if (json) line(io.stdout, JSON.stringify(found));
      else waiting.tell(found);
    },
  );
  waiting.end();
  const chain = await sought.chain();
  if (json) {
    line(
      io.stdout,
      JSON.stringify({
        kind: 'summary',
        ...where,
        ...summary,
        searchedAt,
        redactions: record.redactions,
        deletions: record.deletions,
        chain: chain.anchor,
        ...(chain.anchor === null && { chainNote: chain.why }),
        ...(sought.stream !== null && { streamKnown: isKnown(summary) }),
      }),
    );
  } else {
    for (const each of record.lines(sought.stream)) line(io.stdout, each);
    for (const each of sought.remains?.(summary) ?? []) line(io.stdout, each);
    line(io.stdout, chainText(chain));
    line(io.stdout, summaryText(summary, Object.values(where)[0]!, { ...sought, searchedAt }, io));
  }
  const isProved = summary.traces === 0 && (sought.allowsUnknown || unknownOf(summary, sought.stream).length === 0);
  return isProved ? EXIT.ok : EXIT.failed;
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

/**
 * What nothing was found of, so that nothing is proved of it: most likely it is misspelt. Of the events of a stream
 * that is named the stream's own residue tells.
 */
function unknownOf(summary: ErasureSummary, stream: string | null): readonly string[] {
  if (stream === null) return summary.unknownEvents;
  return isKnown(summary) ? [] : [stream];
}

const ALLOW_UNKNOWN = ' (with --allow-unknown the exit code is 0)';

function summaryText<S extends ErasureSummary>(
  summary: S,
  place: string,
  { stream, advise, searched = '', searchedAt, allowsUnknown }: Sought<S> & { readonly searchedAt: string },
  io: Io,
): string {
  const { files, bytes, traces, residues } = summary;
  const { red, green, yellow } = coloursFor(io.stdout, io.env);
  const how = `Searched ${counted(files, 'file')} (${bytesText(bytes)}${searched}) at ${searchedAt}.`;
  const allow = allowsUnknown ? '' : ALLOW_UNKNOWN;
  const unknown = unknownOf(summary, stream);
  if (stream !== null && unknown.length > 0) {
    return `${place}: ${yellow(`no trace, and no sign that there ever was a stream ${JSON.stringify(stream)}`)}: nothing here names it, neither log nor index, not even a tombstone. This does not prove erasure: check the name${allow}. ${how}`;
  }
  const verdict = traces === 0 ? green('no trace') : red(counted(traces, 'trace'));
  const more = [
    ...(traces === 0 ? [] : [advise(summary)]),
    ...(unknown.length === 0
      ? []
      : [
          `${yellow(`No sign that there ever was ${unknown.length === 1 ? `an event ${unknown[0]}` : `any of ${unknown.length} events, such as ${unknown[0]}`}`)}: a scavenge has removed all of it, or the id is misspelt. This does not prove erasure: check the spelling${allow}.`,
        ]),
  ];
  return [`${place}: ${verdict}, ${counted(residues, 'residue')}. ${how}`, ...more].join(' ');
}
