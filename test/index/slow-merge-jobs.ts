import { TABLE_JOBS } from '../../core/index/jobs/jobs.ts';
import type { Job } from '../../core/ports/jobs.ts';

/** The jobs of index tables, but for merges that go on until they are ended. */
export const JOBS: Readonly<Record<string, Job>> = {
  ...TABLE_JOBS,
  'index.merge-tables': async (args: { path: string }, context) => {
    await (await context.storage.create(args.path)).close();
    for (;;) {
      await context.checkpoint();
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  },
};
