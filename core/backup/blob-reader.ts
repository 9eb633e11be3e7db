import type { Compression } from '../ports/compression.ts';
import type { Digests } from '../ports/digests.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { decodeBlobHeader, frameContext, headerBytes, HEADER_READ_BYTES, headerBytesOf, plainBytes } from './blob-format.ts';
import type { BlobHeader } from './blob-format.ts';
import { endWhenAborted } from './blob-writer.ts';
import { damaged } from './damaged.ts';
import type { BlobRef } from './manifest.ts';
import type { Sealer } from './sealing.ts';

/** Frames that are fetched while one is looked at. */
const FRAMES_AHEAD = 2;

export interface ReaderWorld {
  readonly objects: ObjectStore;
  readonly digests: Digests;
  readonly compression: Compression;
  readonly sealer: Sealer | null;
  /** Text of the id that content with this SHA-256 has. */
  blobId(sha256: Uint8Array): string;
  blobKey(id: string): string;
}

export interface ByteRange { readonly from: number; readonly length: number }

/** One blob that is being read: its header, and what came with it of the frames behind. */
interface OpenBlob {
  readonly id: string;
  readonly key: string;
  readonly header: BlobHeader;
  /** Where each frame begins in the object. */
  readonly offsets: readonly number[];
  readonly head: Uint8Array;
}

/** Plain content of a blob; ARCHITECTURE.md, "Backups". Throws `repository_damaged` before any byte that is not as it was written. */
export async function* readBlobContent(world: ReaderWorld, ref: BlobRef, range: ByteRange | undefined, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  const blob = await openBlob(world, ref.blob, signal);
  if (blob.header.sizeBytes !== ref.sizeBytes) throw damaged(world.objects.place, blob.key, `holds ${blob.header.sizeBytes} bytes where ${ref.sizeBytes} were backed up`);
  const { frameBytes, sizeBytes } = blob.header;
  const from = range?.from ?? 0;
  const to = Math.min(sizeBytes, range === undefined ? sizeBytes : range.from + range.length);
  const isWhole = from === 0 && to === sizeBytes;
  const digest = isWhole ? world.digests.sha256() : null;
  if (from < to) {
    const first = Math.floor(from / frameBytes);
    const last = Math.floor((to - 1) / frameBytes);
    const coming: Promise<Uint8Array>[] = [];
    for (let ahead = first, frame = first; frame <= last; frame++) {
      for (; ahead <= last && ahead <= frame + FRAMES_AHEAD; ahead++) coming.push(fetchFrame(world, blob, ahead, signal));
      const plain = openFrame(world, blob, frame, await coming.shift()!);
      endWhenAborted(signal);
      digest?.update(plain);
      const start = frame * frameBytes;
      yield plain.subarray(Math.max(0, from - start), Math.min(plain.length, to - start));
    }
  }
  if (digest !== null && world.blobId(digest.finish()) !== blob.id) throw damaged(world.objects.place, blob.key, 'does not hold the content that its name stands for');
}

/** Plain bytes of a blob, as its header has them. Throws `repository_damaged`. */
export async function blobSize(world: ReaderWorld, id: string): Promise<number> {
  return (await openBlob(world, id)).header.sizeBytes;
}

async function openBlob(world: ReaderWorld, id: string, signal?: AbortSignal): Promise<OpenBlob> {
  const key = world.blobKey(id);
  const { place } = world.objects;
  let head = await world.objects.get(key, { from: 0, length: HEADER_READ_BYTES, ...(signal && { signal }) });
  if (head === null) throw damaged(place, key, 'is missing');
  const length = headerBytesOf(head);
  if (length === null) throw damaged(place, key, 'does not begin as a blob does');
  if (length > head.length && head.length === HEADER_READ_BYTES) head = (await world.objects.get(key, { from: 0, length, ...(signal && { signal }) })) ?? head;
  const header = decodeBlobHeader(head, world.digests);
  if (header === null) throw damaged(place, key, 'has a header that does not fit its checksum');
  if (header.isSealed !== (world.sealer !== null)) throw damaged(place, key, header.isSealed ? 'is encrypted in a repository that is not' : 'is not encrypted in a repository that is');
  const offsets: number[] = [];
  let at = headerBytes(header.frames.length);
  for (const frame of header.frames) {
    offsets.push(at);
    at += frame.storedBytes;
  }
  if (head.length < HEADER_READ_BYTES && head.length !== at) throw damaged(place, key, `has ${head.length} bytes instead of ${at}`);
  return { id, key, header, offsets, head };
}

function fetchFrame(world: ReaderWorld, blob: OpenBlob, frame: number, signal?: AbortSignal): Promise<Uint8Array> {
  const from = blob.offsets[frame]!;
  const length = blob.header.frames[frame]!.storedBytes;
  if (from + length <= blob.head.length) return Promise.resolve(blob.head.subarray(from, from + length));
  // A byte more than the last frame has would be one too many in the object.
  const isLast = frame === blob.header.frames.length - 1;
  const fetching = world.objects.get(blob.key, { from, length: isLast ? length + 1 : length, ...(signal && { signal }) }).then((bytes) => {
    if (bytes === null) throw damaged(world.objects.place, blob.key, 'is missing');
    return bytes;
  });
  // Its error is met when the frame is due, unless an earlier one ends the reading.
  fetching.catch(() => {});
  return fetching;
}

/** Verifies a frame and undoes what was done to it. */
function openFrame(world: ReaderWorld, blob: OpenBlob, number: number, stored: Uint8Array): Uint8Array {
  const frame = blob.header.frames[number]!;
  const fail = (what: string, cause?: unknown) => damaged(world.objects.place, blob.key, `${what} (frame ${number})`, cause);
  if (stored.length !== frame.storedBytes) throw fail('has another length than its header says');
  let bytes: Uint8Array | null = stored;
  if (world.sealer !== null) bytes = world.sealer.open(stored, frameContext(blob.id, number, frame.isCompressed, blob.header));
  else if (world.digests.crc32(stored) !== frame.crc) throw fail('does not fit its checksum');
  if (bytes === null) throw fail('was changed, or sealed with another key');
  const length = plainBytes(blob.header, number);
  if (frame.isCompressed) {
    try {
      bytes = world.compression.decompress(bytes, length);
    } catch (error) {
      throw fail('can\'t be decompressed', error);
    }
  }
  if (bytes.length !== length) throw fail(`holds ${bytes.length} bytes instead of ${length}`);
  return bytes;
}
