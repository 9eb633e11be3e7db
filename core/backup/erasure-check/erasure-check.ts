import { gather, putI64 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { fromHex } from '../../base/hex.ts';
import { HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { Clock } from '../../ports/clock.ts';
import { BlockFile } from '../../ports/block-file.ts';
import { fileNotFound, folderOf } from '../../ports/storage.ts';
import type { Storage, StorageFile, StorageLock } from '../../ports/storage.ts';
import { checkErasure } from '../../scavenge/erasure/erasure.ts';
import type { ErasureFinding, ErasureProgress, ErasureSummary } from '../../scavenge/api.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import { timestampText } from '../../base/time.ts';
import type { Repository } from '../repository/api.ts';
import { blobsOf, madeMsOf } from '../format/snapshot-manifest.ts';
import type { Manifest, ShippedPiece } from '../format/snapshot-manifest.ts';
import { runningBackups } from '../notes/notes.ts';
import type { RunningBackup } from '../notes/notes.ts';

interface CheckErasureInRepositoryOptions {
  readonly repository: Repository;
  readonly clock: Clock;
  /** Ids of events. */
  readonly events?: readonly string[];
  /** A stream, all of whose events should be gone. */
  readonly stream?: string;
  readonly hasher?: StreamHasher;
  /** Findings after this many in one backup are only counted. Default 1000. */
  readonly findingsMax?: number;
}

/** A place of a repository in which traces were found. */
export type TraceLocation =
  /** `isNewest`: of its node, whose newest backup is never pruned. */
  | {
      readonly kind: 'backup';
      readonly backupId: string;
      readonly nodeId: string;
      readonly isNewest: boolean;
      readonly traces: number;
    }
  /** Blobs that no backup needs. */
  | { readonly kind: 'unused'; readonly traces: number };

export interface RepositoryErasureSummary extends ErasureSummary {
  /** Nodes of which there are backups. */
  readonly nodes: number;
  /** Newest first, what no backup needs last. */
  readonly places: readonly TraceLocation[];
  /** Backups that are being made, or were killed: while there are any, nothing that no backup needs can be removed. */
  readonly backupsRunning: readonly RunningBackup[];
}

/**
 * Looks for what remains of events or of a stream in a repository: in the files of every backup and what was shipped
 * after it, and in blobs that no backup needs any more. Content that several backups share is searched once, in the
 * newest; where it is found, `file` names the backup and its file. Throws as `checkErasure` does, and
 * `repository_damaged`: what can't be read can't be judged.
 */
export async function* checkErasureInRepository(
  options: CheckErasureInRepositoryOptions,
): AsyncGenerator<ErasureFinding | ErasureProgress, RepositoryErasureSummary> {
  const { repository } = options;
  const searched = new Set<string>();
  const sum = { files: 0, bytes: 0, traces: 0, residues: 0, redacted: 0 };
  const bytesTotal = await totalBytes(repository);
  const places: TraceLocation[] = [];
  const nodes = new Set<string>();
  for (const { id, nodeId } of await repository.backups()) {
    const isNewest = !nodes.has(nodeId);
    nodes.add(nodeId);
    const before = sum.traces;
    const manifest = await repository.manifest(id);
    const files = filesOfBackup(repository, manifest, await repository.shipped(id));
    for (const [path, blob] of singleBlobs(manifest)) if (searched.has(blob)) files.delete(path);
    for (const { blob } of blobsOf(manifest)) searched.add(blob);
    yield* searchIn(
      options,
      new PartStorage(files),
      `backup ${id} of ${timestampText(madeMsOf(manifest), 0)}`,
      sum,
      bytesTotal,
    );
    if (sum.traces > before)
      places.push({ kind: 'backup', backupId: id, nodeId, isNewest, traces: sum.traces - before });
  }
  const unused = new Map<string, readonly Part[]>();
  for await (const { id } of repository.blobs())
    if (!searched.has(id))
      unused.set(`unused-${id}`, [blobPart(repository, 0, { blob: id, sizeBytes: await repository.blobSize(id) })]);
  if (unused.size > 0) {
    // A search wants a directory that looks like one.
    unused.set('writer.chk', []);
    const before = sum.traces;
    yield* searchIn(options, new PartStorage(unused), 'blobs that no backup needs', sum, bytesTotal);
    if (sum.traces > before) places.push({ kind: 'unused', traces: sum.traces - before });
  }
  return {
    ...sum,
    nodes: nodes.size,
    places,
    backupsRunning: await runningBackups({ repository, clock: options.clock }),
  };
}

/** Files that are one blob: the tail is put together of several, and is searched in every backup. */
function singleBlobs({ chunks, index, scavengeDb, proofs = [] }: Manifest): [string, string][] {
  return [...chunks, ...(index?.files ?? []), ...(scavengeDb === null ? [] : [scavengeDb]), ...proofs].map(
    ({ path, blob }) => [path, blob],
  );
}

async function* searchIn(
  { events, stream, hasher, findingsMax }: CheckErasureInRepositoryOptions,
  storage: Storage,
  where: string,
  sum: { -readonly [K in keyof ErasureSummary]: number },
  bytesTotal: number,
): AsyncGenerator<ErasureFinding | ErasureProgress, void> {
  const before = sum.bytes;
  const search = checkErasure({
    storage,
    ...(events && { events }),
    ...(stream !== undefined && { stream }),
    ...(hasher && { hasher }),
    ...(findingsMax !== undefined && { findingsMax }),
  });
  for (let step = await search.next(); ; step = await search.next()) {
    if (step.done === true) {
      for (const name of ['files', 'bytes', 'traces', 'residues', 'redacted'] as const) sum[name] += step.value[name];
      return;
    }
    const said = step.value;
    if (said.kind === 'progress') {
      const bytesDone = before + said.bytesDone;
      yield { kind: 'progress', bytesDone, bytesTotal: Math.max(bytesTotal, bytesDone) };
    } else yield { ...said, file: `${said.file} in ${where}` };
  }
}

/** About: frames may be compressed, and tails are searched once for each backup. */
async function totalBytes(repository: Repository): Promise<number> {
  let total = 0;
  for await (const { storedBytes } of repository.blobs()) total += storedBytes;
  return total;
}

/** Bytes of content that are fetched together, and how many of such blocks are kept of a file. */
const BLOCK_BYTES = 4_194_304;
const BLOCKS_KEPT = 2;

/** Content at one place of a file. */
interface Part {
  readonly at: number;
  readonly sizeBytes: number;
  /** `length` bytes from `from` on, both within the part. */
  read(from: number, length: number): Promise<Uint8Array>;
}

function blobPart(
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
 * where it ends. Not the table of marks: it has ids and positions of redacted events, which their marks in the log have.
 */
function filesOfBackup(
  repository: Repository,
  manifest: Manifest,
  pieces: readonly ShippedPiece[],
): Map<string, readonly Part[]> {
  const { chunks, tail, index, scavengeDb, chunkSizeBytes, checkpoints, proofs = [] } = manifest;
  const files = new Map<string, readonly Part[]>();
  for (const file of [...chunks, ...(index?.files ?? []), ...(scavengeDb === null ? [] : [scavengeDb]), ...proofs])
    files.set(file.path, [blobPart(repository, 0, file)]);
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
class PartStorage implements Storage {
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
