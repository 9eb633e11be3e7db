import { ChunkProof, chunkDamaged } from '../../log/format/chunk-proof.ts';
import type { ObjectWorld } from '../../shared-log/api.ts';
import type { ObjectManifest } from '../../shared-log/format/manifest.ts';
import type { Storage } from '../../ports/storage.ts';
import { bucketChunk, newPieceBuffers, piecesOf } from './bucket-files.ts';
import { objectCorrupt } from './download-files.ts';
import type { ReplicaInspection } from './inspect-replica.ts';

/** Where copy and bucket differ. */
interface Difference {
  readonly storage: Storage;
  readonly inspection: ReplicaInspection;
  readonly world: ObjectWorld;
  readonly manifest: ObjectManifest;
  /** Of the record or byte. */
  readonly position: number;
  readonly signal: AbortSignal;
}

/**
 * A bit that flipped looks like two logs that went apart, and the remedy is another one. Reads whole files, which
 * nobody minds before giving up: throws `log_corrupt`, with the object's key or the file's name, where the file of one
 * side does not fit its checksum.
 */
export async function refuseDamaged({
  storage,
  inspection,
  world: { objects, digests },
  manifest,
  position,
  signal,
}: Difference): Promise<void> {
  const number = Math.floor(position / manifest.chunkSizeBytes);
  const buffers = newPieceBuffers();
  const stored = bucketChunk(manifest, number);
  const segment = manifest.ongoing?.segments.find(({ from, to }) => position >= from && position < to);
  if (stored !== undefined) {
    const proof = new ChunkProof(digests, stored.name, stored.sizeBytes);
    for await (const piece of piecesOf(objects, stored.key, 0, stored.sizeBytes, buffers, signal)) proof.add(piece);
    proof.check(() => objectCorrupt(stored.key, stored.name));
  } else if (segment?.crc32 !== undefined) {
    let crc = 0;
    for await (const piece of piecesOf(objects, segment.key, 0, segment.to - segment.from, buffers, signal))
      crc = digests.crc32(piece, crc);
    if (crc !== segment.crc32) throw objectCorrupt(segment.key, manifest.ongoing!.name);
  }
  const own = inspection.files.find(({ startNumber, endNumber }) => startNumber <= number && endNumber >= number);
  if (own === undefined) return;
  const file = await storage.open(own.name, 'read');
  try {
    const proof = new ChunkProof(digests, own.name, file.size);
    await proof.addRange(file, file.size);
    proof.check(chunkDamaged);
  } finally {
    await file.close();
  }
}
