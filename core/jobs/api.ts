import type { Job } from '../ports/jobs.ts';

type Group = Readonly<Record<string, Job>>;

/** By what stands before the dot in the names of the jobs. */
const GROUPS: Readonly<Record<string, () => Promise<Group>>> = {
  index: async () => (await import('../index/jobs/jobs.ts')).TABLE_JOBS,
  log: async () => (await import('../log/scrub/scrub.ts')).LOG_JOBS,
  // The proof's receipts are written in the threads of scavenges.
  scavenge: async () => ({
    ...(await import('../scavenge/jobs/jobs.ts')).SCAVENGE_JOBS,
    ...(await GROUPS['proof']!()),
  }),
  backup: async () => (await import('../backup/jobs/jobs.ts')).BACKUP_JOBS,
  proof: async () => (await import('../integrity/jobs/jobs.ts')).PROOF_JOBS,
};

/**
 * A job by its name, undefined where there is none. Its group is loaded when it is first asked for: a thread that
 * merges tables has no use for a store, as jobs of a backup need it. In bundles the other groups come together.
 */
export async function loadJob(name: string): Promise<Job | undefined> {
  const group = name.split('.', 1)[0]!;
  return Object.hasOwn(GROUPS, group) ? (await GROUPS[group]!())[name] : undefined;
}
