import { equalBytes, i64, putI32, putI64, u16, u32 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import { CARRY_BYTES_MAX, CARRY_SPAN_COMMITS } from '../api.ts';

/**
 * The bytes of a commit object: a header, the framed records of the commit, and the commits before it that it carries
 * along, newest first, each with a header of its own. All integers little-endian:
 *
 * | Offset | Size | Field |
 * |---|---|---|
 * | 0 | 8 | `SkuaLogC` |
 * | 8 | 2 | version: 1, or 2 where marks of redaction are among the records |
 * | 10 | 2 | flags: 1 = the chunk ends behind this commit |
 * | 12 | 4 | commits carried (0 in a carried one) |
 * | 16 | 8 | number |
 * | 24 | 16 | id of the writer |
 * | 40 | 16 | nonce: random, the same for all attempts to write this commit |
 * | 56 | 8 | position where the records start |
 * | 64 | 8 | position where they end |
 * | 72 | 4 | CRC-32 of the records |
 * | 76 | 4 | CRC-32 of bytes 0 to 75 |
 */
export const COMMIT_HEADER_BYTES = 80;
const MAGIC = Uint8Array.from('SkuaLogC', (letter) => letter.charCodeAt(0));
const VERSION = 1;
/** What doesn't know of marks must not go on behind one: it would show what was redacted. */
const VERSION_WITH_MARKS = 2;
const FLAG_ENDS_CHUNK = 1;

export interface Commit {
  readonly number: number;
  /** 16 bytes each. */
  readonly writer: Uint8Array;
  readonly nonce: Uint8Array;
  /** Log positions. */
  readonly start: number;
  readonly end: number;
  /** The next commit starts at the next chunk. */
  readonly endsChunk: boolean;
  /** There are marks of redaction among the records. */
  readonly hasMarks: boolean;
  /** Framed records: `end - start` bytes. */
  readonly records: Uint8Array;
}

export interface CommitObject {
  readonly commit: Commit;
  /** The commits directly before it, newest first; may be none. */
  readonly carried: readonly Commit[];
}

/**
 * Bytes of a commit. `carried` are such bytes too, of the commits directly before it, newest first, which carry none.
 */
export function encodeCommit(commit: Commit, carried: readonly Uint8Array[], digests: Digests): Uint8Array {
  const { records } = commit;
  let size = COMMIT_HEADER_BYTES + records.length;
  for (const one of carried) size += one.length;
  const out = new Uint8Array(size);
  out.set(MAGIC, 0);
  out[8] = commit.hasMarks ? VERSION_WITH_MARKS : VERSION;
  out[10] = commit.endsChunk ? FLAG_ENDS_CHUNK : 0;
  putI32(out, 12, carried.length);
  putI64(out, 16, commit.number);
  out.set(commit.writer, 24);
  out.set(commit.nonce, 40);
  putI64(out, 56, commit.start);
  putI64(out, 64, commit.end);
  putI32(out, 72, digests.crc32(records) | 0);
  putI32(out, 76, digests.crc32(out.subarray(0, 76)) | 0);
  out.set(records, COMMIT_HEADER_BYTES);
  let at = COMMIT_HEADER_BYTES + records.length;
  for (const one of carried) {
    out.set(one, at);
    at += one.length;
  }
  return out;
}

/**
 * Reads a whole commit object; records are views of `bytes`. Throws `log_corrupt` with key and offset for anything that
 * is not exactly one.
 */
export function decodeCommitObject(key: string, number: number, bytes: Uint8Array, digests: Digests): CommitObject {
  const decoder = new Decoder(key, bytes, digests);
  const commit = decoder.next(number);
  const carried: Commit[] = [];
  for (let left = decoder.carried; left > 0; left--) carried.push(decoder.next(number - carried.length - 1));
  decoder.end();
  return { commit, carried };
}

/**
 * Reads commits that stand one behind the other, as one member of a cluster sends them to another: the first has the
 * number `from`, and none carries others. Throws as `decodeCommitObject`.
 */
export function decodeCommits(from: number, bytes: Uint8Array, digests: Digests): Commit[] {
  const decoder = new Decoder('that was sent', bytes, digests);
  const commits: Commit[] = [];
  while (!decoder.isAtEnd) commits.push(decoder.next(from + commits.length));
  return commits;
}

class Decoder {
  /** Commits that the one read first carries. */
  carried = 0;
  readonly #key: string;
  readonly #bytes: Uint8Array;
  readonly #digests: Digests;
  #at = 0;

  constructor(key: string, bytes: Uint8Array, digests: Digests) {
    this.#key = key;
    this.#bytes = bytes;
    this.#digests = digests;
  }

  next(number: number): Commit {
    const at = this.#at;
    const header = this.#bytes.subarray(at, at + COMMIT_HEADER_BYTES);
    if (header.length < COMMIT_HEADER_BYTES) throw this.#fail('is cut short');
    if (!equalBytes(header, 0, MAGIC, 0, MAGIC.length)) throw this.#fail('holds no commit');
    if (u32(header, 76) !== this.#digests.crc32(header.subarray(0, 76)))
      throw this.#fail('has a header whose checksum is wrong');
    const version = u16(header, 8);
    if (version > VERSION_WITH_MARKS)
      throw new SkuaError(
        'format_too_new',
        `The commit object ${this.#key} is in format ${version}, but this version supports formats up to ${VERSION_WITH_MARKS}: install the version that wrote it. Nothing was changed.`,
        { key: this.#key, format: version, formatMax: VERSION_WITH_MARKS },
      );
    const flags = u16(header, 10);
    if ((version !== VERSION && version !== VERSION_WITH_MARKS) || (flags & ~FLAG_ENDS_CHUNK) !== 0)
      throw this.#fail(`is of version ${version} with flags ${flags}, which is not known`);
    const carried = u32(header, 12);
    if (at === 0) this.carried = carried;
    else if (carried !== 0) throw this.#fail('carries a commit that carries others');
    if (i64(header, 16) !== number) throw this.#fail(`names commit ${i64(header, 16)} where ${number} must be`);
    const start = i64(header, 56);
    const end = i64(header, 64);
    const records = this.#bytes.subarray(at + COMMIT_HEADER_BYTES, at + COMMIT_HEADER_BYTES + end - start);
    if (start < 0 || end < start || records.length !== end - start)
      throw this.#fail(`has ${records.length} bytes of records for the positions ${start} to ${end}`);
    if (u32(header, 72) !== this.#digests.crc32(records)) throw this.#fail('has records whose checksum is wrong');
    this.#at = at + COMMIT_HEADER_BYTES + records.length;
    return {
      number,
      writer: header.slice(24, 40),
      nonce: header.slice(40, 56),
      start,
      end,
      endsChunk: (flags & FLAG_ENDS_CHUNK) !== 0,
      hasMarks: version === VERSION_WITH_MARKS,
      records,
    };
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw this.#fail(`has ${this.#bytes.length - this.#at} extra bytes`);
  }

  #fail(what: string): SkuaError {
    return new SkuaError(
      'log_corrupt',
      `The commit object ${this.#key} ${what} (offset ${this.#at}). Commit objects are never changed, so something else wrote it: restore it from a version or a backup of the bucket.`,
      { key: this.#key, offset: this.#at },
    );
  }
}

interface Carried {
  readonly number: number;
  readonly bytes: Uint8Array;
}

/** The last commits, as bytes, for the commit objects to come: so that a reader of the tail needs few requests. */
export class Carry {
  #commits: Carried[] = [];

  /**
   * `bytes` is the commit as `encodeCommit` gives it, without others. A large one is kept too, as the end of what can
   * be carried.
   */
  add(number: number, bytes: Uint8Array): void {
    if (this.#commits.at(-1)?.number !== number - 1) this.#commits = [];
    if (bytes.length > CARRY_BYTES_MAX) {
      this.#commits = [];
      return;
    }
    this.#commits.push({ number, bytes });
    if (this.#commits.length > 2 * CARRY_SPAN_COMMITS) this.#commits = this.#commits.slice(-CARRY_SPAN_COMMITS);
  }

  /**
   * What commit `number` carries, newest first: back to the last multiple of the span and to the boundary, as far as it
   * fits. No reader reads commits below the boundary, and what a scavenge has removed from the files must not come back
   * in copies of them.
   */
  before(number: number, boundary = 1): readonly Uint8Array[] {
    const from = Math.max(boundary, Math.floor((number - 1) / CARRY_SPAN_COMMITS) * CARRY_SPAN_COMMITS);
    const out: Uint8Array[] = [];
    let left = CARRY_BYTES_MAX;
    for (let i = this.#commits.length - 1, expected = number - 1; i >= 0; i--, expected--) {
      const one = this.#commits[i]!;
      left -= one.bytes.length;
      if (one.number !== expected || one.number < from || left < 0) break;
      out.push(one.bytes);
    }
    return out;
  }
}
