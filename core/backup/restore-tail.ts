import { SkuaError } from '../errors.ts';
import { guidFromUuidBytes } from '../guid.ts';
import { chunkFileName, encodeHeader, HEADER_BYTES, ongoingFileBytes } from '../log/chunk-format.ts';
import { decodeEpoch, SYSTEM } from '../log/records.ts';
import type { Ids } from '../ports/ids.ts';
import type { Storage } from '../ports/storage.ts';
import { decodeText } from '../text.ts';
import { chunkEnd, chunkStart } from './choose-places.ts';
import { RecordWalk } from './choose-walk.ts';
import type { RestorePlan } from './choose.ts';
import { fromHex } from './hex.ts';
import type { Repository } from './repository-api.ts';
import { writeContent, type Watch } from './restore-files.ts';

/** The chunk in which the restored log ends: its file is made anew, as that of a chunk which is being written. */
export interface Tail {
  readonly number: number;
  readonly path: string;
  readonly start: number;
  /** Its header, unless it is the beginning of the first part. */
  readonly header: Uint8Array | null;
  readonly parts: readonly TailPart[];
}

/** Log from one place where it can end to another one. */
interface TailPart {
  readonly from: number;
  readonly to: number;
  content(): AsyncIterable<Uint8Array>;
}

/** Null where the log ends at a chunk's end: the first start begins the next one. */
export function tailOf(repository: Repository, plan: RestorePlan, ids: Ids, signal?: AbortSignal): Tail | null {
  const { manifest, position } = plan;
  const { chunkSizeBytes } = manifest;
  const chunk = manifest.chunks.find((candidate) => chunkStart(manifest, candidate) < position && position < chunkEnd(manifest, candidate));
  if (chunk !== undefined) {
    const start = chunkStart(manifest, chunk);
    const content = () => repository.readBlob(chunk, { from: 0, length: HEADER_BYTES + position - start }, signal);
    return { number: chunk.startNumber, path: chunk.path, start, header: null, parts: [{ from: start, to: position, content }] };
  }
  const number = Math.floor(position / chunkSizeBytes);
  const start = number * chunkSizeBytes;
  if (position === start) return null;
  const parts = [...segmentParts(repository, plan, signal), ...pieceParts(repository, plan)];
  if (parts[0]?.from !== start || parts.at(-1)?.to !== position) throw new SkuaError('backup_failed', `The backup ${manifest.id} does not hold chunk ${number} up to position ${position}: it is not whole. Restore from another backup.`, { backupId: manifest.id, position });
  const header = manifest.tail?.number === number ? fromHex(manifest.tail.header) : null;
  const path = manifest.tail?.number === number ? manifest.tail.path : chunkFileName(number, 0);
  return { number, path, start, header: header ?? newHeader(ids, chunkSizeBytes, number), parts };
}

function* segmentParts(repository: Repository, { manifest, position }: RestorePlan, signal?: AbortSignal): Generator<TailPart, void, undefined> {
  for (const segment of manifest.tail?.segments ?? []) {
    if (segment.from >= position) return;
    if (segment.to <= position) yield { from: segment.from, to: segment.to, content: () => repository.readBlob(segment, undefined, signal) };
    else yield { from: segment.from, to: position, content: () => repository.readBlob(segment, { from: 0, length: position - segment.from }, signal) };
  }
}

function* pieceParts(repository: Repository, { pieces, position }: RestorePlan): Generator<TailPart, void, undefined> {
  for (const piece of pieces) {
    if (piece.from >= position) return;
    const to = Math.min(piece.to, position);
    yield { from: piece.from, to, content: async function* content() { yield (await repository.readShipped(piece)).subarray(0, to - piece.from); } };
  }
}

/** The log was backed up at the end of a chunk, and what was shipped afterwards began the next one. */
function newHeader(ids: Ids, chunkSize: number, number: number): Uint8Array {
  return encodeHeader({ version: 3, chunkSize, startNumber: number, endNumber: number, isScavenged: false, chunkId: guidFromUuidBytes(ids.uuidBytes()) });
}

/**
 * Writes the file, durably, and returns where the log in it ends: before the first part for which `onDamaged` does not throw, and at the chunk's
 * start, with no file, where nothing is left.
 */
export async function writeTail(storage: Storage, chunkSize: number, tail: Tail, watch: Watch, onDamaged: (error: unknown, from: number) => void): Promise<number> {
  let end = tail.start;
  const file = await storage.create(tail.path);
  try {
    if (tail.header !== null) await file.writeAt(0, tail.header);
    for (const part of tail.parts) {
      try {
        const at = tail.header === null ? 0 : HEADER_BYTES + part.from - tail.start;
        const written = await writeContent(file, at, part.content(), watch);
        if (written !== HEADER_BYTES + part.to - tail.start) throw new SkuaError('repository_damaged', `The backup gave other bytes of the log than those from ${part.from} to ${part.to}. Restore from another backup.`, { key: tail.path, from: part.from, to: part.to });
      } catch (error) {
        onDamaged(error, part.from);
        break;
      }
      end = part.to;
    }
    // Nothing of a part that broke off may stay behind the end.
    await file.truncate(HEADER_BYTES + end - tail.start);
    await file.truncate(ongoingFileBytes(chunkSize));
    await file.sync();
  } finally {
    await file.close();
  }
  if (end === tail.start) await storage.remove(tail.path);
  return end;
}

/** The last epoch that was shipped, of which the manifest's checkpoints know nothing. */
export class ShippedEpochs {
  readonly #walk: RecordWalk;
  last: { readonly position: number; readonly number: number } | null = null;

  constructor(from: number) {
    this.#walk = new RecordWalk(from);
  }

  push(bytes: Uint8Array): void {
    this.#walk.push(bytes, ({ frame }) => {
      if (frame.type !== SYSTEM) return true;
      // Members that are zero are left out; disk-format.md section 3.7.
      const { epochNumber } = JSON.parse(decodeText(decodeEpoch(frame).json)) as { epochNumber?: number };
      this.last = { position: frame.position, number: Number(epochNumber ?? 0) };
      return true;
    });
  }
}
