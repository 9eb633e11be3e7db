import { equalBytes, i64, putI32, putI64, u32 } from '../../base/bytes.ts';
import { isSkuaError, SkuaError, type SkuaErrorOf } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { CHUNK_SIZE_MAX_BYTES } from '../../log/format/chunk-format.ts';
import type { Compression } from '../../ports/compression.ts';
import type { Digests } from '../../ports/digests.ts';
import { listKind } from '../../ports/object-kinds.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { encodeText } from '../../base/text.ts';
import { SHIPPED } from '../format/repository-keys.ts';
import type { ShippedPiece } from '../format/snapshot-manifest.ts';
import { damaged } from './repository-objects.ts';
import type { Sealer } from './repository-objects.ts';
import { PIECE_BYTES_MAX } from '../../store/shippable-log/shippable-log.ts';

/**
 * Log that was shipped after a manifest. The object's key is made of the manifest and the position where the piece
 * begins, and of nothing else: the store lets exactly one writer create it. Its header, little-endian:
 *
 * | Offset | Size | Field |
 * |---|---|---|
 * | 0 | 8 | `SkuaShip` |
 * | 8 | 1 | version: 1, or 2 where there are marks of redaction in it |
 * | 9 | 1 | 1 sealed, 2 zstd |
 * | 10 | 2 | 0 |
 * | 12 | 4 | bytes between the end of the log before it and its beginning: 0 unless a chunk was completed there |
 * | 16 | 8 | position where it begins |
 * | 24 | 8 | position behind it |
 * | 32 | 8 | when it was shipped |
 * | 40 | 4 | CRC-32 of what follows the header; 0 where it is sealed |
 * | 44 | 4 | CRC-32 of all before |
 */
const MAGIC = encodeText('SkuaShip');
const VERSION = 1;
/** What knows no marks must not restore it, and show what was redacted. */
const VERSION_WITH_MARKS = 2;
const HEADER_BYTES = 48;
const SEALED = 1;
const COMPRESSED = 2;
const POSITION_DIGITS = 20;
/** Headers that are read at once. */
const PARALLEL = 8;

export interface ShippedWorld {
  readonly objects: ObjectStore;
  readonly digests: Digests;
  readonly compression: Compression;
  readonly compresses: boolean;
  readonly sealer: Sealer | null;
}

function pieceKey(manifestId: string, from: number): string {
  return `${SHIPPED.prefix}${manifestId}/${String(from).padStart(POSITION_DIGITS, '0')}`;
}

export async function ship(world: ShippedWorld, piece: ShippedPiece, bytes: Uint8Array): Promise<'created' | 'exists'> {
  if (bytes.length !== piece.to - piece.from || bytes.length === 0 || bytes.length > PIECE_BYTES_MAX)
    throw new SkuaError(
      'bad_option',
      `A shipped piece has 1 to ${PIECE_BYTES_MAX} bytes of log: ${bytes.length} were given for ${piece.from} to ${piece.to}.`,
      { limit: PIECE_BYTES_MAX },
    );
  const gap = piece.from - (piece.previousEnd ?? piece.from);
  if (gap < 0 || gap > CHUNK_SIZE_MAX_BYTES)
    throw new SkuaError(
      'bad_option',
      `A shipped piece can't begin at ${piece.from} when the log before it ends at ${piece.previousEnd}: at most the rest of one chunk lies between.`,
      { limit: CHUNK_SIZE_MAX_BYTES },
    );
  const key = pieceKey(piece.manifestId, piece.from);
  const packed = world.compresses ? world.compression.compress(bytes) : bytes;
  const isCompressed = packed.length < bytes.length;
  const body = isCompressed ? packed : bytes;
  const header = new Uint8Array(HEADER_BYTES);
  header.set(MAGIC);
  header[8] = piece.hasMarks === true ? VERSION_WITH_MARKS : VERSION;
  header[9] = (world.sealer === null ? 0 : SEALED) | (isCompressed ? COMPRESSED : 0);
  putI32(header, 12, gap | 0);
  putI64(header, 16, piece.from);
  putI64(header, 24, piece.to);
  putI64(header, 32, Math.floor(piece.shippedMs));
  putI32(header, 40, world.sealer === null ? world.digests.crc32(body) | 0 : 0);
  putI32(header, 44, world.digests.crc32(header.subarray(0, 44)) | 0);
  const stored = world.sealer === null ? body : world.sealer.seal(body, context(key, header));
  const object = new Uint8Array(HEADER_BYTES + stored.length);
  object.set(header);
  object.set(stored, HEADER_BYTES);
  return await world.objects.create(key, object);
}

/** The log that the pieces go on with. */
interface ShippedBase {
  readonly manifestId: string;
  readonly logEnd: number;
  readonly chunkSizeBytes: number;
}

/**
 * Pieces that follow one another from the end of the base on, ascending. Where one is missing or damaged, it is told to
 * `onDamaged` and the pieces before it are what is left; without it, that is thrown.
 */
export async function shippedAfter(
  world: ShippedWorld,
  base: ShippedBase,
  onDamaged?: (key: string, error: SkuaErrorOf<'repository_damaged'>) => void,
): Promise<ShippedPiece[]> {
  const { manifestId } = base;
  const keys = await pieceKeys(world, manifestId);
  const found: (ShippedPiece | SkuaErrorOf<'repository_damaged'>)[] = [];
  await inParallel(keys.length, PARALLEL, async (i) => {
    found[i] = await pieceOf(world, manifestId, keys[i]!).catch((error: unknown) => {
      if (isSkuaError(error, 'repository_damaged')) return error;
      throw error;
    });
  });
  const pieces: ShippedPiece[] = [];
  for (const [i, piece] of found.entries()) {
    const error = piece instanceof Error ? piece : outOfPlace(world, base, piece, pieces.at(-1)?.to ?? base.logEnd);
    if (error === null) pieces.push(piece as ShippedPiece);
    else {
      if (onDamaged === undefined) throw error;
      onDamaged(error.data.key ?? keys[i]!, error);
      break;
    }
  }
  return pieces;
}

async function pieceKeys(world: ShippedWorld, manifestId: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listKind(world.objects, SHIPPED, { within: `${SHIPPED.prefix}${manifestId}/` }))
    keys.push(key);
  return keys;
}

/**
 * Null for a piece that goes on where the log before it ends: there, or at the next chunk's start when it tells that
 * the chunk was completed there.
 */
function outOfPlace(
  world: ShippedWorld,
  { manifestId, chunkSizeBytes }: ShippedBase,
  piece: ShippedPiece,
  end: number,
): SkuaErrorOf<'repository_damaged'> | null {
  const { place } = world.objects;
  const previous = piece.previousEnd ?? piece.from;
  const key = pieceKey(manifestId, piece.from);
  if (previous > end)
    return damaged(
      place,
      pieceKey(manifestId, end),
      `is missing: what was shipped goes on at ${piece.from}, behind log that ends at ${previous}`,
    );
  if (previous < end)
    return damaged(
      place,
      key,
      `begins behind ${previous}, before ${end}, where the log that was backed up before it ends`,
    );
  if (
    piece.from !== previous &&
    (previous % chunkSizeBytes === 0 || piece.from !== nextChunk(previous, chunkSizeBytes))
  )
    return damaged(place, key, `begins where no chunk does, behind log that ends at ${previous}`);
  return piece.to > nextChunk(piece.from, chunkSizeBytes)
    ? damaged(place, key, `goes on beyond the end of its chunk, to ${piece.to}`)
    : null;
}

/** Where the chunk behind the one with this position begins. */
export function nextChunk(position: number, chunkSizeBytes: number): number {
  return (Math.floor(position / chunkSizeBytes) + 1) * chunkSizeBytes;
}

/** The last piece as far as its header tells; null when nothing was shipped. */
export async function lastPiece(world: ShippedWorld, manifestId: string): Promise<ShippedPiece | null> {
  const key = (await pieceKeys(world, manifestId)).at(-1);
  return key === undefined ? null : await pieceOf(world, manifestId, key);
}

/** What the header of a piece says. Throws `repository_damaged`. */
async function pieceOf(world: ShippedWorld, manifestId: string, key: string): Promise<ShippedPiece> {
  const head = await world.objects.get(key, { from: 0, length: HEADER_BYTES });
  if (head === null) throw damaged(world.objects.place, key, 'is missing');
  return decodeHeader(world, manifestId, key, head).piece;
}

function decodeHeader(
  world: ShippedWorld,
  manifestId: string,
  key: string,
  b: Uint8Array,
): { piece: ShippedPiece; flags: number; crc: number } {
  const { place } = world.objects;
  const version = b[8]!;
  if (
    b.length < HEADER_BYTES ||
    !equalBytes(b, 0, MAGIC, 0, MAGIC.length) ||
    (version !== VERSION && version !== VERSION_WITH_MARKS)
  )
    throw damaged(place, key, 'does not start like shipped log');
  if (world.digests.crc32(b.subarray(0, 44)) !== u32(b, 44))
    throw damaged(place, key, 'has a header that does not match its checksum');
  const gap = u32(b, 12);
  const piece = {
    manifestId,
    ...(gap > 0 && { previousEnd: i64(b, 16) - gap }),
    from: i64(b, 16),
    to: i64(b, 24),
    shippedMs: i64(b, 32),
    ...(version === VERSION_WITH_MARKS && { hasMarks: true }),
  };
  if (
    pieceKey(manifestId, piece.from) !== key ||
    piece.to <= piece.from ||
    piece.to - piece.from > PIECE_BYTES_MAX ||
    (piece.previousEnd ?? 0) < 0
  )
    throw damaged(place, key, `holds log from ${piece.from} to ${piece.to}`);
  if (((b[9]! & SEALED) !== 0) !== (world.sealer !== null))
    throw damaged(place, key, 'is encrypted where the repository is not, or the other way round');
  return { piece, flags: b[9]!, crc: u32(b, 40) };
}

/** The log of a piece. Throws `repository_damaged`. */
export async function readPiece(world: ShippedWorld, piece: ShippedPiece): Promise<Uint8Array> {
  const key = pieceKey(piece.manifestId, piece.from);
  const object = await world.objects.get(key);
  if (object === null) throw damaged(world.objects.place, key, 'is missing');
  const { piece: stored, log } = openPiece(world, piece.manifestId, key, object);
  if (stored.to !== piece.to) throw damaged(world.objects.place, key, `ends at ${stored.to} instead of ${piece.to}`);
  return log();
}

/** What the header of a piece says, and its log, which throws `repository_damaged` too. */
export function openPiece(
  world: ShippedWorld,
  manifestId: string,
  key: string,
  object: Uint8Array,
): { readonly piece: ShippedPiece; readonly isCompressed: boolean; log(): Uint8Array } {
  const { place } = world.objects;
  const { piece, flags, crc } = decodeHeader(world, manifestId, key, object);
  const isCompressed = (flags & COMPRESSED) !== 0;
  const log = () => {
    const body = object.subarray(HEADER_BYTES);
    if (world.sealer === null && world.digests.crc32(body) !== crc)
      throw damaged(place, key, 'does not match its checksum');
    const packed =
      world.sealer === null ? body : world.sealer.open(body, context(key, object.subarray(0, HEADER_BYTES)));
    if (packed === null) throw damaged(place, key, 'was changed, or sealed with another key');
    const length = piece.to - piece.from;
    let bytes = packed;
    if (isCompressed) {
      try {
        bytes = world.compression.decompress(packed, length);
      } catch (error) {
        throw damaged(place, key, "can't be decompressed", error);
      }
    }
    if (bytes.length !== length) throw damaged(place, key, `holds ${bytes.length} bytes of log instead of ${length}`);
    return bytes;
  };
  return { piece, isCompressed, log };
}

/** A sealed piece is bound to its key and its header. */
function context(key: string, header: Uint8Array): Uint8Array {
  const name = encodeText(`${key}\n`);
  const out = new Uint8Array(name.length + header.length);
  out.set(name);
  out.set(header, name.length);
  return out;
}
