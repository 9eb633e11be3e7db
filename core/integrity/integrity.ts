import { SkuaError } from '../base/errors.ts';
import { isChunkName } from '../ports/own-names.ts';
import { VerifyRun } from './verify/verify-run.ts';
import type { VerifyFinding, VerifyNote, VerifyOptions, VerifyProgress } from './verify/verify-run.ts';
import { verifyChunks } from './verify/verify-chunks.ts';
import { MARKS_FILE, readMarksTable } from '../streams/format/marks-table.ts';
import { verifyAttributes } from './verify/verify-attributes.ts';
import { verifyIndex } from './verify/verify-index.ts';

export interface VerifySummary {
  readonly chunks: number;
  readonly records: number;
  readonly events: number;
  readonly indexTables: number;
  readonly indexEntries: number;
  readonly errors: number;
  readonly warnings: number;
  /** What can't be proved, since no checksum covers it. */
  readonly notes: number;
}

/**
 * Checks a stopped data directory without changing it: checkpoints, chunk files with their checksums, every record,
 * position maps, the indexes against the log, and the scavenge database. Yields findings, notes on what no checksum
 * covers, and progress, and returns the counts. Throws `directory_locked` while a node uses the directory, and
 * `file_not_found` when there is no database in it.
 */
export async function* verifyDirectory(
  options: VerifyOptions,
): AsyncGenerator<VerifyFinding | VerifyNote | VerifyProgress, VerifySummary> {
  const run = new VerifyRun(options);
  const names = await options.storage.list('');
  if (!names.some((name) => name === 'writer.chk' || isChunkName(name)))
    throw new SkuaError(
      'file_not_found',
      'There is no database in this directory: it has neither writer.chk nor chunk files.',
    );
  const lock = await options.storage.lock();
  try {
    const log = yield* verifyChunks(run, names);
    yield* run.take();
    if (log) {
      yield* verifyIndex(run, log);
      yield* verifyAttributes(run, log);
    }
    yield* verifyScavengeDatabase(run);
    await verifyMarks(run);
    yield* run.take();
  } finally {
    await run.close();
    await lock.release();
  }
  return {
    chunks: run.chunks,
    records: run.records,
    events: run.events,
    indexTables: run.indexTables,
    indexEntries: run.indexEntries,
    errors: run.errors,
    warnings: run.warnings,
    notes: run.notes,
  };
}

/** What a restore left beside the log for the next start. */
async function verifyMarks(run: VerifyRun): Promise<void> {
  try {
    const marks = await readMarksTable(run.storage, MARKS_FILE, run.digests);
    if (marks === null) return;
    run.note(
      'redactions_waiting',
      MARKS_FILE,
      {},
      `${MARKS_FILE} has ${marks.positions.length} redactions of a restore, which the next start writes to the log. Another program would show these events: start Skua on the directory, and run a scavenge, before it moves elsewhere.`,
    );
  } catch (error) {
    run.addError(error, MARKS_FILE);
  }
}

const DATABASE = 'index/scavenging/scavenging.db';

/**
 * With the checks of the database itself, which know its pages and indexes, and not what the values in them should be.
 */
async function* verifyScavengeDatabase(run: VerifyRun): AsyncGenerator<VerifyProgress, void> {
  const bytes = await run.storage.size(DATABASE);
  const states = run.options.scavengeStates;
  if (bytes === null) return;
  yield { kind: 'progress', phase: 'scavenge-database', bytesDone: 0, bytesTotal: bytes };
  const found = states?.check('thorough') ?? null;
  for (const what of found ?? [])
    run.add(
      'error',
      'scavenge_database_corrupt',
      DATABASE,
      null,
      `The scavenge database is damaged: ${what}. The next scavenge removes it and rebuilds it from the log; nothing else is lost.`,
    );
  if (found === null)
    run.note('scavenge_database_unchecked', DATABASE, { offset: 0, bytes }, `${DATABASE} was not checked.`);
  else if (found.length === 0)
    run.note(
      'scavenge_database_values',
      DATABASE,
      {},
      `${DATABASE}: structure, indexes and types are sound. Its pages have no checksums, so a changed but plausible value is not detected; if in doubt, delete index/scavenging: the next scavenge rebuilds it from the log.`,
    );
}
