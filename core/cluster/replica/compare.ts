import { BlockCache } from '../../cache/cache.ts';
import { END, untilHit } from '../../base/step.ts';
import { SkuaError } from '../../base/errors.ts';
import { HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { ChunkTable, Chunk } from '../../log/api.ts';
import { FRAME_BYTES, RecordFrame } from '../../log/format/records.ts';
import type { ObjectManifest } from '../../shared-log/format/manifest.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { isSameRecord } from '../../log/format/redaction.ts';
import { openBucketChunk } from './bucket-files.ts';

/** Bytes before the copy's end, or before the end of the bucket's files where that comes first, that are compared. */
export const COMPARED_BYTES = 65_536;
/** Chunk files that are looked into for them: scavenged ones may hold next to nothing. */
const FILES_MAX = 16;
const CACHE_BYTES = 4_194_304;

interface CompareParts {
  /** The copy, read-only: all chunks that hold anything of the log at or behind `compareFrom`. */
  readonly table: ChunkTable;
  readonly manifest: ObjectManifest;
  readonly objects: ObjectStore;
}

/** Position from which on the copy is read for a comparison that begins at its end. */
export function compareFrom(end: number, { logEnd, chunkSizeBytes }: ObjectManifest): number {
  return Math.max(0, Math.min(end, logEnd) - FILES_MAX * chunkSizeBytes);
}

/**
 * Compares the last 64 KiB that copy and bucket both have: byte for byte where neither is scavenged, else the records
 * that both kept, and at whatever place the bucket's unscavenged records stand the copy's must be the same, but for the
 * data of events that one of the two has emptied (core/log/format/redaction.ts). Resolves with the bytes that were
 * found alike; 0 where nothing could be compared. Throws `log_diverged` (data: position) for a difference.
 */
export async function checkLastBytes({ table, manifest, objects }: CompareParts): Promise<number> {
  const cache = new BlockCache(CACHE_BYTES);
  const compare = new Comparison(table, objects.place);
  const end = Math.min(table.end, manifest.logEnd);
  let at = end;
  for (let files = 0; at > 0 && compare.bytes < COMPARED_BYTES && files < FILES_MAX; files++) {
    const bucket = openBucketChunk(manifest, at - 1, objects, cache);
    const copy = table.chunkAt(at - 1);
    if (copy === undefined) break;
    const from = Math.max(bucket.startPosition, copy.startPosition);
    if (bucket.isScavenged && at === end) await compare.endsRecord(bucket, at);
    if (bucket.isScavenged) await compare.survivors(bucket, from, at);
    else await compare.unscavenged(bucket, copy, from, at);
    at = from;
  }
  return compare.bytes;
}

/**
 * As `checkLastBytes`, from the beginning of the log: for a directory of which nothing else says whose it is, and whose
 * end the bucket has scavenged.
 */
export async function checkFirstBytes({ table, manifest, objects }: CompareParts): Promise<number> {
  const cache = new BlockCache(CACHE_BYTES);
  const compare = new Comparison(table, objects.place);
  const end = Math.min(table.end, manifest.logEnd);
  for (let files = 0, at = 0; at < end && compare.bytes < COMPARED_BYTES && files < FILES_MAX; files++) {
    const bucket = openBucketChunk(manifest, at, objects, cache);
    await compare.forward(bucket, at, end);
    at = bucket.endPosition;
  }
  return compare.bytes;
}

class Comparison {
  /** Found alike so far. */
  bytes = 0;
  readonly #table: ChunkTable;
  readonly #place: string;
  readonly #frame = new RecordFrame();
  readonly #own = new RecordFrame();

  constructor(table: ChunkTable, location: string) {
    this.#table = table;
    this.#place = location;
  }

  /** The bucket has all bytes of [from, to), the last `COMPARED_BYTES` of which are compared. */
  async unscavenged(bucket: Chunk, copy: Chunk, from: number, to: number): Promise<void> {
    const end = Math.min(to, bucket.startPosition + bucket.physicalBytes);
    const first = Math.max(from, end - (COMPARED_BYTES - this.bytes));
    const theirs =
      end <= first
        ? new Uint8Array(0)
        : await bucket.file.file.read(HEADER_BYTES + first - bucket.startPosition, end - first);
    if (copy.isScavenged) return this.#kept(copy, theirs, first, to);
    const ownEnd = Math.min(to, copy.startPosition + copy.physicalBytes);
    const own =
      ownEnd <= first
        ? new Uint8Array(0)
        : await copy.file.file.read(HEADER_BYTES + first - copy.startPosition, ownEnd - first);
    for (let i = 0; i < Math.min(own.length, theirs.length); i++)
      if (own[i] !== theirs[i]) throw diverged(this.#place, first + i);
    // One of them has ended the chunk where the other goes on.
    if (own.length !== theirs.length) throw diverged(this.#place, Math.min(end, ownEnd));
    this.bytes += own.length;
  }

  /** What the copy's scavenge has kept of a stretch that the bucket has as it was written. */
  async #kept(copy: Chunk, theirs: Uint8Array, first: number, to: number): Promise<void> {
    const frame = this.#own;
    for (let at = to; at > first;) {
      const before = at;
      if ((await untilHit(() => copy.readBackward(before, frame))) === END || frame.position < first) return;
      const size = frame.length + FRAME_BYTES;
      if (
        frame.next > first + theirs.length ||
        !isSameRecord(frame.bytes, frame.at - 4, theirs, frame.position - first, size)
      )
        throw diverged(this.#place, frame.position);
      this.bytes += size;
      at = frame.position;
    }
  }

  /** No record that the bucket has kept may begin before the copy's end and end behind it. */
  async endsRecord(bucket: Chunk, end: number): Promise<void> {
    const frame = this.#frame;
    const isBehindOne = (await untilHit(() => bucket.readBackward(end, frame))) !== END;
    const from = isBehindOne ? frame.next : bucket.startPosition;
    if ((await untilHit(() => bucket.readForward(from, frame))) !== END && frame.position < end)
      throw diverged(this.#place, frame.position);
  }

  /** What the bucket's scavenge has kept of [from, to), from its end. */
  async survivors(bucket: Chunk, from: number, to: number): Promise<void> {
    const frame = this.#frame;
    for (let at = to; at > from && this.bytes < COMPARED_BYTES;) {
      const before = at;
      if ((await untilHit(() => bucket.readBackward(before, frame))) === END || frame.position < from) return;
      await this.#same(frame);
      at = frame.position;
    }
  }

  async forward(bucket: Chunk, from: number, to: number): Promise<void> {
    const frame = this.#frame;
    for (let at = from; at < to && this.bytes < COMPARED_BYTES; at = frame.next) {
      const next = at;
      if ((await untilHit(() => bucket.readForward(next, frame))) === END || frame.next > to) return;
      await this.#same(frame);
    }
  }

  /** The copy must have this record of the bucket's, unless its own scavenge has removed it. */
  async #same(frame: RecordFrame): Promise<void> {
    const found = await holdsRecord(this.#table, frame, this.#own);
    if (found === 'other') throw diverged(this.#place, frame.position);
    if (found === 'same') this.bytes += frame.length + FRAME_BYTES;
  }
}

/**
 * What the log of a table has where this record of another log stands. `removed`: a scavenge may have taken it away.
 * `own` is used for reading.
 */
export async function holdsRecord(
  table: ChunkTable,
  frame: RecordFrame,
  own: RecordFrame,
): Promise<'same' | 'other' | 'removed'> {
  const { position } = frame;
  const chunk = table.chunkAt(position);
  if (chunk === undefined) return 'other';
  const size = frame.length + FRAME_BYTES;
  if (!chunk.isScavenged) {
    const at = position - chunk.startPosition;
    if (at + size > chunk.physicalBytes) return 'other';
    const bytes = await chunk.file.file.read(HEADER_BYTES + at, size);
    return bytes.length === size && isSameRecord(bytes, 0, frame.bytes, frame.at - 4, size) ? 'same' : 'other';
  }
  if ((await untilHit(() => chunk.readAt(position, own))) === END) return 'removed';
  return own.length === frame.length && isSameRecord(own.bytes, own.at - 4, frame.bytes, frame.at - 4, size)
    ? 'same'
    : 'other';
}

/** What is here and what is in the log went apart at this position. */
export function diverged(location: string, position: number, what = `differ at position ${position}`): SkuaError {
  return new SkuaError(
    'log_diverged',
    `The replica in this directory and the log at ${location} ${what}: each has commits the other does not. Either the directory has another history (move it away, and let an empty one catch up), or the bucket was rolled back to an older state (\`skua cluster reset\` starts a new log from the best replica). Nothing was changed.`,
    { position, place: location },
  );
}
