import { subscribe } from 'node:diagnostics_channel';
import { CAUGHT_CHANNEL } from '../../local/http/guard.ts';

/** Set while a test causes what a guard has to catch. */
let expected: unknown[] | null = null;

// What runs for a connection and fails is a fault of the product, even where a guard keeps it from the process: thrown outside of any test, it fails the run.
subscribe(CAUGHT_CHANNEL, (message) => {
  const { error } = message as { readonly error: unknown };
  if (expected !== null) expected.push(error);
  else setImmediate(() => { throw error; });
});

/** What guards catch while `work` runs, which would fail the run otherwise. */
export async function caughtDuring(work: () => Promise<void>): Promise<readonly unknown[]> {
  const caught: unknown[] = expected = [];
  try {
    await work();
  } finally {
    expected = null;
  }
  return caught;
}
