import { isSkuaError, SkuaError, type SkuaErrorOf } from '../../base/errors.ts';
import { toHex } from '../../base/hex.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Clock } from '../../ports/clock.ts';
import type { JobContext, Jobs } from '../../ports/jobs.ts';
import { isOfKind, listKind } from '../../ports/object-kinds.ts';
import type { KeyKind, OnStrangers } from '../../ports/object-kinds.ts';
import { listAll } from '../../ports/object-store.ts';
import type { Shape } from '../../base/shape.ts';
import type { ObjectInfo, ObjectLocation, ObjectStore } from '../../ports/object-store.ts';
import type {
  CompressionMode,
  Content,
  Repository,
  RepositoryInfo,
  RepositoryOptions,
  RepositoryWorld,
  WriteBlobOptions,
} from './api.ts';
import { BLOB_FRAME_BYTES, BLOB_FRAME_LOCAL_BYTES } from '../format/blob-format.ts';
import { blobSize, readBlobContent } from './blob-reader.ts';
import type { ByteRange, ReaderWorld } from './blob-reader.ts';
import { ContentChanged, measure, objectBytes, objectContent, PlainObject } from './blob-writer.ts';
import type { BlobWorld } from './blob-writer.ts';
import { BLOBS, isRepositoryKey, SHIPPED } from '../format/repository-keys.ts';
import { logEndOf, newestFirst, summaryOf } from '../format/snapshot-manifest.ts';
import type { BlobRef, Manifest, ManifestKey, ManifestSummary, ShippedPiece } from '../format/snapshot-manifest.ts';
import { backupNotFound, Manifests } from './manifests.ts';
import { decodeObject, encodeObject, openRepositoryFile, whyAnotherRepository } from './repository-objects.ts';
import type { Sealer, TextCodec } from './repository-objects.ts';
import { lastPiece, readPiece, ship, shippedAfter } from './shipped.ts';
import type { ShippedWorld } from './shipped.ts';

/** Content that changes while it is read is read anew so often. */
const READINGS_MAX = 5;
/** Requests under way at once. */
const PARALLEL = 8;
/** Looked for one by one up to this many; a listing, a thousand at a time, costs less in a remote store beyond. */
const LIST_ABOVE = 64;
/** Removed with one call. */
const REMOVE_MAX = 1_000;

/**
 * Opens a repository, or makes it where `options.create` says so. Rejects with `repository_not_found`, `repository_key`
 * for a wrong, missing or unwanted key, `repository_damaged`, and what the object store throws.
 */
export async function openRepository(
  objects: ObjectStore,
  options: RepositoryOptions,
  world: RepositoryWorld,
): Promise<Repository> {
  const { file, sealer } = await openRepositoryFile(objects, options, world);
  return new ObjectRepository(
    objects,
    { id: file.id, createdMs: file.createdMs, isEncrypted: sealer !== null },
    options,
    world,
    sealer,
  );
}

/** A place on this machine: reading costs no request, and bytes cost less than the time to compress them. */
export function isLocal(location: string): boolean {
  return !location.includes('://');
}

export function blobKeyOf(id: string): string {
  return `${BLOBS.prefix}${id.slice(0, 2)}/${id}`;
}

/** The blob that an object holds by its key; null for another object. */
export function blobIdOf(key: string): string | null {
  const id = isOfKind(BLOBS, key) ? key.slice(key.lastIndexOf('/') + 1) : '';
  return id !== '' && key === blobKeyOf(id) ? id : null;
}

class ObjectRepository implements Repository {
  readonly info: RepositoryInfo;
  readonly place: string;
  readonly #objects: ObjectStore;
  readonly #sealer: Sealer | null;
  readonly #mode: CompressionMode;
  readonly #modeOfZeros: CompressionMode;
  readonly #codec: TextCodec;
  readonly #onStrangers: OnStrangers | undefined;
  readonly #manifests: Manifests;
  readonly #blobWorld: BlobWorld;
  readonly #readerWorld: ReaderWorld;
  readonly #shippedWorld: ShippedWorld;
  /** Key of the last blob, piece or manifest that was written. */
  #written: string | null = null;

  constructor(
    objects: ObjectStore,
    info: RepositoryInfo,
    options: RepositoryOptions,
    world: RepositoryWorld,
    sealer: Sealer | null,
  ) {
    const { digests, compression } = world;
    this.info = info;
    this.place = objects.place;
    this.#objects = objects;
    this.#sealer = sealer;
    this.#mode = options.compression === 'auto' && isLocal(objects.place) ? 'off' : options.compression;
    this.#modeOfZeros = options.compression;
    this.#codec = { place: objects.place, digests, sealer };
    this.#onStrangers = world.onStrangers;
    this.#manifests = new Manifests(objects, this.#codec, world.onStrangers);
    this.#blobWorld = {
      digests,
      compression,
      sealer,
      frameBytes: options.frameBytes ?? (isLocal(objects.place) ? BLOB_FRAME_LOCAL_BYTES : BLOB_FRAME_BYTES),
    };
    this.#readerWorld = {
      objects,
      digests,
      compression,
      sealer,
      blobId: (sha256) => this.blobId(sha256),
      blobKey: blobKeyOf,
    };
    objects.recognise?.((there) => whyAnotherRepository(there, digests, info.id, this.#written));
    this.#shippedWorld = { objects, digests, compression, compresses: this.#mode !== 'off', sealer };
  }

  async backups(
    onDamaged?: (key: string, error: SkuaErrorOf<'repository_damaged'>) => void,
    max = Number.MAX_SAFE_INTEGER,
  ): Promise<readonly ManifestSummary[]> {
    const keys = (await this.#manifests.keys()).slice(-max);
    const found: (ManifestSummary | null)[] = [];
    await inParallel(keys.length, PARALLEL, async (i) => {
      const { key } = keys[i]!;
      try {
        const manifest = await this.#manifests.read(keys[i]!);
        found[i] = manifest === null ? null : summaryOf(manifest, await lastPiece(this.#shippedWorld, manifest.id));
      } catch (error) {
        if (onDamaged === undefined || !isSkuaError(error, 'repository_damaged')) throw error;
        onDamaged(error.data.key ?? key, error);
        found[i] = null;
      }
    });
    return newestFirst(found.filter((summary) => summary !== null).reverse());
  }

  manifest(id: string): Promise<Manifest> {
    return this.#manifests.find(id);
  }
  manifestKeys(): Promise<readonly ManifestKey[]> {
    return this.#manifests.keys();
  }
  manifestAt(key: ManifestKey): Promise<Manifest | null> {
    return this.#manifests.readAnew(key);
  }
  manifestsFrom(manifest: Pick<Manifest, 'id' | 'createdMs'>): Promise<readonly string[]> {
    return this.#manifests.idsFrom(manifest);
  }

  async newestOf(nodeId: string): Promise<Manifest | null> {
    const keys = await this.#manifests.keys();
    for (const key of keys.reverse()) {
      const manifest = await this.#manifests.read(key).catch((error: unknown) => {
        if (isSkuaError(error, 'repository_damaged')) return null;
        throw error;
      });
      if (manifest?.nodeId === nodeId) return manifest;
    }
    return null;
  }

  async putManifest(manifest: Manifest): Promise<void> {
    this.#written = await this.#manifests.put(manifest);
  }

  async removeManifest(id: string): Promise<void> {
    const keys = await this.#manifests.keys();
    const key = keys.find((other) => other.id === id);
    if (key === undefined) throw backupNotFound(this.place, id);
    // In this order: pieces without their manifest are rubbish, a manifest without its first pieces would be damage.
    await this.#manifests.remove(key);
    const pieces: string[] = [];
    for await (const { key: piece } of listKind(this.#objects, SHIPPED, { within: `${SHIPPED.prefix}${id}/` }))
      pieces.push(piece);
    await this.removeObjects(pieces);
  }

  async hasBlob(id: string): Promise<boolean> {
    return (await this.#objects.head(blobKeyOf(id))) !== null;
  }

  async missingBlobs(ids: readonly string[], signal?: AbortSignal): Promise<readonly string[]> {
    const unique = [...new Set(ids)];
    if (unique.length > LIST_ABOVE && !isLocal(this.place)) {
      const absent = new Set(unique);
      for await (const { id } of this.blobs()) absent.delete(id);
      return [...absent];
    }
    const missing: string[] = [];
    await inParallel(unique.length, PARALLEL, async (i) => {
      if ((await this.#objects.head(blobKeyOf(unique[i]!), signal)) === null) missing.push(unique[i]!);
    });
    return missing;
  }

  async *blobs(): AsyncGenerator<
    { readonly id: string; readonly storedBytes: number; readonly modifiedMs: number },
    void,
    undefined
  > {
    for await (const { key, sizeBytes, modifiedMs } of this.objectsOf(BLOBS)) {
      const id = blobIdOf(key);
      if (id !== null) yield { id, storedBytes: sizeBytes, modifiedMs };
    }
  }

  blobId(sha256: Uint8Array): string {
    return toHex(this.#sealer === null ? sha256 : this.#sealer.idOf(sha256));
  }

  async writeBlob(
    sizeBytes: number,
    content: Content,
    { signal, isSuspect, mayBeZeros = false }: WriteBlobOptions = {},
  ): Promise<BlobRef & { readonly isNew: boolean; readonly storedBytes: number }> {
    const mode = mayBeZeros ? this.#modeOfZeros : this.#mode;
    if (
      mode === 'off' &&
      this.#sealer === null &&
      sizeBytes > this.#blobWorld.frameBytes &&
      this.#objects.uploadNamed !== undefined
    )
      return await this.#writePlain(sizeBytes, content, { signal, ...(isSuspect && { isSuspect }) });
    for (let reading = 1; ; reading++) {
      const measured = await measure(this.#blobWorld, sizeBytes, content, mode, signal);
      const blob = this.blobId(measured.sha256);
      const storedBytes = objectBytes(this.#blobWorld, measured);
      if (isSuspect?.(blob) !== true && (await this.hasBlob(blob)))
        return { blob, sizeBytes, isNew: false, storedBytes: 0 };
      try {
        await this.#objects.upload(
          blobKeyOf(blob),
          storedBytes,
          objectContent(this.#blobWorld, blob, measured, content, signal),
          signal,
        );
        this.#written = blobKeyOf(blob);
        return { blob, sizeBytes, isNew: true, storedBytes };
      } catch (error) {
        if (!isContentChanged(error)) throw error;
        if (reading === READINGS_MAX)
          throw new SkuaError(
            'io_error',
            'A file kept changing while it was being backed up. Repeat the backup when the node is less busy.',
            { limit: READINGS_MAX },
          );
      }
    }
  }

  /**
   * One reading, into an object that gets its key when the content is known, or goes again where that is there already.
   */
  async #writePlain(
    sizeBytes: number,
    content: Content,
    { signal, isSuspect }: WriteBlobOptions,
  ): Promise<BlobRef & { readonly isNew: boolean; readonly storedBytes: number }> {
    const object = new PlainObject(this.#blobWorld, sizeBytes, content, signal);
    let blob = '';
    let isNew = false;
    await this.#objects.uploadNamed!(
      object.objectBytes,
      object.bytes(),
      async () => {
        blob = this.blobId(object.sha256);
        isNew = isSuspect?.(blob) === true || !(await this.hasBlob(blob));
        return isNew ? blobKeyOf(blob) : null;
      },
      signal,
    );
    if (isNew) this.#written = blobKeyOf(blob);
    return { blob, sizeBytes, isNew, storedBytes: isNew ? object.objectBytes : 0 };
  }

  readBlob(ref: BlobRef, range?: ByteRange, signal?: AbortSignal): AsyncIterable<Uint8Array> {
    return readBlobContent(this.#readerWorld, ref, range, signal);
  }

  readWholeBlob(ref: BlobRef, signal?: AbortSignal): AsyncIterable<Uint8Array> {
    return readBlobContent(this.#readerWorld, ref, undefined, signal, 'at-end');
  }

  blobSize(id: string): Promise<number> {
    return blobSize(this.#readerWorld, id);
  }

  async removeBlobs(ids: readonly string[]): Promise<void> {
    await this.removeObjects(ids.map(blobKeyOf));
  }

  blobKey(id: string): string {
    return blobKeyOf(id);
  }

  async shipped(
    manifestId: string,
    onDamaged?: (key: string, error: SkuaErrorOf<'repository_damaged'>) => void,
  ): Promise<readonly ShippedPiece[]> {
    const manifest = await this.manifest(manifestId);
    return await shippedAfter(
      this.#shippedWorld,
      { manifestId, logEnd: logEndOf(manifest), chunkSizeBytes: manifest.chunkSizeBytes },
      onDamaged,
    );
  }

  ship(piece: ShippedPiece, bytes: Uint8Array): Promise<'created' | 'exists'> {
    return ship(this.#shippedWorld, piece, bytes);
  }
  readShipped(piece: ShippedPiece): Promise<Uint8Array> {
    return readPiece(this.#shippedWorld, piece);
  }

  async readObject<T>(key: string, shape: Shape<T>): Promise<T | null> {
    const bytes = await this.#objects.get(key);
    return bytes === null ? null : decodeObject(this.#codec, key, bytes, shape);
  }

  async writeObject(key: string, value: unknown): Promise<void> {
    await this.#objects.put(key, encodeObject(this.#codec, key, value));
  }

  async removeObjects(keys: readonly string[]): Promise<void> {
    const strange = keys.find((key) => !isRepositoryKey(key));
    if (strange !== undefined)
      throw new SkuaError(
        'io_error',
        `The object ${strange} in ${this.place} has no name of a repository, and was to be removed: this is a defect. Nothing was.`,
        { key: strange },
      );
    for (let at = 0; at < keys.length; at += REMOVE_MAX) await this.#objects.remove(keys.slice(at, at + REMOVE_MAX));
  }

  objectsOf(kind: KeyKind): AsyncIterable<ObjectInfo> {
    return listKind(this.#objects, kind, { onStrangers: this.#onStrangers });
  }
  everything(): AsyncIterable<ObjectInfo> {
    return listAll(this.#objects, '');
  }

  close(): Promise<void> {
    return this.#objects.close();
  }
}

/** Object stores may wrap what their content throws. */
function isContentChanged(error: unknown): boolean {
  return error instanceof ContentChanged || (error instanceof Error && error.cause instanceof ContentChanged);
}

/** Names a repository, so that a job can open it too. */
export interface RepositorySpec {
  readonly place: ObjectLocation;
  readonly key: Uint8Array | null;
  readonly compression: CompressionMode;
}

/**
 * Jobs that store and restore large files side by side, each on a thread of its own: one thread alone can't digest as
 * fast as a disk writes. They reach the directory that is backed up, or restored to, and the repository by itself.
 */
export interface BackupLanes {
  readonly jobs: Jobs;
  readonly repository: RepositorySpec;
  /** Smaller files are not worth a job. Default LANE_BYTES_MIN. */
  readonly bytesMin?: number;
}

const LANE_BYTES_MIN = 4_194_304;

/** The lanes, where a file of this size is worth a job. */
export function lanesFor(lanes: BackupLanes | undefined, sizeBytes: number): BackupLanes | null {
  return lanes !== undefined && sizeBytes >= (lanes.bytesMin ?? LANE_BYTES_MIN) ? lanes : null;
}

/**
 * The repository as a job sees it; the job closes it. `nowMs`: the time when the job was given out, for jobs have a
 * clock without a date.
 */
export async function openForJob(
  { place, key, compression }: RepositorySpec,
  create: boolean,
  nowMs: number,
  context: JobContext,
): Promise<{ readonly repository: Repository; readonly clock: Clock }> {
  const { digests, ids, backup } = context;
  if (backup === undefined)
    throw new SkuaError('backup_off', 'This node has no object stores to back up to: its data is in memory only.');
  const clock = clockOf(nowMs, context);
  const world = { clock, ids, digests, keys: backup.keys, compression: backup.compression };
  return {
    repository: await openRepository(await backup.openObjects(place), { key, create, compression }, world),
    clock,
  };
}

function clockOf(nowMs: number, context: JobContext): Clock {
  const startMs = context.monotonicMs();
  return {
    nowMs: () => nowMs + context.monotonicMs() - startMs,
    monotonicMs: () => context.monotonicMs(),
    // A store that is opened in the job would else be closed only when its longest pause is over.
    sleep: (ms, signal) => context.sleep(ms, signal),
    yield: () => context.checkpoint(),
  };
}
