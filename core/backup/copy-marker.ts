import { isSkuaError, SkuaError } from '../errors.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';
import { decodeText, encodeText } from '../text.ts';
import { readNodeId } from './node-id.ts';

/** Stands in a copy from before its first change until after its last one, so that what a crash leaves is known for what it is. */
export const COPY_MARKER = 'copy-unfinished';
const MARKER_BYTES_MAX = 4_096;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export interface CopyMarker {
  readonly nodeId: string;
  /** When the copy that was not finished began: milliseconds since 1970. */
  readonly begunMs: number;
}

/** Null when the copy is finished, or none. Throws `checkpoint_corrupt` when it can't be read. */
export async function readCopyMarker(target: Storage): Promise<CopyMarker | null> {
  if (await target.size(COPY_MARKER) === null) return null;
  const file = await target.open(COPY_MARKER, 'read');
  const marker = await parseOf(file).finally(() => file.close());
  if (marker === null) throw new SkuaError('checkpoint_corrupt', `The file ${COPY_MARKER} can't be read, so it is not known whose files these are. Copy into an empty directory.`, { path: COPY_MARKER });
  return marker;
}

async function parseOf(file: StorageFile): Promise<CopyMarker | null> {
  try {
    const { nodeId, begunMs } = JSON.parse(decodeText(await file.read(0, MARKER_BYTES_MAX))) as Partial<CopyMarker>;
    return typeof nodeId === 'string' && UUID.test(nodeId) && typeof begunMs === 'number' ? { nodeId, begunMs } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export function copyMarkerBytes(marker: CopyMarker): Uint8Array {
  return encodeText(`${JSON.stringify(marker)}\n`);
}

/** The id of the node whose files a copy holds; null when it says nothing. */
export async function nodeIdOfCopy(target: Storage): Promise<string | null> {
  const marker = await readCopyMarker(target);
  if (marker !== null) return marker.nodeId;
  try {
    return await readNodeId(target);
  } catch (error) {
    if (isSkuaError(error, 'checkpoint_corrupt')) return null;
    throw error;
  }
}
