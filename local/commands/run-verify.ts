import * as path from 'node:path';
import { isSkuaError } from '../../core/errors.ts';
import type { VerifyFinding } from '../../core/verify/run.ts';
import { verifyDirectory } from '../../core/verify/verify.ts';
import type { VerifySummary } from '../../core/verify/verify.ts';
import { systemClock } from '../../infra/clock.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import type { Input } from '../cli/command.ts';
import { requireDirectory } from '../cli/directory.ts';
import { CommandError } from '../cli/failure.ts';
import { coloursFor, EXIT, line } from '../cli/io.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { durationText, Progress } from '../cli/progress.ts';
import type { verifyOptions } from './options.ts';

const PHASES = { log: 'checking the log', index: 'checking the index' } as const;

/** Checks a directory and reports what is wrong as it is found. */
export async function runVerify({ options, positionals }: Input<typeof verifyOptions>, io: Io): Promise<ExitCode> {
  const directory = path.resolve(positionals[0]!);
  await requireDirectory(directory);
  const storage = new FilesystemStorage({ root: directory, mustExist: true, ...(options.index !== null && { indexRoot: options.index }) });
  const started = systemClock.monotonicMs();
  const progress = new Progress({ output: io.stderr, env: io.env, clock: systemClock, onLine: (message) => line(io.stderr, message) });
  try {
    const run = verifyDirectory({ storage, digests: nodeDigests, clock: systemClock });
    let next = await run.next();
    for (; next.done !== true; next = await run.next()) {
      const message = next.value;
      if (message.kind === 'progress') {
        progress.update({ label: PHASES[message.phase], bytesDone: message.bytesDone, bytesTotal: message.bytesTotal });
      } else {
        progress.clear();
        line(io.stdout, options.json ? JSON.stringify(message) : findingText(message, io));
      }
    }
    progress.clear();
    const seconds = (systemClock.monotonicMs() - started) / 1000;
    line(io.stdout, options.json ? JSON.stringify({ kind: 'summary', directory, ...next.value, seconds }) : summaryText(next.value, directory, seconds, io));
    return next.value.errors === 0 ? EXIT.ok : EXIT.failed;
  } catch (error) {
    if (isSkuaError(error, 'file_not_found')) throw new CommandError('not_a_data_directory', `${error.message} Directory: ${directory}.`, EXIT.unreachable);
    throw error;
  } finally {
    progress.clear();
  }
}

function findingText(finding: VerifyFinding, io: Io): string {
  const colours = coloursFor(io.stdout, io.env);
  const severity = finding.severity === 'error' ? colours.red('error  ') : colours.yellow('warning');
  const place = finding.offset === null ? finding.file : `${finding.file} at ${finding.offset}`;
  return `${severity} ${colours.bold(place)} ${finding.code}: ${finding.message}`;
}

function summaryText(summary: VerifySummary, directory: string, seconds: number, io: Io): string {
  const colours = coloursFor(io.stdout, io.env);
  const { chunks, records, events, indexTables, indexEntries, errors, warnings } = summary;
  const looked = `${counted(chunks, 'chunk')}, ${counted(records, 'record')} (${counted(events, 'event')}), ${counted(indexTables, 'index table')} with ${counted(indexEntries, 'entry', 'entries')}`;
  const verdict = errors > 0 ? colours.red(`${counted(errors, 'error')}, ${counted(warnings, 'warning')}`)
    : warnings > 0 ? colours.yellow(`nothing wrong, ${counted(warnings, 'warning')}`) : colours.green('nothing wrong');
  return `${directory}: ${verdict}. Looked at ${looked} in ${durationText(seconds)}.`;
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}
