import type { Job } from '../ports/jobs.ts';
import type { JobContext } from '../ports/jobs.ts';
import { compareBlocks } from './block-sums.ts';
import { ChunkProof } from './chunk-proof.ts';

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

/** Tells how far a reading is, lets it be ended, and keeps it from being faster than is allowed. */
export function paced(context: Pick<JobContext, 'progress' | 'checkpoint' | 'monotonicMs' | 'sleep'>, total: number, bytesPerSecond: number): (bytes: number) => Promise<void> {
  const begunMs = context.monotonicMs();
  let done = 0;
  return async (bytes) => {
    done += bytes;
    context.progress({ done, total, unit: 'bytes' });
    await context.checkpoint();
    const aheadMs = bytesPerSecond === 0 ? 0 : (done / bytesPerSecond) * 1_000 - (context.monotonicMs() - begunMs);
    if (aheadMs > 0) await context.sleep(aheadMs);
  };
}

export const LOG_JOBS: Readonly<Record<string, Job>> = { [VERIFY_CHUNK_JOB]: verifyChunk, [VERIFY_BLOCKS_JOB]: verifyBlocks };
