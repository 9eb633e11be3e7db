import * as path from 'node:path';
import { isSkuaError } from '../../core/errors.ts';
import { proveErased } from '../../core/scavenge/prove-erased.ts';
import type { ErasureFinding, ErasureSummary } from '../../core/scavenge/prove-erased.ts';
import { systemClock } from '../../infra/clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Input } from '../cli/command.ts';
import { CommandError } from '../cli/failure.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { counted } from '../cli/table.ts';
import { UsageError } from '../cli/usage-error.ts';
import { requireDirectory } from '../directory.ts';
import { bytesText, Progress } from '../progress.ts';
import type { proveErasedOptions } from './prove-erased.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Searches a directory and reports what is found as it is found. */
export async function runProveErased({ options, given, positionals }: Input<typeof proveErasedOptions>, io: Io): Promise<ExitCode> {
  const { stream, json, index } = options;
  const events = [...options.event, ...positionals];
  if (stream === null && !given.has('event')) throw new UsageError('Say what to look for: --stream NAME or --event ID.');
  for (const id of events) if (!UUID.test(id)) throw new UsageError(`'${id}' is no event id. An id looks like 9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4.`);
  const directory = path.resolve(options.db);
  await requireDirectory(directory);
  const storage = new FilesystemStorage({ root: directory, mustExist: true, ...(index !== null && { indexRoot: index }) });
  const progress = new Progress({ output: io.stderr, env: io.env, clock: systemClock, onLine: (message) => line(io.stderr, message) });
  try {
    const run = proveErased({ storage, events, ...(stream !== null && { stream }) });
    let next = await run.next();
    for (; next.done !== true; next = await run.next()) {
      const message = next.value;
      if (message.kind === 'progress') progress.update({ label: 'searching', bytesDone: message.bytesDone, bytesTotal: message.bytesTotal });
      else {
        progress.clear();
        line(io.stdout, json ? JSON.stringify(message) : findingText(message, io));
      }
    }
    progress.clear();
    line(io.stdout, json ? JSON.stringify({ kind: 'summary', directory, ...next.value }) : summaryText(next.value, directory, io));
    return next.value.traces === 0 ? EXIT.ok : EXIT.failed;
  } catch (error) {
    if (isSkuaError(error, 'file_not_found')) throw new CommandError('not_a_data_directory', `${error.message} Directory: ${directory}.`, EXIT.unreachable);
    throw error;
  } finally {
    progress.clear();
  }
}

function findingText({ kind, file, offset, what }: ErasureFinding, io: Io): string {
  const { red, dim, bold } = coloursFor(io.stdout, io.env);
  return `${kind === 'trace' ? red('trace  ') : dim('residue')} ${bold(`${file} at ${offset}`)}: ${what}`;
}

function summaryText({ files, bytes, traces, residues }: ErasureSummary, directory: string, io: Io): string {
  const { red, green } = coloursFor(io.stdout, io.env);
  const verdict = traces === 0 ? green('no trace') : red(counted(traces, 'trace'));
  const advice = traces === 0 ? '' : ' A scavenge removes what is deleted or expired; the last event of a stream goes only with a hard delete.';
  return `${directory}: ${verdict}, ${counted(residues, 'residue')}. Searched ${counted(files, 'file')} (${bytesText(bytes)}).${advice}`;
}
