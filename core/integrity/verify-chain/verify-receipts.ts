import { i64 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage } from '../../ports/storage.ts';
import {
  CUT,
  decodeReceiptHeader,
  HASH_BYTES,
  isSame,
  NO_LEAF,
  numberedAs,
  PROOF_FOLDER,
  RECEIPT_ENTRY_BYTES,
  RECEIPT_HEADER_BYTES,
  type ReceiptHeader,
  receiptPath,
  REWRITTEN,
  type Sha256,
  VOID,
} from '../format/chain-layout.ts';
import { hashOf } from './verify-leaves.ts';
import type { ProofNote } from './verify-report.ts';

/** What a receipt states of a record; null for removed. */
type State = Uint8Array | null;

/** What is known of one position. */
export interface StateAt {
  readonly original: Uint8Array;
  /** Behind the last covered receipt. */
  readonly covered: State;
  /** What receipts without cover made of it, but for the last. */
  readonly between: readonly State[];
  readonly latest: State;
}

interface Receipt extends ReceiptHeader {
  readonly head: Uint8Array;
  readonly path: string;
}

/** Reads the receipts of a directory as far as they follow on one another. What is behind them is worth nothing. */
export async function* readReceipts(
  storage: Storage,
  digests: Digests,
  sha256: Sha256,
  start: Uint8Array,
): AsyncGenerator<ProofNote, Receipts> {
  const found: Receipt[] = [];
  const numbers = (await storage.list(PROOF_FOLDER))
    .map((name) => numberedAs('receipt', name))
    .filter((number) => number !== null);
  for (const number of numbers) {
    const path = receiptPath(number);
    const why =
      number === found.length
        ? await readOne(storage, digests, sha256, path, found.at(-1)?.head ?? start, number, found)
        : `is not preceded by receipt ${found.length}`;
    if (why === null) continue;
    yield { kind: 'note', file: path, message: `${path} ${why}: it and all later ones are ignored.` };
    break;
  }
  return new Receipts(storage, found, start);
}

/** Null where it is as it should be. */
async function readOne(
  storage: Storage,
  digests: Digests,
  sha256: Sha256,
  path: string,
  before: Uint8Array,
  number: number,
  found: Receipt[],
): Promise<string | null> {
  const file = await storage.open(path, 'read');
  try {
    const header = decodeReceiptHeader(sha256, path, await file.read(0, RECEIPT_HEADER_BYTES));
    if (header.number !== number || !isSame(header.before, before)) return 'does not follow the receipt before it';
    if (
      file.size !== RECEIPT_HEADER_BYTES + header.count * RECEIPT_ENTRY_BYTES ||
      !isSame(await hashOf(file, RECEIPT_HEADER_BYTES, digests), header.entries)
    )
      return 'has entries that do not match its header';
    found.push({ ...header, path });
    return null;
  } catch (error) {
    if (!isSkuaError(error, 'proof_damaged')) throw error;
    return 'was changed or damaged';
  } finally {
    await file.close();
  }
}

export class Receipts {
  readonly #storage: Storage;
  readonly #receipts: readonly Receipt[];
  readonly #start: Uint8Array;

  constructor(storage: Storage, receipts: readonly Receipt[], start: Uint8Array) {
    this.#storage = storage;
    this.#receipts = receipts;
    this.#start = start;
  }

  get count(): number {
    return this.#receipts.length;
  }

  /** Head of the first `count` receipts; null when there are fewer. */
  headAt(count: number): Uint8Array | null {
    return count === 0 ? this.#start : (this.#receipts[count - 1]?.head ?? null);
  }

  /** What the receipts say of the records of one chunk. The first `covered` of them are beyond doubt. */
  statesIn(chunkNumber: number, covered: number): ChunkStates {
    const effective: { readonly cursor: EntryCursor; readonly isCovered: boolean; readonly until: number }[] = [];
    this.#receipts.forEach((receipt, i) => {
      if (receipt.kind !== REWRITTEN || receipt.first > chunkNumber || receipt.last < chunkNumber) return;
      const behind = this.#receipts.slice(i + 1);
      // What takes back a covered receipt must be covered too: an honest node makes no anchor before it knows what took
      // effect.
      const isVoid = behind.some(
        ({ kind, first, number }) => kind === VOID && first === receipt.number && number < covered,
      );
      if (isVoid) return;
      const until = behind.reduce(
        (least, { kind, first, number }) => (kind === CUT && number < covered ? Math.min(least, first) : least),
        Infinity,
      );
      effective.push({ cursor: new EntryCursor(this.#storage, receipt), isCovered: receipt.number < covered, until });
    });
    return new ChunkStates(effective);
  }
}

export class ChunkStates {
  readonly #receipts: readonly { readonly cursor: EntryCursor; readonly isCovered: boolean; readonly until: number }[];

  constructor(
    receipts: readonly { readonly cursor: EntryCursor; readonly isCovered: boolean; readonly until: number }[],
  ) {
    this.#receipts = receipts;
  }

  get hasAny(): boolean {
    return this.#receipts.length > 0;
  }

  /** Positions must be asked for in ascending order. */
  async at(position: number, original: Uint8Array): Promise<StateAt> {
    let covered: State = original;
    let latest: State = original;
    const between: State[] = [];
    for (const { cursor, isCovered, until } of this.#receipts) {
      const entry = position < until ? await cursor.at(position) : null;
      if (entry === null) continue;
      // What the receipt has as the record's state before must be what the record was; else the receipt is about
      // something that was put there by other means.
      const fits = (state: State) => state !== null && isSame(state, entry.before);
      if (isCovered && fits(covered)) latest = covered = entry.now;
      else if (!isCovered && [latest, covered, ...between].some(fits)) {
        between.push(latest);
        latest = entry.now;
      }
    }
    return { original, covered, between, latest };
  }
}

interface Entry {
  readonly position: number;
  readonly before: Uint8Array;
  readonly now: State;
}

const ENTRIES_AT_ONCE = 4_096;

/** The entries of one receipt, ascending, read piece by piece. */
class EntryCursor {
  readonly #storage: Storage;
  readonly #receipt: Receipt;
  #entries: readonly Entry[] = [];
  #at = 0;
  #read = 0;

  constructor(storage: Storage, receipt: Receipt) {
    this.#storage = storage;
    this.#receipt = receipt;
  }

  async at(position: number): Promise<Entry | null> {
    for (;;) {
      const entry = this.#entries[this.#at] ?? (await this.#more());
      if (entry === null || entry.position > position) return null;
      if (entry.position === position) return entry;
      this.#at++;
    }
  }

  async #more(): Promise<Entry | null> {
    const count = Math.min(ENTRIES_AT_ONCE, this.#receipt.count - this.#read);
    if (count === 0) return null;
    const file = await this.#storage.open(this.#receipt.path, 'read');
    try {
      const bytes = await file.read(
        RECEIPT_HEADER_BYTES + this.#read * RECEIPT_ENTRY_BYTES,
        count * RECEIPT_ENTRY_BYTES,
      );
      this.#entries = Array.from({ length: count }, (_, i) => entryAt(bytes, i * RECEIPT_ENTRY_BYTES));
    } finally {
      await file.close();
    }
    this.#read += count;
    this.#at = 0;
    return this.#entries[0] ?? null;
  }
}

function entryAt(bytes: Uint8Array, at: number): Entry {
  const now = bytes.slice(at + 8 + HASH_BYTES, at + RECEIPT_ENTRY_BYTES);
  return {
    position: i64(bytes, at),
    before: bytes.slice(at + 8, at + 8 + HASH_BYTES),
    now: isSame(now, NO_LEAF) ? null : now,
  };
}
