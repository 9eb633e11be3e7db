import type { SkuaErrorOf } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Compression } from '../../ports/compression.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Keys } from '../../ports/keys.ts';
import type { KeyKind, OnStrangers } from '../../ports/object-kinds.ts';
import type { ObjectInfo } from '../../ports/object-store.ts';
import type { Shape } from '../../base/shape.ts';
import type { BlobRef, Manifest, ManifestKey, ManifestSummary, ShippedPiece } from '../format/snapshot-manifest.ts';

/**
 * A repository of backups in an object store; its layout: core/backup/FORMAT.md. Every read is verified: what does not
 * fit its checksum, or says what no such object may say, is `repository_damaged`, with the object's key in `data.key`.
 * Objects with other names than a repository gives are passed over, and never removed.
 */
export interface Repository {
  readonly info: RepositoryInfo;
  /** Where it is, for messages. */
  readonly place: string;
  /**
   * Newest first, only the newest `max` where that is given. A damaged manifest is told to `onDamaged` and left out;
   * without it, it is thrown.
   */
  backups(
    onDamaged?: (key: string, error: SkuaErrorOf<'repository_damaged'>) => void,
    max?: number,
  ): Promise<readonly ManifestSummary[]>;
  /** `latest` is the newest. Rejects with `backup_not_found`. */
  manifest(id: string): Promise<Manifest>;
  /** Of every manifest there is, oldest first. */
  manifestKeys(): Promise<readonly ManifestKey[]>;
  /** A manifest by its key, read anew whatever is known of it; null when it is gone. */
  manifestAt(key: ManifestKey): Promise<Manifest | null>;
  /**
   * Ids of this manifest, first and where it is still there, and of those made after it, of whatever node, oldest
   * first: one request where they are few.
   */
  manifestsFrom(manifest: Pick<Manifest, 'id' | 'createdMs'>): Promise<readonly string[]>;
  /** The newest of this node that is readable; null when there is none. */
  newestOf(nodeId: string): Promise<Manifest | null>;
  /** Writes a manifest, after which the backup exists. */
  putManifest(manifest: Manifest): Promise<void>;
  /** Removes a manifest together with what was shipped after it. */
  removeManifest(id: string): Promise<void>;

  hasBlob(id: string): Promise<boolean>;
  /** Which of these are not there. */
  missingBlobs(ids: readonly string[], signal?: AbortSignal): Promise<readonly string[]>;
  /** Every blob there is. */
  blobs(): AsyncIterable<{ readonly id: string; readonly storedBytes: number; readonly modifiedMs: number }>;
  /** The id that content with this SHA-256 (32 bytes) has here. */
  blobId(sha256: Uint8Array): string;
  /**
   * Stores content under the id that follows from it, unless it is there; resolves with its reference and whether it
   * was stored now.
   */
  writeBlob(
    sizeBytes: number,
    content: Content,
    options?: WriteBlobOptions,
  ): Promise<BlobRef & { readonly isNew: boolean; readonly storedBytes: number }>;
  /**
   * Plain content from `from` on, `length` bytes or to its end. Frames are verified one by one, and a whole blob that
   * is read from its beginning to its end against its id. A piece may be used again after the next one was asked for.
   */
  readBlob(
    ref: BlobRef,
    range?: { readonly from: number; readonly length: number },
    signal?: AbortSignal,
  ): AsyncIterable<Uint8Array>;
  /**
   * A blob from its beginning to its end, for a reader that keeps nothing of it when this throws: a blob without
   * compression and encryption is verified by its id alone, when all of it has been given away.
   */
  readWholeBlob(ref: BlobRef, signal?: AbortSignal): AsyncIterable<Uint8Array>;
  /** Bytes of plain content, as the blob itself says. */
  blobSize(id: string): Promise<number>;
  removeBlobs(ids: readonly string[]): Promise<void>;
  /** Key of the blob's object, for messages. */
  blobKey(id: string): string;

  /**
   * What was shipped after a manifest: contiguous, ascending. Pieces from the first damaged or missing one on, which is
   * told to `onDamaged`, are left out; without it, it is thrown.
   */
  shipped(
    manifestId: string,
    onDamaged?: (key: string, error: SkuaErrorOf<'repository_damaged'>) => void,
  ): Promise<readonly ShippedPiece[]>;
  /**
   * Ships log that begins where the manifest or the last piece ends. `exists` when another process shipped there first.
   */
  ship(piece: ShippedPiece, bytes: Uint8Array): Promise<'created' | 'exists'>;
  readShipped(piece: ShippedPiece): Promise<Uint8Array>;

  /**
   * A small value that was written under this key; null when there is none. Its checksum holds and, in an encrypted
   * repository, its seal.
   */
  readObject<T>(key: string, shape: Shape<T>): Promise<T | null>;
  /** Creates or replaces a small JSON value. Keys: those of `repository/keys.ts`. */
  writeObject(key: string, value: unknown): Promise<void>;
  /** Removes objects that have names of a repository, and no other: `io_error`, with nothing removed. */
  removeObjects(keys: readonly string[]): Promise<void>;
  /** Objects of one kind, ascending. */
  objectsOf(kind: KeyKind): AsyncIterable<ObjectInfo>;
  /** Everything there is, strangers' objects too, for commands that only look. */
  everything(): AsyncIterable<ObjectInfo>;
  close(): Promise<void>;
}

/** `first`: what is read decides what is stored. `again`: it is read once more, and compared with that. */
export type Reading = 'first' | 'again';
export type Content = (reading: Reading) => AsyncIterable<Uint8Array>;

export interface WriteBlobOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether the blob that is there under this id is not to be trusted: it is replaced then. */
  readonly isSuspect?: (id: string) => boolean;
  /**
   * Content that may be zeros for the most part: compressed in a directory too where that pays, unless compression is
   * off.
   */
  readonly mayBeZeros?: boolean;
}

export interface RepositoryInfo {
  /** Text of a UUID. */
  readonly id: string;
  readonly createdMs: number;
  readonly isEncrypted: boolean;
}

/**
 * `auto`: in a directory content that may be zeros for the most part, elsewhere all, and of that what has a first frame
 * that shrinks by an eighth or more. Frames that don't shrink are stored as they are.
 */
export type CompressionMode = 'off' | 'auto' | 'on';

export interface RepositoryOptions {
  /** 32 bytes; null for a repository without encryption. */
  readonly key: Uint8Array | null;
  /** Create it where there is none; otherwise `repository_not_found`. */
  readonly create: boolean;
  readonly compression: CompressionMode;
  /** Plain bytes of a frame of what is written. Default 256 KiB in a directory, else 4 MiB. */
  readonly frameBytes?: number;
}

/** What a repository needs of the world. */
export interface RepositoryWorld {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly keys: Keys;
  readonly compression: Compression;
  /** Told of objects in the place that are not the repository's. */
  readonly onStrangers?: OnStrangers | undefined;
}
