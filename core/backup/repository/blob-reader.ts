import { BlockFile } from '../../ports/block-file.ts';
import type { Compression } from '../../ports/compression.ts';
import type { Digests } from '../../ports/digests.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { StorageFile } from '../../ports/storage.ts';
import {
  decodeBlobHeader,
  decodeTable,
  frameContext,
  HEAD_READ_BYTES,
  HEADER_BYTES,
  objectBytesOf,
  plainBytes,
} from '../format/blob-format.ts';
import type { BlobFrame, BlobHeader } from '../format/blob-format.ts';
import type { BlobRef } from '../format/snapshot-manifest.ts';
import { damaged, endWhenAborted } from './repository-objects.ts';
import type { Sealer } from './repository-objects.ts';

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

/**
 * Whether every frame is verified before it is given away, or a blob that is read from its beginning to its end as a
 * whole, by its name: that spares a checksum of every byte, for callers that keep nothing of what they read when the
 * end throws.
 */
type FrameChecks = 'each' | 'at-end';

export interface ByteRange {
  readonly from: number;
  readonly length: number;
}

/** One blob that is being read: its header, and what came with it of the frames behind. */
export interface OpenBlob {
  readonly id: string;
  readonly key: string;
  readonly header: BlobHeader;
  readonly frames: readonly BlobFrame[];
  /** Where each frame begins in the object. */
  readonly offsets: readonly number[];
  readonly head: Uint8Array;
}

/** Memory for the frames that are fetched ahead and the one that is looked at, used in turns. */
class FrameBuffers {
  readonly #sizeBytes: number;
  readonly #buffers: Uint8Array[] = [];

  constructor(frames: readonly BlobFrame[], first: number, last: number) {
    this.#sizeBytes = frames.slice(first, last + 1).reduce((most, { storedBytes }) => Math.max(most, storedBytes), 0);
  }

  of(frame: number): Uint8Array {
    return (this.#buffers[frame % (FRAMES_AHEAD + 1)] ??= new Uint8Array(this.#sizeBytes));
  }
}

/**
 * Plain content of a blob. A piece may be used again after the next one was asked for. Throws `repository_damaged`
 * before any byte that is not as it was written.
 */
export async function* readBlobContent(
  world: ReaderWorld,
  ref: BlobRef,
  range: ByteRange | undefined,
  signal?: AbortSignal,
  checks: FrameChecks = 'each',
): AsyncGenerator<Uint8Array, void, undefined> {
  const blob = await openBlob(world, ref.blob, signal);
  if (blob.header.sizeBytes !== ref.sizeBytes)
    throw damaged(
      world.objects.place,
      blob.key,
      `holds ${blob.header.sizeBytes} bytes where ${ref.sizeBytes} were backed up`,
    );
  const { frameBytes, sizeBytes } = blob.header;
  const from = range?.from ?? 0;
  const to = Math.min(sizeBytes, range === undefined ? sizeBytes : range.from + range.length);
  const isWhole = from === 0 && to === sizeBytes;
  const digest = isWhole ? world.digests.sha256() : null;
  if (from < to) {
    const first = Math.floor(from / frameBytes);
    const last = Math.floor((to - 1) / frameBytes);
    const coming: Promise<Uint8Array>[] = [];
    const buffers = new FrameBuffers(blob.frames, first, last);
    for (let ahead = first, frame = first; frame <= last; frame++) {
      // The frame before, whose memory is filled now, was given away until the next one was asked for.
      for (; ahead <= last && ahead <= frame + FRAMES_AHEAD; ahead++)
        coming.push(fetchFrame(world, blob, ahead, buffers, signal));
      const plain = openFrame(world, blob, frame, await coming.shift()!, isWhole && checks === 'at-end');
      endWhenAborted(signal);
      digest?.update(plain);
      const start = frame * frameBytes;
      yield plain.subarray(Math.max(0, from - start), Math.min(plain.length, to - start));
    }
  }
  if (digest === null || world.blobId(digest.finish()) === blob.id) return;
  // The frames know which of them is damaged.
  if (checks === 'at-end') for await (const _ of readBlobContent(world, ref, undefined, signal));
  throw damaged(world.objects.place, blob.key, 'does not hold the content that its name identifies');
}

/** Plain bytes of a blob, as its header has them. Throws `repository_damaged`. */
export async function blobSize(world: ReaderWorld, id: string): Promise<number> {
  return (await openBlob(world, id)).header.sizeBytes;
}

export async function openBlob(world: ReaderWorld, id: string, signal?: AbortSignal): Promise<OpenBlob> {
  const key = world.blobKey(id);
  const { place } = world.objects;
  const head = await world.objects.get(key, { from: 0, length: HEAD_READ_BYTES, ...(signal && { signal }) });
  if (head === null) throw damaged(place, key, 'is missing');
  const header = decodeBlobHeader(head, world.digests);
  if (header === null)
    throw damaged(place, key, 'does not start like a blob, or its header does not match its checksum');
  if (header.isSealed !== (world.sealer !== null))
    throw damaged(
      place,
      key,
      header.isSealed ? 'is encrypted in a repository that is not' : 'is not encrypted in a repository that is',
    );
  const frames = decodeTable(
    head.subarray(0, HEADER_BYTES),
    header,
    await tableOf(world, key, header, head, signal),
    world.digests,
  );
  if (frames === null) throw damaged(place, key, 'has a frame table that does not match its checksum');
  const offsets: number[] = [];
  let at = HEADER_BYTES;
  for (const frame of frames) {
    offsets.push(at);
    at += frame.storedBytes;
  }
  return { id, key, header, frames, offsets, head };
}

async function tableOf(
  world: ReaderWorld,
  key: string,
  header: BlobHeader,
  head: Uint8Array,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const total = objectBytesOf(header);
  const wrong = () => damaged(world.objects.place, key, `is not ${total} bytes long, as its header says`);
  if (header.tableAt < HEADER_BYTES) throw wrong();
  if (head.length < HEAD_READ_BYTES) {
    if (head.length !== total) throw wrong();
    return head.subarray(header.tableAt);
  }
  // A byte more than there should be would come along.
  const length = total - header.tableAt;
  const table = await world.objects.get(key, { from: header.tableAt, length: length + 1, ...(signal && { signal }) });
  if (table?.length !== length) throw wrong();
  return table;
}

function fetchFrame(
  world: ReaderWorld,
  blob: OpenBlob,
  frame: number,
  buffers: FrameBuffers,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const from = blob.offsets[frame]!;
  const length = blob.frames[frame]!.storedBytes;
  if (from + length <= blob.head.length) return Promise.resolve(blob.head.subarray(from, from + length));
  const fetching = world.objects
    .get(blob.key, { from, length, into: buffers.of(frame), ...(signal && { signal }) })
    .then((bytes) => {
      if (bytes === null) throw damaged(world.objects.place, blob.key, 'is missing');
      return bytes;
    });
  // Its error is met when the frame is due, unless an earlier one ends the reading.
  fetching.catch(() => {});
  return fetching;
}

/** Verifies a frame and undoes what was done to it. */
function openFrame(
  world: ReaderWorld,
  blob: OpenBlob,
  number: number,
  stored: Uint8Array,
  isCheckedLater: boolean,
): Uint8Array {
  const frame = blob.frames[number]!;
  const fail = (what: string, cause?: unknown) =>
    damaged(world.objects.place, blob.key, `${what} (frame ${number})`, cause, blob.offsets[number]);
  if (stored.length !== frame.storedBytes) throw fail('is cut short');
  let bytes: Uint8Array | null = stored;
  if (world.sealer !== null)
    bytes = world.sealer.open(stored, frameContext(blob.id, number, frame.isCompressed, blob.header));
  else if (!(isCheckedLater && !frame.isCompressed) && world.digests.crc32(stored) !== frame.crc)
    throw fail('does not match its checksum');
  if (bytes === null) throw fail('was changed, or sealed with another key');
  const length = plainBytes(blob.header, number);
  if (frame.isCompressed) {
    try {
      bytes = world.compression.decompress(bytes, length);
    } catch (error) {
      throw fail("can't be decompressed", error);
    }
  }
  if (bytes.length !== length) throw fail(`holds ${bytes.length} bytes instead of ${length}`);
  return bytes;
}

/**
 * The content of a blob as a file, for what reads it here and there: every frame is verified when it is read, and
 * the last one is kept.
 */
export function blobFile(world: ReaderWorld, blob: OpenBlob): StorageFile {
  const buffers = new FrameBuffers(blob.frames, 0, blob.frames.length - 1);
  let last: { readonly number: number; readonly plain: Uint8Array } | null = null;
  const block = async (number: number) => {
    if (last?.number !== number)
      last = {
        number,
        plain: openFrame(world, blob, number, await fetchFrame(world, blob, number, buffers), false).slice(),
      };
    return last.plain;
  };
  return new BlockFile({ path: blob.key, size: blob.header.sizeBytes, blockBytes: blob.header.frameBytes, block });
}
