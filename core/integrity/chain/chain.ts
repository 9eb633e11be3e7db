import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { fromHex, toHex } from '../../base/hex.ts';
import { parseChunkFileNames } from '../../log/format/chunk-format.ts';
import type { ChunkTable } from '../../log/api.ts';
import { createFile, replaceFile } from '../../ports/durability.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Jobs } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import { isLeftoverName } from '../../ports/own-names.ts';
import type { Storage } from '../../ports/storage.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { timestampText } from '../../base/time.ts';
import { proveRecord } from './event.ts';
import {
  COMPARE_JOB,
  type CompareArgs,
  type CompareResult,
  LEAVES_JOB,
  type LeavesArgs,
  TAIL_JOB,
  type TailArgs,
  type TailResult,
} from '../jobs/jobs.ts';
import {
  type Anchor,
  ANCHOR_FORMAT,
  CHAIN_FORMAT,
  CHAIN_ID_BYTES,
  CHAIN_PATH,
  type ChainFile,
  chainLink,
  chainStart,
  CUT,
  decodeLeavesHeader,
  decodeReceiptHeader,
  encodeReceiptHeader,
  isCount,
  isHex,
  isSame,
  LEAVES_HEADER_BYTES,
  leavesPath,
  numberedAs,
  PROOF_FOLDER,
  RECEIPT_HEADER_BYTES,
  type ReceiptHeader,
  receiptPath,
  REWRITTEN,
  type Sha256,
  VOID,
} from '../format/chain-layout.ts';
import { sha256By } from '../format/sha256.ts';
import type { TreeState } from './tree.ts';
import type { EventProof } from '../format/event-proof.ts';

/** Longest file `chain`. */
const CHAIN_BYTES_MAX = 4_096;
/** In the background completed chunks are read no faster. */
const BACKGROUND_BYTES_PER_SECOND = 67_108_864;
/** How often is looked for chunks that were completed since. Until they are hashed a change of them is not found. */
const LOOK_EVERY_MS = 5_000;
const FIRST_LOOK_AFTER_MS = 10_000;

export interface HashChainParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly jobs: Jobs;
  readonly log: Log;
  readonly table: ChunkTable;
}

/** What is known of a chunk file that is about to take the place of others. */
interface Replacement {
  /** Complete, under its temporary name. */
  readonly target: string;
  readonly sources: readonly string[];
  readonly startNumber: number;
  readonly endNumber: number;
}

interface Receipts {
  readonly count: number;
  readonly head: Uint8Array;
}

/**
 * Opens the hash chain of a directory whose log is open, and settles what a crash left of it; null where there is none
 * and none is to be begun. A damaged chain keeps no node from starting: the damage is reported, and no scavenge removes
 * anything, since what a scavenge removed could not be told from what an intruder removed. Throws what the storage
 * throws.
 */
export async function openHashChain(parts: HashChainParts, begins: boolean): Promise<HashChain | null> {
  try {
    return await openChain(parts, begins);
  } catch (error) {
    if (!isSkuaError(error, 'proof_damaged')) throw error;
    parts.log.warn('the hash chain is damaged: no anchors are made and no scavenges run until it is repaired', {
      error: error.message,
    });
    return new HashChain(parts, NO_CHAIN, error);
  }
}

const NO_CHAIN: ChainFile = {
  format: CHAIN_FORMAT,
  chain: '00'.repeat(CHAIN_ID_BYTES),
  chunkSizeBytes: 0,
  begunAt: '',
};

async function openChain(parts: HashChainParts, begins: boolean): Promise<HashChain | null> {
  const chain = (await readChain(parts.storage)) ?? (begins ? await beginChain(parts) : null);
  if (chain === null) return null;
  if (chain.chunkSizeBytes !== parts.table.chunkSize)
    throw new SkuaError(
      'proof_damaged',
      `${CHAIN_PATH} is of a log with chunks of ${chain.chunkSizeBytes} bytes, but this log has ${parts.table.chunkSize}. Remove the folder ${PROOF_FOLDER} to start a new chain.`,
      { path: CHAIN_PATH },
    );
  const hashChain = new HashChain(parts, chain);
  await hashChain.open();
  return hashChain;
}

/** Null where there is none. Throws `proof_damaged`. */
export async function readChain(storage: Storage): Promise<ChainFile | null> {
  if ((await storage.size(CHAIN_PATH)) === null) return null;
  const file = await storage.open(CHAIN_PATH, 'read');
  let found: Partial<ChainFile> | null = null;
  try {
    found = JSON.parse(
      decodeText(await file.read(0, Math.min(file.size, CHAIN_BYTES_MAX))),
    ) as Partial<ChainFile> | null;
  } catch (error) {
    if (isSkuaError(error)) throw error;
  } finally {
    await file.close();
  }
  if (
    found === null ||
    found.format !== CHAIN_FORMAT ||
    !isHex(found.chain, CHAIN_ID_BYTES) ||
    !isCount(found.chunkSizeBytes)
  )
    throw new SkuaError(
      'proof_damaged',
      `${CHAIN_PATH} was changed or damaged. Restore it from a backup, or remove the folder ${PROOF_FOLDER} to start a new chain.`,
      { path: CHAIN_PATH },
    );
  return found as ChainFile;
}

async function beginChain({ storage, ids, clock, table }: HashChainParts): Promise<ChainFile> {
  const chain: ChainFile = {
    format: CHAIN_FORMAT,
    chain: toHex(ids.uuidBytes()),
    chunkSizeBytes: table.chunkSize,
    begunAt: timestampText(Math.floor(clock.nowMs()), 0),
  };
  await replaceFile(storage, CHAIN_PATH, encodeText(`${JSON.stringify(chain)}\n`));
  return chain;
}

/**
 * Keeps up the chain of one directory: leaves files of completed chunks, receipts of what scavenges remove, anchors.
 */
export class HashChain {
  readonly #parts: HashChainParts;
  readonly #sha256: Sha256;
  readonly chain: ChainFile;
  readonly damage: SkuaError | null;
  readonly #start: Uint8Array;
  /** Completed chunks with leaves files, and the link of the last one. */
  #leaves = 0;
  #link: Uint8Array;
  #making: Promise<void> | null = null;
  #receipts: Receipts;
  /** The newest receipt, while it is not known whether the files that it speaks of were replaced. */
  #pending: ReceiptHeader | null = null;
  /** Ends with the last of those that write receipts, or need that none is under way. */
  #turn: Promise<unknown> = Promise.resolve();
  /** How far the chunk that is being written has been hashed. */
  #tail: { readonly number: number; readonly to: number; readonly state: TreeState } | null = null;

  /** `damage` keeps everything from being done. */
  constructor(parts: HashChainParts, chain: ChainFile, damage: SkuaError | null = null) {
    this.#parts = parts;
    this.chain = chain;
    this.damage = damage;
    this.#sha256 = sha256By(parts.digests);
    this.#start = chainStart(this.#sha256, fromHex(chain.chain)!, chain.chunkSizeBytes);
    this.#link = this.#start;
    this.#receipts = { count: 0, head: this.#start };
  }

  /** Completed chunks that have leaves files, and receipt files. */
  get figures(): { readonly chunks: number; readonly receipts: number } {
    return { chunks: this.#leaves, receipts: this.#receipts.count };
  }

  /** Called once, when the log is open and no writer is there yet. */
  async open(): Promise<void> {
    const { storage } = this.#parts;
    const names = await storage.list(PROOF_FOLDER);
    for (const path of names.map((name) => `${PROOF_FOLDER}/${name}`))
      if (isLeftoverName(path)) await storage.remove(path);
    const receipts = dense(names, 'receipt');
    if (receipts > 0) {
      const last = await receiptHeader(storage, this.#sha256, receipts - 1);
      this.#receipts = { count: receipts, head: last.head };
      this.#pending = last.kind === REWRITTEN ? last : null;
    }
    const leaves = dense(names, 'leaves');
    const completed = this.#completed();
    this.#leaves = Math.min(leaves, completed);
    await this.#serially(async () => {
      // The log was cut back since: what entries hold about the part behind the cut has no meaning any more.
      if (leaves > completed) await this.#append({ kind: CUT, first: completed * this.chain.chunkSizeBytes });
    });
    for (let number = leaves - 1; number >= completed; number--) await storage.remove(leavesPath(number));
    if (this.#leaves > 0) this.#link = (await this.#leavesHeader(this.#leaves - 1)).link;
  }

  /** Completed chunks from the beginning of the log on. */
  #completed(): number {
    const last = [...this.#parts.table.all()].findLast(({ isCompleted }) => isCompleted);
    return last === undefined ? 0 : last.endNumber + 1;
  }

  /** Makes leaves files in the background, until the signal. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts;
    if (this.damage !== null) return;
    await clock.sleep(FIRST_LOOK_AFTER_MS, signal);
    while (!signal.aborted) {
      try {
        while (!signal.aborted && this.#leaves < this.#completed())
          await this.#more(BACKGROUND_BYTES_PER_SECOND, signal);
      } catch (error) {
        if (!signal.aborted)
          log.warn('the hashes of a completed chunk could not be written', {
            chunk: this.#leaves,
            error: String(error),
          });
      }
      await clock.sleep(LOOK_EVERY_MS, signal);
    }
  }

  /**
   * Makes the leaves files that are missing up to the chunk with this number. The signal is looked at between two
   * files.
   */
  async ensureTo(number: number, signal?: AbortSignal): Promise<void> {
    if (this.damage !== null) throw this.damage;
    while (this.#leaves <= number) {
      // Others may wait for the file that is being made: it is not cut off.
      if (signal?.aborted === true)
        throw new SkuaError('aborted', 'Writing the hashes of completed chunks was stopped.');
      await this.#more(0);
    }
  }

  /** One file's chunks more. A caller that asks meanwhile waits for the same. */
  async #more(bytesPerSecond: number, signal?: AbortSignal): Promise<void> {
    this.#making ??= this.#make(bytesPerSecond, signal).finally(() => {
      this.#making = null;
    });
    await this.#making;
  }

  async #make(bytesPerSecond: number, signal: AbortSignal | undefined): Promise<void> {
    const { table, jobs } = this.#parts;
    const from = this.#leaves;
    const chunk = table.chunkAt(from * this.chain.chunkSizeBytes);
    if (chunk === undefined || !chunk.isCompleted)
      throw new SkuaError(
        'proof_failed',
        `Chunk ${from} is not complete, so its hashes can't be written: this is a defect.`,
        { chunk: from },
      );
    const args: LeavesArgs = {
      name: chunk.name,
      chunkSize: this.chain.chunkSizeBytes,
      from,
      to: chunk.endNumber,
      before: this.#link,
      bytesPerSecond,
    };
    const link = (await jobs.run(LEAVES_JOB, args, signal === undefined ? {} : { signal })) as Uint8Array;
    this.#link = link;
    this.#leaves = chunk.endNumber + 1;
  }

  /**
   * Puts a new chunk file in force by `put`, behind a durable receipt of what it lacks. Rejects with `proof_failed`,
   * with nothing put, where there can be no receipt, with `aborted` when the signal ended it before, and with what
   * `put` rejects with.
   */
  async replace<T>(replacement: Replacement, put: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { ids, storage, jobs } = this.#parts;
    const { target, sources, startNumber, endNumber } = replacement;
    const path = `${PROOF_FOLDER}/${toHex(ids.uuidBytes())}.tmp`;
    let found: CompareResult;
    try {
      await this.ensureTo(endNumber, signal);
      const args: CompareArgs = { target, sources, receipt: path };
      found = (await jobs.run(COMPARE_JOB, args, signal === undefined ? {} : { signal })) as CompareResult;
    } catch (error) {
      throw notProven(startNumber, endNumber, error);
    }
    return this.#serially(async () => {
      try {
        await this.#append(
          {
            kind: REWRITTEN,
            first: startNumber,
            last: endNumber,
            target: found.targetId,
            count: found.count,
            entries: found.entries,
          },
          path,
        );
      } catch (error) {
        await storage.remove(path).catch(() => {});
        throw notProven(startNumber, endNumber, error);
      }
      const result = await put();
      this.#pending = null;
      return result;
    });
  }

  /** One after the other, and only once it is known what became of the receipt before. */
  #serially<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(async () => {
      if (this.damage !== null) throw this.damage;
      await this.#settle();
      return work();
    });
    this.#turn = done.catch(() => {});
    return done;
  }

  /** The newest receipt speaks of a file that should be in force; where it is not, it is declared void. */
  async #settle(): Promise<void> {
    const pending = this.#pending;
    if (pending === null) return;
    if (!(await this.#isInForce(pending))) await this.#append({ kind: VOID, first: pending.number });
    this.#pending = null;
  }

  /** By what the next start would find. */
  async #isInForce({ first, target }: ReceiptHeader): Promise<boolean> {
    const { storage } = this.#parts;
    const name = parseChunkFileNames(await storage.list('')).findLast(({ number }) => number === first)?.name;
    if (name === undefined) return false;
    const file = await storage.open(name, 'read');
    try {
      return isSame(await file.read(18, 16), target);
    } finally {
      await file.close();
    }
  }

  /** Appends a receipt. `prepared` is a file with its entries, behind room for the header. */
  async #append(
    receipt: Pick<ReceiptHeader, 'kind' | 'first'> & Partial<ReceiptHeader>,
    prepared: string | null = null,
  ): Promise<void> {
    const { storage, clock } = this.#parts;
    const number = this.#receipts.count;
    const header: ReceiptHeader = {
      last: receipt.first,
      target: new Uint8Array(16),
      count: 0,
      entries: this.#sha256(),
      ...receipt,
      number,
      timeMs: Math.floor(clock.nowMs()),
      before: this.#receipts.head,
    };
    const { bytes, head } = encodeReceiptHeader(this.#sha256, header);
    const path = prepared ?? `${receiptPath(number)}.tmp`;
    if (prepared === null) {
      await storage.remove(path);
      await createFile(storage, path, bytes);
    } else {
      const file = await storage.open(path, 'write');
      try {
        await file.writeAt(0, bytes);
        await file.sync();
      } finally {
        await file.close();
      }
    }
    await storage.rename(path, receiptPath(number));
    this.#receipts = { count: number + 1, head };
    this.#pending = header.kind === REWRITTEN ? header : null;
  }

  /**
   * An anchor for everything below the end that readers see. Rejects with `proof_failed`, and what the storage throws.
   */
  async anchor(): Promise<Anchor> {
    const { table, clock } = this.#parts;
    const { chunkSizeBytes } = this.chain;
    return this.#serially(async () => {
      const position = table.end;
      const number = Math.floor(position / chunkSizeBytes);
      await this.ensureTo(number - 1);
      const before = number === 0 ? this.#start : (await this.#leavesHeader(number - 1)).link;
      const link = position === number * chunkSizeBytes ? before : await this.#tailLink(number, position, before);
      return {
        format: ANCHOR_FORMAT,
        chain: this.chain.chain,
        chunkSizeBytes,
        position,
        link: toHex(link),
        receipts: this.#receipts.count,
        receiptsHead: toHex(this.#receipts.head),
        madeAt: timestampText(Math.floor(clock.nowMs()), 0),
      };
    });
  }

  /** All that proves, by an anchor, which record was at a position. Rejects as `proveRecord` does. */
  prove(anchor: Anchor, position: number): Promise<EventProof> {
    const { chain, chunkSizeBytes } = this.chain;
    if (anchor.chain !== chain || anchor.chunkSizeBytes !== chunkSizeBytes)
      throw new SkuaError('proof_invalid', `The anchor is of chain ${anchor.chain}, but this directory has ${chain}.`, {
        chain,
      });
    return this.#serially(() => proveRecord(this.#parts, anchor, position));
  }

  async #tailLink(number: number, position: number, before: Uint8Array): Promise<Uint8Array> {
    const { table, jobs } = this.#parts;
    const start = number * this.chain.chunkSizeBytes;
    const known = this.#tail?.number === number ? this.#tail : { to: start, state: { count: 0, peaks: [] } };
    const args: TailArgs = { name: table.chunkAt(start)!.name, from: known.to, to: position, state: known.state };
    const { state, root } = (await jobs.run(TAIL_JOB, args)) as TailResult;
    this.#tail = { number, to: position, state };
    return chainLink(this.#sha256, before, start, position, state.count, root);
  }

  #leavesHeader(number: number) {
    return leavesHeader(this.#parts.storage, this.#sha256, number);
  }
}

export async function leavesHeader(storage: Storage, sha256: Sha256, number: number) {
  const path = leavesPath(number);
  return decodeLeavesHeader(sha256, path, await readHead(storage, path, LEAVES_HEADER_BYTES));
}

export async function receiptHeader(storage: Storage, sha256: Sha256, number: number) {
  const path = receiptPath(number);
  return decodeReceiptHeader(sha256, path, await readHead(storage, path, RECEIPT_HEADER_BYTES));
}

async function readHead(storage: Storage, path: string, bytes: number): Promise<Uint8Array> {
  const file = await storage.open(path, 'read');
  try {
    return (await file.read(0, bytes)).slice();
  } finally {
    await file.close();
  }
}

/** How many files of a kind there are, which are numbered from 0 on. Throws `proof_damaged` for a gap. */
export function dense(names: readonly string[], kind: 'leaves' | 'receipt'): number {
  const numbers = names.map((name) => numberedAs(kind, name)).filter((number) => number !== null);
  numbers.forEach((number, i) => {
    if (number === i) return;
    const path = kind === 'leaves' ? leavesPath(i) : receiptPath(i);
    throw new SkuaError(
      'proof_damaged',
      `${path} is missing. Restore it from a backup, or remove the folder ${PROOF_FOLDER} to start a new chain.`,
      { path },
    );
  });
  return numbers.length;
}

function notProven(startNumber: number, endNumber: number, error: unknown): SkuaError {
  if (isSkuaError(error, 'aborted')) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new SkuaError(
    'proof_failed',
    `The receipt for chunks ${startNumber} to ${endNumber} could not be written, so they are left unscavenged: ${reason} To scavenge without a hash chain, remove the folder ${PROOF_FOLDER} while the node is stopped.`,
    { startNumber, endNumber },
    error,
  );
}
