import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import { isSkuaError } from '../../core/errors.ts';
import type { OpenStoreOptions } from '../../core/store.ts';
import { systemClock } from '../../infra/clock.ts';
import { CommandError } from '../cli/failure.ts';
import { EXIT, line } from '../cli/io.ts';
import type { Io } from '../cli/io.ts';
import { requireDirectory } from '../directory.ts';
import { createLog } from '../logger.ts';
import { openNode } from '../open-node.ts';
import type { OpenNode } from '../open-node.ts';
import { Progress } from '../progress.ts';

const PHASES = { 'recovering-log': 'recovering the log', 'rebuilding-index': 'rebuilding the index', 'verifying-index': 'verifying the index' } as const;

/** Opens the directory of a stopped node as that node would, but for its start record. */
export async function openDirectory(directory: string, index: string | null, scavenge: OpenStoreOptions['scavenge'], io: Io): Promise<OpenNode> {
  await requireDirectory(directory);
  await requireDatabase(directory);
  const progress = new Progress({ output: io.stderr, env: io.env, clock: systemClock, onLine: (message) => line(io.stderr, message) });
  try {
    return await openNode({
      db: directory, index, mustExist: true, log: createLog(io, 'warn'),
      store: { writeEpoch: false, verifyChunks: false, ...(scavenge !== undefined && { scavenge }) },
      onProgress: ({ phase, bytesDone, bytesTotal }) => progress.update({ label: PHASES[phase], bytesDone, bytesTotal }),
    });
  } catch (error) {
    if (isSkuaError(error, 'directory_locked')) throw new CommandError(error.code, `${error.message} For a running node use \`skua scavenge start\` or \`skua explain\` with --node.`, EXIT.unreachable);
    throw error;
  } finally {
    progress.clear();
  }
}

/** An empty directory would become a new database. */
async function requireDatabase(directory: string): Promise<void> {
  const found = await stat(path.join(directory, 'writer.chk')).catch(() => null);
  if (found === null) throw new CommandError('not_a_data_directory', `${directory} holds no writer.chk, so it is no data directory. Name the value of a node's --db.`, EXIT.unreachable);
}
