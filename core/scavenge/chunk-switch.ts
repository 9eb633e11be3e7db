import type { BlockCache } from '../cache/cache.ts';
import { isSkuaError } from '../base/errors.ts';
import type { Chunk, ChunkTable } from '../log/api.ts';
import { chunkFileName, parseChunkFileNames } from '../log/format/chunk-format.ts';
import { openCompleted } from '../log/chunk/chunk.ts';
import type { Storage } from '../ports/storage.ts';
import type { HashChain } from '../integrity/api.ts';

export interface SwitchParts {
  readonly storage: Storage;
  readonly cache: BlockCache;
  readonly table: ChunkTable;
  /** Writes down what the new file lacks before it is put in force. */
  readonly proofs?: HashChain | null;
  /** Ends what is written down before the switch, with `aborted`; the switch itself is never cut off. */
  readonly signal?: AbortSignal;
  /** Told of a replaced file that could not be removed; the next start removes it. */
  readonly onLeftover?: (file: string, error: unknown) => void;
}

/**
 * Puts a complete chunk file, which still has its temporary name, in force for the logical chunks it covers: rename
 * under the next version, one step in which readers change over, removal of the replaced files when the last read of
 * them has ended. Resolves when the old files are gone.
 *
 * A crash before the rename leaves a `*.tmp` file, one behind it a new version beside older ones: the next start
 * removes either (`core/log/log.ts`). When the file can't take its place (`scavenge_failed`), can't be read or can't be
 * renamed it is removed, and the old files stay in force; `proof_failed` where the directory has a chain of hashes that
 * can't be kept up.
 */
export async function switchChunk(
  parts: SwitchParts,
  target: string,
  startNumber: number,
  endNumber: number,
): Promise<Chunk> {
  const { proofs, table, storage, signal } = parts;
  if (!proofs) return put(parts, target, startNumber, endNumber);
  try {
    const sources = table.coveredBy(startNumber, endNumber).map(({ name }) => name);
    return await proofs.replace(
      { target, sources, startNumber, endNumber },
      () => put(parts, target, startNumber, endNumber),
      signal,
    );
  } catch (error) {
    await storage.remove(target).catch(() => {});
    throw error;
  }
}

async function put(parts: SwitchParts, target: string, startNumber: number, endNumber: number): Promise<Chunk> {
  const { storage, cache, table } = parts;
  const place = { number: startNumber, endNumber, chunkSize: table.chunkSize };
  let name: string;
  try {
    table.coveredBy(startNumber, endNumber);
    const candidate = await openCompleted(storage, cache, target, place);
    await candidate.file.retire();
    name = await nextName(storage, startNumber);
    await storage.rename(target, name);
  } catch (error) {
    await storage.remove(target).catch(() => {});
    throw error;
  }
  const chunk = await openCompleted(storage, cache, name, place);
  await retireAll(parts, table.replace(chunk));
  return chunk;
}

/** `chunk-NNNNNN.VVVVVV` with the version after the highest on the disk. */
async function nextName(storage: Storage, number: number): Promise<string> {
  let version = 0;
  for (const file of parseChunkFileNames(await storage.list('')))
    if (file.number === number) version = Math.max(version, file.version);
  return chunkFileName(number, version + 1);
}

async function retireAll(parts: SwitchParts, chunks: readonly Chunk[]): Promise<void> {
  const { storage } = parts;
  for (const old of chunks) {
    try {
      await old.file.retire();
      await (storage.discard?.(old.name) ?? storage.remove(old.name));
    } catch (error) {
      parts.onLeftover?.(old.name, error);
    }
  }
}

/**
 * What an earlier comparison found counts no more: the chunk is looked at anew in the background, and ends the node if
 * it is damaged.
 */
export function doubtIfDamaged(chunk: Chunk, error: unknown): void {
  if (isSkuaError(error, 'log_corrupt') && error.data.file === chunk.name) chunk.scrubbed = null;
}
