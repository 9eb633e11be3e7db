import { subscribe } from 'node:diagnostics_channel';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { CAUGHT_CHANNEL } from '../../local/http/guard.ts';

/**
 * Programs that tests start have these of the environment: what guards catch in them is written to a file of this
 * process.
 */
const PRELOADED = 'NODE_OPTIONS';
const FILE = 'SKUA_TEST_CAUGHT';
export const TELLS_CAUGHT: readonly string[] = [PRELOADED, FILE];

interface Watch {
  /** Set while a test causes what a guard has to catch. */
  expected: unknown[] | null;
}

/** One for the process: this file is run before each file of tests. */
const HERE = Symbol.for('skua.tests.caught');
const watch = ((globalThis as { [HERE]?: Watch })[HERE] ??= watching());

/**
 * What runs for a connection and fails is a fault of the product, even where a guard keeps it from the process: thrown
 * outside of any test, it fails the run.
 */
function watching(): Watch {
  const begun: Watch = { expected: null };
  subscribe(CAUGHT_CHANNEL, (message) => {
    const { error } = message as { readonly error: unknown };
    if (begun.expected !== null) begun.expected.push(error);
    else
      setImmediate(() => {
        throw error;
      });
  });
  process.env[PRELOADED] =
    `${process.env[PRELOADED] ?? ''} --require ${JSON.stringify(fileURLToPath(new URL('caught-elsewhere.cjs', import.meta.url)))}`;
  process.env[FILE] = join(tmpdir(), `skua-caught-${process.pid}`);
  caughtElsewhere();
  return begun;
}

/** What was caught in programs that were started here, as `{ message, stack }`, since this was asked last. */
function caughtElsewhere(): readonly { readonly stack: string }[] {
  const file = process.env[FILE]!;
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  rmSync(file);
  return lines.map((line) => JSON.parse(line) as { readonly stack: string });
}

afterAll(() => {
  const caught = caughtElsewhere();
  if (caught.length > 0)
    throw new Error(
      `Programs that these tests started have caught what failed for a connection:\n${caught.map(({ stack }) => stack).join('\n')}`,
    );
});

/**
 * What guards catch while `work` runs, here and in programs that it starts and that have ended, which would fail the
 * run otherwise.
 */
export async function caughtDuring(work: () => Promise<void>): Promise<readonly unknown[]> {
  const caught: unknown[] = (watch.expected = []);
  try {
    await work();
  } finally {
    watch.expected = null;
    caught.push(...caughtElsewhere());
  }
  return caught;
}
