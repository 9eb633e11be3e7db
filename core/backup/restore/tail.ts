import { SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes } from '../../base/guid.ts';
import { fromHex } from '../../base/hex.ts';
import {
  chunkFileName,
  completeChunkFile,
  encodeHeader,
  HEADER_BYTES,
  ongoingFileBytes,
} from '../../log/format/chunk-format.ts';
import { ChunkProof } from '../../log/format/chunk-proof.ts';
import { decodeEpoch, SYSTEM } from '../../log/format/records.ts';
import type { Ids } from '../../ports/ids.ts';
import type { StorageFile } from '../../ports/storage.ts';
import { optional, record, whole, wrongText } from '../../base/shape.ts';
import { decodeText } from '../../base/text.ts';
import type { Repository } from '../repository/api.ts';
import { isProven } from '../format/snapshot-manifest.ts';
import type { BlobRef, ManifestChunk } from '../format/snapshot-manifest.ts';
import { RecordWalk } from '../../log/format/record-walk.ts';
import type { RestorePlan } from './choose.ts';
import { writeContent } from '../../ports/write-content.ts';
import { damagedBefore } from './restore-files.ts';
import type { RestoreWorld } from './restore-files.ts';
import { chunkEnd, chunkStart } from './restore-locations.ts';

/**
 * A chunk behind those that are restored as they are: its file is made anew. The log ends in it, or goes on behind it,
 * and then it is completed.
 */
interface TailChunk {
  readonly number: number;
  readonly path: string;
  readonly start: number;
  readonly isCompleted: boolean;
  /** Its header, unless it is the beginning of the first part. */
  readonly header: Uint8Array | null;
  readonly parts: readonly TailPart[];
}

/** Log from one place where it can end to another one. */
export interface TailPart {
  readonly from: number;
  readonly to: number;
  /** The blob, where all of it is the part. */
  readonly blob?: BlobRef;
  content(): AsyncIterable<Uint8Array>;
}

/**
 * Ascending; none where the log ends at the end of a chunk that is restored as it is: the first start begins the next
 * one.
 */
export function tailOf(
  repository: Repository,
  plan: RestorePlan,
  world: Pick<RestoreWorld, 'ids' | 'digests' | 'signal'>,
): TailChunk[] {
  const { ids, signal } = world;
  const { manifest, position } = plan;
  const { chunkSizeBytes: size } = manifest;
  const chunk = manifest.chunks.find(
    (candidate) => chunkStart(manifest, candidate) < position && position < chunkEnd(manifest, candidate),
  );
  if (chunk !== undefined) {
    const start = chunkStart(manifest, chunk);
    const length = HEADER_BYTES + position - start;
    const content = () =>
      isProven(chunk)
        ? repository.readBlob(chunk, { from: 0, length }, signal)
        : provenStart(repository, chunk, length, world);
    return [
      {
        number: chunk.startNumber,
        path: chunk.path,
        start,
        isCompleted: false,
        header: null,
        parts: [{ from: start, to: position, content }],
      },
    ];
  }
  const chunks: TailChunk[] = [];
  const parts = [...segmentParts(repository, plan, signal), ...pieceParts(repository, plan)];
  const last = manifest.chunks.at(-1);
  for (let start = last === undefined ? 0 : chunkEnd(manifest, last); start < position; start += size) {
    const number = start / size;
    const isCompleted = position >= start + size;
    const own = parts.filter(({ from }) => from >= start && from < start + size);
    let end = start;
    for (const { from, to } of own) end = from === end ? to : NaN;
    if (isCompleted ? !(end > start && end <= start + size) : end !== position)
      throw new SkuaError(
        'backup_failed',
        `The backup ${manifest.id} does not hold chunk ${number} up to position ${Math.min(position, start + size)}: it is incomplete. Restore from another backup.`,
        { backupId: manifest.id, position },
      );
    const header = manifest.tail?.number === number ? fromHex(manifest.tail.header) : null;
    const path = manifest.tail?.number === number ? manifest.tail.path : chunkFileName(number, 0);
    chunks.push({ number, path, start, isCompleted, header: header ?? newHeader(ids, size, number), parts: own });
  }
  return chunks;
}

/**
 * The beginning of a chunk that was never proved. All of it is read, and what is found of it comes behind the last
 * piece.
 */
async function* provenStart(
  repository: Repository,
  chunk: ManifestChunk,
  length: number,
  { digests, signal }: Pick<RestoreWorld, 'digests' | 'signal'>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const proof = new ChunkProof(digests, chunk.path, chunk.sizeBytes);
  let at = 0;
  for await (const piece of repository.readBlob(chunk, undefined, signal)) {
    proof.add(piece);
    if (at < length) yield piece.subarray(0, length - at);
    at += piece.length;
  }
  proof.check(damagedBefore);
}

function* segmentParts(
  repository: Repository,
  { manifest, position }: RestorePlan,
  signal?: AbortSignal,
): Generator<TailPart, void, undefined> {
  for (const segment of manifest.tail?.segments ?? []) {
    if (segment.from >= position) return;
    if (segment.to <= position)
      yield {
        from: segment.from,
        to: segment.to,
        blob: { blob: segment.blob, sizeBytes: segment.sizeBytes },
        content: () => repository.readBlob(segment, undefined, signal),
      };
    else
      yield {
        from: segment.from,
        to: position,
        content: () => repository.readBlob(segment, { from: 0, length: position - segment.from }, signal),
      };
  }
}

function* pieceParts(repository: Repository, { pieces, position }: RestorePlan): Generator<TailPart, void, undefined> {
  for (const piece of pieces) {
    if (piece.from >= position) return;
    const to = Math.min(piece.to, position);
    yield {
      from: piece.from,
      to,
      content: async function* content() {
        yield (await repository.readShipped(piece)).subarray(0, to - piece.from);
      },
    };
  }
}

/** A chunk that was begun behind the backup is known by what was shipped of it. */
function newHeader(ids: Ids, chunkSize: number, number: number): Uint8Array {
  return encodeHeader({
    version: 3,
    chunkSize,
    startNumber: number,
    endNumber: number,
    isScavenged: false,
    chunkId: guidFromUuidBytes(ids.uuidBytes()),
  });
}

/**
 * Writes the file, durably, and returns where the log in it ends: before the first part for which `onDamaged` does not
 * throw, and at the chunk's start, with no file, where nothing is left. One that is to be completed stays one that is
 * being written when it is cut so. `watch` sees the bytes in their order, and their position; -1 where they begin with
 * a header. `inLane` may write a part in another way, of which `watch` sees nothing, or return null.
 */
export async function writeTail(
  { target, digests }: Pick<RestoreWorld, 'target' | 'digests'>,
  chunkSize: number,
  tail: TailChunk,
  watch: (bytes: Uint8Array, position: number) => void,
  onDamaged: (error: unknown, from: number) => void,
  inLane: (part: TailPart, at: number) => Promise<void> | null = () => null,
): Promise<number> {
  let end = tail.start;
  const md5 = tail.isCompleted ? digests.md5() : null;
  const file = await target.create(tail.path);
  try {
    if (tail.header !== null) await file.writeAt(0, tail.header);
    if (tail.header !== null) md5?.update(tail.header);
    for (const part of tail.parts) {
      try {
        const byLane = md5 === null ? inLane(part, HEADER_BYTES + part.from - tail.start) : null;
        await (byLane ??
          writePart(file, tail, part, (bytes, position) => {
            md5?.update(bytes);
            watch(bytes, position);
          }));
      } catch (error) {
        onDamaged(error, part.from);
        break;
      }
      end = part.to;
    }
    const dataBytes = end - tail.start;
    // Nothing of a part that broke off may stay behind the end.
    await file.truncate(HEADER_BYTES + dataBytes);
    if (md5 !== null && end === tail.parts.at(-1)!.to) {
      await completeChunkFile(file, md5, { physicalBytes: dataBytes, logicalBytes: dataBytes, mapBytes: 0 });
      await file.seal();
    } else {
      await file.truncate(ongoingFileBytes(chunkSize));
      await file.sync();
    }
  } finally {
    await file.close();
  }
  if (end === tail.start) await target.remove(tail.path);
  return end;
}

async function writePart(
  file: StorageFile,
  tail: TailChunk,
  part: TailPart,
  watch: (bytes: Uint8Array, position: number) => void,
): Promise<void> {
  const at = tail.header === null ? 0 : HEADER_BYTES + part.from - tail.start;
  let position = tail.header === null ? -1 : part.from;
  const written = await writeContent(file, at, part.content(), (bytes) => {
    watch(bytes, position);
    if (position >= 0) position += bytes.length;
  });
  if (written !== HEADER_BYTES + part.to - tail.start)
    throw new SkuaError(
      'repository_damaged',
      `The backup returned bytes of the log other than ${part.from} to ${part.to}. Restore from another backup.`,
      { key: tail.path, from: part.from, to: part.to },
    );
}

/** The last epoch that was shipped, of which the manifest's checkpoints know nothing. */
export class ShippedEpochs {
  #walk: RecordWalk;
  #next: number;
  last: { readonly position: number; readonly number: number } | null = null;

  constructor(from: number) {
    this.#walk = new RecordWalk(from);
    this.#next = from;
  }

  push(bytes: Uint8Array, position: number): void {
    // Another chunk begins.
    if (position !== this.#next) this.#walk = new RecordWalk(position);
    this.#next = position + bytes.length;
    this.#walk.push(bytes, ({ frame }) => {
      if (frame.type !== SYSTEM) return true;
      this.last = {
        position: frame.position,
        number: epochNumberOf(decodeText(decodeEpoch(frame).json), frame.position),
      };
      return true;
    });
  }
}

/** Members that are zero are left out. */
const epochShape = record<{ readonly epochNumber?: number }>({ epochNumber: optional(whole(-1)) });

function epochNumberOf(text: string, position: number): number {
  let epoch: unknown;
  try {
    epoch = JSON.parse(text);
  } catch {
    // Told as what it is: no object.
  }
  const wrong = epochShape(epoch, '');
  if (wrong !== null)
    throw new SkuaError(
      'repository_damaged',
      `The epoch at position ${position} of the shipped log ${wrongText(wrong)}. Restore to a point before it, or from another backup.`,
      { position, member: wrong.member },
    );
  return (epoch as { readonly epochNumber?: number }).epochNumber ?? 0;
}
