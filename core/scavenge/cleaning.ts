import { SkuaError } from '../base/errors.ts';
import type { JobContext } from '../ports/jobs.ts';
import { STATUS_ARCHIVED, STATUS_SPENT } from '../ports/scavenge-state.ts';
import type { RunContext } from './run-context.ts';
import type { RunSettings } from './sources/run-settings.ts';

export const CLEAN_JOB = 'scavenge.clean';

interface CleanArgs {
  readonly settings: RunSettings;
}
type CleanResult = Record<string, never>;

/** Runs the phase. */
export async function runCleaning(run: RunContext): Promise<void> {
  const args: CleanArgs = { settings: run.settings() };
  await run.job(CLEAN_JOB, args, () => {});
}

/**
 * The last stage: forgets what no later run needs, and marks the scavenge point as done. While a chunk with weight was
 * skipped, everything is kept, since that chunk is judged by it one day.
 */
export async function clean({ settings }: CleanArgs, context: JobContext): Promise<CleanResult> {
  await context.checkpoint();
  const state = context.scavengeStates.open(settings.state);
  try {
    state.begin();
    try {
      if (state.allWeightsZero()) {
        state.deleteMetastreams();
        state.deleteOriginals(settings.unsafeIgnoreHardDelete ? [STATUS_SPENT, STATUS_ARCHIVED] : [STATUS_SPENT]);
      } else if (settings.unsafeIgnoreHardDelete) {
        throw new SkuaError(
          'scavenge_failed',
          'Chunks with weight are left although hard deletes are ignored, for which every chunk is executed: this is a defect.',
        );
      }
    } catch (error) {
      state.rollback();
      throw error;
    }
    state.commit({ point: settings.point, stage: 'Done' });
  } finally {
    state.close();
  }
  return {};
}
