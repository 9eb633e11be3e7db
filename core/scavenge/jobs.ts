import type { Job } from '../ports/jobs.ts';
import { ACCUMULATE_JOB, accumulate } from './accumulation.ts';
import { CALCULATE_JOB, calculate } from './calculation.ts';
import { CHUNK_EXECUTION_JOBS } from './chunk-execution.ts';
import { CHUNK_MERGING_JOBS } from './chunk-merging.ts';
import { CLEAN_JOB, clean } from './cleaning.ts';
import { DRY_RUN_JOB, dryRun } from './dry-run.ts';
import { EXPLAIN_JOB, explain } from './explain.ts';
import { EXECUTE_TABLE_JOB, executeTable } from './index-execution.ts';

/** The jobs of scavenges, by name. */
export const SCAVENGE_JOBS: Readonly<Record<string, Job>> = {
  [ACCUMULATE_JOB]: accumulate,
  [CALCULATE_JOB]: calculate,
  ...CHUNK_EXECUTION_JOBS,
  ...CHUNK_MERGING_JOBS,
  [EXECUTE_TABLE_JOB]: executeTable,
  [CLEAN_JOB]: clean,
  [DRY_RUN_JOB]: dryRun,
  [EXPLAIN_JOB]: explain,
};
