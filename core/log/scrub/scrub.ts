import { SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import { type Job, type Jobs, paced } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import { blockDamaged, compareBlocks } from '../block-sums/block-sums.ts';
import type { Chunk } from '../chunk/chunk.ts';
import type { ChunkTable } from '../chunk-table/chunk-table.ts';
import { ChunkProof } from '../format/chunk-proof.ts';
import { isSameStamp, type Proof, PROOFS_FILE, PROOFS_FORMAT, readProofs, type Stamp, stampOf, writeProofs } from '../format/proofs-file.ts';

/** A start is not slowed down by the first proofs. */
const FIRST_PROOF_AFTER_MS = 10_000;
/** How often is looked for chunks that were completed or rewritten since, or whose proof has become old. */
const LOOK_EVERY_MS = 60_000;
/** What was proved is written down at least so often while there is more to prove. */
const SAVE_EVERY_MS = 60_000;
/** A chunk that could not be read is tried again after this. */
const RETRY_AFTER_MS = 3_600_000;
/** Age at which a proof is renewed. */
export const PROVE_AGAIN_AFTER_MS = 7 * 86_400_000;
/** Bytes a second at which proofs are renewed, so that nobody who reads or appends notices. What was never proved is read without a limit. */
export const PROVE_AGAIN_BYTES_PER_SECOND = 16_777_216;

export interface ChunkProofParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly digests: Digests;
  readonly jobs: Jobs;
  readonly log: Log;
  readonly table: ChunkTable;
  /** Told once, of a chunk whose content does not fit its MD5; nothing is proved after that. */
  readonly onDamage: (error: SkuaError) => void;
}

/** How far the completed chunks are known to be as they were written. */
export interface ChunkProofFigures {
  /** Bytes of completed chunk files that were not proved since they were written, or since they changed. */
  readonly bytesUnproven: number;
  /** Time since the oldest proof, in milliseconds; null without one. */
  readonly oldestProofAgeMs: number | null;
}

/** What the completed chunks of a log amount to; each knows when it was proved. */
export function proofFigures(table: ChunkTable, nowMs: number): ChunkProofFigures {
  let bytesUnproven = 0;
  let oldestMs = Infinity;
  for (const chunk of table.all()) {
    if (!chunk.isCompleted) continue;
    if (chunk.provenMs === null) bytesUnproven += chunk.file.file.size;
    else oldestMs = Math.min(oldestMs, chunk.provenMs);
  }
  return { bytesUnproven, oldestProofAgeMs: oldestMs === Infinity ? null : Math.max(0, nowMs - oldestMs) };
}

/**
 * Compares completed chunks with their MD5 in the background, newest first, in a worker: reads do not wait for it. What was proved is
 * remembered across starts for as long as name, length and modification time of the file are the same, and proved again when it is
 * old, since a disk also loses what nobody touches.
 */
export class ChunkProofs {
  readonly #parts: ChunkProofParts;
  /** Monotonic time before which a chunk that could not be read is left alone. */
  readonly #retryMs = new Map<string, number>();
  /** Of the content that was proved. */
  readonly #stamps = new WeakMap<Chunk, Stamp>();
  /** The file says something else than the chunks. */
  #isChanged = false;
  #savedMs = 0;
  /** When the chunk being written was last compared with the checksums of its blocks: the start does it. */
  #blocksProvenMs: number;

  constructor(parts: ChunkProofParts) {
    this.#parts = parts;
    this.#blocksProvenMs = parts.clock.nowMs();
  }

  /** Ends with the signal, or with the first damage. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    try {
      await this.#load(signal);
      await clock.sleep(FIRST_PROOF_AFTER_MS, signal);
      while (!signal.aborted) {
        if (!await this.#round(signal)) return;
        await this.#save();
        await clock.sleep(LOOK_EVERY_MS, signal);
      }
    } finally {
      await this.#save();
    }
  }

  /** Proves what is due now; false after damage. */
  async #round(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      for (const chunk of this.#unproven()) {
        if (signal.aborted) return true;
        if (!await this.#prove(chunk, 0, signal)) return false;
        if (this.#parts.clock.monotonicMs() - this.#savedMs >= SAVE_EVERY_MS) await this.#save();
      }
      const old = this.#oldest();
      if (old === null) return this.#proveBlocks(signal);
      // One only: meanwhile chunks are completed, which come first.
      if (!await this.#prove(old, PROVE_AGAIN_BYTES_PER_SECOND, signal)) return false;
    }
    return true;
  }

  #candidates(): Chunk[] {
    const nowMs = this.#parts.clock.monotonicMs();
    return [...this.#parts.table.all()].filter((chunk) => chunk.isCompleted && nowMs >= (this.#retryMs.get(chunk.name) ?? -Infinity));
  }

  #unproven(): Chunk[] {
    return this.#candidates().filter(({ provenMs }) => provenMs === null).reverse();
  }

  #oldest(): Chunk | null {
    const dueMs = this.#parts.clock.nowMs() - PROVE_AGAIN_AFTER_MS;
    const old = this.#candidates().filter(({ provenMs }) => provenMs !== null && provenMs <= dueMs);
    return old.reduce<Chunk | null>((oldest, chunk) => (oldest === null || chunk.provenMs! < oldest.provenMs! ? chunk : oldest), null);
  }

  /** As a completed chunk that was proved long ago, the one that is being written; false after damage. */
  async #proveBlocks(signal: AbortSignal): Promise<boolean> {
    const { table, jobs, clock, log, onDamage } = this.#parts;
    const chunk = [...table.all()].findLast(({ isCompleted }) => !isCompleted);
    if (chunk === undefined || clock.nowMs() - this.#blocksProvenMs < PROVE_AGAIN_AFTER_MS) return true;
    this.#blocksProvenMs = clock.nowMs();
    try {
      const args: VerifyChunkArgs = { name: chunk.name, bytesPerSecond: PROVE_AGAIN_BYTES_PER_SECOND };
      const wrong = await jobs.run(VERIFY_BLOCKS_JOB, args, { signal }) as readonly number[];
      if (wrong.length === 0 || table.chunkAt(chunk.startPosition) !== chunk) return true;
      onDamage(blockDamaged(chunk.name, wrong[0]!, wrong.length));
      return false;
    } catch (error) {
      if (!signal.aborted && table.chunkAt(chunk.startPosition) === chunk) log.warn('the chunk being written could not be verified', { file: chunk.name, error: String(error) });
      return true;
    }
  }

  async #prove(chunk: Chunk, bytesPerSecond: number, signal: AbortSignal): Promise<boolean> {
    const { table, jobs, clock, log, onDamage } = this.#parts;
    // A scavenge may have replaced it, before or meanwhile.
    const isInForce = () => table.chunkAt(chunk.startPosition) === chunk;
    if (!isInForce()) return true;
    try {
      const before = await stampOf(this.#parts.storage, chunk.name);
      const args: VerifyChunkArgs = { name: chunk.name, bytesPerSecond };
      const isSound = await jobs.run(VERIFY_CHUNK_JOB, args, { signal });
      if (!isInForce()) return true;
      if (!isSound) {
        chunk.provenMs = null;
        this.#isChanged = true;
        onDamage(new SkuaError('log_corrupt', `The checksum of chunk file ${chunk.name} does not match its content. Stop the node, run \`skua verify\`, and restore the file from a backup.`, { file: chunk.name, offset: null }));
        return false;
      }
      const after = await stampOf(this.#parts.storage, chunk.name);
      // Whoever writes to a completed chunk is none of us: what is there now is looked at later.
      if (before === null || after === null || !isSameStamp(before, after)) return this.#later(chunk);
      this.#retryMs.delete(chunk.name);
      chunk.provenMs = Math.floor(clock.nowMs());
      this.#stamps.set(chunk, after);
      this.#isChanged = true;
    } catch (error) {
      if (signal.aborted || !isInForce()) return true;
      log.warn('a chunk could not be verified', { file: chunk.name, error: String(error) });
      this.#later(chunk);
    }
    return true;
  }

  #later(chunk: Chunk): true {
    this.#retryMs.set(chunk.name, this.#parts.clock.monotonicMs() + RETRY_AFTER_MS);
    return true;
  }

  /** Takes over what earlier starts proved of the files as they are now. A file that can't be read, or is not whole, is as good as none. */
  async #load(signal: AbortSignal): Promise<void> {
    const { storage, digests, table, clock, log } = this.#parts;
    try {
      const known = await readProofs(storage, digests, PROOFS_FILE, PROOFS_FORMAT);
      const nowMs = clock.nowMs();
      for (const chunk of table.all()) {
        if (signal.aborted) return;
        const proof = known.get(chunk.name);
        // A proof of the future comes of a clock that was wrong: it would never become old.
        if (proof === undefined || !chunk.isCompleted || proof.provenMs > nowMs) continue;
        const isSame = proof.sizeBytes === chunk.file.file.size && proof.modifiedMs === await storage.modifiedMs(chunk.name);
        if (!isSame) continue;
        chunk.provenMs = proof.provenMs;
        this.#stamps.set(chunk, proof);
      }
    } catch (error) {
      if (!signal.aborted) log.warn(`${PROOFS_FILE} can't be used: all chunks are verified again`, { file: PROOFS_FILE, error: String(error) });
    }
  }

  /** Writes down what is proved, all at once. What can't be written is proved again after the next start. */
  async #save(): Promise<void> {
    const { storage, table, digests, clock, log } = this.#parts;
    const proofs = new Map<string, Proof>();
    for (const chunk of table.all()) {
      const stamp = this.#stamps.get(chunk);
      if (stamp === undefined) continue;
      // Somebody who read the chunk has found it damaged.
      if (chunk.provenMs === null) this.#isChanged = true;
      else proofs.set(chunk.name, { ...stamp, provenMs: chunk.provenMs });
    }
    if (!this.#isChanged) return;
    this.#savedMs = clock.monotonicMs();
    try {
      await writeProofs(storage, digests, PROOFS_FILE, PROOFS_FORMAT, proofs);
      this.#isChanged = false;
    } catch (error) {
      log.warn(`${PROOFS_FILE} could not be written: the chunks it lacks are verified again after the next start`, { file: PROOFS_FILE, error: String(error) });
    }
  }
}

/** A completed chunk file, and the one that is being written. */
export const VERIFY_CHUNK_JOB = 'log.verify-chunk';
export const VERIFY_BLOCKS_JOB = 'log.verify-blocks';

export interface VerifyChunkArgs {
  readonly name: string;
  /** Read no faster; 0, the default, for no limit. */
  readonly bytesPerSecond?: number;
}

/** Compares the MD5 at the end of a completed chunk file with its content; true when they agree. */
const verifyChunk = (async ({ name, bytesPerSecond = 0 }: VerifyChunkArgs, context) => {
  const file = await context.storage.open(name, 'read');
  try {
    const total = file.size;
    const proof = new ChunkProof(context.digests, name, total);
    await proof.addRange(file, total, paced(context, total, bytesPerSecond));
    return proof.isSound;
  } finally {
    await file.close();
  }
}) satisfies Job;

/** Compares the blocks of the chunk that is being written with the checksums beside it, as far as these vouch for it; gives the numbers of those that differ. */
const verifyBlocks = (async ({ name, bytesPerSecond = 0 }: VerifyChunkArgs, context) => compareBlocks(context.storage, name, context.digests, paced(context, await context.storage.size(name) ?? 0, bytesPerSecond))) satisfies Job;

/** What workers do for the log. */
export const LOG_JOBS: Readonly<Record<string, Job>> = { [VERIFY_CHUNK_JOB]: verifyChunk, [VERIFY_BLOCKS_JOB]: verifyBlocks };
