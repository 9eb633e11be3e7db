import { SkuaError } from '../errors.ts';
import { decodeFooter, decodeHeader, FOOTER_BYTES, HEADER_BYTES } from '../log/chunk-format.ts';
import { endsAlike, gather } from './create-known.ts';
import type { Known } from './create-known.ts';
import type { PartStore } from './create-store.ts';
import { toHex } from './hex.ts';
import type { ManifestChunk, ManifestSegment, ManifestTail } from './manifest.ts';
import type { Repository } from './repository-api.ts';
import type { BackupSource, SnapshotFile } from './source.ts';

/** A tail in more pieces than this is stored anew as one, so that a restore does not gather it from ever more objects. */
export const SEGMENTS_MAX = 64;

export interface ChunkParts {
  readonly source: BackupSource;
  readonly repository: Repository;
  readonly store: PartStore;
  readonly known: Known;
}

/** A completed chunk: as it is known from an earlier backup that proved it, or stored as a whole. Throws `log_corrupt` for one that is not as it was written. */
export async function backUpChunk(parts: ChunkParts, file: SnapshotFile): Promise<ManifestChunk> {
  const { path, sizeBytes } = file;
  const trusted = parts.known.trustedChunk(file);
  if (trusted !== null) return done(parts, trusted);
  const footer = decodeFooter(path, await gather(parts.source.read(path, sizeBytes - FOOTER_BYTES, FOOTER_BYTES), FOOTER_BYTES), sizeBytes);
  const md5 = toHex(footer.md5);
  const previous = parts.known.previousChunk(file, md5);
  if (previous !== null) return done(parts, previous);
  const header = decodeHeader(path, await gather(parts.source.read(path, 0, HEADER_BYTES), HEADER_BYTES));
  const { blob, fromMs, toMs } = await parts.store.store({ path, from: 0, length: sizeBytes, records: { from: HEADER_BYTES, to: HEADER_BYTES + footer.physicalBytes } });
  parts.store.fileDone(0);
  return { blob, sizeBytes, path, startNumber: header.startNumber, endNumber: header.endNumber, isScavenged: header.isScavenged, md5, provenBlob: blob, fromMs, toMs };
}

function done(parts: ChunkParts, chunk: ManifestChunk): ManifestChunk {
  parts.store.fileDone(chunk.sizeBytes);
  return chunk;
}

/** The chunk that is being written: its header, and its data as segments, of which only what an earlier backup lacks is stored. */
export async function backUpTail(parts: ChunkParts, file: SnapshotFile): Promise<ManifestTail> {
  const { source, store } = parts;
  const { path, sizeBytes } = file;
  const { chunkSizeBytes } = source.snapshot;
  const bytes = await gather(source.read(path, 0, HEADER_BYTES), HEADER_BYTES);
  const number = decodeHeader(path, bytes).startNumber;
  const header = toHex(bytes);
  const start = number * chunkSizeBytes;
  const end = start + sizeBytes - HEADER_BYTES;
  if (end !== source.snapshot.checkpoints.writer) throw new SkuaError('backup_failed', `${path} was listed up to position ${end}, but the log ends at ${source.snapshot.checkpoints.writer}. Repeat the backup.`, { path, position: end });
  const known = await knownSegments(parts, path, header, start, end);
  const segments: ManifestSegment[] = known.length >= SEGMENTS_MAX ? [] : [...known];
  const from = segments.at(-1)?.to ?? start;
  if (from < end) {
    const { blob, sizeBytes: segmentBytes } = await store.store({ path, from: HEADER_BYTES + from - start, length: end - from });
    segments.push({ blob, sizeBytes: segmentBytes, from, to: end });
  }
  store.fileDone(HEADER_BYTES + from - start);
  return { number, path, header, segments };
}

async function knownSegments({ known, repository, source, store }: ChunkParts, path: string, header: string, start: number, end: number): Promise<readonly ManifestSegment[]> {
  const found = known.tail(path, header, end);
  if (found === null) return [];
  const { tail, isTrusted } = found;
  const to = tail.segments.at(-1)?.to ?? start;
  try {
    return isTrusted || (await endsAlike(repository, source, path, HEADER_BYTES + to - start, tail, store.signal)) ? tail.segments : [];
  } catch (error) {
    // What can't be read there can't be built upon.
    if (error instanceof SkuaError && error.code === 'repository_damaged') return [];
    throw error;
  }
}
