import { SkuaError } from '../../base/errors.ts';
import type { Compression } from '../../ports/compression.ts';
import type { Digest, Digests } from '../../ports/digests.ts';
import type { CompressionMode, Content } from './api.ts';
import {
  BLOB_FRAMES_MAX,
  encodeBlobHeader,
  encodeTable,
  frameContext,
  frameCount,
  HEADER_BYTES,
  objectBytesOf,
} from '../format/blob-format.ts';
import type { BlobFrame, BlobHeader } from '../format/blob-format.ts';
import { endWhenAborted, SEAL_BYTES } from './repository-objects.ts';
import type { Sealer } from './repository-objects.ts';

/**
 * Frames of one blob that are kept from the first reading, so that they need not be read and compressed again, up to so
 * many bytes.
 */
const KEPT_BYTES_MAX = 16_777_216;
/** Content is compressed when its first frame shrinks by this part. */
const WORTHWHILE = 1 / 8;

export interface BlobWorld {
  readonly digests: Digests;
  readonly compression: Compression;
  readonly sealer: Sealer | null;
  readonly frameBytes: number;
}

/** The content was another one when it was read again: its id does not fit it. */
export class ContentChanged extends Error {}

/** What the first reading of content tells: what its object will look like, byte for byte. */
interface Measured {
  readonly sha256: Uint8Array;
  readonly sizeBytes: number;
  /** As they are before they are sealed. */
  readonly frames: readonly BlobFrame[];
  /** All frames, when they were few enough to be kept. */
  readonly kept: readonly Uint8Array[] | null;
}

function checkSize(world: BlobWorld, sizeBytes: number): void {
  if (frameCount({ sizeBytes, frameBytes: world.frameBytes }) > BLOB_FRAMES_MAX)
    throw new SkuaError('backup_failed', `A file of ${sizeBytes} bytes is too long for a backup repository.`, {
      limit: BLOB_FRAMES_MAX * world.frameBytes,
    });
}

/**
 * Reads content once for its digest, and for the sizes and checksums of its frames: an object's length must be known
 * before it is stored, and whether it is there already.
 */
export async function measure(
  world: BlobWorld,
  sizeBytes: number,
  content: Content,
  mode: CompressionMode,
  signal?: AbortSignal,
): Promise<Measured> {
  checkSize(world, sizeBytes);
  const measuring = new Measuring(world, sizeBytes, mode);
  for await (const piece of content('first')) {
    endWhenAborted(signal);
    measuring.add(piece);
  }
  return measuring.finish();
}

class Measuring {
  readonly #world: BlobWorld;
  readonly #sizeBytes: number;
  readonly #sha: Digest;
  readonly #frames: BlobFrame[] = [];
  #mode: CompressionMode;
  /** Null where frames are looked at piece by piece and not put together. */
  #gather: Uint8Array | null;
  #kept: Uint8Array[] | null = null;
  #keptBytes = 0;
  #filled = 0;
  #total = 0;
  #crc = 0;

  constructor(world: BlobWorld, sizeBytes: number, mode: CompressionMode, keeps = true) {
    this.#world = world;
    this.#sizeBytes = sizeBytes;
    this.#mode = mode;
    this.#sha = world.digests.sha256();
    const gathers = keeps && (mode !== 'off' || sizeBytes <= world.frameBytes);
    this.#gather = gathers ? new Uint8Array(Math.min(sizeBytes, world.frameBytes)) : null;
    if (gathers) this.#kept = [];
  }

  add(piece: Uint8Array): void {
    this.#sha.update(piece);
    this.#total += piece.length;
    if (this.#total > this.#sizeBytes) throw lengthDiffers(this.#sizeBytes, this.#total);
    for (let at = 0; at < piece.length;) {
      const end = Math.min(piece.length, at + this.#world.frameBytes - this.#filled);
      const part = piece.subarray(at, end);
      if (this.#gather === null) this.#crc = this.#world.digests.crc32(part, this.#crc);
      else this.#gather.set(part, this.#filled);
      this.#filled += part.length;
      at = end;
      if (this.#filled === this.#world.frameBytes) this.#endFrame();
    }
  }

  finish(): Measured {
    if (this.#total !== this.#sizeBytes) throw lengthDiffers(this.#sizeBytes, this.#total);
    if (this.#filled > 0) this.#endFrame();
    return { sha256: this.#sha.finish(), sizeBytes: this.#sizeBytes, frames: this.#frames, kept: this.#kept };
  }

  #endFrame(): void {
    if (this.#gather === null) this.#frames.push({ storedBytes: this.#filled, isCompressed: false, crc: this.#crc });
    else this.#endGathered(this.#gather.subarray(0, this.#filled));
    this.#filled = 0;
    this.#crc = 0;
  }

  #endGathered(plain: Uint8Array): void {
    const frame = packFrame(this.#world, plain, this.#mode !== 'off');
    if (this.#mode === 'auto') this.#mode = frame.bytes.length <= plain.length * (1 - WORTHWHILE) ? 'on' : 'off';
    const isCompressed = frame.isCompressed && this.#mode === 'on';
    const bytes = isCompressed ? frame.bytes : plain;
    this.#frames.push({ storedBytes: bytes.length, isCompressed, crc: this.#world.digests.crc32(bytes) });
    this.#keep(bytes, isCompressed);
    // What is not compressed and not small is read twice rather than held in memory.
    if (this.#mode === 'off' && this.#sizeBytes > this.#world.frameBytes) this.#gather = this.#kept = null;
  }

  #keep(bytes: Uint8Array, isOwn: boolean): void {
    this.#keptBytes += bytes.length;
    if (this.#keptBytes > KEPT_BYTES_MAX) this.#kept = null;
    this.#kept?.push(isOwn ? bytes : bytes.slice());
  }
}

function packFrame(
  world: BlobWorld,
  plain: Uint8Array,
  compresses: boolean,
): { bytes: Uint8Array; isCompressed: boolean } {
  const packed = compresses ? world.compression.compress(plain) : plain;
  return packed.length < plain.length ? { bytes: packed, isCompressed: true } : { bytes: plain, isCompressed: false };
}

function headerOf(world: BlobWorld, sizeBytes: number, framesBytes: number): BlobHeader {
  return {
    isSealed: world.sealer !== null,
    frameBytes: world.frameBytes,
    sizeBytes,
    tableAt: HEADER_BYTES + framesBytes,
  };
}

/** As they are stored. */
function storedFrames(world: BlobWorld, { frames }: Measured): readonly BlobFrame[] {
  return world.sealer === null
    ? frames
    : frames.map((frame) => ({ ...frame, storedBytes: frame.storedBytes + SEAL_BYTES, crc: 0 }));
}

function headerOfMeasured(world: BlobWorld, measured: Measured): BlobHeader {
  return headerOf(
    world,
    measured.sizeBytes,
    storedFrames(world, measured).reduce((sum, frame) => sum + frame.storedBytes, 0),
  );
}

export function objectBytes(world: BlobWorld, measured: Measured): number {
  return objectBytesOf(headerOfMeasured(world, measured));
}

/** The bytes of the blob's object. Throws ContentChanged when the content is no longer what was measured. */
export async function* objectContent(
  world: BlobWorld,
  id: string,
  measured: Measured,
  content: Content,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const header = headerOfMeasured(world, measured);
  const headerBytes = encodeBlobHeader(header, world.digests);
  yield headerBytes;
  const isStoredAsItIs = world.sealer === null && measured.frames.every((frame) => !frame.isCompressed);
  if (measured.kept === null && isStoredAsItIs) yield* sameContent(world, measured, content, signal);
  else {
    let number = 0;
    for await (const bytes of measured.kept ?? packedAgain(world, measured, content, signal)) {
      const { isCompressed } = measured.frames[number]!;
      yield world.sealer === null ? bytes : world.sealer.seal(bytes, frameContext(id, number, isCompressed, header));
      number++;
    }
  }
  yield encodeTable(headerBytes, storedFrames(world, measured), world.digests);
}

/**
 * Content that is neither sealed nor compressed, which needs one reading only: what its object will look like is known
 * before.
 */
export class PlainObject {
  readonly #world: BlobWorld;
  readonly #header: BlobHeader;
  readonly #measuring: Measuring;
  readonly #content: Content;
  readonly #signal: AbortSignal | undefined;

  constructor(world: BlobWorld, sizeBytes: number, content: Content, signal?: AbortSignal) {
    checkSize(world, sizeBytes);
    this.#world = world;
    this.#header = headerOf(world, sizeBytes, sizeBytes);
    this.#measuring = new Measuring(world, sizeBytes, 'off', false);
    this.#content = content;
    this.#signal = signal;
  }

  get objectBytes(): number {
    return objectBytesOf(this.#header);
  }
  /** Of the content; known when all bytes of the object have been given. */
  sha256: Uint8Array = new Uint8Array(0);

  async *bytes(): AsyncGenerator<Uint8Array, void, undefined> {
    const header = encodeBlobHeader(this.#header, this.#world.digests);
    yield header;
    for await (const piece of this.#content('first')) {
      endWhenAborted(this.#signal);
      this.#measuring.add(piece);
      yield piece;
    }
    const { frames, sha256 } = this.#measuring.finish();
    this.sha256 = sha256;
    yield encodeTable(header, frames, this.#world.digests);
  }
}

/** Passes the pieces on as they are, and looks at the checksum of every frame. */
async function* sameContent(
  world: BlobWorld,
  measured: Measured,
  content: Content,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  let number = 0;
  let filled = 0;
  let crc = 0;
  for await (const piece of content('again')) {
    endWhenAborted(signal);
    for (let at = 0; at < piece.length;) {
      const frame = measured.frames[number];
      if (frame === undefined) throw new ContentChanged();
      const end = Math.min(piece.length, at + frame.storedBytes - filled);
      crc = world.digests.crc32(piece.subarray(at, end), crc);
      filled += end - at;
      at = end;
      if (filled < frame.storedBytes) continue;
      if (crc !== frame.crc) throw new ContentChanged();
      number++;
      filled = crc = 0;
    }
    yield piece;
  }
  if (number !== measured.frames.length || filled > 0) throw new ContentChanged();
}

async function* packedAgain(
  world: BlobWorld,
  measured: Measured,
  content: Content,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const gather = new Uint8Array(Math.min(measured.sizeBytes, world.frameBytes));
  let number = 0;
  let filled = 0;
  let total = 0;
  for await (const piece of content('again')) {
    endWhenAborted(signal);
    total += piece.length;
    if (total > measured.sizeBytes) throw new ContentChanged();
    for (let at = 0; at < piece.length;) {
      const end = Math.min(piece.length, at + gather.length - filled);
      gather.set(piece.subarray(at, end), filled);
      filled += end - at;
      at = end;
      const isLast = total === measured.sizeBytes && at === piece.length;
      if (filled < gather.length && !isLast) continue;
      yield packedFrame(world, measured.frames[number++]!, gather.subarray(0, filled));
      filled = 0;
    }
  }
  if (number !== measured.frames.length) throw new ContentChanged();
}

function packedFrame(world: BlobWorld, frame: BlobFrame, plain: Uint8Array): Uint8Array {
  const bytes = frame.isCompressed ? world.compression.compress(plain) : plain;
  if (bytes.length !== frame.storedBytes || world.digests.crc32(bytes) !== frame.crc) throw new ContentChanged();
  return bytes;
}

function lengthDiffers(expected: number, actual: number): SkuaError {
  return new SkuaError(
    'io_error',
    `A file being backed up had ${actual} bytes instead of ${expected}. Repeat the backup; if it happens again, check the disk.`,
    { limit: expected },
  );
}
