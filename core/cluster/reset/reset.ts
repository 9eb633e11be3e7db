import { encodeBase64 } from '../../base/base64.ts';
import type { BackupSource, SnapshotFile } from '../../store/api.ts';
import { SkuaError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { INDEX_MAP_PATH, parseIndexMap } from '../../index/format/index-map.ts';
import { decodeFooter, decodeHeader, FOOTER_BYTES, HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { MarkColumns } from '../../streams/api.ts';
import { encodeMarks, MARKS_FILE } from '../../streams/format/marks-table.ts';
import { ChunkProof } from '../../log/format/chunk-proof.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { createAndLook, probe } from '../../shared-log/prefix/prefix.ts';
import { newFileKey, newUuid } from '../../shared-log/format/object-keys.ts';
import { INLINE_BYTES_MAX, newestManifest, TABLE_NAME } from '../../shared-log/format/manifest.ts';
import type {
  ObjectChunk,
  ObjectFile,
  ObjectManifest,
  ObjectOngoing,
  ObjectSegment,
} from '../../shared-log/format/manifest.ts';

/** Files that are uploaded at once. */
const AT_ONCE = 4;
const BLOOM = '.bloomfilter';

export interface ResetWorld {
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
}

export interface ResetOptions {
  readonly world: ResetWorld;
  /**
   * The copy at whose end the log begins: a directory that no process has open, recovered, its index written up to the
   * end.
   */
  readonly source: BackupSource;
  /** Position of the last commit in its log, which the index tables must reach; -1 for an empty log. */
  readonly lastCommitPosition: number;
  /** All marks of redaction in its log. */
  readonly marks: MarkColumns;
  readonly onProgress?: (progress: {
    readonly bytesDone: number;
    readonly bytesTotal: number;
    readonly file: string;
  }) => void;
  readonly signal?: AbortSignal;
  /**
   * Called when every file is there, before the manifest that makes a log of them. What it throws ends the reset, which
   * has then changed nothing.
   */
  readonly beforeManifest?: () => Promise<void>;
}

/**
 * Begins a log under a prefix that has none, at the end of a copy: for the day on which the log itself is lost, and for
 * a single node that becomes a cluster. The files go under fresh keys; one manifest, created last, names all of them,
 * so a crash before it leaves nothing but objects that a tick sweeps. The scavenge database stays behind: the first
 * scavenge of the shared files begins afresh. Errors: `directory_not_empty` where the prefix holds a store,
 * `prefix_unsuitable`, `log_corrupt` for a chunk that is not as it was written, `index_corrupt` for an index that does
 * not reach the end, and what source and store throw.
 */
export async function beginLog(options: ResetOptions): Promise<ObjectManifest> {
  const { world, source, beforeManifest } = options;
  const { objects, clock, ids } = world;
  await requireNone(world);
  await objects.begin?.();
  await probe(world);
  const uploads = new Uploads(options);
  const {
    checkpoints: { writer: logEnd },
    chunkSizeBytes,
  } = source.snapshot;
  const files = indexOf(options);
  const completed = source.snapshot.files.filter(({ kind }) => kind === 'chunk');
  const chunks: ObjectChunk[] = [];
  await inParallel(completed.length, AT_ONCE, async (i) => {
    chunks[i] = await uploads.chunk(completed[i]!);
  });
  const named: ObjectFile[] = [];
  await inParallel(files.length, AT_ONCE, async (i) => {
    named[i] = await uploads.indexFile(files[i]!);
  });
  const marks = options.marks.positions.length === 0 ? [] : [await uploads.marks(options.marks)];
  const ongoing = await uploads.ongoing(logEnd, chunkSizeBytes);
  const manifest: ObjectManifest = {
    format: marks.length === 0 ? 1 : 2,
    number: 1,
    storeId: newUuid(ids),
    writtenMs: Math.floor(clock.nowMs()),
    chunkSizeBytes,
    boundary: 1,
    logEnd,
    endsChunk: false,
    chunks,
    ongoing,
    files: [...named, ...marks],
    dropped: [],
    scavenge: null,
    cluster: true,
  };
  options.signal?.throwIfAborted();
  await beforeManifest?.();
  const { newest, unknown } = await createAndLook(world, manifest);
  if (newest?.storeId === manifest.storeId) return manifest;
  if (newest === null && unknown !== null)
    throw new SkuaError(
      'storage_unreachable',
      `${objects.place} did not answer when the manifest was written after the files. Check with \`skua verify --storage\` whether it holds a store now; if not, repeat the reset.`,
      {},
      unknown,
    );
  await objects.remove(uploads.keys).catch(() => {});
  return refuse(objects, newest?.storeId ?? null);
}

/** Throws `directory_not_empty` where the prefix holds a store. */
export async function requireNone({ objects, digests }: Pick<ResetWorld, 'objects' | 'digests'>): Promise<void> {
  const newest = await newestManifest(objects, digests);
  if (newest !== null) refuse(objects, newest.storeId);
}

function refuse({ place }: ObjectStore, storeId: string | null): never {
  throw new SkuaError(
    'directory_not_empty',
    `${place} already holds a log${storeId === null ? '' : ` (${storeId})`}, and a reset starts a new one: name a prefix without a log. If a reset to this prefix was interrupted at its very end, just start the member with it: its replica joins.`,
    { place, storeId },
  );
}

/** The index files that belong into the manifest. Throws `index_corrupt` when they don't reach the end of the log. */
function indexOf({ source, world: { digests }, lastCommitPosition }: ResetOptions): readonly SnapshotFile[] {
  const { files } = source.snapshot;
  const content = files.find(({ kind }) => kind === 'index-map')?.content;
  const reached = content === undefined ? -1 : parseIndexMap(content, digests).commitCheckpoint;
  if (reached < lastCommitPosition) {
    throw new SkuaError(
      'index_corrupt',
      `The index of the replica reaches ${reached}, and its log ${lastCommitPosition}: the index could not be completed. Free disk space and repeat the reset.`,
      { indexed: reached, position: lastCommitPosition },
    );
  }
  return files.filter(
    ({ path }) =>
      path === INDEX_MAP_PATH ||
      TABLE_NAME.test(path) ||
      (path.endsWith(BLOOM) && TABLE_NAME.test(path.slice(0, -BLOOM.length))),
  );
}

class Uploads {
  readonly keys: string[] = [];
  readonly #options: ResetOptions;
  readonly #bytesTotal: number;
  #bytesDone = 0;

  constructor(options: ResetOptions) {
    this.#options = options;
    this.#bytesTotal = options.source.snapshot.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  /** A completed chunk, which has to be as it was written. */
  async chunk({ path, sizeBytes }: SnapshotFile): Promise<ObjectChunk> {
    const proof = new ChunkProof(this.#options.world.digests, path, sizeBytes);
    const header = decodeHeader(path, await this.#bytes(path, 0, HEADER_BYTES));
    const footer = decodeFooter(path, await this.#bytes(path, sizeBytes - FOOTER_BYTES, FOOTER_BYTES), sizeBytes);
    const key = await this.#upload(
      path,
      0,
      sizeBytes,
      (piece) => proof.add(piece),
      () => proof.check(),
    );
    const { startNumber, endNumber, isScavenged } = header;
    const { physicalBytes, logicalBytes, mapBytes, mapEntryBytes } = footer;
    return {
      name: path,
      key,
      sizeBytes,
      startNumber,
      endNumber,
      isScavenged,
      physicalBytes,
      logicalBytes,
      mapBytes,
      mapEntryBytes,
    };
  }

  /** The chunk that was being written, as one segment; null where the log ends with a chunk. */
  async ongoing(logEnd: number, chunkSizeBytes: number): Promise<ObjectOngoing | null> {
    const number = Math.floor(logEnd / chunkSizeBytes);
    const from = number * chunkSizeBytes;
    if (logEnd === from) return null;
    const file = this.#options.source.snapshot.files.find(({ kind }) => kind === 'ongoing-chunk');
    if (file === undefined || file.sizeBytes !== HEADER_BYTES + logEnd - from)
      throw new SkuaError(
        'log_corrupt',
        `The log of the replica ends at ${logEnd}, but the chunk file before that is missing. Check it with \`skua verify\`.`,
        { position: logEnd },
      );
    const header = await this.#bytes(file.path, 0, HEADER_BYTES);
    decodeHeader(file.path, header);
    let crc32 = 0;
    const key = await this.#upload(file.path, HEADER_BYTES, logEnd - from, (piece) => {
      crc32 = this.#options.world.digests.crc32(piece, crc32);
    });
    const segment: ObjectSegment = { key, from, to: logEnd, crc32 };
    return { name: file.path, number, header: toHex(header), segments: [segment] };
  }

  /** Instances search tables by range, whatever their size: so only the map stands in the manifest itself. */
  async indexFile({ path, sizeBytes, content }: SnapshotFile): Promise<ObjectFile> {
    if (content === undefined) return { name: path, key: await this.#upload(path, 0, sizeBytes), sizeBytes };
    this.#progress(path, content.length);
    if (content.length <= INLINE_BYTES_MAX)
      return { name: path, key: null, sizeBytes: content.length, inline: encodeBase64(content) };
    const key = this.#newKey();
    await this.#options.world.objects.put(key, content, this.#options.signal);
    return { name: path, key, sizeBytes: content.length };
  }

  async marks(marks: MarkColumns): Promise<ObjectFile> {
    const { objects, digests } = this.#options.world;
    const content = encodeMarks(marks, digests);
    const key = this.#newKey();
    await objects.put(key, content, this.#options.signal);
    return { name: MARKS_FILE, key, sizeBytes: content.length };
  }

  #newKey(): string {
    const key = newFileKey(this.#options.world.ids);
    this.keys.push(key);
    return key;
  }

  async #upload(
    path: string,
    from: number,
    length: number,
    onPiece?: (piece: Uint8Array) => void,
    onEnd?: () => void,
  ): Promise<string> {
    const key = this.#newKey();
    await this.#options.world.objects.upload(
      key,
      length,
      this.#pieces(path, from, length, onPiece, onEnd),
      this.#options.signal,
    );
    return key;
  }

  async *#pieces(
    path: string,
    from: number,
    length: number,
    onPiece?: (piece: Uint8Array) => void,
    onEnd?: () => void,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of this.#options.source.read(path, from, length)) {
      this.#options.signal?.throwIfAborted();
      onPiece?.(piece);
      yield piece;
      this.#progress(path, piece.length);
    }
    onEnd?.();
  }

  #progress(file: string, bytes: number): void {
    this.#bytesDone += bytes;
    this.#options.onProgress?.({ bytesDone: this.#bytesDone, bytesTotal: this.#bytesTotal, file });
  }

  async #bytes(path: string, from: number, length: number): Promise<Uint8Array> {
    const out = new Uint8Array(length);
    let filled = 0;
    for await (const piece of this.#options.source.read(path, from, length)) {
      out.set(piece.subarray(0, length - filled), filled);
      filled += piece.length;
    }
    return out.subarray(0, filled);
  }
}

function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}
