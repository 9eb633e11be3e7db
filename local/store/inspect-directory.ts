import { accessSync, constants } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { OverStorage } from '../../core/memory/over-storage.ts';
import type { ScavengeStates } from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { DATABASE_FOLDER } from '../../core/scavenge/format/scavenge-files.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { TemporaryFolder } from '../../infra/fs/file-removal.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT, line } from '../../infra/runtime/io.ts';
import type { Io } from '../../infra/runtime/io.ts';

/** A directory that can't be written to, for a command that opens it as a node does and changes nothing of it. */
export interface OpenedForInspection {
  readonly storage: Storage;
  readonly states: ScavengeStates;
  /** Removes what was written beside it. To be called when all is closed. */
  remove(): Promise<void>;
}

/** What the system says of a place that can't be written to. */
const REFUSALS: ReadonlySet<unknown> = new Set(['EROFS', 'EACCES', 'EPERM']);

/** Why the directory can't be written to (`EROFS`, `EACCES`); null where it can, or is not there. */
export function whyReadOnly(root: string, indexRoot: string): string | null {
  for (const place of [root, path.join(root, 'writer.chk'), indexRoot]) {
    try {
      accessSync(place, constants.W_OK);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (REFUSALS.has(code)) return code!;
    }
  }
  return null;
}

/**
 * Where a directory can't be written to: its files, and what is written goes to a folder among the temporary files of
 * this machine. Says so, and what is assumed, on `io.stderr`. Null where it can be written to: then it is locked and
 * opened as a node does it. Throws where it can't, and the command does not only look.
 */
export async function openForInspection(
  root: string,
  index: string | null,
  looksOnly: boolean,
  io: Io,
): Promise<OpenedForInspection | null> {
  const base = new FilesystemStorage({ root, mustExist: true, ...(index !== null && { indexRoot: index }) });
  const why = whyReadOnly(base.root, base.indexRoot);
  if (why === null) return null;
  if (!looksOnly)
    throw new CommandError(
      'io_error',
      `${base.root} can't be written to (${why}): this command locks the directory against other users, and writes to it. Name a writable directory, or a copy of this one.`,
      EXIT.unreachable,
    );
  line(
    io.stderr,
    `${base.root} can't be written to (${why}), so it is read without changes; temporary files go to ${tmpdir()}. Make sure no node writes to it through another mount meanwhile.`,
  );
  const folder = await TemporaryFolder.make('skua-look-');
  const remove = () => folder.remove();
  try {
    const scratch = new FilesystemStorage({ root: folder.path, isOffline: true });
    const storage = new OverStorage(base, scratch);
    // SQLite opens files, and knows nothing of storages.
    for (const name of await base.list(DATABASE_FOLDER))
      if (name === 'scavenging.db' || name === 'scavenging.db-wal') await storage.bring(`${DATABASE_FOLDER}/${name}`);
    return { storage, states: new SqliteScavengeStates({ indexRoot: scratch.indexRoot }), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
