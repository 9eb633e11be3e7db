import { putI64, putI32, equalBytes } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import type { Chunk } from '../../log/api.ts';
import { paced, type Job, type JobContext } from '../../ports/jobs.ts';
import type { StorageFile } from '../../ports/storage.ts';
import {
  chainLink,
  encodeLeavesHeader,
  HASH_BYTES,
  LEAVES_ENTRY_BYTES,
  LEAVES_HEADER_BYTES,
  leavesPath,
  NO_LEAF,
  RECEIPT_ENTRY_BYTES,
  RECEIPT_HEADER_BYTES,
  type Sha256,
} from '../format/chain-layout.ts';
import { type LooseRecord, openChunkFile, recordRuns } from '../chain/record-file.ts';
import { sha256By } from '../format/sha256.ts';
import { Tree, type TreeState } from '../chain/tree.ts';

/** Makes the leaves files of the logical chunks of one completed file. */
export const LEAVES_JOB = 'proof.leaves';
/** Hashes the records of the chunk that is being written. */
export const TAIL_JOB = 'proof.tail';
/** Writes down what a new chunk file lacks, or has otherwise than those that it replaces. */
export const COMPARE_JOB = 'scavenge.write-receipt';

/** Bytes collected before they are written. */
const BUFFER_BYTES = 262_144;

export interface LeavesArgs {
  /** The chunk file in force. */
  readonly name: string;
  readonly chunkSize: number;
  /** Logical chunks, all of them in this file. */
  readonly from: number;
  readonly to: number;
  /** Link before the first. */
  readonly before: Uint8Array;
  /** Read no faster; 0 for no limit. */
  readonly bytesPerSecond: number;
}

/** Answers the link of the last chunk. A file that is there already is replaced. */
const makeLeaves = (async (
  { name, chunkSize, from, to, before, bytesPerSecond }: LeavesArgs,
  context: JobContext,
): Promise<Uint8Array> => {
  const sha256 = sha256By(context.digests);
  const chunk = await openChunkFile(context.storage, name, null);
  let link = before;
  let number = from;
  let leaves = await LeavesFile.create(context, sha256, number, chunkSize);
  try {
    for await (const run of recordRuns(chunk, from * chunkSize, paced(context, chunk.physicalBytes, bytesPerSecond))) {
      for (const { position, bytes } of run) {
        while (position >= (number + 1) * chunkSize && number <= to) {
          link = await leaves.finish(link);
          number++;
          if (number <= to) leaves = await LeavesFile.create(context, sha256, number, chunkSize);
        }
        if (number > to) return link;
        const waiting = leaves.add(position, sha256(bytes));
        if (waiting !== undefined) await waiting;
      }
      await context.checkpoint();
    }
    for (; number <= to; number++) {
      link = await leaves.finish(link);
      if (number < to) leaves = await LeavesFile.create(context, sha256, number + 1, chunkSize);
    }
    return link;
  } finally {
    await leaves.discard();
    await chunk.file.retire();
  }
}) satisfies Job;

/** Collects small pieces into large writes, and knows the hash of all. */
class EntryWriter {
  readonly file: StorageFile;
  readonly #hash;
  readonly #headerBytes: number;
  #buffer = new Uint8Array(BUFFER_BYTES);
  #used = 0;
  #written: number;
  count = 0;

  constructor(file: StorageFile, headerBytes: number, context: JobContext) {
    this.file = file;
    this.#headerBytes = headerBytes;
    this.#written = headerBytes;
    this.#hash = context.digests.sha256();
  }

  /** Where an entry of so many bytes may be put; they belong to it from then on. Await what `flushed` gives before. */
  room(bytes: number): Uint8Array {
    const room = this.#buffer.subarray(this.#used, this.#used + bytes);
    this.#used += bytes;
    this.count++;
    return room;
  }

  /** Writes what was collected where the next entry would not fit; a promise is to be awaited. */
  flushed(bytes: number): void | Promise<void> {
    return this.#used + bytes > BUFFER_BYTES ? this.#flush() : undefined;
  }

  async #flush(): Promise<void> {
    const bytes = this.#buffer.subarray(0, this.#used);
    this.#hash.update(bytes);
    const at = this.#written;
    this.#written += bytes.length;
    this.#used = 0;
    await this.file.writeAt(at, bytes);
  }

  /** The hash of all entries, behind which the header can be written. */
  async finish(): Promise<Uint8Array> {
    await this.#flush();
    if (this.count === 0) await this.file.writeAt(0, new Uint8Array(this.#headerBytes));
    return this.#hash.finish();
  }
}

class LeavesFile {
  readonly #context: JobContext;
  readonly #sha256: Sha256;
  readonly #number: number;
  readonly #start: number;
  readonly #end: number;
  readonly #tree: Tree;
  readonly #writer: EntryWriter;
  #isOpen = true;

  private constructor(context: JobContext, sha256: Sha256, number: number, chunkSize: number, file: StorageFile) {
    this.#context = context;
    this.#sha256 = sha256;
    this.#number = number;
    this.#start = number * chunkSize;
    this.#end = this.#start + chunkSize;
    this.#tree = new Tree(sha256);
    this.#writer = new EntryWriter(file, LEAVES_HEADER_BYTES, context);
  }

  static async create(context: JobContext, sha256: Sha256, number: number, chunkSize: number): Promise<LeavesFile> {
    const path = `${leavesPath(number)}.tmp`;
    await context.storage.remove(path);
    return new LeavesFile(context, sha256, number, chunkSize, await context.storage.create(path));
  }

  add(position: number, leaf: Uint8Array): void | Promise<void> {
    this.#tree.add(leaf);
    const waiting = this.#writer.flushed(LEAVES_ENTRY_BYTES);
    if (waiting !== undefined) return waiting.then(() => this.#put(position, leaf));
    return this.#put(position, leaf);
  }

  #put(position: number, leaf: Uint8Array): void {
    const room = this.#writer.room(LEAVES_ENTRY_BYTES);
    putI32(room, 0, position - this.#start);
    room.set(leaf, 4);
  }

  /** Completes the file, gives it its name, and answers the link of its chunk. */
  async finish(before: Uint8Array): Promise<Uint8Array> {
    const { file } = this.#writer;
    const entries = await this.#writer.finish();
    const { count } = this.#tree;
    const root = this.#tree.root();
    const link = chainLink(this.#sha256, before, this.#start, this.#end, count, root);
    await file.writeAt(
      0,
      encodeLeavesHeader(this.#sha256, { chunkNumber: this.#number, count, before, root, link, entries }),
    );
    await file.sync();
    await file.close();
    this.#isOpen = false;
    await this.#context.storage.rename(file.path, leavesPath(this.#number));
    return link;
  }

  /** What was not finished goes. */
  async discard(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#writer.file.close().catch(() => {});
    await this.#context.storage.remove(this.#writer.file.path).catch(() => {});
  }
}

export interface TailArgs {
  readonly name: string;
  /** Positions of records, [from, to). */
  readonly from: number;
  readonly to: number;
  /** Of the records before `from` in this chunk. */
  readonly state: TreeState;
}

export interface TailResult {
  readonly state: TreeState;
  readonly root: Uint8Array;
}

const hashTail = (async ({ name, from, to, state }: TailArgs, context: JobContext): Promise<TailResult> => {
  const sha256 = sha256By(context.digests);
  const tree = new Tree(sha256, state);
  const header = await openChunkFile(context.storage, name, 0);
  header.setDataBytes(to - header.startPosition);
  try {
    for await (const run of recordRuns(header, from, paced(context, header.physicalBytes, 0))) {
      for (const { bytes } of run) tree.add(sha256(bytes));
      await context.checkpoint();
    }
    return { state: tree.state, root: tree.root() };
  } finally {
    await header.file.retire();
  }
}) satisfies Job;

export interface CompareArgs {
  /** Chunk files in force, neighbours in the order of the log. */
  readonly sources: readonly string[];
  /** The complete file that is to replace them. */
  readonly target: string;
  /** Where the entries of the receipt go, behind room for its header. */
  readonly receipt: string;
}

export interface CompareResult {
  readonly count: number;
  readonly entries: Uint8Array;
  /** Id in the header of the new file. */
  readonly targetId: Uint8Array;
}

/**
 * Reads old and new files side by side. Throws `proof_failed`, with no receipt, for a new file that has a record which
 * the old ones lack: a scavenge adds none.
 */
const compare = (async ({ sources, target, receipt }: CompareArgs, context: JobContext): Promise<CompareResult> => {
  const { storage } = context;
  const sha256 = sha256By(context.digests);
  const onPassed = async () => context.checkpoint();
  const next = await openChunkFile(storage, target, null);
  const after = recordsOf(next, onPassed);
  await storage.remove(receipt);
  const file = await storage.create(receipt);
  try {
    const writer = new EntryWriter(file, RECEIPT_HEADER_BYTES, context);
    const put = async (position: number, before: Uint8Array, now: Uint8Array): Promise<void> => {
      await writer.flushed(RECEIPT_ENTRY_BYTES);
      const room = writer.room(RECEIPT_ENTRY_BYTES);
      putI64(room, 0, position);
      room.set(before, 8);
      room.set(now, 8 + HASH_BYTES);
    };
    let there = await after();
    for (const name of sources) {
      const source = await openChunkFile(storage, name, null);
      try {
        const before = recordsOf(source, onPassed);
        for (let record = await before(); record !== null; record = await before()) {
          if (there !== null && there.position < record.position) throw added(target, there.position);
          if (there === null || there.position > record.position)
            await put(record.position, sha256(record.bytes), NO_LEAF);
          else {
            if (!isSameRecord(record, there)) await put(record.position, sha256(record.bytes), sha256(there.bytes));
            there = await after();
          }
        }
      } finally {
        await source.file.retire();
      }
    }
    if (there !== null) throw added(target, there.position);
    const entries = await writer.finish();
    const id = (await next.file.file.read(18, 16)).slice();
    await file.close();
    return { count: writer.count, entries, targetId: id };
  } catch (error) {
    await file.close().catch(() => {});
    await storage.remove(receipt).catch(() => {});
    throw error;
  } finally {
    await next.file.retire();
  }
}) satisfies Job;

function added(target: string, position: number): SkuaError {
  return new SkuaError(
    'proof_failed',
    `${target} has a record at position ${position} that the files it is to replace lack. They stay in force: this is a defect.`,
    { file: target, position },
  );
}

function isSameRecord(a: LooseRecord, b: LooseRecord): boolean {
  return a.bytes.length === b.bytes.length && equalBytes(a.bytes, 0, b.bytes, 0, a.bytes.length);
}

/** Gives a file's records one by one, null behind the last. */
function recordsOf(
  chunk: Chunk,
  onPassed: () => Promise<void>,
): () => LooseRecord | null | Promise<LooseRecord | null> {
  const runs = recordRuns(chunk, chunk.startPosition, onPassed);
  let run: readonly LooseRecord[] = [];
  let at = 0;
  const more = async (): Promise<LooseRecord | null> => {
    const found = await runs.next();
    if (found.done === true) return null;
    run = found.value;
    at = 1;
    return run[0]!;
  };
  return () => (at < run.length ? run[at++]! : more());
}

export const PROOF_JOBS: Readonly<Record<string, Job>> = {
  [LEAVES_JOB]: makeLeaves as Job,
  [TAIL_JOB]: hashTail as Job,
  [COMPARE_JOB]: compare as Job,
};
