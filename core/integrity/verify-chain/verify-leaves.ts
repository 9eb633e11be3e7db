import { u32 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import {
  decodeLeavesHeader,
  isSame,
  LEAVES_ENTRY_BYTES,
  LEAVES_HEADER_BYTES,
  leavesPath,
  nodeHash,
  type Sha256,
} from '../format/chain-layout.ts';
import type { ProofNote } from './verify-report.ts';

/** The leaves of completed chunks as the verifier reads them, and the root that it computes of them. */

/** Entries read at once. */
const ENTRIES_AT_ONCE = 16_384;
/** Bytes read at once where all is hashed. */
const HASHED_BYTES = 1_048_576;

interface LeavesParts {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly sha256: Sha256;
  readonly chunkSize: number;
}

/** The leaves of a chunk as they were written down; not known where there are none, or damaged ones. */
export async function* leavesOf(
  { storage, digests, sha256, chunkSize }: LeavesParts,
  number: number,
  before: Uint8Array,
  isNeeded: boolean,
): AsyncGenerator<ProofNote, LeafReader> {
  const path = leavesPath(number);
  const note = (why: string): ProofNote => ({
    kind: 'note',
    file: path,
    message: `${path} ${why}. The records of chunk ${number} are verified with the anchor alone${isNeeded ? ', and what scavenges removed from them is unknown' : ''}.`,
  });
  if ((await storage.size(path)) === null) {
    if (isNeeded) yield note('is missing, though the chunk was rewritten');
    return LeafReader.unknown;
  }
  const file = await storage.open(path, 'read');
  try {
    const header = decodeLeavesHeader(sha256, path, await file.read(0, LEAVES_HEADER_BYTES));
    const isWhole =
      header.chunkNumber === number && file.size === LEAVES_HEADER_BYTES + header.count * LEAVES_ENTRY_BYTES;
    if (!isWhole || !isSame(await hashOf(file, LEAVES_HEADER_BYTES, digests), header.entries)) {
      yield note('was changed or damaged');
      return LeafReader.unknown;
    }
    if (!isSame(header.before, before)) yield note('does not follow the chunks before it');
    return new LeafReader(storage, path, number * chunkSize, header.count);
  } catch (error) {
    if (!isSkuaError(error, 'proof_damaged')) throw error;
    yield note('was changed or damaged');
    return LeafReader.unknown;
  } finally {
    await file.close();
  }
}

interface Leaf {
  readonly position: number;
  readonly leaf: Uint8Array;
}

/** The leaves of one chunk in order, read piece by piece. */
export class LeafReader {
  /** Of a chunk whose leaves were not written down. */
  static readonly unknown = new LeafReader(null, '', 0, 0);
  readonly isKnown: boolean;
  readonly #storage: Storage | null;
  readonly #path: string;
  readonly #start: number;
  readonly #count: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  #given = 0;

  constructor(storage: Storage | null, path: string, start: number, count: number) {
    this.isKnown = storage !== null;
    this.#storage = storage;
    this.#path = path;
    this.#start = start;
    this.#count = count;
  }

  async next(): Promise<Leaf | null> {
    if (this.#given === this.#count) return null;
    if (this.#at === this.#bytes.length) await this.#read();
    const at = this.#at;
    this.#at += LEAVES_ENTRY_BYTES;
    this.#given++;
    return { position: this.#start + u32(this.#bytes, at), leaf: this.#bytes.slice(at + 4, at + LEAVES_ENTRY_BYTES) };
  }

  async #read(): Promise<void> {
    const entries = Math.min(this.#count - this.#given, ENTRIES_AT_ONCE);
    const file = await this.#storage!.open(this.#path, 'read');
    try {
      this.#bytes = (
        await file.read(LEAVES_HEADER_BYTES + this.#given * LEAVES_ENTRY_BYTES, entries * LEAVES_ENTRY_BYTES)
      ).slice();
    } finally {
      await file.close();
    }
    this.#at = 0;
  }
}

/**
 * A Merkle tree over leaves that come one by one: the hashes of full subtrees by their level, of which no level has
 * two.
 */
export class Accumulated {
  readonly #sha256: Sha256;
  readonly #levels: (Uint8Array | null)[] = [];
  count = 0;

  constructor(sha256: Sha256) {
    this.#sha256 = sha256;
  }

  add(leaf: Uint8Array): void {
    this.count++;
    let hash = leaf;
    let level = 0;
    for (let left = this.#levels[level] ?? null; left !== null; left = this.#levels[++level] ?? null) {
      hash = nodeHash(this.#sha256, left, hash);
      this.#levels[level] = null;
    }
    this.#levels[level] = hash;
  }

  root(): Uint8Array {
    let right: Uint8Array | null = null;
    // The smallest subtree stands rightmost.
    for (const hash of this.#levels)
      if (hash !== null) right = right === null ? hash : nodeHash(this.#sha256, hash, right);
    return right ?? this.#sha256();
  }
}

/** The SHA-256 of a file from an offset on. */
export async function hashOf(file: StorageFile, from: number, digests: Digests): Promise<Uint8Array> {
  const digest = digests.sha256();
  for (let at = from; at < file.size;) {
    const bytes = await file.read(at, Math.min(HASHED_BYTES, file.size - at));
    if (bytes.length === 0) break;
    digest.update(bytes);
    at += bytes.length;
  }
  return digest.finish();
}
