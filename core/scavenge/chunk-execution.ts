import type { Chunk } from '../log/chunk.ts';
import { ChunkProof } from '../log/chunk-proof.ts';
import { HEADER_BYTES } from '../log/chunk-format.ts';
import { FRAME_BYTES, parsePrepare, PREPARE, PrepareFields, type RecordFrame } from '../log/records.ts';
import { scanChunk } from '../log/scan.ts';
import type { Job, JobContext } from '../ports/jobs.ts';
import { ChunkWriter, openSource } from './chunk-writer.ts';
import { KeepRule } from './keep.ts';
import type { RunSettings } from './run-files.ts';

export const EXECUTE_CHUNK_JOB = 'scavenge.execute-chunk';
/** Records between two looks at whether the run is to stop. */
const CHECK_EVERY_RECORDS = 1_024;

export interface ExecuteChunkArgs {
  readonly settings: RunSettings;
  readonly chunkSize: number;
  /** Name of the chunk file in force. */
  readonly source: string;
  /** `<uuid>.scavenge.tmp` */
  readonly target: string;
  /** 16 on-disk bytes. */
  readonly chunkId: Uint8Array;
}

export interface ExecuteChunkResult {
  readonly recordsKept: number;
  readonly recordsDiscarded: number;
  /** Sizes of the old and the new file. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** End of the last kept record relative to the chunk's start; 0 when nothing was kept. */
  readonly logicalBytes: number;
}

/**
 * Copies what survives of one chunk into a new file, which is complete and durable under its temporary name when the
 * job ends, and gone when it throws; scavenge.md 6.2 and 6.3. Throws `log_corrupt` for a file that is not as it was written.
 */
export async function executeChunk(args: ExecuteChunkArgs, context: JobContext): Promise<ExecuteChunkResult> {
  const source = await openSource(context.storage, args.source, args.chunkSize);
  try {
    const state = context.scavengeStates.open(args.settings.state);
    try {
      return await rewrite(source, new KeepRule(state, args.settings, context.hasher), args, context);
    } finally {
      state.close();
    }
  } finally {
    await source.file.retire();
  }
}

async function rewrite(source: Chunk, keep: KeepRule, args: ExecuteChunkArgs, context: JobContext): Promise<ExecuteChunkResult> {
  const { startNumber, endNumber } = source;
  const writer = await ChunkWriter.create(context.storage, context.digests, { path: args.target, chunkSize: args.chunkSize, startNumber, endNumber, chunkId: args.chunkId });
  try {
    const { file } = source.file;
    const proof = new ChunkProof(context.digests, source.name, file.size);
    await proof.addRange(file, HEADER_BYTES);
    const copy = new SurvivorCopy(source, keep, writer, proof, context);
    await scanChunk(source, source.startPosition, (frame) => copy.visit(frame), (bytes, block) => copy.passed(bytes, block), true);
    await proof.addRange(file, file.size, () => context.checkpoint());
    proof.check();
    const bytesAfter = await writer.finish();
    return { recordsKept: writer.records, recordsDiscarded: copy.records - writer.records, bytesBefore: file.size, bytesAfter, logicalBytes: writer.logicalBytes };
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

class SurvivorCopy {
  readonly #source: Chunk;
  readonly #keep: KeepRule;
  readonly #writer: ChunkWriter;
  readonly #proof: ChunkProof;
  readonly #context: JobContext;
  readonly #fields = new PrepareFields();
  #bytesDone = 0;
  records = 0;

  constructor(source: Chunk, keep: KeepRule, writer: ChunkWriter, proof: ChunkProof, context: JobContext) {
    this.#source = source;
    this.#keep = keep;
    this.#writer = writer;
    this.#proof = proof;
    this.#context = context;
  }

  visit(frame: RecordFrame): void | Promise<void> {
    let waiting: void | Promise<void> = undefined;
    if (this.#survives(frame)) waiting = this.#writer.addRecord(frame.position - this.#source.startPosition, frame.bytes, frame.at - FRAME_BYTES / 2, frame.length + FRAME_BYTES);
    this.records++;
    if (this.records % CHECK_EVERY_RECORDS !== 0) return waiting;
    return waiting === undefined ? this.#context.checkpoint() : waiting.then(() => this.#context.checkpoint());
  }

  /** Commits and system records always stay. */
  #survives(frame: RecordFrame): boolean {
    if (frame.type !== PREPARE) return true;
    parsePrepare(frame, this.#fields);
    return this.#keep.keeps(frame, this.#fields);
  }

  async passed(bytes: number, block: Uint8Array): Promise<void> {
    this.#proof.add(block);
    await this.#writer.settle();
    this.#bytesDone += bytes;
    this.#context.progress({ done: this.#bytesDone, total: this.#source.physicalBytes, unit: 'bytes' });
    await this.#context.checkpoint();
  }
}

export const CHUNK_EXECUTION_JOBS: Readonly<Record<string, Job>> = { [EXECUTE_CHUNK_JOB]: executeChunk };
