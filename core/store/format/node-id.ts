import { SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Storage } from '../../ports/storage.ts';
import { decodeText, encodeText } from '../../base/text.ts';

/**
 * Text of a UUID and a line end, in the data directory. Every backup names it, so that files of different nodes never
 * mix.
 */
export const NODE_ID_FILE = 'node-id';
const TEMPORARY = `${NODE_ID_FILE}.tmp`;
/** A file that is longer than this is none of ours. */
const FILE_BYTES_MAX = 64;
const TEXT = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * The id of a data directory, or null where it has none yet. Throws `checkpoint_corrupt` when the file holds something
 * else.
 */
export async function readNodeId(storage: Storage): Promise<string | null> {
  if ((await storage.size(NODE_ID_FILE)) === null) return null;
  const file = await storage.open(NODE_ID_FILE, 'read');
  try {
    const text = decodeText(await file.read(0, FILE_BYTES_MAX)).trim();
    if (file.size <= FILE_BYTES_MAX && TEXT.test(text)) return text;
  } finally {
    await file.close();
  }
  throw new SkuaError(
    'checkpoint_corrupt',
    `${NODE_ID_FILE} is not a UUID. Put back the id that the backups of this node have (\`skua backup list\`), or delete the file: the next start creates a new id, and the next backup will be a full one.`,
    { file: NODE_ID_FILE, offset: 0 },
  );
}

/** The id of a data directory, which gets one where it has none. */
export async function ensureNodeId(storage: Storage, ids: Ids): Promise<string> {
  return (await readNodeId(storage)) ?? (await renewNodeId(storage, ids));
}

/** Gives a data directory a new id, whatever it had. After a crash it has the old one or the new one. */
export async function renewNodeId(storage: Storage, ids: Ids): Promise<string> {
  const id = guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
  await storage.remove(TEMPORARY);
  const file = await storage.create(TEMPORARY);
  try {
    await file.writeAt(0, encodeText(`${id}\n`));
    await file.sync();
  } finally {
    await file.close();
  }
  await storage.rename(TEMPORARY, NODE_ID_FILE);
  return id;
}
