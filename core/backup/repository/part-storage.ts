import { gather, putI64 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { fromHex } from '../../base/hex.ts';
import { HEADER_BYTES } from '../../log/format/chunk-format.ts';
import { BlockFile } from '../../ports/block-file.ts';
import { fileNotFound, folderOf } from '../../ports/storage.ts';
import type { Storage, StorageFile, StorageLock } from '../../ports/storage.ts';
import type { Manifest, ShippedPiece } from '../format/snapshot-manifest.ts';
import type { Repository } from './api.ts';

/** Bytes of content that are fetched together, and how many of such blocks are kept of a file. */
const BLOCK_BYTES = 4_194_304;
const BLOCKS_KEPT = 2;

/** Content at one place of a file. */
export interface Part {
  readonly at: number;
  readonly sizeBytes: number;
  /** `length` bytes from `from` on, both within the part. */
  read(from: number, length: number): Promise<Uint8Array>;
}

export function blobPart(
  repository: Repository,
  at: number,
  ref: { readonly blob: string; readonly sizeBytes: number },
): Part {
  return {
    at,
    sizeBytes: ref.sizeBytes,
    read: (from, length) => gather(repository.readBlob(ref, { from, length }), length),
  };
}

function bytesPart(at: number, bytes: Uint8Array): Part {
  return { at, sizeBytes: bytes.length, read: async (from, length) => bytes.subarray(from, from + length) };
}

function piecePart(repository: Repository, at: number, piece: ShippedPiece): Part {
  return {
    at,
    sizeBytes: piece.to - piece.from,
    read: async (from, length) => (await repository.readShipped(piece)).subarray(from, from + length),
  };
}

/**
 * The files that a backup restores, by their paths; the log with what was shipped after it, and `writer.chk` that says
 * where it ends. Not the table of marks: it has ids and positions of redacted events, and so have their marks in the
 * log.
 */
export function filesOfBackup(
  repository: Repository,
  manifest: Manifest,
  pieces: readonly ShippedPiece[],
): Map<string, readonly Part[]> {
  const { chunks, tail, index, scavengeDb, chunkSizeBytes, checkpoints, proofs = [], redactions } = manifest;
  const files = new Map<string, readonly Part[]>();
  for (const file of [...chunks, ...(index?.files ?? []), ...(scavengeDb === null ? [] : [scavengeDb]), ...proofs])
    files.set(file.path, [blobPart(repository, 0, file)]);
  if (redactions !== undefined) files.set(redactions.path, [blobPart(repository, 0, redactions)]);
  const tailEnd = tail === null ? 0 : (tail.number + 1) * chunkSizeBytes;
  const inTail = pieces.filter(({ from }) => from < tailEnd);
  if (tail !== null) {
    const start = tail.number * chunkSizeBytes;
    const at = (position: number) => HEADER_BYTES + position - start;
    files.set(tail.path, [
      bytesPart(0, fromHex(tail.header) ?? new Uint8Array(HEADER_BYTES)),
      ...tail.segments.map((segment) => blobPart(repository, at(segment.from), segment)),
      ...inTail.map((piece) => piecePart(repository, at(piece.from), piece)),
    ]);
  }
  // Chunks that were begun behind the backup have no files in it.
  for (const [number, own] of Map.groupBy(pieces.slice(inTail.length), ({ from }) =>
    Math.floor(from / chunkSizeBytes),
  )) {
    files.set(
      `shipped-after-${manifest.id}-${number}`,
      own.map((piece) => piecePart(repository, piece.from - own[0]!.from, piece)),
    );
  }
  const writer = new Uint8Array(8);
  putI64(writer, 0, inTail.at(-1)?.to ?? checkpoints.writer);
  files.set('writer.chk', [bytesPart(0, writer)]);
  return files;
}

/** Files made of parts that lie one behind the other, as a storage that can only be read. */
export class PartStorage implements Storage {
  readonly #files: ReadonlyMap<string, readonly Part[]>;

  constructor(files: ReadonlyMap<string, readonly Part[]>) {
    this.#files = files;
  }

  async list(folder: string): Promise<string[]> {
    const names: string[] = [];
    for (const path of this.#files.keys())
      if (folderOf(path) === folder) names.push(folder === '' ? path : path.slice(folder.length + 1));
    return names.toSorted();
  }

  async size(path: string): Promise<number | null> {
    const parts = this.#files.get(path);
    return parts === undefined ? null : sizeOf(parts);
  }

  async modifiedMs(path: string): Promise<number | null> {
    // What is in a backup never changes.
    return this.#files.has(path) ? 0 : null;
  }

  async open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    const parts = this.#files.get(path);
    if (access === 'write') throw readOnly(path);
    if (parts === undefined) throw fileNotFound(path);
    return fileOf(path, parts);
  }

  async create(path: string): Promise<StorageFile> {
    throw readOnly(path);
  }
  async rename(from: string): Promise<void> {
    throw readOnly(from);
  }
  async remove(path: string): Promise<void> {
    throw readOnly(path);
  }
  async freeBytes(): Promise<number> {
    return 0;
  }
  async lock(): Promise<StorageLock> {
    throw readOnly('');
  }
}

/** The file that its parts make, with the blocks that were used last. */
function fileOf(path: string, parts: readonly Part[]): StorageFile {
  const size = sizeOf(parts);
  /** By their number; the one used last is the last. */
  const blocks = new Map<number, Promise<Uint8Array>>();
  const load = async (from: number, to: number): Promise<Uint8Array> => {
    const out = new Uint8Array(to - from);
    for (const part of parts) {
      const start = Math.max(from, part.at);
      const end = Math.min(to, part.at + part.sizeBytes);
      if (start < end) out.set(await part.read(start - part.at, end - start), start - from);
    }
    return out;
  };
  const block = (number: number): Promise<Uint8Array> => {
    const kept = blocks.get(number) ?? load(number * BLOCK_BYTES, Math.min(size, (number + 1) * BLOCK_BYTES));
    blocks.delete(number);
    blocks.set(number, kept);
    const [oldest] = blocks.keys();
    if (blocks.size > BLOCKS_KEPT) blocks.delete(oldest!);
    return kept;
  };
  return new BlockFile({ path, size, blockBytes: BLOCK_BYTES, block });
}

function sizeOf(parts: readonly Part[]): number {
  return Math.max(0, ...parts.map(({ at, sizeBytes }) => at + sizeBytes));
}

function readOnly(path: string): SkuaError {
  return new SkuaError('io_error', `${path} is in a backup, which is never changed: this is a defect.`, { path });
}
