import type { Job } from '../ports/jobs.ts';
import { MERGE_TABLES_JOB, mergeTables } from './table-merge.ts';
import { PROVE_TABLE_JOB, VERIFY_TABLE_JOB, verifyTable } from './table-verify.ts';
import { WRITE_TABLE_JOB, writeTable } from './table-write.ts';

/** What workers do for the index. */
export const TABLE_JOBS: Readonly<Record<string, Job>> = {
  [WRITE_TABLE_JOB]: writeTable,
  [MERGE_TABLES_JOB]: mergeTables,
  [VERIFY_TABLE_JOB]: verifyTable,
  [PROVE_TABLE_JOB]: verifyTable,
};
