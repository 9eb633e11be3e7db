import * as path from 'node:path';
import { createKeyFile } from '../backup/key-file.ts';
import type { Input } from '../cli/command.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import type { keyOptions } from './backup.ts';

/** Makes the key of an encrypted repository. */
export async function runBackupKey({ options, positionals }: Input<typeof keyOptions>, io: Io): Promise<ExitCode> {
  const file = path.resolve(positionals[0]!);
  await createKeyFile(file);
  if (options.json) line(io.stdout, JSON.stringify({ file }));
  else line(io.stdout, `${file} holds a new key. Keep a copy of it in a safe place: without it the backups made with it are lost.`);
  return EXIT.ok;
}
