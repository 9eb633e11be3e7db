import { isSkuaError, SkuaError } from '../errors.ts';
import { guidFromUuidBytes } from '../guid.ts';
import type { Chunk } from '../log/chunk.ts';
import { HEADER_BYTES, mapActual, mapLogical } from '../log/chunk-format.ts';
import { ChunkProof } from '../log/chunk-proof.ts';
import { FRAME_BYTES } from '../log/records.ts';
import { scanChunk } from '../log/scan.ts';
import type { Job, JobContext } from '../ports/jobs.ts';
import { doubtIfDamaged, switchChunk } from './chunk-switch.ts';
import { ChunkWriter, openSource } from './chunk-writer.ts';
import { newId, type RunContext } from './run-context.ts';

const CANCELLED_TEXT = 'Scavenge cancelled';

/** Merging, scavenge.md section 7: passes over the whole log until one merges nothing. */
export async function runChunkMerging(run: RunContext): Promise<void> {
  const { table } = run.deps.data;
  for (let pass = 1, merges = -1; merges !== 0; pass++) {
    const completed = [...table.all()].filter((chunk) => chunk.isCompleted);
    const candidates = completed.map((chunk) => ({ chunk, startNumber: chunk.startNumber, endNumber: chunk.endNumber, dataBytes: chunk.physicalBytes }));
    const groups = mergeGroups(candidates, table.chunkSize).map((group) => group.map(({ chunk }) => chunk));
    run.progress.begin('Chunk merging', groups.reduce((sum, group) => sum + group.length, 0), groups.reduce((sum, group) => sum + bytesOf(group), 0));
    merges = 0;
    for (const group of groups) {
      run.check();
      if (await mergeGroup(run, group)) merges++;
      await run.throttle.rest();
    }
    run.check();
    run.lines.mergePass(pass, merges);
  }
}

function bytesOf(group: readonly Chunk[]): number {
  return group.reduce((sum, chunk) => sum + chunk.physicalBytes, 0);
}

/** Merges one group. A failure leaves its chunks as they are and is only told; the next pass or run tries again. */
async function mergeGroup(run: RunContext, group: readonly Chunk[]): Promise<boolean> {
  const { deps, progress, history, lines } = run;
  const startedMs = deps.ports.clock.monotonicMs();
  const startNumber = group[0]!.startNumber;
  const endNumber = group.at(-1)!.endNumber;
  const target = `${newId(deps.ports.ids)}.merge.scavenge.tmp`;
  const part = Symbol();
  const bytes = bytesOf(group);
  let isMerged = false;
  try {
    const args: MergeChunksArgs = { chunkSize: deps.data.table.chunkSize, sources: group.map((chunk) => chunk.name), target, chunkId: guidFromUuidBytes(deps.ports.ids.uuidBytes()) };
    const { bytesBefore, bytesAfter } = await run.job<MergeChunksResult>(MERGE_CHUNKS_JOB, args, (told) => progress.ofPart(part, told, bytes));
    const replacement = await switchChunk(run.switchParts(), target, startNumber, endNumber);
    isMerged = true;
    const elapsedMs = deps.ports.clock.monotonicMs() - startedMs;
    const spaceSaved = bytesBefore - bytesAfter;
    progress.bytesReclaimed += spaceSaved;
    history.merged({ startNumber, endNumber, elapsedMs, spaceSaved, error: null });
    lines.merged(group, replacement, elapsedMs, spaceSaved);
  } catch (error) {
    await deps.ports.storage.remove(target).catch(() => {});
    const text = isSkuaError(error, 'aborted') ? CANCELLED_TEXT : error instanceof Error ? error.message : String(error);
    history.merged({ startNumber, endNumber, elapsedMs: deps.ports.clock.monotonicMs() - startedMs, spaceSaved: 0, error: text });
    lines.mergeFailed(group, error);
    for (const chunk of group) doubtIfDamaged(chunk, error);
  } finally {
    progress.endPart(part, isMerged ? bytes : 0, isMerged ? group.length : 0);
  }
  return isMerged;
}

/** The job that merges neighbours into one file. */
export const MERGE_CHUNKS_JOB = 'scavenge.merge-chunks';
/** Bytes copied at once. */
const COPY_BYTES = 1_048_576;
/** Records of an unscavenged chunk between two looks at whether the run is to stop. */
const CHECK_EVERY_RECORDS = 1_024;

interface MergeChunksArgs {
  readonly chunkSize: number;
  /** Names of the chunk files in force, neighbours in the order of the log. */
  readonly sources: readonly string[];
  /** `<uuid>.merge.scavenge.tmp` */
  readonly target: string;
  /** 16 on-disk bytes. */
  readonly chunkId: Uint8Array;
}

interface MergeChunksResult {
  /** Sizes of all old files and of the new one. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** What grouping needs of a physical chunk. */
interface MergeCandidate {
  readonly startNumber: number;
  readonly endNumber: number;
  /** Bytes of records, without header, map and footer. */
  readonly dataBytes: number;
}

/**
 * One pass over the physical chunks in the order of the log: the groups of two and more neighbours that are merged;
 * scavenge.md section 7. Passes are repeated until one gives no group.
 */
export function mergeGroups<T extends MergeCandidate>(chunks: readonly T[], chunkSize: number): T[][] {
  const groups: T[][] = [];
  let group: T[] = [];
  let sizeBytes = 0;
  for (const chunk of chunks) {
    const last = group[group.length - 1];
    if (sizeBytes + chunk.dataBytes > chunkSize || (last !== undefined && last.endNumber + 1 !== chunk.startNumber)) {
      if (group.length >= 2) groups.push(group);
      group = [];
      sizeBytes = 0;
    }
    group.push(chunk);
    sizeBytes += chunk.dataBytes;
  }
  if (group.length >= 2) groups.push(group);
  return groups;
}

/**
 * Copies the records of neighbouring chunks into one new file, which is complete and durable under its temporary name
 * when the job ends, and gone when it throws. Throws `log_corrupt` for a file that is not as it was written.
 */
export async function mergeChunks(args: MergeChunksArgs, context: JobContext): Promise<MergeChunksResult> {
  const sources: Chunk[] = [];
  try {
    for (const name of args.sources) sources.push(await openSource(context.storage, name, args.chunkSize));
    checkNeighbours(sources);
    return await merge(sources, args, context);
  } finally {
    for (const source of sources) await source.file.retire();
  }
}

function checkNeighbours(sources: readonly Chunk[]): void {
  for (let i = 1; i < sources.length; i++) {
    if (sources[i - 1]!.endNumber + 1 === sources[i]!.startNumber) continue;
    throw new SkuaError('scavenge_failed', `${sources[i - 1]!.name} and ${sources[i]!.name} are no neighbours and can't be merged: this is a defect.`, { file: sources[i]!.name });
  }
}

async function merge(sources: readonly Chunk[], args: MergeChunksArgs, context: JobContext): Promise<MergeChunksResult> {
  const first = sources[0]!;
  const last = sources[sources.length - 1]!;
  const target = { path: args.target, chunkSize: args.chunkSize, startNumber: first.startNumber, endNumber: last.endNumber, chunkId: args.chunkId };
  const writer = await ChunkWriter.create(context.storage, context.digests, target);
  try {
    const copy = new MergeCopy(sources, writer, context);
    for (const source of sources) await copy.take(source);
    const bytesAfter = await writer.finish();
    return { bytesBefore: sources.reduce((sum, source) => sum + source.file.file.size, 0), bytesAfter };
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

class MergeCopy {
  readonly #start: number;
  readonly #writer: ChunkWriter;
  readonly #context: JobContext;
  readonly #total: number;
  readonly #buffers = [new Uint8Array(COPY_BYTES), new Uint8Array(COPY_BYTES)] as const;
  #done = 0;

  constructor(sources: readonly Chunk[], writer: ChunkWriter, context: JobContext) {
    this.#start = sources[0]!.startPosition;
    this.#total = sources.reduce((sum, source) => sum + source.physicalBytes, 0);
    this.#writer = writer;
    this.#context = context;
  }

  async take(source: Chunk): Promise<void> {
    const { file } = source.file;
    const proof = new ChunkProof(this.#context.digests, source.name, file.size);
    await proof.addRange(file, HEADER_BYTES);
    await (source.isScavenged ? this.#scavenged(source, proof) : this.#unscavenged(source, proof));
    await proof.addRange(file, file.size, () => this.#context.checkpoint());
    proof.check();
  }

  /** A scavenged chunk knows where its records lie: its data are copied as they are, and its map is moved. */
  async #scavenged(source: Chunk, proof: ChunkProof): Promise<void> {
    const base = this.#writer.dataBytes;
    const end = HEADER_BYTES + source.physicalBytes;
    // While one is written the next block comes into the other.
    const [one, other] = this.#buffers;
    let isOther = false;
    const read = (at: number) => {
      isOther = !isOther;
      return readExactly(source, at, Math.min(COPY_BYTES, end - at), isOther ? other : one);
    };
    let ahead = source.physicalBytes > 0 ? read(HEADER_BYTES) : null;
    for (let at = HEADER_BYTES; ahead !== null;) {
      const block: Uint8Array = await ahead;
      at += block.length;
      ahead = at < end ? read(at) : null;
      const waiting = this.#writer.addData(block);
      proof.add(block);
      if (waiting !== undefined) await waiting;
      await this.#passed(block.length);
    }
    await this.#moveMap(source, base, proof);
    if (source.mapCount > 0) this.#writer.logicalBytes = source.startPosition - this.#start + source.logicalBytes;
  }

  async #moveMap(source: Chunk, base: number, proof: ChunkProof): Promise<void> {
    const { mapEntryBytes, mapCount } = source;
    const shift = source.startPosition - this.#start;
    const pieceEntries = Math.floor(COPY_BYTES / mapEntryBytes);
    let lastActual = -1;
    let lastLogical = -1;
    for (let from = 0; from < mapCount; from += pieceEntries) {
      const count = Math.min(pieceEntries, mapCount - from);
      const at = HEADER_BYTES + source.physicalBytes + from * mapEntryBytes;
      const bytes = await readExactly(source, at, count * mapEntryBytes);
      proof.add(bytes);
      for (let i = 0; i < count; i++) {
        const actual = mapActual(bytes, i * mapEntryBytes);
        const logical = mapLogical(bytes, i * mapEntryBytes, mapEntryBytes);
        if (actual <= lastActual || logical <= lastLogical || actual + FRAME_BYTES > source.physicalBytes) throw source.corrupt(at + i * mapEntryBytes - HEADER_BYTES, 'an entry of the position map that is out of order');
        this.#writer.addEntry(base + actual, shift + logical);
        lastActual = actual;
        lastLogical = logical;
      }
      await this.#context.checkpoint();
    }
  }

  /** The records of a chunk that was never scavenged are found by reading them. */
  async #unscavenged(source: Chunk, proof: ChunkProof): Promise<void> {
    let records = 0;
    await scanChunk(source, source.startPosition, (frame) => {
      const waiting = this.#writer.addRecord(frame.position - this.#start, frame.bytes, frame.at - FRAME_BYTES / 2, frame.length + FRAME_BYTES);
      if (++records % CHECK_EVERY_RECORDS !== 0) return waiting;
      return waiting === undefined ? this.#context.checkpoint() : waiting.then(() => this.#context.checkpoint());
    }, (bytes, block) => {
      proof.add(block);
      return this.#passed(bytes);
    }, true);
  }

  async #passed(bytes: number): Promise<void> {
    await this.#writer.settle();
    this.#done += bytes;
    this.#context.progress({ done: this.#done, total: this.#total, unit: 'bytes' });
    await this.#context.checkpoint();
  }
}

/** Reads a range that the file must have. */
function readExactly(source: Chunk, at: number, length: number, into?: Uint8Array): Promise<Uint8Array> {
  const reading = (async () => {
    const bytes = await source.file.file.read(at, length, into);
    if (bytes.length !== length) throw source.corrupt(at + bytes.length - HEADER_BYTES, 'the end of the file before the end of its data');
    return bytes;
  })();
  // What was read ahead is not waited for after an error.
  reading.catch(() => {});
  return reading;
}

export const CHUNK_MERGING_JOBS: Readonly<Record<string, Job>> = { [MERGE_CHUNKS_JOB]: mergeChunks };
