import type { BlobRef, Manifest, ManifestSummary, ShippedPiece } from './manifest.ts';

/**
 * A repository of backups in an object store; ARCHITECTURE.md has its layout. Every read is verified: what does not fit its
 * checksum is `repository_damaged`, with the object's key in `data.key`.
 */
export interface Repository {
  readonly info: RepositoryInfo;
  /** Where it is, for messages. */
  readonly place: string;
  /** Newest first. A damaged manifest is told to `onDamaged` and left out; without it, it is thrown. */
  backups(onDamaged?: (key: string, error: Error) => void): Promise<readonly ManifestSummary[]>;
  /** `latest` is the newest. Rejects with `backup_not_found`. */
  manifest(id: string): Promise<Manifest>;
  /** Writes a manifest, after which the backup exists. */
  putManifest(manifest: Manifest): Promise<void>;
  /** Removes a manifest together with what was shipped after it. */
  removeManifest(id: string): Promise<void>;

  hasBlob(id: string): Promise<boolean>;
  /** Every blob there is. */
  blobs(): AsyncIterable<{ readonly id: string; readonly storedBytes: number; readonly modifiedMs: number }>;
  /** The id that content with this SHA-256 (32 bytes) has here. */
  blobId(sha256: Uint8Array): string;
  /** Stores content under the id that follows from it, unless it is there; resolves with its reference and whether it was stored now. */
  writeBlob(sizeBytes: number, content: () => AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<BlobRef & { readonly isNew: boolean; readonly storedBytes: number }>;
  /** Plain content from `from` on, `length` bytes or to its end. Frames are verified one by one, and a whole blob that is read from its beginning to its end against its id. */
  readBlob(ref: BlobRef, range?: { readonly from: number; readonly length: number }, signal?: AbortSignal): AsyncIterable<Uint8Array>;
  removeBlobs(ids: readonly string[]): Promise<void>;
  /** Key of the blob's object, for messages. */
  blobKey(id: string): string;

  /** What was shipped after a manifest: contiguous, ascending. */
  shipped(manifestId: string): Promise<readonly ShippedPiece[]>;
  /** Ships log that begins where the manifest or the last piece ends. `exists` when another process shipped there first. */
  ship(piece: ShippedPiece, bytes: Uint8Array): Promise<'created' | 'exists'>;
  readShipped(piece: ShippedPiece): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface RepositoryInfo {
  /** Text of a UUID. */
  readonly id: string;
  readonly createdMs: number;
  readonly isEncrypted: boolean;
}

/** `auto`: frames that a sample shows to shrink by an eighth or more. */
export type CompressionMode = 'off' | 'auto' | 'on';

export interface RepositoryOptions {
  /** 32 bytes; null for a repository without encryption. */
  readonly key: Uint8Array | null;
  /** Create it where there is none; otherwise `repository_not_found`. */
  readonly create: boolean;
  readonly compression: CompressionMode;
}
