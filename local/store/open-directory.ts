import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import { existenceBytesOf } from '../../core/index/format/existence-files.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import type { StartProgress } from '../../core/store/store.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { requireDirectory } from '../cli/data-directory.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT, line } from '../../infra/runtime/io.ts';
import type { Io } from '../../infra/runtime/io.ts';
import { Progress } from '../cli/progress.ts';
import type { Phases } from '../cli/progress.ts';
import { createLog } from '../log/logger.ts';
import { openForInspection } from './inspect-directory.ts';
import { openNode } from './open-node.ts';
import type { OpenNode, ScavengeSettings } from './open-node.ts';

const LABELS: Readonly<Record<StartProgress['phase'], string>> = {
  'catching-up': 'catching up with the log',
  'recovering-log': 'recovering the log',
  'rebuilding-index': 'rebuilding the index',
  'verifying-index': 'verifying the index',
};
const PHASES: Phases = {
  [LABELS['recovering-log']]: 20,
  [LABELS['verifying-index']]: 15,
  [LABELS['rebuilding-index']]: 65,
};

/** How far the opening of a store is, for a bar. */
export function openingState({ phase, bytesDone, bytesTotal }: StartProgress) {
  return { label: LABELS[phase], phases: PHASES, bytesDone, bytesTotal };
}

interface DirectoryUse {
  /** What to do where the node is not stopped. */
  readonly whileRunning?: string;
  /** Nothing is appended to its log: so the copy of a member of a cluster may be opened too. */
  readonly appendsNothing?: boolean;
  /** Nothing of it is changed, so that one that can't be written to will do. */
  readonly looksOnly?: boolean;
  /** Begin a chain of hashes where there is none. */
  readonly beginsProofs?: boolean;
}

/**
 * Opens the directory of a stopped node as that node would, but for its start record. Throws where it can't be written
 * to and has to be.
 */
export async function openDirectory(
  directory: string,
  index: string | null,
  scavenge: ScavengeSettings | undefined,
  io: Io,
  use: DirectoryUse = {},
): Promise<OpenNode> {
  const {
    whileRunning = 'For a running node use `skua scavenge start` or `skua explain` with --node.',
    appendsNothing = false,
    beginsProofs = false,
    looksOnly = false,
  } = use;
  await requireDirectory(directory);
  await requireDatabase(directory);
  const over = await openForInspection(directory, index, looksOnly, io);
  const progress = new Progress({
    io,
    onLine: (message) => line(io.stderr, message),
  });
  try {
    // With the filter of another size than the node's own it would be made anew here, and once more by the next start.
    const existenceFilterBytes = await existenceBytesOf(
      new FilesystemStorage({ root: directory, mustExist: true, ...(index !== null && { indexRoot: index }) }),
    );
    const opened = await openNode({
      db: directory,
      index,
      mustExist: true,
      ...(over !== null && { over }),
      log: createLog(io, 'warn'),
      store: {
        ...(existenceFilterBytes !== null && { index: { existenceFilterBytes } }),
        beginsProofs,
        log: {
          writeEpoch: false,
          verifyChunks: false,
          isReplica: appendsNothing,
          appendRestored: !appendsNothing && !looksOnly,
        },
        ...(scavenge !== undefined && { scavenge }),
      },
      onProgress: (state) => progress.update(openingState(state)),
    });
    if (over === null) return opened;
    return {
      ...opened,
      close: async () => {
        await opened.close();
        await over.remove();
      },
    };
  } catch (error) {
    await over?.remove();
    if (isSkuaError(error, 'directory_locked'))
      throw new CommandError(error.code, `${error.message} ${whileRunning}`, EXIT.unreachable);
    throw error;
  } finally {
    progress.clear();
  }
}

/** An empty directory would become a new database. */
async function requireDatabase(directory: string): Promise<void> {
  const found = await stat(path.join(directory, 'writer.chk')).catch(() => null);
  if (found === null)
    throw new CommandError(
      'not_a_data_directory',
      `${directory} has no writer.chk, so it is not a data directory. Name the directory given to a node as --db.`,
      EXIT.unreachable,
    );
}
