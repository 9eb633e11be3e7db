import { BACKUP_JOBS } from '../backup/jobs/jobs.ts';
import { TABLE_JOBS } from '../index/jobs/jobs.ts';
import { LOG_JOBS } from '../log/scrub/scrub.ts';
import type { Job } from '../ports/jobs.ts';
import { PROOF_JOBS } from '../integrity/jobs/jobs.ts';
import { SCAVENGE_JOBS } from '../scavenge/jobs/jobs.ts';

/** Every job that can be run off the request loop, by name. Workers look the name up here. */
export const JOBS: Readonly<Record<string, Job>> = {
  ...TABLE_JOBS,
  ...LOG_JOBS,
  ...SCAVENGE_JOBS,
  ...BACKUP_JOBS,
  ...PROOF_JOBS,
};
