import { subscribe } from 'node:diagnostics_channel';
import { CAUGHT_CHANNEL } from '../../local/http/guard.ts';

interface Watch {
  /** Set while a test causes what a guard has to catch. */
  expected: unknown[] | null;
}

/** One for the process: this file is run before each file of tests. */
const HERE = Symbol.for('skua.tests.caught');
const watch = (globalThis as { [HERE]?: Watch })[HERE] ??= watching();

/** What runs for a connection and fails is a fault of the product, even where a guard keeps it from the process: thrown outside of any test, it fails the run. */
function watching(): Watch {
  const begun: Watch = { expected: null };
  subscribe(CAUGHT_CHANNEL, (message) => {
    const { error } = message as { readonly error: unknown };
    if (begun.expected !== null) begun.expected.push(error);
    else setImmediate(() => { throw error; });
  });
  return begun;
}

/** What guards catch while `work` runs, which would fail the run otherwise. */
export async function caughtDuring(work: () => Promise<void>): Promise<readonly unknown[]> {
  const caught: unknown[] = watch.expected = [];
  try {
    await work();
  } finally {
    watch.expected = null;
  }
  return caught;
}
