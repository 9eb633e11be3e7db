import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { readInput, utf8Text } from './input.ts';
import { EXIT, line } from '../../infra/runtime/io.ts';
import type { Io } from '../../infra/runtime/io.ts';

/** Much longer than any password. */
const INPUT_BYTES_MAX = 8_192;

/**
 * A new password, from where others don't see it: a file (`-` for standard input), standard input where that is no
 * terminal, else typed twice without being shown. Never from an argument, which stands in the list of processes. The
 * end of its line does not count.
 */
export async function readNewPassword(file: string | null, whose: string, io: Io): Promise<string> {
  const { stdin } = io;
  if (file !== null && file !== '-') return onlyLine(await readInput(file, INPUT_BYTES_MAX), file);
  if (stdin === undefined)
    throw new UsageError('There is no standard input: give the password with --password-file FILE.');
  return stdin.isTTY === true && file === null
    ? typedTwice(stdin, whose, io)
    : onlyLine(await allOf(stdin), 'Standard input');
}

async function allOf(stdin: NodeJS.ReadableStream): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of stdin) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    parts.push(bytes);
    length += bytes.length;
    if (length > INPUT_BYTES_MAX)
      throw new CommandError(
        'file_too_large',
        `Standard input is longer than ${INPUT_BYTES_MAX} bytes, which is too long for a password.`,
        EXIT.failed,
      );
  }
  return Buffer.concat(parts);
}

/** The messages never show what was read. */
function onlyLine(bytes: Uint8Array, where: string): string {
  const text = utf8Text(bytes)?.replace(/\r?\n$/, '');
  if (text === undefined)
    throw new CommandError('invalid_user', `${where} is not UTF-8 text, so it is not a password.`, EXIT.refused);
  if (/[\r\n]/.test(text))
    throw new CommandError('invalid_user', `${where} holds more than one line: a password is one line.`, EXIT.refused);
  return text;
}

async function typedTwice(stdin: NodeJS.ReadableStream, whose: string, io: Io): Promise<string> {
  const muted = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: stdin, output: muted, terminal: true, historySize: 0 });
  const lines = linesOf(reader);
  try {
    io.stderr.write(`New password of ${whose}: `);
    const first = await lines();
    io.stderr.write('\nRepeat it: ');
    const second = await lines();
    if (first !== second)
      throw new CommandError('invalid_user', 'The passwords do not match. Nothing was changed.', EXIT.refused);
    return first;
  } finally {
    reader.close();
    line(io.stderr);
  }
}

/** Lines as they are typed or pasted; rejects once the terminal is closed or Ctrl+C pressed. */
function linesOf(reader: ReturnType<typeof createInterface>): () => Promise<string> {
  const ready: string[] = [];
  let take: { readonly resolve: (text: string) => void; readonly reject: (error: Error) => void } | null = null;
  let isOver = false;
  const end = () => {
    isOver = true;
    take?.reject(interrupted());
    take = null;
  };
  reader.on('line', (text) => {
    if (take === null) ready.push(text);
    else take.resolve(text);
    take = null;
  });
  reader.on('SIGINT', end);
  reader.on('close', end);
  return () => {
    if (ready.length > 0) return Promise.resolve(ready.shift()!);
    return isOver
      ? Promise.reject(interrupted())
      : new Promise((resolve, reject) => {
          take = { resolve, reject };
        });
  };
}

function interrupted(): CommandError {
  return new CommandError('interrupted', 'Nothing was changed.', EXIT.interrupted);
}
