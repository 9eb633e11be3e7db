import { SkuaError } from '../../../base/errors.ts';
import { replaceFile } from '../../../ports/durability.ts';
import { LOG_ID_FILE } from '../../../log/format/markers.ts';
import type { Storage } from '../../../ports/storage.ts';
import { decodeText, encodeText } from '../../../base/text.ts';

/** A file that is longer than this is none of ours. */
const FILE_BYTES_MAX = 64;
const TEXT = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Id of the log of which the directory is a copy, or null where it is none. Throws `checkpoint_corrupt` when the file
 * holds something else.
 */
export async function readLogId(storage: Storage): Promise<string | null> {
  if ((await storage.size(LOG_ID_FILE)) === null) return null;
  const file = await storage.open(LOG_ID_FILE, 'read');
  try {
    const text = decodeText(await file.read(0, FILE_BYTES_MAX)).trim();
    if (file.size <= FILE_BYTES_MAX && TEXT.test(text)) return text;
  } finally {
    await file.close();
  }
  throw new SkuaError(
    'checkpoint_corrupt',
    `${LOG_ID_FILE} is not a UUID. Delete it: the member then compares its directory with the log before using it.`,
    { file: LOG_ID_FILE, offset: 0 },
  );
}

/**
 * Makes the directory a copy of this log, durably; after a crash it is one or it is none. The caller has compared
 * the two.
 */
export async function writeLogId(storage: Storage, logId: string): Promise<void> {
  await replaceFile(storage, LOG_ID_FILE, encodeText(`${logId}\n`));
}

/** Makes the directory one of a single node, durably (`--detach`). The caller holds its lock. */
export async function removeLogId(storage: Storage): Promise<void> {
  await storage.remove(LOG_ID_FILE);
}

/**
 * True when the directory belongs to this log already, false when it names none. Throws `other_log` when it names
 * another.
 */
export async function belongsTo(storage: Storage, logId: string, location: string): Promise<boolean> {
  const found = await readLogId(storage);
  if (found === null || found === logId) return found !== null;
  throw new SkuaError(
    'other_log',
    `This directory is a replica of the log ${found}, but ${location} holds the log ${logId}. Give a storage and a directory that belong together, or an empty directory. Nothing was changed.`,
    { expected: logId, actual: found },
  );
}
