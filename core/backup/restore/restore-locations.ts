import { decodeFooter, FOOTER_BYTES, HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { Repository } from '../repository/api.ts';
import type { Manifest, ManifestChunk, ShippedPiece } from '../format/snapshot-manifest.ts';
import { nextChunk } from '../repository/shipped.ts';

/** A backup with what was shipped after it: all that one restore may take its log from. */
export interface Kept {
  readonly manifest: Manifest;
  readonly pieces: readonly ShippedPiece[];
}

/** Where a position lies in a backup. */
type RestoreLocation =
  /** Where a chunk ends, or the log ended when it was backed up: the log can end there. */
  | { readonly kind: 'end' }
  /** In a chunk in which every record stands that it ever had. */
  | { readonly kind: 'log'; readonly stretch: Stretch }
  | { readonly kind: 'scavenged'; readonly chunk: ManifestChunk }
  | { readonly kind: 'beyond' };

/** Unscavenged log from one place where it can end to another one. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
  content(): AsyncIterable<Uint8Array>;
}

export function chunkStart({ chunkSizeBytes }: Manifest, { startNumber }: ManifestChunk): number {
  return startNumber * chunkSizeBytes;
}

/** Where the chunk behind it begins. */
export function chunkEnd({ chunkSizeBytes }: Manifest, { endNumber }: ManifestChunk): number {
  return (endNumber + 1) * chunkSizeBytes;
}

export function keptEnd({ manifest, pieces }: Kept): number {
  return pieces.at(-1)?.to ?? manifest.checkpoints.writer;
}

export function placeOf(repository: Repository, kept: Kept, position: number): RestoreLocation {
  const { manifest } = kept;
  const { writer } = manifest.checkpoints;
  if (position > keptEnd(kept)) return { kind: 'beyond' };
  if (position === writer) return { kind: 'end' };
  if (position > writer) {
    const stretch = [...shippedStretches(repository, kept)].find(({ to }) => position <= to)!;
    return position === stretch.to && position < keptEnd(kept) ? { kind: 'end' } : { kind: 'log', stretch };
  }
  const chunk = manifest.chunks.find((candidate) => position <= chunkEnd(manifest, candidate));
  if (chunk !== undefined) {
    if (position === chunkEnd(manifest, chunk)) return { kind: 'end' };
    return chunk.isScavenged
      ? { kind: 'scavenged', chunk }
      : { kind: 'log', stretch: chunkStretch(repository, manifest, chunk) };
  }
  const segment = manifest.tail?.segments.find((candidate) => position <= candidate.to);
  if (segment === undefined) return { kind: 'beyond' };
  if (position === segment.to) return { kind: 'end' };
  return { kind: 'log', stretch: { from: segment.from, to: segment.to, content: () => repository.readBlob(segment) } };
}

/**
 * The whole log of a backup in its order, as far as it is unscavenged chunk by chunk; `chunk` is null behind the
 * completed ones.
 */
export function* stretches(
  repository: Repository,
  { manifest, pieces }: Kept,
): Generator<{ readonly chunk: ManifestChunk | null; readonly stretch: Stretch }, void, undefined> {
  for (const chunk of manifest.chunks) yield { chunk, stretch: chunkStretch(repository, manifest, chunk) };
  for (const segment of manifest.tail?.segments ?? [])
    yield { chunk: null, stretch: { from: segment.from, to: segment.to, content: () => repository.readBlob(segment) } };
  for (const stretch of shippedStretches(repository, { manifest, pieces })) yield { chunk: null, stretch };
}

function chunkStretch(repository: Repository, manifest: Manifest, chunk: ManifestChunk): Stretch {
  return {
    from: chunkStart(manifest, chunk),
    to: chunkEnd(manifest, chunk),
    content: () => chunkData(repository, chunk),
  };
}

async function* chunkData(repository: Repository, chunk: ManifestChunk): AsyncGenerator<Uint8Array, void, undefined> {
  const footer = new Uint8Array(FOOTER_BYTES);
  let filled = 0;
  for await (const bytes of repository.readBlob(chunk, {
    from: chunk.sizeBytes - FOOTER_BYTES,
    length: FOOTER_BYTES,
  })) {
    footer.set(bytes, filled);
    filled += bytes.length;
  }
  const { physicalBytes } = decodeFooter(chunk.path, footer.subarray(0, filled), chunk.sizeBytes);
  yield* repository.readBlob(chunk, { from: HEADER_BYTES, length: physicalBytes });
}

/** What was shipped, chunk by chunk. A chunk that was completed reaches to the beginning of the next one. */
function* shippedStretches(repository: Repository, { manifest, pieces }: Kept): Generator<Stretch, void, undefined> {
  const size = manifest.chunkSizeBytes;
  let from = manifest.checkpoints.writer;
  for (let first = 0; first < pieces.length;) {
    const end = nextChunk(from, size);
    let last = first;
    while (last < pieces.length && pieces[last]!.from < end) last++;
    const own = pieces.slice(first, last);
    yield { from, to: last < pieces.length ? end : pieces.at(-1)!.to, content: () => piecesOf(repository, own) };
    first = last;
    from = end;
  }
}

async function* piecesOf(
  repository: Repository,
  pieces: readonly ShippedPiece[],
): AsyncGenerator<Uint8Array, void, undefined> {
  for (const piece of pieces) yield await repository.readShipped(piece);
}
