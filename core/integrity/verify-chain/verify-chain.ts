import { i64 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { fromHex, toHex } from '../../base/hex.ts';
import { decodeText } from '../../base/text.ts';
import { BLOCK_BYTES } from '../../cache/cache.ts';
import { compareBlocks } from '../../log/block-sums/block-sums.ts';
import {
  type ChunkFileName,
  decodeHeader,
  HEADER_BYTES,
  parseChunkFileNames,
  takeInventory,
} from '../../log/format/chunk-format.ts';
import { findLogEnd } from '../../log/log-end/log-end.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import {
  type Anchor,
  CHAIN_ID_BYTES,
  CHAIN_PATH,
  chainLink,
  chainStart,
  isHex,
  isSame,
  type Sha256,
} from '../format/chain-layout.ts';
import { sha256By } from '../format/sha256.ts';
import { Accumulated, leavesOf } from './verify-leaves.ts';
import { type Receipts, readReceipts, type StateAt } from './verify-receipts.ts';
import { type ChunkSpan, ChunkRecords, type Found, type Run } from './verify-records.ts';
import { BlockSuspects, suspectAt } from './suspects.ts';
import { finding, type ProofFinding, type ChainReport, type Suspect, unreadable } from './verify-report.ts';

/**
 * The verifier. It reads the files of a directory and nothing else, and shares with what writes them the layout of
 * records and of proofs. What it does, in one sentence: it walks all records below the anchors' positions in their
 * order, beside the leaves that were written down when each chunk was completed and the receipts of what scavenges
 * removed, and computes from the leaves the hash that each anchor names.
 */

export interface ProofSummary {
  readonly findings: number;
  /** Records that are as they were, below the position of the newest anchor. */
  readonly proven: number;
  /** Records that covered receipts list as removed, and as redacted. */
  readonly removed: number;
  readonly redacted: number;
  /** Of both, those that only receipts behind the newest anchor list. */
  readonly uncovered: number;
  /** Anchors that hold. */
  readonly anchors: number;
  /** Position up to which the newest anchor speaks, and where the log ends. */
  readonly position: number;
  readonly logEnd: number;
}

export interface VerifyProofOptions {
  readonly storage: Storage;
  readonly digests: Digests;
  /** At least one. */
  readonly anchors: readonly Anchor[];
  /** What no anchor covers is found wrong. Default false. */
  readonly isStrict?: boolean;
}

/** Longest file `chain`. */
const CHAIN_BYTES_MAX = 4_096;
/** Findings that are reported; all are counted. */
const FINDINGS_MAX = 1_000;

/**
 * Compares a directory with anchors. Reads only, and needs no node to be stopped but for findings about the end of the
 * log. Throws what the storage throws.
 */
export async function* verifyProof(options: VerifyProofOptions): AsyncGenerator<ChainReport, ProofSummary, undefined> {
  const run = new Verifying(options);
  let told = 0;
  for await (const said of run.run()) {
    if (said.kind !== 'finding') {
      yield said;
      continue;
    }
    run.findings++;
    if (told++ < FINDINGS_MAX) yield said;
  }
  return run.summary();
}

/** One logical chunk, and what of it is to be looked at. */
interface ChunkWork {
  readonly number: number;
  /** Behind this position nothing is asked. */
  readonly upTo: number;
  /** Link before it. */
  readonly link: Uint8Array;
  readonly records: Iterable<Run> | AsyncIterable<Run>;
  /** Receipts that are beyond doubt. */
  readonly covered: number;
  /** Anchors that are known not to hold; those that don't are added. */
  readonly broken: Set<Anchor>;
  /** Takes those that did not hold by the hash of the records as they are. */
  readonly failed: Anchor[];
}

class Verifying {
  findings = 0;
  readonly #storage: Storage;
  readonly #options: VerifyProofOptions;
  readonly #sha256: Sha256;
  /** Ascending by position, without those of another chain once that of the directory is known. */
  #anchors: readonly Anchor[];
  #newest: Anchor;
  #chunkSize: number;
  #receipts: Receipts | null = null;
  #logEnd = 0;
  #proven = 0;
  /** Records that are to be proven by the next anchor that holds. */
  #waiting = 0;
  /** Up to where an anchor has held. */
  #heldTo = 0;
  #removed = 0;
  #redacted = 0;
  #uncovered = 0;
  #held = 0;
  #bytesDone = 0;

  constructor(options: VerifyProofOptions) {
    this.#options = options;
    this.#storage = options.storage;
    this.#sha256 = sha256By(options.digests);
    this.#anchors = options.anchors.toSorted((a, b) => a.position - b.position || a.receipts - b.receipts);
    this.#newest = this.#anchors.at(-1)!;
    this.#chunkSize = this.#newest.chunkSizeBytes;
  }

  summary(): ProofSummary {
    return {
      findings: this.findings,
      proven: this.#proven,
      removed: this.#removed,
      redacted: this.#redacted,
      uncovered: this.#uncovered,
      anchors: this.#held,
      position: this.#newest.position,
      logEnd: this.#logEnd,
    };
  }

  async *run(): AsyncGenerator<ChainReport> {
    const here = await this.#chainHere();
    const own = here === null ? this.#anchors : this.#anchors.filter(({ chain }) => chain === here);
    for (const { madeAt, chain, position } of this.#anchors.filter((anchor) => !own.includes(anchor))) {
      yield finding(
        'chain',
        null,
        position,
        `The anchor of ${madeAt} is of another chain, ${chain}, than that of this directory, ${here}: it speaks of another log, or a chain was begun anew here since.`,
      );
    }
    if (own.length === 0) return;
    this.#anchors = own;
    this.#newest = own.at(-1)!;
    this.#chunkSize = this.#newest.chunkSizeBytes;
    const start = chainStart(this.#sha256, fromHex(this.#newest.chain)!, this.#chunkSize);
    const broken = new Set<Anchor>();
    for (const anchor of this.#anchors) {
      if (anchor.chain === this.#newest.chain && anchor.chunkSizeBytes === this.#chunkSize) continue;
      broken.add(anchor);
      yield finding(
        'chain',
        null,
        anchor.position,
        `The anchor of ${anchor.madeAt} is of chain ${anchor.chain}, the newest one of ${this.#newest.chain}: these are two logs, or a new chain was started.`,
      );
    }
    this.#receipts = yield* readReceipts(this.#storage, this.#options.digests, this.#sha256, start);
    for (const anchor of this.#anchors) {
      const head = this.#receipts.headAt(anchor.receipts);
      if (broken.has(anchor) || (head !== null && toHex(head) === anchor.receiptsHead)) continue;
      broken.add(anchor);
      yield finding(
        'receipts',
        null,
        anchor.position,
        head === null
          ? `The anchor of ${anchor.madeAt} covers ${anchor.receipts} receipts of scavenges, and only ${this.#receipts.count} are here.`
          : `The first ${anchor.receipts} receipts are not those of the anchor of ${anchor.madeAt}.`,
      );
    }
    // A receipt covered by an anchor that holds is no matter of doubt.
    const covered = this.#anchors.reduce(
      (most, anchor) => (broken.has(anchor) ? most : Math.max(most, anchor.receipts)),
      0,
    );
    yield* this.#walk(start, covered, broken);
    this.#held = this.#anchors.length - broken.size;
  }

  async *#walk(start: Uint8Array, covered: number, broken: Set<Anchor>): AsyncGenerator<ChainReport> {
    const places = yield* this.#places();
    const lastNumber = Math.floor(Math.max(0, this.#newest.position - 1) / this.#chunkSize);
    const bytesTotal = this.#newest.position;
    let link = start;
    const all = new ChunkRecords({
      storage: this.#storage,
      sha256: this.#sha256,
      chunkSize: this.#chunkSize,
      logEnd: this.#logEnd,
    });
    try {
      for (let number = 0; number <= lastNumber; number++) {
        const place = places.find(({ startNumber, endNumber }) => number >= startNumber && number <= endNumber);
        const chunkEnd = (number + 1) * this.#chunkSize;
        const upTo = Math.min(chunkEnd, Math.max(this.#newest.position, Math.min(this.#logEnd, chunkEnd)));
        const records = place === undefined ? [] : all.upTo(place, chunkEnd);
        if (place === undefined)
          yield finding('unreadable', null, number * this.#chunkSize, `There is no file of chunk ${number}.`);
        const failed: Anchor[] = [];
        link = yield* this.#chunk({ number, upTo, link, records, covered, broken, failed });
        if (failed.length > 0 && place !== undefined) yield* this.#changedBlocks(place, failed[0]!);
        this.#bytesDone = Math.min(bytesTotal, chunkEnd);
        yield { kind: 'progress', bytesDone: this.#bytesDone, bytesTotal };
      }
    } finally {
      await all.close();
    }
    for (const anchor of this.#anchors) {
      // Of an empty log nothing is walked.
      if (anchor.position !== 0 || broken.has(anchor) || anchor.link === toHex(start)) continue;
      broken.add(anchor);
      yield finding('chain', null, 0, `The anchor of ${anchor.madeAt} is of another chain.`);
    }
  }

  /** One logical chunk: its records beside its leaves and receipts. Answers its link. */
  async *#chunk({
    number,
    upTo,
    link: before,
    records,
    covered,
    broken,
    failed,
  }: ChunkWork): AsyncGenerator<ChainReport, Uint8Array> {
    const start = number * this.#chunkSize;
    const end = start + this.#chunkSize;
    const tree = new Accumulated(this.#sha256);
    const anchors = this.#anchors.filter(({ position }) => position > start && position <= end);
    const states = this.#receipts!.statesIn(number, covered);
    const leaves = yield* leavesOf(
      { storage: this.#storage, digests: this.#options.digests, sha256: this.#sha256, chunkSize: this.#chunkSize },
      number,
      before,
      states.hasAny,
    );
    let next = 0;
    /** Anchors that end before this position. */
    const pass = (position: number): ProofFinding[] => {
      const wrong: ProofFinding[] = [];
      for (let anchor = anchors[next]; anchor !== undefined && anchor.position <= position; anchor = anchors[++next]) {
        const link = chainLink(this.#sha256, before, start, anchor.position, tree.count, tree.root());
        if (broken.has(anchor)) continue;
        if (toHex(link) === anchor.link) {
          this.#heldTo = anchor.position;
          this.#proven += this.#waiting;
          this.#waiting = 0;
          continue;
        }
        broken.add(anchor);
        if (!leaves.isKnown) failed.push(anchor);
        wrong.push(
          finding(
            'chain',
            null,
            anchor.position,
            `The hash over the records below position ${anchor.position} is not that of the anchor of ${anchor.madeAt}: something in chunk ${number} or before it${this.#heldTo > 0 ? `, but behind position ${this.#heldTo}, up to which an anchor holds` : ''}, or its hashes, is not as it was.`,
          ),
        );
      }
      return wrong;
    };
    let last = start - 1;
    let isWhole = true;
    let expected = await leaves.next();
    for await (const run of records) {
      for (const record of run) {
        if ('kind' in record) {
          isWhole = false;
          yield record;
          continue;
        }
        const { position, leaf, file } = record;
        if (position <= last || position < start || position >= end) {
          yield finding(
            'moved',
            file,
            position,
            `At offset ${record.offset} of ${file} is a record that names position ${position}, out of order.`,
          );
          continue;
        }
        last = position;
        if (position >= upTo) break;
        if (leaves.isKnown) {
          for (; expected !== null && expected.position < position; expected = await leaves.next()) {
            yield* pass(expected.position);
            tree.add(expected.leaf);
            yield* this.#absent(expected.position, await states.at(expected.position, expected.leaf), number);
          }
          if (expected === null || expected.position > position) {
            yield finding(
              'added',
              file,
              position,
              `At offset ${record.offset} of ${file} is a record at position ${position}, where there was none.`,
            );
            continue;
          }
          yield* pass(position);
          tree.add(expected.leaf);
          yield* this.#present(record, await states.at(position, expected.leaf));
          expected = await leaves.next();
        } else {
          yield* pass(position);
          tree.add(leaf);
          if (position < this.#newest.position) this.#waiting++;
        }
      }
    }
    if (leaves.isKnown) {
      for (; expected !== null && expected.position < upTo; expected = await leaves.next()) {
        yield* pass(expected.position);
        tree.add(expected.leaf);
        const state = await states.at(expected.position, expected.leaf);
        // What could not be read was reported at once.
        if (isWhole) yield* this.#absent(expected.position, state, number);
      }
    }
    yield* pass(end);
    return chainLink(this.#sha256, before, start, end, tree.count, tree.root());
  }

  /**
   * An anchor names no record of the chunk being written, whose leaves are not written down yet. The checksums of its
   * blocks cover the record, unless they were changed along with it.
   */
  async *#changedBlocks(place: ChunkSpan, { position }: Anchor): AsyncGenerator<ProofFinding> {
    const blocks = await compareBlocks(this.#storage, place.name, this.#options.digests, async () => {});
    const suspects = new Map(blocks.map((changed) => [changed.block, new BlockSuspects(changed)]));
    const start = place.startNumber * this.#chunkSize;
    const records = new ChunkRecords({
      storage: this.#storage,
      sha256: this.#sha256,
      chunkSize: this.#chunkSize,
      logEnd: this.#logEnd,
    });
    let before: { readonly position: number; readonly framed: Uint8Array | null } | null = null;
    const look = (to: number): void => {
      if (before === null || before.position < this.#heldTo) return;
      let suspect: Suspect | null = null;
      const from = HEADER_BYTES + before.position - start;
      for (let block = Math.floor(from / BLOCK_BYTES); block * BLOCK_BYTES < to; block++)
        suspects.get(block)?.add((suspect ??= suspectAt(before.position, before.framed)), from, to);
    };
    try {
      if (blocks.length === 0) return;
      for await (const run of records.upTo(place, start + this.#chunkSize)) {
        for (const record of run) {
          // Where the file can't be read any further, a record begins.
          if (record.position === null || record.position >= position) continue;
          look(HEADER_BYTES + record.position - start);
          before = { position: record.position, framed: 'kind' in record ? null : record.framed };
        }
      }
      look(HEADER_BYTES + Math.min(position, this.#logEnd) - start);
    } finally {
      await records.close();
    }
    for (const found of suspects.values()) if (found.total > 0) yield found.finding(place.name);
  }

  /** A record that is there, and should be as one of the states. */
  *#present({ position, leaf, file, offset }: Found, state: StateAt): Generator<ProofFinding> {
    if (position >= this.#newest.position) return;
    const isLatest = isOf(leaf, state.latest);
    if (isOf(leaf, state.covered)) {
      if (isSame(leaf, state.original)) this.#waiting++;
      else this.#redacted++;
      return;
    }
    if (isLatest || state.between.some((known) => isOf(leaf, known))) {
      this.#uncovered++;
      if (this.#options.isStrict === true)
        yield finding(
          'uncovered',
          file,
          position,
          `The record at position ${position} was changed according to a receipt that no anchor covers.`,
        );
      else this.#redacted++;
      return;
    }
    if (state.covered === null)
      yield finding(
        'added',
        file,
        position,
        `At offset ${offset} of ${file} is a record at position ${position}, where a scavenge had removed one.`,
      );
    else
      yield finding(
        'changed',
        file,
        position,
        `The record at position ${position} (offset ${offset} of ${file}) is not the original one: ${toHex(leaf)} instead of ${toHex(state.covered)}.`,
      );
  }

  *#absent(position: number, state: StateAt, number: number): Generator<ProofFinding> {
    if (position >= this.#newest.position) return;
    if (state.covered === null) {
      this.#removed++;
      return;
    }
    if (state.latest === null || state.between.includes(null)) {
      this.#uncovered++;
      if (this.#options.isStrict === true)
        yield finding(
          'uncovered',
          null,
          position,
          `The record at position ${position} was removed according to a receipt that no anchor covers.`,
        );
      else this.#removed++;
      return;
    }
    yield finding(
      'removed',
      null,
      position,
      `The record at position ${position} (chunk ${number}) is gone, and no scavenge receipt accounts for it: ${toHex(state.original)}.`,
    );
  }

  /** Chunk files in force, as a start would choose them, and the end of the log. */
  async *#places(): AsyncGenerator<ChainReport, readonly ChunkSpan[]> {
    const files = parseChunkFileNames(await this.#storage.list(''));
    const position = this.#newest.position;
    const lastNumber = Math.floor(Math.max(0, position - 1) / this.#chunkSize);
    const failures: ProofFinding[] = [];
    const inventory = await takeInventory(files, lastNumber, async (file) => {
      const header = await this.#readable(file.name, failures, async (opened) =>
        decodeHeader(file.name, await opened.read(0, HEADER_BYTES)),
      );
      return header?.endNumber ?? file.number;
    });
    yield* failures;
    const places = inventory.latest.map(({ file, endNumber }) => ({
      name: file.name,
      startNumber: file.number,
      endNumber,
    }));
    yield* this.#findEnd(places, inventory.latest.at(-1)?.file);
    return places;
  }

  async *#findEnd(places: readonly ChunkSpan[], newest: ChunkFileName | undefined): AsyncGenerator<ChainReport> {
    const failures: ProofFinding[] = [];
    const writer = await this.#checkpoint('writer.chk');
    const order = await this.#checkpoint('truncate.chk');
    const last = places.at(-1);
    this.#logEnd = writer ?? 0;
    if (last !== undefined && newest !== undefined) {
      const start = last.startNumber * this.#chunkSize;
      const local = Math.min(Math.max(0, (writer ?? start) - start), this.#chunkSize);
      const found = await this.#readable(last.name, failures, async (file) => {
        const header = decodeHeader(last.name, await file.read(0, HEADER_BYTES));
        if (header.isScavenged || (writer !== null && (writer < start || writer >= start + this.#chunkSize)))
          return null;
        return start + (await findLogEnd(file, header, local, this.#options.digests, writer === null)).localEnd;
      });
      if (found !== null && found !== undefined) this.#logEnd = found;
      // Of a completed chunk the footer names the end, whatever became of writer.chk.
      else if (writer === null) this.#logEnd = (last.endNumber + 1) * this.#chunkSize;
    }
    yield* failures;
    if (order !== null && order >= 0 && order < this.#newest.position)
      yield finding(
        'cut',
        'truncate.chk',
        order,
        `truncate.chk tells the next start to truncate the log at ${order}, before the position ${this.#newest.position} of the anchor.`,
      );
    if (this.#logEnd < this.#newest.position)
      yield finding(
        'cut',
        null,
        this.#logEnd,
        `The log ends at position ${this.#logEnd}, before the position ${this.#newest.position} that the anchor covers.`,
      );
  }

  /** The chain that the directory names; null where it names none, or nothing that can be read. */
  async #chainHere(): Promise<string | null> {
    if ((await this.#storage.size(CHAIN_PATH)) === null) return null;
    const file = await this.#storage.open(CHAIN_PATH, 'read');
    try {
      const { chain } = JSON.parse(decodeText(await file.read(0, Math.min(file.size, CHAIN_BYTES_MAX)))) as {
        readonly chain?: unknown;
      };
      return isHex(chain, CHAIN_ID_BYTES) ? chain : null;
    } catch (error) {
      if (error instanceof SyntaxError) return null;
      throw error;
    } finally {
      await file.close();
    }
  }

  async #checkpoint(path: string): Promise<number | null> {
    if ((await this.#storage.size(path)) === null) return null;
    const file = await this.#storage.open(path, 'read');
    try {
      const bytes = await file.read(0, 8);
      return bytes.length < 8 ? null : i64(bytes, 0);
    } finally {
      await file.close();
    }
  }

  /** What can't be read of a chunk file is a finding, and null. */
  async #readable<T>(
    name: string,
    failures: ProofFinding[],
    work: (file: StorageFile) => Promise<T>,
  ): Promise<T | null> {
    const file = await this.#storage.open(name, 'read');
    try {
      return await work(file);
    } catch (error) {
      if (!isSkuaError(error, 'log_corrupt') && !isSkuaError(error, 'log_unsupported')) throw error;
      failures.push(unreadable(name, error));
      return null;
    } finally {
      await file.close();
    }
  }
}

function isOf(leaf: Uint8Array, state: Uint8Array | null): boolean {
  return state !== null && isSame(leaf, state);
}
