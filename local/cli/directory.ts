import { stat } from 'node:fs/promises';
import { CommandError } from './failure.ts';
import { EXIT } from './io.ts';

/** A directory may be absent, as a node creates it; a file in its place is refused. */
export async function refuseFile(directory: string, option: string): Promise<void> {
  const found = await stat(directory).catch(() => null);
  if (found !== null && !found.isDirectory()) throw new CommandError('not_a_directory', `${directory} is a file. Name a directory with ${option}.`, EXIT.unreachable);
}

/** A directory that a command only looks at must be there. */
export async function requireDirectory(directory: string): Promise<void> {
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory() !== true) throw new CommandError('not_a_directory', `${directory} is not a directory. Name the data directory of a node (the value of its --db).`, EXIT.unreachable);
}
