import * as path from 'node:path';
import { proveErasedInRepository } from '../../core/backup/verify/prove-erased.ts';
import { isSkuaError } from '../../core/errors.ts';
import { proveErased } from '../../core/scavenge/erasure/prove-erased.ts';
import type { ErasureFinding, ErasureProgress, ErasureSummary } from '../../core/scavenge/erasure/prove-erased.ts';
import { systemClock } from '../../infra/clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { placeOf, withRepository } from '../backup/world.ts';
import { coloursFor, counted, EXIT, line } from '../cli/io.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../cli/failure.ts';
import { requireDirectory } from '../cli/directory.ts';
import { bytesText, Progress } from '../cli/progress.ts';
import type { proveErasedOptions } from './options.ts';

const SCAVENGE = 'A scavenge removes what is deleted or expired; the last event of a stream goes only with a hard delete.';
const PRUNE = 'Scavenge the node, make a backup, then run `skua backup prune --erased`.';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

type Options = Input<typeof proveErasedOptions>['options'];
type Search = AsyncGenerator<ErasureFinding | ErasureProgress, ErasureSummary>;

/** Searches a directory or a repository and reports what is found as it is found. */
export async function runProveErased({ options, given, positionals }: Input<typeof proveErasedOptions>, io: Io): Promise<ExitCode> {
  const events = [...options.event, ...positionals];
  if (options.stream === null && !given.has('event')) throw new UsageError('Say what to look for: --stream NAME or --event ID.');
  for (const id of events) if (!UUID.test(id)) throw new UsageError(`'${id}' is no event id. An id looks like 9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4.`);
  if (options.repository !== null) {
    if (given.has('db') || given.has('index')) throw new UsageError('Name a data directory with --db or a repository with --repository, not both.');
    return searchRepository(options, events, io);
  }
  const unfit = (['key-file', 's3-endpoint', 's3-region'] as const).find((name) => given.has(name));
  if (unfit !== undefined) throw new UsageError(`--${unfit} goes with --repository.`);
  return searchDirectory(options, events, io);
}

async function searchDirectory({ stream, json, index, db }: Options, events: readonly string[], io: Io): Promise<ExitCode> {
  const directory = path.resolve(db);
  await requireDirectory(directory);
  const storage = new FilesystemStorage({ root: directory, mustExist: true, ...(index !== null && { indexRoot: index }) });
  try {
    return await report(proveErased({ storage, events, ...(stream !== null && { stream }) }), { directory }, SCAVENGE, json, io);
  } catch (error) {
    if (isSkuaError(error, 'file_not_found')) throw new CommandError('not_a_data_directory', `${error.message} Directory: ${directory}.`, EXIT.unreachable);
    throw error;
  }
}

function searchRepository(options: Options, events: readonly string[], io: Io): Promise<ExitCode> {
  const { stream, json } = options;
  return withRepository(placeOf(options.repository, 'repository', options), options, {}, (repository) => (
    report(proveErasedInRepository({ repository, events, ...(stream !== null && { stream }) }), { repository: repository.place }, PRUNE, json, io)));
}

/** Tells findings as they come, and then the verdict. `where` names what was searched, `advice` says what removes traces. */
async function report(search: Search, where: Readonly<Record<string, string>>, advice: string, json: boolean, io: Io): Promise<ExitCode> {
  const progress = new Progress({ output: io.stderr, env: io.env, clock: systemClock, onLine: (message) => line(io.stderr, message) });
  try {
    let next = await search.next();
    for (; next.done !== true; next = await search.next()) {
      const message = next.value;
      if (message.kind === 'progress') progress.update({ label: 'searching', bytesDone: message.bytesDone, bytesTotal: message.bytesTotal });
      else {
        progress.clear();
        line(io.stdout, json ? JSON.stringify(message) : findingText(message, io));
      }
    }
    progress.clear();
    line(io.stdout, json ? JSON.stringify({ kind: 'summary', ...where, ...next.value }) : summaryText(next.value, Object.values(where)[0]!, advice, io));
    return next.value.traces === 0 ? EXIT.ok : EXIT.failed;
  } finally {
    progress.clear();
  }
}

function findingText({ kind, file, offset, what }: ErasureFinding, io: Io): string {
  const { red, dim, bold } = coloursFor(io.stdout, io.env);
  return `${kind === 'trace' ? red('trace  ') : dim('residue')} ${bold(`${file} at ${offset}`)}: ${what}`;
}

function summaryText({ files, bytes, traces, residues }: ErasureSummary, place: string, advice: string, io: Io): string {
  const { red, green } = coloursFor(io.stdout, io.env);
  const verdict = traces === 0 ? green('no trace') : red(counted(traces, 'trace'));
  return `${place}: ${verdict}, ${counted(residues, 'residue')}. Searched ${counted(files, 'file')} (${bytesText(bytes)}).${traces === 0 ? '' : ` ${advice}`}`;
}
