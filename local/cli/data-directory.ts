import { realpath, stat } from 'node:fs/promises';
import * as path from 'node:path';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';

/** A directory may be absent, as a node creates it; a file in its place is refused. */
export async function refuseFile(directory: string, option: string): Promise<void> {
  const found = await stat(directory).catch(() => null);
  if (found !== null && !found.isDirectory())
    throw new CommandError(
      'not_a_directory',
      `${directory} is a file. Name a directory with ${option}.`,
      EXIT.unreachable,
    );
}

/** A directory that a command only looks at must be there. */
export async function requireDirectory(directory: string): Promise<void> {
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory() !== true)
    throw new CommandError(
      'not_a_directory',
      `${directory} is not a directory. Name the data directory of a node (the value of its --db).`,
      EXIT.unreachable,
    );
}

/**
 * Folders of a data directory: itself, and that of its index, which may be named, or be a link to elsewhere. None where
 * there is no directory.
 */
export function foldersOf(db: string | null, index: string | null): readonly string[] {
  return [...(db === null ? [] : [db, path.join(db, 'index')]), ...(index === null ? [] : [index])];
}

/**
 * What is written to must not be, hold or lie in what is read, also by way of links: it would go while it is read.
 * `name`: of the options that name what is written.
 */
export async function refuseOverlap({
  read,
  written,
  name,
}: {
  readonly read: readonly string[];
  readonly written: readonly string[];
  readonly name: string;
}): Promise<void> {
  const sources = await Promise.all(read.map(realFolder));
  for (const to of await Promise.all(written.map(realFolder))) {
    const from = sources.find((source) => isWithin(to, source) || isWithin(source, to));
    if (from !== undefined)
      throw new CommandError(
        'directory_not_empty',
        `${to} is, contains or is inside the directory to read (${from}). Name another one with ${name}.`,
        EXIT.refused,
      );
  }
}

/** Where a path leads; what of it is not there yet stays as it is. */
async function realFolder(folder: string): Promise<string> {
  const absolute = path.resolve(folder);
  const real = await realpath(absolute).catch(() => null);
  const parent = path.dirname(absolute);
  return real ?? (parent === absolute ? absolute : path.join(await realFolder(parent), path.basename(absolute)));
}

function isWithin(folder: string, other: string): boolean {
  return folder === other || folder.startsWith(other.endsWith(path.sep) ? other : other + path.sep);
}
