import { SkuaError } from '../errors.ts';
import { VerifyRun } from './run.ts';
import type { VerifyFinding, VerifyOptions, VerifyProgress } from './run.ts';
import { verifyChunks } from './verify-chunks.ts';
import { verifyIndex } from './verify-index.ts';

export interface VerifySummary {
  readonly chunks: number;
  readonly records: number;
  readonly events: number;
  readonly indexTables: number;
  readonly indexEntries: number;
  readonly errors: number;
  readonly warnings: number;
}

/**
 * Checks a stopped data directory without changing it: checkpoints, chunk files with their checksums, every record,
 * position maps, and the index against the log. Yields findings and progress, and returns the counts.
 * Throws `directory_locked` while a node uses the directory, and `file_not_found` when there is no database in it.
 */
export async function* verifyDirectory(options: VerifyOptions): AsyncGenerator<VerifyFinding | VerifyProgress, VerifySummary> {
  const run = new VerifyRun(options);
  const names = await options.storage.list('');
  if (!names.some((name) => name === 'writer.chk' || name.startsWith('chunk-'))) throw new SkuaError('file_not_found', 'There is no database in this directory: it holds neither writer.chk nor chunk files.');
  const lock = await options.storage.lock();
  try {
    const log = yield* verifyChunks(run, names);
    yield* run.take();
    if (log) yield* verifyIndex(run, log);
    yield* run.take();
  } finally {
    await run.close();
    await lock.release();
  }
  return { chunks: run.chunks, records: run.records, events: run.events, indexTables: run.indexTables, indexEntries: run.indexEntries, errors: run.errors, warnings: run.warnings };
}
