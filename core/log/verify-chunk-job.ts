import type { Job } from '../ports/jobs.ts';
import { MD5_BYTES } from './chunk-format.ts';

export const VERIFY_CHUNK_JOB = 'log.verify-chunk';
export interface VerifyChunkArgs { readonly name: string }

const READ_BYTES = 1_048_576;

/** Compares the MD5 at the end of a completed chunk file with its content; true when they agree. */
const verifyChunk = (async ({ name }: VerifyChunkArgs, context) => {
  const file = await context.storage.open(name, 'read');
  try {
    const md5 = context.digests.md5();
    const end = file.size - MD5_BYTES;
    const block = new Uint8Array(READ_BYTES);
    for (let at = 0; at < end; at += READ_BYTES) {
      md5.update(await file.read(at, Math.min(READ_BYTES, end - at), block));
      context.progress({ done: at, total: end, unit: 'bytes' });
      await context.checkpoint();
    }
    const found = md5.finish();
    const stored = await file.read(end, MD5_BYTES);
    return found.every((byte, i) => byte === stored[i]);
  } finally {
    await file.close();
  }
}) satisfies Job;

export const LOG_JOBS: Readonly<Record<string, Job>> = { [VERIFY_CHUNK_JOB]: verifyChunk };
