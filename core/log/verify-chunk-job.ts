import type { Job } from '../ports/jobs.ts';
import { ChunkProof } from './chunk-proof.ts';

export const VERIFY_CHUNK_JOB = 'log.verify-chunk';

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
    const begunMs = context.monotonicMs();
    let done = 0;
    await proof.addRange(file, total, async (bytes) => {
      done += bytes;
      context.progress({ done, total, unit: 'bytes' });
      await context.checkpoint();
      const aheadMs = bytesPerSecond === 0 ? 0 : (done / bytesPerSecond) * 1_000 - (context.monotonicMs() - begunMs);
      if (aheadMs > 0) await context.sleep(aheadMs);
    });
    return proof.isSound;
  } finally {
    await file.close();
  }
}) satisfies Job;

export const LOG_JOBS: Readonly<Record<string, Job>> = { [VERIFY_CHUNK_JOB]: verifyChunk };
