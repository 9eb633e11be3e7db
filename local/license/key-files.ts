import { randomUUID } from 'node:crypto';
import { link, open, rename, rm } from 'node:fs/promises';
import { CommandError } from '../cli/failure.ts';
import { EXIT } from '../cli/io.ts';

/** For its owner only. */
export const SECRET_MODE = 0o600;
/** For everybody to read. */
export const PUBLIC_MODE = 0o644;

export interface FileToWrite {
  readonly file: string;
  readonly text: string;
  readonly mode: number;
}

/**
 * Writes files whole and durably, all or none where one is there already: `file_exists` unless `force`. They have their mode
 * from the beginning, also where they take the place of others.
 */
export async function writeKeyFiles(files: readonly FileToWrite[], force: boolean): Promise<void> {
  const written: { readonly temporary: string; readonly file: string }[] = [];
  const taken: string[] = [];
  try {
    for (const { file, text, mode } of files) {
      const temporary = `${file}.${randomUUID()}.tmp`;
      written.push({ temporary, file });
      await writeDurably(temporary, text, mode).catch((error: unknown) => { throw unwritable(file, error); });
    }
    for (const { temporary, file } of written) {
      // A link, unlike a rename, never takes the place of a file.
      await (force ? rename(temporary, file) : link(temporary, file)).catch((error: unknown) => { throw unwritable(file, error); });
      taken.push(file);
    }
  } catch (error) {
    if (!force) for (const file of taken) await rm(file, { force: true });
    throw error;
  } finally {
    for (const { temporary } of written) await rm(temporary, { force: true });
  }
}

async function writeDurably(file: string, text: string, mode: number): Promise<void> {
  await using handle = await open(file, 'wx', mode);
  await handle.writeFile(text);
  await handle.sync();
}

function unwritable(file: string, error: unknown): CommandError {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'EEXIST') return new CommandError('file_exists', `${file} is there already, and is left as it is. Name another file, or add --force to replace it.`, EXIT.refused);
  return new CommandError('file_unwritable', `${file} can't be written (${code ?? String(error)}). Name a file in a folder that is there and may be written.`, EXIT.unreachable);
}
