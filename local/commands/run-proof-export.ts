import { writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { isSkuaError } from '../../core/base/errors.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { readAnchors } from '../proof/anchor-file.ts';
import { openDirectory } from '../store/open-directory.ts';
import type { proofExportOptions } from './options-command.ts';

type Options = Input<typeof proofExportOptions>['options'];

/** Writes an anchor, or the proof of an event, of the directory of a stopped node. */
export async function runProofExport({ options }: Input<typeof proofExportOptions>, io: Io): Promise<ExitCode> {
  const { event, position, anchor, out } = options;
  if (event !== null && position !== null)
    throw new UsageError('Name the record by --event or by --position, not by both.');
  const isOfRecord = event !== null || position !== null;
  if (anchor !== null && !isOfRecord)
    throw new UsageError('--anchor is what the proof of an event leads to: name the event with --event or --position.');
  const wanted = event === null ? null : eventOf(event);
  const given = anchor === null ? null : (await readAnchors(anchor)).at(-1)!;
  const directory = path.resolve(options.db);
  const node = await openDirectory(directory, options.index, undefined, io, {
    whileRunning: 'A running node makes anchors itself: start it with --proof-chain and --proof-anchor.',
    appendsNothing: true,
    beginsProofs: true,
  });
  let text: string;
  try {
    const hashChain = node.open.hashChain!;
    const made = given ?? (await hashChain.anchor());
    if (!isOfRecord) text = `${JSON.stringify(made)}\n`;
    else
      text = `${JSON.stringify({ ...(await hashChain.prove(made, position ?? (await positionOf(node.open, wanted!)))), ...(given === null && { anchor: made }) })}\n`;
  } catch (error) {
    throw refusalOf(error);
  } finally {
    await node.close();
  }
  await write(text, out, io);
  return EXIT.ok;
}

async function write(text: string, out: Options['out'], io: Io): Promise<void> {
  if (out === null) {
    io.stdout.write(text);
    return;
  }
  try {
    await writeFile(out, text, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new CommandError(
        'file_exists',
        `${out} already exists, and an anchor is never overwritten: name a new file.`,
        EXIT.refused,
      );
    throw new CommandError('io_error', `${out} could not be written: ${(error as Error).message}`, EXIT.unreachable);
  }
  line(io.stderr, `Written to ${out}.`);
}

/** A stream may have slashes in its name: the number stands behind the last one. */
function eventOf(text: string): { readonly stream: string; readonly number: number } {
  const match = /^(.+)\/(\d{1,16})$/.exec(text);
  if (match === null || !Number.isSafeInteger(Number(match[2])))
    throw new UsageError(`--event must be STREAM/NUMBER, such as orders-7/0, not '${text}'.`);
  return { stream: match[1]!, number: Number(match[2]) };
}

async function positionOf(
  { store }: DirectoryStore,
  { stream, number }: { readonly stream: string; readonly number: number },
): Promise<number> {
  const page = await store.readStream(stream, { direction: 'forward', from: number, count: 1, resolveLinks: false });
  const found = page.events.find((event) => event.number === number);
  if (found === undefined)
    throw new CommandError(
      'event_not_found',
      `There is no event ${number} in the stream ${stream}: it never existed, was deleted or has expired.`,
      EXIT.failed,
    );
  return found.preparePosition;
}

/** What is wrong with what was asked for; a directory that is damaged ends as any other failure. */
function refusalOf(error: unknown): unknown {
  if (isSkuaError(error, 'proof_invalid') || isSkuaError(error, 'proof_absent'))
    return new CommandError(error.code, error.message, EXIT.failed);
  return error;
}
