import type { JobContext } from '../../ports/jobs.ts';
import type { ErasureFinding, ErasureSummary } from './prove-erased.ts';
import { proveErased } from './prove-erased.ts';

/** The search of `proveErased` off the request loop. */
export const PROVE_ERASED_JOB = 'scavenge.prove-erased';

export interface ProveErasedArgs {
  /** Ids. */
  readonly events: readonly string[];
  /** Null for none. */
  readonly stream: string | null;
}

export interface ErasureReport extends ErasureSummary {
  /** The first thousand. */
  readonly findings: readonly ErasureFinding[];
}

/** Rejects as `proveErased` throws. */
export async function proveErasedJob({ events, stream }: ProveErasedArgs, context: JobContext): Promise<ErasureReport> {
  const search = proveErased({ storage: context.storage, hasher: context.hasher, events, ...(stream !== null && { stream }) });
  const findings: ErasureFinding[] = [];
  try {
    for (;;) {
      const next = await search.next();
      if (next.done === true) return { ...next.value, findings };
      if (next.value.kind === 'progress') context.progress({ done: next.value.bytesDone, total: next.value.bytesTotal, unit: 'bytes' });
      else findings.push(next.value);
      await context.checkpoint();
    }
  } finally {
    // Where the job is ended the file that is being searched is closed.
    await search.return(undefined as never);
  }
}
