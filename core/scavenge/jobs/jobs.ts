import type { Job } from '../../ports/jobs.ts';
import { accumulate, ACCUMULATE_JOB } from '../accumulation.ts';
import { ABANDON_JOB, abandonUnfinished, CHECK_STATE_JOB, checkState } from '../launch/beginning.ts';
import { calculate, CALCULATE_JOB } from '../calculation.ts';
import { CHUNK_EXECUTION_JOBS } from '../chunk-execution.ts';
import { CHUNK_MERGING_JOBS } from '../chunk-merging.ts';
import { clean, CLEAN_JOB } from '../cleaning.ts';
import { DRY_RUN_JOB, dryRun } from '../dry-run.ts';
import { PROVE_ERASED_JOB, checkErasureJob } from '../erasure/erasure.ts';
import { explain, EXPLAIN_JOB } from '../explain.ts';
import { EXECUTE_TABLE_JOB, executeTable } from '../index-execution.ts';
import { EXECUTE_POSITIONS_JOB, executePositions } from '../positions-execution.ts';

/** The jobs of scavenges, by name. */
export const SCAVENGE_JOBS: Readonly<Record<string, Job>> = {
  [ABANDON_JOB]: abandonUnfinished,
  [ACCUMULATE_JOB]: accumulate,
  [CALCULATE_JOB]: calculate,
  ...CHUNK_EXECUTION_JOBS,
  ...CHUNK_MERGING_JOBS,
  [EXECUTE_TABLE_JOB]: executeTable,
  [EXECUTE_POSITIONS_JOB]: executePositions,
  [CLEAN_JOB]: clean,
  [CHECK_STATE_JOB]: checkState,
  [DRY_RUN_JOB]: dryRun,
  [EXPLAIN_JOB]: explain,
  [PROVE_ERASED_JOB]: checkErasureJob as Job,
};
